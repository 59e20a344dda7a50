//! A leaf: where all elements of one atom lie, in closed form.
//!
//! Along every dimension that the dataset has around the atom, a leaf holds an arithmetic
//! progression of indexes, and the bytes from one of them to the next are always the same. What two
//! leaves of one atom have in common is, dimension by dimension, the intersection of two
//! progressions, which is one again.

use drepl::definition::ByteOrder;

/// The indexes that a leaf has along one dimension of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The dataset's index of the leaf's element 0.
    pub(crate) start: i64,
    /// From one element's index to the next one's; not 0.
    pub(crate) step: i64,
    /// How many elements; not 0.
    pub(crate) count: u64,
    /// Bytes from one element to the next.
    pub(crate) stride: u64,
}

/// Where all elements of one atom lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Which atom of the dataset.
    pub(crate) atom: u32,
    /// Which file of the replica.
    pub(crate) file: u32,
    /// Which of the placed variables it belongs to.
    pub(crate) variable: u32,
    /// Where its first element lies, not counting the markers between subrecords.
    pub(crate) offset: u64,
    /// The size of an element.
    pub(crate) bytes: u32,
    /// Of numbers of more than one byte.
    pub(crate) order: Option<ByteOrder>,
    /// One for each dimension of the dataset around the atom, the outermost first.
    pub(crate) axes: Vec<Axis>,
}

impl Leaf {
    /// The same elements, restricted along one axis to every `step`th from `first`.
    pub(crate) fn restricted(&self, axis: usize, first: u64, step: u64, count: u64) -> Leaf {
        let mut leaf = self.clone();
        leaf.restrict(axis, first, step, count);
        leaf
    }

    pub(crate) fn restrict(&mut self, axis: usize, first: u64, step: u64, count: u64) {
        let axis = &mut self.axes[axis];
        self.offset += axis.stride * first;
        axis.start += axis.step * first as i64;
        axis.count = count;
        if count > 1 {
            axis.step *= step as i64;
            axis.stride *= step;
        }
    }

    /// How many elements.
    pub(crate) fn count(&self) -> u64 {
        self.axes.iter().map(|axis| axis.count).product()
    }

    /// What both have, one [`Common`] per axis.
    pub(crate) fn common(&self, other: &Leaf) -> Option<Vec<Common>> {
        self.axes.iter().zip(&other.axes).map(|(near, far)| common(near, far)).collect()
    }

    /// Whether `other` has every element of this leaf.
    pub(crate) fn is_within(&self, common: &[Common]) -> bool {
        self.axes.iter().zip(common).all(|(axis, common)| axis.count == common.count)
    }

    /// Adds to `rest` the leaves that remain when `common` is taken away, and says how many; adds
    /// none and says `None` when there would be more than `limit`.
    pub(crate) fn without(
        &self,
        common: &[Common],
        limit: usize,
        rest: &mut Vec<Leaf>,
    ) -> Option<usize> {
        let begin = rest.len();
        let mut inside = self.clone();
        for (k, held) in common.iter().enumerate() {
            let count = self.axes[k].count;
            let past = held.near_first + held.near_step * (held.count - 1) + 1;
            if held.near_first > 0 {
                rest.push(inside.restricted(k, 0, 1, held.near_first));
            }
            if past < count {
                rest.push(inside.restricted(k, past, 1, count - past));
            }
            if held.near_step > 1 && held.count > 1 {
                // Between the elements held lie `near_step - 1` progressions, or `count - 1` runs.
                let (gap, gaps) = (held.near_step - 1, held.count - 1);
                if rest.len() as u64 + gap.min(gaps) > (begin + limit) as u64 {
                    rest.truncate(begin);
                    return None;
                }
                if gap <= gaps {
                    for r in 1..=gap {
                        rest.push(inside.restricted(k, held.near_first + r, held.near_step, gaps));
                    }
                } else {
                    for g in 0..gaps {
                        let first = held.near_first + g * held.near_step + 1;
                        rest.push(inside.restricted(k, first, 1, gap));
                    }
                }
            }
            inside.restrict(k, held.near_first, held.near_step, held.count);
        }
        if rest.len() > begin + limit {
            rest.truncate(begin);
            return None;
        }
        Some(rest.len() - begin)
    }
}

/// What two axes have in common: `count` indexes, found on the near axis at elements
/// `near_first + near_step * m`, on the far axis at `far_first + far_step * m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) count: u64,
    pub(crate) near_first: u64,
    pub(crate) near_step: u64,
    pub(crate) far_first: u64,
    pub(crate) far_step: i64,
}

fn common(near: &Axis, far: &Axis) -> Option<Common> {
    if (near.start, near.step) == (far.start, far.step) {
        return Some(Common {
            count: near.count.min(far.count),
            near_first: 0,
            near_step: 1,
            far_first: 0,
            far_step: 1,
        });
    }
    let (a, b) = (i128::from(near.step), i128::from(far.step));
    let (near_start, far_start) = (i128::from(near.start), i128::from(far.start));
    let divisor = gcd(a.abs(), b.abs());
    let distance = far_start - near_start;
    if distance % divisor != 0 {
        return None;
    }
    // near_start + a * i is one of the far indexes where a/g * i = distance/g (mod |b|/g).
    let period = b.abs() / divisor;
    let residue = ((distance / divisor).rem_euclid(period)
        * inverse((a / divisor).rem_euclid(period), period))
    .rem_euclid(period);
    // And it is not outside of the far ones.
    let far_last = far_start + b * (i128::from(far.count) - 1);
    let (low, high) = (far_start.min(far_last), far_start.max(far_last));
    let (from, to) = if a > 0 {
        (div_ceil(low - near_start, a), (high - near_start).div_euclid(a))
    } else {
        (div_ceil(near_start - high, -a), (near_start - low).div_euclid(-a))
    };
    let from = from.max(0);
    let to = to.min(i128::from(near.count) - 1);
    let first = from + (residue - from).rem_euclid(period);
    if first > to {
        return None;
    }
    Some(Common {
        count: ((to - first) / period + 1) as u64,
        near_first: first as u64,
        near_step: period as u64,
        far_first: ((near_start + a * first - far_start) / b) as u64,
        far_step: (a * period / b) as i64,
    })
}

fn div_ceil(a: i128, b: i128) -> i128 {
    -((-a).div_euclid(b))
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The number that gives 1 when multiplied by `a`, modulo `m`; `a` and `m` are coprime.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut r, mut next_r) = (m, a);
    let (mut t, mut next_t) = (0, 1);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (t, next_t) = (next_t, t - quotient * next_t);
    }
    t.rem_euclid(m)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_indexes_are_those_of_a_search() {
        let axes = |start: i64, step: i64, count: u64| Axis { start, step, count, stride: 1 };
        let mut seen = 0;
        for (near_step, far_step) in
            [(1, 1), (2, 3), (3, 2), (4, 6), (-1, 1), (-2, 3), (6, -4), (-3, -5), (5, 1)]
        {
            for near_start in [20, 21, 25, 40] {
                for far_start in [18, 20, 30, 39] {
                    for (near_count, far_count) in [(1, 9), (7, 7), (9, 3), (2, 1)] {
                        let near = axes(near_start, near_step, near_count);
                        let far = axes(far_start, far_step, far_count);
                        let index = |axis: &Axis, i: u64| axis.start + axis.step * i as i64;
                        let mut expected = Vec::new();
                        for i in 0..near.count {
                            for j in 0..far.count {
                                if index(&near, i) == index(&far, j) {
                                    expected.push((i, j));
                                }
                            }
                        }
                        let found: Vec<_> = common(&near, &far).map_or(Vec::new(), |c| {
                            (0..c.count)
                                .map(|m| {
                                    let far = c.far_first as i64 + c.far_step * m as i64;
                                    (c.near_first + c.near_step * m, far as u64)
                                })
                                .collect()
                        });
                        assert_eq!(found, expected, "{near:?} {far:?}");
                        seen += expected.len();
                    }
                }
            }
        }
        assert!(seen > 100);
    }
}
