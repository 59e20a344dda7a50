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

/// Names that matter, as a set that may hold more than was put in: an entry for each first letter with
/// half of the second. A table rather than a hash, because what it answers is waited for.
struct Names([AtomicBool; 1 << 12]);

impl Names {
    const fn new() -> Self {
        Self([const { AtomicBool::new(false) }; 1 << 12])
    }

    /// The entry of names that begin with these letters.
    #[inline(always)]
    fn entry(&self, first: u8, second: u8) -> &AtomicBool {
        &self.0[usize::from(u16::from_le_bytes([first, second])) % (1 << 12)]
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
    // `/./far`, `./far` and `//far`.
    ROOTS.insert(b".");
    STEPS.insert(b".");
    (0..=u8::MAX).for_each(|any| ROOTS.insert(&[b'/', any]));
}

/// From the first redirected descriptor on, paths below /dev and /proc may name one.
pub(crate) fn watch_descriptor_names() {
    ROOTS.insert(b"dev");
    ROOTS.insert(b"proc");
}

/// Whether a path might lead to a service: the cheap test of every path hook. A yes may be wrong, and the
/// operation then passes the call on; a no never is. A NULL path leads nowhere, so that libc answers
/// EFAULT.
///
/// The processor cannot begin a system call before it knows which way all branches go, and after one little
/// of the program's code is left in its nearest cache: what is done here is short and in few places.
#[inline(always)]
pub(crate) fn may_be_far(dir: c_int, path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    if dir == libc::AT_FDCWD {
        return matters(path);
    }
    // SAFETY: not NULL, and NUL-terminated by contract, so that behind each byte that is not NUL there is
    // another.
    let letter = |at: usize| unsafe { *path.add(at) } as u8;
    match letter(0) {
        b'/' => matters(path),
        0 => table::is_ours(dir),
        first => table::is_ours(dir) || STEPS.may_hold(first, letter(1)) || !is_plain(path),
    }
}

/// [`may_be_far`] of a path that is absolute or relative to the working directory.
#[inline(always)]
fn matters(path: *const c_char) -> bool {
    ask!(look, path)
}

/// Whether a path has neither a colon nor two dots in a row.
#[inline(always)]
fn is_plain(path: *const c_char) -> bool {
    !ask!(search, path)
}

/// Calls [`look`] or [`search`].
macro_rules! ask {
    ($function:path, $path:expr) => {{
        let answer: u32;
        // SAFETY: the function reads only bytes in pages of the path, which is not NULL and NUL-terminated by
        // contract, and changes no other registers than these.
        unsafe {
            std::arch::asm!(
                "call {function}",
                function = sym $function,
                inout("r10") $path => _,
                lateout("r11d") answer,
                out("eax") _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            );
        }
        answer != 0
    }};
}
use ask;

/// Looks at the path in `r10`, which is absolute or relative to the working directory: at the letters it begins with, and
/// then as [`search`], which comes next. The answer, 0 or 1, is left in `r11d`.
///
/// One function for all hooks, with a calling convention of its own so that they need not save their arguments.
#[unsafe(naked)]
unsafe extern "C" fn look() {
    std::arch::naked_asm!(
        ".p2align 6",
        "mov eax, r10d",
        "and eax, 0xfff",
        "cmp eax, 0xff0",
        "ja 5f",
        "mov eax, [r10]",
        // `Names::entry` of the first two letters. What stands behind the end of a path does not matter here: no name
        // begins with NUL.
        "2:",
        "cmp al, 0x2f", // a slash
        "jne 3f",
        "shr eax, 8",
        "and eax, 0xfff",
        "lea r11, [rip + {roots}]",
        "cmp byte ptr [r11 + rax], 0",
        "je {search}",
        "mov r11d, 1",
        "ret",
        "3:",
        "cmp byte ptr [rip + {cwd}], {local}",
        "je {search}",
        "cmp byte ptr [rip + {cwd}], {above_prefix}",
        "jne 4f",
        "and eax, 0xfff",
        "lea r11, [rip + {steps}]",
        "cmp byte ptr [r11 + rax], 0",
        "je {search}",
        "4:",
        "mov r11d, 1",
        "ret",
        // Near the end of a page, behind which there may be nothing to read: letter by letter.
        "5:",
        "movzx eax, byte ptr [r10]",
        "test eax, eax",
        "jz 2b",
        "movzx r11d, byte ptr [r10 + 1]",
        "test r11d, r11d",
        "jz 2b",
        "shl r11d, 8",
        "or eax, r11d",
        "movzx r11d, byte ptr [r10 + 2]",
        "shl r11d, 16",
        "or eax, r11d",
        "jmp 2b",
        roots = sym ROOTS,
        steps = sym STEPS,
        cwd = sym CWD,
        local = const Cwd::Local as u8,
        above_prefix = const Cwd::AbovePrefix as u8,
        search = sym search,
    )
}

/// Searches the path in `r10` for a colon or two dots in a row; the answer, 0 or not, is left in `r11d`.
#[unsafe(naked)]
unsafe extern "C" fn search() {
    std::arch::naked_asm!(
        ".p2align 6",
        "mov eax, 0x3a3a3a3a", // colons
        "movd xmm2, eax",
        "pshufd xmm2, xmm2, 0",
        "mov eax, 0x2e2e2e2e", // dots
        "movd xmm3, eax",
        "pshufd xmm3, xmm3, 0",
        "pxor xmm1, xmm1",
        "mov eax, r10d",
        "and eax, 0xfff",
        "cmp eax, 0xff0",
        "ja 5f",
        // The first sixteen bytes, and which of them are dots, and which stand behind one.
        "movdqu xmm0, [r10]",
        "movdqa xmm4, xmm0",
        "pcmpeqb xmm4, xmm3",
        "movdqa xmm5, xmm4",
        "pslldq xmm5, 1",
        "and r10, -16",
        "2:",
        "pand xmm4, xmm5",
        "movdqa xmm5, xmm0",
        "pcmpeqb xmm5, xmm2",
        "por xmm4, xmm5",
        "pcmpeqb xmm0, xmm1",
        "pmovmskb r11d, xmm4",
        "pmovmskb eax, xmm0",
        "test r11d, r11d",
        "jnz 4f",
        "test eax, eax",
        "jnz 3f",
        // All others at multiples of sixteen, where none reaches beyond the page that it begins in.
        "add r10, 16",
        "movdqa xmm0, [r10]",
        "movdqu xmm5, [r10 - 1]",
        "movdqa xmm4, xmm0",
        "pcmpeqb xmm4, xmm3",
        "pcmpeqb xmm5, xmm3",
        "jmp 2b",
        "3:",
        "ret",
        // What was found counts if no end stands before it.
        "4:",
        "lea r10d, [rax - 1]",
        "not eax",
        "and eax, r10d",
        "and r11d, eax",
        "ret",
        // The path begins at the end of a page, behind which there may be nothing to read: one byte after the other.
        // `r11d` is the byte before.
        "5:",
        "xor r11d, r11d",
        "6:",
        "movzx eax, byte ptr [r10]",
        "cmp eax, 0x3a",
        "je 8f",
        "cmp eax, 0x2e",
        "jne 7f",
        "cmp r11d, eax",
        "je 8f",
        "7:",
        "mov r11d, eax",
        "inc r10",
        "test eax, eax",
        "jnz 6b",
        "ret",
        "8:",
        "mov r11d, 1",
        "ret",
    )
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
                let path = memory[shift..].as_ptr().cast();
                assert_eq!(is_plain(path), plainly(text.as_bytes()), "{text:?} at {shift}");
            }
        }
    }

    /// The least size of a page.
    const PAGE: usize = 4096;

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
                assert_eq!(is_plain(path.cast()), plainly(text.as_bytes()), "{text:?}");
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
        for [first, second] in [*b"fa", *b"x\0", *b"x/", *b"./", *b".\0"] {
            assert!(names.may_hold(first, second), "{first} {second}");
        }
        for [first, second] in [*b"fo", *b"xa", *b".h", *b"f0", *b"f2", *b"ga"] {
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
