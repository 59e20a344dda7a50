//! One glance at a path: can it be passed on to libc unread? Every path hook begins here, on behalf of
//! paths that are almost never ours, so it takes a few nanoseconds and allocates nothing.

use std::ffi::c_char;

/// What a path has that calls for a closer look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Glance {
    /// A colon: it may be an address.
    pub(crate) colon: bool,
    /// A slash before a dot or before another slash: the path is not written in the shortest way, so
    /// that its first name does not tell where it leads.
    pub(crate) detour: bool,
}

/// Looks at a path. At a hit it may stop before the end, with the hit told and the rest not.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn glance(path: *const c_char) -> Glance {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };

    // SAFETY: SSE2 is part of x86-64.
    let found = |block: __m128i, byte: u8| unsafe {
        _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8))) as u32
    };
    let start = path as usize;
    let mut address = start & !15;
    // Bytes before the path belong to somebody else.
    let mut valid = u32::MAX << (start - address);
    let mut slash_before = 0;
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
        let end = found(block, 0) & valid;
        // Everything below the first NUL, if there is one.
        let inside = if end == 0 { valid & 0xffff } else { valid & (end & end.wrapping_neg()).wrapping_sub(1) };
        let slashes = found(block, b'/') & inside;
        // SAFETY: as above.
        let dots_and_slashes = unsafe {
            let dots = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'.' as i8));
            let slashes = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'/' as i8));
            _mm_movemask_epi8(_mm_or_si128(dots, slashes)) as u32
        } & inside;
        let colon = found(block, b':') & inside != 0;
        let detour = (slashes << 1 | slash_before) & dots_and_slashes != 0;
        if colon || detour {
            return Glance { colon, detour };
        }
        if end != 0 {
            return Glance::default();
        }
        slash_before = slashes >> 15 & 1;
        valid = 0xffff;
        address += 16;
    }
}

/// Looks at a path.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn glance(path: *const c_char) -> Glance {
    // SAFETY: callers pass a NUL-terminated path that is not NULL.
    let bytes = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
    Glance {
        colon: bytes.contains(&b':'),
        detour: bytes.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'.' | b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(bytes: &[u8]) -> Glance {
        Glance {
            colon: bytes.contains(&b':'),
            detour: bytes.windows(2).any(|p| p[0] == b'/' && matches!(p[1], b'.' | b'/')),
        }
    }

    #[test]
    fn a_glance_sees_what_a_reader_sees_at_every_alignment() {
        let texts: [&str; 10] = [
            "", "/", "/tmp/a.txt", "/tmp//a", "/tmp/./a", "scdc:///x/y", "a/b/c/d/e/f/g/h/i/j/k/l/m/n.o",
            "/aaaaaaaaaaaaa/.hidden", "/a/very/long/path/that/goes/on/and/on/and/ends/with/:", "../x",
        ];
        for text in texts {
            for shift in 0..32 {
                // What stands before and behind the path must not matter.
                let mut memory = vec![b':'; shift];
                memory.extend_from_slice(text.as_bytes());
                memory.push(0);
                memory.extend_from_slice(b"/.://:::::::::::::::::::::");
                let seen = glance(memory[shift..].as_ptr().cast());
                let want = plainly(text.as_bytes());
                assert_eq!(seen == Glance::default(), want == Glance::default(), "{text:?} at {shift}");
                assert!(!seen.colon || want.colon, "{text:?} at {shift}");
                assert!(!seen.detour || want.detour, "{text:?} at {shift}");
            }
        }
    }
}
