//! Cutting slabs: at the ends of a range that is read, at the markers between subrecords, into
//! windows.
//!
//! Elements of a slab do not overlap, and those of an inner dimension lie within one of the outer
//! dimension. So a range cuts at most two elements of each dimension; what is between them is whole.
//! A cut gives at most two slabs for each dimension and one in the middle, however long the
//! dimensions are.

use std::ops::Range;

use crate::slab::{Dim, Field, Slab};

/// Hands to `each` what of `slab` lies in a range of the near side.
pub(crate) fn near(slab: &Slab, range: &Range<u64>, each: &mut dyn FnMut(Slab)) {
    let span = slab.near_span();
    if range.start <= span.start && span.end <= range.end {
        each(slab.clone());
    } else if range.start < span.end && span.start < range.end {
        let mut cut =
            Cut { slab, range: range.start as i64..range.end as i64, extents: extents(slab), each };
        cut.level(0, 0, 0);
    }
}

/// Hands to `each` what of `slab` lies in a range of the far side. Only of slabs with one field.
pub(crate) fn far(slab: &Slab, range: &Range<u64>, each: &mut dyn FnMut(Slab)) {
    near(&slab.flipped(), range, &mut |slab| each(slab.flipped()));
}

struct Cut<'a> {
    slab: &'a Slab,
    range: Range<i64>,
    /// For each level, from the begin of the first field to the end of the last one.
    extents: Vec<i64>,
    each: &'a mut dyn FnMut(Slab),
}

fn extents(slab: &Slab) -> Vec<i64> {
    let first = slab.fields.first().map_or(0, |field| field.near);
    let last = slab.fields.last().map_or(0, |field| field.near + field.bytes);
    let mut extent = (last - first) as i64;
    let mut extents = vec![extent];
    for dim in slab.dims.iter().rev() {
        extent += (dim.count as i64 - 1) * dim.near;
        extents.push(extent);
    }
    extents.reverse();
    extents
}

impl Cut<'_> {
    /// Cuts the dimensions from `level` on, of the element that is `near` and `far` away from the
    /// first one.
    fn level(&mut self, level: usize, near: i64, far: i64) {
        let begin = self.slab.fields[0].near as i64 + near;
        let Range { start, end } = self.range;
        if end <= begin || begin + self.extents[level] <= start {
            return;
        }
        if start <= begin && begin + self.extents[level] <= end {
            self.emit(self.slab.dims[level..].to_vec(), near, far);
            return;
        }
        let Some(&dim) = self.slab.dims.get(level) else {
            self.element(near, far);
            return;
        };
        let extent = self.extents[level + 1];
        let last = dim.count as i64 - 1;
        // The elements that the range touches, and those that it holds.
        let touched_first = ((start - begin - extent).div_euclid(dim.near) + 1).clamp(0, last);
        let touched_last = (end - 1 - begin).div_euclid(dim.near).clamp(0, last);
        let held_first = (start - begin + dim.near - 1).div_euclid(dim.near).max(0);
        let held_last = (end - extent - begin).div_euclid(dim.near).min(last);
        let inside = |cut: &mut Self, index: i64| {
            cut.level(level + 1, near + index * dim.near, far + index * dim.far);
        };
        if held_first > held_last {
            for index in touched_first..=touched_last {
                inside(self, index);
            }
            return;
        }
        for index in touched_first..held_first {
            inside(self, index);
        }
        let mut dims = Vec::with_capacity(self.slab.dims.len() - level);
        if held_last > held_first {
            dims.push(Dim { count: (held_last - held_first + 1) as u64, ..dim });
        }
        dims.extend_from_slice(&self.slab.dims[level + 1..]);
        self.emit(dims, near + held_first * dim.near, far + held_first * dim.far);
        for index in held_last + 1..=touched_last {
            inside(self, index);
        }
    }

    /// Fields that the range holds, or cuts.
    fn element(&mut self, near: i64, far: i64) {
        let start = (self.range.start - near).max(0) as u64;
        let end = (self.range.end - near).max(0) as u64;
        let all = &self.slab.fields;
        let first = all.partition_point(|field| field.near + field.bytes <= start);
        let mut fields = Vec::new();
        for field in all[first..].iter().take_while(|field| field.near < end) {
            let from = start.saturating_sub(field.near);
            let to = (end - field.near).min(field.bytes);
            piece(field, from..to, &mut fields);
        }
        if !fields.is_empty() {
            for field in &mut fields {
                field.near = field.near.wrapping_add_signed(near);
                field.far = field.far.wrapping_add_signed(far);
            }
            (self.each)(Slab { origin: self.slab.origin, dims: Vec::new(), fields });
        }
    }

    fn emit(&mut self, dims: Vec<Dim>, near: i64, far: i64) {
        let fields = self.slab.fields.iter();
        let fields = fields.map(|field| Field {
            near: field.near.wrapping_add_signed(near),
            far: field.far.wrapping_add_signed(far),
            ..*field
        });
        (self.each)(Slab { origin: self.slab.origin, dims, fields: fields.collect() });
    }
}

/// The bytes `range` of a field. Where a number is cut whose bytes are reversed, its bytes are found
/// at its other end.
fn piece(field: &Field, range: Range<u64>, pieces: &mut Vec<Field>) {
    let unit = u64::from(field.unit);
    if unit == 1 {
        pieces.push(Field {
            near: field.near + range.start,
            far: field.far + range.start,
            bytes: range.end - range.start,
            unit: 1,
        });
        return;
    }
    let mut at = range.start;
    while at < range.end {
        let begin = at / unit * unit;
        if at == begin && range.end - at >= unit {
            let bytes = (range.end - at) / unit * unit;
            pieces.push(Field {
                near: field.near + at,
                far: field.far + at,
                bytes,
                unit: field.unit,
            });
            at += bytes;
        } else {
            let end = range.end.min(begin + unit);
            pieces.push(Field {
                near: field.near + at,
                far: field.far + begin + (begin + unit - end),
                bytes: end - at,
                unit: (end - at) as u32,
            });
            at = end;
        }
    }
}
