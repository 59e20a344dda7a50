//! Placing one variable after the other.

use std::ops::Range;

use drepl::definition::{Part, Record, View, ViewVariable};

use super::remainder;
use super::walk::{Manner, Walk, alignment, is_variable};
use super::{Blank, File, Layout, Placed, Placement, SEAMS_MAX, Seam};
use crate::error::{Error, Result};
use crate::lengths::Lengths;

/// A stretch of a file that is placed at once: a variable, or the variables of a record.
struct Unit<'a> {
    file: usize,
    start: u64,
    size: u64,
    leaves: Range<usize>,
    blanks: Range<usize>,
    placed: Range<usize>,
    seams: Vec<Seam>,
    name: &'a str,
}

/// A placement in the making.
pub(super) struct Builder<'a> {
    pub(super) layout: &'a Layout<'a>,
    pub(super) lengths: &'a Lengths,
    placement: Placement,
    units: Vec<Unit<'a>>,
    /// What it consists of.
    views: Vec<usize>,
    /// Whether variables of variable size end their file.
    segmented: bool,
    /// The one placed last was of variable size.
    cut: bool,
    /// Where the view begins in the present file.
    base: u64,
    /// Where the variable placed last ends.
    position: u64,
}

impl<'a> Builder<'a> {
    fn new(layout: &'a Layout<'a>, lengths: &'a Lengths, segmented: bool) -> Self {
        Self {
            layout,
            lengths,
            placement: Placement {
                files: vec![File::default()],
                placed: Vec::new(),
                leaves: Vec::new(),
                blanks: Vec::new(),
                by_atom: Vec::new(),
                atom_begin: Vec::new(),
            },
            units: Vec::new(),
            views: Vec::new(),
            segmented,
            cut: false,
            base: 0,
            position: 0,
        }
    }

    pub(super) fn view(
        layout: &'a Layout<'a>,
        view: usize,
        lengths: &'a Lengths,
    ) -> Result<Placement> {
        let mut builder = Self::new(layout, lengths, false);
        builder.add(view)?;
        builder.finish()
    }

    pub(super) fn replica(
        layout: &'a Layout<'a>,
        replica: usize,
        lengths: &'a Lengths,
    ) -> Result<Placement> {
        let replica = &layout.definition.replicas[replica];
        let mut builder = Self::new(layout, lengths, true);
        builder.views = replica.views.iter().map(|each| each.view).collect();
        builder.add_all()?;
        if replica.complete {
            let missing = remainder::missing(&builder)?;
            // Nothing is added to a file that has everything: it is what its views are. Where sizes
            // vary, the number of files must not.
            if builder.cut || !missing.is_empty() {
                builder.begin()?;
            }
            for piece in missing {
                builder.remainder(piece)?;
            }
        }
        builder.finish()
    }

    fn add_all(&mut self) -> Result<()> {
        for view in self.views.clone() {
            if view >= self.layout.definition.views.len() {
                return Err(Error::NoSuch { what: "view", index: view });
            }
            self.begin()?;
            self.add(view)?;
        }
        self.placement.index(self.layout.atoms.len());
        Ok(())
    }

    /// The placement so far.
    pub(super) fn so_far(&self) -> &Placement {
        &self.placement
    }

    /// The same views at other lengths. What they hold is right, where it lies is not yet.
    pub(super) fn with_lengths(&self, lengths: &Lengths) -> Result<Placement> {
        let mut other = Builder::new(self.layout, lengths, self.segmented);
        other.views.clone_from(&self.views);
        other.add_all()?;
        Ok(other.placement)
    }

    /// The next multiple of 8, or the next file.
    fn begin(&mut self) -> Result<()> {
        if self.cut {
            self.next_file();
        } else {
            // `at` may have led backwards: what was placed last need not be what ends last.
            let end = self.placement.files.last().map_or(0, |file| file.size);
            self.position = self.aligned_from(0, end.max(self.position), 8, "replica")?;
            self.base = self.position;
            self.grow();
        }
        Ok(())
    }

    fn next_file(&mut self) {
        self.placement.files.push(File::default());
        self.base = 0;
        self.position = 0;
        self.cut = false;
    }

    fn grow(&mut self) {
        if let Some(file) = self.placement.files.last_mut() {
            file.size = file.size.max(self.position);
        }
    }

    fn aligned(&self, position: u64, to: u64, name: &str) -> Result<u64> {
        self.aligned_from(self.base, position, to, name)
    }

    /// The next place that is a multiple of `to` away from `base`.
    fn aligned_from(&self, base: u64, position: u64, to: u64, name: &str) -> Result<u64> {
        (position - base)
            .checked_next_multiple_of(to.max(1))
            .and_then(|begin| begin.checked_add(base))
            .filter(|&position| i64::try_from(position).is_ok())
            .ok_or_else(|| Error::TooLarge { name: name.to_owned() })
    }

    fn add(&mut self, number: usize) -> Result<()> {
        let layout = self.layout;
        let view = &layout.definition.views[number];
        self.position = add(self.position, view.header, &view.name)?;
        self.grow();
        let mut next = 0;
        while next < view.variables.len() {
            let record = view.variables[next].record;
            let mut end = next + 1;
            while let Some(record) = record
                && end < view.variables.len()
                && view.variables[end].record.map(|other| other.number) == Some(record.number)
            {
                end += 1;
            }
            let loose =
                self.segmented && (next..end).any(|index| self.is_variable(&view.variables[index]));
            match record {
                Some(record) if !loose => self.record(number, view, next..end, record)?,
                _ => {
                    for index in next..end {
                        self.variable(number, view, index, record.is_some() && next < index)?;
                    }
                }
            }
            next = end;
        }
        Ok(())
    }

    fn is_variable(&self, variable: &ViewVariable) -> bool {
        let source = self.layout.definition.variables.get(variable.source);
        source.is_some_and(|source| is_variable(&source.kind, &variable.part))
    }

    /// Where a unit begins that starts with `variable`.
    fn start(
        &mut self,
        view: &View,
        variable: &ViewVariable,
        fresh: bool,
        natural: u64,
    ) -> Result<u64> {
        let placing = &variable.placing;
        match placing.at {
            Some(at) if !fresh => add(self.base, at, &variable.name),
            _ => {
                let natural = if view.packed { 1 } else { natural };
                self.aligned(self.position, placing.align.unwrap_or(natural), &variable.name)
            }
        }
    }

    fn variable(
        &mut self,
        number: usize,
        view: &'a View,
        index: usize,
        in_record: bool,
    ) -> Result<()> {
        let variable = &view.variables[index];
        let source = self.source(variable)?;
        let is_variable = self.segmented && is_variable(&source.kind, &variable.part);
        let mut part = &variable.part;
        if is_variable && let Part::Record { part: inner, .. } = part {
            part = inner;
        }
        let fresh = self.enter();
        let natural =
            if in_record || variable.record.is_some() { 1 } else { alignment(&source.kind, part) };
        let start = self.start(view, variable, fresh || in_record, natural)?;
        let mut walk = self.walk(Manner::of(view, self.layout.subrecord_max), &variable.name);
        let atom = self.layout.atoms.of_variable(variable.source);
        let size = walk.part(&source.kind, part, atom, 0)?;
        let placed = Placed {
            view: Some(number),
            variable: index,
            file: self.placement.files.len() - 1,
            offset: 0,
            size,
            leaves: 0..walk.leaves.len(),
        };
        self.unit(walk, vec![placed], start, size)?;
        self.position = add(self.position, variable.placing.pad, &variable.name)?;
        self.grow();
        self.cut = is_variable;
        Ok(())
    }

    fn record(
        &mut self,
        number: usize,
        view: &'a View,
        indexes: Range<usize>,
        record: Record,
    ) -> Result<()> {
        let first = &view.variables[indexes.start];
        let fresh = self.enter();
        let start = self.start(view, first, fresh, 1)?;
        let from = start - self.base;
        let file = self.placement.files.len() - 1;
        let mut walk = self.walk(Manner::of(view, self.layout.subrecord_max), &first.name);
        let mut placed = Vec::new();
        let size = walk.record(record.marker, 0, |walk, begin| {
            let mut position = begin;
            for index in indexes.clone() {
                let variable = &view.variables[index];
                let source = self.source(variable)?;
                walk.name = &variable.name;
                if index > indexes.start {
                    let wanted = match (variable.placing.at, variable.placing.align) {
                        (Some(at), _) if !fresh => at
                            .checked_sub(from)
                            .filter(|&at| at >= position)
                            .ok_or_else(|| Error::Backwards {
                                name: variable.name.clone(),
                                wanted: at,
                                reached: from + position,
                            })?,
                        (_, Some(align)) => {
                            let here = walk.sum(from, position)?;
                            let there = here.checked_next_multiple_of(align.max(1));
                            walk.sum(there.unwrap_or(u64::MAX), 0)? - from
                        }
                        _ => position,
                    };
                    if wanted > position {
                        walk.blank(position, Blank::zeros(wanted - position));
                    }
                    position = wanted;
                }
                let atom = self.layout.atoms.of_variable(variable.source);
                let leaves = walk.leaves.len();
                walk.variable = placed.len() as u32;
                let size = walk.part(&source.kind, &variable.part, atom, position)?;
                placed.push(Placed {
                    view: Some(number),
                    variable: index,
                    file,
                    offset: position,
                    size,
                    leaves: leaves..walk.leaves.len(),
                });
                position = walk.sum(position, size)?;
                let pad = variable.placing.pad;
                if pad > 0 {
                    walk.blank(position, Blank::zeros(pad));
                    position = walk.sum(position, pad)?;
                }
            }
            Ok(position - begin)
        })?;
        self.unit(walk, placed, start, size)
    }

    /// What a complete replica adds.
    fn remainder(&mut self, piece: remainder::Piece<'a>) -> Result<()> {
        self.enter();
        let start = self.aligned(self.position, piece.alignment, piece.name)?;
        let mut walk = self.walk(remainder::MANNER, piece.name);
        let placed = Placed {
            view: None,
            variable: piece.variable,
            file: self.placement.files.len() - 1,
            offset: 0,
            size: piece.size,
            leaves: 0..piece.leaves.len(),
        };
        walk.leaves = piece.leaves;
        self.unit(walk, vec![placed], start, piece.size)?;
        self.cut = piece.is_variable;
        Ok(())
    }

    /// Begins a new file if the last one ended; says whether `at` has no meaning in this file.
    fn enter(&mut self) -> bool {
        if self.cut {
            self.next_file();
        }
        self.segmented && self.placement.files.len() > 1
    }

    fn walk(&self, manner: Manner, name: &'a str) -> Walk<'a> {
        Walk::new(&self.layout.atoms, self.lengths, manner, name)
    }

    fn source(&self, variable: &ViewVariable) -> Result<&'a drepl::definition::Variable> {
        let variables = &self.layout.definition.variables;
        variables
            .get(variable.source)
            .ok_or(Error::NoSuch { what: "variable", index: variable.source })
    }

    /// Takes over what was walked. `size` does not count the markers between subrecords.
    fn unit(&mut self, walk: Walk<'a>, placed: Vec<Placed>, start: u64, size: u64) -> Result<()> {
        let name = walk.name;
        let seams = seams(&walk)?;
        let size = add(size, 8 * seams.len() as u64, name)?;
        let file = self.placement.files.len() - 1;
        let all = &mut self.placement;
        let begin = (all.leaves.len(), all.blanks.len(), all.placed.len());
        all.leaves.extend(walk.leaves.into_iter().map(|mut leaf| {
            leaf.file = file as u32;
            leaf.variable += begin.2 as u32;
            leaf
        }));
        all.blanks.extend(walk.blanks.into_iter().map(|mut blank| {
            blank.file = file as u32;
            blank
        }));
        all.placed.extend(placed.into_iter().map(|mut placed| {
            placed.leaves.start += begin.0;
            placed.leaves.end += begin.0;
            placed
        }));
        self.units.push(Unit {
            file,
            start,
            size,
            leaves: begin.0..all.leaves.len(),
            blanks: begin.1..all.blanks.len(),
            placed: begin.2..all.placed.len(),
            seams,
            name,
        });
        self.position = add(start, size, name)?;
        self.grow();
        Ok(())
    }

    /// Gives everything its place in its file.
    fn finish(mut self) -> Result<Placement> {
        self.units.sort_by_key(|unit| (unit.file, unit.start));
        let mut units = self.units.iter().peekable();
        for (number, file) in self.placement.files.iter_mut().enumerate() {
            // `end` counts the markers between subrecords, as `start` of a unit does.
            let (mut end, mut markers, mut last) = (0, 0, "header");
            let mut gap = |from: u64, to: u64, markers: u64| {
                if to > from {
                    self.placement.blanks.push(Blank {
                        file: number as u32,
                        offset: from - markers,
                        ..Blank::zeros(to - from)
                    });
                }
            };
            // Gaps are added behind the blanks of the units, whose numbers stay what they are.
            let mut moves = Vec::new();
            while let Some(unit) = units.next_if(|unit| unit.file == number) {
                if unit.size == 0 {
                    moves.push((unit, unit.start.saturating_sub(markers)));
                    continue;
                }
                if unit.start < end {
                    return Err(Error::Overlap {
                        name: unit.name.to_owned(),
                        other: last.to_owned(),
                        offset: unit.start,
                    });
                }
                gap(end, unit.start, markers);
                let begin = unit.start - markers;
                moves.push((unit, begin));
                file.seams.extend(
                    unit.seams.iter().map(|seam| Seam { offset: seam.offset + begin, ..*seam }),
                );
                markers += 8 * unit.seams.len() as u64;
                end = unit.start + unit.size;
                last = unit.name;
            }
            gap(end, file.size, markers);
            for (unit, begin) in moves {
                for leaf in &mut self.placement.leaves[unit.leaves.clone()] {
                    leaf.offset += begin;
                }
                for blank in &mut self.placement.blanks[unit.blanks.clone()] {
                    blank.offset += begin;
                }
                for placed in &mut self.placement.placed[unit.placed.clone()] {
                    let first = placed.offset;
                    let before = |offset: u64, here: bool| {
                        let seams = &unit.seams;
                        seams.partition_point(|seam| {
                            seam.offset < offset || here && seam.offset == offset
                        }) as u64
                    };
                    let outside = 8 * before(first, true);
                    placed.size += (8 * before(first + placed.size, false)).saturating_sub(outside);
                    placed.offset = unit.start + first + outside;
                }
            }
        }
        self.placement.index(self.layout.atoms.len());
        Ok(self.placement)
    }
}

/// The places of the markers between subrecords, one by one: there are few, as each stands for
/// gigabytes.
fn seams(walk: &Walk<'_>) -> Result<Vec<Seam>> {
    let mut seams = Vec::new();
    for spot in &walk.spots {
        let mut offsets = vec![spot.offset];
        for axis in &spot.axes {
            let most = (seams.len() + offsets.len()) as u64;
            if axis.count.saturating_mul(most) > SEAMS_MAX {
                return Err(Error::TooManySubrecords {
                    name: walk.name.to_owned(),
                    limit: SEAMS_MAX,
                });
            }
            offsets = (0..axis.count)
                .flat_map(|i| offsets.iter().map(move |offset| offset + i * axis.stride))
                .collect();
        }
        seams.extend(offsets.into_iter().map(|offset| Seam { offset, bytes: spot.bytes }));
    }
    seams.sort_by_key(|seam| seam.offset);
    Ok(seams)
}

fn add(a: u64, b: u64, name: &str) -> Result<u64> {
    a.checked_add(b)
        .filter(|&sum| i64::try_from(sum).is_ok())
        .ok_or_else(|| Error::TooLarge { name: name.to_owned() })
}
