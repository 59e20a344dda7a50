//! Lists what every byte of a file is.

use std::collections::HashMap;

use drepl::Definition;
use drepl::definition::{
    ByteOrder, Index, Length, Marker, Order, Part, Placing, Scalar, Slice, Type, View,
};

/// What a byte of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    /// It belongs to no variable.
    Fill(u8),
    /// A byte of the dataset.
    Data(Id),
}

/// A byte of the dataset: the variable, the fields and indexes down to the scalar, and which of its
/// bytes, the least significant one first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Id {
    variable: usize,
    path: Vec<u64>,
    byte: u32,
}

pub(super) struct Interpreter<'a> {
    pub(super) definition: &'a Definition,
    pub(super) lengths: &'a HashMap<usize, u64>,
    pub(super) subrecord_max: usize,
}

impl Interpreter<'_> {
    fn length(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(n) => n,
            Length::Stored(variable) => self.lengths.get(&variable).copied().unwrap_or(0),
        }
    }

    /// All bytes of a view; `None` if two variables share one.
    pub(super) fn view(&self, number: usize) -> Option<Vec<Cell>> {
        let files = self.files(&[number], false)?;
        files.into_iter().next()
    }

    /// All bytes of the views that a replica has.
    pub(super) fn replica(&self, number: usize) -> Option<Vec<Vec<Cell>>> {
        let views: Vec<usize> =
            self.definition.replicas[number].views.iter().map(|view| view.view).collect();
        self.files(&views, true)
    }

    fn files(&self, views: &[usize], segmented: bool) -> Option<Vec<Vec<Cell>>> {
        let mut files = vec![Paper::default()];
        let mut cut = false;
        for &number in views {
            let view = &self.definition.views[number];
            let mut base = 0;
            if cut {
                files.push(Paper::default());
                cut = false;
            } else {
                let paper = files.last_mut()?;
                paper.skip_to(paper.cells.len().next_multiple_of(8));
                base = paper.pen;
            }
            let paper = files.last_mut()?;
            paper.skip_to(paper.pen + view.header as usize);
            let mut index = 0;
            while index < view.variables.len() {
                let first = &view.variables[index];
                let mut end = index + 1;
                if let Some(record) = first.record {
                    let same = |v: &drepl::definition::ViewVariable| {
                        v.record.is_some_and(|r| r.number == record.number)
                    };
                    while end < view.variables.len() && same(&view.variables[end]) {
                        end += 1;
                    }
                }
                let variable_sized = |i: usize| self.variable_sized(&view.variables[i]);
                let loose = segmented && (index..end).any(variable_sized);
                if first.record.is_some() && !loose {
                    if std::mem::take(&mut cut) {
                        files.push(Paper::default());
                        base = 0;
                    }
                    let later = segmented && files.len() > 1;
                    let paper = files.last_mut()?;
                    place(paper, base, &first.placing, 1, later);
                    let begin = paper.pen;
                    let marker = first.record?.marker;
                    let mut inside = Paper::default();
                    // The payload lies behind the leading marker; `at` and `align` count from the
                    // begin of the view as if no markers followed.
                    let before = begin - base + width(marker);
                    for (position, variable) in view.variables[index..end].iter().enumerate() {
                        if position > 0 {
                            if let Some(at) = variable.placing.at.filter(|_| !later) {
                                let to = (at as usize).checked_sub(before)?;
                                if to < inside.pen {
                                    return None;
                                }
                                inside.skip_to(to);
                            } else if let Some(align) = variable.placing.align {
                                let to = (before + inside.pen).next_multiple_of(align as usize);
                                inside.skip_to(to - before);
                            }
                        }
                        inside.put(&self.cells(view, variable.source, &variable.part))?;
                        inside.skip_to(inside.pen + variable.placing.pad as usize);
                    }
                    let cells = inside.cells();
                    paper.put(&self.record(view, marker, cells))?;
                } else {
                    for i in index..end {
                        if cut {
                            files.push(Paper::default());
                            base = 0;
                        }
                        let later = segmented && files.len() > 1;
                        let variable = &view.variables[i];
                        let sized = segmented && self.variable_sized(variable);
                        let mut part = &variable.part;
                        if sized && let Part::Record { part: inner, .. } = part {
                            part = inner;
                        }
                        let kind = &self.definition.variables[variable.source].kind;
                        let natural = if view.packed || variable.record.is_some() {
                            1
                        } else {
                            self.alignment(kind, part)
                        };
                        let paper = files.last_mut()?;
                        let in_record = variable.record.is_some() && i > index;
                        place(paper, base, &variable.placing, natural, later || in_record);
                        paper.put(&self.cells(view, variable.source, part))?;
                        paper.skip_to(paper.pen + variable.placing.pad as usize);
                        cut = sized;
                    }
                }
                index = end;
            }
        }
        Some(files.into_iter().map(Paper::cells).collect())
    }

    fn variable_sized(&self, variable: &drepl::definition::ViewVariable) -> bool {
        fn sized(kind: &Type, part: &Part) -> bool {
            let is = |lengths: &[Length]| lengths.iter().any(|l| matches!(l, Length::Stored(_)));
            match (kind, part) {
                (_, Part::Slice(slice)) => is(&slice.lengths),
                (Type::Array(array), Part::Whole) => is(&array.lengths),
                (_, Part::Record { part, .. }) => sized(kind, part),
                _ => false,
            }
        }
        sized(&self.definition.variables[variable.source].kind, &variable.part)
    }

    fn alignment(&self, kind: &Type, part: &Part) -> usize {
        match part {
            Part::Record { .. } => 1,
            Part::Slice(slice) => match kind {
                Type::Array(array) => self.alignment(&array.element, &slice.element),
                _ => unreachable!("a slice of what is no array"),
            },
            Part::Fields(parts) => match kind {
                Type::Struct(fields) => parts
                    .first()
                    .map_or(1, |first| self.alignment(&fields[first.field].kind, &first.part)),
                _ => unreachable!("fields of what is no struct"),
            },
            Part::Member { field, part } => match kind {
                Type::Struct(fields) => self.alignment(&fields[*field].kind, part),
                _ => unreachable!("a field of what is no struct"),
            },
            Part::Whole => match kind {
                Type::Scalar(scalar) => bytes(*scalar) as usize,
                Type::Text { .. } => 2,
                Type::Struct(fields) => {
                    fields.first().map_or(1, |field| self.alignment(&field.kind, &Part::Whole))
                }
                Type::Array(array) => self.alignment(&array.element, &Part::Whole),
            },
        }
    }

    fn cells(&self, view: &View, source: usize, part: &Part) -> Vec<Cell> {
        let mut out = Vec::new();
        let kind = &self.definition.variables[source].kind;
        let mut id = Id { variable: source, path: Vec::new(), byte: 0 };
        self.walk(view, kind, part, &mut id, true, &mut out);
        out
    }

    /// A number, one byte after the other.
    fn number(&self, view: &View, size: u32, id: &Id, present: bool, out: &mut Vec<Cell>) {
        for byte in 0..size {
            let byte = match view.byte_order {
                ByteOrder::Little => byte,
                ByteOrder::Big => size - 1 - byte,
            };
            out.push(if present { Cell::Data(Id { byte, ..id.clone() }) } else { Cell::Fill(0) });
        }
    }

    fn walk(
        &self,
        view: &View,
        kind: &Type,
        part: &Part,
        id: &mut Id,
        present: bool,
        out: &mut Vec<Cell>,
    ) {
        match (kind, part) {
            (kind, Part::Record { marker, part }) => {
                let mut payload = Vec::new();
                self.walk(view, kind, part, id, present, &mut payload);
                out.extend(self.record(view, *marker, payload));
            }
            (Type::Scalar(scalar), _) => self.number(view, bytes(*scalar), id, present, out),
            (Type::Text { capacity }, _) => {
                id.path.push(0);
                self.number(view, 2, id, present, out);
                id.path.pop();
                id.path.push(1);
                for byte in 0..u32::from(*capacity) {
                    out.push(if present {
                        Cell::Data(Id { byte, ..id.clone() })
                    } else {
                        Cell::Fill(0)
                    });
                }
                id.path.pop();
            }
            (Type::Struct(fields), Part::Whole) => {
                for (number, field) in fields.iter().enumerate() {
                    id.path.push(number as u64);
                    self.walk(view, &field.kind, &Part::Whole, id, present, out);
                    id.path.pop();
                }
            }
            (Type::Struct(fields), Part::Fields(parts)) => {
                for each in parts {
                    id.path.push(each.field as u64);
                    self.walk(view, &fields[each.field].kind, &each.part, id, present, out);
                    id.path.pop();
                }
            }
            (Type::Struct(fields), Part::Member { field, part }) => {
                id.path.push(*field as u64);
                self.walk(view, &fields[*field].kind, part, id, present, out);
                id.path.pop();
            }
            (Type::Array(array), part) => {
                let held: Vec<u64> = array.lengths.iter().map(|&l| self.length(l)).collect();
                let all;
                let slice = match part {
                    Part::Slice(slice) => slice,
                    _ => {
                        all = Slice {
                            lengths: array.lengths.clone(),
                            indexes: (0..array.lengths.len())
                                .map(|dimension| Index::Running { dimension, step: 1, start: 0 })
                                .collect(),
                            element: Box::new(Part::Whole),
                        };
                        &all
                    }
                };
                for view_index in self.indexes(view, slice, &held) {
                    let mut inside = present;
                    for (index, &held) in slice.indexes.iter().zip(&held) {
                        let index = match *index {
                            Index::Fixed(index) => index as i64,
                            Index::Running { dimension, step, start } => {
                                step * view_index[dimension] as i64 + start
                            }
                        };
                        inside &= index < held as i64;
                        id.path.push(index as u64);
                    }
                    self.walk(view, &array.element, &slice.element, id, inside, out);
                    id.path.truncate(id.path.len() - held.len());
                }
            }
            (kind, part) => unreachable!("{part:?} of {kind:?}"),
        }
    }

    /// All indexes of a view's array, in the order in which its elements lie.
    fn indexes(&self, view: &View, slice: &Slice, held: &[u64]) -> Vec<Vec<u64>> {
        let mut lengths: Vec<u64> = slice.lengths.iter().map(|&l| self.length(l)).collect();
        for (number, index) in slice.indexes.iter().enumerate() {
            if let Index::Running { dimension, step, start } = *index
                && matches!(slice.lengths[dimension], Length::Stored(_))
            {
                // As long as the index stays inside.
                let held = held[number] as i64;
                let inside = |i: i64| (0..held).contains(&(step * i + start));
                lengths[dimension] = (0..).take_while(|&i| inside(i)).count() as u64;
            }
        }
        let mut all = vec![vec![0; lengths.len()]];
        let dimensions: Vec<usize> = match view.order {
            Order::RowMajor => (0..lengths.len()).collect(),
            Order::RowMinor => (0..lengths.len()).rev().collect(),
        };
        for dimension in dimensions {
            let mut longer = Vec::new();
            for index in &all {
                for i in 0..lengths[dimension] {
                    let mut next = index.clone();
                    next[dimension] = i;
                    longer.push(next);
                }
            }
            all = longer;
        }
        all
    }

    fn record(&self, view: &View, marker: Marker, payload: Vec<Cell>) -> Vec<Cell> {
        let number = |value: i64| -> Vec<Cell> {
            let mut bytes = match marker {
                Marker::Four => (value as i32).to_le_bytes().to_vec(),
                Marker::Eight => value.to_le_bytes().to_vec(),
            };
            if view.byte_order == ByteOrder::Big {
                bytes.reverse();
            }
            bytes.into_iter().map(Cell::Fill).collect()
        };
        let most = match marker {
            Marker::Four => self.subrecord_max,
            Marker::Eight => usize::MAX,
        };
        let mut out = Vec::new();
        let mut rest = &payload[..];
        let mut first = true;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(most));
            let length = piece.len() as i64;
            out.extend(number(if after.is_empty() { length } else { -length }));
            out.extend_from_slice(piece);
            out.extend(number(if first { length } else { -length }));
            first = false;
            rest = after;
            if rest.is_empty() {
                return out;
            }
        }
    }
}

/// A file while it is written.
#[derive(Default)]
struct Paper {
    cells: Vec<Option<Cell>>,
    pen: usize,
}

impl Paper {
    fn skip_to(&mut self, to: usize) {
        self.pen = to;
        if self.cells.len() < to {
            self.cells.resize(to, None);
        }
    }

    /// `None` if there is something already.
    fn put(&mut self, cells: &[Cell]) -> Option<()> {
        let from = self.pen;
        self.skip_to(from + cells.len());
        for (place, cell) in self.cells[from..].iter_mut().zip(cells) {
            if place.is_some() {
                return None;
            }
            *place = Some(cell.clone());
        }
        Some(())
    }

    fn cells(self) -> Vec<Cell> {
        self.cells.into_iter().map(|cell| cell.unwrap_or(Cell::Fill(0))).collect()
    }
}

fn place(paper: &mut Paper, base: usize, placing: &Placing, natural: usize, no_at: bool) {
    let to = match placing.at {
        Some(at) if !no_at => base + at as usize,
        _ => {
            let align = placing.align.map_or(natural, |align| align as usize);
            base + (paper.pen - base).next_multiple_of(align)
        }
    };
    paper.skip_to(to);
}

fn bytes(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::Int8 | Scalar::Uint8 => 1,
        Scalar::Int16 | Scalar::Uint16 => 2,
        Scalar::Int32 | Scalar::Uint32 | Scalar::Float32 => 4,
        Scalar::Int64 | Scalar::Uint64 | Scalar::Float64 => 8,
    }
}

fn width(marker: Marker) -> usize {
    match marker {
        Marker::Four => 4,
        Marker::Eight => 8,
    }
}
