//! Sixteen bytes of code at once, by SSE2, which every x86-64 processor has.

use core::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8,
    _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_setr_epi8,
};

/// How many there are.
pub(super) const LANES: usize = 16;

/// Sixteen bytes; as the answer of a question, 0xff for yes and 0 for no.
#[derive(Clone, Copy)]
pub(super) struct Lanes(__m128i);

// The functions of `core::arch` used below are unsafe only because a processor might not have them; SSE2 belongs to x86-64.
impl Lanes {
    /// The bytes of `code` from `at` on.
    #[inline(always)]
    pub(super) fn of(code: &[u8], at: usize) -> Self {
        let bytes = &code[at..at + LANES];
        // SAFETY: SSE2; sixteen readable bytes, at any alignment.
        Lanes(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    /// The same byte in all.
    #[inline(always)]
    pub(super) fn all(byte: u8) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_set1_epi8(byte as i8) })
    }

    /// 0, 1, 2 and so on.
    #[inline(always)]
    pub(super) fn numbers() -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) })
    }

    /// Sums modulo 256.
    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_add_epi8(self.0, other.0) })
    }

    /// Which bytes have `bits` where `mask` has ones.
    #[inline(always)]
    pub(super) fn have(self, mask: u8, bits: u8) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe {
            _mm_cmpeq_epi8(_mm_and_si128(self.0, Lanes::all(mask).0), Lanes::all(bits).0)
        })
    }

    /// Which bytes are at most `most`.
    #[inline(always)]
    pub(super) fn at_most(self, most: u8) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_cmpeq_epi8(_mm_min_epu8(self.0, Lanes::all(most).0), self.0) })
    }

    /// Both.
    #[inline(always)]
    pub(super) fn and(self, other: Self) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_and_si128(self.0, other.0) })
    }

    /// Either.
    #[inline(always)]
    pub(super) fn or(self, other: Self) -> Self {
        // SAFETY: SSE2.
        Lanes(unsafe { _mm_or_si128(self.0, other.0) })
    }

    /// The answers as bits, the first lane the lowest.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        // SAFETY: SSE2.
        unsafe { _mm_movemask_epi8(self.0) as u32 }
    }
}
