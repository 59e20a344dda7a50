//! Views against lists of bytes: whatever form a view takes, it means the bytes that its tuples
//! say, one by one.

use proptest::prelude::*;
use sieve::{Error, FileView, Level, OFFSET_MAX, Tuple};

fn tuples(list: &[(u64, u64)]) -> Vec<Tuple> {
    list.iter().map(|&(size, hole)| Tuple { size, hole }).collect()
}

/// The offsets of the first `count` bytes of data, tuple by tuple.
fn offsets(displacement: u64, tuples: &[Tuple], count: usize) -> Vec<u64> {
    let mut offsets = Vec::new();
    let mut at = displacement;
    while offsets.len() < count {
        for tuple in tuples {
            offsets.extend(at..at + tuple.size);
            at += tuple.size + tuple.hole;
        }
    }
    offsets.truncate(count);
    offsets
}

fn offsets_by_blocks(view: &FileView, offset: u64, len: u64) -> Vec<u64> {
    let blocks = view.blocks(offset, len).expect("within a file");
    blocks.flat_map(|block| block.file..block.file + block.len).collect()
}

/// Lists that often have a closed form: nested repetitions, now and then with a flaw in them.
fn lists() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let any = prop::collection::vec((0u64..6, 0u64..6), 1..12);
    let levels = prop::collection::vec((1usize..4, 0u64..5), 0..4);
    let nested = (1u64..5, levels, 0u64..5, prop::option::of((0usize..64, 0u64..5))).prop_map(
        |(size, levels, tail, flaw)| {
            let mut list = vec![(size, tail)];
            for (count, hole) in levels {
                let inner = list.clone();
                list.last_mut().expect("not empty").1 = hole;
                list = std::iter::repeat_n(list, count - 1).flatten().chain(inner).collect();
            }
            if let Some((at, hole)) = flaw {
                let at = at % list.len();
                list[at].1 = hole;
            }
            list
        },
    );
    prop_oneof![any, nested]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_view_means_the_bytes_of_its_tuples(
        list in lists(),
        displacement in 0u64..50,
        offset in 0u64..120,
        len in 0u64..80,
        steps in prop::collection::vec(1u64..20, 1..8),
    ) {
        let list = tuples(&list);
        let view = FileView::from_tuples(displacement, list.iter().copied()).unwrap();
        prop_assert_eq!(view.tuple_count(), list.len() as u64);
        if view.size() == 0 {
            prop_assert_eq!(view.blocks(offset, 1).unwrap_err(), Error::NoData);
            prop_assert!(view.blocks(offset, 0).unwrap().next().is_none());
            return Ok(());
        }
        let all = offsets(displacement, &list, (offset + len) as usize + 1);
        let wanted = &all[offset as usize..(offset + len) as usize];
        prop_assert_eq!(offsets_by_blocks(&view, offset, len), wanted);

        // Blocks never touch (in a closed form they may where an outer level has no hole), never
        // are empty, and know where their data is.
        let hole_min = u64::from(view.closed_form().is_none());
        let blocks: Vec<_> = view.blocks(offset, len).unwrap().collect();
        for pair in blocks.windows(2) {
            prop_assert!(pair[0].file + pair[0].len + hole_min <= pair[1].file, "{:?}", pair);
            prop_assert_eq!(pair[0].data + pair[0].len, pair[1].data);
        }
        prop_assert!(blocks.iter().all(|block| block.len > 0));
        prop_assert!(blocks.first().is_none_or(|block| block.data == offset));

        // The same in steps of any size.
        let mut runs = view.runs(offset, len).unwrap();
        let mut steps = steps.into_iter().cycle();
        let mut walked = Vec::new();
        while let Some(run) = runs.next_within(steps.next().unwrap()) {
            for block in 0..run.count {
                walked.extend((run.file + block * run.stride..).take(run.len as usize));
            }
            prop_assert_eq!(run.data(), runs.at() - offset - (walked.len() as u64 - run.data()));
        }
        prop_assert_eq!(walked, wanted);

        // Seeking, and the tuples from there on.
        let position = view.position(offset).unwrap();
        prop_assert_eq!(position.file, all[offset as usize]);
        let mut at = position.file - position.within;
        let mut again = Vec::new();
        for (number, tuple) in view.tuples_from(offset).unwrap().take(30) {
            prop_assert_eq!(tuple, list[number as usize]);
            again.extend(at..at + tuple.size);
            at += tuple.size + tuple.hole;
        }
        let again = &again[position.within as usize..];
        let common = again.len().min(wanted.len());
        prop_assert_eq!(&again[..common], &wanted[..common]);
        if let Some(last) = wanted.last() {
            prop_assert_eq!(view.span(offset, len).unwrap(), wanted[0]..last + 1);
        }
    }

    #[test]
    fn nested_constructors_mean_what_their_list_means(
        block in 0u64..5,
        levels in prop::collection::vec((0u64..4, 0u64..5), 0..4),
        tail in 0u64..5,
    ) {
        let levels: Vec<Level> =
            levels.into_iter().map(|(count, hole)| Level { count, hole }).collect();
        let view = FileView::nested(7, block, &levels, tail).unwrap();
        let mut list = vec![(block, tail)];
        for level in &levels {
            let inner = list.clone();
            list.last_mut().expect("not empty").1 = level.hole;
            let before = std::iter::repeat_n(list, (level.count.max(1) - 1) as usize);
            list = before.flatten().chain(inner).collect();
        }
        if view.size() == 0 {
            prop_assert!(block == 0 || levels.iter().any(|level| level.count == 0));
            return Ok(());
        }
        prop_assert_eq!(view.tuple_count(), list.len() as u64);
        prop_assert_eq!(offsets_by_blocks(&view, 3, 50), &offsets(7, &tuples(&list), 53)[3..]);
        prop_assert_eq!(view.memory_bytes(), 0);
    }

    #[test]
    fn blocks_by_their_starts_make_the_same_view(
        pieces in prop::collection::vec((0u64..5, 0u64..5), 1..9),
        tail in 0u64..9,
    ) {
        let mut at = 0;
        let mut blocks = Vec::new();
        for (hole, len) in pieces {
            blocks.push((at + hole, len));
            at += hole + len;
        }
        let extent = at + tail;
        let view = FileView::from_blocks(11, extent, blocks.iter().copied()).unwrap();
        prop_assert_eq!(view.extent() == 0 || extent % view.extent() == 0, true);
        let wanted: Vec<u64> = (0..3)
            .flat_map(|turn| blocks.iter().map(move |(start, len)| (turn * extent + start, *len)))
            .flat_map(|(start, len)| 11 + start..11 + start + len)
            .collect();
        if !wanted.is_empty() {
            prop_assert_eq!(offsets_by_blocks(&view, 0, wanted.len() as u64), wanted);
        }
    }
}

#[test]
fn regular_lists_take_no_memory() {
    let list = (0..100_000).map(|n| Tuple { size: 8, hole: if n % 10 == 9 { 500 } else { 24 } });
    let view = FileView::from_tuples(0, list).unwrap();
    assert_eq!(view.memory_bytes(), 0);
    assert_eq!(view.tuple_count(), 100_000);
    let levels = vec![Level { count: 10, hole: 24 }];
    assert_eq!(view.closed_form(), Some((8, levels, 500)));
}

#[test]
fn irregular_lists_take_at_most_32_bytes_a_tuple() {
    const COUNT: u64 = 1_000_000;
    let narrow = (0..COUNT).map(|n| Tuple { size: 1 + n % 7, hole: n * n % 1000 });
    let view = FileView::from_tuples(0, narrow).unwrap();
    assert!(view.memory_bytes() as u64 <= 9 * COUNT, "{}", view.memory_bytes());
    let wide = (0..COUNT).map(|n| Tuple { size: 1 + n % 7, hole: (n % 1000) << 30 });
    let view = FileView::from_tuples(0, wide).unwrap();
    assert!(view.memory_bytes() as u64 <= 17 * COUNT, "{}", view.memory_bytes());
    // Finding a byte in the middle agrees with walking there.
    let mut blocks = view.blocks(0, view.size()).unwrap().skip(654_321);
    let block = blocks.next().unwrap();
    assert_eq!(view.position(block.data).unwrap().file, block.file);
}

#[test]
fn neighbours_without_holes_are_one_block_however_long() {
    let view = FileView::contiguous(5).unwrap();
    let runs: Vec<_> = view.runs(1 << 40, 1 << 41).unwrap().collect();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].file, runs[0].len), ((1 << 40) + 5, 1 << 41));
    // Sizes that differ, so that there is no closed form.
    let view = FileView::from_tuples(0, tuples(&[(3, 0), (4, 0), (5, 2)])).unwrap();
    let blocks: Vec<_> = view.blocks(0, 24).unwrap().map(|b| (b.file, b.len)).collect();
    assert_eq!(blocks, [(0, 12), (14, 12)]);
}

#[test]
fn offsets_beyond_4_gib_are_exact() {
    let view = FileView::strided(3, 10, (6 << 30) - 10).unwrap();
    let blocks: Vec<_> = view.blocks(25, 10).unwrap().map(|b| (b.file, b.len)).collect();
    assert_eq!(blocks, [(3 + (12 << 30) + 5, 5), (3 + (18 << 30), 5)]);
    let list = tuples(&[(1, 5 << 32), (2, 7)]);
    let view = FileView::from_tuples(0, list).unwrap();
    assert_eq!(view.position(3 * 1000 + 1).unwrap().file, 1000 * ((5 << 32) + 10) + 1 + (5 << 32));
}

#[test]
fn what_no_file_can_hold_is_refused() {
    let overflow = |tuple| Err(Error::Overflow { tuple });
    let big = Tuple { size: OFFSET_MAX, hole: 1 };
    assert_eq!(FileView::from_tuples(0, [big]).map(|_| ()), overflow(0));
    let half = Tuple { size: 1 << 62, hole: 1 };
    assert_eq!(FileView::from_tuples(0, [half, half]).map(|_| ()), overflow(1));
    // A hole that was negative before it was cast.
    let back = Tuple { size: 100, hole: -50i64 as u64 };
    assert_eq!(FileView::from_tuples(0, [back]).map(|_| ()), overflow(0));
    assert!(FileView::strided(u64::MAX, 1, 1).is_err());
    assert!(FileView::strided(0, u64::MAX, 1).is_err());
    let level = Level { count: 1 << 40, hole: 1 << 30 };
    assert!(matches!(FileView::nested(0, 8, &[level], 0), Err(Error::Overflow { .. })));
    assert!(FileView::nested(0, 8, &[Level { count: 2, hole: 1 }; 7], 3).is_ok());
    let deep = FileView::nested(0, 8, &[Level { count: 2, hole: 1 }; 8], 3);
    assert_eq!(deep.map(|_| ()), Err(Error::TooDeep { levels: 8, max: 7 }));
    assert_eq!(FileView::from_tuples(0, []).map(|_| ()), Err(Error::NoTuples));

    // The view is fine, but not that far out.
    let view = FileView::strided(0, 1, 1 << 40).unwrap();
    assert!(view.runs((1 << 22) - 1, 1).is_ok());
    let too_far = Error::TooFar { offset: (1 << 22) - 1, len: 100_000_000 };
    assert_eq!(view.runs((1 << 22) - 1, 100_000_000).map(|_| ()), Err(too_far));
    assert!(view.runs(u64::MAX, 2).is_err());
    assert!(view.runs(u64::MAX, 1).is_err());
    let irregular = FileView::from_tuples(0, tuples(&[(1, 1 << 40), (2, 0)])).unwrap();
    assert!(irregular.runs(u64::MAX - 1, 1).is_err());
}

#[test]
fn blocks_that_overlap_or_go_back_are_refused() {
    let overlap = |block, start, end| Err(Error::Overlap { block, start, end });
    assert_eq!(FileView::from_blocks(0, 30, [(0, 10), (9, 2)]).map(|_| ()), overlap(1, 9, 10));
    assert_eq!(FileView::from_blocks(0, 30, [(20, 5), (0, 5)]).map(|_| ()), overlap(1, 0, 25));
    // The next turn starts before this one has ended.
    assert_eq!(FileView::from_blocks(0, 8, [(2, 4), (8, 4)]).map(|_| ()), overlap(2, 10, 12));
    assert!(FileView::from_blocks(0, 10, [(2, 4), (8, 4)]).is_ok());
}
