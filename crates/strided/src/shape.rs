//! What is to be copied, and which loop does it.

use crate::line;
use crate::split;
use crate::stores::Stores;
use crate::transpose::{self, Side};
use crate::weave;

/// One dimension of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim {
    /// How many elements.
    pub count: usize,
    /// Bytes from one element to the next in the destination.
    pub dst: isize,
    /// Bytes from one element to the next in the source.
    pub src: isize,
}

/// A run of bytes in each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in the first element of the destination.
    pub dst: usize,
    /// Where it begins in the first element of the source.
    pub src: usize,
    /// How many bytes.
    pub bytes: usize,
    /// The order of every so many bytes is reversed; 1: they are copied as they are. Divides
    /// `bytes`.
    pub unit: usize,
}

/// The most runs that short dimensions are turned into.
const RUNS_MAX: usize = 32;

/// Elements of several runs are moved in tiles of so many bytes, so that what one run has brought
/// to the cache is still there for the next.
const TILE: usize = 16 << 10;

/// Elements that a register of the widest kind may hold.
const REGISTER: usize = 64;

/// Copies every run of every element. Where elements of the destination overlap, it holds one of
/// them afterwards.
///
/// # Panics
/// When a run of some element is not inside of the slices, or `unit` is 0.
pub fn copy(dst: &mut [u8], src: &[u8], dims: &[Dim], runs: &[Run]) {
    let element: usize = runs.iter().map(|run| run.bytes).sum();
    let elements = dims.iter().fold(1, |all: usize, dim| all.saturating_mul(dim.count));
    copy_with(dst, src, dims, runs, Stores::of(elements.saturating_mul(element)));
}

/// As [`copy`], with stores of a kind.
pub(crate) fn copy_with(dst: &mut [u8], src: &[u8], dims: &[Dim], runs: &[Run], stores: Stores) {
    if dims.iter().any(|dim| dim.count == 0) {
        return;
    }
    check(dims, runs, dst.len(), |dim| dim.dst, |run| run.dst);
    check(dims, runs, src.len(), |dim| dim.src, |run| run.src);
    if dims.is_empty() {
        return element(dst, src, runs);
    }
    // The destination is written upwards.
    let mut runs = runs.to_vec();
    let mut dims: Vec<Dim> = dims.iter().copied().filter(|dim| dim.count > 1).collect();
    for dim in dims.iter_mut().filter(|dim| dim.dst < 0) {
        let last = dim.count as isize - 1;
        for run in &mut runs {
            run.dst = run.dst.wrapping_add_signed(last * dim.dst);
            run.src = run.src.wrapping_add_signed(last * dim.src);
        }
        (dim.dst, dim.src) = (-dim.dst, -dim.src);
    }
    dims.sort_by_key(|dim| std::cmp::Reverse(dim.dst));
    unroll_units(&mut runs);
    while let [.., dim] = dims[..]
        && dims.len() > 1
        && dim.count * runs.len() <= RUNS_MAX
    {
        runs = (0..dim.count)
            .flat_map(|i| {
                runs.iter().map(move |run| Run {
                    dst: run.dst.wrapping_add_signed(i as isize * dim.dst),
                    src: run.src.wrapping_add_signed(i as isize * dim.src),
                    ..*run
                })
            })
            .collect();
        dims.pop();
    }
    join_neighbours(&mut runs);
    nest(dst, src, &dims, &runs, stores);
}

/// Fills every run of every element with zeros.
///
/// # Panics
/// When a run of some element is not inside of the slice.
pub fn fill(dst: &mut [u8], dims: &[Dim], runs: &[Run]) {
    if dims.iter().any(|dim| dim.count == 0) {
        return;
    }
    check(dims, runs, dst.len(), |dim| dim.dst, |run| run.dst);
    for run in runs {
        odometer(dims, |to, _| {
            dst[run.dst.wrapping_add_signed(to)..][..run.bytes].fill(0);
        });
    }
}

/// That no element lies outside.
fn check(
    dims: &[Dim],
    runs: &[Run],
    length: usize,
    stride: impl Fn(&Dim) -> isize,
    begin: impl Fn(&Run) -> usize,
) {
    let (mut low, mut high) = (0_i128, 0_i128);
    for dim in dims {
        let extent = (dim.count as i128 - 1) * stride(dim) as i128;
        low += extent.min(0);
        high += extent.max(0);
    }
    for run in runs {
        let first = begin(run) as i128;
        assert!(
            first + low >= 0 && first + high + run.bytes as i128 <= length as i128,
            "elements from {} to {} of {length} bytes",
            first + low,
            first + high + run.bytes as i128
        );
    }
}

fn element(dst: &mut [u8], src: &[u8], runs: &[Run]) {
    for run in runs {
        line::contiguous(&mut dst[run.dst..][..run.bytes], &src[run.src..][..run.bytes], run.unit);
    }
}

/// A few numbers whose bytes are reversed become as many runs.
fn unroll_units(runs: &mut Vec<Run>) {
    let few = |run: &Run| run.unit > 1 && run.bytes > run.unit && run.bytes <= 8 * run.unit;
    if runs.iter().any(few) {
        *runs = (runs.iter())
            .flat_map(|run| {
                let unit = if few(run) { run.unit } else { run.bytes };
                (0..run.bytes / unit).map(move |i| Run {
                    dst: run.dst + i * unit,
                    src: run.src + i * unit,
                    bytes: unit,
                    unit: run.unit,
                })
            })
            .collect();
    }
}

/// Runs that follow each other on both sides become one.
fn join_neighbours(runs: &mut Vec<Run>) {
    runs.dedup_by(|run, last| {
        let joins = last.unit == 1
            && run.unit == 1
            && last.dst + last.bytes == run.dst
            && last.src + last.bytes == run.src;
        if joins {
            last.bytes += run.bytes;
        }
        joins
    });
}

fn nest(dst: &mut [u8], src: &[u8], dims: &[Dim], runs: &[Run], stores: Stores) {
    let Some((&inner, outer)) = dims.split_last() else {
        return element(dst, src, runs);
    };
    // The dimension along which the source is densest may be another one.
    let dense = (outer.iter().enumerate())
        .filter(|(_, dim)| dim.src > 0 && dim.src < inner.src)
        .min_by_key(|(_, dim)| dim.src);
    if let Some((place, &columns)) = dense {
        let mut rest = outer.to_vec();
        rest.remove(place);
        for run in runs {
            transposed(dst, src, &rest, (inner, columns), run, stores);
        }
        return;
    }
    odometer(outer, |to, from| {
        along(dst, src, inner, (to, from), runs, stores);
    });
}

fn transposed(
    dst: &mut [u8],
    src: &[u8],
    rest: &[Dim],
    (rows, columns): (Dim, Dim),
    run: &Run,
    stores: Stores,
) {
    let side = |dim: Dim| Side { count: dim.count, dst: dim.dst as usize, src: dim.src as usize };
    odometer(rest, |to, from| {
        let (to, from) = (run.dst.wrapping_add_signed(to), run.src.wrapping_add_signed(from));
        let known = (run.unit == 1 || run.unit == run.bytes)
            && transpose::copy(
                &mut dst[to..],
                &src[from..],
                (side(rows), side(columns)),
                run.bytes,
                run.unit > 1,
                stores,
            );
        if !known {
            for i in 0..columns.count as isize {
                let run = Run {
                    dst: to.wrapping_add_signed(i * columns.dst),
                    src: from.wrapping_add_signed(i * columns.src),
                    ..*run
                };
                single(dst, src, rows, &run, stores);
            }
        }
    });
}

/// All runs along one dimension, of the element at `to` and `from`.
fn along(
    dst: &mut [u8],
    src: &[u8],
    dim: Dim,
    (to, from): (isize, isize),
    runs: &[Run],
    stores: Stores,
) {
    let moved = |run: &Run, first: usize| Run {
        dst: run.dst.wrapping_add_signed(to + first as isize * dim.dst),
        src: run.src.wrapping_add_signed(from + first as isize * dim.src),
        ..*run
    };
    if let [run] = runs {
        return single(dst, src, dim, &moved(run, 0), stores);
    }
    if woven(dst, src, dim, (to, from), runs, stores) {
        return;
    }
    let first = split(dst, src, dim, (to, from), runs, stores);
    if first == dim.count {
        return;
    }
    let rest = Dim { count: dim.count - first, ..dim };
    let runs: Vec<Run> = runs.iter().map(|run| moved(run, first)).collect();
    tiled(dst, src, rest, &runs, stores);
}

/// All runs along one dimension, in tiles.
fn tiled(dst: &mut [u8], src: &[u8], dim: Dim, runs: &[Run], stores: Stores) {
    let moved = |run: &Run, first: usize| Run {
        dst: run.dst.wrapping_add_signed(first as isize * dim.dst),
        src: run.src.wrapping_add_signed(first as isize * dim.src),
        ..*run
    };
    let stride = dim.dst.unsigned_abs().max(dim.src.unsigned_abs()).max(1);
    // Of whole registers, so that what is aligned in one tile is so in the next.
    let tile = (TILE / stride).next_multiple_of(REGISTER).clamp(1, dim.count);
    for first in (0..dim.count).step_by(tile) {
        let dim = Dim { count: tile.min(dim.count - first), ..dim };
        for run in runs {
            single(dst, src, dim, &moved(run, first), stores);
        }
    }
}

/// One run along one dimension.
fn single(dst: &mut [u8], src: &[u8], dim: Dim, run: &Run, stores: Stores) {
    let last = dim.count - 1;
    let to = run.dst..run.dst + last * dim.dst as usize + run.bytes;
    let extent = last as isize * dim.src;
    let from = run.src.wrapping_add_signed(extent.min(0))
        ..run.src.wrapping_add_signed(extent.max(0)) + run.bytes;
    let element = line::Element { bytes: run.bytes, unit: run.unit, stores };
    line::copy(&mut dst[to], dim.dst as usize, &src[from], dim.src, dim.count, element);
}

/// Moves all runs at once if they are the fields of a struct in the destination, and an array each
/// in the source.
fn woven(
    dst: &mut [u8],
    src: &[u8],
    dim: Dim,
    (to, from): (isize, isize),
    runs: &[Run],
    stores: Stores,
) -> bool {
    let (bytes, unit, fields) = (runs[0].bytes, runs[0].unit, runs.len());
    let alike = |run: &Run| run.bytes == bytes && run.unit == unit;
    if !weave::has(fields)
        || !runs.iter().all(alike)
        || unit != 1 && unit != bytes
        || (dim.dst, dim.src) != ((fields * bytes) as isize, bytes as isize)
    {
        return false;
    }
    let mut sorted: Vec<&Run> = runs.iter().collect();
    sorted.sort_by_key(|run| run.dst);
    if !sorted.iter().enumerate().all(|(i, run)| run.dst == sorted[0].dst + i * bytes) {
        return false;
    }
    let arrays: Vec<&[u8]> = (sorted.iter())
        .map(|run| &src[run.src.wrapping_add_signed(from)..][..dim.count * bytes])
        .collect();
    let structs = &mut dst[sorted[0].dst.wrapping_add_signed(to)..][..dim.count * fields * bytes];
    weave::weave(structs, &arrays, bytes, unit > 1, stores)
}

/// Moves all runs at once if they are the fields of a struct in the source, and an array each in the
/// destination. Returns how many elements were moved: whole registers, or none.
fn split(
    dst: &mut [u8],
    src: &[u8],
    dim: Dim,
    (to, from): (isize, isize),
    runs: &[Run],
    stores: Stores,
) -> usize {
    let (bytes, unit) = (runs[0].bytes, runs[0].unit);
    let first = runs.iter().map(|run| run.src).min().unwrap_or(0);
    let Ok(size) = usize::try_from(dim.src) else { return 0 };
    let is_field = |run: &Run| {
        let place = run.src - first;
        run.bytes == bytes
            && run.unit == unit
            && place.is_multiple_of(bytes)
            && place + bytes <= size
    };
    if unit != 1 && unit != bytes
        || dim.dst != bytes as isize
        || !size.is_multiple_of(bytes)
        || !runs.iter().all(is_field)
    {
        return 0;
    }
    let mut sorted: Vec<&Run> = runs.iter().collect();
    sorted.sort_by_key(|run| run.dst);
    let length = dim.count * bytes;
    if sorted.windows(2).any(|two| two[1].dst - two[0].dst < length) {
        return 0;
    }
    let src = &src[first.wrapping_add_signed(from)..];
    let src = &src[..src.len().min(dim.count * size)];
    let (mut rest, mut begin) = (dst, 0);
    let mut arrays = Vec::with_capacity(runs.len());
    for run in sorted {
        let at = run.dst.wrapping_add_signed(to);
        let (array, behind) = std::mem::take(&mut rest)[at - begin..].split_at_mut(length);
        arrays.push(split::Array { bytes: array, number: (run.src - first) / bytes });
        (rest, begin) = (behind, at + length);
    }
    split::split(&mut arrays, src, size / bytes, bytes, unit > 1, stores)
}

/// Calls `each` with the offsets of every element, the last dimension running fastest.
fn odometer(dims: &[Dim], mut each: impl FnMut(isize, isize)) {
    let mut index = vec![0; dims.len()];
    let (mut to, mut from) = (0, 0);
    loop {
        each(to, from);
        let mut level = dims.len();
        loop {
            if level == 0 {
                return;
            }
            level -= 1;
            let dim = &dims[level];
            index[level] += 1;
            to += dim.dst;
            from += dim.src;
            if index[level] < dim.count {
                break;
            }
            to -= dim.count as isize * dim.dst;
            from -= dim.count as isize * dim.src;
            index[level] = 0;
        }
    }
}
