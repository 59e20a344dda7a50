//! One decision for a whole pattern, and the groups that follow from it.

use std::ops::Range;

use super::VECTOR_BLOCKS_MAX;
use crate::error::Result;
use crate::group::{Group, Method};
use crate::view::{FileView, Runs};

/// A rule that makes groups of blocks without weighing each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strategy {
    /// How groups of more than one block are reached.
    pub method: Method,
    /// The largest hole over which blocks are joined, in bytes.
    pub span_max: u64,
    /// The largest part of the file that one group spans, in bytes.
    pub window_bytes: u64,
    /// Groups end at multiples of this, in bytes, if need be within a block; 0 or 1 for wherever
    /// they end. Not minded when the window is smaller.
    pub align: u64,
    /// How many requests may be under way together.
    pub in_flight: u32,
}

impl Strategy {
    /// Every block by itself, `in_flight` at a time.
    #[must_use]
    pub fn each(in_flight: u32) -> Self {
        Self { method: Method::Each, span_max: 0, window_bytes: 0, align: 0, in_flight }
    }

    /// Whether it joins nothing: every block goes by itself.
    fn is_of_blocks(self) -> bool {
        matches!(self.method, Method::Each | Method::Mapped)
    }

    /// The groups of a range of a view's data.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn groups(self, view: &FileView, data: Range<u64>) -> Result<StrategyGroups<'_>> {
        let len = data.end.saturating_sub(data.start);
        let span = if self.is_of_blocks() { view.span(data.start, len)? } else { 0..0 };
        Ok(StrategyGroups { strategy: self, runs: view.runs(data.start, len)?, span })
    }
}

/// The groups of a [`Strategy`], each made in a time that does not depend on its number of blocks
/// as long as those are one run.
#[derive(Debug, Clone)]
pub struct StrategyGroups<'a> {
    strategy: Strategy,
    runs: Runs<'a>,
    /// The part of the file that all of it spans; only where every block goes by itself.
    span: Range<u64>,
}

impl StrategyGroups<'_> {
    /// Where a group that starts at `start` has to end.
    fn limit(&self, start: u64) -> u64 {
        let limit = start.saturating_add(self.strategy.window_bytes);
        match limit.checked_rem(self.strategy.align) {
            Some(beyond) if limit - beyond > start => limit - beyond,
            _ => limit,
        }
    }
}

impl Iterator for StrategyGroups<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        let Strategy { method, span_max, align, .. } = self.strategy;
        let first = self.runs.peek(u64::MAX)?;
        let data_start = self.runs.at();
        if self.strategy.is_of_blocks() {
            // All of it is one group: there is nothing to decide between its blocks.
            let data = data_start..data_start + self.runs.left();
            self.runs = Runs::nothing(data.end);
            return Some(Group { data, file: self.span.clone(), method });
        }
        let limit = self.limit(first.file);
        let blocks_max = if method == Method::Vector { VECTOR_BLOCKS_MAX } else { u64::MAX };
        let (mut blocks, mut end) = (0, first.file);
        while let Some(run) = self.runs.peek(u64::MAX) {
            if blocks > 0 && (run.file - end > span_max || run.file >= limit) {
                break;
            }
            let fits = match limit.checked_sub(run.file + run.len) {
                None => 0,
                Some(_) if run.count > 1 && run.stride - run.len > span_max => 1,
                Some(room) => (room / run.stride + 1).min(run.count),
            };
            let fits = fits.min(blocks_max - blocks);
            if fits == 0 {
                if align > 1 && run.file < limit && blocks < blocks_max && blocks > 0 {
                    self.runs.advance(limit - run.file);
                    end = limit;
                    blocks += 1;
                } else if blocks == 0 {
                    // Larger than the window: it goes by itself, and whole.
                    self.runs.advance(run.len);
                    end = run.file + run.len;
                    blocks = 1;
                }
                break;
            }
            self.runs.advance(fits * run.len);
            end = run.file + (fits - 1) * run.stride + run.len;
            blocks += fits;
            if fits < run.count && align <= 1 {
                break;
            }
        }
        Some(Group {
            data: data_start..self.runs.at(),
            file: first.file..end,
            method: if blocks == 1 { Method::Each } else { method },
        })
    }
}
