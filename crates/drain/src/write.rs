//! Writing what plans hold: several files and several parts of a file at once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hostlog::{Attributes, Log, Position};
use store::OpenNode;

use crate::error::{Error, Result, shown};
use crate::pace::{Bucket, Stop};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::target::{Target, at, attributes, resize};

/// The most bytes that one write has: at least so many where neighbours suffice.
pub(crate) const WRITE_BYTES: u64 = 4 << 20;

/// After so many bytes a file is synced while others of its parts are still written: the target's disk takes them meanwhile.
const SYNC_AHEAD_BYTES: u64 = 32 << 20;

/// A file of so many bytes keeps a connection busy for a while: next to that, to open it once more takes nothing.
const BULK_BYTES: u64 = 1 << 20;

/// What writing needs.
pub(crate) struct Writer<'a> {
    pub(crate) log: &'a Log,
    pub(crate) target: &'a Target,
    pub(crate) bucket: &'a Bucket,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a Progress,
    pub(crate) threads: usize,
}

/// One file to be written.
pub(crate) struct Work<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) plan: &'a mut Plan,
}

/// A file while it is written.
struct Opened {
    open: Arc<dyn OpenNode>,
    /// Bytes that were written since it was synced last.
    unsynced: AtomicU64,
    /// Bytes that are still to be written.
    left: AtomicU64,
}

/// Bytes that follow each other in a file, from several places of the log.
struct Part {
    file: usize,
    offset: u64,
    len: u64,
    pieces: Vec<(Position, u64)>,
}

impl Writer<'_> {
    /// Carries out the plans, and makes the files durable.
    pub(crate) fn write(&self, mut works: Vec<Work<'_>>) -> Result<()> {
        // So many at a time, as each of them is open.
        for works in works.chunks_mut(128) {
            self.write_some(works)?;
        }
        Ok(())
    }

    fn write_some(&self, works: &mut [Work<'_>]) -> Result<()> {
        let opened = in_parallel(self.stop, self.threads, &*works, |work| {
            let (unsynced, left) = (AtomicU64::new(0), AtomicU64::new(work.plan.bytes.bytes()));
            self.open(work).map(|open| Opened { open, unsynced, left })
        })?;
        let mut parts = Vec::new();
        for (file, work) in works.iter().enumerate() {
            parts.extend(parts_of(file, work.plan));
        }
        // Memory that is used for the first time costs more than copying to it.
        in_parallel_with(self.stop, self.threads, &parts, Vec::new, |buffer, part| {
            self.copy(buffer, part, &opened[part.file], works[part.file].path)
        })?;
        let files: Vec<(&Work<'_>, Opened)> = works.iter().zip(opened).collect();
        in_parallel(self.stop, self.threads, &files, |(work, Opened { open, .. })| {
            if work.plan.set != Attributes::default() {
                let set = attributes(&work.plan.set);
                open.set_attributes(&set).map_err(at("set attributes of", work.path))?;
            }
            open.sync(false).map_err(at("sync", work.path))
        })?;
        self.progress.update(|now| now.files += works.len() as u64);
        works.iter_mut().for_each(|work| work.plan.done());
        Ok(())
    }

    /// Opens a file and gives it its size.
    fn open(&self, work: &Work<'_>) -> Result<Arc<dyn OpenNode>> {
        let bulk = match work.plan.bytes.bytes() >= BULK_BYTES {
            true => self.target.open_bulk(work.path)?,
            false => None,
        };
        let open = match (bulk, &work.plan.open) {
            (Some(open), _) => open,
            (None, Some(open)) => Arc::clone(open),
            (None, None) => self.target.open(work.path)?,
        };
        if let Some((smallest, last)) = work.plan.resize {
            resize(&*open, smallest).map_err(at("truncate", work.path))?;
            if last > smallest {
                resize(&*open, last).map_err(at("extend", work.path))?;
            }
        }
        Ok(open)
    }

    fn copy(&self, buffer: &mut Vec<u8>, part: &Part, opened: &Opened, path: &[u8]) -> Result<()> {
        let open = &*opened.open;
        self.bucket.wait(part.len, self.stop)?;
        let len = usize::try_from(part.len).unwrap_or(usize::MAX);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let bytes = &mut buffer[..len];
        let mut rest = &mut *bytes;
        for (from, len) in &part.pieces {
            let (piece, behind) = rest.split_at_mut(usize::try_from(*len).unwrap_or(usize::MAX));
            self.log.read(*from, piece)?;
            rest = behind;
        }
        let mut done = 0;
        while done < bytes.len() {
            let offset = part.offset + done as u64;
            let written = open.write_at(&bytes[done..], offset).map_err(at("write", path))?;
            if written == 0 {
                let len = (bytes.len() - done) as u64;
                return Err(Error::NothingWritten { path: shown(path), offset, len });
            }
            done += written;
            self.progress.written(written as u64);
        }
        let left = opened.left.fetch_sub(part.len, Ordering::Relaxed) - part.len;
        let unsynced = opened.unsynced.fetch_add(part.len, Ordering::Relaxed) + part.len;
        if unsynced >= SYNC_AHEAD_BYTES && left >= SYNC_AHEAD_BYTES {
            opened.unsynced.store(0, Ordering::Relaxed);
            open.sync(true).map_err(at("sync", path))?;
        }
        Ok(())
    }
}

/// Does the same with all items, some at a time. The first error ends it.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    stop: &Stop,
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    in_parallel_with(stop, threads, items, || (), |(), item| work(item))
}

/// As [`in_parallel`], with something that each thread has for itself.
fn in_parallel_with<T: Sync, R: Send, O>(
    stop: &Stop,
    threads: usize,
    items: &[T],
    own: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let lock = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    let one_by_one = || {
        let (mut done, mut own) = (Vec::new(), own());
        while lock().is_none() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            match stop.check().and_then(|()| work(&mut own, item)) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    lock().get_or_insert(error);
                }
            }
        }
        done
    };
    let threads = threads.min(items.len());
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one_by_one)).collect();
        let mut done = one_by_one();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    if let Some(error) = lock().take() {
        return Err(error);
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// The writes of a plan: neighbours together, holes between them untouched.
fn parts_of(file: usize, plan: &Plan) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (range, source) in plan.bytes.iter() {
        let mut done = 0;
        while done < range.len() {
            let (offset, at) = (range.start() + done, source.at.advanced(done));
            let room = match parts.last() {
                Some(part) if part.offset + part.len == offset => WRITE_BYTES - part.len,
                _ => 0,
            };
            if room == 0 {
                parts.push(Part { file, offset, len: 0, pieces: Vec::new() });
            }
            let len = (range.len() - done).min(if room == 0 { WRITE_BYTES } else { room });
            if let Some(part) = parts.last_mut() {
                part.pieces.push((at, len));
                part.len += len;
            }
            done += len;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use extent::ByteRange;
    use hostlog::Sequence;

    use super::*;

    #[test]
    fn neighbours_are_written_together_and_holes_are_not() {
        let mut plan = Plan::default();
        let at = |offset| Position { segment: 1, offset };
        plan.write(Sequence(1), ByteRange::at(0, 10), at(0));
        plan.write(Sequence(2), ByteRange::at(10, 2 * WRITE_BYTES), at(100));
        plan.write(Sequence(3), ByteRange::at(100 << 20, 5), at(50));
        let parts: Vec<_> = parts_of(0, &plan)
            .into_iter()
            .map(|part| (part.offset, part.len, part.pieces.len()))
            .collect();
        assert_eq!(
            parts,
            [
                (0, WRITE_BYTES, 2),
                (WRITE_BYTES, WRITE_BYTES, 1),
                (2 * WRITE_BYTES, 10, 1),
                (100 << 20, 5, 1)
            ]
        );
    }
}
