//! One glance at a path: can it be passed on to libc unread? Every path hook begins here, on behalf of
//! paths that are almost never ours, so it takes a few nanoseconds, calls nothing and allocates nothing.
//!
//! A path needs a closer look when it may be an address (it has a colon), when it climbs (`..`, so that
//! its first name does not tell where it leads), or when its first name begins like a name that matters
//! where the path starts.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::table;

/// What relative paths mean, by the working directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cwd {
    /// Local files.
    Local,
    /// Local files, but a mapped prefix lies below.
    AbovePrefix,
    /// Files of a service.
    Far,
}

static CWD: AtomicU8 = AtomicU8::new(Cwd::Local as u8);

/// Tells what relative paths mean from now on.
pub(crate) fn set_cwd(cwd: Cwd) {
    CWD.store(cwd as u8, Ordering::Relaxed);
}

/// Whether the working directory is another than a local one with nothing of ours below.
#[inline]
pub(crate) fn cwd_matters() -> bool {
    CWD.load(Ordering::Relaxed) != Cwd::Local as u8
}

/// Names that matter, as a set that may hold more than was put in: an entry for each value of a hash of
/// their first two letters.
struct Names([AtomicBool; 256]);

impl Names {
    const fn new() -> Self {
        Self([const { AtomicBool::new(false) }; 256])
    }

    #[inline(always)]
    fn entry(&self, first: u8, second: u8) -> &AtomicBool {
        &self.0[usize::from(first.wrapping_mul(7) ^ second)]
    }

    fn insert(&self, name: &[u8]) {
        let Some(first) = name.first() else { return };
        // What follows a name of one letter in a path is its end or a slash.
        let seconds: &[u8] = name.get(1).map_or(b"\0/", std::slice::from_ref);
        for second in seconds {
            self.entry(*first, *second).store(true, Ordering::Relaxed);
        }
    }

    /// Whether a name that begins with these letters may have been put in.
    #[inline(always)]
    fn may_hold(&self, first: u8, second: u8) -> bool {
        self.entry(first, second).load(Ordering::Relaxed)
    }
}

/// First names of absolute paths that matter.
static ROOTS: Names = Names::new();

/// All names of mapped prefixes: with one of them begins a path from a local directory into a prefix.
static STEPS: Names = Names::new();

/// Paths below a mapped prefix matter from now on.
pub(crate) fn watch_prefix(prefix: &[u8]) {
    let names = || prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    names().take(1).for_each(|name| ROOTS.insert(name));
    names().for_each(|name| STEPS.insert(name));
    // `/./far` and `./far`.
    ROOTS.insert(b".");
    STEPS.insert(b".");
}

/// From the first redirected descriptor on, paths below /dev and /proc may name one.
pub(crate) fn watch_descriptor_names() {
    ROOTS.insert(b"dev");
    ROOTS.insert(b"proc");
}

/// Whether a path might lead to a service: the cheap test of every path hook. A yes may be wrong, and the
/// operation then passes the call on; a no never is. A NULL path leads nowhere, so that libc answers
/// EFAULT.
#[inline(always)]
pub(crate) fn may_be_far(dir: c_int, path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    if path as usize % PAGE <= PAGE - STEP {
        // The processor cannot begin a system call before it knows which way the branch goes, so this is
        // straight code with one branch for nearly all paths. What stands behind a short path may make it
        // look suspicious, which then costs some nanoseconds more.
        let seen = step(path as usize, 0);
        let [first, second, third, _] = seen.letters.to_le_bytes();
        let matters = begins_like_ours(dir, first, second, third) | (seen.suspects != 0);
        if !matters & (seen.ends != 0) {
            return false;
        }
    }
    is_worth_a_look(dir, path as usize)
}

/// Whether a path that begins with these letters leads to where something is mapped; what stands behind
/// its end does not matter.
#[inline(always)]
fn begins_like_ours(dir: c_int, first: u8, second: u8, third: u8) -> bool {
    if first == b'/' {
        // `//far` is `/far`.
        (second == b'/') | ROOTS.may_hold(second, third)
    } else if dir == libc::AT_FDCWD {
        match CWD.load(Ordering::Relaxed) {
            local if local == Cwd::Local as u8 => false,
            above if above == Cwd::AbovePrefix as u8 => STEPS.may_hold(first, second),
            _ => true,
        }
    } else {
        table::is_ours(dir) || STEPS.may_hold(first, second)
    }
}

/// [`may_be_far`] for paths that are long, suspicious, or lie at the end of a page.
#[cold]
fn is_worth_a_look(dir: c_int, path: usize) -> bool {
    // SAFETY: NUL-terminated by contract, so that behind each byte that is not NUL there is another.
    let byte = |at: usize| unsafe { *((path + at) as *const u8) };
    let mut letters = [0; 3];
    for (at, letter) in letters.iter_mut().enumerate() {
        *letter = byte(at);
        if *letter == 0 {
            break;
        }
    }
    let [first, second, third] = letters;
    begins_like_ours(dir, first, second, third) || !is_plain(path)
}

/// Bytes that are looked at in one step.
const STEP: usize = 32;

/// The least size of a page: what lies within one aligned piece of this size can be read if any of it can.
const PAGE: usize = 4096;

/// Whether a path has neither a colon nor two dots in a row.
fn is_plain(path: usize) -> bool {
    let mut address = path;
    let mut dot_before = 0;
    loop {
        if address % PAGE > PAGE - STEP {
            // Byte by byte into the next page, which the path may not reach.
            // SAFETY: the path has not ended before this byte.
            let byte = unsafe { *(address as *const u8) };
            let dot = u32::from(byte == b'.');
            if byte == 0 {
                return true;
            }
            if byte == b':' || dot & dot_before != 0 {
                return false;
            }
            dot_before = dot;
            address += 1;
            continue;
        }
        let seen = step(address, dot_before);
        // Everything up to the first NUL, or all.
        let inside = seen.ends ^ seen.ends.wrapping_sub(1);
        if seen.suspects & inside != 0 {
            return false;
        }
        if seen.ends != 0 {
            return true;
        }
        dot_before = seen.last_is_dot;
        address += STEP;
    }
}

/// What stands in the bytes of one step; in masks the lowest bit is the first byte.
struct Seen {
    /// The first four bytes, the first one lowest.
    letters: u32,
    /// NULs.
    ends: u32,
    /// Colons, and dots behind a dot.
    suspects: u32,
    /// 1 if the last byte is a dot.
    last_is_dot: u32,
}

/// Looks at the bytes of one step, of which the first belongs to a path and all lie in its page.
/// `dot_before` is 1 if the byte before is one of the path's and a dot.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn step(address: usize, dot_before: u32) -> Seen {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
        _mm_setzero_si128, _mm_slli_si128,
    };

    let (low, high, before_high): (__m128i, __m128i, __m128i);
    let letters: u32;
    // SAFETY: the caller's promise. Written as assembly because bytes behind the path's end belong to no
    // object that the compiler knows of.
    unsafe {
        std::arch::asm!(
            "mov {letters:e}, [{address}]",
            "movdqu {low}, [{address}]",
            "movdqu {high}, [{address} + 16]",
            "movdqu {before_high}, [{address} + 15]",
            letters = out(reg) letters,
            low = out(xmm_reg) low,
            high = out(xmm_reg) high,
            before_high = out(xmm_reg) before_high,
            address = in(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let mask =
            |low, high| _mm_movemask_epi8(low) as u32 | (_mm_movemask_epi8(high) as u32) << 16;
        let is = |block, byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
        let (low_dot, high_dot) = (is(low, b'.'), is(high, b'.'));
        let low_pair = _mm_and_si128(low_dot, _mm_slli_si128::<1>(low_dot));
        let high_pair = _mm_and_si128(high_dot, is(before_high, b'.'));
        let nul = _mm_setzero_si128();
        let pair_before = dot_before & u32::from(letters as u8 == b'.');
        Seen {
            letters,
            ends: mask(_mm_cmpeq_epi8(low, nul), _mm_cmpeq_epi8(high, nul)),
            suspects: pair_before
                | mask(
                    _mm_or_si128(low_pair, is(low, b':')),
                    _mm_or_si128(high_pair, is(high, b':')),
                ),
            last_is_dot: (_mm_movemask_epi8(high_dot) as u32) >> 15,
        }
    }
}

/// Looks at the bytes of one step.
#[cfg(not(target_arch = "x86_64"))]
fn step(address: usize, dot_before: u32) -> Seen {
    // SAFETY: the caller's promise.
    let bytes = unsafe { *(address as *const [u8; STEP]) };
    let mask = |wanted: u8| (0..STEP).map(|at| u32::from(bytes[at] == wanted) << at).sum::<u32>();
    let dots = mask(b'.');
    Seen {
        letters: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        ends: mask(0),
        suspects: mask(b':') | dots & (dots << 1 | dot_before),
        last_is_dot: dots >> 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(bytes: &[u8]) -> bool {
        !bytes.contains(&b':') && !bytes.windows(2).any(|pair| pair == b"..")
    }

    #[test]
    fn a_glance_sees_what_a_reader_sees_at_every_alignment() {
        let mut texts: Vec<String> = [
            "",
            "/",
            ".",
            "..",
            "/tmp/a.txt",
            "/tmp//a",
            "/tmp/a..b",
            "scdc:///x/y",
            "a/b/c/d/e/f/g/h/i/j/k/l/m/n.o",
            "/aaaaaaaaaaaaa/../hidden",
            "../x",
        ]
        .map(String::from)
        .into();
        for len in 0..150 {
            let path = "/a.b".repeat(40)[..len].to_owned();
            texts.extend([format!("{path}:"), format!("{path}.."), format!("{path}./"), path]);
        }
        for text in texts {
            for shift in 0..64 {
                // What stands before and behind the path must not matter.
                let mut memory = vec![b':'; shift];
                memory.extend_from_slice(text.as_bytes());
                memory.push(0);
                memory.extend_from_slice(b"..://.:::::::::::::::::::::");
                memory.extend_from_slice(&[b':'; 200]);
                let seen = is_plain(memory[shift..].as_ptr() as usize);
                assert_eq!(seen, plainly(text.as_bytes()), "{text:?} at {shift}");
            }
        }
    }

    #[test]
    fn a_glance_stays_within_the_pages_of_the_path() {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        // SAFETY: new memory, of which the second page becomes inaccessible.
        let memory = unsafe {
            let prot = ProtFlags::READ | ProtFlags::WRITE;
            let memory = mmap_anonymous(std::ptr::null_mut(), 2 * PAGE, prot, MapFlags::PRIVATE);
            let memory = memory.expect("mmap");
            mprotect(memory.add(PAGE), PAGE, MprotectFlags::empty()).expect("mprotect");
            memory.cast::<u8>()
        };
        for len in 0..200 {
            let name = format!("/{}", "a".repeat(len));
            for text in [format!("{name}.."), format!("{name}:"), name] {
                // SAFETY: the text and its NUL are the last bytes of the first page.
                let path = unsafe {
                    let path = memory.add(PAGE - text.len() - 1);
                    path.copy_from_nonoverlapping(text.as_ptr(), text.len());
                    path.add(text.len()).write(0);
                    path
                };
                assert_eq!(is_plain(path as usize), plainly(text.as_bytes()), "{text:?}");
                let far = may_be_far(libc::AT_FDCWD, path.cast());
                assert_eq!(far, !plainly(text.as_bytes()), "{text:?}");
            }
        }
    }

    #[test]
    fn names_are_told_by_two_letters() {
        let names = Names::new();
        for name in [&b"far"[..], b"x", b"."] {
            names.insert(name);
        }
        for (first, second) in [*b"fa", *b"x\0", *b"x/", *b"./", *b".\0"].map(|[a, b]| (a, b)) {
            assert!(names.may_hold(first, second));
        }
        for (first, second) in [*b"fo", *b"xa", *b".h", *b"f0", *b"f1"].map(|[a, b]| (a, b)) {
            assert!(!names.may_hold(first, second), "{first} {second}");
        }
    }

    #[test]
    fn what_lies_below_a_prefix_is_looked_at_and_its_neighbours_are_not() {
        watch_prefix(b"/far/data");
        let may = |dir, path: &std::ffi::CStr| may_be_far(dir, path.as_ptr());
        let some_directory = 77;
        for path in [c"/far", c"/far/data/x", c"//far/data", c"/./far/data", c"/tmp/../far", c"a:b"]
        {
            assert!(may(libc::AT_FDCWD, path), "{path:?}");
        }
        for path in [c"/", c"/tmp", c"/file", c"far/data", c"./far", c".", c"", c"x"] {
            assert!(!may(libc::AT_FDCWD, path), "{path:?}");
        }
        for path in [c"far", c"data/x", c"./data", c"../far"] {
            assert!(may(some_directory, path), "{path:?}");
        }
        for path in [c"f0001", c"x", c"", c".bashrc"] {
            assert!(!may(some_directory, path), "{path:?}");
        }
        set_cwd(Cwd::AbovePrefix);
        assert!(may(libc::AT_FDCWD, c"far/data") && may(libc::AT_FDCWD, c"./far"));
        assert!(!may(libc::AT_FDCWD, c"x") && !may(libc::AT_FDCWD, c""));
        set_cwd(Cwd::Far);
        assert!(may(libc::AT_FDCWD, c"x") && may(libc::AT_FDCWD, c"."));
        set_cwd(Cwd::Local);
    }
}
