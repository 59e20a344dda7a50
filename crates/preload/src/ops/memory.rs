//! mmap(2) of redirected files.
//!
//! A mapping is one of a memfd that is filled when it is made. What a program writes to a shared
//! mapping is found by comparing it with what was filled in, and goes to the file at msync(2),
//! munmap(2), close(2), fsync(2), fork(2), exec(2) and exit(2).

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use client::RemoteFile;
use p9::Errno;
use rustix::fs::MemfdFlags;

use crate::description::Description;
use crate::outcome::is_restricted;
use crate::table;

/// Bytes compared and written back at a time.
const PAGE_LEN: usize = 4096;

/// A shared, writable mapping of a file of a service.
struct Mapping {
    file: Arc<RemoteFile>,
    /// Whose file, to find it at close(2).
    description: &'static Description,
    /// Where it begins in the file.
    offset: u64,
    /// Bytes of the file that it covers; behind them the last page is zeros that belong to nobody.
    covered: usize,
    /// Bytes of address space.
    length: usize,
    memory: OwnedFd,
    /// What the file holds as far as we know.
    known: Vec<u8>,
}

/// Mappings by address. In the context, because a forked child has them too and must not wait for
/// its parent's threads.
#[derive(Default)]
pub(crate) struct Mappings(Mutex<BTreeMap<usize, Mapping>>);

fn errno(error: client::Error) -> Errno {
    error.to_errno()
}

fn system(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

fn lock(mappings: &Mappings) -> std::sync::MutexGuard<'_, BTreeMap<usize, Mapping>> {
    mappings.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to map instead of a redirected file: a memfd with its content, and what is needed to write
/// changes back.
pub(crate) struct Prepared {
    pub(crate) memory: OwnedFd,
    mapping: Option<(Arc<RemoteFile>, &'static Description, Vec<u8>, usize)>,
}

/// Fills a memfd with the part of the file that is to be mapped.
pub(crate) fn prepare(
    fd: c_int,
    length: usize,
    protection: c_int,
    flags: c_int,
    offset: i64,
) -> Result<Prepared, Errno> {
    if length == 0 || offset < 0 || !(offset as usize).is_multiple_of(PAGE_LEN) {
        return Err(Errno::EINVAL);
    }
    let description = table::get(fd).ok_or(Errno::EBADF)?;
    let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    let (file, writable) = description.with(fd, |live| {
        let open_flags = p9::OpenFlags::from_bits_retain(live.state.flags());
        // mmap(2), EACCES: the file must be readable, and writable for a shared writable mapping.
        let file = match live.file() {
            Err(Errno::EISDIR) => return Err(Errno::ENODEV),
            other => other?.clone(),
        };
        if !open_flags.reads() {
            return Err(Errno::EACCES);
        }
        let writes = protection & libc::PROT_WRITE != 0;
        if shared && writes && !open_flags.writes() {
            return Err(Errno::EACCES);
        }
        // Changes go where they were made, also through a descriptor whose writes go to the end.
        let appends = open_flags.contains(p9::OpenFlags::APPEND);
        let file =
            if shared && open_flags.writes() && appends { live.file_to_lock()? } else { file };
        Ok((file, open_flags.writes()))
    })?;
    let size = file.size().map_err(errno)?;
    let covered = size.saturating_sub(offset as u64).min(length as u64) as usize;
    let memory = rustix::fs::memfd_create(c"sluice-map", MemfdFlags::CLOEXEC).map_err(system)?;
    // Pages wholly behind the end of the file are not there: touching them is SIGBUS, as natively.
    let pages = covered.next_multiple_of(PAGE_LEN);
    rustix::fs::ftruncate(&memory, pages as u64).map_err(system)?;
    let keep = shared && writable;
    let mut known = Vec::with_capacity(if keep { covered } else { 0 });
    let mut buffer = vec![0; covered.min(1 << 20)];
    let mut filled = 0;
    while filled < covered {
        let want = (covered - filled).min(buffer.len());
        let count =
            file.read_at(&mut buffer[..want], offset as u64 + filled as u64).map_err(errno)?;
        if count == 0 {
            break;
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let at = (filled + count - rest.len()) as u64;
            rest = &rest[rustix::io::pwrite(&memory, rest, at).map_err(system)?..];
        }
        if keep {
            known.extend_from_slice(&buffer[..count]);
        }
        filled += count;
    }
    known.resize(if keep { covered } else { 0 }, 0);
    let mapping = keep.then_some((file, description, known, covered));
    Ok(Prepared { memory, mapping })
}

/// Records a mapping that the kernel has made.
pub(crate) fn mapped(address: *mut c_void, length: usize, offset: i64, prepared: Prepared) {
    let Some((file, description, known, covered)) = prepared.mapping else { return };
    let mapping = Mapping {
        file,
        description,
        offset: offset as u64,
        covered,
        length,
        memory: prepared.memory,
        known,
    };
    lock(&crate::context::context().mappings).insert(address as usize, mapping);
}

impl Mapping {
    /// Writes pages that differ from what is known to be in the file.
    fn write_back(&mut self) -> Result<(), Errno> {
        let mut page = [0; PAGE_LEN];
        // The file may have been cut since: what is behind its end is nobody's any more.
        let size = self.file.size().map_err(errno)?;
        let covered = size.saturating_sub(self.offset).min(self.covered as u64) as usize;
        let mut changed = false;
        let mut at = 0;
        while at < covered {
            let len = (covered - at).min(PAGE_LEN);
            let count =
                rustix::io::pread(&self.memory, &mut page[..len], at as u64).map_err(system)?;
            let (now, before) = (&page[..count], &self.known[at..at + count]);
            if count == 0 {
                break;
            }
            if now != before {
                // Only bytes that changed: what lies between them may have been written by others.
                let mut start = 0;
                while let Some(skip) = (start..count).find(|i| now[*i] != before[*i]) {
                    let end = (skip..count).find(|i| now[*i] == before[*i]).unwrap_or(count);
                    self.file
                        .write_at(&now[skip..end], self.offset + (at + skip) as u64)
                        .map_err(errno)?;
                    start = end;
                }
                self.known[at..at + count].copy_from_slice(&page[..count]);
                changed = true;
            }
            at += count;
        }
        if changed { self.file.flush().map_err(errno) } else { Ok(()) }
    }
}

/// Runs on the mappings that `which` picks, and reports the first error after having tried all.
fn for_each(which: impl Fn(usize, &Mapping) -> bool) -> Result<(), Errno> {
    if is_restricted() {
        return Err(Errno::EIO);
    }
    let mut mappings = lock(&crate::context::context().mappings);
    let mut outcome = Ok(());
    for (address, mapping) in mappings.iter_mut() {
        if which(*address, mapping) {
            let written = mapping.write_back();
            outcome = outcome.and(written);
        }
    }
    outcome
}

/// Before a descriptor is closed, or what its file holds is relied on.
pub(crate) fn write_back_of(fd: c_int) -> Result<(), Errno> {
    match table::get(fd) {
        Some(description) => for_each(|_, mapping| std::ptr::eq(mapping.description, description)),
        None => Ok(()),
    }
}

/// Before this process ends, forks or becomes another.
pub(crate) fn write_back_all() {
    let _ = for_each(|_, _| true);
}

/// Whether any mapping of ours touches a range.
pub(crate) fn touches(address: usize, length: usize) -> bool {
    let end = address.saturating_add(length);
    lock(&crate::context::context().mappings)
        .range(..end)
        .next_back()
        .is_some_and(|(start, mapping)| start + mapping.length > address)
}

/// msync(2).
pub(crate) fn sync(address: usize, length: usize) -> Result<(), Errno> {
    let end = address.saturating_add(length);
    for_each(|start, mapping| start < end && start + mapping.length > address)
}

/// Before munmap(2), or another mapping in the same place: what was written is saved. A mapping that
/// is only partly undone stays known for its rest.
pub(crate) fn unmapping(address: usize, length: usize) -> Result<(), Errno> {
    let outcome = sync(address, length);
    let end = address.saturating_add(length);
    lock(&crate::context::context().mappings)
        .retain(|start, mapping| *start < address || start + mapping.length > end);
    outcome
}

/// After mremap(2) moved or resized a mapping.
pub(crate) fn remapped(old: usize, new: usize, new_length: usize) {
    let mut mappings = lock(&crate::context::context().mappings);
    if let Some(mut mapping) = mappings.remove(&old) {
        mapping.length = new_length;
        mappings.insert(new, mapping);
    }
}
