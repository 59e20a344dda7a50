//! The kernel's side of a mount: `/dev/fuse`, and how it becomes a file system on a directory.
//!
//! Root mounts by mount(2). Others may not, and ask `fusermount3`, a set-user-id program, which
//! mounts and sends the opened device over a socket.

use std::ffi::CString;
use std::io::{Error as IoError, ErrorKind, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno as KernelErrno, FdFlags};
use rustix::mount::MountFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::error::{Error, Result};
use crate::mounted::Options;

/// The type that mount tables show, by which `sluice umount` knows its own.
pub(crate) const SUBTYPE: &str = "sluice";

const DEVICE: &str = "/dev/fuse";

/// Programs that mount for those who are not root; the second is that of FUSE 2.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];

/// The socket's number, for the helper (fusermount3(1)).
const HELPER_VARIABLE: &str = "_FUSE_COMMFD";

/// Whether FUSE could be used here, and by which way, in words for people.
///
/// # Errors
/// What is missing.
pub fn availability() -> Result<&'static str> {
    match open_device() {
        Ok(_) if rustix::process::geteuid().is_root() => Ok("root mounts by itself"),
        Ok(_) if helper().is_some() => Ok("others than root mount by fusermount3"),
        Ok(_) => Err(Error::NoHelper),
        Err(error) => Err(error),
    }
}

/// Mounts on `dir`, a path without symbolic links; the device then carries the kernel's requests.
pub(crate) fn mount(dir: &Path, options: &Options) -> Result<OwnedFd> {
    let device = open_device()?;
    match by_call(dir, &device, options) {
        Ok(()) => Ok(device),
        Err(KernelErrno::PERM) => by_helper(dir, options),
        Err(errno) => Err(Error::Mount { dir: dir.to_owned(), source: errno.into() }),
    }
}

fn open_device() -> Result<OwnedFd> {
    rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
        match errno {
            KernelErrno::NOENT | KernelErrno::NODEV | KernelErrno::NXIO => Error::NoDevice,
            errno => Error::Device { source: errno.into() },
        }
    })
}

/// mount(2), with the options that `fs/fuse/inode.c` of the kernel reads.
fn by_call(dir: &Path, device: &OwnedFd, options: &Options) -> rustix::io::Result<()> {
    let root_mode = rustix::fs::stat(dir)?.st_mode;
    let data = format!(
        "fd={},rootmode={root_mode:o},user_id={},group_id={}{}",
        device.as_raw_fd(),
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
        if options.allow_other { ",allow_other,default_permissions" } else { "" },
    );
    let data = CString::new(data).map_err(|_| KernelErrno::INVAL)?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    flags.set(MountFlags::RDONLY, options.read_only);
    let kind = format!("fuse.{SUBTYPE}");
    rustix::mount::mount(options.source.as_str(), dir, kind.as_str(), flags, data.as_c_str())
}

fn helper() -> Option<&'static str> {
    let is_there = |name: &&str| {
        let mut command = Command::new(name);
        command.arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    HELPERS.into_iter().find(is_there)
}

fn by_helper(dir: &Path, options: &Options) -> Result<OwnedFd> {
    let helper = helper().ok_or(Error::NoHelper)?;
    let failed = |source: IoError| Error::Mount { dir: dir.to_owned(), source };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    // It must outlive the exec. No other program is started meanwhile.
    rustix::io::fcntl_setfd(&theirs, FdFlags::empty()).map_err(|errno| failed(errno.into()))?;
    let mut child = Command::new(helper)
        .args(["-o", &helper_options(options), "--"])
        .arg(dir)
        .env(HELPER_VARIABLE, theirs.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    drop(theirs);
    let received = receive(&ours);
    let mut words = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut words);
    }
    let _ = child.wait();
    received.map_err(failed)?.ok_or_else(|| {
        let words = words.trim().trim_start_matches(helper).trim_start_matches(": ");
        Error::Helper { words: words.to_owned() }
    })
}

fn helper_options(options: &Options) -> String {
    // A comma ends an option unless it is escaped.
    let source = options.source.replace('\\', "\\\\").replace(',', "\\,");
    let mut text = format!("nosuid,nodev,subtype={SUBTYPE},fsname={source}");
    if options.read_only {
        text.push_str(",ro");
    }
    if options.allow_other {
        text.push_str(",allow_other,default_permissions");
    }
    text
}

/// The descriptor that the helper sends; none if it ended without.
fn receive(socket: &UnixStream) -> std::io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        let mut parts = [IoSliceMut::new(&mut byte)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(_) => break,
            Err(KernelErrno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let mut sent = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(sent.next())
}

/// Takes a mount away by the helper, for those who are not root.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no helper; else what it printed.
pub(crate) fn unmount_by_helper(dir: &Path, lazy: bool) -> std::io::Result<()> {
    let helper = helper().ok_or(ErrorKind::NotFound)?;
    let mut command = Command::new(helper);
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(dir);
    let done = command.stdin(Stdio::null()).output()?;
    if done.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    if words.contains("busy") {
        return Err(ErrorKind::ResourceBusy.into());
    }
    Err(IoError::other(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_name_is_no_option_of_the_helper() {
        let options = Options { source: "scdc:///a,dev".into(), ..Options::default() };
        assert_eq!(helper_options(&options), "nosuid,nodev,subtype=sluice,fsname=scdc:///a\\,dev");
        let options = Options { read_only: true, allow_other: true, ..options };
        assert!(helper_options(&options).ends_with(",ro,allow_other,default_permissions"));
    }
}
