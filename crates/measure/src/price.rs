//! What the cost model says of groups that somebody else has cut.

use sieve::model::{Extents, MAP_BLOCKS_MAX};
use sieve::{Access, Adaptive, FileView, Group, Method, Profile, Request, aggregate};

use crate::error::Result;
use crate::way::Way;

/// What carrying out some groups takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Predicted nanoseconds, in groups of [`Method::Each`].
    pub each_ns: f64,
    /// In groups of [`Method::Window`].
    pub window_ns: f64,
    /// In groups of [`Method::Vector`].
    pub vector_ns: f64,
    /// In groups of [`Method::Mapped`].
    pub mapped_ns: f64,
    /// Groups.
    pub groups: u64,
    /// Reads and writes; locks are not counted.
    pub calls: u64,
    /// Pieces of data.
    pub blocks: u64,
    /// Wanted bytes.
    pub data_bytes: u64,
    /// Bytes that the reads and writes carry.
    pub carried_bytes: u64,
}

impl Price {
    /// Predicted nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.each_ns + self.window_ns + self.vector_ns + self.mapped_ns
    }

    /// Bytes that are carried and wanted by nobody.
    #[must_use]
    pub fn wasted_bytes(&self) -> u64 {
        self.carried_bytes.saturating_sub(self.data_bytes)
    }

    /// Adds a group.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn add(
        &mut self,
        profile: &Profile,
        view: &FileView,
        request: &Request,
        group: &Group,
        in_flight: u32,
    ) -> Result<()> {
        let now = request.circumstances(in_flight);
        self.groups += 1;
        self.data_bytes += group.data_len();
        let runs = view.runs(group.data.start, group.data_len())?;
        if group.method == Method::Each {
            let mut before: Option<u64> = None;
            for run in runs {
                // How far the first block is from the one before it; the others follow alike.
                let first = before.map_or(f64::INFINITY, |at| (run.file - at) as f64);
                let (len, stride) = (run.len as f64, run.stride as f64);
                self.each_ns += profile.each_ns(len, first, &now);
                self.each_ns += (run.count - 1) as f64 * profile.each_ns(len, stride, &now);
                before = Some(run.file + (run.count - 1) * run.stride);
                self.calls += run.count;
                self.blocks += run.count;
            }
            self.carried_bytes += group.data_len();
            return Ok(());
        }
        let blocks: u64 = runs.map(|run| run.count).sum();
        let size = Extents {
            file: group.file_len() as f64,
            data: group.data_len() as f64,
            blocks: blocks as f64,
        };
        if group.method == Method::Mapped {
            self.mapped_ns += profile.mapped_ns(&size);
            self.blocks += blocks;
            self.calls += blocks.div_ceil(MAP_BLOCKS_MAX);
            self.carried_bytes += group.data_len();
            return Ok(());
        }
        // Around holes a write reads first.
        let turns = match request.access {
            Access::Read => 1,
            Access::Write => 2,
        };
        match group.method {
            Method::Window => self.window_ns += profile.window_ns(&size, group.file_len(), &now),
            Method::Vector | Method::Each | Method::Mapped => {
                self.vector_ns += profile.vector_ns(&size, &now)
            }
        }
        self.blocks += blocks;
        self.calls += turns;
        self.carried_bytes += turns * group.file_len();
        Ok(())
    }
}

/// Cuts a request in one of the ways and hands over each group, with how many requests may be
/// under way together. The adaptive way makes no trials.
///
/// # Errors
/// As [`Adaptive::plan`] and [`aggregate::Groups::new`]; and the first error of `each`.
pub fn groups(
    way: Way,
    profile: &Profile,
    view: &FileView,
    request: &Request,
    mut each: impl FnMut(&Group, u32) -> Result<()>,
) -> Result<()> {
    let Some(mut function) = way.function(profile, request.warmth) else {
        let mut adaptive = Adaptive::new(*profile)?.steady();
        let mut request = request.clone();
        while !request.data.is_empty() {
            let plan = adaptive.plan(view, &request)?;
            for group in plan.groups {
                each(&group, plan.in_flight)?;
            }
            request.data.start += plan.data_len;
        }
        return Ok(());
    };
    let len = request.data.end - request.data.start;
    let (start, buffer) = (request.data.start, request.buffer_bytes);
    let groups =
        aggregate::Groups::new(view, request.access, start, len, buffer, function.as_mut())?;
    for group in groups {
        each(&group?, 1)?;
    }
    Ok(())
}

/// What a request costs in one of the ways.
///
/// # Errors
/// As [`groups`].
pub fn price(way: Way, profile: &Profile, view: &FileView, request: &Request) -> Result<Price> {
    let mut price = Price::default();
    groups(way, profile, view, request, |group, in_flight| {
        price.add(profile, view, request, group, in_flight)
    })?;
    Ok(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_bytes_are_counted_as_they_are_made() {
        let (profile, view) = (Profile::default(), FileView::strided(0, 8, 92).unwrap());
        let read = Request::new(Access::Read, 0..800, 1000);
        let naive = price(Way::Naive, &profile, &view, &read).unwrap();
        assert_eq!((naive.calls, naive.blocks, naive.carried_bytes), (100, 100, 800));
        assert_eq!(naive.wasted_bytes(), 0);
        assert!(naive.each_ns > 100.0 * profile.read.call_ns);
        // Buffers of ten blocks and their holes.
        let romio = price(Way::Romio, &profile, &view, &read).unwrap();
        assert_eq!((romio.groups, romio.calls, romio.blocks), (10, 10, 100));
        assert!(romio.carried_bytes > 9000 && romio.wasted_bytes() == romio.carried_bytes - 800);
        let write = Request::new(Access::Write, 0..800, 1000);
        let written = price(Way::Romio, &profile, &view, &write).unwrap();
        assert_eq!(written.calls, 20);
        assert!(written.total_ns() > romio.total_ns());
    }

    #[test]
    fn the_adaptive_way_is_never_dearer_than_the_others_by_its_own_model() {
        let profile = Profile::default();
        for (block, hole) in [(8, 8), (8, 4096), (1000, 64), (4096, 32_768), (100_000, 1000)] {
            let view = FileView::strided(hole, block, hole).unwrap();
            for access in [Access::Read, Access::Write] {
                let request = Request::new(access, 0..64 * block, 4 << 20);
                let ns = |way| price(way, &profile, &view, &request).unwrap().total_ns();
                let adaptive = ns(Way::Adaptive);
                for way in Way::ALL {
                    assert!(adaptive <= ns(way) * 1.02, "{block} {hole} {access:?} {way}");
                }
            }
        }
    }
}
