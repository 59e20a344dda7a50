//! Which elements of one memory become which of another.

use crate::{Slab, SlabError};

/// How the elements of a slab lie in a program's memory: how many elements apart neighbours of each dimension are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory(Box<[i64]>);

impl Memory {
    /// Without gaps, the last dimension fastest: what `vara` and `vars` calls mean.
    ///
    /// # Errors
    /// More elements than any memory has.
    pub fn dense(slab: &Slab) -> Result<Self, SlabError> {
        let mut distances = vec![0; slab.rank()];
        let mut distance = 1i64;
        for (d, steps) in slab.dimensions().iter().enumerate().rev() {
            distances[d] = distance;
            let (start, count, step) = (steps.start(), steps.count(), steps.step());
            let far = SlabError::TooFar { dimension: d, start, count, step };
            let count = i64::try_from(count.max(1)).map_err(|_| far.clone())?;
            distance = distance.checked_mul(count).ok_or(far)?;
        }
        Ok(Self(distances.into()))
    }

    /// As `imap` of the `varm` calls says, in elements.
    #[must_use]
    pub fn mapped(imap: &[i64]) -> Self {
        Self(imap.into())
    }

    /// Elements between neighbours of each dimension.
    #[must_use]
    pub fn distances(&self) -> &[i64] {
        &self.0
    }
}

/// One level of a nest of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// How often.
    pub count: u64,
    /// Elements by which the source moves on each time.
    pub source: i64,
    /// Elements by which the destination does.
    pub destination: i64,
}

/// So many elements that follow each other on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Element of the source's memory.
    pub source: i64,
    /// Element of the destination's memory.
    pub destination: i64,
    /// How many.
    pub length: u64,
}

/// The runs of elements that bring a part of a variable from one memory to another, as a nest of loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    first: Run,
    /// Outermost first.
    loops: Vec<Loop>,
}

impl Copies {
    /// How `part` gets from a memory that holds the slab `from` to one that holds `to`; none if it is not in both, or if the
    /// ranks of slabs and memories differ.
    #[must_use]
    pub fn between(part: &Slab, from: (&Slab, &Memory), to: (&Slab, &Memory)) -> Option<Self> {
        let (source, by) = side(part, from)?;
        let (destination, its) = side(part, to)?;
        let mut loops: Vec<Loop> = Vec::with_capacity(part.rank());
        for ((steps, source), destination) in part.dimensions().iter().zip(by).zip(its) {
            let next = Loop { count: steps.count(), source, destination };
            match loops.last_mut() {
                _ if next.count == 1 => {}
                // An outer loop that goes on where the inner one ends is the same loop.
                Some(outer) if continues(outer, &next) => {
                    *outer = Loop { count: outer.count * next.count, ..next };
                }
                _ => loops.push(next),
            }
        }
        let mut length = u64::from(!part.is_empty());
        if let Some(Loop { count, source: 1, destination: 1 }) = loops.last() {
            length *= count;
            loops.pop();
        }
        if part.is_empty() {
            loops.clear();
        }
        Some(Self { first: Run { source, destination, length }, loops })
    }

    /// How `part` is gathered from a memory that holds the slab `from`, to lie without gaps; none if it is not in it.
    #[must_use]
    pub fn gather(part: &Slab, from: (&Slab, &Memory)) -> Option<Self> {
        let dense = Memory::dense(part).ok()?;
        Self::between(part, from, (part, &dense))
    }

    /// How `part`, which lies without gaps, is scattered to a memory that holds the slab `to`.
    #[must_use]
    pub fn scatter(part: &Slab, to: (&Slab, &Memory)) -> Option<Self> {
        let dense = Memory::dense(part).ok()?;
        Self::between(part, (part, &dense), to)
    }

    /// The loops around a run, outermost first.
    #[must_use]
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// The first run; all are of its length.
    #[must_use]
    pub fn first(&self) -> Run {
        self.first
    }

    /// How many runs there are.
    #[must_use]
    pub fn len(&self) -> u128 {
        let turns = self.loops.iter().map(|level| u128::from(level.count));
        turns.fold(u128::from(self.first.length > 0), u128::saturating_mul)
    }

    /// Whether nothing is copied.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.length == 0
    }

    /// Every run, in the order of the elements.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut turns = vec![0u64; self.loops.len()];
        let mut next = (!self.is_empty()).then_some(self.first);
        std::iter::from_fn(move || {
            let run = next?;
            next = None;
            let mut moved = run;
            for (turn, level) in turns.iter_mut().zip(&self.loops).rev() {
                if *turn + 1 < level.count {
                    *turn += 1;
                    moved.source += level.source;
                    moved.destination += level.destination;
                    next = Some(moved);
                    break;
                }
                // In range, as every element of the slab was.
                moved.source -= *turn as i64 * level.source;
                moved.destination -= *turn as i64 * level.destination;
                *turn = 0;
            }
            Some(run)
        })
    }
}

/// Where the first element of `part` lies in a memory that holds `whole`, and by how many elements it goes on in each dimension.
fn side(part: &Slab, (whole, memory): (&Slab, &Memory)) -> Option<(i64, Vec<i64>)> {
    let rank = part.rank();
    if whole.rank() != rank || memory.0.len() != rank || !whole.contains(part) {
        return None;
    }
    if part.is_empty() {
        return Some((0, vec![0; rank]));
    }
    let (mut first, mut by) = (0i64, Vec::with_capacity(rank));
    for ((part, whole), distance) in part.dimensions().iter().zip(whole.dimensions()).zip(&memory.0)
    {
        let position = i64::try_from(whole.position(part.start())?).ok()?;
        first = first.checked_add(position.checked_mul(*distance)?)?;
        // A part of a slab goes by multiples of its steps.
        let times = if part.count() > 1 { part.step() / whole.step() } else { 1 };
        let step = i64::try_from(times).ok()?.checked_mul(*distance)?;
        // So that no run computed later leaves what a number can hold.
        step.checked_mul(i64::try_from(part.count()).ok()?)?.checked_add(first)?;
        by.push(step);
    }
    Some((first, by))
}

fn continues(outer: &Loop, inner: &Loop) -> bool {
    let ends =
        |step: i64| i64::try_from(inner.count).ok().and_then(|count| step.checked_mul(count));
    ends(inner.source) == Some(outer.source) && ends(inner.destination) == Some(outer.destination)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slab::tests::{set, some};

    /// Where an element lies, the slow way.
    fn place(index: &[u64], slab: &Slab, memory: &Memory) -> i64 {
        let positions = slab.dimensions().iter().zip(index).map(|(s, &i)| s.position(i).unwrap());
        positions.zip(memory.distances()).map(|(position, by)| position as i64 * by).sum()
    }

    #[test]
    fn rows_that_follow_each_other_are_one_run() {
        let whole = Slab::new(&[0, 0], &[8, 16]).unwrap();
        let memory = Memory::dense(&whole).unwrap();
        let rows = Slab::new(&[2, 0], &[3, 16]).unwrap();
        let copies = Copies::gather(&rows, (&whole, &memory)).unwrap();
        assert_eq!(copies.first(), Run { source: 32, destination: 0, length: 48 });
        assert_eq!(copies.len(), 1);
        let columns = Slab::new(&[0, 4], &[8, 2]).unwrap();
        let copies = Copies::gather(&columns, (&whole, &memory)).unwrap();
        assert_eq!((copies.len(), copies.first().length), (8, 2));
    }

    #[test]
    fn billions_of_elements_cost_nothing() {
        let whole = Slab::new(&[0, 0, 0], &[1 << 16, 1 << 16, 1 << 16]).unwrap();
        let memory = Memory::dense(&whole).unwrap();
        let part = Slab::strided(&[1, 1, 1], &[1 << 15, 1 << 15, 1 << 15], &[2, 2, 2]).unwrap();
        let copies = Copies::gather(&part, (&whole, &memory)).unwrap();
        assert_eq!(copies.len(), 1 << 45);
    }

    #[test]
    fn what_is_elsewhere_has_no_place() {
        let whole = Slab::new(&[0], &[4]).unwrap();
        let memory = Memory::dense(&whole).unwrap();
        assert_eq!(Copies::gather(&Slab::new(&[2], &[4]).unwrap(), (&whole, &memory)), None);
        let other = Slab::new(&[0, 0], &[1, 1]).unwrap();
        assert_eq!(Copies::gather(&other, (&whole, &memory)), None);
        let far = Memory::mapped(&[i64::MAX]);
        assert_eq!(Copies::gather(&Slab::new(&[2], &[2]).unwrap(), (&whole, &far)), None);
    }

    fn memories(rank: usize) -> impl Strategy<Value = Vec<i64>> {
        prop::collection::vec(-50i64..50, rank)
    }

    proptest! {
        #[test]
        fn every_element_gets_to_its_place_once(
            (from, to, imap, dense) in (0usize..4).prop_flat_map(|rank| {
                (some(rank, 3), some(rank, 3), memories(rank), any::<bool>())
            })
        ) {
            let Some(part) = from.intersection(&to) else { return Ok(()) };
            let memory = if dense { Memory::dense(&from).unwrap() } else { Memory::mapped(&imap) };
            let target = Memory::dense(&to).unwrap();
            let copies = Copies::between(&part, (&from, &memory), (&to, &target)).unwrap();
            let mut moved = Vec::new();
            for run in copies.runs() {
                let length = run.length as i64;
                moved.extend((0..length).map(|i| (run.source + i, run.destination + i)));
            }
            prop_assert_eq!(copies.runs().count() as u128, copies.len());
            let wanted: Vec<_> = set(&part)
                .iter()
                .map(|index| (place(index, &from, &memory), place(index, &to, &target)))
                .collect();
            prop_assert_eq!(moved, wanted);
        }
    }
}
