//! Indices of one dimension at equal distances.

use crate::{SlabError, Span};

/// `count` indices from `start`, each `step` behind the one before.
///
/// Equal sets of indices are equal values: no index at all starts at 0, and the step of fewer than two is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Steps {
    start: u64,
    step: u64,
    count: u64,
}

impl Steps {
    /// No index.
    pub const EMPTY: Self = Self { start: 0, step: 1, count: 0 };

    /// `count` indices from `start` by `step`.
    ///
    /// # Errors
    /// A step of 0, or a last index beyond 2^63 - 1; both say `dimension`.
    pub fn new(dimension: usize, start: u64, count: u64, step: u64) -> Result<Self, SlabError> {
        if step == 0 {
            return Err(SlabError::NoStep { dimension });
        }
        if count == 0 {
            return Ok(Self::EMPTY);
        }
        let last = u128::from(start) + u128::from(count - 1) * u128::from(step);
        if last >= 1 << 63 {
            return Err(SlabError::TooFar { dimension, start, count, step });
        }
        Ok(Self::made(start, step, count))
    }

    /// All indices of `span`.
    #[must_use]
    pub fn of(span: Span) -> Self {
        Self::made(span.start, 1, span.end.saturating_sub(span.start))
    }

    fn made(start: u64, step: u64, count: u64) -> Self {
        match count {
            0 => Self::EMPTY,
            1 => Self { start, step: 1, count },
            _ => Self { start, step, count },
        }
    }

    /// The first index; 0 if there is none.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// From one index to the next.
    #[must_use]
    pub const fn step(&self) -> u64 {
        self.step
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// From the first to behind the last.
    #[must_use]
    pub const fn span(&self) -> Span {
        let end = if self.count == 0 { self.start } else { self.last() + 1 };
        Span::new(self.start, end)
    }

    const fn last(&self) -> u64 {
        self.start + (self.count - 1) * self.step
    }

    /// Which of these indices `index` is, from 0.
    #[must_use]
    pub fn position(&self, index: u64) -> Option<u64> {
        let distance = index.checked_sub(self.start).filter(|_| !self.is_empty())?;
        let position = distance / self.step;
        (distance % self.step == 0 && position < self.count).then_some(position)
    }

    /// The index at `position`, which is below the count.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.count);
        self.start + position * self.step
    }

    /// The indices that are in both, which are at equal distances again.
    ///
    /// # Source
    /// The Chinese remainder theorem for moduli that may have a common divisor.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::EMPTY;
        }
        let (low, high) = (self.start.max(other.start), self.last().min(other.last()));
        if low > high {
            return Self::EMPTY;
        }
        if self.step == 1 && other.step == 1 {
            return Self::made(low, 1, high - low + 1);
        }
        let (step, its) = (i128::from(self.step), i128::from(other.step));
        let (divisor, inverse) = divisor_and_inverse(step, its);
        let apart = i128::from(other.start) - i128::from(self.start);
        if apart % divisor != 0 {
            return Self::EMPTY;
        }
        let period = its / divisor;
        // All below 2^63, hence products below 2^126.
        let turns = ((apart / divisor).rem_euclid(period) * inverse.rem_euclid(period)) % period;
        let common = step * period;
        let anchor = i128::from(self.start) + step * turns;
        let first = anchor + (i128::from(low) - anchor + common - 1).div_euclid(common) * common;
        if first > i128::from(high) {
            return Self::EMPTY;
        }
        let count = (i128::from(high) - first) / common + 1;
        // `first` and all that follow lie in both; a step that is too great is that of one index.
        let step = u64::try_from(common).unwrap_or(1);
        Self::made(first as u64, step, count as u64)
    }

    /// Gives `keep` the indices that are not in `other`, in disjoint parts.
    pub fn without(&self, other: &Self, mut keep: impl FnMut(Self)) {
        let shared = self.intersection(other);
        if shared.is_empty() {
            if !self.is_empty() {
                keep(*self);
            }
            return;
        }
        let mut part = |start, step, count| {
            if count > 0 {
                keep(Self::made(start, step, count));
            }
        };
        let before = (shared.start - self.start) / self.step;
        part(self.start, self.step, before);
        if shared.count > 1 {
            for offset in 1..shared.step / self.step {
                part(shared.start + offset * self.step, shared.step, shared.count - 1);
            }
        }
        let behind = (self.last() - shared.last()) / self.step;
        if behind > 0 {
            part(shared.last() + self.step, self.step, behind);
        }
    }
}

/// The greatest common divisor of `a` and `b`, and `i` such that `a * i` leaves it modulo `b`.
fn divisor_and_inverse(a: i128, b: i128) -> (i128, i128) {
    let (mut rest, mut next) = (a, b);
    let (mut factor, mut next_factor) = (1, 0);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (factor, next_factor) = (next_factor, factor - quotient * next_factor);
    }
    (rest, factor)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(steps: &Steps) -> BTreeSet<u64> {
        (0..steps.count()).map(|position| steps.at(position)).collect()
    }

    fn some() -> impl Strategy<Value = Steps> {
        (0u64..40, 0u64..20, 1u64..9)
            .prop_map(|(start, count, step)| Steps::new(0, start, count, step).unwrap())
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let far = Steps::new(3, 1 << 62, 3, 1 << 62).unwrap_err();
        assert!(far.to_string().starts_with("dimension 3: 3 elements"), "{far}");
        assert!(Steps::new(0, (1 << 63) - 1, 1, 1).is_ok());
        assert!(Steps::new(0, 1 << 63, 1, 1).is_err());
        assert_eq!(Steps::new(1, 0, 1, 0), Err(SlabError::NoStep { dimension: 1 }));
        assert_eq!(Steps::new(0, 9, 0, 7), Ok(Steps::EMPTY));
    }

    #[test]
    fn steps_whose_common_multiple_is_beyond_every_index_share_one() {
        let a = Steps::new(0, 0, 2, (1 << 62) - 1).unwrap();
        let b = Steps::new(0, 0, 2, (1 << 62) - 2).unwrap();
        assert_eq!(a.intersection(&b), Steps::new(0, 0, 1, 1).unwrap());
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets(a in some(), b in some()) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(set(&a.intersection(&b)), &x & &y);
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            let mut rest = BTreeSet::new();
            a.without(&b, |part| {
                for index in set(&part) {
                    assert!(rest.insert(index), "{index} twice");
                }
            });
            prop_assert_eq!(rest, &x - &y);
            for index in 0..300 {
                prop_assert_eq!(a.position(index).is_some(), x.contains(&index));
            }
            prop_assert_eq!(a.span().start, x.first().copied().unwrap_or(0));
            prop_assert_eq!(a.span().end, x.last().map_or(0, |last| last + 1));
            prop_assert_eq!(a == b, x == y);
        }
    }
}
