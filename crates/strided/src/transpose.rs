//! Two dimensions whose order differs on the two sides.

use std::marker::PhantomData;

use crate::level::{self, Kernel};
use crate::stores::Stores;
use crate::word::{Word, by_size};

/// One dimension of a transpose.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    pub(crate) count: usize,
    pub(crate) dst: usize,
    pub(crate) src: usize,
}

/// Moves `rows.count` times `columns.count` elements. Along the rows the destination has the
/// smaller stride, along the columns the source. Both slices begin with the first element. Says
/// whether there is a loop for elements of this size.
pub(crate) fn copy(
    dst: &mut [u8],
    src: &[u8],
    (rows, columns): (Side, Side),
    bytes: usize,
    swap: bool,
    stores: Stores,
) -> bool {
    by_size!(
        bytes,
        swap,
        sized(dst, src, rows, columns, stores),
        sized(dst, src, rows, columns, stores),
        { return false }
    );
    true
}

/// Elements along one edge of a block: their pages, on both sides, are few enough for the
/// translation buffer.
const BLOCK: usize = 128;

/// Lines of the source that are read side by side where the registers are wide: as many as the second
/// cache keeps until the rest of their cache lines is read. Fewer where lines of the destination need
/// not come from memory.
#[cfg(target_arch = "x86_64")]
const ROWS: usize = 256;
#[cfg(target_arch = "x86_64")]
const ROWS_STREAMING: usize = 64;

fn sized<W: Word, const SWAP: bool>(
    dst: &mut [u8],
    src: &[u8],
    rows: Side,
    columns: Side,
    stores: Stores,
) {
    if !wide(dst, src, (rows, columns), W::BYTES, SWAP, stores) {
        blocks::<W, SWAP>(dst, src, rows, columns);
    }
}

/// Moves everything in squares of the widest registers, if there are such registers and it is larger than
/// one. The last squares of each dimension overlap those before them: to move some elements twice
/// takes less time than to go through the lines of the source once more for the rest.
fn wide(
    dst: &mut [u8],
    src: &[u8],
    (rows, columns): (Side, Side),
    bytes: usize,
    swap: bool,
    stores: Stores,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if (bytes == 4 || bytes == 8)
        && (rows.dst, columns.src) == (bytes, bytes)
        && rows.count.min(columns.count) >= 64 / bytes
        && crate::level::has_avx512()
    {
        let edge = 64 / bytes;
        let mut squares = |row: usize, column: usize, squares: usize, stores: Stores| {
            let dst = &mut dst[row * rows.dst + column * columns.dst..];
            let src = &src[row * rows.src + column * columns.src..];
            let strides = (columns.dst, rows.src);
            if bytes == 4 {
                crate::wide::squares::<1>(dst, src, strides, squares, swap, stores);
            } else {
                crate::wide::squares::<2>(dst, src, strides, squares, swap, stores);
            }
        };
        let (last_row, last_column) = (rows.count - edge, columns.count - edge);
        let block = if stores == Stores::Streaming { ROWS_STREAMING } else { ROWS };
        for row in (0..=last_row).step_by(block) {
            let count = block.min(rows.count - row) / edge;
            let end = row + count * edge;
            let has_rest = end < rows.count && end > last_row;
            for column in (0..columns.count).step_by(edge) {
                let column = column.min(last_column);
                squares(row, column, count, stores);
                if has_rest {
                    // They begin anywhere, and streams only at a multiple of a register.
                    squares(last_row, column, 1, Stores::Cached);
                }
            }
        }
        return true;
    }
    let _ = (dst, src, rows, columns, bytes, swap, stores);
    false
}

fn blocks<W: Word, const SWAP: bool>(dst: &mut [u8], src: &[u8], rows: Side, columns: Side) {
    for column in (0..columns.count).step_by(BLOCK) {
        for row in (0..rows.count).step_by(BLOCK) {
            let block = Block::<W, SWAP> {
                dst: &mut dst[row * rows.dst + column * columns.dst..],
                src: &src[row * rows.src + column * columns.src..],
                rows: Side { count: BLOCK.min(rows.count - row), ..rows },
                columns: Side { count: BLOCK.min(columns.count - column), ..columns },
                word: PhantomData,
            };
            level::with(block);
        }
    }
}

struct Block<'a, W, const SWAP: bool> {
    dst: &'a mut [u8],
    src: &'a [u8],
    rows: Side,
    columns: Side,
    word: PhantomData<W>,
}

/// Elements along one edge of a square. Eight numbers of 8 bytes are a cache line.
const SQUARE: usize = 8;

impl<W: Word, const SWAP: bool> Kernel for Block<'_, W, SWAP> {
    #[inline(always)]
    fn run(self) {
        let Block { dst, src, rows, columns, word: _ } = self;
        let dense = rows.dst == W::BYTES && columns.src == W::BYTES && W::BYTES <= 8;
        let (mut whole_rows, mut whole_columns) = (0, 0);
        if dense {
            whole_rows = rows.count / SQUARE * SQUARE;
            whole_columns = columns.count / SQUARE * SQUARE;
            for column in (0..whole_columns).step_by(SQUARE) {
                for row in (0..whole_rows).step_by(SQUARE) {
                    let dst = &mut dst[row * rows.dst + column * columns.dst..];
                    let src = &src[row * rows.src + column * columns.src..];
                    square::<W, SWAP>(dst, columns.dst, src, rows.src);
                }
            }
        }
        let mut rest = |first_row: usize, first_column: usize, last_column: usize| {
            for column in first_column..last_column {
                for row in first_row..rows.count {
                    let from = &src[row * rows.src + column * columns.src..];
                    let to = &mut dst[row * rows.dst + column * columns.dst..];
                    W::load(from).turned::<SWAP>().store(to);
                }
            }
        };
        rest(whole_rows, 0, whole_columns);
        rest(0, whole_columns, columns.count);
    }
}

#[inline(always)]
fn square<W: Word, const SWAP: bool>(dst: &mut [u8], ds: usize, src: &[u8], ss: usize) {
    let rows: [[W; SQUARE]; SQUARE] = std::array::from_fn(|row| {
        let line = &src[row * ss..][..SQUARE * W::BYTES];
        std::array::from_fn(|column| W::load(&line[column * W::BYTES..]))
    });
    for column in 0..SQUARE {
        let line = &mut dst[column * ds..][..SQUARE * W::BYTES];
        for (row, to) in rows.iter().zip(line.chunks_exact_mut(W::BYTES)) {
            row[column].turned::<SWAP>().store(to);
        }
    }
}
