//! Bringing plans to a target whose files are only replaced as wholes: each file's next version is made of what the log
//! has and of what the version before has, in parts of which several are under way at once.
//!
//! A version must be one consistency point, so a plan must hold all that counts of its file: the drain sees to that, by
//! looking at what counts at one moment and not stopping before it has seen all of that.
//!
//! What is begun at the target and would stay there if this process died is [written down](crate::journal) before the first part
//! is sent, and removed when the drain begins anew.

use std::sync::Arc;

use extent::ByteRange;
use hostlog::{Log, Position};
use store::{Next, Replacement, Version};

use crate::error::Result;
use crate::journal::Journal;
use crate::pace::{Bucket, Stop};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::target::at;
use crate::write::{Work, in_parallel};

/// How many files are replaced together.
const FILES_TOGETHER: usize = 32;

/// What replacing needs.
pub(crate) struct Wholes<'a> {
    pub(crate) log: &'a Log,
    pub(crate) target: &'a dyn store::Wholes,
    pub(crate) journal: &'a Journal,
    pub(crate) bucket: &'a Bucket,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a Progress,
    pub(crate) threads: usize,
}

/// What the next version of a file is made of.
struct Shape {
    former: Option<Version>,
    is_new: bool,
    size: u64,
    /// So many bytes of the former version are where they were, unless the log has newer ones.
    kept: u64,
    part_bytes: u64,
}

/// One part of one file.
struct Part {
    file: usize,
    index: usize,
    range: ByteRange,
}

/// What a part is made of.
struct Pieces {
    /// The former version's, from the part's beginning on.
    former: u64,
    /// Offsets within the part, and where the bytes are in the log.
    log: Vec<(usize, Position, u64)>,
}

impl Shape {
    /// What a plan makes of the version that is there, which a new file does not take over.
    fn of(plan: &Plan, former: Option<Version>) -> Self {
        let former = former.filter(|_| !plan.is_new);
        let before = former.as_ref().map_or(0, |former| former.size);
        let (kept, size) = match plan.resize {
            Some((smallest, last)) => (before.min(smallest), last),
            None => (before, before),
        };
        let end = plan.bytes.iter().map(|(range, _)| range.end()).max().unwrap_or(0);
        let size = size.max(end);
        Self { former, is_new: plan.is_new, size, kept: kept.min(size), part_bytes: u64::MAX }
    }

    fn parts(&self, file: usize) -> Vec<Part> {
        let count = self.size.div_ceil(self.part_bytes).max(1);
        let part = |index: u64| {
            let start = index * self.part_bytes;
            let end = start.saturating_add(self.part_bytes).min(self.size);
            Part { file, index: index as usize, range: ByteRange::new(start, end) }
        };
        (0..count).map(part).collect()
    }

    /// `None`: all of the part is as in the former version.
    fn pieces(&self, plan: &Plan, range: ByteRange) -> Option<Pieces> {
        let mut log = Vec::new();
        let mut covered = 0;
        for piece in plan.bytes.overlay(range) {
            if let Some(source) = piece.value {
                let to = (piece.range.start() - range.start()) as usize;
                covered += piece.range.len();
                log.push((to, source.at, piece.range.len()));
            }
        }
        let kept = self.kept.clamp(range.start(), range.end()) - range.start();
        if log.is_empty() && kept == range.len() && self.former.is_some() {
            return None;
        }
        let former = if covered == range.len() { 0 } else { kept };
        Some(Pieces { former, log })
    }
}

impl Wholes<'_> {
    /// Removes what the last end has left behind at the target.
    pub(crate) fn clean_up(&self) -> Result<()> {
        let left = self.journal.begun()?;
        for (path, id) in &left {
            match self.target.abandon(path, id) {
                // Who may write need not have the right to do that. It has been said.
                Err(error) if error.to_errno() == p9::Errno::EACCES => {}
                done => done.map_err(at("remove an unfinished part of", path))?,
            }
        }
        if left.is_empty() { Ok(()) } else { self.journal.begin(&[]) }
    }

    /// Carries out the plans. What was done of them is, also when not all could be.
    pub(crate) fn write(&self, mut works: Vec<Work<'_>>) -> Result<()> {
        // What is not content an object does not have.
        works.retain_mut(|work| {
            let is_due = work.plan.has_content();
            if !is_due {
                work.plan.done();
            }
            is_due
        });
        for works in works.chunks_mut(FILES_TOGETHER) {
            self.write_some(works)?;
        }
        Ok(())
    }

    fn write_some(&self, works: &mut [Work<'_>]) -> Result<()> {
        let shapes = in_parallel(self.stop, self.threads, &*works, |work| self.shape(work))?;
        let both: Vec<_> = works.iter().zip(&shapes).collect();
        let begun = in_parallel(self.stop, self.threads, &both, |(work, shape)| {
            let next =
                Next { former: shape.former.clone(), is_new: shape.is_new, size: shape.size };
            self.target.replace(work.path, &next).map_err(at("write", work.path))
        })?;
        let done = self.send(works, &shapes, &begun);
        begun.iter().for_each(|begun| begun.abandon());
        let finished = done?;
        if begun.iter().any(|begun| begun.id().is_some()) {
            self.journal.begin(&[])?;
        }
        let mut failed = None;
        for (work, finished) in works.iter_mut().zip(finished) {
            match finished {
                Ok(_) => {
                    work.plan.done();
                    self.progress.update(|now| now.files += 1);
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn shape(&self, work: &Work<'_>) -> Result<Shape> {
        let former = self.target.version(work.path).map_err(at("find", work.path))?;
        if former.is_none() && !work.plan.is_new {
            let errno = p9::Errno::ENOENT;
            return Err(at("write", work.path)(store::Error::System { operation: "find", errno }));
        }
        let shape = Shape::of(work.plan, former);
        Ok(Shape { part_bytes: self.target.part_bytes(shape.size), ..shape })
    }

    /// Sends what is new of some files, and finishes them one by one.
    fn send(
        &self,
        works: &[Work<'_>],
        shapes: &[Shape],
        begun: &[Arc<dyn Replacement>],
    ) -> Result<Vec<Result<Version>>> {
        let ids: Vec<(&[u8], &str)> = works
            .iter()
            .zip(begun)
            .filter_map(|(work, begun)| Some((work.path, begun.id()?)))
            .collect();
        if !ids.is_empty() {
            self.journal.begin(&ids)?;
        }
        let parts: Vec<Part> =
            shapes.iter().enumerate().flat_map(|(file, shape)| shape.parts(file)).collect();
        in_parallel(self.stop, self.threads, &parts, |part| {
            let (work, shape) = (&works[part.file], &shapes[part.file]);
            self.send_part(work, shape, part, &*begun[part.file])
        })?;
        let files: Vec<_> = works.iter().zip(begun).collect();
        in_parallel(self.stop, self.threads, &files, |(work, begun)| {
            Ok(begun.finish().map_err(at("write", work.path)))
        })
    }

    fn send_part(
        &self,
        work: &Work<'_>,
        shape: &Shape,
        part: &Part,
        to: &dyn Replacement,
    ) -> Result<()> {
        let pieces = shape.pieces(work.plan, part.range);
        if pieces.is_none() && to.take_over(part.index).map_err(at("write", work.path))? {
            return Ok(());
        }
        let len = part.range.len();
        let Pieces { former, log } = pieces.unwrap_or(Pieces { former: len, log: Vec::new() });
        self.bucket.wait(len, self.stop)?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        if former > 0 {
            let read = to.read_former(&mut bytes[..former as usize], part.range.start());
            read.map_err(at("read", work.path))?;
        }
        for (to, from, len) in log {
            self.log.read(from, &mut bytes[to..to + len as usize])?;
        }
        to.send(part.index, bytes).map_err(at("write", work.path))?;
        self.progress.written(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hostlog::Sequence;

    use super::*;

    fn plan(writes: &[(u64, u64)]) -> Plan {
        let mut plan = Plan::default();
        for (n, (offset, len)) in writes.iter().enumerate() {
            let at = Position { segment: 1, offset: 100 * n as u32 };
            plan.write(Sequence(n as u64 + 1), ByteRange::at(*offset, *len), at);
        }
        plan
    }

    fn of_size(size: u64) -> Option<Version> {
        Some(Version { tag: "v".into(), size })
    }

    #[test]
    fn parts_that_the_log_does_not_touch_are_the_former_version_s() {
        let plan = plan(&[(12, 2), (39, 5)]);
        let shape = Shape { part_bytes: 10, ..Shape::of(&plan, of_size(40)) };
        assert_eq!((shape.size, shape.kept), (44, 40));
        let parts = shape.parts(0);
        let made: Vec<_> = parts
            .iter()
            .map(|part| {
                let pieces = shape.pieces(&plan, part.range);
                pieces.map(|pieces| (part.range.len(), pieces.former, pieces.log.len()))
            })
            .collect();
        // The last but one has one byte of the log, the last none of the former version: what lies there is all new.
        assert_eq!(made, [None, Some((10, 10, 1)), None, Some((10, 10, 1)), Some((4, 0, 1))]);
    }

    #[test]
    fn what_was_cut_off_comes_back_as_zeros() {
        let mut plan = plan(&[(0, 4)]);
        assert!(plan.resize(Sequence(5), 10).is_ok());
        assert!(plan.resize(Sequence(6), 30).is_ok());
        let shape = Shape { part_bytes: 20, ..Shape::of(&plan, of_size(50)) };
        assert_eq!((shape.size, shape.kept), (30, 10));
        let pieces = shape.pieces(&plan, ByteRange::new(0, 20)).unwrap();
        assert_eq!((pieces.former, pieces.log.len()), (10, 1));
        let pieces = shape.pieces(&plan, ByteRange::new(20, 30)).unwrap();
        assert_eq!((pieces.former, pieces.log.len()), (0, 0));
    }

    #[test]
    fn a_new_file_takes_nothing_over_and_an_empty_one_has_one_part() {
        let mut plan = Plan::default();
        plan.is_new = true;
        let shape = Shape { part_bytes: 10, ..Shape::of(&plan, of_size(50)) };
        assert_eq!((shape.size, shape.parts(0).len(), shape.former.is_none()), (0, 1, true));
        plan.write(Sequence(1), ByteRange::at(5, 5), Position { segment: 1, offset: 0 });
        let shape = Shape { part_bytes: 10, ..Shape::of(&plan, of_size(50)) };
        let pieces = shape.pieces(&plan, shape.parts(0)[0].range).unwrap();
        let at = Position { segment: 1, offset: 0 };
        assert_eq!((shape.size, pieces.former, pieces.log), (10, 0, vec![(5, at, 5)]));
    }
}
