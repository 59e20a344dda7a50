//! An array of structs becomes several arrays.

use crate::stores::Stores;

/// An array that is made, of every struct's `number`th number.
pub(crate) struct Array<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) number: usize,
}

/// Takes numbers of `bytes` bytes from structs of `numbers` of them, as far as there are loops for it
/// and registers can be filled. Returns how many structs that were. All arrays have one length; `src`
/// may end within the last struct.
pub(crate) fn split(
    arrays: &mut [Array<'_>],
    src: &[u8],
    numbers: usize,
    bytes: usize,
    swap: bool,
    stores: Stores,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    match bytes {
        4 => return sized::<1>(arrays, src, numbers, swap, stores),
        8 => return sized::<2>(arrays, src, numbers, swap, stores),
        _ => {}
    }
    let _ = (arrays, src, numbers, bytes, swap, stores);
    0
}

#[cfg(target_arch = "x86_64")]
fn sized<const WIDTH: usize>(
    arrays: &mut [Array<'_>],
    src: &[u8],
    numbers: usize,
    swap: bool,
    stores: Stores,
) -> usize {
    use crate::wide::split;
    match numbers {
        2 => split::<2, WIDTH>(arrays, src, swap, stores),
        3 => split::<3, WIDTH>(arrays, src, swap, stores),
        4 => split::<4, WIDTH>(arrays, src, swap, stores),
        5 => split::<5, WIDTH>(arrays, src, swap, stores),
        6 => split::<6, WIDTH>(arrays, src, swap, stores),
        7 => split::<7, WIDTH>(arrays, src, swap, stores),
        8 => split::<8, WIDTH>(arrays, src, swap, stores),
        _ => 0,
    }
}
