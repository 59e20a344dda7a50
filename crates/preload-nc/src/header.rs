//! Private header files: what PnetCDF has open in place of a coupled file.
//!
//! Each rank has its own, so that PnetCDF talks to no other rank for it. Only definitions and attributes are in it.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use exchange::{Fault, Format};

use crate::definition::check;
use crate::failure::Code;
use crate::library;

/// A private file; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Private {
    path: PathBuf,
}

impl Private {
    /// A name for a file that does not exist.
    pub(crate) fn new() -> Private {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluice-nc.{}.{number}", std::process::id());
        Private { path: directory().join(name) }
    }

    /// A copy of a header, in which so many records are noted.
    pub(crate) fn holding(header: &[u8], format: Format, records: u64) -> Result<Private, Fault> {
        let private = Private::new();
        let mut bytes = header.to_vec();
        // Behind the magic number stands the number of records (NetCDF Classic Format Specification; CDF-5 has 64 bits).
        match format {
            Format::Classic => {
                let records = u32::try_from(records).unwrap_or(u32::MAX - 1);
                if let Some(place) = bytes.get_mut(4..8) {
                    place.copy_from_slice(&records.to_be_bytes());
                }
            }
            Format::Data64 => {
                if let Some(place) = bytes.get_mut(4..12) {
                    place.copy_from_slice(&records.to_be_bytes());
                }
            }
        }
        std::fs::write(&private.path, bytes).map_err(|source| Fault::Directory {
            what: "a private header file",
            path: private.path.clone(),
            source,
        })?;
        Ok(private)
    }

    /// For PnetCDF.
    pub(crate) fn name(&self) -> CString {
        CString::new(self.path.as_os_str().as_encoded_bytes()).unwrap_or_default()
    }

    /// The header that PnetCDF has written.
    pub(crate) fn header(&self, ncid: c_int) -> Result<Vec<u8>, Code> {
        let mut size = 0;
        // SAFETY: an open file and a number to fill.
        check(unsafe { library::inq_header_size(ncid, &mut size) })?;
        let mut header = Vec::new();
        let read = File::open(&self.path)
            .and_then(|file| file.take(size.cast_unsigned()).read_to_end(&mut header));
        read.map_err(|source| Fault::Directory {
            what: "a private header file",
            path: self.path.clone(),
            source,
        })?;
        Ok(header)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Nothing can be done about a file that stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Memory, where there is some.
fn directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
