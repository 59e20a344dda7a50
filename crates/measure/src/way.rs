//! The ways of access that are compared, by name.

use std::fmt;
use std::str::FromStr;

use sieve::aggregate::{Aggregate, Extent, FileSystem, Naive, Romio, ScanFile, SimplePm};
use sieve::{Profile, Warmth};

use crate::error::Error;

/// One of the built-in ways to cut an access into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// The cost model decides.
    Adaptive,
    /// Every block by itself.
    Naive,
    /// The buffer is always filled.
    Romio,
    /// Joins over holes that are cheaper than an access, then fills the buffer.
    SimplePm,
    /// Joins in the same way, but reads nothing behind the last block.
    Extent,
    /// Reads all of the file, to stripe boundaries.
    ScanFile,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 6] =
        [Way::Adaptive, Way::Naive, Way::Romio, Way::SimplePm, Way::Extent, Way::ScanFile];

    /// Its name, as the thesis and the command line have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Adaptive => "adaptive",
            Way::Naive => "naive",
            Way::Romio => "romio",
            Way::SimplePm => "simple_pm",
            Way::Extent => "extent",
            Way::ScanFile => "scanfile",
        }
    }

    /// Its aggregate function for a place and for data that is at hand or not; none for the
    /// adaptive way, which has none.
    #[must_use]
    pub fn function(self, profile: &Profile, warmth: Warmth) -> Option<Box<dyn Aggregate + Send>> {
        let known = file_system(profile, warmth);
        Some(match self {
            Way::Adaptive => return None,
            Way::Naive => Box::new(Naive),
            Way::Romio => Box::new(Romio),
            Way::SimplePm => Box::new(SimplePm(known)),
            Way::Extent => Box::new(Extent(known)),
            Way::ScanFile => Box::new(ScanFile { stripe_bytes: profile.device.stripe_bytes }),
        })
    }
}

/// The three numbers of the simple performance model, as a profile has them: bandwidth and latency
/// of the page cache while the data is there, of the device else. A model that is told the wrong
/// ones would be an easy opponent.
fn file_system(profile: &Profile, warmth: Warmth) -> FileSystem {
    let page = profile.page_bytes as f64;
    let byte_ns = profile.read.byte_ns + profile.read.page_ns / page;
    let call_ns = profile.read.call_ns + profile.read.page_ns;
    let (device_byte_ns, device_ns) = match warmth {
        Warmth::Warm => (0.0, 0.0),
        Warmth::Cold => {
            let servers = f64::from(profile.device.servers.max(1));
            (profile.device.byte_ns / servers, profile.device.latency_ns)
        }
    };
    FileSystem {
        bandwidth: 1e9 / (byte_ns + device_byte_ns).max(1e-6),
        latency_network: device_ns * 1e-9,
        latency_fs: call_ns * 1e-9,
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|way| way.name() == name);
        found.ok_or_else(|| Error::NoWay { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for way in Way::ALL {
            assert_eq!(way.name().parse::<Way>().unwrap(), way);
        }
        assert!(matches!("sieve".parse::<Way>(), Err(Error::NoWay { .. })));
    }

    #[test]
    fn the_simple_model_minds_larger_holes_when_data_is_far() {
        let profile = Profile::default();
        let near = file_system(&profile, Warmth::Warm);
        let far = file_system(&profile, Warmth::Cold);
        let largest = |known: &FileSystem| (0..30).rfind(|log| known.hole_is_cheaper(1 << log));
        assert!(largest(&far).unwrap() > largest(&near).unwrap() + 2);
    }
}
