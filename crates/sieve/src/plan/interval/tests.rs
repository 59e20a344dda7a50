//! The dynamic program against all ways to cut.

use proptest::prelude::*;

use super::*;
use crate::group::Access;
use crate::model::Extents;
use crate::view::Tuple;

/// The cost of given groups under the model that [`IntervalPlanner`] minimises, to compare plans
/// that were made in another way. `groups` are index ranges of `blocks`.
fn cost_of(profile: &Profile, request: &Request, blocks: &[Block], method: Method) -> Option<f64> {
    let now = request.circumstances(1);
    let (first, last) = (blocks.first()?, blocks.last()?);
    let file = last.file + last.len - first.file;
    let data: u64 = blocks.iter().map(|block| block.len).sum();
    let size = Extents { file: file as f64, data: data as f64, blocks: blocks.len() as f64 };
    match method {
        Method::Each => {
            (blocks.len() == 1).then(|| profile.each_ns(data as f64, f64::INFINITY, &now))
        }
        _ if !request.can_sieve() || file > request.buffer_bytes || blocks.len() < 2 => None,
        Method::Window => Some(profile.window_ns(&size, request.buffer_bytes, &now)),
        Method::Vector if !request.vectored => None,
        Method::Vector => Some(profile.vector_ns(&size, &now)),
        Method::Mapped => None,
    }
}

/// The cheapest way to do `blocks`, found by trying all.
fn cheapest(profile: &Profile, request: &Request, blocks: &[Block]) -> f64 {
    if blocks.is_empty() {
        return 0.0;
    }
    let mut best = f64::INFINITY;
    for len in 1..=blocks.len() {
        let (group, rest) = blocks.split_at(len);
        let methods = [Method::Each, Method::Window, Method::Vector];
        let costs = methods.into_iter().filter_map(|m| cost_of(profile, request, group, m));
        if let Some(ns) = costs.min_by(f64::total_cmp) {
            best = best.min(ns + cheapest(profile, request, rest));
        }
    }
    best
}

/// What joining over every hole that is cheaper than a request, until the buffer is full, costs.
fn greedy(profile: &Profile, request: &Request, blocks: &[Block]) -> f64 {
    let (mut total, mut start) = (0.0, 0);
    for end in 1..=blocks.len() {
        let joins = blocks.get(end).is_some_and(|next| {
            let hole = next.file - (blocks[end - 1].file + blocks[end - 1].len);
            (hole as f64) * profile.read.byte_ns < profile.read.call_ns
                && next.file + next.len - blocks[start].file <= request.buffer_bytes
        });
        if !joins {
            let group = &blocks[start..end];
            let method = if group.len() == 1 { Method::Each } else { Method::Window };
            total += cost_of(profile, request, group, method).expect("it fits the buffer");
            start = end;
        }
    }
    total
}

fn request(access: Access, view: &FileView, buffer_bytes: u64, vectored: bool) -> Request {
    Request { vectored, ..Request::new(access, 0..view.size(), buffer_bytes) }
}

/// The sum of what the groups of a plan cost, each priced by itself.
fn priced(profile: &Profile, request: &Request, blocks: &[Block], groups: &[Group]) -> f64 {
    let of = |group: &Group| -> f64 {
        let within: Vec<Block> =
            blocks.iter().filter(|block| group.data.contains(&block.data)).copied().collect();
        match group.method {
            Method::Each => within
                .iter()
                .map(|block| cost_of(profile, request, &[*block], Method::Each).expect("one"))
                .sum(),
            method => cost_of(profile, request, &within, method).expect("within the limits"),
        }
    };
    groups.iter().map(of).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_other_cut_is_cheaper(
        tuples in prop::collection::vec((1u64..3000, 0u64..12_000), 2..9),
        buffer_bytes in 1u64..40_000,
        writes: bool,
        vectored: bool,
    ) {
        let tuples = tuples.into_iter().map(|(size, hole)| Tuple { size, hole });
        let view = FileView::from_tuples(100, tuples).unwrap();
        let access = if writes { Access::Write } else { Access::Read };
        let request = request(access, &view, buffer_bytes, vectored);
        let profile = Profile::default();
        let blocks: Vec<Block> = view.blocks(0, view.size()).unwrap().collect();
        let Row { groups, cost, .. } = IntervalPlanner::default()
            .plan(&view, &profile, &request, 1, |_| 1.0)
            .unwrap();
        let best = cheapest(&profile, &request, &blocks);
        let found = priced(&profile, &request, &blocks, &groups);
        prop_assert!(found <= best * (1.0 + 1e-9), "{found} > {best}: {groups:?}");
        prop_assert!((cost.total_ns() - best).abs() <= best * 1e-6, "{cost:?}, not {best}");
        // All of the data, in order, each byte once.
        let mut at = 0;
        for group in &groups {
            prop_assert_eq!(group.data.start, at);
            at = group.data.end;
        }
        prop_assert_eq!(at, view.size());
    }
}

#[test]
fn joining_until_the_buffer_is_full_is_not_the_best() {
    // Two clusters of three with a hole between them that is cheaper than a call. The buffer holds
    // four blocks: the greedy window takes the first of the second cluster along, over the hole.
    let tuples = [(64, 64), (64, 64), (64, 2400), (64, 64), (64, 64), (64, 2400)];
    let view = FileView::from_tuples(0, tuples.map(|(size, hole)| Tuple { size, hole })).unwrap();
    let blocks: Vec<Block> = view.blocks(0, 384).unwrap().collect();
    let profile = Profile::default();
    let request = Request { vectored: false, ..Request::new(Access::Read, 0..384, 2816) };
    let Row { groups, cost, .. } =
        IntervalPlanner::default().plan(&view, &profile, &request, 1, |_| 1.0).unwrap();
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert_eq!(groups[0].data, 0..192);
    let greedy = greedy(&profile, &request, &blocks);
    assert!(cost.total_ns() < greedy * 0.95, "{} is no better than {greedy}", cost.total_ns());
}

#[test]
fn a_long_row_is_planned_in_parts_that_leave_nothing_out() {
    let tuples = (0..20_000u64).map(|n| Tuple { size: 1 + n * 7 % 90, hole: n * n % 5000 });
    let view = FileView::from_tuples(0, tuples).unwrap();
    let mut planner = IntervalPlanner::default();
    let mut request = request(Access::Write, &view, 65536, true);
    let mut rows = 0;
    while !request.data.is_empty() {
        let Row { groups, .. } =
            planner.plan(&view, &Profile::default(), &request, 1, |_| 1.0).unwrap();
        assert_eq!(groups[0].data.start, request.data.start);
        for pair in groups.windows(2) {
            assert_eq!(pair[0].data.end, pair[1].data.start);
        }
        request.data.start = groups.last().unwrap().data.end;
        rows += 1;
    }
    assert!(rows >= 20_000 / ROW_BLOCKS);
}
