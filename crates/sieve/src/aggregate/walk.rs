//! Asking an aggregate function about every tuple of an access, and making groups of its answers.

use std::ops::Range;

use super::{Aggregate, Decision, Nonsense, Step};
use crate::error::{Error, Result};
use crate::group::{Access, Group, Method};
use crate::view::{FileView, OFFSET_MAX, Tuple};

/// The groups into which an aggregate function cuts an access. Ends after the first error.
pub struct Groups<'a> {
    function: &'a mut dyn Aggregate,
    tuples: Box<dyn Iterator<Item = (u64, Tuple)> + 'a>,
    access: Access,
    buffer_bytes: u64,
    /// The tuple at hand: number, shape, bytes of it that are done, and where those ended.
    number: u64,
    tuple: Tuple,
    within: u64,
    file: u64,
    /// What is still wanted, as a range of the view's data.
    wanted: Range<u64>,
    /// Bytes of the hole before the next access that it shall take.
    before: u64,
    failed: bool,
}

/// The access that is being put together.
struct Open {
    data_start: u64,
    file_start: u64,
    /// How many pieces of data that do not touch.
    pieces: u32,
    /// Where the last piece ended.
    end: u64,
}

impl<'a> Groups<'a> {
    /// Groups for `len` bytes from `offset` of the data of `view`, through a buffer of
    /// `buffer_bytes`.
    ///
    /// # Errors
    /// [`Error::NoBuffer`] when the function gathers and the buffer has no room; [`Error::TooFar`]
    /// and [`Error::NoData`] as [`FileView::runs`].
    pub fn new(
        view: &'a FileView,
        access: Access,
        offset: u64,
        len: u64,
        buffer_bytes: u64,
        function: &'a mut dyn Aggregate,
    ) -> Result<Self> {
        if function.gathers() && buffer_bytes == 0 {
            return Err(Error::NoBuffer { function: function.name().to_owned() });
        }
        view.span(offset, len)?;
        let mut groups = Self {
            function,
            tuples: Box::new(std::iter::empty()),
            access,
            buffer_bytes,
            number: 0,
            tuple: Tuple::default(),
            within: 0,
            file: 0,
            wanted: offset..offset + len,
            before: 0,
            failed: false,
        };
        if len > 0 {
            let start = view.position(offset)?;
            groups.tuples = Box::new(view.tuples_from(offset)?);
            (groups.within, groups.file) = (start.within, start.file);
            groups.next_tuple();
        }
        Ok(groups)
    }

    fn next_tuple(&mut self) {
        if let Some((number, tuple)) = self.tuples.next() {
            (self.number, self.tuple) = (number, tuple);
        }
    }

    /// Steps over the hole to the next tuple. Beyond the last wanted byte the offset may wrap.
    fn skip_hole(&mut self) {
        self.file = self.file.wrapping_add(self.tuple.hole);
        self.within = 0;
        self.next_tuple();
    }

    /// What the tuple at hand has to offer to the open access.
    fn step(&self, open: &Open) -> Step {
        let left = self.wanted.end - self.wanted.start;
        let rest = self.tuple.size - self.within;
        let so_far = self.file - open.file_start;
        let room = if self.function.gathers() {
            self.buffer_bytes.saturating_sub(so_far)
        } else {
            u64::MAX
        };
        let bytes_max = rest.min(left).min(room);
        Step {
            access: self.access,
            tuple: self.number,
            file: self.file,
            data: self.wanted.start,
            data_gathered: self.wanted.start - open.data_start,
            span: so_far + bytes_max,
            bytes_max,
            completes_tuple: bytes_max == rest,
            hole: self.tuple.hole,
            data_left: left,
            buffer_bytes: self.buffer_bytes,
        }
    }

    fn nonsense<T>(&self, nonsense: Nonsense) -> Result<T> {
        let function = self.function.name().to_owned();
        Err(Error::Aggregate { function, tuple: self.number, nonsense })
    }

    /// Checks the numbers of an answer with which an access ends.
    fn check(&self, step: &Step, answer: &Decision) -> Result<()> {
        let Decision { bytes, hole_after: after, hole_before_next: before_next, .. } = *answer;
        if bytes > step.bytes_max {
            return self.nonsense(Nonsense::TooManyBytes { bytes, max: step.bytes_max });
        }
        let minded = bytes == step.bytes_max && step.completes_tuple;
        if minded {
            let sum = after.checked_add(before_next);
            if sum.is_none_or(|sum| sum > step.hole) {
                let hole = step.hole;
                return self.nonsense(Nonsense::TooMuchHole { after, before_next, hole });
            }
            if after > step.room() {
                return self.nonsense(Nonsense::NoRoom { bytes: after, room: step.room() });
            }
            // One byte of data must fit behind the hole that the next access begins with.
            if before_next >= self.buffer_bytes.max(1) {
                let room = self.buffer_bytes.saturating_sub(1);
                return self.nonsense(Nonsense::NoRoom { bytes: before_next, room });
            }
        }
        Ok(())
    }

    fn close(&self, open: &Open, file_end: u64) -> Group {
        // A group of one piece needs no buffer, no reading before writing, and no lock: the bytes
        // around it, which the function may have asked for, are of use to nobody then.
        if open.pieces == 1 {
            let data = open.data_start..self.wanted.start;
            let file = open.end - (data.end - data.start)..open.end;
            return Group { data, file, method: Method::Each };
        }
        Group {
            data: open.data_start..self.wanted.start,
            file: open.file_start..file_end.min(OFFSET_MAX),
            method: Method::Window,
        }
    }

    fn group(&mut self) -> Result<Group> {
        // Empty tuples in front of an access are no part of it.
        while self.within == self.tuple.size {
            self.before = self.before.min(self.tuple.hole);
            self.skip_hole();
        }
        let mut open = Open {
            data_start: self.wanted.start,
            file_start: self.file - std::mem::take(&mut self.before).min(self.file),
            pieces: 0,
            end: u64::MAX,
        };
        loop {
            let step = self.step(&open);
            let answer = self.function.decide(&step);
            // The whole tuple and its hole, if the function says so and the buffer can.
            let joins = answer.join
                && step.completes_tuple
                && step.data_left > step.bytes_max
                && (!self.function.gathers() || step.hole < step.room());
            if !joins {
                // A function that joins could not know that the buffer ends here: it is asked
                // for the numbers all the same, but an empty offer is not its fault.
                if !(answer.join && step.bytes_max == 0) {
                    self.check(&step, &answer)?;
                }
            }
            let bytes = if joins { step.bytes_max } else { answer.bytes.min(step.bytes_max) };
            if bytes > 0 {
                open.pieces += u32::from(open.end != self.file);
                open.pieces = open.pieces.min(2);
                self.file += bytes;
                open.end = self.file;
                self.within += bytes;
                self.wanted.start += bytes;
            }
            if joins {
                self.skip_hole();
                continue;
            }
            if open.pieces == 0 {
                return self.nonsense(Nonsense::NoProgress);
            }
            let mut file_end = open.end;
            if self.within == self.tuple.size {
                if bytes == step.bytes_max {
                    file_end = self.file.saturating_add(answer.hole_after);
                    self.before = answer.hole_before_next;
                }
                if self.wanted.start < self.wanted.end {
                    self.skip_hole();
                }
            }
            return Ok(self.close(&open, file_end));
        }
    }
}

impl Iterator for Groups<'_> {
    type Item = Result<Group>;

    fn next(&mut self) -> Option<Result<Group>> {
        if self.failed || self.wanted.is_empty() {
            return None;
        }
        let group = self.group();
        self.failed = group.is_err();
        Some(group)
    }
}
