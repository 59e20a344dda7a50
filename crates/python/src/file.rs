//! An open file.

mod strided;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use client::RemoteFile;
use p9::{Errno, OpenFlags};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reach::Far;

use crate::buffer::Buffer;
use crate::error::Result;
use crate::names::{Stat, failed, open_file, stat_of};
use crate::places::{Name, find};
use crate::waiting::{leave, released};
use strided::Sieve;

/// A file of a service, with an offset of its own: what `io.RawIOBase` is made of in `sluice/_io.py`.
#[pyclass(module = "sluice._sluice", frozen)]
pub(crate) struct File {
    open: Mutex<Option<Arc<Open>>>,
    offset: AtomicU64,
    flags: OpenFlags,
    /// The address of the file.
    #[pyo3(get)]
    name: String,
}

/// What there is until it is closed.
struct Open {
    /// Only taken at the end.
    remote: Option<RemoteFile>,
    far: Far,
    flags: OpenFlags,
    sieve: Mutex<Option<Sieve>>,
}

impl Open {
    fn remote(&self) -> Result<&RemoteFile> {
        let closed = || failed(&self.far.uri)(client::Error::Refused(Errno::EBADF));
        self.remote.as_ref().ok_or_else(closed)
    }

    /// Reads until the buffer is full or the file ends.
    fn read(&self, target: &mut [u8], offset: u64) -> Result<usize> {
        let remote = self.remote()?;
        let mut done = 0;
        while done < target.len() {
            match remote.read_at(&mut target[done..], offset.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(read) => done += read,
                // What has been read is told; the error comes again if it stays.
                Err(_) if done > 0 => break,
                Err(error) => return Err(failed(&self.far.uri)(error)),
            }
        }
        Ok(done)
    }

    /// Writes everything, and tells where in the file it ends.
    fn write(&self, data: &[u8], offset: u64) -> Result<u64> {
        let remote = self.remote()?;
        if self.flags.contains(OpenFlags::APPEND) {
            return remote.append(data).map_err(failed(&self.far.uri));
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            match remote.write_at(&data[done..], at).map_err(failed(&self.far.uri))? {
                0 => return Err(failed(&self.far.uri)(client::Error::Refused(Errno::EIO))),
                written => done += written,
            }
        }
        Ok(offset + done as u64)
    }

    /// For the last user of it.
    fn finish(mut self) -> Result<()> {
        match self.remote.take() {
            Some(remote) => remote.finish().map_err(failed(&self.far.uri)),
            None => Ok(()),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(remote) = self.remote.take() {
            leave(remote);
        }
    }
}

/// Bytes of which `fill` writes as many as it says.
fn bytes_of<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut done = 0;
    let bytes = PyBytes::new_with(py, len, |target| {
        done = fill(target)?;
        Ok(())
    })?;
    Ok(if done == len { bytes } else { PyBytes::new(py, &bytes.as_bytes()[..done]) })
}

impl File {
    fn open(&self) -> PyResult<Arc<Open>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| PyValueError::new_err("I/O operation on closed file"))
    }

    /// Does something with the file while other threads run.
    fn on_open<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Open) -> Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.open()?;
        Ok(released(py, || work(&open))??)
    }

    fn on_remote<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&RemoteFile) -> client::Result<T> + Send,
    ) -> PyResult<T> {
        self.on_open(py, |open| work(open.remote()?).map_err(failed(&open.far.uri)))
    }

    fn at(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
    }

    fn go_to(&self, offset: u64) {
        self.offset.store(offset, Ordering::Relaxed);
    }
}

/// An offset or a length as Python gives it.
fn whole(value: i64) -> PyResult<u64> {
    u64::try_from(value).map_err(|_| {
        let text = format!("{value}: an offset or a length is not negative");
        PyOSError::new_err((Errno::EINVAL.raw(), text))
    })
}

#[pymethods]
impl File {
    /// Opens a file with flags as open(2) has them.
    #[new]
    fn new(py: Python<'_>, name: Name, flags: u32) -> PyResult<Self> {
        let far = find(&name.0)?;
        let flags = OpenFlags::from_bits_retain(flags);
        let opened = released(py, || open_file(&far, flags))??;
        let name = far.uri.to_string();
        let remote = Some(RemoteFile::new(opened));
        let open = Arc::new(Open { remote, far, flags, sieve: Mutex::default() });
        Ok(Self { open: Mutex::new(Some(open)), offset: AtomicU64::new(0), flags, name })
    }

    /// Whether close() was called.
    #[getter]
    fn closed(&self) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether it was opened for reading.
    #[getter]
    fn readable(&self) -> bool {
        self.flags.reads()
    }

    /// Whether it was opened for writing.
    #[getter]
    fn writable(&self) -> bool {
        self.flags.writes()
    }

    /// Reads into a buffer from the offset on, which moves.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let at = self.at();
        let read = self.preadinto(py, buffer, at as i64)?;
        self.go_to(at + read as u64);
        Ok(read)
    }

    /// Reads into a buffer from an offset on.
    fn preadinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: i64) -> PyResult<usize> {
        let (offset, mut buffer) = (whole(offset)?, Buffer::writable(buffer)?);
        let target = buffer.bytes_mut();
        self.on_open(py, |open| open.read(target, offset))
    }

    /// Reads so many bytes from the offset on, which moves; fewer at the end of the file.
    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let at = self.at();
        let read = self.pread(py, count, at as i64)?;
        self.go_to(at + read.as_bytes().len() as u64);
        Ok(read)
    }

    /// Reads so many bytes from an offset on.
    fn pread<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        offset: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (offset, open) = (whole(offset)?, self.open()?);
        bytes_of(py, count, |target| Ok(released(py, || open.read(target, offset))??))
    }

    /// Writes what a buffer holds at the offset, which moves.
    fn write(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (at, buffer) = (self.at(), Buffer::readable(buffer)?);
        let data = buffer.bytes();
        let end = self.on_open(py, |open| open.write(data, at))?;
        self.go_to(end);
        Ok(data.len())
    }

    /// Writes what a buffer holds at an offset. A file that is open for appending appends, as by pwrite(2).
    fn pwrite(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, offset: i64) -> PyResult<usize> {
        let (offset, buffer) = (whole(offset)?, Buffer::readable(buffer)?);
        let data = buffer.bytes();
        self.on_open(py, |open| open.write(data, offset))?;
        Ok(data.len())
    }

    /// Moves the offset: from the start, from where it is, or from the end.
    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let base = match whence {
            0 => 0,
            1 => self.at(),
            2 => self.size(py)?,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "invalid whence ({whence}, should be 0, 1 or 2)"
                )));
            }
        };
        self.open()?;
        let to = whole(i64::try_from(base).unwrap_or(i64::MAX).saturating_add(offset))?;
        self.go_to(to);
        Ok(to)
    }

    /// The offset.
    fn tell(&self) -> PyResult<u64> {
        self.open()?;
        Ok(self.at())
    }

    /// The size in bytes, what was written included.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.on_remote(py, RemoteFile::size)
    }

    /// Cuts or extends with zeros.
    fn truncate(&self, py: Python<'_>, size: i64) -> PyResult<u64> {
        let size = whole(size)?;
        self.on_remote(py, |file| file.truncate(size))?;
        Ok(size)
    }

    /// Waits until the service has everything that was written.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.on_remote(py, RemoteFile::flush)
    }

    /// The same, and until it is durable there.
    #[pyo3(signature = (data_only=false))]
    fn sync(&self, py: Python<'_>, data_only: bool) -> PyResult<()> {
        self.on_remote(py, |file| file.sync(data_only))
    }

    /// What is known of the file.
    fn stat(&self, py: Python<'_>) -> PyResult<Stat> {
        self.on_remote(py, |file| Ok(stat_of(&file.attributes()?)))
    }

    /// Writes back and lets go of the file. The second time it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(open) = open else { return Ok(()) };
        Ok(released(py, || match Arc::try_unwrap(open) {
            Ok(open) => open.finish(),
            // Another thread is in a call; what was written here is safe all the same.
            Err(open) => open.remote()?.close().map_err(failed(&open.far.uri)),
        })??)
    }

    /// Reads ranges, given as (offset, length) in rising order without overlaps, one after the other into a buffer.
    /// What is read together is planned. Returns how many bytes came: fewer only where the file ends.
    fn read_ranges(
        &self,
        py: Python<'_>,
        ranges: Vec<(u64, u64)>,
        buffer: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let view = strided::of_ranges(&ranges)?;
        let mut buffer = Buffer::writable(buffer)?;
        let target = buffer.bytes_mut();
        self.on_open(py, |open| open.sieve_read(&view, target))
    }

    /// Reads a strided pattern into a buffer: `counts` and `strides` in bytes, the outermost first, of elements of
    /// `item` bytes from `offset` on. Returns how many bytes came.
    fn read_strided(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: u64,
        counts: Vec<u64>,
        strides: Vec<u64>,
        item: u64,
    ) -> PyResult<u64> {
        let view = strided::of_strides(offset, &counts, &strides, item)?;
        let mut buffer = Buffer::writable(buffer)?;
        let target = buffer.bytes_mut();
        self.on_open(py, |open| open.sieve_read(&view, target))
    }

    /// Writes a strided pattern from a buffer; what lies between keeps its bytes.
    fn write_strided(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offset: u64,
        counts: Vec<u64>,
        strides: Vec<u64>,
        item: u64,
    ) -> PyResult<()> {
        let view = strided::of_strides(offset, &counts, &strides, item)?;
        let buffer = Buffer::readable(buffer)?;
        let data = buffer.bytes();
        self.on_open(py, |open| open.sieve_write(&view, data))
    }
}
