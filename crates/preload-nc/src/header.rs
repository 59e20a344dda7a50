//! Private header files: what PnetCDF has open in place of a coupled file.
//!
//! Each rank has its own, so that PnetCDF talks to no other rank for it. Only definitions and attributes are in it. It is in memory
//! and in no directory, so that nothing stays of a program that is killed.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use exchange::{Fault, Format};

use crate::definition::check;
use crate::failure::Code;
use crate::library;

/// A private file, which is gone when this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Private {
    path: PathBuf,
    file: File,
}

impl Private {
    /// An empty file in memory, which is in no directory.
    pub(crate) fn new() -> Result<Private, Fault> {
        // SAFETY: memfd_create(2) with a name that only /proc shows.
        let number = unsafe { libc::memfd_create(c"sluice-header".as_ptr(), libc::MFD_CLOEXEC) };
        if number < 0 {
            return Err(unusable(Path::new("memfd"), std::io::Error::last_os_error()));
        }
        // SAFETY: a descriptor of our own.
        let file = unsafe { File::from_raw_fd(number) };
        Ok(Private { path: format!("/proc/self/fd/{number}").into(), file })
    }

    /// A copy of a header, in which so many records are noted.
    pub(crate) fn holding(header: &[u8], format: Format, records: u64) -> Result<Private, Fault> {
        let private = Private::new()?;
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
        let written = private.file.write_all_at(&bytes, 0);
        written.map_err(|source| unusable(&private.path, source))?;
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
        let mut header = vec![0; usize::try_from(size).unwrap_or(0)];
        let read = self.file.read_exact_at(&mut header, 0);
        read.map_err(|source| unusable(&self.path, source))?;
        Ok(header)
    }
}

fn unusable(path: &Path, source: std::io::Error) -> Fault {
    Fault::Directory { what: "a private header file", path: path.to_owned(), source }
}
