//! Operations on local files, by the standard library, so that a preload library sees them like any program's.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Meta, Moment};

pub(super) fn stat(path: &Path, follow: bool) -> io::Result<Meta> {
    Ok(meta(&if follow { fs::metadata(path)? } else { fs::symlink_metadata(path)? }))
}

pub(super) fn meta(found: &fs::Metadata) -> Meta {
    // The kernel keeps nanoseconds below 10^9.
    let moment = |seconds, nanoseconds: i64| Moment { seconds, nanoseconds: nanoseconds as u32 };
    Meta {
        mode: found.mode(),
        size: found.size(),
        mtime: moment(found.mtime(), found.mtime_nsec()),
        atime: moment(found.atime(), found.atime_nsec()),
        ctime: moment(found.ctime(), found.ctime_nsec()),
        uid: found.uid(),
        gid: found.gid(),
        links: found.nlink(),
        inode: found.ino(),
        blocks: found.blocks(),
    }
}

pub(super) fn list(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().into_vec())).collect()
}

pub(super) fn read_link(path: &Path) -> io::Result<Vec<u8>> {
    Ok(fs::read_link(path)?.into_os_string().into_vec())
}

pub(super) fn make_symlink(path: &Path, target: &[u8]) -> io::Result<()> {
    std::os::unix::fs::symlink(OsStr::from_bytes(target), path)
}

pub(super) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(mode).create(path)
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

pub(super) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(super) fn set_times(path: &Path, atime: Moment, mtime: Moment) -> io::Result<()> {
    // Reading rights are enough for an owner, and directories cannot be opened for writing.
    let file = File::open(path).or_else(|_| OpenOptions::new().write(true).open(path))?;
    file.set_times(file_times(atime, mtime)?)
}

pub(super) fn file_times(atime: Moment, mtime: Moment) -> io::Result<FileTimes> {
    Ok(FileTimes::new().set_accessed(system_time(atime)?).set_modified(system_time(mtime)?))
}

fn system_time(moment: Moment) -> io::Result<SystemTime> {
    let seconds = Duration::from_secs(moment.seconds.unsigned_abs());
    let whole = match moment.seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(seconds),
        _ => SystemTime::UNIX_EPOCH.checked_sub(seconds),
    };
    let time =
        whole.and_then(|time| time.checked_add(Duration::from_nanos(moment.nanoseconds.into())));
    time.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(mode).open(path)
}
