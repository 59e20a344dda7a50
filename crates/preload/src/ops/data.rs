//! Reading, writing and seeking.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::RemoteFile;
use p9::{Errno, OpenFlags};

use crate::description::{Content, Live};
use crate::install::{Technique, technique};
use crate::state::State;
use crate::table;

/// The most that one read or write moves (read(2): "at most 0x7ffff000 bytes").
pub(crate) const COUNT_MAX: usize = 0x7fff_f000;

/// The largest offset that lseek(2) accepts: Linux keeps a page from the end of what 64 bits hold.
const OFFSET_MAX: i64 = i64::MAX - 4096;

fn errno(error: client::Error) -> Errno {
    error.to_errno()
}

fn description(fd: c_int) -> Result<&'static crate::description::Description, Errno> {
    table::get(fd).ok_or(Errno::EBADF)
}

/// read(2).
pub(crate) fn read(fd: c_int, buffer: &mut [u8]) -> Result<usize, Errno> {
    description(fd)?.with(fd, |live| read_here(live, buffer))
}

fn read_here(live: &mut Live, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (file, state) = live.file_to_read()?;
    let mut offset = state.offset().load(Ordering::Relaxed);
    loop {
        verify_area(offset, buffer.len())?;
        let count = file.read_at(buffer, offset).map_err(errno)?;
        // Another process that shares the offset may have read the same bytes: then these are its.
        match state.offset().compare_exchange(
            offset,
            offset + count as u64,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Ok(count),
            Err(now) => offset = now,
        }
    }
}

/// readv(2) and preadv(2); `offset` `None` uses and moves the file offset.
pub(crate) fn read_vector<'a>(
    fd: c_int,
    buffers: impl Iterator<Item = &'a mut [u8]>,
    offset: Option<i64>,
) -> Result<usize, Errno> {
    let mut total = 0;
    for buffer in buffers.filter(|buffer| !buffer.is_empty()) {
        let count = match offset {
            None => read(fd, buffer),
            Some(offset) => read_at(fd, buffer, offset + total as i64),
        };
        match count {
            Ok(count) => {
                total += count;
                if count < buffer.len() {
                    break;
                }
            }
            Err(errno) if total == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    if total == 0 && offset.is_none() {
        // No buffer at all: the descriptor is still checked.
        read(fd, &mut [])?;
    }
    if offset.is_some_and(|offset| offset < 0) {
        return Err(Errno::EINVAL);
    }
    Ok(total)
}

/// Refuses ranges that end beyond every offset, as Linux does before it asks any file system.
///
/// # Source
/// `rw_verify_area` in Linux fs/read_write.c.
fn verify_area(offset: u64, count: usize) -> Result<(), Errno> {
    let end = offset.checked_add(count as u64).and_then(|end| i64::try_from(end).ok());
    end.map(drop).ok_or(Errno::EINVAL)
}

/// The same for writing, which ends where lseek(2) does.
fn verify_write(offset: u64, count: usize) -> Result<(), Errno> {
    verify_area(offset, count)?;
    let end = offset + count as u64;
    if count > 0 && end > OFFSET_MAX as u64 { Err(Errno::EFBIG) } else { Ok(()) }
}

/// pread(2).
pub(crate) fn read_at(fd: c_int, buffer: &mut [u8], offset: i64) -> Result<usize, Errno> {
    let offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let file = description(fd)?.with(fd, |live| Ok(live.file_to_read()?.0.clone()))?;
    verify_area(offset, buffer.len())?;
    file.read_at(buffer, offset).map_err(errno)
}

/// write(2).
pub(crate) fn write(fd: c_int, data: &[u8]) -> Result<usize, Errno> {
    description(fd)?.with(fd, |live| {
        let (file, state) = live.file_to_write()?;
        if data.is_empty() {
            return Ok(0);
        }
        if appends(state) {
            let end = file.append(data).map_err(errno)?;
            state.offset().store(end, Ordering::Relaxed);
        } else {
            verify_write(state.offset().load(Ordering::Relaxed), data.len())?;
            // The range is reserved first, so that processes that share the offset never write
            // over each other.
            let offset = state.offset().fetch_add(data.len() as u64, Ordering::Relaxed);
            if let Err(error) = file.write_at(data, offset) {
                let _ = state.offset().compare_exchange(
                    offset + data.len() as u64,
                    offset,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                return Err(errno(error));
            }
        }
        after_write(file, state)?;
        Ok(data.len())
    })
}

/// writev(2) and pwritev(2).
pub(crate) fn write_vector<'a>(
    fd: c_int,
    buffers: impl Iterator<Item = &'a [u8]>,
    offset: Option<i64>,
) -> Result<usize, Errno> {
    let mut total = 0;
    for data in buffers {
        let count = match offset {
            None => write(fd, data),
            Some(offset) => write_at(fd, data, offset + total as i64),
        };
        match count {
            Ok(count) => total += count,
            Err(errno) if total == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    if total == 0 && offset.is_none() {
        write(fd, &[])?;
    }
    Ok(total)
}

/// pwrite(2). On a descriptor that appends, Linux appends whatever the offset (pwrite(2), BUGS).
pub(crate) fn write_at(fd: c_int, data: &[u8], offset: i64) -> Result<usize, Errno> {
    let offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let (file, state) = description(fd)?.with(fd, |live| {
        let file = live.file_to_write()?.0.clone();
        Ok((file, live.state.clone()))
    })?;
    verify_area(offset, data.len())?;
    if appends(&state) {
        file.append(data).map_err(errno)?;
    } else {
        verify_write(offset, data.len())?;
        file.write_at(data, offset).map_err(errno)?;
    }
    after_write(&file, &state)?;
    Ok(data.len())
}

/// What must not stay behind in this process: data that others who share the open file may look for,
/// and in the fallback all, because exit(3) and exec(3) inside libc are not seen there.
fn after_write(file: &Arc<RemoteFile>, state: &State) -> Result<(), Errno> {
    if technique() == Technique::Interposing {
        return file.flush().map_err(errno);
    }
    if state.is_shared() {
        file.send();
    }
    Ok(())
}

fn appends(state: &State) -> bool {
    OpenFlags::from_bits_retain(state.flags()).contains(OpenFlags::APPEND)
}

/// lseek(2). A file is one run of data as far as `SEEK_DATA` and `SEEK_HOLE` are concerned, which
/// the manual page allows.
pub(crate) fn seek(fd: c_int, offset: i64, whence: c_int) -> Result<i64, Errno> {
    description(fd)?.with(fd, |live| {
        if let Content::Name = live.content()? {
            return Err(Errno::EBADF);
        }
        if let Content::Directory(..) = live.content()? {
            let (_, listing, state) = live.directory()?;
            let base = match whence {
                libc::SEEK_SET => 0,
                libc::SEEK_CUR => state.offset().load(Ordering::Relaxed) as i64,
                _ => return Err(Errno::EINVAL),
            };
            let target = base.checked_add(offset).filter(|to| *to >= 0).ok_or(Errno::EINVAL)?;
            state.offset().store(target as u64, Ordering::Relaxed);
            listing.rewind();
            return Ok(target);
        }
        let file = live.file()?.clone();
        let size = || file.size().map(|size| size as i64).map_err(errno);
        let now = live.state.offset().load(Ordering::Relaxed) as i64;
        let target = match whence {
            libc::SEEK_SET => offset,
            libc::SEEK_CUR => now.checked_add(offset).ok_or(Errno::EINVAL)?,
            libc::SEEK_END => size()?.checked_add(offset).ok_or(Errno::EINVAL)?,
            libc::SEEK_DATA | libc::SEEK_HOLE => {
                let size = size()?;
                if offset < 0 || offset >= size {
                    return Err(Errno::ENXIO);
                }
                if whence == libc::SEEK_DATA { offset } else { size }
            }
            _ => return Err(Errno::EINVAL),
        };
        if !(0..=OFFSET_MAX).contains(&target) {
            return Err(Errno::EINVAL);
        }
        live.state.offset().store(target as u64, Ordering::Relaxed);
        Ok(target)
    })
}

/// fsync(2) and fdatasync(2).
pub(crate) fn sync(fd: c_int, data_only: bool) -> Result<(), Errno> {
    let description = description(fd)?;
    let handle = description.with(fd, |live| match live.content()? {
        Content::File(file) => Ok(Some(file.clone())),
        Content::Directory(..) => Ok(None),
        Content::Name | Content::Unopened => Err(Errno::EBADF),
    })?;
    match handle {
        Some(file) => {
            super::memory::write_back_of(fd)?;
            file.sync(data_only).map_err(errno)
        }
        None => {
            let directory = description.with(fd, |live| Ok(live.directory()?.0.clone()))?;
            directory.sync(data_only).map_err(errno)
        }
    }
}

/// Keeps nothing of a file as long as this process has it open.
pub(crate) fn keep_nothing(fd: c_int) -> Result<(), Errno> {
    description(fd)?.with(fd, |live| {
        if let Content::File(file) = &live.content {
            file.set_concurrent();
        }
        Ok(())
    })
}

/// ftruncate(2).
pub(crate) fn truncate(fd: c_int, length: i64) -> Result<(), Errno> {
    let length = u64::try_from(length).map_err(|_| Errno::EINVAL)?;
    let file = description(fd)?.with(fd, |live| match live.file_to_write() {
        Ok((file, _)) => Ok(file.clone()),
        // ftruncate(2): EINVAL for a descriptor not open for writing.
        Err(_) => Err(Errno::EINVAL),
    })?;
    super::memory::write_back_of(fd)?;
    file.truncate(length).map_err(errno)
}

/// posix_fallocate(3), and fallocate(2) without flags: the file is at least this long afterwards.
/// The service's disk may still fill up later, which its writes then report.
pub(crate) fn allocate(fd: c_int, offset: i64, length: i64) -> Result<(), Errno> {
    if offset < 0 || length <= 0 {
        return Err(Errno::EINVAL);
    }
    let end = offset.checked_add(length).ok_or(Errno::EFBIG)? as u64;
    let file = description(fd)?.with(fd, |live| Ok(live.file_to_write()?.0.clone()))?;
    if file.size().map_err(errno)? < end {
        file.truncate(end).map_err(errno)?;
    }
    Ok(())
}

/// How many bytes copy_file_range(2) is to move: no more than the source has now, and none between
/// ranges of one file that overlap.
pub(crate) fn copy_count(
    from: (c_int, Option<i64>),
    to: (c_int, Option<i64>),
    count: usize,
) -> Result<usize, Errno> {
    let position = |(fd, offset): (c_int, Option<i64>)| match offset {
        Some(offset) => Ok(offset),
        None => seek(fd, 0, libc::SEEK_CUR),
    };
    if table::get(from.0).is_none() {
        return Ok(count);
    }
    let start = position(from)?;
    let size = super::metadata::stat_open(from.0)?.0.size as i64;
    let count = count.min(usize::try_from(size - start).unwrap_or(0));
    let identity = |fd| table::get(fd).and_then(crate::description::Description::identity);
    if identity(to.0).is_some() && identity(from.0) == identity(to.0) {
        let target = position(to)?;
        let apart = start.abs_diff(target);
        if apart < count as u64 {
            return Err(Errno::EINVAL);
        }
    }
    Ok(count)
}

/// Bytes between two descriptors of which at least one is ours (sendfile(2), copy_file_range(2),
/// splice(2)). `read` and `write` move one piece each and move their offsets.
pub(crate) fn transfer(
    count: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
    mut write: impl FnMut(&[u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    const PIECE_LEN: usize = 1 << 20;
    let mut buffer = vec![0; count.min(PIECE_LEN)];
    let mut total = 0;
    while total < count {
        let want = (count - total).min(buffer.len());
        let got = match read(&mut buffer[..want]) {
            Ok(0) => break,
            Ok(got) => got,
            Err(errno) if total == 0 => return Err(errno),
            Err(_) => break,
        };
        let mut put = 0;
        while put < got {
            match write(&buffer[put..got]) {
                Ok(count) => put += count,
                Err(errno) if total + put == 0 => return Err(errno),
                Err(_) => return Ok(total + put),
            }
        }
        total += got;
    }
    Ok(total)
}
