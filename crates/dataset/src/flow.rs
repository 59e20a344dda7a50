//! Carrying out conversions on files.
//!
//! A conversion between a view and a replica is a list of [`Slab`]s, whose near side is bytes in
//! memory and whose far side is bytes of a file. A slab that is one run of bytes goes directly from
//! the file into place, or back. Of others, as much of the file as the elements of a *window* lie
//! between is read at once, holes and all, and the elements are taken from there; where holes are
//! larger than it costs to begin another read, the window ends before them.
//!
//! Where the process is Sluice's own, large reads take the elements from a mapping of the file: that
//! spares a copy of all that lies between them, and calls where they are far apart.

use std::ops::Range;

use layout::{Dim, Field, Origin, Slab};

use crate::error::{Error, Result};
use crate::file::File;

/// Bytes of a file that are in memory at once when it is read: they should stay in the cache of a core.
pub(crate) const WINDOW_BYTES: usize = 256 << 10;

/// The same when it is written: what arrays get of one piece are fewer and longer calls, and where they are new the kernel keeps
/// them in larger pieces. Measured with structures that become arrays: a fifth faster.
const WRITTEN_WINDOW_BYTES: usize = 1 << 20;

/// The largest hole that is read, or read and written again, rather than jumped over.
///
/// Measured with a warm page cache: 10 KiB when reading, 12 to 16 KiB when writing.
const HOLE_BYTES: u64 = 10 << 10;

/// Where elements lie within fewer bytes of a file than these, one call reads them all, and costs less
/// than the first touch of pages in a mapping.
pub const MAPPED_READ_BYTES: u64 = 16 << 10;

/// Elements are sparse where they lie between so many times the bytes that they have.
const SPARSE: u64 = 16;

/// Whether elements are so far apart that each of a few has its own page: more of them at a time
/// are then found in the same pages.
pub(crate) fn is_sparse(slabs: impl Iterator<Item = Slab>) -> bool {
    slabs.into_iter().any(|slab| {
        let span = slab.far_span();
        span.end - span.start > SPARSE * slab.bytes()
    })
}

/// Which source could not be read, and why.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) source: usize,
    pub(crate) error: Error,
}

/// Fills `near`, which holds the bytes of the near side from `base` on. `file` tells the files that
/// sources have.
pub(crate) fn gather<'f>(
    slabs: impl Iterator<Item = Slab>,
    file: impl Fn(usize, usize) -> &'f File,
    near: &mut [u8],
    base: u64,
) -> Result<(), Failed> {
    let mut scratch = Vec::new();
    for slab in layout::together(slabs) {
        let Origin::Source { source, file: number } = slab.origin() else {
            slab.read(&[], 0, near, base);
            continue;
        };
        let file = file(source, number);
        let failed = |error| Failed { source, error };
        let span = slab.far_span();
        let look = &mut |bytes: &[u8]| slab.read(bytes, span.start, near, base);
        if file.look(&span, look).map_err(failed)? {
            continue;
        }
        if let Some(run) = run(&slab) {
            let start = (run.near - base) as usize;
            let place = &mut near[start..start + run.bytes as usize];
            file.read_at(place, run.far).map_err(failed)?;
            continue;
        }
        windows(&slab, WINDOW_BYTES, &mut |window| {
            scratch.resize(window.bytes(), 0);
            window.load(file, &mut scratch).map_err(failed)?;
            window.slab.read(&scratch, 0, near, base);
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes `near`, which holds the bytes of the near side from `base` on, to where slabs say. `file`
/// tells the files of the one replica on the far side.
pub(crate) fn scatter<'f>(
    slabs: impl Iterator<Item = Slab>,
    file: impl Fn(usize) -> &'f File,
    near: &[u8],
    base: u64,
) -> Result<()> {
    let mut scratch = Vec::new();
    for slab in slabs {
        let Origin::Source { file: number, .. } = slab.origin() else { continue };
        let file = file(number);
        if let Some(run) = run(&slab) {
            let start = (run.near - base) as usize;
            file.write_at(&near[start..start + run.bytes as usize], run.far)?;
            continue;
        }
        windows(&slab, WRITTEN_WINDOW_BYTES, &mut |window| {
            scratch.resize(window.bytes(), 0);
            // What is between the elements is not ours to change.
            if !window.is_covered() {
                window.load(file, &mut scratch)?;
            }
            window.slab.write(near, base, &mut scratch, 0);
            window.store(file, &scratch)
        })?;
    }
    Ok(())
}

/// The only field of a slab that is bytes one after the other, copied as they are.
fn run(slab: &Slab) -> Option<Field> {
    match (slab.dims(), slab.fields()) {
        ([], [field]) if field.unit == 1 => Some(*field),
        _ => None,
    }
}

/// Elements of a slab that lie close to each other in the file.
struct Window {
    /// The elements; its far side counts from the begin of what is in memory.
    slab: Slab,
    /// The bytes of the file that are in memory, one range after the other.
    ranges: Vec<Range<u64>>,
    /// The bytes that are elements.
    wanted: u64,
}

impl Window {
    fn bytes(&self) -> usize {
        self.ranges.iter().map(|range| (range.end - range.start) as usize).sum()
    }

    /// Whether there is nothing between the elements.
    fn is_covered(&self) -> bool {
        self.wanted == self.bytes() as u64
    }

    fn load(&self, file: &File, mut memory: &mut [u8]) -> Result<()> {
        for range in &self.ranges {
            let (place, rest) = memory.split_at_mut((range.end - range.start) as usize);
            file.read_at(place, range.start)?;
            memory = rest;
        }
        Ok(())
    }

    fn store(&self, file: &File, mut memory: &[u8]) -> Result<()> {
        for range in &self.ranges {
            let (bytes, rest) = memory.split_at((range.end - range.start) as usize);
            file.write_at(bytes, range.start)?;
            memory = rest;
        }
        Ok(())
    }
}

/// Cuts a slab into windows of so many bytes at most.
fn windows<E>(
    slab: &Slab,
    bytes_max: usize,
    each: &mut dyn FnMut(Window) -> Result<(), E>,
) -> Result<(), E> {
    let groups = groups(slab.fields());
    let reach = |fields: &Vec<Field>| {
        let start = fields.iter().map(|field| field.far).min().unwrap_or(0);
        let end = fields.iter().map(|field| field.far + field.bytes).max().unwrap_or(0);
        end - start
    };
    let mut extents: Vec<u64> = groups.iter().map(reach).collect();
    // From the elements that lie closest together in the file outwards.
    let mut by_far: Vec<usize> = (0..slab.dims().len()).collect();
    by_far.sort_by_key(|dim| slab.dims()[*dim].far.unsigned_abs());
    let mut steps: Vec<u64> = vec![1; slab.dims().len()];
    for dim in by_far {
        let Dim { count, far, .. } = slab.dims()[dim];
        let stride = far.unsigned_abs();
        let widest = extents.iter().copied().max().unwrap_or(0);
        if stride.saturating_sub(widest) > HOLE_BYTES {
            break;
        }
        let fixed: u64 = extents.iter().sum();
        let more = stride.saturating_mul(groups.len() as u64).max(1);
        let room = (bytes_max as u64).saturating_sub(fixed) / more;
        let taken = room.saturating_add(1).min(count);
        steps[dim] = taken;
        for extent in &mut extents {
            *extent += stride * (taken - 1);
        }
        if taken < count {
            break;
        }
    }
    // All windows, like the digits of a number.
    let mut first = vec![0; steps.len()];
    loop {
        each(window(slab, &groups, &first, &steps))?;
        let mut dim = first.len();
        loop {
            if dim == 0 {
                return Ok(());
            }
            dim -= 1;
            first[dim] += steps[dim];
            if first[dim] < slab.dims()[dim].count {
                break;
            }
            first[dim] = 0;
        }
    }
}

/// Fields that are so close to each other in the file that they are read together.
fn groups(fields: &[Field]) -> Vec<Vec<Field>> {
    let mut sorted = fields.to_vec();
    sorted.sort_by_key(|field| field.far);
    let mut groups: Vec<Vec<Field>> = Vec::new();
    let mut end = 0;
    for field in sorted {
        match groups.last_mut() {
            Some(group) if field.far <= end + HOLE_BYTES => group.push(field),
            _ => groups.push(vec![field]),
        }
        end = field.far + field.bytes;
    }
    groups
}

/// The window of which the first element is `first`, and which has at most `steps` of each
/// dimension.
fn window(slab: &Slab, groups: &[Vec<Field>], first: &[u64], steps: &[u64]) -> Window {
    let (mut near, mut far) = (0, 0);
    let (mut low, mut high) = (0, 0);
    let mut dims = Vec::with_capacity(first.len());
    let mut elements = 1;
    for ((dim, first), step) in slab.dims().iter().zip(first).zip(steps) {
        let count = (*step).min(dim.count - first);
        near += dim.near * *first as i64;
        far += dim.far * *first as i64;
        let extent = dim.far * (count as i64 - 1);
        low += extent.min(0);
        high += extent.max(0);
        elements *= count;
        if count > 1 {
            dims.push(Dim { count, ..*dim });
        }
    }
    let mut ranges = Vec::with_capacity(groups.len());
    let mut fields = Vec::with_capacity(slab.fields().len());
    let (mut begin, mut wanted) = (0, 0);
    for group in groups {
        let least = group.iter().map(|field| field.far).min().unwrap_or(0);
        let most = group.iter().map(|field| field.far + field.bytes).max().unwrap_or(0);
        let range = least.wrapping_add_signed(far + low)..most.wrapping_add_signed(far + high);
        for field in group {
            wanted += elements * field.bytes;
            fields.push(Field {
                near: field.near.wrapping_add_signed(near),
                far: field.far.wrapping_add_signed(far) - range.start + begin,
                ..*field
            });
        }
        begin += range.end - range.start;
        ranges.push(range);
    }
    fields.sort_by_key(|field| field.near);
    Window { slab: Slab::new(slab.origin(), dims, fields), ranges, wanted }
}
