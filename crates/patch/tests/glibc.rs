//! Every function that a preload of file I/O patches, patched in this libc all at once, and a workload through all of it.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

mod common;

use common::{assert_no_page_is_writable_and_executable, errno, in_child, permissions_at};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use patch::{PatchError, Patcher, Target};
use std::arch::global_asm;
use std::ffi::CStr;
use std::io::{Read, Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The names, by family. A preload patches all versions of each.
const NAMES: &str = "
    open open64 openat openat64 __open_nocancel __open64_nocancel __openat_nocancel __openat64_nocancel
    __open_2 __open64_2 __openat_2 __openat64_2 creat creat64 close __close_nocancel
    read __read_nocancel write __write_nocancel readv writev preadv pwritev preadv64 pwritev64
    preadv2 pwritev2 preadv64v2 pwritev64v2 pread pread64 __pread64_nocancel pwrite pwrite64 __pwrite64_nocancel
    __read_chk __pread_chk __pread64_chk lseek lseek64 llseek
    fstat64 fstatat64 stat64 lstat64 fstat stat lstat fstatat
    __xstat __lxstat __fxstat __fxstatat __xstat64 __lxstat64 __fxstat64 __fxstatat64 __xmknod __xmknodat statx
    access faccessat euidaccess eaccess readlink readlinkat __readlink_chk __readlinkat_chk getdents64
    getcwd __getcwd_chk get_current_dir_name getwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat remove
    rename renameat renameat2 link linkat symlink symlinkat truncate truncate64 ftruncate ftruncate64
    fsync fdatasync sync_file_range syncfs chmod fchmod fchmodat lchmod chown fchown lchown fchownat
    utime utimes futimes futimesat lutimes utimensat futimens
    statfs fstatfs statfs64 fstatfs64 statvfs fstatvfs statvfs64 fstatvfs64
    posix_fadvise posix_fadvise64 posix_fallocate posix_fallocate64 fallocate fallocate64 readahead
    fcntl fcntl64 __fcntl64_nocancel ioctl flock lockf lockf64 dup dup2 dup3 close_range closefrom
    fork vfork __fork __vfork _Fork posix_spawn posix_spawnp execve execv execvp execvpe execl execle execlp fexecve execveat
    _exit _Exit exit quick_exit mmap mmap64 munmap mremap msync mprotect madvise
    sendfile sendfile64 copy_file_range splice tee vmsplice realpath __realpath_chk canonicalize_file_name
    mkdtemp mkstemp mkstemp64 mkostemp mkostemp64 mkstemps64 mkostemps64 tmpfile tmpfile64
    getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr
    removexattr lremovexattr fremovexattr mknod mknodat mkfifo mkfifoat name_to_handle_at open_by_handle_at
    poll __poll ppoll __poll_chk __ppoll_chk select __select pselect epoll_ctl
    syscall recvmsg sendmsg recvmmsg recv recvfrom send sendto socket socketpair
    pipe __pipe pipe2 accept accept4 eventfd memfd_create signalfd timerfd_create inotify_init1
    inotify_add_watch fanotify_mark epoll_create epoll_create1
    aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64 aio_fsync aio_fsync64 aio_cancel aio_cancel64
    popen system pathconf fpathconf isatty ttyname ttyname_r __ttyname_r_chk
    fopen fopen64 freopen freopen64 fdopen fclose fflush fileno fcloseall
    opendir fdopendir readdir readdir64 readdir_r readdir64_r closedir rewinddir seekdir telldir dirfd
    scandir scandir64 scandirat scandirat64 glob glob64 ftw ftw64 nftw nftw64
    fts_open fts_read fts_children fts_set fts_close fts64_open fts64_read fts64_children fts64_set fts64_close
    dlopen chroot mount umount2 swapon acct
";

/// Functions that libc hides, by a caller and the system call they make.
const HIDDEN: &[(&str, &str, libc::c_long)] = &[
    ("__openat_nocancel", "fchmodat", libc::SYS_openat),
    ("__fcntl64_nocancel", "fdopendir", libc::SYS_fcntl),
];

/// Functions of the list that cannot be patched in Debian's glibc 2.36, and why.
fn not_patched() -> Vec<(&'static str, PatchError)> {
    let fcloseall = patch::resolve("fcloseall").unwrap().entry;
    // SAFETY: a function of five bytes.
    let first_bytes = unsafe { fcloseall.cast::<[u8; 5]>().read() };
    vec![
        // Not in the dynamic symbol table (some are patched as HIDDEN).
        ("__openat_nocancel", PatchError::NoSuchSymbol),
        ("__openat64_nocancel", PatchError::NoSuchSymbol),
        ("__pwrite64_nocancel", PatchError::NoSuchSymbol),
        // Begins with a call, of unlink, which is patched itself.
        ("remove", PatchError::Unmovable { offset: 4, reason: "it is a call" }),
        ("__fcntl64_nocancel", PatchError::NoSuchSymbol),
        // A jump to _IO_cleanup: it cannot be told from a hook.
        ("fcloseall", PatchError::AlreadyPatched { first_bytes }),
        // Loads one field and returns.
        ("dirfd", PatchError::TooShort { size_bytes: 3, needed_bytes: 5 }),
    ]
}

const STUBS: usize = 512;

// Replacement number i counts in hook_calls[i] and jumps to hook_trampolines[i], with every register and the stack as they were.
// 16 bytes each.
global_asm!(
    ".balign 16",
    ".globl hook_stubs",
    "hook_stubs:",
    ".set i, 0",
    ".rept 512",
    ".balign 16",
    "inc dword ptr [rip + hook_calls + 4 * i]",
    "jmp qword ptr [rip + hook_trampolines + 8 * i]",
    ".set i, i + 1",
    ".endr",
    ".bss",
    ".balign 16",
    "hook_calls: .skip 4 * 512",
    "hook_trampolines: .skip 8 * 512",
    ".text",
    ".globl hook_calls",
    ".globl hook_trampolines",
);

unsafe extern "C" {
    static hook_stubs: [[u8; 16]; STUBS];
    static hook_calls: [std::sync::atomic::AtomicU32; STUBS];
    static hook_trampolines: [AtomicUsize; STUBS];
}

/// One function that was patched to a counting stub.
#[derive(Debug)]
struct Hooked {
    name: &'static str,
    target: Target,
    original: Vec<u8>,
    stub: usize,
}

impl Hooked {
    fn calls(&self) -> u32 {
        // SAFETY: the stubs count here and nobody holds a reference other than a shared one.
        unsafe { hook_calls[self.stub].load(Ordering::Relaxed) }
    }
}

/// Patches all of NAMES. Answers what was patched, by entry, and what was refused.
fn patch_all() -> (Vec<Hooked>, Vec<(&'static str, PatchError)>) {
    let mut patcher = Patcher::new();
    let mut hooked: Vec<Hooked> = Vec::new();
    let mut refused = Vec::new();
    for name in NAMES.split_ascii_whitespace() {
        let versions = match patch::resolve_versions(name) {
            Ok(versions) => versions,
            Err(error) => {
                refused.push((name, error));
                continue;
            }
        };
        for target in versions {
            let known = hooked.iter().find(|other| other.target.entry == target.entry);
            let stub = known.map_or(hooked.len(), |other| other.stub);
            let length = target.size_bytes.unwrap().min(24);
            // SAFETY: code of libc, a stub that passes everything on, and enough stubs.
            let (original, outcome) = unsafe {
                let original = std::slice::from_raw_parts(target.entry, length).to_vec();
                (original, patcher.install(name, target, hook_stubs[stub].as_ptr()))
            };
            match outcome {
                Ok(trampoline) if known.is_none() => {
                    // SAFETY: nobody reads the table before the commit.
                    unsafe { hook_trampolines[stub].store(trampoline as usize, Ordering::Relaxed) };
                    hooked.push(Hooked { name, target, original, stub });
                }
                // SAFETY: as above.
                Ok(trampoline) => assert_eq!(trampoline as usize, unsafe {
                    hook_trampolines[stub].load(Ordering::Relaxed)
                }),
                Err(error) => refused.push((name, error)),
            }
        }
    }
    for (name, caller, number) in HIDDEN {
        let target = patch::resolve_callee(caller, *number).unwrap();
        let (stub, length) = (hooked.len(), target.size_bytes.unwrap().min(24));
        // SAFETY: as above.
        unsafe {
            let original = std::slice::from_raw_parts(target.entry, length).to_vec();
            let trampoline = patcher.install(name, target, hook_stubs[stub].as_ptr()).unwrap();
            hook_trampolines[stub].store(trampoline as usize, Ordering::Relaxed);
            hooked.push(Hooked { name, target, original, stub });
        }
    }
    refused.extend(patcher.commit().into_iter().map(|failure| (failure.name, failure.error)));
    (hooked, refused)
}

fn calls_of(hooked: &[Hooked], name: &str) -> u32 {
    let target = patch::resolve(name).unwrap();
    hooked.iter().find(|function| function.target.entry == target.entry).unwrap().calls()
}

#[test]
fn every_function_of_the_list_is_patched_or_its_reason_is_known() {
    in_child("every_function_of_the_list_is_patched_or_its_reason_is_known", || {
        let (hooked, refused) = patch_all();
        println!("{} entries patched, {} refused: {refused:?}", hooked.len(), refused.len());
        assert_eq!(refused, not_patched());
        assert!(hooked.len() > 190, "{}", hooked.len());
        for function in &hooked {
            assert_eq!(permissions_at(function.target.entry), "r-xp", "{}", function.name);
        }
        assert_no_page_is_writable_and_executable();
    });
}

#[test]
fn no_branch_anywhere_in_libc_leads_into_an_overwritten_entry() {
    in_child("no_branch_anywhere_in_libc_leads_into_an_overwritten_entry", || {
        let (hooked, _) = patch_all();
        let mut overwritten = std::collections::HashMap::new();
        for function in &hooked {
            let start = function.target.entry as usize;
            for (offset, before) in function.original.iter().enumerate().skip(1) {
                // SAFETY: code of libc, as long as `original`.
                if unsafe { *function.target.entry.add(offset) } != *before {
                    overwritten.insert(start + offset, function.name);
                }
            }
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ranges = maps.lines().map(|line| {
            let (start, rest) = line.split_once('-').unwrap();
            let parse = |text| usize::from_str_radix(text, 16).unwrap();
            (parse(start), parse(rest.split(' ').next().unwrap()), line)
        });
        let (mut first, mut last) = (usize::MAX, 0);
        for (start, end, line) in ranges {
            if line.contains(" r-xp ") && line.ends_with("libc.so.6") {
                (first, last) = (first.min(start), last.max(end));
            }
        }
        // SAFETY: from the first to the last page of libc's code, all mapped r-x.
        let text = unsafe { std::slice::from_raw_parts(first as *const u8, last - first) };
        let mut decoder = Decoder::with_ip(64, text, first as u64, DecoderOptions::NONE);
        let mut branches = 0;
        for instruction in &mut decoder {
            let is_branch = matches!(
                instruction.flow_control(),
                FlowControl::ConditionalBranch
                    | FlowControl::UnconditionalBranch
                    | FlowControl::Call
            );
            if is_branch && instruction.near_branch_target() != 0 {
                branches += 1;
                let target = instruction.near_branch_target() as usize;
                let hit = overwritten.get(&target);
                assert_eq!(
                    hit,
                    None,
                    "{instruction:?} at {:#x}",
                    instruction.ip() as usize - first
                );
            }
        }
        println!("{branches} branches looked at, {} bytes overwritten", overwritten.len());
        assert!(branches > 50_000 && overwritten.len() > 4 * hooked.len());
    });
}

#[test]
fn a_process_with_everything_patched_works_as_before() {
    in_child("a_process_with_everything_patched_works_as_before", || {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let (hooked, _) = patch_all();

        // Files, by way of the PLT.
        let mut file = std::fs::File::create_new(&path).unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let mut file = std::fs::File::open(&path).unwrap();
        file.seek(std::io::SeekFrom::Start(99_990)).unwrap();
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).unwrap();
        assert_eq!(tail, [7; 10]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 100_000);

        // errno through a trampoline.
        let mut byte = 0u8;
        // SAFETY: plain calls that fail.
        unsafe {
            assert_eq!((libc::read(-1, (&raw mut byte).cast(), 1), errno()), (-1, libc::EBADF));
            assert_eq!((libc::lseek64(-1, 0, libc::SEEK_SET), errno()), (-1, libc::EBADF));
            assert_eq!(
                (libc::open(c"/no/such".as_ptr(), libc::O_RDONLY), errno()),
                (-1, libc::ENOENT)
            );
            assert_eq!((libc::close_range(9, 1, 0), errno()), (-1, libc::EINVAL));
            assert_eq!(
                (libc::ioctl(-1, libc::FIONREAD, &raw mut byte), errno()),
                (-1, libc::EBADF)
            );
        }

        // stdio, whose calls never pass the PLT.
        let (reads, writes, closes) = (
            calls_of(&hooked, "read"),
            calls_of(&hooked, "write"),
            calls_of(&hooked, "__close_nocancel"),
        );
        let c_path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: stdio calls on one open stream.
        unsafe {
            let stream = libc::fopen(c_path.as_ptr(), c"r+".as_ptr());
            let mut buffer = [0u8; 16];
            assert_eq!(libc::fread(buffer.as_mut_ptr().cast(), 1, 16, stream), 16);
            assert_eq!(buffer, [7; 16]);
            assert_eq!(libc::fseek(stream, 0, libc::SEEK_END), 0);
            assert!(libc::fputs(c"end".as_ptr(), stream) >= 0);
            assert_eq!(libc::ftell(stream), 100_003);
            assert_eq!(libc::fclose(stream), 0);
        }
        assert!(calls_of(&hooked, "read") > reads, "stdio reads through the patched entry");
        assert!(calls_of(&hooked, "write") > writes);
        assert!(calls_of(&hooked, "__close_nocancel") > closes);

        // Directories.
        let dents = calls_of(&hooked, "getdents64");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(calls_of(&hooked, "getdents64") > dents, "readdir asks through the patched entry");
        assert_eq!(std::fs::canonicalize(&path).unwrap().file_name(), path.file_name());

        let hidden = |name| hooked.iter().find(|function| function.name == name).unwrap().calls();
        assert_eq!(hidden("__openat_nocancel"), 0);
        // SAFETY: nftw and fdopendir of a directory that exists.
        unsafe {
            extern "C" fn stay(
                _: *const libc::c_char,
                _: *const libc::stat,
                _: i32,
                _: *mut libc::c_void,
            ) -> i32 {
                0
            }
            type Visit = extern "C" fn(
                *const libc::c_char,
                *const libc::stat,
                i32,
                *mut libc::c_void,
            ) -> i32;
            unsafe extern "C" {
                fn nftw(path: *const libc::c_char, visit: Visit, fds: i32, flags: i32) -> i32;
            }
            const FTW_CHDIR: i32 = 4;
            std::fs::create_dir(directory.path().join("below")).unwrap();
            let top = std::ffi::CString::new(directory.path().to_str().unwrap()).unwrap();
            assert_eq!(nftw(top.as_ptr(), stay, 8, FTW_CHDIR), 0);
            assert!(hidden("__openat_nocancel") > 0);
            let fd = libc::open(top.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
            assert_eq!(libc::closedir(libc::fdopendir(fd)), 0);
            assert!(hidden("__fcntl64_nocancel") > 0);
        }

        // Threads, processes.
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || std::fs::read(path).unwrap().len())
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 100_003));
        let output = std::process::Command::new("/bin/echo").arg("spawned").output().unwrap();
        assert_eq!(output.stdout, b"spawned\n");
        // SAFETY: commands of a shell; popen's stream is closed by pclose.
        unsafe {
            assert_eq!(libc::WEXITSTATUS(libc::system(c"exit 7".as_ptr())), 7);
            let stream = libc::popen(c"echo popened".as_ptr(), c"r".as_ptr());
            let mut line = [0 as libc::c_char; 32];
            assert!(!libc::fgets(line.as_mut_ptr(), 32, stream).is_null());
            assert_eq!(CStr::from_ptr(line.as_ptr()), c"popened\n");
            assert_eq!(libc::pclose(stream), 0);
            let child = libc::fork();
            if child == 0 {
                libc::_exit(if libc::getppid() > 0 { 5 } else { 6 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(libc::WEXITSTATUS(status), 5);
        }
        let called = hooked.iter().filter(|function| function.calls() > 0).count();
        println!("{called} of {} patched functions were called", hooked.len());
        assert!(called > 30, "{called}");
        assert_no_page_is_writable_and_executable();
    });
}

#[test]
fn vfork_returns_twice_through_a_naked_replacement() {
    in_child("vfork_returns_twice_through_a_naked_replacement", || {
        let (hooked, _) = patch_all();
        // The child runs on this stack until it ends, so everything it does is one call of a function that does not return.
        // SAFETY: vfork(2): the child only calls _exit.
        #[allow(deprecated)]
        let child = unsafe { libc::vfork() };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(23) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 23);
        assert_eq!(calls_of(&hooked, "vfork"), 1);
        assert_eq!(calls_of(&hooked, "_exit"), 1, "counted by the child, in memory that it shared");
    });
}

#[test]
fn a_thread_is_cancelled_within_a_patched_read() {
    in_child("a_thread_is_cancelled_within_a_patched_read", || {
        extern "C-unwind" fn hook(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize {
            type Read = unsafe extern "C-unwind" fn(i32, *mut libc::c_void, usize) -> isize;
            // SAFETY: the trampoline of read(2), stored before the commit.
            unsafe {
                std::mem::transmute::<usize, Read>(TRAMPOLINE.load(Ordering::Relaxed))(
                    fd, buffer, size_bytes,
                )
            }
        }
        static TRAMPOLINE: AtomicUsize = AtomicUsize::new(0);
        static ENDS: [std::sync::atomic::AtomicI32; 2] =
            [const { std::sync::atomic::AtomicI32::new(-1) }; 2];
        unsafe extern "C-unwind" {
            fn pthread_cancel(thread: libc::pthread_t) -> i32;
            #[link_name = "read"]
            fn cancellable_read(fd: i32, buffer: *mut libc::c_void, size_bytes: usize) -> isize;
        }
        extern "C-unwind" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
            let mut byte = 0u8;
            // SAFETY: reads from a pipe into which nobody writes.
            unsafe { cancellable_read(ENDS[0].load(Ordering::Relaxed), (&raw mut byte).cast(), 1) };
            std::ptr::null_mut()
        }
        let mut patcher = Patcher::new();
        // SAFETY: a replacement that passes everything on, through which unwinding is allowed.
        let trampoline =
            unsafe { patcher.install("read", patch::resolve("read").unwrap(), hook as *const u8) }
                .unwrap();
        TRAMPOLINE.store(trampoline as usize, Ordering::Relaxed);
        assert_eq!(patcher.commit(), []);
        // SAFETY: a pipe and a thread, both used as documented in pipe(2), pthread_create(3), pthread_cancel(3).
        unsafe {
            let mut ends = [0; 2];
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            ENDS[0].store(ends[0], Ordering::Relaxed);
            let mut thread = 0;
            let start: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void = std::mem::transmute(
                body as extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void,
            );
            assert_eq!(
                libc::pthread_create(
                    &raw mut thread,
                    std::ptr::null(),
                    start,
                    std::ptr::null_mut()
                ),
                0
            );
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert_eq!(pthread_cancel(thread), 0);
            let mut answer = std::ptr::null_mut();
            assert_eq!(libc::pthread_join(thread, &raw mut answer), 0);
            assert_eq!(answer as isize, -1, "PTHREAD_CANCELED");
        }
    });
}
