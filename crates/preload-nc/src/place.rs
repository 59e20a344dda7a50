//! Which part of a variable a call means, or what is wrong with it.

use std::slice;

use exchange::{Length, Memory, Slab, VariableSpec};

use crate::access::{Access, Place, Verb};
use crate::codes;
use crate::failure::Code;
use crate::memory;

/// A part, and how it lies in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) slab: Slab,
    pub(crate) memory: Memory,
}

/// The parts that a call means, in the order in which they lie in memory. Lengths are checked as PnetCDF does, and in its order.
///
/// # Safety
/// The arguments of a call: lists are as long as the variable has dimensions.
///
/// # Source
/// PnetCDF 1.12.3, src/dispatchers/var_getput.m4, `check_start_count_stride`.
pub(crate) unsafe fn parts(
    access: &Access,
    spec: &VariableSpec,
    records: u64,
) -> Result<Vec<Part>, Code> {
    let rank = spec.shape.len();
    let shape = Shape::of(spec, records, access.verb);
    // SAFETY: the caller's promise; nobody looks at a list of no numbers.
    let list = |address: *const i64| unsafe {
        (!address.is_null() && rank > 0).then(|| slice::from_raw_parts(address, rank))
    };
    match access.place {
        Place::Whole => {
            let counts: Vec<i64> =
                shape.lengths.iter().map(|length| length.cast_signed()).collect();
            Ok(vec![regular(&vec![0; rank], &counts, None, None)?])
        }
        Place::Element { start } => {
            let start = shape.start(list(start))?;
            shape.check(&start, None, None)?;
            Ok(vec![regular(&start, &vec![1; rank], None, None)?])
        }
        Place::Part { start, count, stride, imap } => {
            if rank == 0 {
                return Ok(vec![regular(&[], &[], None, None)?]);
            }
            let start = shape.start(list(start))?;
            let count = list(count);
            let (stride, imap) = (list(stride), list(imap));
            shape.check(&start, Some(count), stride)?;
            Ok(vec![regular(&start, count.unwrap_or_default(), stride, imap)?])
        }
        Place::Parts { num, starts, counts } => {
            let num = usize::try_from(num).map_err(|_| Code(codes::NC_EINVAL))?;
            if num > 0 && starts.is_null() && rank > 0 {
                return Err(Code(codes::NC_ENULLSTART));
            }
            let ones = vec![1; rank];
            let part = |at: usize| {
                // SAFETY: the caller's promise: lists of `num` lists; the second may be NULL, or have NULL in it.
                let (start, count) = unsafe {
                    let start = if rank == 0 { std::ptr::null() } else { starts.add(at).read() };
                    (start, if counts.is_null() { std::ptr::null() } else { counts.add(at).read() })
                };
                if rank > 0 && start.is_null() {
                    return Err(Code(codes::NC_ENULLSTART));
                }
                let start = shape.start(list(start))?;
                let count = list(count).unwrap_or(&ones);
                shape.check(&start, Some(Some(count)), None)?;
                regular(&start, count, None, None)
            };
            (0..num).map(part).collect()
        }
        Place::Filetype { filetype } => {
            // SAFETY: the caller's promise.
            let spans = unsafe { memory::spans(filetype, spec)? };
            let mut parts = Vec::new();
            for (first, count) in spans {
                row(&shape.lengths, first, count, &mut parts)?;
            }
            Ok(parts)
        }
    }
}

/// The lengths of a variable's dimensions.
struct Shape {
    lengths: Vec<u64>,
    /// The first dimension is that of records, and may grow.
    grows: bool,
}

impl Shape {
    fn of(spec: &VariableSpec, records: u64, verb: Verb) -> Shape {
        let length = |length: &Length| match length {
            Length::Fixed(length) => *length,
            Length::Records => records,
        };
        Shape {
            lengths: spec.shape.iter().map(length).collect(),
            grows: verb == Verb::Write && spec.has_records(),
        }
    }

    fn start(&self, start: Option<&[i64]>) -> Result<Vec<i64>, Code> {
        match start {
            _ if self.lengths.is_empty() => Ok(Vec::new()),
            None => Err(Code(codes::NC_EINVALCOORDS)),
            Some(start) => Ok(start.to_vec()),
        }
    }

    /// `count` is none in calls that have no such argument, and NULL within it.
    fn check(
        &self,
        start: &[i64],
        count: Option<Option<&[i64]>>,
        stride: Option<&[i64]>,
    ) -> Result<(), Code> {
        let given = count.flatten();
        for (d, (&start, &length)) in start.iter().zip(&self.lengths).enumerate() {
            let count = given.map_or(1, |count| count[d]);
            let Ok(start) = u64::try_from(start) else { return Err(Code(codes::NC_EINVALCOORDS)) };
            let may_grow = d == 0 && self.grows;
            if !may_grow && (start > length || start == length && count > 0) {
                return Err(Code(codes::NC_EINVALCOORDS));
            }
        }
        if self.lengths.is_empty() {
            return Ok(());
        }
        let Some(count) = count else { return Ok(()) };
        let count = count.ok_or(Code(codes::NC_EEDGE))?;
        for (d, (&start, &length)) in start.iter().zip(&self.lengths).enumerate() {
            let Ok(number) = u64::try_from(count[d]) else {
                return Err(Code(codes::NC_ENEGATIVECNT));
            };
            if d == 0 && self.grows {
                continue;
            }
            let start = start.cast_unsigned();
            let beyond = match stride.map(|stride| stride[d]) {
                // What PnetCDF asks first, whatever the stride is.
                _ if start.saturating_add(number) > length => true,
                Some(stride) if number > 0 && stride > 0 => {
                    let last = (number - 1).saturating_mul(stride.cast_unsigned());
                    start.saturating_add(last) >= length
                }
                _ => false,
            };
            if beyond {
                return Err(Code(codes::NC_EEDGE));
            }
        }
        if stride.is_some_and(|stride| stride.iter().any(|step| *step <= 0)) {
            return Err(Code(codes::NC_ESTRIDE));
        }
        Ok(())
    }
}

/// A part of numbers that were checked.
fn regular(
    start: &[i64],
    count: &[i64],
    stride: Option<&[i64]>,
    imap: Option<&[i64]>,
) -> Result<Part, Code> {
    let unsigned = |list: &[i64]| list.iter().map(|one| one.cast_unsigned()).collect::<Vec<u64>>();
    let ones = vec![1; start.len()];
    let stride = stride.map_or(ones, unsigned);
    let slab = Slab::strided(&unsigned(start), &unsigned(count), &stride)
        .map_err(|_| Code(codes::NC_EINVALCOORDS))?;
    let memory = match imap {
        Some(imap) => Memory::mapped(imap),
        None => Memory::dense(&slab).map_err(|_| Code(codes::NC_EINVAL))?,
    };
    Ok(Part { slab, memory })
}

/// The parts that `count` elements from the element `first` on are, as they lie in a file.
fn row(lengths: &[u64], first: u64, count: u64, parts: &mut Vec<Part>) -> Result<(), Code> {
    let (mut first, mut left) = (first, count);
    while left > 0 {
        // The most dimensions that are covered as wholes from here.
        let mut whole = 1u64;
        let mut d = lengths.len();
        while d > 0 {
            let next = whole.saturating_mul(lengths[d - 1]);
            if next == 0 || first % next != 0 || left < next {
                break;
            }
            whole = next;
            d -= 1;
        }
        let mut start = vec![0; lengths.len()];
        let mut count = vec![1; lengths.len()];
        let mut rest = first / whole;
        for e in (0..d).rev() {
            start[e] = (rest % lengths[e]).cast_signed();
            rest /= lengths[e];
        }
        if rest > 0 {
            return Err(Code(codes::NC_EINVALCOORDS));
        }
        for e in d..lengths.len() {
            count[e] = lengths[e].cast_signed();
        }
        let mut times = 1;
        if d > 0 {
            // Some rows of the first dimension that is not covered as a whole.
            let here = lengths[d - 1] - start[d - 1].cast_unsigned();
            times = here.min(left / whole);
            count[d - 1] = times.cast_signed();
        }
        parts.push(regular(&start, &count, None, None)?);
        first += whole * times;
        left -= whole * times;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::row;

    /// The elements of a part of a variable of three dimensions, as they lie in a file.
    fn elements(part: &super::Part, lengths: &[u64]) -> Vec<u64> {
        let at = |d: usize| {
            let steps = part.slab.dimensions()[d];
            (0..steps.count()).map(move |position| steps.at(position))
        };
        let plane = |y: u64| at(2).map(move |x| y * lengths[2] + x);
        at(0).flat_map(|z| at(1).flat_map(move |y| plane(z * lengths[1] + y))).collect()
    }

    #[test]
    fn a_row_of_elements_is_some_parts_in_order() {
        let lengths = [3, 4, 5];
        for first in 0..60 {
            for count in 0..=60 - first {
                let mut parts = Vec::new();
                assert!(row(&lengths, first, count, &mut parts).is_ok());
                let found: Vec<u64> =
                    parts.iter().flat_map(|part| elements(part, &lengths)).collect();
                assert_eq!(found, (first..first + count).collect::<Vec<_>>());
                assert!(parts.len() <= 5, "{first} {count}: {}", parts.len());
            }
        }
        assert!(row(&lengths, 58, 3, &mut Vec::new()).is_err());
    }
}
