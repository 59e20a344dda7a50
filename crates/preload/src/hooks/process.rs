//! fork(2), vfork(2), posix_spawn(3), exec(2), exit(2), umask(2), syscall(2).

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

use super::{Named, hooks, original};
use crate::context::{Located, is_far, locate};
use crate::glance::may_be_far;
#[cfg(feature = "exports")]
use crate::install::{Technique, technique};
use crate::ops::{environment, process as ops};
use crate::outcome::{ErrorNumber, Outcome, guarded, is_inside};
use crate::table;

type Path = *const c_char;
type Strings = *const *const c_char;

/// Runs a preparation that must never keep the call from happening.
fn prepare(preparation: impl FnOnce()) {
    if table::any() && !is_inside() {
        let _ = guarded(|| {
            preparation();
            Outcome::Handled(())
        });
    }
}

/// fork(2).
unsafe extern "C-unwind" fn fork<H: Named>() -> libc::pid_t {
    prepare(ops::before_fork);
    // SAFETY: no arguments.
    let pid = unsafe { original!(H: fn() -> libc::pid_t)() };
    if pid == 0 {
        let _ = guarded(|| {
            ops::after_fork_in_child();
            Outcome::Handled(())
        });
    }
    pid
}

unsafe extern "C-unwind" fn before_vfork() {
    prepare(ops::before_fork);
}

/// vfork(2): libc's takes its return address off the stack, so nothing may be left there when it is
/// jumped to.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn vfork<H: Named>() -> libc::pid_t {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "call {prepare}",
        "call {slot}",
        "add rsp, 8",
        "jmp rax",
        prepare = sym before_vfork,
        slot = sym original_address::<H>,
    )
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn vfork<H: Named>() -> libc::pid_t {
    // vfork(2): may be implemented as fork(2).
    unsafe { fork::<H>() }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" fn original_address<H: Named>() -> *const () {
    H::original().get()
}

/// posix_spawn(3), posix_spawnp(3).
unsafe extern "C-unwind" fn spawn<H: Named>(
    pid: *mut libc::pid_t,
    path: Path,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    prepare(ops::before_fork);
    // SAFETY: the program's own arguments.
    unsafe {
        original!(H: fn(
            *mut libc::pid_t,
            Path,
            *const libc::posix_spawn_file_actions_t,
            *const libc::posix_spawnattr_t,
            Strings,
            Strings
        ) -> c_int)(pid, path, actions, attributes, arguments, environment)
    }
}

/// system(3): spawns inside libc.
unsafe extern "C-unwind" fn system<H: Named>(command: Path) -> c_int {
    prepare(ops::before_fork);
    // SAFETY: the program's own arguments.
    unsafe { original!(H: fn(Path) -> c_int)(command) }
}

/// popen(3): spawns inside libc.
unsafe extern "C-unwind" fn popen<H: Named>(command: Path, mode: Path) -> *mut libc::FILE {
    prepare(ops::before_fork);
    // SAFETY: the program's own arguments.
    unsafe { original!(H: fn(Path, Path) -> *mut libc::FILE)(command, mode) }
}

/// execve(2), beneath all of exec(3). A program that lies on a service is fetched.
unsafe extern "C-unwind" fn execve<H: Named>(
    path: Path,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    let call = original!(H: fn(Path, Strings, Strings) -> c_int);
    prepare(ops::before_exec);
    // SAFETY: the program's own environment.
    let completed = unsafe { environment::complete(environment) };
    let environment = completed.as_ref().map_or(environment, |made| made.entries.as_ptr());
    if may_be_far(libc::AT_FDCWD, path) {
        let fetched = guarded(|| match locate(libc::AT_FDCWD, path) {
            Located::Far(place) => ops::fetch_program(&place).into(),
            Located::Nowhere(errno) => Outcome::Fail(errno),
            Located::Near(_) | Located::Here => Outcome::PassThrough,
        });
        match fetched {
            Outcome::Handled(local) => {
                // SAFETY: the program's own arguments, and a path that lives through the call.
                return unsafe { call(local.as_ptr(), arguments, environment) };
            }
            Outcome::Fail(errno) => return <c_int as crate::outcome::CReturn>::failed(errno),
            Outcome::PassThrough => {}
        }
    }
    // SAFETY: the program's own arguments.
    unsafe { call(path, arguments, environment) }
}

/// fexecve(3).
unsafe extern "C-unwind" fn fexecve<H: Named>(
    fd: c_int,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    prepare(ops::before_exec);
    // SAFETY: the program's own environment.
    let completed = unsafe { environment::complete(environment) };
    let environment = completed.as_ref().map_or(environment, |made| made.entries.as_ptr());
    // SAFETY: the program's own arguments.
    unsafe { original!(H: fn(c_int, Strings, Strings) -> c_int)(fd, arguments, environment) }
}

/// execveat(2).
unsafe extern "C-unwind" fn execveat<H: Named>(
    dir: c_int,
    path: Path,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    prepare(ops::before_exec);
    // SAFETY: the program's own arguments.
    unsafe {
        original!(H: fn(c_int, Path, Strings, Strings, c_int) -> c_int)(
            dir,
            path,
            arguments,
            environment,
            flags,
        )
    }
}

unsafe extern "C" {
    static environ: Strings;
}

/// execv(3) where libc's own calls of execve(2) are not seen.
unsafe extern "C-unwind" fn execv<H: Named>(path: Path, arguments: Strings) -> c_int {
    // SAFETY: the program's own arguments and environment (environ(7)).
    unsafe { execve::<names::execve>(path, arguments, environ) }
}

/// execvpe(3), likewise.
unsafe extern "C-unwind" fn execvpe<H: Named>(
    file: Path,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    prepare(ops::before_exec);
    // SAFETY: the program's own environment.
    let completed = unsafe { environment::complete(environment) };
    let environment = completed.as_ref().map_or(environment, |made| made.entries.as_ptr());
    // SAFETY: the program's own arguments.
    unsafe { original!(H: fn(Path, Strings, Strings) -> c_int)(file, arguments, environment) }
}

/// execvp(3), likewise.
unsafe extern "C-unwind" fn execvp<H: Named>(file: Path, arguments: Strings) -> c_int {
    // SAFETY: the program's own arguments and environment (environ(7)).
    unsafe { execvpe::<names::execvpe>(file, arguments, environ) }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" fn before_execl() {
    prepare(ops::before_exec);
}

/// execl(3), execlp(3), execle(3), likewise: the arguments, any number of them, go on as they came. Strings alone, so
/// that there are none in vector registers (System V ABI, 3.5.7).
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn execl<H: Named>() -> c_int {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        // With the return address eight words: calls find the stack aligned.
        "push rax",
        "call {prepare}",
        "call {slot}",
        "mov r11, rax",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        prepare = sym before_execl,
        slot = sym original_address::<H>,
    )
}

/// Nothing is interposed there.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C-unwind" fn execl<H: Named>() -> c_int {
    <c_int as crate::outcome::CReturn>::failed(p9::Errno::ENOSYS)
}

/// _exit(2): the end of exit(3) too, after stdio has written its last.
unsafe extern "C-unwind" fn exit<H: Named>(status: c_int) {
    prepare(|| {
        if ops::owns_the_table() {
            ops::before_exit();
        }
    });
    // SAFETY: the program's own argument.
    unsafe { original!(H: fn(c_int) -> ())(status) }
}

/// exit(3) where only the program's own calls are seen: libc's, of _exit(2), is not. It runs with the destructors.
#[cfg(feature = "exports")]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

#[cfg(feature = "exports")]
extern "C" fn end() {
    if technique() == Technique::Interposing {
        prepare(|| {
            if ops::owns_the_table() {
                ops::before_exit();
            }
        });
    }
}

/// umask(2): 9P creates with the mode it is given, so that the mask must be known here.
unsafe extern "C-unwind" fn umask<H: Named>(mask: libc::mode_t) -> libc::mode_t {
    ops::set_umask(mask);
    // SAFETY: the program's own argument.
    unsafe { original!(H: fn(libc::mode_t) -> libc::mode_t)(mask) }
}

/// syscall(2) with the numbers that would act on our descriptors behind our back.
fn is_file_call(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_write
            | libc::SYS_close
            | libc::SYS_lseek
            | libc::SYS_fstat
            | libc::SYS_getdents64
            | libc::SYS_close_range
            | libc::SYS_dup
            | libc::SYS_dup3
            | libc::SYS_pread64
            | libc::SYS_pwrite64
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_ftruncate
            | libc::SYS_openat
            | libc::SYS_statx
            | libc::SYS_newfstatat
            | libc::SYS_copy_file_range
            | libc::SYS_exit_group
    )
}

fn system_call(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize) -> c_long {
    let (fd, address) = (a as c_int, b as *mut c_void);
    // Each goes through the libc function, whose entry is ours.
    // SAFETY: the program's own arguments for the call of that number.
    unsafe {
        match number {
            libc::SYS_read => libc::read(fd, address, c) as c_long,
            libc::SYS_write => libc::write(fd, address, c) as c_long,
            libc::SYS_close => libc::close(fd).into(),
            libc::SYS_lseek => libc::lseek64(fd, b as i64, c as c_int),
            libc::SYS_fstat => libc::fstat64(fd, address.cast()).into(),
            libc::SYS_close_range => libc::close_range(a as c_uint, b as c_uint, c as c_int).into(),
            libc::SYS_dup => libc::dup(fd).into(),
            libc::SYS_dup3 => libc::dup3(fd, b as c_int, c as c_int).into(),
            libc::SYS_pread64 => libc::pread64(fd, address, c, d as i64) as c_long,
            libc::SYS_pwrite64 => libc::pwrite64(fd, address, c, d as i64) as c_long,
            libc::SYS_fsync => libc::fsync(fd).into(),
            libc::SYS_fdatasync => libc::fdatasync(fd).into(),
            libc::SYS_ftruncate => libc::ftruncate64(fd, b as i64).into(),
            libc::SYS_openat => libc::openat64(fd, b as Path, c as c_int, d as c_uint).into(),
            libc::SYS_statx => {
                libc::statx(fd, b as Path, c as c_int, d as c_uint, e as *mut libc::statx).into()
            }
            libc::SYS_newfstatat => {
                libc::fstatat64(fd, b as Path, c as *mut libc::stat64, d as c_int).into()
            }
            libc::SYS_getdents64 => getdents64(fd, address, c) as c_long,
            libc::SYS_copy_file_range => copy_range(fd, b, c as c_int, d, e) as c_long,
            _ => {
                libc::_exit(fd);
            }
        }
    }
}

/// syscall(2): numbers that act on files go through the libc function of the call, whose entry is
/// ours.
unsafe extern "C-unwind" fn raw_call<H: Named>(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if is_file_call(number) && !is_inside() {
        return system_call(number, a, b, c, d, e);
    }
    // SAFETY: the program's own arguments.
    unsafe {
        let call = original!(H: fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long);
        call(number, a, b, c, d, e, f)
    }
}

unsafe extern "C" {
    fn getdents64(fd: c_int, address: *mut c_void, count: usize) -> isize;
}

unsafe fn copy_range(from: c_int, from_at: usize, to: c_int, to_at: usize, count: usize) -> isize {
    // SAFETY: the program's own arguments; the sixth, flags, must be 0 in all kernels so far.
    unsafe {
        libc::copy_file_range(
            from,
            from_at as *mut libc::off64_t,
            to,
            to_at as *mut libc::off64_t,
            count,
            0,
        )
    }
}

hooks! {
    /// posix_spawn(3) with a program on a service is not supported: libc executes it by path.
    Interposing [posix_spawn_file_actions_addchdir_np]
    fn spawn_change_directory(actions: *mut c_void, path: Path) -> ErrorNumber
    where is_far(libc::AT_FDCWD, path) => {
        let _ = actions;
        Outcome::Fail(p9::Errno::EOPNOTSUPP)
    };

    => also {
        Always fork [fork]
        Always vfork [vfork]
        Always spawn [posix_spawn posix_spawnp]
        Always system [system]
        Always popen [popen]
        Always execve [execve]
        Always fexecve [fexecve]
        Always execveat [execveat]
        Interposing execv [execv]
        Interposing execvp [execvp]
        Interposing execvpe [execvpe]
        Interposing execl [execl execlp execle]
        Always exit [_exit]
        Always umask [umask]
        Always raw_call [syscall]
    }
}
