//! Slabs that are moved in one pass over the far side.
//!
//! Three arrays of a view that a replica has as an array of structs are three slabs, since they lie
//! apart on the near side. One after the other they would bring every struct from memory three times.

use std::collections::HashMap;
use std::ops::Range;

use crate::conversion::Conversion;
use crate::slab::{Dim, Origin, Slab};

/// The place of a slab among those that come out, and what of the far side it lies in.
type Group = (usize, Range<u64>);

/// Makes one slab of those that have the same elements of the far side: alike in their dimensions,
/// and not apart from each other there.
///
/// The fields of what comes out may lie anywhere on the near side, which no slab of a conversion has:
/// it can be moved, and neither clipped nor joined.
pub fn together(slabs: impl Iterator<Item = Slab>) -> Vec<Slab> {
    let mut all: Vec<Slab> = slabs.collect();
    if all.len() < 2 {
        return all;
    }
    let mut groups: HashMap<(Origin, Vec<Dim>), Vec<Group>> = HashMap::new();
    let mut kept: Vec<Slab> = Vec::with_capacity(all.len());
    for mut slab in all.drain(..) {
        // What is one run of bytes is a copy already.
        if slab.dims.is_empty() || !matches!(slab.origin, Origin::Source { .. }) {
            kept.push(slab);
            continue;
        }
        let span = slab.far_span();
        let alike = groups.entry((slab.origin, slab.dims.clone())).or_default();
        let overlaps = |other: &Range<u64>| span.start < other.end && other.start < span.end;
        match alike.iter_mut().find(|(_, other)| overlaps(other)) {
            Some((place, other)) => {
                *other = other.start.min(span.start)..other.end.max(span.end);
                kept[*place].fields.append(&mut slab.fields);
            }
            None => {
                alike.push((kept.len(), span));
                kept.push(slab);
            }
        }
    }
    for slab in &mut kept {
        slab.fields.sort_by_key(|field| field.near);
    }
    kept
}

impl Conversion {
    /// Moves the bytes `range` of a view to `near`, which has room for as many of them as there are,
    /// from files of the far side that are in memory; `far` tells them by source and file. What of
    /// the range lies behind the end of the view stays as it is.
    ///
    /// Faster than slab by slab where arrays of the view are fields on the far side.
    ///
    /// # Panics
    /// When one of them is too short.
    pub fn read_from<'a>(
        &self,
        range: Range<u64>,
        far: impl Fn(usize, usize) -> &'a [u8],
        near: &mut [u8],
    ) {
        for slab in together(self.clip(range.clone())) {
            let bytes = match slab.origin() {
                Origin::Source { source, file } => far(source, file),
                Origin::Zeros | Origin::Marker(_) => &[],
            };
            slab.read(bytes, 0, near, range.start);
        }
    }
}
