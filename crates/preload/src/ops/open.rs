//! open(2).

use std::ffi::c_int;
use std::sync::Arc;

use p9::{Errno, OpenFlags};

use crate::context::Place;
use crate::description::{self, Content, Live, PATH_ONLY};
use crate::ops::{metadata, process};
use crate::outcome::is_broken;
use crate::remote::Opened;
use crate::state::State;

/// Flags of open(2) that a service is told. Others concern the descriptor only, or advise.
const SERVICE_FLAGS: u32 = (libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_DSYNC
    | libc::O_SYNC
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW) as u32;

/// What F_GETFL reports of the flags that a file was opened with (fcntl(2): not the creation flags).
const REPORTED: u32 =
    !(libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_TRUNC | libc::O_CLOEXEC) as u32;

/// Opens a file of a service and returns the descriptor for it.
pub(crate) fn open(place: &Place, flags: c_int, mode: u32) -> Result<c_int, Errno> {
    if is_broken() {
        return Err(Errno::EIO);
    }
    let flags_raw = flags as u32;
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        // A file without a name cannot be found again after exec; open(2) names this errno for
        // file systems without O_TMPFILE, and programs then make a named one.
        return Err(Errno::EOPNOTSUPP);
    }
    metadata::settle(place)?;
    // 9P creates with the mode it is given, so the umask is taken off here.
    let mode = if flags & libc::O_CREAT != 0 { mode & 0o7777 & !process::umask() } else { 0 };
    let (content, qid_path, place) = if flags_raw & PATH_ONLY != 0 {
        let follow = flags & libc::O_NOFOLLOW == 0;
        let attributes = metadata::stat(place, follow)?;
        if flags & libc::O_DIRECTORY != 0 && !attributes.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        (Content::Name, attributes.qid.path, place.clone())
    } else {
        let wanted = OpenFlags::from_bits_retain(flags_raw & SERVICE_FLAGS);
        let (opened, place) =
            place.run(|remote, at, place| Ok((remote.open(at, wanted, mode)?, place.clone())))?;
        if flags & libc::O_CREAT != 0 && matches!(opened, Opened::Directory(_)) {
            return Err(Errno::EISDIR);
        }
        let qid_path = opened.qid().path;
        (Content::of(opened), qid_path, place)
    };
    let address = place.uri.to_bytes();
    let cloexec = flags & libc::O_CLOEXEC != 0;
    let (state, fd) = State::create(&address, flags_raw & REPORTED, qid_path, cloexec)?;
    if !process::owns_the_table() {
        // A child of vfork or posix_spawn lives in its parent's memory: the descriptor is its own,
        // the table is not. The image that it becomes finds the file by the descriptor.
        if let Content::File(file) = &content {
            if file.close_counts() {
                state.hold();
            }
            file.close().map_err(|error| error.to_errno())?;
        }
        return Ok(fd);
    }
    let live = Live {
        state: Arc::new(state),
        uri: place.uri,
        content,
        locked: false,
        lock_file: None,
        inherited: false,
    };
    if fd as usize >= crate::table::DESCRIPTORS_MAX {
        crate::own::close(fd);
        return Err(Errno::EMFILE);
    }
    description::establish(fd, live);
    Ok(fd)
}
