//! Several arrays become one array of structs.
//!
//! For the other way there is no such loop: to store to several arrays in turn is slower than to go
//! through a few kilobytes of structs once for each array.

use crate::level::{self, Kernel};
use crate::stores::Stores;
use crate::word::Word;

/// How many fields are woven at once.
pub(crate) fn has(fields: usize) -> bool {
    matches!(fields, 2 | 3 | 4 | 6 | 8)
}

/// `dst` becomes structs whose fields are the next elements of each of `src`. All slices of `src`
/// have one length, and `dst` has the sum. Says whether there is a loop for it.
pub(crate) fn weave(
    dst: &mut [u8],
    src: &[&[u8]],
    bytes: usize,
    swap: bool,
    stores: Stores,
) -> bool {
    match (bytes, swap) {
        (2, false) => weave_words::<u16, false>(dst, src, stores),
        (4, false) => weave_words::<u32, false>(dst, src, stores),
        (8, false) => weave_words::<u64, false>(dst, src, stores),
        (2, true) => weave_words::<u16, true>(dst, src, stores),
        (4, true) => weave_words::<u32, true>(dst, src, stores),
        (8, true) => weave_words::<u64, true>(dst, src, stores),
        _ => return false,
    }
    true
}

fn weave_words<W: Word, const SWAP: bool>(dst: &mut [u8], src: &[&[u8]], stores: Stores) {
    fn fields<W: Word, const M: usize, const SWAP: bool>(
        dst: &mut [u8],
        src: &[&[u8]],
        stores: Stores,
    ) {
        let src: [&[u8]; M] = std::array::from_fn(|field| src[field]);
        // Streaming stores must be aligned.
        let head = stores.head(dst, M * W::BYTES).unwrap_or(0).min(src[0].len() / W::BYTES);
        let (first, dst) = dst.split_at_mut(head * M * W::BYTES);
        let firsts = src.map(|src| &W::elements(src)[..head]);
        level::with(Weave::<W, M, SWAP> { dst: first, src: firsts });
        let src = src.map(|src| &src[head * W::BYTES..]);
        let done = wide_weave::<M>(dst, src, W::BYTES, SWAP, stores);
        let dst = &mut dst[done * M * W::BYTES..];
        let src = src.map(|src| &W::elements(src)[done..]);
        level::with(Weave::<W, M, SWAP> { dst, src });
    }
    match src.len() {
        2 => fields::<W, 2, SWAP>(dst, src, stores),
        3 => fields::<W, 3, SWAP>(dst, src, stores),
        4 => fields::<W, 4, SWAP>(dst, src, stores),
        6 => fields::<W, 6, SWAP>(dst, src, stores),
        8 => fields::<W, 8, SWAP>(dst, src, stores),
        count => unreachable!("{count} fields are woven"),
    }
}

/// As many as the widest registers can; the rest is left.
fn wide_weave<const M: usize>(
    dst: &mut [u8],
    src: [&[u8]; M],
    bytes: usize,
    swap: bool,
    stores: Stores,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    match bytes {
        4 => return crate::wide::weave::<M, 1>(dst, src, swap, stores),
        8 => return crate::wide::weave::<M, 2>(dst, src, swap, stores),
        _ => {}
    }
    let _ = (dst, src, bytes, swap, stores);
    0
}

struct Weave<'a, W: Word, const M: usize, const SWAP: bool> {
    dst: &'a mut [u8],
    src: [&'a [W::Bytes]; M],
}

impl<W: Word, const M: usize, const SWAP: bool> Kernel for Weave<'_, W, M, SWAP> {
    #[inline(always)]
    fn run(self) {
        let dst = W::elements_mut(self.dst);
        let count = dst.len() / M;
        // What the compiler must know to leave out the checks.
        let dst = &mut dst[..count * M];
        let src: [&[W::Bytes]; M] = std::array::from_fn(|field| &self.src[field][..count]);
        for i in 0..count {
            for field in 0..M {
                dst[i * M + field] = W::from(src[field][i]).turned::<SWAP>().into();
            }
        }
    }
}
