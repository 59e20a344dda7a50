//! Open file descriptions: what one or more descriptors of this process stand for (open(2)).

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::Uri;
use client::{At, Handle, RemoteFile};
use p9::{Errno, OpenFlags};

use crate::context::{Located, Place, context};
use crate::glance::watch_descriptor_names;
use crate::listing::Listing;
use crate::outcome::is_restricted;
use crate::remote::Opened;
use crate::state::State;
use crate::table;

/// `O_PATH` of open(2), which 9P2000.L does not know: such a descriptor only names a file.
pub(crate) const PATH_ONLY: u32 = libc::O_PATH as u32;

/// Flags that only matter while opening; F_GETFL does not report them.
const OPENING_ONLY: u32 =
    (libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_TRUNC | libc::O_CLOEXEC) as u32;

/// What an open description holds.
pub(crate) enum Content {
    /// Known by its state only: inherited through fork or exec, opened at first use.
    Unopened,
    /// A regular file.
    File(Arc<RemoteFile>),
    /// A directory.
    Directory(Arc<Handle>, Box<Listing>),
    /// A name (`O_PATH`).
    Name,
}

/// An open description while some descriptor stands for it.
pub(crate) struct Live {
    pub(crate) state: Arc<State>,
    pub(crate) uri: Uri,
    pub(crate) content: Content,
    /// This process has taken a lock on the file.
    pub(crate) locked: bool,
    /// A second opening of the file that holds flock(2)'s lock, where this one's mode does not
    /// allow it.
    pub(crate) lock_file: Option<Arc<RemoteFile>>,
    /// Another process opened it.
    pub(crate) inherited: bool,
}

#[derive(Default)]
struct Inner {
    live: Option<Live>,
    descriptors: usize,
}

/// An open file description, or an unused place for one. Never freed: see [`table::get`].
#[derive(Default)]
pub(crate) struct Description {
    inner: Mutex<Inner>,
    /// `live.state` once more, to be found without the lock; holds a count of its own.
    state: AtomicPtr<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes `fd` stand for a new description.
pub(crate) fn establish(fd: c_int, live: Live) {
    watch_descriptor_names();
    let reused = lock(&context().unused).pop();
    let description = reused.unwrap_or_else(|| Box::leak(Box::default()));
    let mut inner = lock(&description.inner);
    description.state.store(Arc::into_raw(live.state.clone()).cast_mut(), Ordering::Release);
    inner.live = Some(live);
    inner.descriptors = 1;
    drop(inner);
    if let Some(stale) = table::set(fd, description) {
        // The number was closed behind our back (a raw system call): what it stood for is over.
        let _ = stale.release();
    }
}

/// Makes `new` stand for what `old` stands for, after the kernel did.
pub(crate) fn duplicate(old: c_int, new: c_int) {
    let Some(description) = table::get(old) else {
        let _ = forget(new);
        return;
    };
    lock(&description.inner).descriptors += 1;
    if let Some(stale) = table::set(new, description) {
        let _ = stale.release();
    }
}

/// Ends what a descriptor stands for; the last one closes the file, and its delayed errors come out
/// here.
pub(crate) fn forget(fd: c_int) -> Result<(), Errno> {
    match table::take(fd) {
        Some(description) => description.release(),
        None => Ok(()),
    }
}

/// In a forked child: the same descriptors, by their states alone.
pub(crate) fn start_anew() {
    let states: Vec<_> =
        table::all().map(|(fd, description)| (fd, description, description.state())).collect();
    let mut renewed: Vec<(&'static Description, &'static Description)> = Vec::new();
    for (fd, old, state) in states {
        if let Some((_, new)) = renewed.iter().find(|(known, _)| std::ptr::eq(*known, old)) {
            lock(&new.inner).descriptors += 1;
            table::set(fd, new);
            continue;
        }
        table::take(fd);
        if let Some(live) = state.and_then(Live::from_state) {
            establish(fd, live);
            if let Some(new) = table::get(fd) {
                renewed.push((old, new));
            }
        }
    }
}

/// Finds out whether a descriptor that appeared (inherited, or received over a socket) is one of
/// ours.
pub(crate) fn adopt(fd: c_int) -> bool {
    // SAFETY: only used for system calls that answer EBADF for a number that is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let Some(mut live) = State::adopt(borrowed).map(Arc::new).and_then(Live::from_state) else {
        return false;
    };
    live.state.share();
    if live.state.is_held() {
        // Where it cannot be opened, its first use says why.
        let _ = live.open();
    }
    establish(fd, live);
    true
}

impl Live {
    fn from_state(state: Arc<State>) -> Option<Self> {
        let uri = Uri::parse(state.address()).ok()?;
        Some(Self {
            state,
            uri,
            content: Content::Unopened,
            locked: false,
            lock_file: None,
            inherited: true,
        })
    }

    fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.state.flags())
    }

    /// Opens what was known by its state only.
    fn open(&mut self) -> Result<(), Errno> {
        let place = Place::new(self.uri.clone());
        let remote = place.remote()?;
        let flags = self.state.flags();
        if flags & PATH_ONLY != 0 {
            self.content = Content::Name;
            return Ok(());
        }
        let flags = OpenFlags::from_bits_retain(flags & !OPENING_ONLY);
        let at = At::root(self.uri.path.as_bytes());
        let opened = remote.open(at, flags, 0).map_err(|error| error.to_errno())?;
        if opened.qid().path != self.state.qid_path() {
            // Another file has taken the name: the one that was open cannot be reached any more.
            return Err(Errno::ESTALE);
        }
        self.content = Content::of(opened);
        if let Content::File(file) = &self.content {
            file.set_shared(self.state.is_shared());
        }
        Ok(())
    }

    /// The regular file.
    ///
    /// # Errors
    /// `EISDIR` for a directory, `EBADF` for a mere name.
    pub(crate) fn file(&mut self) -> Result<&Arc<RemoteFile>, Errno> {
        if let Content::Unopened = self.content {
            self.open()?;
        }
        match &self.content {
            Content::File(file) => Ok(file),
            Content::Directory(..) => Err(Errno::EISDIR),
            Content::Name | Content::Unopened => Err(Errno::EBADF),
        }
    }

    /// The regular file, for reading.
    #[inline]
    pub(crate) fn file_to_read(&mut self) -> Result<(&Arc<RemoteFile>, &State), Errno> {
        if !self.flags().reads() {
            return Err(Errno::EBADF);
        }
        self.file()?;
        match &self.content {
            Content::File(file) => Ok((file, &self.state)),
            _ => Err(Errno::EBADF),
        }
    }

    /// The regular file, for writing.
    #[inline]
    pub(crate) fn file_to_write(&mut self) -> Result<(&Arc<RemoteFile>, &State), Errno> {
        if !self.flags().writes() {
            return Err(Errno::EBADF);
        }
        self.file()?;
        match &self.content {
            Content::File(file) => Ok((file, &self.state)),
            _ => Err(Errno::EBADF),
        }
    }

    /// The file opened for reading and writing, to hold a lock.
    pub(crate) fn file_to_lock(&mut self) -> Result<Arc<RemoteFile>, Errno> {
        if let Some(file) = &self.lock_file {
            return Ok(file.clone());
        }
        let place = Place::new(self.uri.clone());
        let opened = place.run(|remote, at, _| remote.open(at, OpenFlags::READ_WRITE, 0))?;
        match opened {
            Opened::File(file, qid) if qid.path == self.state.qid_path() => {
                self.lock_file = Some(file.clone());
                Ok(file)
            }
            _ => Err(Errno::ESTALE),
        }
    }

    /// The directory and where its listing stands.
    ///
    /// # Errors
    /// `ENOTDIR` for anything else.
    pub(crate) fn directory(&mut self) -> Result<(&Arc<Handle>, &mut Listing, &State), Errno> {
        if let Content::Unopened = self.content {
            self.open()?;
        }
        match &mut self.content {
            Content::Directory(handle, listing) => Ok((handle, listing, &self.state)),
            Content::Name => Err(Errno::EBADF),
            Content::File(_) | Content::Unopened => Err(Errno::ENOTDIR),
        }
    }

    /// Opens if need be, and tells what there is.
    pub(crate) fn content(&mut self) -> Result<&mut Content, Errno> {
        if let Content::Unopened = self.content {
            self.open()?;
        }
        Ok(&mut self.content)
    }
}

impl Content {
    /// What an opening gave.
    pub(crate) fn of(opened: Opened) -> Self {
        match opened {
            Opened::File(file, _) => Content::File(file),
            Opened::Directory(handle) => Content::Directory(Arc::new(handle), Box::default()),
        }
    }
}

impl Description {
    /// Runs an operation on the open file, holding its lock: for everything that moves the offset.
    ///
    /// # Errors
    /// `EBADF` when the descriptor was closed meanwhile, or what the operation says.
    #[inline]
    pub(crate) fn with<T>(
        &'static self,
        fd: c_int,
        operation: impl FnOnce(&mut Live) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if is_restricted() {
            return Err(Errno::EIO);
        }
        let mut inner = lock(&self.inner);
        if !table::is_still(fd, self) {
            return Err(Errno::EBADF);
        }
        operation(inner.live.as_mut().ok_or(Errno::EBADF)?)
    }

    /// The file's address.
    pub(crate) fn uri(&self) -> Option<Uri> {
        if is_restricted() {
            return None;
        }
        lock(&self.inner).live.as_ref().map(|live| live.uri.clone())
    }

    /// Where a path relative to this directory leads.
    pub(crate) fn below(&'static self, fd: c_int, path: &[u8]) -> Located {
        let place = self.with(fd, |live| match live.content()? {
            Content::Directory(handle, _) => Ok(Place::below(handle.clone(), &live.uri, path)),
            Content::Name => Ok(Place::new(live.uri.join(path))),
            Content::File(_) | Content::Unopened => Err(Errno::ENOTDIR),
        });
        match place {
            Ok(place) => Located::Far(place),
            Err(errno) => Located::Nowhere(errno),
        }
    }

    /// Which file it is: the service, and the file's number there.
    pub(crate) fn identity(&self) -> Option<(address::Endpoint, u64)> {
        if is_restricted() {
            return None;
        }
        let inner = lock(&self.inner);
        let live = inner.live.as_ref()?;
        Some((live.uri.endpoint.clone(), live.state.qid_path()))
    }

    /// The open file, if this process has taken a lock on it.
    pub(crate) fn locked_file(&self) -> Option<Arc<RemoteFile>> {
        if is_restricted() {
            return None;
        }
        let inner = lock(&self.inner);
        let live = inner.live.as_ref().filter(|live| live.locked)?;
        match &live.content {
            Content::File(file) => Some(file.clone()),
            _ => None,
        }
    }

    /// Says that another process holds the open file too from now on.
    pub(crate) fn share(&self) {
        if let Some(live) = &lock(&self.inner).live {
            live.state.share();
            if let Content::File(file) = &live.content {
                file.set_shared(true);
                if file.close_counts() {
                    live.state.hold();
                }
            }
        }
    }

    /// The state without any lock: a forked child must not wait for threads it does not have.
    fn state(&self) -> Option<Arc<State>> {
        let state = self.state.load(Ordering::Acquire);
        if state.is_null() {
            return None;
        }
        // SAFETY: the pointer came from `Arc::into_raw` and its count is given back only by
        // `release`, which a forked child's single thread is not in.
        unsafe {
            Arc::increment_strong_count(state);
            Some(Arc::from_raw(state))
        }
    }

    fn release(&'static self) -> Result<(), Errno> {
        let mut inner = lock(&self.inner);
        inner.descriptors = inner.descriptors.saturating_sub(1);
        if inner.descriptors > 0 {
            return Ok(());
        }
        let live = inner.live.take();
        let state = self.state.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !state.is_null() {
            // SAFETY: stored by `establish` from `Arc::into_raw`; this is its one count.
            drop(unsafe { Arc::from_raw(state) });
        }
        drop(inner);
        lock(&context().unused).push(self);
        match live.map(|live| live.content) {
            Some(Content::File(file)) => match Arc::try_unwrap(file) {
                Ok(file) => file.finish().map_err(|error| error.to_errno()),
                // A mapping has it still.
                Err(file) => file.close().map_err(|error| error.to_errno()),
            },
            // A directory's handle gives its fid back when it is dropped.
            Some(Content::Directory(..) | Content::Name | Content::Unopened) | None => Ok(()),
        }
    }
}
