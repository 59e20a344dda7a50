//! Which requests bring what several readers want: neighbours by one request where the bytes between them cost less than
//! another request. The sieve weighs it, with what object stores are like.

use std::ops::Range;

use sieve::model::Device;
use sieve::plan::IntervalPlanner;
use sieve::{Access, FileView, Method, Profile, Request, Warmth};

/// What a request costs: measured services answer after 10 to 100 ms, and give some 100 MB/s for each.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From asking to the first byte, in nanoseconds.
    pub latency_ns: f64,
    /// For each byte, in nanoseconds.
    pub byte_ns: f64,
}

impl Cost {
    /// So many bytes take half as long as it takes to ask once more.
    pub(crate) fn reach_bytes(self) -> u64 {
        (self.latency_ns / self.byte_ns.max(f64::MIN_POSITIVE) / 2.0) as u64
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self { latency_ns: 25e6, byte_ns: 10.0 }
    }
}

/// The requests for `wanted`, in order and without overlap, each of at most `request_bytes` and a block.
pub(crate) fn requests(
    mut wanted: Vec<Range<u64>>,
    cost: Cost,
    request_bytes: u64,
    together: u32,
) -> Vec<Range<u64>> {
    wanted.retain(|range| range.start < range.end);
    wanted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut blocks: Vec<Range<u64>> = Vec::with_capacity(wanted.len());
    for range in wanted {
        match blocks.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => blocks.push(range),
        }
    }
    let blocks: Vec<Range<u64>> =
        blocks.into_iter().flat_map(|block| cut(block, request_bytes)).collect();
    if blocks.len() < 2 {
        return blocks;
    }
    planned(&blocks, cost, request_bytes, together).unwrap_or(blocks)
}

/// A range in pieces.
pub(crate) fn cut(range: Range<u64>, bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let bytes = bytes.max(1);
    let count = (range.end - range.start).div_ceil(bytes);
    (0..count).map(move |n| {
        let start = range.start + n * bytes;
        start..(start + bytes).min(range.end)
    })
}

fn planned(
    blocks: &[Range<u64>],
    cost: Cost,
    request_bytes: u64,
    together: u32,
) -> Option<Vec<Range<u64>>> {
    let base = blocks.first()?.start;
    let extent = blocks.last()?.end - base;
    let listed = blocks.iter().map(|block| (block.start - base, block.end - block.start));
    let view = FileView::from_blocks(base, extent, listed).ok()?;
    let default = Profile::default();
    let device = Device {
        latency_ns: cost.latency_ns,
        byte_ns: cost.byte_ns,
        in_flight_max: together,
        unit_bytes: 1,
        read_ahead_bytes: 0,
        ..default.device
    };
    let profile = Profile { device, ..default };
    let mut planner = IntervalPlanner::default();
    let (mut from, end) = (0, view.size());
    let mut requests = Vec::new();
    while from < end {
        let request = Request {
            warmth: Warmth::Cold,
            vectored: false,
            ..Request::new(Access::Read, from..end, request_bytes)
        };
        let row = planner.plan(&view, &profile, &request, together, |_| 1.0).ok()?;
        let last = row.groups.last()?.data.end;
        for group in row.groups {
            match group.method {
                Method::Window => requests.push(group.file),
                Method::Each | Method::Vector | Method::Mapped => {
                    let first = blocks.partition_point(|block| block.end <= group.file.start);
                    let within = blocks[first..].iter();
                    requests
                        .extend(within.take_while(|block| block.start < group.file.end).cloned());
                }
            }
        }
        if last <= from {
            return None;
        }
        from = last;
    }
    Some(requests)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "plans are lists of ranges")]

    use super::*;

    fn plan(wanted: Vec<Range<u64>>) -> Vec<Range<u64>> {
        requests(wanted, Cost::default(), 8 << 20, 16)
    }

    #[test]
    fn neighbours_are_joined_and_others_are_not() {
        assert_eq!(plan(vec![0..4096, 8192..12288]), [0..12288]);
        assert_eq!(
            plan(vec![0..4096, 1 << 30..(1 << 30) + 10]),
            [0..4096, 1 << 30..(1 << 30) + 10]
        );
        assert_eq!(plan(vec![100..200, 0..100, 50..150]), [0..200]);
        assert_eq!(plan(vec![5..5]), [] as [Range<u64>; 0]);
    }

    #[test]
    fn what_is_large_comes_in_parts() {
        let parts = plan(vec![0..20 << 20]);
        assert_eq!(parts, [0..8 << 20, 8 << 20..16 << 20, 16 << 20..20 << 20]);
    }

    #[test]
    fn every_wanted_byte_is_in_some_request_and_none_is_asked_for_twice() {
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut next = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let span = 1 << (12 + seed % 22);
            let wanted: Vec<Range<u64>> = (0..1 + next(300))
                .map(|_| {
                    let start = next(span);
                    start..start + next(9000)
                })
                .collect();
            let requests = plan(wanted.clone());
            assert!(requests.windows(2).all(|pair| pair[0].end <= pair[1].start), "{requests:?}");
            for range in wanted.iter().filter(|range| range.start < range.end) {
                let mut at = range.start;
                for request in &requests {
                    if request.contains(&at) {
                        at = request.end;
                    }
                }
                assert!(at >= range.end, "{range:?} is not in {requests:?}");
            }
        }
    }
}
