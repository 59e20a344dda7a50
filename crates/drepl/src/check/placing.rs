//! Where the variables of a view lie, as far as is needed to see that there is room for them.

use super::measure::{Measures, checked};
use crate::ast::ViewVar;
use crate::definition::{Length, Marker, Part, Placing, Slice, Type};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::source::Span;

/// The most bytes between two 4-byte markers; longer records are split.
///
/// # Source
/// GNU Fortran manual, "File format of unformatted sequential files"; MAX_SUBRECORD_LENGTH.
const SUBRECORD_MAX: u64 = 2_147_483_639;

/// The bytes of a record with its markers.
pub(super) fn record_size(content: u64, marker: Marker) -> Option<u64> {
    let (records, markers) = match marker {
        Marker::Four => (content.div_ceil(SUBRECORD_MAX).max(1), 8),
        Marker::Eight => (1, 16),
    };
    checked(records.checked_mul(markers), Some(content), u64::checked_add)
}

/// The size and the alignment of a part of a type; no size if it is too large for a file. `Err`: it is of variable size.
pub(super) fn part_size(
    kind: &Type,
    part: &Part,
    measures: &mut Measures,
) -> Result<(Option<u64>, u64), VariableSize> {
    match (part, kind) {
        (Part::Whole, _) => {
            let measure = measures.of(kind);
            match measure.stored {
                None => Ok((measure.size, measure.alignment)),
                Some(_) => Err(VariableSize),
            }
        }
        (Part::Fields(parts), Type::Struct(fields)) => {
            let (mut size, mut alignment) = (Some(0), 1);
            for (number, part) in parts.iter().enumerate() {
                let (one, aligned) = part_size(&fields[part.field].kind, &part.part, measures)?;
                size = checked(size, one, u64::checked_add);
                if number == 0 {
                    alignment = aligned;
                }
            }
            Ok((size, alignment))
        }
        (Part::Member { field, part }, Type::Struct(fields)) => {
            part_size(&fields[*field].kind, part, measures)
        }
        (Part::Slice(Slice { lengths, element, .. }), Type::Array(array)) => {
            let (mut size, alignment) = part_size(&array.element, element, measures)?;
            for length in lengths {
                match *length {
                    Length::Fixed(count) => size = checked(size, Some(count), u64::checked_mul),
                    Length::Stored(_) => return Err(VariableSize),
                }
            }
            Ok((size, alignment))
        }
        (Part::Record { marker, part }, _) => {
            let (size, _) = part_size(kind, part, measures)?;
            Ok((size.and_then(|size| record_size(size, *marker)), 1))
        }
        // Parts are made from their types.
        _ => Ok((Some(0), 1)),
    }
}

/// Its size is stored in the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VariableSize;

/// Whether the end of what was placed is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Known,
    /// Not behind this variable of variable size.
    Variable(Span),
    /// Something is wrong, which was told.
    Wrong,
}

/// Goes through a view from its begin to its end.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Where the last variable ends.
    end: u64,
    state: State,
    packed: bool,
    /// The record that is open, and the bytes in it.
    record: Option<(Marker, u64)>,
}

impl Cursor {
    pub(super) fn new(header: u64, packed: bool) -> Self {
        Self { end: header, state: State::Known, packed, record: None }
    }

    /// Something could not be placed: nothing is known of the rest.
    pub(super) fn give_up(&mut self) {
        self.state = State::Wrong;
    }

    pub(super) fn begin_record(&mut self, marker: Option<Marker>) {
        self.record = marker.map(|marker| (marker, 0));
    }

    /// Puts a variable behind the last one, or where it shall be.
    pub(super) fn place(
        &mut self,
        var: &ViewVar,
        kind: &Type,
        part: &Part,
        placing: &Placing,
        measures: &mut Measures,
        findings: &mut Findings,
    ) {
        if !self.is_free(var, placing, findings) {
            return;
        }
        let Ok((size, alignment)) = part_size(kind, part, measures) else {
            self.state = State::Variable(var.name.span);
            return;
        };
        if let Some((_, content)) = &mut self.record {
            match checked(Some(*content), size, u64::checked_add) {
                Some(sum) => *content = sum,
                None => self.too_large(var, findings),
            }
            return;
        }
        let alignment = match (placing.align, placing.at) {
            (Some(asked), _) => asked,
            (None, Some(_)) => 1,
            (None, None) if self.packed => 1,
            (None, None) => alignment,
        };
        let start = placing.at.unwrap_or(self.end).checked_next_multiple_of(alignment);
        let end = checked(start, size, u64::checked_add);
        match checked(end, Some(placing.pad), u64::checked_add) {
            Some(end) => self.end = end,
            None => self.too_large(var, findings),
        }
    }

    /// Whether the variable's place is known and not taken.
    fn is_free(&mut self, var: &ViewVar, placing: &Placing, findings: &mut Findings) -> bool {
        match (self.state, placing.at) {
            (State::Known, Some(at)) if at < self.end => {
                let message = format!("`{}` would lie on what is before it", var.name.text);
                let error = Diagnostic::error(Code::Placing, var.name.span, message);
                let error = error.label(format!("expected byte {} or later", self.end));
                findings.add(error.help("without `at`, a variable lies behind the one before it"));
                self.give_up();
                false
            }
            (State::Variable(before), Some(_)) => {
                let message = format!("the place of `{}` may be taken", var.name.text);
                let error = Diagnostic::error(Code::Placing, var.name.span, message);
                let error = error.label("expected no `at`");
                findings.add(error.related(before, "this is of variable size"));
                false
            }
            (State::Known, _) => true,
            (State::Variable(_) | State::Wrong, _) => false,
        }
    }

    pub(super) fn end_record(&mut self, last: &ViewVar, findings: &mut Findings) {
        let Some((marker, content)) = self.record.take() else { return };
        if self.state != State::Known {
            return;
        }
        let size = record_size(content, marker);
        match checked(Some(self.end), size, u64::checked_add) {
            Some(end) => self.end = end,
            None => self.too_large(last, findings),
        }
    }

    fn too_large(&mut self, var: &ViewVar, findings: &mut Findings) {
        let error = Diagnostic::error(Code::Size, var.name.span, "no file can hold this view");
        findings.add(error.label("would end behind byte 2^63-1"));
        self.give_up();
    }
}
