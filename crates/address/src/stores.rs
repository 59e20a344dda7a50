//! Names of stores: what `NAME=DIR`, `NAME=mem:`, `NAME=FILE.drepl` and `NAME=URI` mean.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::lossy;
use crate::{AddressError, Uri, detect};

/// A store and the name under which a service offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSpec {
    /// One path component.
    pub name: Vec<u8>,
    /// Where the data lives.
    pub place: StorePlace,
    /// True if clients must not change it.
    pub read_only: bool,
}

/// How the name of a dataset's definition ends. A directory of such a name is told by a `/` behind it.
const DEFINITION_SUFFIX: &[u8] = b".drepl";

/// Where the data of a store lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// In a directory.
    Dir(PathBuf),
    /// In memory, empty at first, gone at the end.
    Mem,
    /// In another service, to which requests are relayed.
    Relay(Uri),
    /// In the replicas of a dataset, which this file defines; its views are the store's files.
    Dataset(PathBuf),
}

impl StorePlace {
    /// Understands `DIR`, `mem:`, a file whose name ends in `.drepl`, or a URI; none if `text` is
    /// empty.
    ///
    /// # Errors
    /// What [`Uri::parse`] says, if it begins like one.
    pub fn parse(text: &[u8]) -> Result<Option<Self>, AddressError> {
        match text {
            b"" => Ok(None),
            b"mem:" => Ok(Some(Self::Mem)),
            _ if detect(text).is_some_and(|found| found.start == 0)
                || crate::detect::begins_web_uri(text) =>
            {
                Uri::parse(text).map(|uri| Some(Self::Relay(uri)))
            }
            _ => {
                let path = Path::new(OsStr::from_bytes(text)).to_path_buf();
                let is_definition = text.ends_with(DEFINITION_SUFFIX);
                Ok(Some(if is_definition { Self::Dataset(path) } else { Self::Dir(path) }))
            }
        }
    }

    /// The text that [`StorePlace::parse`] understands as this place.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Dir(path) | Self::Dataset(path) => path.as_os_str().as_bytes().to_vec(),
            Self::Mem => b"mem:".to_vec(),
            Self::Relay(uri) => uri.to_bytes(),
        }
    }
}

impl StoreSpec {
    /// A store with a checked name.
    ///
    /// # Errors
    /// [`AddressError::StoreName`].
    pub fn new(name: &[u8], place: StorePlace, read_only: bool) -> Result<Self, AddressError> {
        if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
            return Err(AddressError::StoreName { name: lossy(name) });
        }
        Ok(Self { name: name.to_vec(), place, read_only })
    }

    /// Parses `NAME=PLACE`, divided at the first `=`.
    ///
    /// # Errors
    /// [`AddressError::StoreWithoutPlace`], [`AddressError::StorePlace`], [`AddressError::StoreName`], or what
    /// [`Uri::parse`] says.
    pub fn parse(text: &[u8], read_only: bool) -> Result<Self, AddressError> {
        let divide = memchr::memchr(b'=', text)
            .ok_or_else(|| AddressError::StoreWithoutPlace { text: lossy(text) })?;
        let (name, place) = (&text[..divide], &text[divide + 1..]);
        match StorePlace::parse(place)? {
            Some(place) => Self::new(name, place, read_only),
            None => Err(AddressError::StorePlace { name: lossy(name) }),
        }
    }

    /// Checks that no two stores have one name.
    ///
    /// # Errors
    /// [`AddressError::StoreTwice`].
    pub fn check_distinct(stores: &[Self]) -> Result<(), AddressError> {
        let mut seen: Vec<&[u8]> = stores.iter().map(|store| &store.name[..]).collect();
        seen.sort_unstable();
        match seen.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(AddressError::StoreTwice { name: lossy(pair[0]) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let place = |text: &str| StoreSpec::parse(text.as_bytes(), false).map(|store| store.place);
        assert_eq!(place("a=/srv/x=y"), Ok(StorePlace::Dir("/srv/x=y".into())));
        assert_eq!(place("a=mem:"), Ok(StorePlace::Mem));
        assert_eq!(place("a=d/x.drepl"), Ok(StorePlace::Dataset("d/x.drepl".into())));
        assert_eq!(place("a=d/x.drepl/"), Ok(StorePlace::Dir("d/x.drepl/".into())));
        assert_eq!(
            place("a=scdc+tcp://h/b"),
            Ok(StorePlace::Relay("scdc+tcp://h/b".parse().unwrap()))
        );
        assert_eq!(place("a=dir/scdc:/x"), Ok(StorePlace::Dir("dir/scdc:/x".into())));
        assert_eq!(place("a="), Err(AddressError::StorePlace { name: "a".into() }));
        assert_eq!(place("a"), Err(AddressError::StoreWithoutPlace { text: "a".into() }));
        for name in ["", ".", "..", "a/b"] {
            assert_eq!(
                place(&format!("{name}=/x")),
                Err(AddressError::StoreName { name: name.into() })
            );
        }
        assert!(place("a=scdc+tpc://h/b").is_err());
    }

    #[test]
    fn names_must_differ() {
        let stores =
            ["b=/1", "a=/2", "b=/3"].map(|text| StoreSpec::parse(text.as_bytes(), true).unwrap());
        assert_eq!(
            StoreSpec::check_distinct(&stores),
            Err(AddressError::StoreTwice { name: "b".into() })
        );
        assert_eq!(StoreSpec::check_distinct(&stores[..2]), Ok(()));
    }
}
