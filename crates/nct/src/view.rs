//! What stands behind an `nct_view`.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use sieve::aggregate::{Extent, FileSystem, Naive, Romio, ScanFile, SimplePm};
use sieve::{FileView, Profile};
use transfer::Engine;

use crate::error::{Error, Result};

/// `nct_tuple`, of 32 bits as in the thesis.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Said in nct.h.
pub struct NctTuple {
    pub size: u32,
    pub delta_offset: u32,
}

/// `nct_tuple64`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Said in nct.h.
pub struct NctTuple64 {
    pub size: u64,
    pub delta_offset: u64,
}

/// `nct_info`, field by field in the order of Listing 4.1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Said in nct.h.
pub struct NctInfo {
    pub latency_fs: f64,
    pub bandwidth: c_int,
    pub num_nodes: c_int,
    pub latency_network: f64,
    pub stripe_size: u64,
    pub blocksize: u64,
    pub ds_method: c_int,
}

/// The sieving buffer: the user's memory, or the view's own.
pub(crate) enum Buffer {
    Own(Vec<u8>),
    Users { start: NonNull<u8>, len: usize },
}

// SAFETY: the user's memory is used by whoever holds the view's lock and nobody else (nct.h: "has to
// stay as long as the view does", "Threads may share a view; they take turns").
unsafe impl Send for Buffer {}

/// So many bytes that the kernel provides when they are used: most views need less of a large buffer than
/// they have. `None` where there is no such memory.
fn zeroed(len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    let layout = std::alloc::Layout::array::<u8>(len).ok()?;
    // SAFETY: not of size 0.
    let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })?;
    // SAFETY: just allocated by the allocator and with the layout of a Vec<u8>, all of it zeros.
    Some(unsafe { Vec::from_raw_parts(start.as_ptr(), len, len) })
}

impl Buffer {
    pub(crate) fn new(start: *mut c_void, len: usize) -> Result<Self> {
        match NonNull::new(start.cast::<u8>()) {
            None => {
                // Memory that is not there is an error to be returned, not the end of the process.
                let own = zeroed(len);
                Ok(Buffer::Own(own.ok_or(Error::TooLarge { argument: "ds_bufsize", bytes: len })?))
            }
            // Slices are no longer than that.
            Some(_) if len > isize::MAX as usize => {
                Err(Error::TooLarge { argument: "ds_bufsize", bytes: len })
            }
            Some(start) => Ok(Buffer::Users { start, len }),
        }
    }

    /// Whether any byte of it is one of `len` from `start`.
    pub(crate) fn overlaps(&self, start: *const u8, len: usize) -> bool {
        let (mine, mine_len) = match self {
            Buffer::Own(own) => (own.as_ptr(), own.len()),
            Buffer::Users { start, len } => (start.as_ptr().cast_const(), *len),
        };
        let (mine, theirs) = (mine as usize, start as usize);
        len > 0
            && mine_len > 0
            && mine < theirs.saturating_add(len)
            && theirs < mine.saturating_add(mine_len)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Buffer::Own(own) => own,
            // SAFETY: not NULL and no longer than a slice may be (`new`); the user keeps it as long
            // as the view (nct.h), nobody else uses it meanwhile (see `Send`), and that it does not
            // overlap the other memory of the call is checked with `overlaps`.
            Buffer::Users { start, len } => unsafe {
                std::slice::from_raw_parts_mut(start.as_ptr(), *len)
            },
        }
    }
}

/// A view, and all that reading and writing through it needs.
pub(crate) struct View {
    pub(crate) file_view: FileView,
    pub(crate) engine: Engine,
    pub(crate) buffer: Buffer,
}

impl NctInfo {
    /// Checks that a value of the info is one.
    fn checked(field: &'static str, value: f64, least: f64) -> Result<f64> {
        if value.is_finite() && value >= least {
            Ok(value)
        } else {
            Err(Error::Info { field, value })
        }
    }

    /// What the simple performance model decides from.
    fn file_system(&self) -> Result<FileSystem> {
        Ok(FileSystem {
            bandwidth: Self::checked("bandwidth", f64::from(self.bandwidth), 1.0)?,
            latency_network: Self::checked("latencyNetwork", self.latency_network, 0.0)?,
            latency_fs: Self::checked("latencyFS", self.latency_fs, 0.0)?,
        })
    }

    /// The cost model's parameters, as far as the info knows them better than the default does.
    fn profile(&self) -> Result<Profile> {
        let mut profile = Profile::default();
        let bandwidth = Self::checked("bandwidth", f64::from(self.bandwidth), 0.0)?;
        let network = Self::checked("latencyNetwork", self.latency_network, 0.0)?;
        let fs = Self::checked("latencyFS", self.latency_fs, 0.0)?;
        let nodes = Self::checked("numNodes", f64::from(self.num_nodes), 0.0)?;
        let device = &mut profile.device;
        if bandwidth > 0.0 {
            device.byte_ns = 1e9 / bandwidth;
        }
        if network + fs > 0.0 {
            device.latency_ns = (network + fs) * 1e9;
        }
        if nodes > 0.0 {
            device.servers = nodes as u32;
        }
        if self.stripe_size > 0 {
            device.stripe_bytes = self.stripe_size;
        }
        if self.blocksize > 0 {
            device.unit_bytes = self.blocksize;
        }
        Ok(profile)
    }

    /// The engine for the method that the info asks for; the adaptive one without an info.
    pub(crate) fn engine(info: Option<&NctInfo>) -> Result<Engine> {
        let Some(info) = info else {
            return Ok(Engine::adaptive(Profile::default())?);
        };
        // The values of `enum nct_method`.
        Ok(match info.ds_method {
            0 => Engine::with_function(Naive),
            1 => Engine::with_function(Romio),
            2 => Engine::with_function(SimplePm(info.file_system()?)),
            3 => Engine::with_function(Extent(info.file_system()?)),
            4 => Engine::with_function(ScanFile { stripe_bytes: info.stripe_size }),
            5 => Engine::adaptive(info.profile()?)?,
            method => return Err(Error::Method { method }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of this process in memory: proc_pid_statm(5), in pages.
    fn resident_pages() -> u64 {
        let about = std::fs::read_to_string("/proc/self/statm").expect("a process has one");
        about.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number")
    }

    #[test]
    fn a_large_buffer_takes_no_memory_before_it_is_used() {
        let before = resident_pages();
        let buffer = Buffer::new(std::ptr::null_mut(), 256 << 20);
        assert!(resident_pages().saturating_sub(before) < 1000, "pages of 256 MiB were touched");
        assert!(matches!(buffer, Ok(Buffer::Own(own)) if own.len() == 256 << 20));
        assert!(Buffer::new(std::ptr::null_mut(), 0).is_ok());
        assert!(Buffer::new(std::ptr::null_mut(), usize::MAX).is_err());
        assert!(Buffer::new(std::ptr::null_mut(), isize::MAX as usize).is_err());
    }
}
