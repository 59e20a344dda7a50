//! Making, removing, renaming and linking; the working directory.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use p9::{Errno, mode};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::context::{self, Place};
use crate::ops::{metadata, process};

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// mkdir(2).
pub(crate) fn make_directory(place: &Place, mode: u32) -> Result<(), Errno> {
    let mode = mode & 0o7777 & !process::umask();
    place.run(|remote, at, _| remote.make_directory(at, mode))
}

/// unlink(2), rmdir(2).
pub(crate) fn remove(place: &Place, directory: bool) -> Result<(), Errno> {
    metadata::settle(place)?;
    place.run(|remote, at, _| remote.remove(at, directory))
}

/// remove(3): whichever it is.
pub(crate) fn remove_any(place: &Place) -> Result<(), Errno> {
    match remove(place, false) {
        Err(Errno::EISDIR) => remove(place, true),
        other => other,
    }
}

/// rename(2), renameat2(2) with `RENAME_NOREPLACE`.
pub(crate) fn rename(old: &Place, new: &Place, no_replace: bool) -> Result<(), Errno> {
    same_service(old, new)?;
    metadata::settle(old)?;
    old.run_with(new, |remote, old, new| remote.rename(old, new, no_replace))
}

/// link(2).
pub(crate) fn link(old: &Place, new: &Place, follow: bool) -> Result<(), Errno> {
    same_service(old, new)?;
    metadata::settle(old)?;
    old.run_with(new, |remote, old, new| remote.link(old, new, follow))
}

/// rename(2): `EXDEV` between file systems, which makes mv(1) copy.
fn same_service(old: &Place, new: &Place) -> Result<(), Errno> {
    if old.uri.endpoint == new.uri.endpoint { Ok(()) } else { Err(Errno::EXDEV) }
}

/// symlink(2).
pub(crate) fn symlink(target: &[u8], place: &Place) -> Result<(), Errno> {
    place.run(|remote, at, _| remote.symlink(target, at))
}

/// readlink(2).
pub(crate) fn read_link(place: &Place) -> Result<Vec<u8>, Errno> {
    place.run(|remote, at, _| remote.read_link(at))
}

/// mknod(2), mkfifo(3): regular files only.
pub(crate) fn make_node(place: &Place, file_mode: u32) -> Result<(), Errno> {
    if !matches!(file_mode & mode::TYPE_MASK, 0 | mode::REGULAR) {
        return Err(Errno::EOPNOTSUPP);
    }
    let permission = file_mode & 0o7777 & !process::umask();
    let flags = p9::OpenFlags::CREATE | p9::OpenFlags::EXCLUSIVE | p9::OpenFlags::WRITE_ONLY;
    place.run(|remote, at, _| remote.open(at, flags, permission).map(drop))
}

/// realpath(3): every link resolved, every element present.
pub(crate) fn real_path(place: &Place) -> Result<Vec<u8>, Errno> {
    let resolved = place.run(|remote, at, place| {
        Ok(Place::new(address::Uri {
            endpoint: place.uri.endpoint.clone(),
            path: address::RemotePath::new(&remote.resolve(at)?),
        }))
    })?;
    let mut visible = resolved.visible_path();
    if visible.len() > 1 && visible.last() == Some(&b'/') && !visible.ends_with(b"//") {
        visible.pop();
    }
    Ok(visible)
}

/// chdir(2) to a directory of a service. The kernel's working directory becomes an empty directory
/// without a name, so that a relative path in a call that Sluice does not see fails instead of
/// meaning a local file. Its former name holds the address, by which a new process image finds the
/// working directory again (see [`inherited_cwd`]).
pub(crate) fn change_directory(place: &Place) -> Result<(), Errno> {
    let attributes = metadata::stat(place, true)?;
    if !attributes.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    metadata::access(place, libc::X_OK, true, true)?;
    let visible = real_path(place)?;
    enter_nowhere(&visible)?;
    context::set_virtual_cwd(Some(visible));
    Ok(())
}

/// chdir(2) to a local directory.
pub(crate) fn leave(path: &std::ffi::CStr) -> Result<(), Errno> {
    rustix::process::chdir(path).map_err(errno)?;
    context::set_virtual_cwd(None);
    Ok(())
}

/// Begins the name of the nameless directory.
const NOWHERE: &str = "sluice-cwd-";

/// Bytes of an escaped address per directory name (NAME_MAX is 255).
const PIECE_LEN: usize = 200;

fn enter_nowhere(visible: &[u8]) -> Result<(), Errno> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let mut escaped = String::new();
    for byte in visible {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                escaped.push(char::from(*byte));
            }
            _ => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    let base = format!(
        "/tmp/{NOWHERE}{}-{}",
        rustix::process::getpid(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    );
    let mut made = vec![base];
    for piece in escaped.as_bytes().chunks(PIECE_LEN) {
        // Escapes are ASCII, so that any cut is between characters.
        let inner = format!("{}/+{}", made[made.len() - 1], String::from_utf8_lossy(piece));
        made.push(inner);
    }
    let make = || -> Result<(), rustix::io::Errno> {
        for directory in &made {
            rustix::fs::mkdir(directory.as_str(), Mode::RWXU)?;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let deepest = rustix::fs::open(made[made.len() - 1].as_str(), flags, Mode::empty())?;
        rustix::process::fchdir(deepest)
    };
    let outcome = make().map_err(errno);
    for directory in made.iter().rev() {
        let _ = rustix::fs::unlinkat(rustix::fs::CWD, directory.as_str(), AtFlags::REMOVEDIR);
    }
    outcome
}

/// The redirected working directory that this process image inherited, by the name that its
/// kernel's working directory had.
pub(crate) fn inherited_cwd() -> Option<Vec<u8>> {
    let link = rustix::fs::readlink("/proc/self/cwd", Vec::new()).ok()?;
    let link = link.to_str().ok()?;
    let inside = link.strip_prefix("/tmp/")?.strip_prefix(NOWHERE)?.strip_suffix(" (deleted)")?;
    let pieces = &inside[inside.find('/')?..];
    let escaped: Vec<u8> = pieces.replace("/+", "").into_bytes();
    let mut visible = Vec::with_capacity(escaped.len());
    let mut rest = &escaped[..];
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            visible.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            visible.push(*first);
            rest = after;
        }
    }
    Some(visible)
}

/// Where a directory descriptor leads.
pub(crate) fn place_of(fd: c_int) -> Result<Place, Errno> {
    let uri = crate::table::get(fd).and_then(|d| d.uri()).ok_or(Errno::EBADF)?;
    Ok(Place::new(uri))
}
