//! Extent maps against the plainest model there is: an array with a value for each byte.

use extent::{ByteRange, Cut, ExtentMap, Piece};
use proptest::prelude::*;

/// A place in something that was written as a whole: which one, and how far into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    segment: u32,
    offset: u32,
}

impl Cut for Place {
    fn cut(self, by: u64) -> Self {
        Self { offset: self.offset + u32::try_from(by).expect("small"), ..self }
    }

    fn continued_by(&self, len: u64, next: &Self) -> bool {
        self.segment == next.segment && u64::from(self.offset) + len == u64::from(next.offset)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(ByteRange, Place),
    Clear(ByteRange),
    Truncate(u64),
}

fn range(end: u64) -> impl Strategy<Value = ByteRange> {
    (0..end, 0..end / 6).prop_map(|(start, len)| ByteRange::at(start, len))
}

fn step(end: u64) -> impl Strategy<Value = Step> {
    // Few segments and offsets, so that neighbours often continue each other.
    let place = (0u32..2, 0u32..300).prop_map(|(segment, offset)| Place { segment, offset });
    prop_oneof![
        8 => (range(end), place).prop_map(|(range, place)| Step::Insert(range, place)),
        // What continues what was there: the same offset in the file and in the segment.
        6 => (range(end), 2u32..4).prop_map(|(range, segment)| {
            let offset = u32::try_from(range.start()).expect("small");
            Step::Insert(range, Place { segment, offset })
        }),
        3 => range(end).prop_map(Step::Clear),
        1 => (0..end).prop_map(Step::Truncate),
    ]
}

type Model = Vec<Option<Place>>;

/// Tells the model what was displaced, and checks that it was there.
fn displace(model: &mut Model, cleared: ByteRange, told: &[(ByteRange, Place)]) {
    let mut next = cleared.start();
    for (range, place) in told {
        assert!(!range.is_empty() && range.start() >= next && cleared.contains_range(range));
        next = range.end();
        for at in range.start()..range.end() {
            assert_eq!(model[at as usize].take(), Some(place.cut(at - range.start())));
        }
    }
    let left = &model[cleared.start() as usize..cleared.end().min(model.len() as u64) as usize];
    assert!(left.iter().all(Option::is_none), "something was displaced without being told");
}

fn act(map: &mut ExtentMap<Place>, model: &mut Model, step: &Step) {
    let mut told = Vec::new();
    let all = model.len() as u64;
    match step {
        Step::Insert(range, place) => {
            map.insert(*range, *place, |range, place| told.push((range, place)));
            displace(model, *range, &told);
            for at in range.start()..range.end() {
                model[at as usize] = Some(place.cut(at - range.start()));
            }
        }
        Step::Clear(range) => {
            map.clear(*range, |range, place| told.push((range, place)));
            displace(model, *range, &told);
        }
        Step::Truncate(size) => {
            map.truncate(*size, |range, place| told.push((range, place)));
            displace(model, ByteRange::new(*size, all), &told);
        }
    }
}

fn compare(map: &ExtentMap<Place>, model: &Model) {
    let extents: Vec<(ByteRange, Place)> = map.iter().collect();
    assert_eq!(extents.len(), map.len());
    assert_eq!(map.is_empty(), extents.is_empty());
    let mut seen: Model = vec![None; model.len()];
    for (range, place) in &extents {
        for at in range.start()..range.end() {
            assert!(seen[at as usize].replace(place.cut(at - range.start())).is_none());
        }
    }
    assert_eq!(&seen, model);
    assert_eq!(map.bytes(), model.iter().flatten().count() as u64);
    assert_eq!(map.end(), model.iter().rposition(Option::is_some).map_or(0, |at| at as u64 + 1));
    for pair in extents.windows(2) {
        let ((a, first), (b, second)) = (pair[0], pair[1]);
        assert!(a.end() <= b.start());
        assert!(
            a.end() < b.start() || !first.continued_by(a.len(), &second),
            "{pair:?} are not merged"
        );
    }
}

fn compare_overlay(map: &ExtentMap<Place>, model: &Model, range: ByteRange) {
    let mut at = range.start();
    for Piece { range: piece, value } in map.overlay(range) {
        assert!(piece.start() == at && !piece.is_empty());
        for offset in piece.start()..piece.end() {
            let there = model.get(offset as usize).copied().flatten();
            assert_eq!(there, value.map(|value| value.cut(offset - piece.start())));
            assert_eq!(map.get(offset).map(|(value, _)| value), there);
        }
        at = piece.end();
    }
    assert_eq!(at, range.end());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_where_the_newest_insertion_put_it(
        steps in proptest::collection::vec(step(120), 1..60),
        asked in range(150),
    ) {
        let mut map = ExtentMap::new();
        let mut model: Model = vec![None; 150];
        for step in &steps {
            act(&mut map, &mut model, step);
            compare(&map, &model);
        }
        compare_overlay(&map, &model, asked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// So many extents that leaves are split and emptied.
    #[test]
    fn the_same_with_thousands_of_extents(
        seed in any::<u64>(),
        steps in proptest::collection::vec(step(9000), 40),
        asked in range(9000),
    ) {
        let mut map = ExtentMap::new();
        let mut model: Model = vec![None; 20_000];
        let mut state = seed;
        for count in 0u32..6000 {
            // Knuth's MMIX generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) % 10_000;
            let place = Place { segment: 9, offset: 2 * count };
            let step = Step::Insert(ByteRange::at(at, 1 + u64::from(count % 3)), place);
            act(&mut map, &mut model, &step);
        }
        compare(&map, &model);
        prop_assert!(map.len() > 300);
        for step in &steps {
            act(&mut map, &mut model, step);
        }
        compare(&map, &model);
        compare_overlay(&map, &model, asked);
    }
}

#[test]
fn an_extent_shorter_than_what_it_lies_in_leaves_both_ends() {
    let mut map = ExtentMap::new();
    let (old, new) = (Place { segment: 1, offset: 100 }, Place { segment: 2, offset: 0 });
    map.insert(ByteRange::new(0, 100), old, |_, _| panic!("nothing was there"));
    let mut told = Vec::new();
    map.insert(ByteRange::new(40, 60), new, |range, value| told.push((range, value)));
    assert_eq!(told, [(ByteRange::new(40, 60), old.cut(40))]);
    let all: Vec<_> = map.iter().collect();
    assert_eq!(
        all,
        [
            (ByteRange::new(0, 40), old),
            (ByteRange::new(40, 60), new),
            (ByteRange::new(60, 100), old.cut(60))
        ]
    );
    assert_eq!(map.get(59), Some((new.cut(19), 1)));
    assert_eq!(map.get(100), None);
}

#[test]
fn the_largest_offsets_are_offsets_too() {
    let mut map = ExtentMap::new();
    let place = Place { segment: 1, offset: 0 };
    map.insert(ByteRange::new(u64::MAX - 4, u64::MAX), place, |_, _| ());
    assert_eq!((map.end(), map.bytes()), (u64::MAX, 4));
    map.truncate(u64::MAX - 2, |_, _| ());
    assert_eq!((map.end(), map.bytes()), (u64::MAX - 2, 2));
    map.truncate(0, |_, _| ());
    assert!(map.is_empty());
}

#[test]
fn an_extent_that_reaches_beyond_where_a_leaf_once_began_is_found() {
    let mut map = ExtentMap::new();
    let place = |offset| Place { segment: 1, offset };
    for i in 0..1000_u32 {
        map.insert(ByteRange::at(u64::from(i) * 10, 5), place(i * 100), |_, _| ());
    }
    // The leaves' first extents go, the leaves stay.
    for i in 0..100 {
        map.clear(ByteRange::at(i * 100, 35), |_, _| ());
    }
    for i in 0..100 {
        map.insert(ByteRange::at(i * 100 + 95, 15), place(8), |_, _| ());
    }
    for offset in 0..9_000 {
        let told = map.overlay(ByteRange::at(offset, 1)).next().and_then(|piece| piece.value);
        assert_eq!(told, map.get(offset).map(|(value, _)| value));
        let of_hundred = offset % 100;
        if offset >= 100 && of_hundred < 10 {
            assert_eq!(told, Some(place(8).cut(of_hundred + 5)), "at {offset}");
        }
    }
}
