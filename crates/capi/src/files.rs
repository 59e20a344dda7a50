//! Files, as `sluice.h` has them. What the functions promise stands there.

use std::ffi::{CStr, c_char, c_int, c_void};

use address::Uri;
use client::{At, RemoteFile};
use p9::{Attributes, OpenFlags};
use reach::Far;

use crate::error::{Error, Result, report};
use crate::handles::Table;
use crate::places;

/// An open file, with its name for messages.
struct File {
    remote: RemoteFile,
    uri: Uri,
}

static FILES: Table<File> = Table::new("file");

/// `sluice_stat_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct SluiceStat {
    /// Bytes.
    pub size: u64,
    /// Type and permissions, as `st_mode`.
    pub mode: u32,
    /// Other names of the same file and this one.
    pub links: u32,
    /// Time of the last change of the content, in seconds since 1970.
    pub mtime_seconds: i64,
    /// The same: nanoseconds beyond those.
    pub mtime_nanoseconds: i64,
    /// Identity within the service.
    pub inode: u64,
}

impl From<Attributes> for SluiceStat {
    fn from(found: Attributes) -> Self {
        Self {
            size: found.size,
            mode: found.mode,
            links: u32::try_from(found.nlink).unwrap_or(u32::MAX),
            // Seconds before 1970 wrap on the wire.
            mtime_seconds: found.mtime.seconds as i64,
            mtime_nanoseconds: found.mtime.nanoseconds as i64,
            inode: found.qid.path,
        }
    }
}

/// The text behind a pointer.
///
/// # Safety
/// It is NULL or a C string that stays.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, argument: &'static str) -> Result<&'a [u8]> {
    if pointer.is_null() {
        return Err(Error::Null { argument });
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Where the name behind a pointer leads.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn place(name: *const c_char) -> Result<Far> {
    // SAFETY: the caller's promise.
    places::find(unsafe { text(name, "name") }?)
}

/// A failure of the service, as a failure of an operation on a file.
pub(crate) fn failed<'a>(
    operation: &'static str,
    uri: &'a Uri,
) -> impl FnOnce(client::Error) -> Error + 'a {
    move |source| Error::Service { operation, name: uri.to_string(), source }
}

fn offset(value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| Error::Range { argument: "offset", value: value.into() })
}

/// No slice is longer than that (std::slice::from_raw_parts).
fn count(value: usize) -> Result<usize> {
    match isize::try_from(value) {
        Ok(_) => Ok(value),
        Err(_) => Err(Error::Range { argument: "count", value: value as i128 }),
    }
}

/// `sluice_open`.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_open(name: *const c_char, flags: c_int, mode: u32) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let Far { session, uri } = unsafe { place(name) }?;
        let flags = OpenFlags::from_bits_retain(flags as u32);
        let opened = session.open(At::root(uri.path.as_bytes()), flags, mode);
        let opened = opened.map_err(failed("open", &uri))?;
        if opened.attributes.is_directory() {
            opened.handle.close();
            let source = client::Error::Refused(p9::Errno::EISDIR);
            return Err(failed("open", &uri)(source));
        }
        Ok(FILES.add(File { remote: RemoteFile::new(opened), uri }))
    })
}

/// `sluice_pread`.
///
/// # Safety
/// `buffer` leads to `count` bytes that may be written, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_pread(
    file: *mut c_void,
    buffer: *mut c_void,
    bytes: usize,
    at: i64,
) -> isize {
    report(-1, || {
        let file = FILES.get(file)?;
        let (bytes, at) = (count(bytes)?, offset(at)?);
        if bytes == 0 {
            return Ok(0);
        }
        if buffer.is_null() {
            return Err(Error::Null { argument: "buffer" });
        }
        // SAFETY: the caller's promise. What is there counts as initialised for C, and is only written to.
        let target = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes) };
        let mut done = 0;
        while done < bytes {
            match file.remote.read_at(&mut target[done..], at.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(read) => done += read,
                // What has been read is told; the error comes again if it stays.
                Err(_) if done > 0 => break,
                Err(error) => return Err(failed("pread", &file.uri)(error)),
            }
        }
        Ok(done as isize)
    })
}

/// `sluice_pwrite`.
///
/// # Safety
/// `buffer` leads to `count` bytes, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_pwrite(
    file: *mut c_void,
    buffer: *const c_void,
    bytes: usize,
    at: i64,
) -> isize {
    report(-1, || {
        let file = FILES.get(file)?;
        let (bytes, at) = (count(bytes)?, offset(at)?);
        if bytes == 0 {
            return Ok(0);
        }
        if buffer.is_null() {
            return Err(Error::Null { argument: "buffer" });
        }
        // SAFETY: the caller's promise.
        let data = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), bytes) };
        let appends = file.remote.handle().flags().contains(OpenFlags::APPEND);
        let mut done = 0;
        while done < bytes {
            let rest = &data[done..];
            let written = match appends {
                // As pwrite(2) on Linux: what was opened to append appends, wherever it is told to write.
                true => file.remote.append(rest).map(|_| rest.len()),
                false => file.remote.write_at(rest, at.saturating_add(done as u64)),
            };
            match written {
                Ok(0) => break,
                Ok(written) => done += written,
                Err(_) if done > 0 => break,
                Err(error) => return Err(failed("pwrite", &file.uri)(error)),
            }
        }
        Ok(done as isize)
    })
}

/// Does something with an open file; 0, or -1.
fn on_file(
    file: *mut c_void,
    operation: &'static str,
    work: impl FnOnce(&RemoteFile) -> client::Result<()>,
) -> c_int {
    report(-1, || {
        let file = FILES.get(file)?;
        work(&file.remote).map_err(failed(operation, &file.uri)).map(|()| 0)
    })
}

/// `sluice_size`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_size(file: *mut c_void) -> i64 {
    report(-1, || {
        let file = FILES.get(file)?;
        let size = file.remote.size().map_err(failed("fstat", &file.uri))?;
        i64::try_from(size).map_err(|_| Error::Range { argument: "size", value: size.into() })
    })
}

/// `sluice_truncate`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_truncate(file: *mut c_void, size: i64) -> c_int {
    match u64::try_from(size) {
        Ok(size) => on_file(file, "ftruncate", |file| file.truncate(size)),
        Err(_) => report(-1, || Err(Error::Range { argument: "size", value: size.into() })),
    }
}

/// `sluice_sync`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_sync(file: *mut c_void) -> c_int {
    on_file(file, "fsync", |file| file.sync(false))
}

/// `sluice_close`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_close(file: *mut c_void) -> c_int {
    report(-1, || {
        let file = FILES.take(file)?;
        let closed = match std::sync::Arc::try_unwrap(file) {
            Ok(File { remote, uri }) => remote.finish().map_err(failed("close", &uri)),
            // Another thread is in a call; what was written here is safe all the same.
            Err(file) => file.remote.close().map_err(failed("close", &file.uri)),
        };
        closed.map(|()| 0)
    })
}

/// `sluice_fstat`.
///
/// # Safety
/// `stat` is NULL or leads to a `sluice_stat_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_fstat(file: *mut c_void, stat: *mut SluiceStat) -> c_int {
    report(-1, || {
        let file = FILES.get(file)?;
        let found = file.remote.attributes().map_err(failed("fstat", &file.uri))?;
        // SAFETY: the caller's promise.
        unsafe { give(stat, found.into()) }
    })
}

/// `sluice_stat`.
///
/// # Safety
/// `name` is NULL or a C string, `stat` is NULL or leads to a `sluice_stat_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_stat(name: *const c_char, stat: *mut SluiceStat) -> c_int {
    report(-1, || {
        // SAFETY: the caller's promise.
        let Far { session, uri } = unsafe { place(name) }?;
        // Writes that this process has gathered count.
        session.files().settle_all();
        let found = session.stat(At::root(uri.path.as_bytes()), true);
        // SAFETY: the caller's promise.
        unsafe { give(stat, found.map_err(failed("stat", &uri))?.into()) }
    })
}

/// # Safety
/// `to` is NULL or may be written.
unsafe fn give(to: *mut SluiceStat, found: SluiceStat) -> Result<c_int> {
    if to.is_null() {
        return Err(Error::Null { argument: "stat" });
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(found) };
    Ok(0)
}

/// Does something with the end of a path; 0, or -1.
///
/// # Safety
/// `name` is NULL or a C string.
unsafe fn on_name(
    name: *const c_char,
    operation: &'static str,
    work: impl FnOnce(&Far) -> client::Result<()>,
) -> c_int {
    report(-1, || {
        // SAFETY: the caller's promise.
        let far = unsafe { place(name) }?;
        far.session.files().settle_all();
        work(&far).map_err(failed(operation, &far.uri)).map(|()| 0)
    })
}

/// `sluice_mkdir`.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_mkdir(name: *const c_char, mode: u32) -> c_int {
    let make = |far: &Far| far.session.make_directory(At::root(far.uri.path.as_bytes()), mode);
    // SAFETY: the caller's promise.
    unsafe { on_name(name, "mkdir", make) }
}

/// `sluice_remove`.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_remove(name: *const c_char) -> c_int {
    let remove = |far: &Far| {
        let at = At::root(far.uri.path.as_bytes());
        match far.session.remove(at, false) {
            Err(client::Error::Refused(p9::Errno::EISDIR)) => far.session.remove(at, true),
            other => other,
        }
    };
    // SAFETY: the caller's promise.
    unsafe { on_name(name, "remove", remove) }
}

/// `sluice_rename`.
///
/// # Safety
/// Both are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_rename(from: *const c_char, to: *const c_char) -> c_int {
    report(-1, || {
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (place(from)?, place(to)?) };
        if from.uri.endpoint != to.uri.endpoint {
            return Err(failed("rename", &from.uri)(client::Error::Refused(p9::Errno::EXDEV)));
        }
        from.session.files().settle_all();
        let (old, new) = (At::root(from.uri.path.as_bytes()), At::root(to.uri.path.as_bytes()));
        from.session.rename(old, new, false).map_err(failed("rename", &from.uri)).map(|()| 0)
    })
}

/// `sluice_version`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
