//! mkdir(2), unlink(2), rename(2), links, the working directory, realpath(3).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use p9::Errno;

use super::data::buffer;
use super::hooks;
use super::metadata::at;
use crate::context::{self, Located, is_far, locate};
use crate::glance::may_be_far;
use crate::ops::namespace as ops;
use crate::outcome::Outcome;
use crate::table::is_ours;

type Path = *const c_char;

const CWD: c_int = libc::AT_FDCWD;

fn done(result: Result<(), Errno>) -> Outcome<c_int> {
    result.map(|()| 0).into()
}

fn remove(dir: c_int, path: Path, directory: bool) -> Outcome<c_int> {
    // rmdir(2): "pathname has . as last component" is EINVAL, and ".." ENOTEMPTY.
    // SAFETY: may_be_far has checked the path for NULL; NUL-terminated by contract.
    let text = unsafe { CStr::from_ptr(path) }.to_bytes();
    match text.rsplit(|byte| *byte == b'/').next() {
        Some(b".") if directory => return Outcome::Fail(Errno::EINVAL),
        Some(b"..") if directory => return Outcome::Fail(Errno::ENOTEMPTY),
        _ => {}
    }
    at(dir, path, |place| ops::remove(place, directory).map(|()| 0))
}

/// Two paths: both on one service, or `EXDEV` as between file systems.
fn rename(old_dir: c_int, old: Path, new_dir: c_int, new: Path, flags: c_uint) -> Outcome<c_int> {
    match (locate(old_dir, old), locate(new_dir, new)) {
        (Located::Far(old), Located::Far(new)) => match flags {
            0 => done(ops::rename(&old, &new, false)),
            libc::RENAME_NOREPLACE => done(ops::rename(&old, &new, true)),
            _ => Outcome::Fail(Errno::EINVAL),
        },
        (Located::Nowhere(errno), _) | (_, Located::Nowhere(errno)) => Outcome::Fail(errno),
        (Located::Here, Located::Here) => Outcome::PassThrough,
        _ => Outcome::Fail(Errno::EXDEV),
    }
}

fn link(old_dir: c_int, old: Path, new_dir: c_int, new: Path, follow: bool) -> Outcome<c_int> {
    match (locate(old_dir, old), locate(new_dir, new)) {
        (Located::Far(old), Located::Far(new)) => done(ops::link(&old, &new, follow)),
        (Located::Nowhere(errno), _) | (_, Located::Nowhere(errno)) => Outcome::Fail(errno),
        (Located::Here, Located::Here) => Outcome::PassThrough,
        _ => Outcome::Fail(Errno::EXDEV),
    }
}

fn bytes<'a>(text: Path) -> Result<&'a [u8], Errno> {
    if text.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: symlink(2): a NUL-terminated target.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

fn read_link(dir: c_int, path: Path, to: *mut c_char, len: usize) -> Outcome<isize> {
    at(dir, path, |place| {
        let name = bytes(path)?;
        let target = match context::descriptor_name(name) {
            // What /proc says of a descriptor is the path of the file.
            Some(_) => place.visible_path(),
            None => ops::read_link(place)?,
        };
        let room = buffer(to.cast(), len)?;
        let count = target.len().min(room.len());
        room[..count].copy_from_slice(&target[..count]);
        Ok(count as isize)
    })
}

/// Hands a path to the program, in its buffer or in memory of its own allocator, which it frees.
fn give_path(path: &[u8], to: *mut c_char, room: usize) -> Result<*mut c_char, Errno> {
    let needed = path.len() + 1;
    let target = if to.is_null() {
        // SAFETY: malloc(3) of at least one byte.
        unsafe { libc::malloc(needed.max(room)) }.cast::<c_char>()
    } else if needed <= room {
        to
    } else {
        return Err(Errno::ERANGE);
    };
    if target.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: `target` has room for `needed` bytes: just allocated, or promised by the caller.
    unsafe {
        std::ptr::copy_nonoverlapping(path.as_ptr().cast(), target, path.len());
        *target.add(path.len()) = 0;
    }
    Ok(target)
}

fn real_path(path: Path, to: *mut c_char) -> Outcome<*mut c_char> {
    // realpath(3) needs PATH_MAX bytes in the caller's buffer.
    const ROOM: usize = libc::PATH_MAX as usize;
    at(CWD, path, |place| {
        let path = ops::real_path(place)?;
        if path.len() >= ROOM {
            return Err(Errno::ENAMETOOLONG);
        }
        give_path(&path, to, if to.is_null() { 0 } else { ROOM })
    })
}

fn current(to: *mut c_char, len: usize) -> Outcome<*mut c_char> {
    let Some(cwd) = context::virtual_cwd() else { return Outcome::PassThrough };
    if !to.is_null() && len == 0 {
        return Outcome::Fail(Errno::EINVAL);
    }
    // glibc: no buffer and no length means as much as is needed.
    let room = if to.is_null() && len == 0 { cwd.len() + 1 } else { len };
    if room < cwd.len() + 1 {
        return Outcome::Fail(Errno::ERANGE);
    }
    give_path(&cwd, to, room).into()
}

hooks! {
    /// mkdir(2).
    Always [mkdir]
    fn mkdir(path: Path, mode: c_uint) -> c_int
    where may_be_far(CWD, path)
    => at(CWD, path, |place| ops::make_directory(place, mode).map(|()| 0));

    /// mkdirat(2).
    Always [mkdirat]
    fn mkdirat(dir: c_int, path: Path, mode: c_uint) -> c_int
    where may_be_far(dir, path)
    => at(dir, path, |place| ops::make_directory(place, mode).map(|()| 0));

    /// rmdir(2).
    Always [rmdir]
    fn rmdir(path: Path) -> c_int
    where may_be_far(CWD, path) => remove(CWD, path, true);

    /// unlink(2).
    Always [unlink]
    fn unlink(path: Path) -> c_int
    where may_be_far(CWD, path) => remove(CWD, path, false);

    /// unlinkat(2).
    Always [unlinkat]
    fn unlinkat(dir: c_int, path: Path, flags: c_int) -> c_int
    where may_be_far(dir, path) => remove(dir, path, flags & libc::AT_REMOVEDIR != 0);

    /// remove(3): libc's goes on to unlink(2) and rmdir(2).
    Interposing [remove]
    fn remove_any(path: Path) -> c_int
    where may_be_far(CWD, path) => at(CWD, path, |place| ops::remove_any(place).map(|()| 0));

    /// rename(2).
    Always [rename]
    fn rename_path(old: Path, new: Path) -> c_int
    where may_be_far(CWD, old) || may_be_far(CWD, new) => rename(CWD, old, CWD, new, 0);

    /// renameat(2).
    Always [renameat]
    fn renameat(old_dir: c_int, old: Path, new_dir: c_int, new: Path) -> c_int
    where may_be_far(old_dir, old) || may_be_far(new_dir, new)
    => rename(old_dir, old, new_dir, new, 0);

    /// renameat2(2).
    Always [renameat2]
    fn renameat2(old_dir: c_int, old: Path, new_dir: c_int, new: Path, flags: c_uint) -> c_int
    where may_be_far(old_dir, old) || may_be_far(new_dir, new)
    => rename(old_dir, old, new_dir, new, flags);

    /// link(2): does not follow a link at the end of `old`.
    Always [link]
    fn link_path(old: Path, new: Path) -> c_int
    where may_be_far(CWD, old) || may_be_far(CWD, new) => link(CWD, old, CWD, new, false);

    /// linkat(2).
    Always [linkat]
    fn linkat(old_dir: c_int, old: Path, new_dir: c_int, new: Path, flags: c_int) -> c_int
    where may_be_far(old_dir, old) || may_be_far(new_dir, new)
    => link(old_dir, old, new_dir, new, flags & libc::AT_SYMLINK_FOLLOW != 0);

    /// symlink(2).
    Always [symlink]
    fn symlink(target: Path, path: Path) -> c_int
    where may_be_far(CWD, path)
    => at(CWD, path, |place| ops::symlink(bytes(target)?, place).map(|()| 0));

    /// symlinkat(2).
    Always [symlinkat]
    fn symlinkat(target: Path, dir: c_int, path: Path) -> c_int
    where may_be_far(dir, path)
    => at(dir, path, |place| ops::symlink(bytes(target)?, place).map(|()| 0));

    /// readlink(2).
    Always [readlink]
    fn readlink(path: Path, to: *mut c_char, len: usize) -> isize
    where may_be_far(CWD, path) => read_link(CWD, path, to, len);

    /// readlinkat(2).
    Always [readlinkat]
    fn readlinkat(dir: c_int, path: Path, to: *mut c_char, len: usize) -> isize
    where may_be_far(dir, path) => read_link(dir, path, to, len);

    /// `_FORTIFY_SOURCE` form.
    Always [__readlink_chk]
    fn readlink_checked(path: Path, to: *mut c_char, len: usize, size: usize) -> isize
    where len <= size && may_be_far(CWD, path) => read_link(CWD, path, to, len);

    /// `_FORTIFY_SOURCE` form.
    Always [__readlinkat_chk]
    fn readlinkat_checked(dir: c_int, path: Path, to: *mut c_char, len: usize, size: usize) -> isize
    where len <= size && may_be_far(dir, path) => read_link(dir, path, to, len);

    /// mknod(2).
    Always [mknod]
    fn mknod(path: Path, mode: c_uint, device: libc::dev_t) -> c_int
    where may_be_far(CWD, path) => {
        let _ = device;
        at(CWD, path, |place| ops::make_node(place, mode).map(|()| 0))
    };

    /// mknodat(2).
    Always [mknodat]
    fn mknodat(dir: c_int, path: Path, mode: c_uint, device: libc::dev_t) -> c_int
    where may_be_far(dir, path) => {
        let _ = device;
        at(dir, path, |place| ops::make_node(place, mode).map(|()| 0))
    };

    /// mkfifo(3).
    Always [mkfifo]
    fn mkfifo(path: Path, mode: c_uint) -> c_int
    where is_far(CWD, path) => { let _ = mode; Outcome::Fail(Errno::EOPNOTSUPP) };

    /// realpath(3).
    Always [realpath]
    fn realpath(path: Path, to: *mut c_char) -> *mut c_char
    where may_be_far(CWD, path) => real_path(path, to);

    /// `_FORTIFY_SOURCE` form.
    Always [__realpath_chk]
    fn realpath_checked(path: Path, to: *mut c_char, size: usize) -> *mut c_char
    where size >= libc::PATH_MAX as usize && may_be_far(CWD, path) => real_path(path, to);

    /// canonicalize_file_name(3): libc's goes on to realpath(3).
    Interposing [canonicalize_file_name]
    fn canonicalize(path: Path) -> *mut c_char
    where may_be_far(CWD, path) => real_path(path, std::ptr::null_mut());

    /// chdir(2).
    Always [chdir]
    fn chdir(path: Path) -> c_int
    where !path.is_null()
        && (context::routes_exist() || context::cwd_is_far() || may_be_far(CWD, path))
    => match locate(CWD, path) {
        Located::Far(place) => done(ops::change_directory(&place)),
        Located::Nowhere(errno) => Outcome::Fail(errno),
        Located::Near(path) => done(ops::leave(&path)),
        Located::Here => {
            // SAFETY: chdir(2): NUL-terminated, and checked not to be NULL.
            done(ops::leave(unsafe { CStr::from_ptr(path) }))
        }
    };

    /// fchdir(2).
    Always [fchdir]
    fn fchdir(fd: c_int) -> c_int
    where is_ours(fd) || context::routes_exist() || context::cwd_is_far()
    => if is_ours(fd) {
        done(ops::place_of(fd).and_then(|place| ops::change_directory(&place)))
    } else {
        done(crate::own::change_directory_to(fd).map(|()| context::set_virtual_cwd(None)))
    };

    /// getcwd(3).
    Always [getcwd]
    fn getcwd(to: *mut c_char, len: usize) -> *mut c_char
    where context::cwd_is_far() => current(to, len);

    /// `_FORTIFY_SOURCE` form.
    Always [__getcwd_chk]
    fn getcwd_checked(to: *mut c_char, len: usize, size: usize) -> *mut c_char
    where len <= size && context::cwd_is_far() => current(to, len);

    /// get_current_dir_name(3).
    Always [get_current_dir_name]
    fn current_name() -> *mut c_char
    where context::cwd_is_far() => current(std::ptr::null_mut(), 0);

    /// inotify_add_watch(2): a service tells of no changes.
    Always [inotify_add_watch]
    fn watch(fd: c_int, path: Path, mask: c_uint) -> c_int
    where is_far(CWD, path) => { let _ = (fd, mask); Outcome::Fail(Errno::EOPNOTSUPP) };

    /// chroot(2).
    Always [chroot]
    fn chroot(path: Path) -> c_int
    where is_far(CWD, path) => Outcome::Fail(Errno::EOPNOTSUPP);

    /// mount(2): the target must be local.
    Always [mount]
    fn mount(source: Path, target: Path, kind: Path, flags: libc::c_ulong, data: *const c_void) -> c_int
    where is_far(CWD, target) => {
        let _ = (source, kind, flags, data);
        Outcome::Fail(Errno::EOPNOTSUPP)
    };

    /// name_to_handle_at(2): a service has no handles.
    Always [name_to_handle_at]
    fn name_to_handle(
        dir: c_int, path: Path, handle: *mut c_void, mount: *mut c_int, flags: c_int
    ) -> c_int
    where is_far(dir, path) => {
        let _ = (handle, mount, flags);
        Outcome::Fail(Errno::EOPNOTSUPP)
    };
}
