//! What a patched entry costs: `cargo run --release -p patch --example cost`.
//!
//! Prints nanoseconds a call, the median of alternated runs, for a function that does nothing and for some of libc, unpatched
//! and patched to a replacement that looks a descriptor up in a table and passes on what is not its own; and what it costs a
//! process to patch the entries of a preload library.

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("cost: patching is implemented for x86-64 only");
}

#[cfg(target_arch = "x86_64")]
fn main() {
    cost::main();
}

#[cfg(target_arch = "x86_64")]
mod cost {
    use patch::{Patcher, Target};
    use std::arch::global_asm;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    // Two equal functions, `long nothing(int fd, void *, size_t)`, of which one is patched.
    global_asm!(
        ".balign 64",
        ".globl cost_plain",
        "cost_plain: mov rax, rdx",
        "add rax, 1",
        "ret",
        ".balign 64",
        ".globl cost_patched",
        "cost_patched: mov rax, rdx",
        "add rax, 1",
        "ret",
    );

    global_asm!(
        ".set cost_index, 0",
        ".globl cost_stubs",
        ".balign 16",
        "cost_stubs:",
        ".rept 256",
        ".balign 16",
        "jmp qword ptr [rip + cost_slots + 8 * cost_index]",
        ".set cost_index, cost_index + 1",
        ".endr",
        ".bss",
        ".balign 16",
        ".globl cost_slots",
        "cost_slots: .skip 8 * 256",
        ".text",
    );

    type Call = unsafe extern "C" fn(i32, *mut libc::c_void, usize) -> isize;

    unsafe extern "C" {
        static cost_stubs: [[u8; 16]; 256];
        static cost_slots: [AtomicUsize; 256];
        fn cost_plain(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize;
        fn cost_patched(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize;
    }

    /// Nothing is routed here: every look-up says "not ours", as for most calls of most programs.
    static TABLE: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
    static NOTHING: AtomicUsize = AtomicUsize::new(0);
    static READ: AtomicUsize = AtomicUsize::new(0);
    static LSEEK: AtomicUsize = AtomicUsize::new(0);

    fn pass(
        original: &AtomicUsize,
        fd: i32,
        buffer: *mut libc::c_void,
        size_bytes: usize,
    ) -> isize {
        let is_ours =
            TABLE.get(fd as usize).is_some_and(|entry| entry.load(Ordering::Relaxed) != 0);
        if is_ours {
            return -1;
        }
        // SAFETY: a trampoline of a function of this type, stored before the commit.
        unsafe {
            std::mem::transmute::<usize, Call>(original.load(Ordering::Relaxed))(
                fd, buffer, size_bytes,
            )
        }
    }

    extern "C" fn nothing_hook(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize {
        pass(&NOTHING, fd, buffer, size_bytes)
    }
    extern "C" fn read_hook(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize {
        pass(&READ, fd, buffer, size_bytes)
    }
    extern "C" fn lseek_hook(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize {
        pass(&LSEEK, fd, buffer, size_bytes)
    }

    /// Nanoseconds a call, median of `rounds` runs of `calls` calls.
    fn median_ns(rounds: usize, calls: u32, mut call: impl FnMut()) -> f64 {
        let mut samples: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                (0..calls).for_each(|_| call());
                start.elapsed().as_nanos() as f64 / f64::from(calls)
            })
            .collect();
        samples.sort_by(f64::total_cmp);
        samples[rounds / 2]
    }

    fn call(function: Call, fd: i32, byte: &mut u8) {
        // SAFETY: read, lseek64 or a function that touches nothing; one byte fits.
        let answer = unsafe { std::hint::black_box(function)(fd, (&raw mut *byte).cast(), 1) };
        std::hint::black_box(answer);
    }

    pub(super) fn main() {
        if std::env::args().nth(1).as_deref() == Some("--load") {
            at_load();
        } else {
            calls();
            println!("(with --load: the cost of patching all that a preload library patches)");
        }
    }

    fn calls() {
        // SAFETY: open(2) of a device.
        let zero = unsafe { libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY) };
        let mut byte = 0;
        let (rounds, calls) = (31, 200_000);
        let read_before = median_ns(rounds, 20_000, || call(libc::read, zero, &mut byte));
        // SAFETY: lseek64 takes the same registers as the type says.
        let lseek: Call = unsafe {
            std::mem::transmute(libc::lseek64 as unsafe extern "C" fn(i32, i64, i32) -> i64)
        };
        let lseek_before = median_ns(rounds, 20_000, || call(lseek, zero, &mut byte));

        let mut patcher = Patcher::new();
        let mut install = |name, target, hook: Call, slot: &AtomicUsize| {
            // SAFETY: replacements with the arguments of the originals.
            let trampoline =
                unsafe { patcher.install(name, target, hook as *const u8) }.expect(name);
            slot.store(trampoline as usize, Ordering::Relaxed);
        };
        install(
            "nothing",
            Target { entry: cost_patched as *const u8, size_bytes: Some(8) },
            nothing_hook,
            &NOTHING,
        );
        install("read", patch::resolve("read").expect("read"), read_hook, &READ);
        install("lseek64", patch::resolve("lseek64").expect("lseek64"), lseek_hook, &LSEEK);
        let failures = patcher.commit();
        assert!(failures.is_empty(), "{failures:?}");

        let plain = median_ns(rounds, calls, || call(cost_plain, 5, &mut byte));
        let patched = median_ns(rounds, calls, || call(cost_patched, 5, &mut byte));
        let read_after = median_ns(rounds, 20_000, || call(libc::read, zero, &mut byte));
        let lseek_after = median_ns(rounds, 20_000, || call(lseek, zero, &mut byte));
        println!(
            "an empty function   {plain:8.2} ns  patched {patched:8.2} ns  (+{:.2} ns)",
            patched - plain
        );
        println!("read of /dev/zero   {read_before:8.2} ns  patched {read_after:8.2} ns");
        println!("lseek64             {lseek_before:8.2} ns  patched {lseek_after:8.2} ns");
    }

    /// Times what a preload library does in its constructor, with replacements that only jump on.
    fn at_load() {
        let start = Instant::now();
        let targets: Vec<(&'static str, Target)> = NAMES
            .split_ascii_whitespace()
            .flat_map(|name| {
                patch::resolve_versions(name)
                    .into_iter()
                    .flatten()
                    .map(move |target| (name, target))
            })
            .collect();
        let resolved = start.elapsed();
        let mut patcher = Patcher::new();
        let mut planned = 0;
        for (index, (name, target)) in targets.iter().enumerate() {
            // SAFETY: the stub passes everything on, through the slot set here; there are enough of both.
            unsafe {
                if let Ok(trampoline) = patcher.install(name, *target, cost_stubs[index].as_ptr()) {
                    cost_slots[index].store(trampoline as usize, Ordering::Relaxed);
                    planned += 1;
                }
            }
        }
        let installed = start.elapsed();
        let failures = patcher.commit();
        let committed = start.elapsed();
        println!(
            "at load: resolve {} entries {resolved:?}, install {planned} {:?}, commit {:?} ({} failures), all {committed:?}",
            targets.len(),
            installed - resolved,
            committed - installed,
            failures.len(),
        );
    }

    const NAMES: &str = "open64 openat64 __open_nocancel __open_2 __open64_2 creat64 close __close_nocancel read __read_nocancel \
        write __write_nocancel readv writev preadv pwritev preadv64v2 pwritev64v2 pread64 __pread64_nocancel pwrite64 lseek64 fstat64 \
        fstatat64 stat64 lstat64 __xstat64 __lxstat64 __fxstat64 __fxstatat64 statx access faccessat euidaccess readlink readlinkat \
        getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat \
        truncate64 ftruncate64 fsync fdatasync sync_file_range chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimes \
        futimesat lutimes utimensat futimens statfs64 fstatfs64 statvfs64 fstatvfs64 posix_fadvise64 posix_fallocate64 fallocate64 \
        fcntl64 ioctl flock lockf64 dup dup2 dup3 close_range closefrom fork vfork _Fork posix_spawn posix_spawnp execve fexecve \
        execveat _exit mmap64 munmap mremap msync sendfile64 copy_file_range splice tee vmsplice realpath mkdtemp mkstemp64 getxattr \
        lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr mknod \
        mknodat name_to_handle_at poll select epoll_ctl syscall recvmsg socket pipe pipe2 accept accept4 eventfd memfd_create \
        aio_read64 aio_write64 lio_listio64 aio_fsync popen system pathconf fpathconf isatty";
}
