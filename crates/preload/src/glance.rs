//! One glance at a path: can it be passed on to libc unread? Every path hook begins here, on behalf of
//! paths that are almost never ours, so it takes a few nanoseconds and allocates nothing.

use std::ffi::c_char;

/// What a path has that calls for a closer look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Glance {
    /// A colon: it may be an address.
    pub(crate) colon: bool,
    /// Two dots in a row: it may climb, so that its first name does not tell where it leads.
    pub(crate) climbs: bool,
}

/// Looks at a path. It may stop at the first hit, and then tells of that one only.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn glance(path: *const c_char) -> Glance {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128,
    };

    let start = path as usize;
    let mut address = start & !15;
    // Bytes before the path belong to somebody else.
    let mut valid = u32::MAX << (start - address);
    let mut dot_before = 0;
    loop {
        let block: __m128i;
        // SAFETY: an aligned block of 16 bytes lies in one page, and at least one of its bytes belongs to
        // the path (it starts there, or the block before had no NUL). Written as assembly because the
        // other bytes belong to no object that the compiler knows of.
        unsafe {
            std::arch::asm!(
                "movdqa {block}, [{address}]",
                block = out(xmm_reg) block,
                address = in(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        // SAFETY: SSE2 is part of x86-64.
        let (end, colon, dot, any) = unsafe {
            let end = _mm_cmpeq_epi8(block, _mm_setzero_si128());
            let colon = _mm_cmpeq_epi8(block, _mm_set1_epi8(b':' as i8));
            let dot = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'.' as i8));
            let any = _mm_or_si128(_mm_or_si128(end, colon), dot);
            (end, colon, dot, _mm_movemask_epi8(any) as u32 & valid)
        };
        if any == 0 {
            dot_before = 0;
        } else {
            // SAFETY: as above.
            let mask = |found: __m128i| unsafe { _mm_movemask_epi8(found) as u32 } & valid;
            let end = mask(end);
            // Everything below the first NUL, if there is one.
            let inside = (end & end.wrapping_neg()).wrapping_sub(1);
            let dots = mask(dot) & inside;
            let colon = mask(colon) & inside != 0;
            let climbs = (dots << 1 | dot_before) & dots != 0;
            if colon || climbs || end != 0 {
                return Glance { colon, climbs };
            }
            dot_before = dots >> 15 & 1;
        }
        valid = 0xffff;
        address += 16;
    }
}

/// Looks at a path.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn glance(path: *const c_char) -> Glance {
    // SAFETY: callers pass a NUL-terminated path that is not NULL.
    let bytes = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
    Glance { colon: bytes.contains(&b':'), climbs: bytes.windows(2).any(|pair| pair == b"..") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(bytes: &[u8]) -> Glance {
        Glance { colon: bytes.contains(&b':'), climbs: bytes.windows(2).any(|pair| pair == b"..") }
    }

    #[test]
    fn a_glance_sees_what_a_reader_sees_at_every_alignment() {
        let texts: [&str; 10] = [
            "",
            "/",
            "/tmp/a.txt",
            "/tmp//a",
            "/tmp/a..b",
            "scdc:///x/y",
            "a/b/c/d/e/f/g/h/i/j/k/l/m/n.o",
            "/aaaaaaaaaaaaa/../hidden",
            "/a/very/long/path/that/goes/on/and/on/and/ends/with/:",
            "../x",
        ];
        for text in texts {
            for shift in 0..32 {
                // What stands before and behind the path must not matter.
                let mut memory = vec![b':'; shift];
                memory.extend_from_slice(text.as_bytes());
                memory.push(0);
                memory.extend_from_slice(b"..://.:::::::::::::::::::::");
                let seen = glance(memory[shift..].as_ptr().cast());
                let want = plainly(text.as_bytes());
                assert_eq!(
                    seen == Glance::default(),
                    want == Glance::default(),
                    "{text:?} at {shift}"
                );
                assert!(!seen.colon || want.colon, "{text:?} at {shift}");
                assert!(!seen.climbs || want.climbs, "{text:?} at {shift}");
            }
        }
    }
}
