//! A file view of MPI's as a view of the sieve's.

use mpi::Flat;
use mpi::flat::Shape;
use sieve::{FileView, Level};

/// What the sieve has to know of a view: which bytes it shows, and in which unit offsets count.
#[derive(Debug)]
pub(crate) struct View {
    /// The bytes.
    pub(crate) bytes: FileView,
    /// Bytes of data in an etype; not zero.
    pub(crate) etype_bytes: u64,
    /// Whether the view has no holes, so that a sieve has nothing to gain.
    pub(crate) is_dense: bool,
}

impl View {
    /// The view that shows `filetype` again and again from `displacement` on. `None` where the sieve
    /// cannot have it: without data, backwards, or with instances that reach into one another.
    ///
    /// # Source
    ///
    /// MPI-4.1 §14.3: displacements of a filetype are non-negative and monotonically nondecreasing.
    pub(crate) fn new(displacement: i64, etype_bytes: u64, filetype: &Flat) -> Option<View> {
        if etype_bytes == 0 || !filetype.shape.is_ascending() {
            return None;
        }
        let (low, high) = filetype.shape.bounds()?;
        let extent = u64::try_from(filetype.extent).ok()?;
        let span = u64::try_from(high.checked_sub(low)?).ok()?;
        let tail = extent.checked_sub(span)?;
        let start = u64::try_from(displacement.checked_add(low)?).ok()?;
        let is_dense = tail == 0 && span == filetype.size;
        let bytes = match levels(&filetype.shape) {
            _ if is_dense => FileView::contiguous(start).ok(),
            Some((block, levels)) => FileView::nested(start, block, &levels, tail).ok(),
            None => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            // No closed form, or one that is nested too deep.
            None => {
                let from_low = |(offset, length): (i64, u64)| ((offset - low) as u64, length);
                FileView::from_blocks(start, extent, filetype.shape.blocks().map(from_low)).ok()?
            }
        };
        Some(View { bytes, etype_bytes, is_dense })
    }
}

/// A shape of repetitions of one block: its length, and the levels from the inside out.
fn levels(shape: &Shape) -> Option<(u64, Vec<Level>)> {
    match shape {
        Shape::Block { length, .. } => Some((*length, Vec::new())),
        Shape::Repeat { count: 1, each, .. } => levels(each),
        Shape::Repeat { count, stride, each, .. } => {
            let (block, mut inner) = levels(each)?;
            let (low, high) = each.bounds()?;
            let hole = u64::try_from(stride.checked_sub(high.checked_sub(low)?)?).ok()?;
            inner.push(Level { count: *count, hole });
            Some((block, inner))
        }
        Shape::Nothing | Shape::Blocks(_) | Shape::List(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use mpi::flat::{Made, Type};
    use proptest::prelude::*;

    use super::*;

    fn dense(size: u64) -> Type {
        Type { size, lower_bound: 0, extent: size as i64, made: Made::Dense }
    }

    fn flat(size: u64, extent: i64, made: Made) -> Flat {
        Flat::of(&Type { size, lower_bound: 0, extent, made }).unwrap()
    }

    /// The first bytes of the view, one by one.
    fn shown(view: &View, count: u64) -> Vec<u64> {
        let blocks = view.bytes.blocks(0, count).unwrap();
        blocks.flat_map(|block| block.file..block.file + block.len).collect()
    }

    /// The same from the type.
    fn expected(displacement: i64, filetype: &Flat, count: u64) -> Vec<u64> {
        let tiles = count.div_ceil(filetype.size);
        let all = filetype.repeated(tiles).unwrap();
        let bytes = all.blocks().flat_map(|(offset, length)| offset..offset + length as i64);
        bytes.map(|offset| (displacement + offset) as u64).take(count as usize).collect()
    }

    #[test]
    fn a_vector_keeps_its_closed_form() {
        let made = Made::Vector { count: 1000, length: 2, stride: 24, of: Box::new(dense(8)) };
        let filetype = flat(16_000, 24_000, made);
        let view = View::new(100, 8, &filetype).unwrap();
        assert_eq!(view.bytes.memory_bytes(), 0);
        assert!(!view.is_dense);
        assert_eq!(shown(&view, 40_000), expected(100, &filetype, 40_000));
    }

    #[test]
    fn what_has_no_holes_is_dense() {
        let made = Made::Contiguous { count: 10, of: Box::new(dense(8)) };
        assert!(View::new(3, 8, &flat(80, 80, made.clone())).unwrap().is_dense);
        assert!(!View::new(3, 8, &flat(80, 88, made)).unwrap().is_dense);
    }

    #[test]
    fn views_that_run_backwards_or_overlap_are_declined() {
        let backwards = Made::Indexed { places: vec![(8, 1), (0, 1)], of: Box::new(dense(4)) };
        assert!(View::new(0, 4, &flat(8, 12, backwards)).is_none());
        // The second instance would begin within the first.
        let far = Made::Indexed { places: vec![(0, 1), (40, 1)], of: Box::new(dense(4)) };
        assert!(View::new(0, 4, &flat(8, 20, far.clone())).is_none());
        assert!(View::new(0, 4, &flat(8, 44, far)).is_some());
        // Before the start of the file.
        let before = Made::Indexed { places: vec![(-8, 1)], of: Box::new(dense(4)) };
        assert!(View::new(4, 4, &flat(4, 12, before.clone())).is_none());
        assert!(View::new(8, 4, &flat(4, 12, before)).is_some());
        assert!(View::new(0, 0, &flat(4, 8, Made::Dense)).is_none());
    }

    proptest! {
        #[test]
        fn a_view_shows_the_bytes_of_the_type(
            gaps in prop::collection::vec((0i64..20, 1u64..9), 1..12),
            (count, outer) in (1u64..5, 0i64..30),
            (displacement, tail) in (0i64..1000, 0i64..40),
        ) {
            let mut at = 0;
            let mut places = Vec::new();
            for (gap, length) in gaps {
                at += gap;
                places.push((at, length));
                at += length as i64;
            }
            let inner_size = places.iter().map(|(_, length)| length).sum();
            let made = Made::Indexed { places, of: Box::new(dense(1)) };
            let inner = Type { size: inner_size, lower_bound: 0, extent: at, made };
            let stride = at + outer;
            let made = Made::Vector { count, length: 1, stride, of: Box::new(inner) };
            let filetype = flat(inner_size * count, stride * count as i64 + tail, made);
            let view = View::new(displacement, 1, &filetype).unwrap();
            let some = filetype.size * 2 + 3;
            prop_assert_eq!(shown(&view, some), expected(displacement, &filetype, some));
        }
    }
}
