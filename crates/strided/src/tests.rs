//! Random copies are those of the simplest loop there is.

use proptest::prelude::*;

use crate::shape::copy_with;
use crate::stores::{ALIGNMENT, Stores};
use crate::{Dim, Run, copy, fill};

/// A copy of up to three dimensions with up to four runs that do not overlap in the destination.
#[derive(Debug, Clone)]
struct Case {
    dims: Vec<Dim>,
    runs: Vec<Run>,
    size: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let dims = prop::collection::vec((1_usize..40, -9_isize..10, 0_usize..3), 0..4);
    let sizes = prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 16, 20, 24, 25, 40, 64]);
    let runs = prop::collection::vec((sizes, 0_usize..3, 0_usize..200), 1..5);
    (dims, runs, any::<bool>(), any::<bool>()).prop_map(|(dims, runs, alike, arrays)| {
        let first = runs[0];
        let runs: Vec<_> = runs.iter().map(|run| if alike { first } else { *run }).collect();
        let element: usize = runs.iter().map(|run| run.0).sum();
        // The destination is nested; the source may lie in any way.
        let mut stride = element as isize;
        let mut out: Vec<Dim> = Vec::new();
        for (number, (count, src, gap)) in dims.into_iter().enumerate() {
            let count = if number > 0 { count % 7 + 1 } else { count };
            let dst = stride + gap as isize * 4 * isize::from(gap == 2);
            let src = match gap {
                0 => first.0 as isize * src,
                1 => element as isize,
                _ => src,
            };
            let dst = if src == 5 { -dst } else { dst };
            stride = dst.abs() * count as isize;
            out.push(Dim { count, dst, src });
        }
        if out.len() > 1 && alike {
            // A transpose.
            let rank = out.len();
            (out[0].src, out[1].src) = (first.0 as isize * out[1].count as isize, first.0 as isize);
            out.swap(0, rank - 1);
        }
        let low = |stride: fn(&Dim) -> isize| -> usize {
            let below = out.iter().map(|dim| (stride(dim) * (dim.count as isize - 1)).min(0));
            -below.sum::<isize>() as usize
        };
        let (mut to, low_src) = (low(|dim| dim.dst), low(|dim| dim.src));
        let runs: Vec<Run> = (runs.iter().enumerate())
            .map(|(number, &(bytes, unit, src))| {
                let unit = match unit {
                    0 => 1,
                    1 if bytes % 4 == 0 => 4,
                    _ => bytes,
                };
                let src = if arrays { number * 400 } else { src };
                let run = Run { dst: to, src: low_src + src, bytes, unit };
                to += bytes;
                run
            })
            .collect();
        Case { dims: out, runs, size: 1 << 17 }
    })
}

/// One byte at a time.
fn simplest(case: &Case, mut each: impl FnMut(usize, usize)) {
    let total: usize = case.dims.iter().map(|dim| dim.count).product();
    for number in 0..total {
        let (mut rest, mut to, mut from) = (number, 0, 0);
        for dim in &case.dims {
            let index = (rest % dim.count) as isize;
            rest /= dim.count;
            to += index * dim.dst;
            from += index * dim.src;
        }
        for run in &case.runs {
            for byte in 0..run.bytes {
                let within = byte / run.unit * run.unit + (run.unit - 1 - byte % run.unit);
                let source = run.src + if run.unit > 1 { within } else { byte };
                each((run.dst + byte).wrapping_add_signed(to), source.wrapping_add_signed(from));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn copies_are_those_of_the_simplest_loop(case in cases()) {
        let mut size = case.size;
        simplest(&case, |to, from| size = size.max(to + 1).max(from + 1));
        let src: Vec<u8> = (0..size).map(|i| (i * 31 + i / 251) as u8).collect();
        let mut expected = vec![0xAA; size];
        simplest(&case, |to, from| expected[to] = src[from]);
        let mut got = vec![0xAA; size];
        copy_with(&mut got, &src, &case.dims, &case.runs, Stores::Streaming);
        prop_assert!(got == expected);
        let mut got = vec![0xAA; size];
        copy(&mut got, &src, &case.dims, &case.runs);
        prop_assert!(got == expected);

        let mut zeros = expected.clone();
        simplest(&case, |to, _| zeros[to] = 0);
        fill(&mut got, &case.dims, &case.runs);
        prop_assert!(got == zeros);
    }
}

fn check(dims: &[Dim], runs: &[Run]) {
    let case = Case { dims: dims.to_vec(), runs: runs.to_vec(), size: 0 };
    let (mut to_size, mut from_size) = (0, 0);
    simplest(&case, |to, from| {
        (to_size, from_size) = (to_size.max(to + 1), from_size.max(from + 1))
    });
    // Not a byte more than there is.
    let src: Vec<u8> = (0..from_size).map(|i| (i * 31 + i / 251) as u8).collect();
    let mut expected = vec![0xAA; to_size];
    simplest(&case, |to, from| expected[to] = src[from]);
    let mut got = vec![0xAA; to_size];
    copy(&mut got, &src, dims, runs);
    assert!(got == expected, "{dims:?} {runs:?}");
    // Stores past the caches, to what is aligned in all ways that there are: at a register, at a
    // number, at nothing.
    let mut room = vec![0; to_size + 2 * ALIGNMENT];
    for begin in [0, 1, 4, 8, ALIGNMENT - 3, ALIGNMENT - 1] {
        let begin = room.as_ptr().align_offset(ALIGNMENT) + begin;
        room.fill(0xAA);
        let got = &mut room[begin..begin + to_size];
        copy_with(got, &src, dims, runs, Stores::Streaming);
        assert!(*got == expected, "{dims:?} {runs:?} at {begin}");
        let beside = room[..begin].iter().chain(&room[begin + to_size..]);
        assert!(beside.copied().all(|byte| byte == 0xAA), "{dims:?} {runs:?} at {begin}");
    }
}

#[test]
fn long_lines_and_their_ends_are_moved_by_wide_registers_too() {
    for bytes in [1, 2, 4, 8, 16] {
        for unit in [1, bytes] {
            for count in [15, 16, 33, 127, 128, 400] {
                for stride in 1..=10 {
                    let size = bytes as isize;
                    let run = Run { dst: 3, src: 5, bytes, unit };
                    check(&[Dim { count, dst: size, src: size * stride }], &[run]);
                    check(&[Dim { count, dst: size * stride, src: size }], &[run]);
                    let last = Run { dst: (count - 1) * bytes * stride as usize, ..run };
                    check(&[Dim { count, dst: -size * stride, src: size }], &[last]);
                }
                for fields in 2..=9 {
                    let run = |dst, src| Run { dst, src, bytes, unit };
                    let structs = (fields * bytes) as isize;
                    let array = count * bytes + 8;
                    let one = Dim { count, dst: structs, src: bytes as isize };
                    let turned = |k: usize| (k + 1) % fields;
                    let runs: Vec<_> =
                        (0..fields).map(|k| run(k * bytes, turned(k) * array)).collect();
                    check(&[one], &runs);
                    let other = Dim { count, dst: one.src, src: one.dst };
                    let runs: Vec<_> =
                        (0..fields).map(|k| run(turned(k) * array, k * bytes)).collect();
                    check(&[other], &runs);
                }
            }
        }
    }
}

#[test]
fn transposes_of_any_shape_are_moved_by_wide_registers_too() {
    for bytes in [1_usize, 2, 4, 8, 12] {
        for unit in if bytes == 12 { [1, 1] } else { [1, bytes] } {
            for (rows, columns) in [
                (7, 9),
                (8, 8),
                (16, 16),
                (17, 40),
                (33, 15),
                (300, 17),
                (20, 290),
                (150, 140),
                (263, 16),
            ] {
                let size = bytes as isize;
                let row = Dim { count: rows, dst: size, src: size * columns as isize };
                let column = Dim { count: columns, dst: size * rows as isize, src: size };
                let run = Run { dst: 1, src: 2, bytes, unit };
                check(&[row, column], &[run]);
                // Of the source, every third column.
                let row = Dim { src: row.src * 3, ..row };
                check(&[column, row], &[run]);
                check(&[row, Dim { src: column.src * 3, ..column }], &[run]);
            }
        }
    }
}

#[test]
#[should_panic(expected = "elements from")]
fn an_element_outside_of_a_slice_is_refused() {
    let dims = [Dim { count: 3, dst: 4, src: 8 }];
    copy(&mut [0; 12], &[0; 19], &dims, &[Run { dst: 0, src: 0, bytes: 4, unit: 1 }]);
}
