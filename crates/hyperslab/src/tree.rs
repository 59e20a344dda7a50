//! Which of many slabs overlap one.
//!
//! A k-d tree whose every node knows the interval that its subtree spans in each dimension: an interval tree, augmented in
//! all dimensions at once. The paper nests one interval tree for each dimension in the nodes of that before it; then a wish
//! that meets all intervals of the first dimension visits all of them, whatever the second says. Here each split is
//! along the dimension in which the boxes lie farthest apart, so that dimensions which nobody divides cost nothing.
//!
//! Trees are arrays that are built at once and not changed. What is inserted one by one fills trees of growing sizes
//! that are merged, so that n insertions cost O(n log² n) at most and n insertions at once O(n log n). What is removed is
//! left out of answers, and of the trees once it is half of them.
//!
//! # Source
//! Martsinkevich et al. 2018, §3.1; Bentley and Saxe 1980 for the growing trees.

use crate::{Slab, Span};

/// Something in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

/// Slabs of one rank by the boxes around them, with a value each.
#[derive(Debug, Clone)]
pub struct SlabTree<T> {
    rank: usize,
    /// By their `Id`s; none where something was removed.
    values: Vec<Option<T>>,
    free: Vec<u32>,
    /// Not in any tree yet.
    fresh: Shelf,
    /// Each smaller than the one before.
    forest: Vec<Shelf>,
    alive: usize,
    /// Removed, but still in `fresh` or `forest`.
    dead: Vec<u32>,
}

/// Boxes side by side; in the order of a tree, if it is one of the forest.
#[derive(Debug, Clone, Default)]
struct Shelf {
    ids: Vec<u32>,
    /// `rank` of each.
    spans: Vec<Span>,
    /// `rank` for each box in the middle of a range: what the boxes of that range span.
    hulls: Vec<Span>,
}

/// So few boxes are looked through one by one.
const LEAF: usize = 6;
/// So many are gathered before a tree is made of them.
const FRESH_MAX: usize = 32;

impl<T> SlabTree<T> {
    /// No slab of `rank` dimensions.
    #[must_use]
    pub fn new(rank: usize) -> Self {
        Self {
            rank,
            values: Vec::new(),
            free: Vec::new(),
            fresh: Shelf::default(),
            forest: Vec::new(),
            alive: 0,
            dead: Vec::new(),
        }
    }

    /// How many are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.alive
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.alive == 0
    }

    /// What was inserted as `id`, unless it was removed.
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&T> {
        self.values.get(id.0 as usize)?.as_ref()
    }

    /// Puts the box around `slab` into the tree.
    ///
    /// # Panics
    /// If the slab has another rank, or 2^32 are in it.
    pub fn insert(&mut self, slab: &Slab, value: T) -> Id {
        let id = self.store(slab, value);
        if self.fresh.ids.len() > FRESH_MAX {
            self.settle();
        }
        id
    }

    /// Puts many into the tree, which is then searched faster than if they had come one by one.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    pub fn extend<'a>(&mut self, slabs: impl IntoIterator<Item = (&'a Slab, T)>) {
        for (slab, value) in slabs {
            self.store(slab, value);
        }
        if self.fresh.ids.len() > LEAF {
            self.settle();
        }
    }

    fn store(&mut self, slab: &Slab, value: T) -> Id {
        assert_eq!(slab.rank(), self.rank, "a slab of another rank");
        let id = self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            u32::try_from(self.values.len() - 1).expect("fewer than 2^32 slabs")
        });
        self.values[id as usize] = Some(value);
        self.alive += 1;
        self.fresh.ids.push(id);
        self.fresh.spans.extend(slab.hull());
        Id(id)
    }

    /// Takes out what was inserted as `id`; none if it was already.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let value = self.values.get_mut(id.0 as usize)?.take()?;
        self.alive -= 1;
        self.dead.push(id.0);
        if self.dead.len() > self.alive.max(FRESH_MAX) {
            self.rebuild();
        }
        Some(value)
    }

    /// Makes one tree of all that is left.
    fn rebuild(&mut self) {
        let mut all = Shelf::default();
        for shelf in self.forest.drain(..).chain([std::mem::take(&mut self.fresh)]) {
            for (at, id) in shelf.ids.iter().enumerate() {
                if self.values[*id as usize].is_some() {
                    all.ids.push(*id);
                    all.spans.extend(&shelf.spans[at * self.rank..][..self.rank]);
                }
            }
        }
        self.free.append(&mut self.dead);
        self.forest.extend((!all.ids.is_empty()).then(|| all.arranged(self.rank)));
    }

    /// Makes a tree of what is fresh and of all trees that are not larger.
    fn settle(&mut self) {
        let mut all = std::mem::take(&mut self.fresh);
        while let Some(tree) = self.forest.pop_if(|tree| tree.ids.len() <= all.ids.len()) {
            all.ids.extend(tree.ids);
            all.spans.extend(tree.spans);
        }
        self.forest.push(all.arranged(self.rank));
    }

    /// Gives `found` everything whose box overlaps the one around `slab`, in no order; answers how many boxes were compared.
    pub fn overlapping<'a>(&'a self, slab: &Slab, mut found: impl FnMut(Id, &'a T)) -> u64 {
        if slab.rank() != self.rank || slab.is_empty() {
            return 0;
        }
        let wanted: Vec<Span> = slab.hull().collect();
        let mut compared = 0;
        let mut hit = |id: u32| {
            if let Some(value) = &self.values[id as usize] {
                found(Id(id), value);
            }
        };
        let mut ranges = Vec::new();
        for tree in &self.forest {
            ranges.push((0, tree.ids.len()));
            while let Some((from, to)) = ranges.pop() {
                if to - from <= LEAF {
                    compared += tree.scan(self.rank, from..to, &wanted, &mut hit);
                    continue;
                }
                let middle = from.midpoint(to);
                compared += 1;
                if !meet(&tree.hulls[middle * self.rank..][..self.rank], &wanted) {
                    continue;
                }
                compared += tree.scan(self.rank, middle..middle + 1, &wanted, &mut hit);
                ranges.push((middle + 1, to));
                ranges.push((from, middle));
            }
        }
        compared + self.fresh.scan(self.rank, 0..self.fresh.ids.len(), &wanted, &mut hit)
    }

    /// The same for many slabs, going down each tree once for all of them; `found` also gets the number of the slab.
    pub fn overlapping_each<'a>(
        &'a self,
        slabs: &[&Slab],
        mut found: impl FnMut(usize, Id, &'a T),
    ) -> u64 {
        let usable = |slab: &&Slab| slab.rank() == self.rank && !slab.is_empty();
        let mut wanted = Vec::with_capacity(slabs.len() * self.rank);
        let mut asking = Vec::with_capacity(slabs.len());
        for (number, slab) in slabs.iter().enumerate() {
            if usable(slab) {
                asking.push(number);
                wanted.extend(slab.hull());
            } else {
                wanted.resize(wanted.len() + self.rank, Span::default());
            }
        }
        let mut hit = |number: usize, id: u32| {
            if let Some(value) = &self.values[id as usize] {
                found(number, Id(id), value);
            }
        };
        let mut compared = 0;
        for shelf in self.forest.iter().chain([&self.fresh]) {
            let mut search =
                Search { shelf, rank: self.rank, wanted: &wanted, asking: &mut asking, compared };
            let all = 0..shelf.ids.len();
            // What is fresh is no tree: one leaf, whatever its size.
            search.down(all, 0, shelf.hulls.is_empty(), &mut hit);
            compared = search.compared;
        }
        compared
    }
}

/// Many slabs that are looked for at once.
struct Search<'a> {
    shelf: &'a Shelf,
    rank: usize,
    /// The boxes around the slabs, by their numbers.
    wanted: &'a [Span],
    /// Numbers of slabs; those that are still of interest at each depth lie behind those of the depth above.
    asking: &'a mut Vec<usize>,
    compared: u64,
}

impl Search<'_> {
    /// Looks through a range of boxes for the slabs whose numbers are behind `first`.
    fn down(
        &mut self,
        boxes: std::ops::Range<usize>,
        first: usize,
        flat: bool,
        hit: &mut impl FnMut(usize, u32),
    ) {
        let (rank, end) = (self.rank, self.asking.len());
        let leaf = flat || boxes.len() <= LEAF;
        let middle = boxes.start.midpoint(boxes.end);
        for at in first..end {
            let number = self.asking[at];
            let wanted = &self.wanted[number * rank..][..rank];
            let mut here = boxes.clone();
            if !leaf {
                self.compared += 1;
                if !meet(&self.shelf.hulls[middle * rank..][..rank], wanted) {
                    continue;
                }
                self.asking.push(number);
                here = middle..middle + 1;
            }
            self.compared += self.shelf.scan(rank, here, wanted, &mut |id| hit(number, id));
        }
        if self.asking.len() > end {
            self.down(boxes.start..middle, end, flat, hit);
            self.down(middle + 1..boxes.end, end, flat, hit);
            self.asking.truncate(end);
        }
    }
}

impl Shelf {
    fn scan(
        &self,
        rank: usize,
        boxes: std::ops::Range<usize>,
        wanted: &[Span],
        hit: &mut impl FnMut(u32),
    ) -> u64 {
        let compared = boxes.len() as u64;
        for at in boxes {
            if meet(&self.spans[at * rank..][..rank], wanted) {
                hit(self.ids[at]);
            }
        }
        compared
    }

    /// The same boxes in the order of a tree.
    fn arranged(self, rank: usize) -> Self {
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        let mut hulls = vec![Span::default(); self.ids.len() * rank];
        self.split(rank, &mut order, &mut hulls);
        Self {
            ids: order.iter().map(|&at| self.ids[at as usize]).collect(),
            spans: order
                .iter()
                .flat_map(|&at| &self.spans[at as usize * rank..][..rank])
                .copied()
                .collect(),
            hulls,
        }
    }

    /// Brings the middle of `order` to its middle, what lies before it before, and both sides into order likewise.
    fn split(&self, rank: usize, order: &mut [u32], hulls: &mut [Span]) {
        if order.len() <= LEAF || rank == 0 {
            return;
        }
        let of = |at: u32, d: usize| self.spans[at as usize * rank + d];
        let middle = order.len() / 2;
        let (mut widest, mut width_max) = (0, 0);
        for d in 0..rank {
            let mut hull = of(order[0], d);
            let (mut low, mut high) = (u64::MAX, 0);
            for &at in &*order {
                let span = of(at, d);
                hull = hull.hull(&span);
                let center = span.start.midpoint(span.end);
                (low, high) = (low.min(center), high.max(center));
            }
            hulls[middle * rank + d] = hull;
            if high - low > width_max {
                (widest, width_max) = (d, high - low);
            }
        }
        let (before, _, behind) = order.select_nth_unstable_by_key(middle, |&at| {
            let span = of(at, widest);
            span.start.midpoint(span.end)
        });
        let (left, right) = hulls.split_at_mut(middle * rank);
        self.split(rank, before, left);
        self.split(rank, behind, &mut right[rank..]);
    }
}

fn meet(a: &[Span], b: &[Span]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.overlaps(b))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::slab::tests::some;

    fn boxes_meet(a: &Slab, b: &Slab) -> bool {
        !a.is_empty() && !b.is_empty() && a.hull().zip(b.hull()).all(|(a, b)| a.overlaps(&b))
    }

    fn found(tree: &SlabTree<usize>, slab: &Slab) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        tree.overlapping(slab, |id, &number| {
            assert_eq!(tree.get(id), Some(&number));
            assert!(all.insert(number), "{number} twice");
        });
        all
    }

    /// What may be done to a tree.
    #[derive(Debug, Clone)]
    enum Deed {
        Insert(Slab),
        Extend(Vec<Slab>),
        Remove(prop::sample::Index),
    }

    fn deeds(rank: usize) -> impl Strategy<Value = Vec<Deed>> {
        let deed = prop_oneof![
            4 => some(rank, 2).prop_map(Deed::Insert),
            1 => prop::collection::vec(some(rank, 2), 0..60).prop_map(Deed::Extend),
            3 => any::<prop::sample::Index>().prop_map(Deed::Remove),
        ];
        prop::collection::vec(deed, 0..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn a_tree_finds_what_a_list_would(
            (deeds, wishes) in (0usize..4)
                .prop_flat_map(|rank| (deeds(rank), prop::collection::vec(some(rank, 2), 1..9)))
        ) {
            let mut tree = SlabTree::new(wishes[0].rank());
            // By number: the slab, and its id while it is known and in the tree.
            let mut list: Vec<(Slab, bool)> = Vec::new();
            for deed in deeds {
                match deed {
                    Deed::Insert(slab) => {
                        tree.insert(&slab, list.len());
                        list.push((slab, true));
                    }
                    Deed::Extend(slabs) => {
                        let from = list.len();
                        tree.extend(slabs.iter().enumerate().map(|(at, slab)| (slab, from + at)));
                        list.extend(slabs.into_iter().map(|slab| (slab, true)));
                    }
                    Deed::Remove(which) if !list.is_empty() => {
                        let number = which.index(list.len());
                        let at = tree.values.iter().position(|value| *value == Some(number));
                        let id = at.map(|at| Id(at as u32));
                        prop_assert_eq!(id.is_some(), list[number].1);
                        prop_assert_eq!(id.and_then(|id| tree.remove(id)), id.map(|_| number));
                        list[number].1 = false;
                    }
                    Deed::Remove(_) => {}
                }
            }
            prop_assert_eq!(tree.len(), list.iter().filter(|(_, alive)| *alive).count());
            let mut each = vec![BTreeSet::new(); wishes.len()];
            tree.overlapping_each(&wishes.iter().collect::<Vec<_>>(), |number, _, &value| {
                assert!(each[number].insert(value));
            });
            for (wish, each) in wishes.iter().zip(each) {
                let wanted: BTreeSet<usize> = (0..list.len())
                    .filter(|&number| list[number].1 && boxes_meet(&list[number].0, wish))
                    .collect();
                prop_assert_eq!(found(&tree, wish), wanted.clone());
                prop_assert_eq!(each, wanted);
            }
        }
    }

    /// The boxes that are compared when each box of a cubic grid is looked for.
    fn compared(side: u64, one_by_one: bool) -> u64 {
        let cell = |n: u64| {
            Slab::new(&[n / side / side * 10, n / side % side * 10, n % side * 10], &[10; 3])
        };
        let cells: Vec<Slab> = (0..side.pow(3)).map(|n| cell(n).unwrap()).collect();
        let mut tree = SlabTree::new(3);
        if one_by_one {
            for (number, slab) in cells.iter().enumerate() {
                tree.insert(slab, number);
            }
        } else {
            tree.extend(cells.iter().enumerate().map(|(number, slab)| (slab, number)));
        }
        let mut sum = 0;
        for (number, slab) in cells.iter().enumerate() {
            let mut hits = Vec::new();
            sum += tree.overlapping(slab, |_, &hit| hits.push(hit));
            assert_eq!(hits, [number]);
        }
        sum
    }

    #[test]
    fn finding_all_of_n_boxes_compares_n_log_n() {
        for one_by_one in [false, true] {
            for side in [4u64, 8, 16, 32] {
                let n = side * side * side;
                let log = u64::from(n.ilog2());
                let compared = compared(side, one_by_one);
                // Twice the depth and a leaf; trees that grew are some more of them.
                let most = n * (4 * log + 2 * LEAF as u64) * if one_by_one { 2 } else { 1 };
                assert!(compared <= most, "{compared} comparisons for {n} boxes, {one_by_one}");
            }
        }
    }

    #[test]
    fn what_was_removed_makes_room() {
        let mut tree = SlabTree::new(1);
        for turn in 0..1000u64 {
            let id = tree.insert(&Slab::new(&[turn], &[1]).unwrap(), turn);
            assert_eq!(tree.remove(id), Some(turn));
            assert_eq!(tree.remove(id), None);
        }
        assert!(tree.is_empty());
        assert!(tree.values.len() < 100, "{} places", tree.values.len());
    }
}
