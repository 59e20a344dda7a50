//! An open file or directory at a service.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use p9::{
    Attributes, DirEntries, DirEntry, Errno, Fid, GetattrMask, Names, OpenFlags, Optional, Qid,
    QidType, Reply, Request, SetAttributes, StatFs,
};

use crate::connection::{Connection, Ticket};
use crate::error::{Error, ProtocolError, Result};
use crate::live::{Live, Tail};
use crate::path::names_of;
use crate::session::{Repeat, Session};
use crate::xattr;

/// `O_PATH` (open(2)): a handle that stands for a place and was not opened.
pub const O_PATH: OpenFlags = OpenFlags::from_bits_retain(0o10_000_000);

/// Bytes of directory entries asked for at once.
const READ_DIRECTORY_COUNT: usize = 64 * 1024;

/// An open file or directory. It outlives its connection: on a new one it is found by its path and
/// opened again, and must then be the same file. All methods may be called from any thread.
pub struct Handle {
    session: Arc<Session>,
    path: Vec<u8>,
    /// Where it is now, if it is known to have moved.
    moved: Mutex<Option<Vec<u8>>>,
    flags: OpenFlags,
    qid: Qid,
    /// The fid opened, and on which connection.
    opened: Binding,
    /// A fid at the same place that was not opened, for walks: walk(5) forbids them from an open
    /// one. Made when first needed.
    place: Binding,
    /// The connection on which locks were taken, and by whom ([`Session::forks`]); 0: none were.
    locked_on: AtomicU64,
    changes: Changes,
}

/// How many changes a service has carried out, and how many of them a sync has made safe.
#[derive(Default)]
struct Changes {
    made: AtomicU32,
    safe: AtomicU32,
    /// By whom the last was made: [`Session::forks`].
    maker: AtomicU32,
}

/// A fid and the generation of its connection, in one atomic so that a fork can never find a lock
/// held. 0: none.
#[derive(Default)]
struct Binding(AtomicU64);

impl Binding {
    fn new(live: &Live, fid: Fid) -> Self {
        Self(AtomicU64::new(Self::word(live.generation, fid)))
    }

    fn word(generation: u32, fid: Fid) -> u64 {
        u64::from(generation) << 32 | u64::from(fid.0)
    }

    fn get(&self, live: &Live) -> Option<Fid> {
        let word = self.0.load(Ordering::Acquire);
        (word >> 32 == u64::from(live.generation)).then_some(Fid(word as u32))
    }

    /// The fid on that connection, which it is not bound to any more.
    fn take(&self, live: &Live) -> Option<Fid> {
        let word = self.0.load(Ordering::Acquire);
        let ours = word >> 32 == u64::from(live.generation);
        let taken =
            ours && self.0.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Acquire).is_ok();
        taken.then_some(Fid(word as u32))
    }

    /// Binds to `fid`, unless another thread was faster; then `fid` goes back.
    fn set(&self, live: &Live, fid: Fid) -> Fid {
        let mut known = self.0.load(Ordering::Acquire);
        loop {
            if known >> 32 == u64::from(live.generation) {
                live.clunk(fid);
                return Fid(known as u32);
            }
            let word = Self::word(live.generation, fid);
            match self.0.compare_exchange(known, word, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return fid,
                Err(other) => known = other,
            }
        }
    }
}

/// The answer to the read that travelled with an open, still on its way or here.
pub struct FirstRead {
    connection: Arc<Connection>,
    ticket: Option<Ticket>,
    /// Bytes asked for, from offset 0.
    pub count: u32,
}

impl FirstRead {
    pub(crate) fn new(connection: &Arc<Connection>, ticket: Ticket, count: u32) -> Self {
        Self { connection: Arc::clone(connection), ticket: Some(ticket), count }
    }

    /// The connection and the ticket to wait for there.
    #[must_use]
    pub fn take(mut self) -> Option<(Arc<Connection>, Ticket)> {
        self.ticket.take().map(|ticket| (Arc::clone(&self.connection), ticket))
    }
}

impl Drop for FirstRead {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.connection.forget(ticket);
        }
    }
}

/// A file that is being closed.
pub(crate) struct Closing {
    live: Arc<Live>,
    fid: Fid,
    ticket: Result<Ticket>,
}

impl Closing {
    /// Waits for the service's answer.
    pub(crate) fn wait(self) -> Result<()> {
        let connection = &self.live.connection;
        let outcome = self.ticket.and_then(|ticket| connection.wait(ticket));
        if matches!(outcome, Ok(_) | Err(Error::Refused(_))) {
            // The fid is gone even if closing has failed (clunk(5)).
            self.live.release(self.fid);
        }
        outcome.map(|body| connection.recycle(body))
    }
}

impl Handle {
    pub(crate) fn new(
        session: &Arc<Session>,
        live: &Live,
        fid: Fid,
        place: Option<Fid>,
        path: Vec<u8>,
        flags: OpenFlags,
        qid: Qid,
    ) -> Self {
        let place = place.map(|fid| Binding::new(live, fid)).unwrap_or_default();
        Self {
            session: Arc::clone(session),
            path,
            moved: Mutex::new(None),
            flags: flags - OpenFlags::CREATE - OpenFlags::EXCLUSIVE - OpenFlags::TRUNCATE,
            qid,
            opened: Binding::new(live, fid),
            place,
            locked_on: AtomicU64::new(0),
            changes: Changes::default(),
        }
    }

    /// The session it belongs to.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Where it was opened: from the service's root, without symbolic links, without a leading
    /// slash.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// Where it is now, as far as [`Handle::relocate`] was told.
    #[must_use]
    pub fn location(&self) -> Cow<'_, [u8]> {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        match &*moved {
            Some(path) => Cow::Owned(path.clone()),
            None => Cow::Borrowed(&self.path),
        }
    }

    /// Tells that a rename has moved the file: on a new connection it is looked for at `path`.
    pub fn relocate(&self, path: &[u8]) {
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        *moved = Some(path.to_vec());
    }

    /// How it was opened, without what matters at the opening only.
    #[must_use]
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// The file's identity.
    #[must_use]
    pub fn qid(&self) -> Qid {
        self.qid
    }

    /// Runs `work` with the connection and the fid that the file has there. When the connection
    /// breaks, or has broken, `work` is run again on a new one, as `repeat` allows: this is the
    /// one mechanism by which operations survive a break. What `work` kept from an earlier
    /// connection (tickets) is worthless on another; `Arc::ptr_eq` tells.
    ///
    /// # Errors
    /// What `work` answers; `ESTALE` when the path leads to another file by now; `EIO` when locks, or
    /// changes that only a sync or a close makes safe, were lost with an earlier connection.
    pub fn with<T>(
        &self,
        repeat: Repeat,
        mut work: impl FnMut(&Arc<Connection>, Fid) -> Result<T>,
    ) -> Result<T> {
        self.session.attempt(repeat, |live| work(&live.connection, self.fid(live)?))
    }

    /// What fstat(2) tells.
    ///
    /// # Errors
    /// As fstat(2), and as [`Handle::with`].
    pub fn attributes(&self) -> Result<Attributes> {
        self.session.attempt(Repeat::Safe, |live| {
            let fid = self.fid(live)?;
            let mask = GetattrMask::BASIC;
            let body = live.connection.call(&Request::Getattr { fid, mask })?;
            match live.reply(&body)? {
                Reply::Getattr { attributes } => Ok(attributes),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// Changes what is marked valid.
    ///
    /// # Errors
    /// As ftruncate(2), fchmod(2), fchown(2), futimens(3), and as [`Handle::with`].
    pub fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.simple(Repeat::Safe, |fid| Request::Setattr { fid, set: *set })?;
        self.note_change();
        Ok(())
    }

    /// Makes data, and unless `data_only` attributes, durable.
    ///
    /// # Errors
    /// As fsync(2), and as [`Handle::with`].
    pub fn sync(&self, data_only: bool) -> Result<()> {
        let made = self.changes.made.load(Ordering::Acquire);
        let data_only = Optional(Some(u32::from(data_only)));
        self.simple(Repeat::Safe, |fid| Request::Fsync { fid, data_only })?;
        self.changes.safe.store(made, Ordering::Release);
        Ok(())
    }

    /// Notes that the service has carried out a change of the file through this handle.
    pub(crate) fn note_change(&self) {
        self.changes.maker.store(self.session.forks(), Ordering::Relaxed);
        self.changes.made.fetch_add(1, Ordering::Release);
    }

    /// Whether this process has changed the file through this handle and not synced it since.
    fn has_unsafe_changes(&self) -> bool {
        let Changes { made, safe, maker } = &self.changes;
        made.load(Ordering::Acquire) != safe.load(Ordering::Acquire)
            && maker.load(Ordering::Relaxed) == self.session.forks()
    }

    /// Room of the file system.
    ///
    /// # Errors
    /// As fstatfs(2), and as [`Handle::with`].
    pub fn statfs(&self) -> Result<StatFs> {
        self.session.attempt(Repeat::Safe, |live| {
            let body = live.connection.call(&Request::Statfs { fid: self.fid(live)? })?;
            match live.reply(&body)? {
                Reply::Statfs { statfs } => Ok(statfs),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// Lists a directory from `cookie` (0: from the start; else the `offset` of an entry already
    /// seen): one reply's worth of entries, each given to `take` until it says false. Returns how
    /// many the reply held: 0 is the end.
    ///
    /// # Errors
    /// As getdents64(2), and as [`Handle::with`].
    pub fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<usize> {
        let (live, body) = self.session.attempt(Repeat::Safe, |live| {
            let fid = self.fid(live)?;
            let count = READ_DIRECTORY_COUNT.min(live.connection.payload_max()) as u32;
            let body = live.connection.call(&Request::Readdir { fid, offset: cookie, count })?;
            Ok((Arc::clone(live), body))
        })?;
        let mut held = 0;
        for entry in DirEntries::new(body.data()) {
            let entry = entry.map_err(|e| live.broken(ProtocolError::Wire(e)))?;
            held += 1;
            if !take(entry) {
                break;
            }
        }
        live.connection.recycle(body);
        Ok(held)
    }

    /// Gives every entry of a directory but itself and the one above to `take`, in the service's order, and closes the handle.
    ///
    /// # Errors
    /// As [`read_directory`](Self::read_directory).
    pub fn into_entries(self, mut take: impl FnMut(DirEntry<'_>)) -> Result<()> {
        let mut cookie = 0;
        loop {
            let held = self.read_directory(cookie, &mut |entry| {
                cookie = entry.offset;
                let name: &[u8] = entry.name;
                if !matches!(name, b"." | b"..") {
                    take(entry);
                }
                true
            })?;
            if held == 0 {
                self.close();
                return Ok(());
            }
        }
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// As fgetxattr(2), and as [`Handle::with`].
    pub fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.session.attempt(Repeat::Safe, |live| {
            let fid = self.fid(live)?;
            let new_fid = live.new_fid()?;
            let replies = live.all(&xattr::get(&live.connection, fid, new_fid, name))?;
            xattr::value(live, new_fid, replies)
        })
    }

    /// The names of all extended attributes, each ended by a NUL.
    ///
    /// # Errors
    /// As flistxattr(2), and as [`Handle::with`].
    pub fn xattr_list(&self) -> Result<Vec<u8>> {
        self.xattr(b"")
    }

    /// Sets an extended attribute; `flags` as setxattr(2).
    ///
    /// # Errors
    /// As fsetxattr(2), and as [`Handle::with`].
    pub fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let flags = if value.is_empty() && flags == xattr::REPLACE {
            // On the wire this would mean removal.
            self.xattr(name)?;
            0
        } else {
            flags
        };
        self.create_xattr(name, value, flags)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// As fremovexattr(2), and as [`Handle::with`].
    pub fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.create_xattr(name, &[], xattr::REPLACE)
    }

    fn create_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        // With XATTR_CREATE a second time fails where the first did not.
        self.session.attempt(Repeat::OnlyUnsent, |live| {
            let place = self.place(live)?;
            let fid = live.new_fid()?;
            let clone = Request::Walk { fid: place, new_fid: fid, names: Names::collect([]) };
            let mut requests = vec![clone];
            requests.extend(xattr::create(&live.connection, fid, name, value, flags)?);
            xattr::created(live, fid, live.one_by_one(&requests)?)
        })
    }

    /// Closes. The service is told, but its answer is not waited for: what could fail late, data
    /// written behind, was answered by the layer that wrote it.
    pub fn close(self) {
        drop(self);
    }

    /// Whether what is written becomes the file only as a whole, when it is closed ([`Handle::finish`]): files of object
    /// stores, which their service calls exclusive while they are written.
    #[must_use]
    pub fn is_stored_at_close(&self) -> bool {
        self.flags.writes() && self.qid.kind.contains(QidType::EXCLUSIVE)
    }

    /// Closes, and waits for what the service says to that: where it keeps what was written by closes
    /// ([`GetattrMask::CLOSE_COUNTS`]), it is safe when this returns. Nothing else is to be done with the handle.
    ///
    /// # Errors
    /// As close(2), and as [`Handle::with`].
    pub fn finish(&self) -> Result<()> {
        match self.begin_to_finish() {
            Some(closing) => match closing.wait() {
                // What a service has done before it was lost is not known.
                Err(Error::Lost { .. } | Error::NotSent { .. }) => self.sync(true),
                other => other,
            },
            None => self.sync(true),
        }
    }

    /// The first half of [`Handle::finish`], so that many can be waited for at once. `None`: the connection that the
    /// file was open on is gone.
    pub(crate) fn begin_to_finish(&self) -> Option<Closing> {
        let live = self.session.current()?;
        let fid = self.opened.take(&live)?;
        let begin = || {
            if !live.connection.is_ordered() {
                live.connection.quiesce()?;
            }
            live.connection.submit(&Request::Clunk { fid })
        };
        let ticket = begin();
        Some(Closing { live, fid, ticket })
    }

    /// Gives the file back without closing it, for somebody who had it open through this process and is lost. What
    /// was not said to be closed does not count as closed where closing means something.
    pub fn abandon(&self) {
        let Some(live) = self.session.current() else { return };
        let Some(fid) = self.opened.take(&live) else { return };
        // Others than Sluice's services cannot be told.
        if live.connection.is_ordered() {
            let stay = Request::Walk { fid, new_fid: fid, names: Names::collect([]) };
            if let Ok(ticket) = live.connection.submit(&stay) {
                live.connection.forget(ticket);
            }
        }
        live.clunk(fid);
    }

    fn simple<'r>(&self, repeat: Repeat, request: impl Fn(Fid) -> Request<'r>) -> Result<()> {
        self.with(repeat, |connection, fid| {
            let body = connection.call(&request(fid))?;
            connection.recycle(body);
            Ok(())
        })
    }

    /// The opened fid on a connection, opened anew where that is another than last time.
    pub(crate) fn fid(&self, live: &Arc<Live>) -> Result<Fid> {
        if let Some(fid) = self.opened.get(live) {
            return Ok(fid);
        }
        let locked_on = self.locked_on.load(Ordering::Relaxed);
        // A child has none of its parent's locks (fork(2)).
        let is_ours = locked_on >> 32 == u64::from(self.session.forks());
        if locked_on != 0 && is_ours && locked_on != self.lock_mark(live) {
            // Somebody else may have locked and changed the file since.
            return Err(Error::Refused(Errno::EIO));
        }
        let fid = if self.flags.contains(O_PATH) {
            self.walk_again(live)?
        } else {
            self.open_again(live)?
        };
        Ok(self.opened.set(live, fid))
    }

    /// An unopened fid at the same place.
    pub(crate) fn place(&self, live: &Arc<Live>) -> Result<Fid> {
        if self.flags.contains(O_PATH) {
            return self.fid(live);
        }
        if let Some(fid) = self.place.get(live) {
            return Ok(fid);
        }
        let fid = self.walk_again(live)?;
        Ok(self.place.set(live, fid))
    }

    /// How many names of `way`, its location, symbolic links may not climb above.
    pub(crate) fn floor(&self, live: &Live, way: &[&[u8]]) -> Result<usize> {
        Ok(live.root_of(way)?.prefix.len().max(1))
    }

    /// Walks to the file's path on a connection, where it must still be the same file.
    fn walk_again(&self, live: &Arc<Live>) -> Result<Fid> {
        let location = self.location();
        let way = names_of(&location);
        let root = live.root_of(&way)?;
        let names = &way[root.prefix.len()..];
        let fid = live.new_fid()?;
        let tail = Tail { keep: true, careful: true, ..Tail::default() };
        let walked = live.step(root.fid, names, fid, tail)?.walked;
        if !walked.complete {
            return Err(Error::Refused(Errno::ESTALE));
        }
        // A walk of no names tells nothing, but the root is the root.
        if walked.qids.last().is_some_and(|qid| qid.path != self.qid.path) {
            live.clunk(fid);
            return Err(Error::Refused(Errno::ESTALE));
        }
        Ok(fid)
    }

    fn open_again(&self, live: &Arc<Live>) -> Result<Fid> {
        let fid = self.walk_again(live)?;
        let reopen = || {
            let body = live.connection.call(&Request::Lopen { fid, flags: self.flags })?;
            live.connection.recycle(body);
            if self.has_unsafe_changes() && self.closing_counts(live, fid)? {
                // What they were made in was given up with the connection, or with the service's process.
                return Err(Error::Refused(Errno::EIO));
            }
            Ok(fid)
        };
        reopen().inspect_err(|_| live.clunk(fid))
    }

    /// Whether changes may be lost until they are synced or the file is closed.
    fn closing_counts(&self, live: &Arc<Live>, fid: Fid) -> Result<bool> {
        if self.is_stored_at_close() {
            return Ok(true);
        }
        let mask = GetattrMask::BASIC;
        let body = live.connection.call(&Request::Getattr { fid, mask })?;
        let counts = match live.reply(&body)? {
            Reply::Getattr { attributes } => attributes.valid.contains(GetattrMask::CLOSE_COUNTS),
            _ => false,
        };
        live.connection.recycle(body);
        Ok(counts)
    }

    /// Notes that locks are held on a connection; returns what was noted before.
    pub(crate) fn mark_locked(&self, live: &Live) -> u64 {
        self.locked_on.swap(self.lock_mark(live), Ordering::Relaxed)
    }

    fn lock_mark(&self, live: &Live) -> u64 {
        u64::from(self.session.forks()) << 32 | u64::from(live.generation)
    }

    /// Takes back a [`Handle::mark_locked`] that came to nothing.
    pub(crate) fn mark_locked_as_before(&self, before: u64) {
        self.locked_on.store(before, Ordering::Relaxed);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // On any other connection the fids are gone already.
        let Some(live) = self.session.current() else {
            return;
        };
        for fid in [self.opened.get(&live), self.place.get(&live)].into_iter().flatten() {
            live.clunk(fid);
        }
    }
}
