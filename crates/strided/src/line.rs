//! One dimension: every so many bytes of one side to every so many of the other.

use std::marker::PhantomData;

use crate::level::{self, Kernel};
use crate::stores::Stores;
use crate::word::{Word, by_size};

/// What is moved of each element.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    pub(crate) bytes: usize,
    pub(crate) unit: usize,
    pub(crate) stores: Stores,
}

/// Moves `count` elements of `bytes` bytes, `ds` bytes from each other in `dst`, `ss` in `src`. Both
/// slices begin with their first element and end with their last one, or for a negative stride of
/// `src` with its first one. The order of each `unit` bytes is reversed, unless it is 1.
pub(crate) fn copy(
    dst: &mut [u8],
    ds: usize,
    src: &[u8],
    ss: isize,
    count: usize,
    Element { bytes, unit, stores }: Element,
) {
    if unit == 1 || unit == bytes {
        by_size!(
            bytes,
            unit > 1,
            numbers(dst, ds, src, ss, count, stores),
            blocks(dst, ds, src, ss, count),
            { any(dst, ds, src, ss, count, bytes, unit) }
        );
    } else {
        any(dst, ds, src, ss, count, bytes, unit);
    }
}

/// Bytes that follow each other on both sides.
pub(crate) fn contiguous(dst: &mut [u8], src: &[u8], unit: usize) {
    match unit {
        1 => dst.copy_from_slice(src),
        2 => level::with(Gather::<u16, 1, true> { dst, src, word: PhantomData }),
        4 => level::with(Gather::<u32, 1, true> { dst, src, word: PhantomData }),
        8 => level::with(Gather::<u64, 1, true> { dst, src, word: PhantomData }),
        _ => {
            for (dst, src) in dst.chunks_exact_mut(unit).zip(src.chunks_exact(unit)) {
                for (to, from) in dst.iter_mut().zip(src.iter().rev()) {
                    *to = *from;
                }
            }
        }
    }
}

/// Fewer elements are not worth a choice.
const FEW: usize = 16;

/// Structs.
fn blocks<W: Word, const SWAP: bool>(
    dst: &mut [u8],
    ds: usize,
    src: &[u8],
    ss: isize,
    count: usize,
) {
    if ss < W::BYTES as isize || ds < W::BYTES {
        each::<W, SWAP>(dst, ds, src, ss, count);
    } else {
        strides::<W, SWAP>(dst, ds, src, ss as usize);
    }
}

/// Numbers.
fn numbers<W: Word, const SWAP: bool>(
    dst: &mut [u8],
    ds: usize,
    src: &[u8],
    ss: isize,
    count: usize,
    stores: Stores,
) {
    let bytes = W::BYTES;
    if count < FEW {
        return each::<W, SWAP>(dst, ds, src, ss, count);
    }
    if ds == bytes && ss == -(bytes as isize) {
        return level::with(Reverse::<W, SWAP> { dst, src, word: PhantomData });
    }
    if ss < bytes as isize || ds < bytes {
        return each::<W, SWAP>(dst, ds, src, ss, count);
    }
    let ss = ss as usize;
    if ds == bytes && ss.is_multiple_of(bytes) && (2 * bytes..=8 * bytes).contains(&ss) {
        return match ss / bytes {
            2 => gather::<W, 2, SWAP>(dst, src, stores),
            3 => gather::<W, 3, SWAP>(dst, src, stores),
            4 => gather::<W, 4, SWAP>(dst, src, stores),
            5 => gather::<W, 5, SWAP>(dst, src, stores),
            6 => gather::<W, 6, SWAP>(dst, src, stores),
            7 => gather::<W, 7, SWAP>(dst, src, stores),
            _ => gather::<W, 8, SWAP>(dst, src, stores),
        };
    }
    strides::<W, SWAP>(dst, ds, src, ss);
}

/// Every `K`th number.
fn gather<W: Word, const K: usize, const SWAP: bool>(dst: &mut [u8], src: &[u8], stores: Stores) {
    // Streaming stores must be aligned.
    let head = stores.head(dst, W::BYTES).filter(|head| (head + 1) * W::BYTES < dst.len());
    let stores = if head.is_some() { stores } else { Stores::Cached };
    let head = head.unwrap_or(0);
    if head > 0 {
        let (dst, src) = (&mut dst[..head * W::BYTES], &src[..((head - 1) * K + 1) * W::BYTES]);
        level::with(Gather::<W, K, SWAP> { dst, src, word: PhantomData });
    }
    let (dst, src) = (&mut dst[head * W::BYTES..], &src[head * K * W::BYTES..]);
    #[cfg(target_arch = "x86_64")]
    let done = match W::BYTES {
        4 => crate::wide::gather::<K, 1>(dst, src, SWAP, stores),
        8 => crate::wide::gather::<K, 2>(dst, src, SWAP, stores),
        _ => 0,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let (done, _) = (0, stores);
    let (dst, src) = (&mut dst[done * W::BYTES..], &src[(done * K * W::BYTES).min(src.len())..]);
    if !dst.is_empty() {
        level::with(Gather::<W, K, SWAP> { dst, src, word: PhantomData });
    }
}

/// Any strides that are at least the size.
fn strides<W: Word, const SWAP: bool>(dst: &mut [u8], ds: usize, src: &[u8], ss: usize) {
    let (mut to, mut from) = (dst.chunks_exact_mut(ds), src.chunks_exact(ss));
    for (to, from) in (&mut to).zip(&mut from) {
        W::load(from).turned::<SWAP>().store(to);
    }
    // The last element has nothing behind it, on one side or on both; where it fills a stride on
    // one side only, that iterator has been asked for it already.
    last::<W, SWAP>(dst, src);
}

/// The last element of both.
#[inline(always)]
fn last<W: Word, const SWAP: bool>(dst: &mut [u8], src: &[u8]) {
    let (to, from) = (dst.len() - W::BYTES, src.len() - W::BYTES);
    W::load(&src[from..]).turned::<SWAP>().store(&mut dst[to..]);
}

/// One by one, whatever the strides are.
fn each<W: Word, const SWAP: bool>(dst: &mut [u8], ds: usize, src: &[u8], ss: isize, count: usize) {
    let mut from = if ss < 0 { src.len() - W::BYTES } else { 0 };
    let mut to = 0;
    for _ in 0..count {
        W::load(&src[from..]).turned::<SWAP>().store(&mut dst[to..]);
        from = from.wrapping_add_signed(ss);
        to += ds;
    }
}

/// Elements of any size.
fn any(dst: &mut [u8], ds: usize, src: &[u8], ss: isize, count: usize, bytes: usize, unit: usize) {
    let mut from = if ss < 0 { src.len() - bytes } else { 0 };
    for i in 0..count {
        contiguous(&mut dst[i * ds..][..bytes], &src[from..][..bytes], unit);
        from = from.wrapping_add_signed(ss);
    }
}

/// Every `K`th element becomes the next one.
struct Gather<'a, W, const K: usize, const SWAP: bool> {
    dst: &'a mut [u8],
    src: &'a [u8],
    word: PhantomData<W>,
}

impl<W: Word, const K: usize, const SWAP: bool> Kernel for Gather<'_, W, K, SWAP> {
    #[inline(always)]
    fn run(self) {
        let to = W::elements_mut(self.dst);
        for (to, from) in to.iter_mut().zip(self.src.chunks_exact(K * W::BYTES)) {
            *to = W::load(from).turned::<SWAP>().into();
        }
        last::<W, SWAP>(self.dst, self.src);
    }
}

/// The last element becomes the first one.
struct Reverse<'a, W, const SWAP: bool> {
    dst: &'a mut [u8],
    src: &'a [u8],
    word: PhantomData<W>,
}

impl<W: Word, const SWAP: bool> Kernel for Reverse<'_, W, SWAP> {
    #[inline(always)]
    fn run(self) {
        let (to, from) = (W::elements_mut(self.dst), W::elements(self.src));
        for (to, from) in to.iter_mut().zip(from.iter().rev()) {
            *to = W::from(*from).turned::<SWAP>().into();
        }
    }
}
