//! Non-contiguous accesses to a file, planned by the sieve.

use std::sync::PoisonError;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sieve::{FileView, Level};
use transfer::Engine;
use transfer_remote::ServedFile;

use super::Open;
use crate::error::{Error, Result};
use crate::names::failed;
use crate::places::{profile, set_profile};

/// Room for what is read together and for windows of writes, in bytes.
const BUFFER_BYTES: usize = 4 << 20;

/// The file once more, past what the client keeps of it, and what was learned of the way there.
pub(super) struct Sieve {
    file: ServedFile,
    engine: Engine,
    buffer: Vec<u8>,
}

/// The view of ranges that rise and do not overlap.
pub(super) fn of_ranges(ranges: &[(u64, u64)]) -> Result<FileView> {
    let first = ranges.first().map_or(0, |range| range.0);
    let last = ranges.last().map_or(0, |range| range.0.saturating_add(range.1));
    Ok(FileView::from_blocks(0, last.saturating_sub(first), ranges.iter().copied())?)
}

/// The view of a regular pattern.
pub(super) fn of_strides(
    offset: u64,
    counts: &[u64],
    strides: &[u64],
    item: u64,
) -> PyResult<FileView> {
    if counts.len() != strides.len() {
        return Err(PyValueError::new_err("as many counts as strides are needed"));
    }
    let (mut block, mut levels) = (item, Vec::new());
    let mut span = item;
    for (&count, &stride) in counts.iter().zip(strides).rev() {
        if count == 1 {
            continue;
        }
        let hole = stride.checked_sub(span).ok_or_else(|| {
            PyValueError::new_err(format!(
                "elements {stride} bytes apart overlap: each spans {span}"
            ))
        })?;
        if hole == 0 && levels.is_empty() {
            block = block.saturating_mul(count);
        } else {
            levels.push(Level { count, hole });
        }
        span = span.saturating_add(stride.saturating_mul(count.saturating_sub(1)));
    }
    FileView::nested(offset, block, &levels, 0).map_err(|error| Error::from(error).into())
}

impl Open {
    fn with_sieve<T>(&self, work: impl FnOnce(&mut Sieve) -> transfer::Result<T>) -> Result<T> {
        let failed = failed(&self.far.uri);
        // The sieve asks the service: what is gathered here must be there.
        self.remote()?.flush().map_err(&failed)?;
        let mut kept = self.sieve.lock().unwrap_or_else(PoisonError::into_inner);
        let sieve = match &mut *kept {
            Some(sieve) => sieve,
            none => none.insert(self.sieve()?),
        };
        work(sieve).map_err(|source| Error::Sieve { name: self.far.uri.to_string(), source })
    }

    fn sieve(&self) -> Result<Sieve> {
        let failed = failed(&self.far.uri);
        let access =
            p9::OpenFlags::from_bits_retain(self.flags.bits() & p9::OpenFlags::ACCESS_MASK);
        let path = self.far.uri.path.as_bytes();
        let file = ServedFile::open(&self.far.session, path, access, 0).map_err(&failed)?;
        let known = profile(&self.far.uri.endpoint);
        let profile = match known {
            Some(profile) => profile,
            None => {
                let measured = file.profile().map_err(&failed)?;
                set_profile(&self.far.uri.endpoint, measured);
                measured
            }
        };
        let engine = Engine::adaptive(profile)
            .map_err(|source| Error::Sieve { name: self.far.uri.to_string(), source })?;
        Ok(Sieve { file, engine, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Reads through a view until the buffer is full or the file ends.
    pub(super) fn sieve_read(&self, view: &FileView, target: &mut [u8]) -> Result<u64> {
        if target.is_empty() {
            return Ok(0);
        }
        self.with_sieve(|sieve| {
            let mut done = 0;
            while done < target.len() {
                let rest = &mut target[done..];
                let read =
                    sieve.engine.read(&sieve.file, view, &mut sieve.buffer, done as u64, rest)?;
                if read == 0 {
                    break;
                }
                done += usize::try_from(read).unwrap_or(usize::MAX);
            }
            Ok(done as u64)
        })
    }

    /// Writes all data through a view.
    pub(super) fn sieve_write(&self, view: &FileView, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.with_sieve(|sieve| {
            let mut done = 0;
            while done < data.len() {
                let rest = &data[done..];
                let written =
                    sieve.engine.write(&sieve.file, view, &mut sieve.buffer, done as u64, rest)?;
                done += usize::try_from(written).unwrap_or(usize::MAX);
            }
            Ok(())
        })?;
        self.remote()?.invalidate();
        Ok(())
    }
}
