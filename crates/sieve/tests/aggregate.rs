//! The aggregate functions of the thesis, tuple by tuple, and what the walk makes of their answers.

use sieve::aggregate::{
    Aggregate, Decision, Extent, FileSystem, Groups, Naive, Romio, ScanFile, SimplePm, Step,
};
use sieve::{Access, FileView, Method, Tuple};

/// A group as (method, data, file).
type Plain = (Method, std::ops::Range<u64>, std::ops::Range<u64>);

fn groups(
    view: &FileView,
    access: Access,
    data: std::ops::Range<u64>,
    buffer: u64,
    function: &mut dyn Aggregate,
) -> Vec<Plain> {
    let len = data.end - data.start;
    let groups = Groups::new(view, access, data.start, len, buffer, function).expect("a plan");
    groups
        .map(|group| group.expect("sense"))
        .map(|group| (group.method, group.data, group.file))
        .collect()
}

use Method::{Each, Window};

/// 10 bytes a second after a latency of 10 s: a hole is cheaper than a new access up to 99 bytes.
const SLOW: FileSystem = FileSystem { bandwidth: 10.0, latency_network: 6.0, latency_fs: 4.0 };

#[test]
fn naive_takes_every_tuple_by_itself_and_whole_whatever_the_buffer() {
    let view = FileView::strided(5, 10, 2).unwrap();
    let found = groups(&view, Access::Read, 3..25, 0, &mut Naive);
    assert_eq!(found, [(Each, 3..10, 8..15), (Each, 10..20, 17..27), (Each, 20..25, 29..34)]);
}

#[test]
fn romio_fills_the_buffer_whether_or_not_it_hits_another_tuple() {
    // §3.3.3: from the next wanted byte on, until the buffer is full; within a tuple if need be.
    let view = FileView::strided(0, 10, 6).unwrap();
    let found = groups(&view, Access::Read, 0..60, 40, &mut Romio);
    // 0..10, 16..26 and 8 bytes of 32..42; its rest, 48..58, 64..74 and a hole; 80..90.
    assert_eq!(found, [(Window, 0..28, 0..40), (Window, 28..50, 40..80), (Each, 50..60, 80..90)]);
}

#[test]
fn romio_takes_hole_bytes_up_to_the_end_of_the_buffer() {
    // Listing 4.4, lines 16 to 19: two tuples fit, and the hole behind them fills the rest.
    let view = FileView::from_tuples(0, [(10, 5), (10, 100), (7, 3)].map(tuple)).unwrap();
    let found = groups(&view, Access::Read, 0..27, 40, &mut Romio);
    assert_eq!(found, [(Window, 0..20, 0..40), (Each, 20..27, 125..132)]);
}

fn tuple((size, hole): (u64, u64)) -> Tuple {
    Tuple { size, hole }
}

#[test]
fn simple_pm_joins_over_cheap_holes_only_and_then_fills_as_romio_does() {
    // Listing 4.5: a hole of 99 is cheaper than 10 s, one of 100 is not.
    let view = FileView::from_tuples(0, [(10, 99), (10, 100), (10, 30)].map(tuple)).unwrap();
    let found = groups(&view, Access::Read, 0..50, 1000, &mut SimplePm(SLOW));
    // The third joins the first of the next turn, and that the second.
    let expected = [(Window, 0..20, 0..119), (Window, 20..50, 219..378)];
    assert_eq!(found, expected);
    // A buffer that ends in a cheap hole is filled with it.
    let found = groups(&view, Access::Read, 0..20, 50, &mut SimplePm(SLOW));
    assert_eq!(found[0], (Each, 0..10, 0..10), "one tuple only, so the hole is of no use");
    let view = FileView::from_tuples(0, [(10, 5), (10, 90)].map(tuple)).unwrap();
    let found = groups(&view, Access::Read, 0..30, 50, &mut SimplePm(SLOW));
    assert_eq!(found[0], (Window, 0..20, 0..50));
}

#[test]
fn extent_ends_with_the_last_tuple() {
    let view = FileView::from_tuples(0, [(10, 5), (10, 90)].map(tuple)).unwrap();
    let found = groups(&view, Access::Read, 0..30, 50, &mut Extent(SLOW));
    assert_eq!(found[0], (Window, 0..20, 0..25));
}

#[test]
fn scanfile_ends_its_accesses_at_stripes_and_begins_them_there() {
    let view = FileView::strided(4, 4, 12).unwrap();
    let found = groups(&view, Access::Read, 0..20, 40, &mut ScanFile { stripe_bytes: 32 });
    // Tuples at 4, 20, 36, 52, 68. From the first one on, but up to the end of a stripe.
    assert_eq!(found, [(Window, 0..8, 4..32), (Window, 8..16, 32..64), (Each, 16..20, 68..72)]);
    // Without stripes: as much as the buffer holds.
    let found = groups(&view, Access::Read, 0..20, 40, &mut ScanFile { stripe_bytes: 0 });
    assert_eq!(found[0], (Window, 0..12, 4..44));
}

#[test]
fn a_function_is_told_all_that_the_thesis_says_and_whether_it_reads_or_writes() {
    /// Joins all, and notes what it is told.
    struct Notes(Vec<Step>);
    impl Aggregate for Notes {
        fn name(&self) -> &str {
            "notes"
        }
        fn decide(&mut self, step: &Step) -> Decision {
            self.0.push(*step);
            Decision::join(step)
        }
    }
    let view = FileView::from_tuples(100, [(10, 5), (0, 2), (20, 7)].map(tuple)).unwrap();
    for access in [Access::Read, Access::Write] {
        let mut notes = Notes(Vec::new());
        // From byte 4 of the first tuple to byte 9 of the second with data.
        let found = groups(&view, access, 4..19, 1000, &mut notes);
        assert_eq!(found, [(Window, 4..19, 104..126)]);
        let [first, empty, last] = notes.0[..] else { panic!("{:?}", notes.0) };
        assert!([first, empty, last].iter().all(|step| step.access == access));
        assert_eq!((first.tuple, empty.tuple, last.tuple), (0, 1, 2));
        assert_eq!((first.file, empty.file, last.file), (104, 115, 117));
        assert_eq!((first.data, last.data), (4, 10));
        assert_eq!((first.data_gathered, last.data_gathered), (0, 6));
        assert_eq!((first.span, empty.span, last.span), (6, 11, 22));
        assert_eq!((first.bytes_max, empty.bytes_max, last.bytes_max), (6, 0, 9));
        assert_eq!((first.hole, empty.hole, last.hole), (5, 2, 7));
        assert_eq!((first.data_left, last.data_left), (15, 9));
        assert!(first.completes_tuple && empty.completes_tuple && !last.completes_tuple);
        assert_eq!((last.buffer_bytes, last.room()), (1000, 978));
    }
}

#[test]
fn bytes_on_the_tuple_and_hole_bytes_on_both_sides_are_minded() {
    /// Stops within the second tuple, and takes holes along on both sides of the third.
    struct Script;
    impl Aggregate for Script {
        fn name(&self) -> &str {
            "script"
        }
        fn decide(&mut self, step: &Step) -> Decision {
            match (step.tuple, step.data) {
                (1, 10) => Decision { bytes: 4, ..Decision::stop(step) },
                (1, _) => Decision { hole_after: 3, hole_before_next: 2, ..Decision::stop(step) },
                (3, _) => Decision { hole_after: 6, ..Decision::stop(step) },
                _ => Decision::join(step),
            }
        }
    }
    let view =
        FileView::from_tuples(0, [(10, 10), (10, 10), (10, 10), (10, 10)].map(tuple)).unwrap();
    let found = groups(&view, Access::Read, 0..40, 1000, &mut Script);
    let expected = [
        // All of the first and 4 bytes of the second.
        (Window, 0..14, 0..24),
        // The rest of the second is one piece: what was added around it is of no use.
        (Each, 14..20, 24..30),
        // 2 bytes before the third, 6 behind the fourth.
        (Window, 20..40, 38..76),
    ];
    assert_eq!(found, expected);
}
