//! From a type, and what a view takes of it, to leaves.

use drepl::definition::{
    Array, ByteOrder, Field, Index, Marker, Order, Part, Scalar, Slice, Type, View,
};
use std::sync::Arc;

use super::Blank;
use super::record;
use crate::atom::{Atoms, DEPTH_MAX};
use crate::error::{Error, Result};
use crate::leaf::{Axis, Leaf};
use crate::lengths::Lengths;

/// How a walk writes what it meets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) order: Order,
    pub(super) byte_order: ByteOrder,
    /// The most bytes between two 4-byte markers.
    pub(super) subrecord_max: u64,
}

impl Manner {
    pub(super) fn of(view: &View, subrecord_max: u64) -> Self {
        Self { order: view.order, byte_order: view.byte_order, subrecord_max }
    }
}

/// The markers between two subrecords, while their place is not yet known.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) offset: u64,
    pub(super) axes: Vec<Axis>,
    pub(super) bytes: [u8; 8],
}

/// Collects the leaves of one unit: a variable, or the variables of one record. Offsets count from
/// its begin, without the markers between subrecords.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) atoms: &'a Atoms,
    pub(super) lengths: &'a Lengths,
    pub(super) manner: Manner,
    pub(super) leaves: Vec<Leaf>,
    pub(super) blanks: Vec<Blank>,
    pub(super) spots: Vec<Spot>,
    /// For messages.
    pub(super) name: &'a str,
    /// The dimensions that we are inside of; their strides are known when the element was walked.
    axes: Vec<Axis>,
    /// Inside elements that the dataset does not have at present.
    absent: bool,
    depth: usize,
    /// The number that the leaves carry.
    pub(super) variable: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        atoms: &'a Atoms,
        lengths: &'a Lengths,
        manner: Manner,
        name: &'a str,
    ) -> Self {
        Self {
            atoms,
            lengths,
            manner,
            leaves: Vec::new(),
            blanks: Vec::new(),
            spots: Vec::new(),
            name,
            axes: Vec::new(),
            absent: false,
            depth: 0,
            variable: 0,
        }
    }

    /// Places `part` of a `kind` whose first atom is `atom`, at byte `at`; returns its size.
    pub(super) fn part(&mut self, kind: &Type, part: &Part, atom: u32, at: u64) -> Result<u64> {
        if self.depth > 2 * DEPTH_MAX {
            return Err(Error::TooDeep { name: self.name.to_owned(), limit: DEPTH_MAX });
        }
        self.depth += 1;
        let size = match (part, kind) {
            (Part::Whole, Type::Scalar(scalar)) => Ok(self.scalar(*scalar, atom, at)),
            (Part::Whole, Type::Text { capacity }) => Ok(self.text(*capacity, atom, at)),
            (Part::Whole, Type::Struct(fields)) => self.whole(fields, atom, at),
            (Part::Whole, Type::Array(array)) => self.array(array, None, atom, at),
            (Part::Slice(slice), Type::Array(array)) => self.array(array, Some(slice), atom, at),
            (Part::Fields(parts), Type::Struct(fields)) => {
                let mut size = 0;
                for each in parts {
                    let place = self.sum(at, size)?;
                    let added = self.field(fields, each.field, &each.part, atom, place)?;
                    size = self.sum(size, added)?;
                }
                Ok(size)
            }
            (Part::Member { field, part }, Type::Struct(fields)) => {
                self.field(fields, *field, part, atom, at)
            }
            (Part::Record { marker, part }, kind) => {
                self.record(*marker, at, |walk, at| walk.part(kind, part, atom, at))
            }
            _ => Err(self.mismatch()),
        };
        self.depth -= 1;
        size
    }

    /// Puts markers before and after what `payload` places; returns the size of it all.
    pub(super) fn record(
        &mut self,
        marker: Marker,
        at: u64,
        payload: impl FnOnce(&mut Self, u64) -> Result<u64>,
    ) -> Result<u64> {
        let spots = self.spots.len();
        let width = record::width(marker);
        let begin = self.sum(at, width)?;
        let size = payload(self, begin)?;
        let markers = record::markers(marker, size, &self.manner).ok_or_else(|| {
            Error::TooManySubrecords { name: self.name.to_owned(), limit: super::SEAMS_MAX }
        })?;
        if self.spots.len() > spots {
            return Err(Error::NestedSubrecords {
                name: self.name.to_owned(),
                limit: self.manner.subrecord_max,
            });
        }
        for (offset, bytes) in markers.between {
            self.spots.push(Spot { offset: begin + offset, axes: self.axes.clone(), bytes });
        }
        self.blank(at, Blank::marker(markers.leading, width));
        let end = self.sum(begin, size)?;
        self.blank(end, Blank::marker(markers.trailing, width));
        Ok(self.sum(end, width)? - at)
    }

    /// Bytes that belong to no variable.
    pub(super) fn blank(&mut self, at: u64, blank: Blank) {
        self.blanks.push(Blank { offset: at, axes: self.axes.clone(), ..blank });
    }

    pub(super) fn sum(&self, a: u64, b: u64) -> Result<u64> {
        a.checked_add(b).filter(|&sum| i64::try_from(sum).is_ok()).ok_or_else(|| self.too_large())
    }

    pub(super) fn product(&self, a: u64, b: u64) -> Result<u64> {
        a.checked_mul(b)
            .filter(|&product| i64::try_from(product).is_ok())
            .ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> Error {
        Error::TooLarge { name: self.name.to_owned() }
    }

    fn mismatch(&self) -> Error {
        Error::Mismatch { name: self.name.to_owned() }
    }

    fn scalar(&mut self, scalar: Scalar, atom: u32, at: u64) -> u64 {
        let order = (scalar.size() > 1).then_some(self.manner.byte_order);
        self.leaf(atom, at, scalar.size() as u32, order);
        scalar.size()
    }

    fn text(&mut self, capacity: u16, atom: u32, at: u64) -> u64 {
        self.leaf(atom, at, 2, Some(self.manner.byte_order));
        if capacity > 0 {
            self.leaf(atom + 1, at + 2, u32::from(capacity), None);
        }
        2 + u64::from(capacity)
    }

    fn leaf(&mut self, atom: u32, at: u64, bytes: u32, order: Option<ByteOrder>) {
        if self.absent {
            self.blank(at, Blank::zeros(u64::from(bytes)));
            return;
        }
        self.leaves.push(Leaf {
            atom,
            file: 0,
            variable: self.variable,
            offset: at,
            bytes,
            order,
            axes: self.axes.clone(),
        });
    }

    fn whole(&mut self, fields: &Arc<[Field]>, atom: u32, at: u64) -> Result<u64> {
        if self.atoms.of_field(fields, fields.len()) == 0 {
            // Structs without anything in them may contain each other very often.
            return Ok(0);
        }
        let mut size = 0;
        for (index, _) in fields.iter().enumerate() {
            let place = self.sum(at, size)?;
            let added = self.field(fields, index, &Part::Whole, atom, place)?;
            size = self.sum(size, added)?;
        }
        Ok(size)
    }

    fn field(
        &mut self,
        fields: &Arc<[Field]>,
        index: usize,
        part: &Part,
        atom: u32,
        at: u64,
    ) -> Result<u64> {
        let Some(field) = fields.get(index) else {
            return Err(self.mismatch());
        };
        let atom = atom + self.atoms.of_field(fields, index);
        self.part(&field.kind, part, atom, at)
    }

    fn array(&mut self, array: &Array, slice: Option<&Slice>, atom: u32, at: u64) -> Result<u64> {
        let held: Vec<u64> =
            array.lengths.iter().map(|&length| self.lengths.resolve(length)).collect();
        let outside = self.axes.len();
        let was_absent = self.absent;
        let shape = match slice {
            None => self.all(&held),
            Some(slice) => self.chosen(&held, slice)?,
        };
        let begin = (self.leaves.len(), self.blanks.len(), self.spots.len());
        let element = slice.map_or(&Part::Whole, |slice| &*slice.element);
        let size = self.part(&array.element, element, atom, at)?;
        self.absent = was_absent;

        // The elements of the view's array follow each other without a gap.
        let mut strides = vec![0; shape.lengths.len()];
        let mut total = size;
        let empty = size == 0 || shape.lengths.contains(&0);
        let mut lay = |dimension: usize| -> Result<()> {
            strides[dimension] = total;
            total = self.product(total, shape.lengths[dimension])?;
            Ok(())
        };
        if !empty {
            match self.manner.order {
                Order::RowMajor => (0..shape.lengths.len()).rev().try_for_each(&mut lay)?,
                Order::RowMinor => (0..shape.lengths.len()).try_for_each(&mut lay)?,
            }
        }
        self.axes.truncate(outside);
        if empty {
            self.leaves.truncate(begin.0);
            self.blanks.truncate(begin.1);
            self.spots.truncate(begin.2);
            return Ok(0);
        }
        let axes = (self.leaves[begin.0..].iter_mut().map(|leaf| &mut leaf.axes))
            .chain(self.blanks[begin.1..].iter_mut().map(|blank| &mut blank.axes))
            .chain(self.spots[begin.2..].iter_mut().map(|spot| &mut spot.axes));
        for axes in axes {
            for (axis, &dimension) in axes[outside..].iter_mut().zip(&shape.dimensions) {
                axis.stride = dimension.map_or(0, |dimension| strides[dimension]);
            }
        }
        Ok(total)
    }

    fn all(&mut self, held: &[u64]) -> Shape {
        for &count in held {
            self.axes.push(Axis { start: 0, step: 1, count, stride: 0 });
        }
        Shape { lengths: held.to_vec(), dimensions: (0..held.len()).map(Some).collect() }
    }

    fn chosen(&mut self, held: &[u64], slice: &Slice) -> Result<Shape> {
        if held.len() != slice.indexes.len() {
            return Err(self.mismatch());
        }
        let mut lengths = vec![None; slice.lengths.len()];
        let mut dimensions = Vec::with_capacity(held.len());
        for (&held, index) in held.iter().zip(&slice.indexes) {
            let (axis, dimension) = match *index {
                Index::Fixed(index) => {
                    // Of an array of variable size it may be gone.
                    self.absent |= index >= held;
                    let start = i64::try_from(index).map_err(|_| self.too_large())?;
                    (Axis { start, step: 1, count: 1, stride: 0 }, None)
                }
                Index::Running { dimension, step, start } => {
                    let Some(length) = slice.lengths.get(dimension) else {
                        return Err(self.mismatch());
                    };
                    if step == 0 || lengths[dimension].is_some() {
                        return Err(self.mismatch());
                    }
                    let count = match *length {
                        drepl::definition::Length::Fixed(count) => count,
                        drepl::definition::Length::Stored(_) => running(held, step, start),
                    };
                    self.check(held, step, start, count)?;
                    lengths[dimension] = Some(count);
                    (Axis { start, step, count, stride: 0 }, Some(dimension))
                }
            };
            self.axes.push(axis);
            dimensions.push(dimension);
        }
        let lengths: Option<Vec<u64>> = lengths.into_iter().collect();
        Ok(Shape { lengths: lengths.ok_or_else(|| self.mismatch())?, dimensions })
    }

    fn check(&self, held: u64, step: i64, start: i64, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let last = i128::from(start) + i128::from(step) * (i128::from(count) - 1);
        for index in [i128::from(start), last] {
            if !(0..i128::from(held)).contains(&index) {
                return Err(Error::OutsideArray {
                    name: self.name.to_owned(),
                    index,
                    length: held,
                });
            }
        }
        Ok(())
    }
}

/// The array that a view makes of one of the dataset.
struct Shape {
    /// The length of each of its dimensions.
    lengths: Vec<u64>,
    /// Which of them each dimension of the dataset has become.
    dimensions: Vec<Option<usize>>,
}

/// How many i = 0, 1, … have `step * i + start` inside of an array of `held` elements.
fn running(held: u64, step: i64, start: i64) -> u64 {
    let (held, step, start) = (i128::from(held), i128::from(step), i128::from(start));
    if !(0..held).contains(&start) {
        return 0;
    }
    let count = if step > 0 { (held - 1 - start) / step + 1 } else { start / -step + 1 };
    count as u64
}

/// Of what a variable's first byte must be a multiple.
///
/// # Source
/// Ionkov et al., §III-B: scalars lie at multiples of their size, a struct as its first field does,
/// an array as its element does. Nothing is aligned in a record.
pub(super) fn alignment(kind: &Type, part: &Part) -> u64 {
    match (part, kind) {
        (Part::Whole, Type::Scalar(scalar)) => scalar.size(),
        (Part::Whole, Type::Text { .. }) => 2,
        (Part::Whole, Type::Struct(fields)) => {
            fields.first().map_or(1, |field| alignment(&field.kind, &Part::Whole))
        }
        (Part::Whole, Type::Array(array)) => alignment(&array.element, &Part::Whole),
        (Part::Slice(slice), Type::Array(array)) => alignment(&array.element, &slice.element),
        (Part::Fields(parts), Type::Struct(fields)) => {
            let first = parts.first().and_then(|p| Some((fields.get(p.field)?, &p.part)));
            first.map_or(1, |(field, part)| alignment(&field.kind, part))
        }
        (Part::Member { field, part }, Type::Struct(fields)) => {
            fields.get(*field).map_or(1, |field| alignment(&field.kind, part))
        }
        _ => 1,
    }
}

/// Whether the size of a view's variable depends on a stored length.
pub(super) fn is_variable(kind: &Type, part: &Part) -> bool {
    let stored = |lengths: &[drepl::definition::Length]| {
        lengths.iter().any(|length| matches!(length, drepl::definition::Length::Stored(_)))
    };
    match (part, kind) {
        (Part::Whole, Type::Array(array)) => stored(&array.lengths),
        (Part::Slice(slice), _) => stored(&slice.lengths),
        (Part::Record { part, .. }, kind) => is_variable(kind, part),
        _ => false,
    }
}
