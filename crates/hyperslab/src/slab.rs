//! Regular parts of an array.

use std::fmt;

use crate::{SlabError, Span, Steps};

/// The elements whose index in each dimension is one of its [`Steps`]; the last dimension changes fastest.
///
/// A scalar has no dimension and one element.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slab(Box<[Steps]>);

impl Slab {
    /// What `start` and `count` of netCDF's `vara` calls name.
    ///
    /// # Errors
    /// An index beyond 2^63 - 1, lists of different lengths.
    pub fn new(start: &[u64], count: &[u64]) -> Result<Self, SlabError> {
        Self::make(start, count, None)
    }

    /// What `start`, `count` and `stride` of the `vars` and `varm` calls name.
    ///
    /// # Errors
    /// An index beyond 2^63 - 1, a stride of 0, lists of different lengths.
    pub fn strided(start: &[u64], count: &[u64], stride: &[u64]) -> Result<Self, SlabError> {
        Self::make(start, count, Some(stride))
    }

    fn make(start: &[u64], count: &[u64], stride: Option<&[u64]>) -> Result<Self, SlabError> {
        let steps = stride.map_or(start.len(), <[u64]>::len);
        if start.len() != count.len() || start.len() != steps {
            return Err(SlabError::Ranks { starts: start.len(), counts: count.len(), steps });
        }
        let dimension = |d: usize| Steps::new(d, start[d], count[d], stride.map_or(1, |s| s[d]));
        (0..start.len()).map(dimension).collect::<Result<_, _>>().map(Self)
    }

    /// The slab with these indices in each dimension.
    #[must_use]
    pub fn from_steps(dimensions: impl IntoIterator<Item = Steps>) -> Self {
        Self(dimensions.into_iter().collect())
    }

    /// All elements of an array of these lengths.
    #[must_use]
    pub fn all(lengths: &[u64]) -> Self {
        Self::from_steps(lengths.iter().map(|&length| Steps::of(Span::new(0, length))))
    }

    /// The dimensions, slowest first.
    #[must_use]
    pub fn dimensions(&self) -> &[Steps] {
        &self.0
    }

    /// How many dimensions there are.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many elements.
    #[must_use]
    pub fn elements(&self) -> u128 {
        self.0.iter().map(|steps| u128::from(steps.count())).fold(1, u128::saturating_mul)
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(Steps::is_empty)
    }

    /// The smallest box around it.
    pub fn hull(&self) -> impl ExactSizeIterator<Item = Span> + '_ {
        self.0.iter().map(Steps::span)
    }

    /// The elements of both; none if the ranks differ.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.rank() != other.rank() {
            return None;
        }
        let mut shared = Vec::with_capacity(self.rank());
        for (mine, its) in self.0.iter().zip(&other.0) {
            let steps = mine.intersection(its);
            if steps.is_empty() {
                return None;
            }
            shared.push(steps);
        }
        Some(Self(shared.into()))
    }

    /// Whether every element of `other` is in this one.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty() || self.intersection(other).as_ref() == Some(other)
    }

    /// Gives `keep` the elements that are not in `other`, in disjoint slabs.
    pub fn without(&self, other: &Self, mut keep: impl FnMut(Self)) {
        let Some(shared) = self.intersection(other) else {
            if !self.is_empty() {
                keep(self.clone());
            }
            return;
        };
        for d in 0..self.rank() {
            self.0[d].without(&shared.0[d], |part| {
                let dimensions = shared.0[..d].iter().chain([&part]).chain(&self.0[d + 1..]);
                keep(Self(dimensions.copied().collect()));
            });
        }
    }

    /// What is left of all of `slabs` without this one.
    #[must_use]
    pub fn cut_from(&self, slabs: Vec<Self>) -> Vec<Self> {
        let mut left = Vec::with_capacity(slabs.len());
        for slab in slabs {
            slab.without(self, |part| left.push(part));
        }
        left
    }
}

/// `start:end` of each dimension, with `:step` where it is not 1, and how many: `[0:4, 2:11:3]`.
impl fmt::Display for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (d, steps) in self.0.iter().enumerate() {
            let Span { start, end } = steps.span();
            write!(f, "{}{start}:{end}", if d == 0 { "" } else { ", " })?;
            if steps.step() != 1 {
                write!(f, ":{}", steps.step())?;
            }
        }
        f.write_str("]")
    }
}

/// What of `whole` is in none of `parts`.
///
/// Where there are many parts, the whole is halved until few of them meet a half, so that each part is held only against
/// what is near it.
#[must_use]
pub fn gaps(whole: &Slab, parts: &[&Slab]) -> Vec<Slab> {
    let mut found = Vec::new();
    gather_gaps(whole, parts, &mut found);
    found
}

/// Among so few parts nothing is gained by halving.
const FEW: usize = 8;

fn gather_gaps(whole: &Slab, parts: &[&Slab], found: &mut Vec<Slab>) {
    let near: Vec<&Slab> =
        parts.iter().copied().filter(|part| whole.intersection(part).is_some()).collect();
    let longest = (0..whole.rank()).max_by_key(|&d| whole.0[d].count());
    if let Some(d) = longest.filter(|&d| near.len() > FEW && whole.0[d].count() > 1) {
        let steps = whole.0[d];
        let half = steps.count() / 2;
        for steps in [
            Steps::new(d, steps.start(), half, steps.step()),
            Steps::new(d, steps.at(half), steps.count() - half, steps.step()),
        ] {
            // Both lie within what was in range.
            let mut dimensions = whole.0.clone();
            dimensions[d] = steps.unwrap_or(Steps::EMPTY);
            gather_gaps(&Slab(dimensions), &near, found);
        }
        return;
    }
    let mut left = vec![whole.clone()];
    for part in near {
        left = part.cut_from(left);
    }
    found.extend(left.into_iter().filter(|slab| !slab.is_empty()));
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Every index of every element.
    pub(crate) fn set(slab: &Slab) -> BTreeSet<Vec<u64>> {
        let mut all = BTreeSet::from([Vec::new()]);
        for steps in slab.dimensions() {
            let indexes = (0..steps.count()).map(|position| steps.at(position));
            let longer = |index: u64| all.iter().map(move |one| [&one[..], &[index]].concat());
            all = indexes.flat_map(longer).collect();
        }
        all
    }

    pub(crate) fn some(rank: usize, steps_max: u64) -> impl Strategy<Value = Slab> {
        prop::collection::vec((0u64..8, 0u64..6, 1..=steps_max), rank).prop_map(|dimensions| {
            let of = |(d, &(start, count, step)): (usize, &(u64, u64, u64))| {
                Steps::new(d, start, count, step).unwrap()
            };
            Slab::from_steps(dimensions.iter().enumerate().map(of))
        })
    }

    #[test]
    fn scalars_are_one_element() {
        let scalar = Slab::new(&[], &[]).unwrap();
        assert_eq!((scalar.elements(), scalar.is_empty()), (1, false));
        assert_eq!(scalar.intersection(&scalar), Some(scalar.clone()));
        scalar.without(&scalar, |part| panic!("{part} is left"));
        assert_eq!(scalar.to_string(), "[]");
    }

    #[test]
    fn lists_of_other_lengths_are_refused() {
        assert!(Slab::new(&[1], &[]).is_err());
        assert!(Slab::strided(&[1], &[1], &[1, 1]).is_err());
    }

    #[test]
    fn slabs_are_written_as_ranges() {
        let slab = Slab::strided(&[0, 2], &[4, 3], &[1, 4]).unwrap();
        assert_eq!(slab.to_string(), "[0:4, 2:11:4]");
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets(
            (a, b) in (0usize..4).prop_flat_map(|rank| (some(rank, 3), some(rank, 3)))
        ) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(a.elements(), x.len() as u128);
            let shared = a.intersection(&b).map(|slab| set(&slab)).unwrap_or_default();
            prop_assert_eq!(&shared, &(&x & &y));
            prop_assert_eq!(a.contains(&b), y.is_subset(&x));
            let mut rest = BTreeSet::new();
            a.without(&b, |part| {
                for element in set(&part) {
                    assert!(rest.insert(element), "twice");
                }
            });
            prop_assert_eq!(rest, &x - &y);
        }

        #[test]
        fn gaps_are_what_no_part_holds(
            (whole, parts) in (1usize..4)
                .prop_flat_map(|rank| (some(rank, 2), prop::collection::vec(some(rank, 2), 0..24)))
        ) {
            let mut wanted = set(&whole);
            for part in &parts {
                wanted = &wanted - &set(part);
            }
            let mut found = BTreeSet::new();
            for gap in gaps(&whole, &parts.iter().collect::<Vec<_>>()) {
                for element in set(&gap) {
                    prop_assert!(found.insert(element));
                }
            }
            prop_assert_eq!(found, wanted);
        }
    }
}
