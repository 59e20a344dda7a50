//! Runs of elements as boxes: what the library can read or write at once.

/// A box of elements: where it begins and how far it goes, in every dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) start: Vec<u64>,
    pub(crate) count: Vec<u64>,
}

impl Slab {
    /// The number of its elements.
    pub(crate) fn elements(&self) -> u64 {
        self.count.iter().product()
    }
}

/// The boxes that together hold `count` elements from `first` on, of an array of `shape` in row-major
/// order, in that order: at most two for every dimension.
pub(crate) fn slabs(shape: &[u64], first: u64, count: u64) -> Vec<Slab> {
    let mut slabs = Vec::new();
    let (mut at, end) = (first, first + count);
    while at < end {
        // The largest block of whole inner dimensions that begins here and ends in time.
        let mut block = 1;
        let mut outer = shape.len();
        while outer > 0 {
            let larger = block * shape[outer - 1];
            if at % larger != 0 || at + larger > end {
                break;
            }
            block = larger;
            outer -= 1;
        }
        let mut start = vec![0; shape.len()];
        let mut extent = vec![1; shape.len()];
        extent[outer..].copy_from_slice(&shape[outer..]);
        let mut rest = at / block;
        for dimension in (0..outer).rev() {
            start[dimension] = rest % shape[dimension];
            rest /= shape[dimension];
        }
        if let Some(dimension) = outer.checked_sub(1) {
            // As many such blocks as there are in this row of blocks, and in what is asked for.
            let row = shape[dimension] - start[dimension];
            extent[dimension] = row.min((end - at) / block);
        }
        let slab = Slab { start, count: extent };
        at += slab.elements();
        slabs.push(slab);
    }
    slabs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indexes(shape: &[u64], slab: &Slab) -> Vec<u64> {
        let mut all = vec![0];
        for (dimension, length) in shape.iter().enumerate() {
            let range = slab.start[dimension]..slab.start[dimension] + slab.count[dimension];
            all = all
                .iter()
                .flat_map(|index| range.clone().map(move |i| index * length + i))
                .collect();
        }
        all
    }

    proptest! {
        #[test]
        fn boxes_hold_the_elements_in_order(
            shape in prop::collection::vec(1..6_u64, 0..5),
            ends in (0.0..1.0_f64, 0.0..1.0_f64),
        ) {
            let elements: u64 = shape.iter().product();
            let one = (ends.0 * elements as f64) as u64;
            let other = (ends.1 * (elements + 1) as f64) as u64;
            let (first, end) = (one.min(other), one.max(other));
            let found = slabs(&shape, first, end - first);
            prop_assert!(found.len() <= 2 * shape.len().max(1));
            let all: Vec<u64> = found.iter().flat_map(|slab| indexes(&shape, slab)).collect();
            prop_assert_eq!(all, (first..end).collect::<Vec<_>>());
        }
    }
}
