//! Ranges against the plainest model there is: sets of offsets.

use std::collections::BTreeSet;

use extent::ByteRange;
use proptest::prelude::*;

fn set(range: &ByteRange) -> BTreeSet<u64> {
    (range.start()..range.end()).collect()
}

fn range() -> impl Strategy<Value = ByteRange> {
    (0u64..40, 0u64..40).prop_map(|(start, end)| ByteRange::new(start, end))
}

proptest! {
    #[test]
    fn questions_are_answered_as_by_sets(a in range(), b in range(), offset in 0u64..45) {
        let (in_a, in_b) = (set(&a), set(&b));
        prop_assert_eq!(a.len(), in_a.len() as u64);
        prop_assert_eq!(a.is_empty(), in_a.is_empty());
        prop_assert_eq!(a.contains(offset), in_a.contains(&offset));
        prop_assert_eq!(a.contains_range(&b), in_b.is_subset(&in_a));
        prop_assert_eq!(a.overlaps(&b), !in_a.is_disjoint(&in_b));
        prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
    }

    #[test]
    fn algebra_is_that_of_sets(a in range(), b in range(), offset in 0u64..45) {
        let (in_a, in_b) = (set(&a), set(&b));
        prop_assert_eq!(set(&a.intersection(&b)), &in_a & &in_b);
        let [before, behind] = a.without(&b);
        prop_assert_eq!(&set(&before) | &set(&behind), &in_a - &in_b);
        prop_assert!(before.is_empty() || behind.is_empty() || before.end() < behind.start());
        let (before, behind) = a.split_at(offset);
        prop_assert_eq!(&set(&before) | &set(&behind), in_a.clone());
        prop_assert!(set(&before).iter().all(|&x| x < offset));
        prop_assert!(set(&behind).iter().all(|&x| x >= offset));
        let hull = set(&a.hull(&b));
        let union = &in_a | &in_b;
        prop_assert_eq!(hull.first(), union.first());
        prop_assert_eq!(hull.last(), union.last());
        if a.touches(&b) && !a.is_empty() && !b.is_empty() {
            prop_assert_eq!(hull, union);
        }
    }

    #[test]
    fn pieces_cover_the_range_in_order(a in range(), len_max in 1u64..9) {
        let mut next = a.start();
        for piece in a.pieces(len_max) {
            prop_assert_eq!(piece.start(), next);
            prop_assert!(!piece.is_empty() && piece.len() <= len_max);
            next = piece.end();
        }
        prop_assert_eq!(next, a.end().max(a.start()));
    }

    #[test]
    fn alignment_grows_to_the_nearest_multiples(a in range(), power in 0u32..5) {
        let unit = 1 << power;
        let aligned = a.aligned(unit);
        prop_assert!(aligned.contains_range(&a));
        prop_assert_eq!((aligned.start() % unit, aligned.end() % unit), (0, 0));
        prop_assert!(a.start() - aligned.start() < unit && aligned.end() - a.end() < unit);
    }
}

#[test]
fn the_largest_offset_is_no_overflow() {
    let last = ByteRange::at(u64::MAX - 1, 10);
    assert_eq!((last.len(), last.end()), (1, u64::MAX));
    assert_eq!(last.aligned(4096).end(), u64::MAX);
    assert_eq!(last.pieces(4).count(), 1);
}
