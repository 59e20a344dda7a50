//! Locks: fcntl(2)'s and flock(2)'s alike are locks at the store.
//!
//! A lock that is waited for is asked for again and again, by one thread for all that wait, so that
//! the threads that serve requests stay free. The same thread tells the kernel to drop what it has
//! cached of a file before a lock on it is answered: whoever holds it sees what others wrote. That
//! cannot be done by a thread that serves requests, because dropping waits for pages that may be
//! under way.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fuser::{INodeNo, Notifier, ReplyEmpty};
use p9::{Errno, LockKind};
use store::{LockOwner, LockRange, OpenNode};

use super::handles::OpenFile;
use super::signals;

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// How often a lock that nobody waits for is asked for again when the one in the way is our own.
///
/// The kernel tells of a last close(2) only after the program goes on (`fuse_release_common` in its
/// `fs/fuse/file.c`), so a flock(2) that has ended may still be in the way of the next.
const TRIES_AFTER_CLOSE: u32 = 4;

/// All locks that were taken through one mount.
pub(super) struct Locks {
    /// What this mount is called where locks are held.
    client: String,
    held: Arc<Mutex<Held>>,
    waiting: Sender<Task>,
}

/// By file and the kernel's name for the owner: the process that it was when it first locked. An
/// owner is told apart by that too, so it must stay the same when a child unlocks.
type Held = HashMap<(u64, u64), u32>;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    /// The kernel's name for the owner.
    pub(super) owner: u64,
    /// The process that owns.
    pub(super) process: u32,
    /// The thread that waits for the answer.
    pub(super) thread: u32,
}

/// What the locks' thread is given.
struct Task {
    number: u64,
    reply: ReplyEmpty,
    wait: Option<Wait>,
}

/// A lock that was not to be had.
struct Wait {
    open: Arc<dyn OpenNode>,
    owner: LockOwner,
    range: LockRange,
    asker: Asker,
    pause: Duration,
    next: Instant,
    /// None for a program that waits until it has the lock.
    tries_left: Option<u32>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn errno(error: store::Error) -> Errno {
    error.to_errno()
}

impl Locks {
    /// Starts the thread, which ends with this.
    pub(super) fn new(client: String, notifier: Arc<OnceLock<Notifier>>) -> std::io::Result<Self> {
        let (waiting, tasks) = mpsc::channel();
        let held = Arc::new(Mutex::new(Held::new()));
        let clerk = Clerk { notifier, held: Arc::clone(&held) };
        std::thread::Builder::new()
            .name("sluice-locks".into())
            .spawn(move || clerk.work(&tasks))?;
        Ok(Self { client, held, waiting })
    }

    fn owner(&self, number: u64, asker: Asker) -> LockOwner {
        let known = lock(&self.held).get(&(number, asker.owner)).copied();
        let client = format!("{}-{:x}", self.client, asker.owner).into_bytes();
        LockOwner { client, process: known.unwrap_or(asker.process) }
    }

    /// Takes or releases a lock and answers, at once or when it is to be had.
    pub(super) fn set(
        &self,
        file: &OpenFile,
        asker: Asker,
        range: LockRange,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let owner = self.owner(file.number, asker);
        if range.kind == LockKind::UNLOCK {
            return match self.release(file, asker, range) {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(super::fuse(errno)),
            };
        }
        let tried = file
            .for_lock(range.kind)
            .and_then(|open| Ok((open.lock(&owner, range).map_err(errno)?, open)));
        let (is_held, open) = match tried {
            Ok(tried) => tried,
            Err(errno) => return reply.error(super::fuse(errno)),
        };
        let wait = if is_held {
            note(&self.held, file.number, asker);
            None
        } else {
            let tries_left = match waits {
                true => None,
                false if self.is_ours_in_the_way(&open, &owner, range) => Some(TRIES_AFTER_CLOSE),
                false => return reply.error(super::fuse(Errno::EAGAIN)),
            };
            let (pause, next) = (PAUSE_MIN, Instant::now() + PAUSE_MIN);
            Some(Wait { open, owner, range, asker, pause, next, tries_left })
        };
        if let Err(unsent) = self.waiting.send(Task { number: file.number, reply, wait }) {
            unsent.0.reply.error(super::fuse(Errno::ENOLCK));
        }
    }

    /// Whether the lock in the way of one was taken through this mount.
    fn is_ours_in_the_way(
        &self,
        open: &Arc<dyn OpenNode>,
        owner: &LockOwner,
        range: LockRange,
    ) -> bool {
        let found = open.lock_in_the_way(owner, range).ok().flatten();
        found.is_none_or(|(other, _)| other.client.starts_with(self.client.as_bytes()))
    }

    /// Releases a range, if the owner has locked the file at all.
    fn release(&self, file: &OpenFile, asker: Asker, range: LockRange) -> Result<(), Errno> {
        if !lock(&self.held).contains_key(&(file.number, asker.owner)) {
            return Ok(());
        }
        let owner = self.owner(file.number, asker);
        file.open().lock(&owner, range).map(|_| ()).map_err(errno)
    }

    /// Releases all that an owner has on a file: a process closes a descriptor of it.
    pub(super) fn release_all(&self, file: &OpenFile, asker: Asker) -> Result<(), Errno> {
        let all = LockRange { kind: LockKind::UNLOCK, start: 0, length: 0 };
        let released = self.release(file, asker, all);
        lock(&self.held).remove(&(file.number, asker.owner));
        released
    }

    /// The first lock in the way of one.
    pub(super) fn in_the_way(
        &self,
        file: &OpenFile,
        asker: Asker,
        range: LockRange,
    ) -> Result<Option<(LockRange, u32)>, Errno> {
        let owner = self.owner(file.number, asker);
        let found = file.open().lock_in_the_way(&owner, range).map_err(errno)?;
        Ok(found.map(|(owner, range)| (range, owner.process)))
    }
}

fn note(held: &Mutex<Held>, number: u64, asker: Asker) {
    lock(held).entry((number, asker.owner)).or_insert(asker.process);
}

/// What the locks' thread knows.
struct Clerk {
    notifier: Arc<OnceLock<Notifier>>,
    held: Arc<Mutex<Held>>,
}

impl Clerk {
    /// Until the mount is gone.
    fn work(&self, tasks: &Receiver<Task>) {
        let mut waiting: Vec<Task> = Vec::new();
        loop {
            let next = waiting.iter().filter_map(|task| Some(task.wait.as_ref()?.next)).min();
            let received = match next {
                None => tasks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => tasks.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(task) if task.wait.is_some() => waiting.push(task),
                Ok(task) => self.answer(task, Ok(())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            for mut task in std::mem::take(&mut waiting) {
                match task.wait.as_mut().filter(|wait| wait.next <= now) {
                    None => waiting.push(task),
                    Some(wait) => match self.try_again(task.number, wait) {
                        None => waiting.push(task),
                        Some(outcome) => self.answer(task, outcome),
                    },
                }
            }
        }
    }

    /// Asks once more; none while the lock is not to be had.
    fn try_again(&self, number: u64, wait: &mut Wait) -> Option<Result<(), Errno>> {
        if signals::is_interrupted(wait.asker.thread) {
            return Some(Err(Errno::EINTR));
        }
        match wait.open.lock(&wait.owner, wait.range) {
            Ok(true) => {
                note(&self.held, number, wait.asker);
                Some(Ok(()))
            }
            Ok(false) if wait.tries_left == Some(0) => Some(Err(Errno::EAGAIN)),
            Ok(false) => {
                wait.tries_left = wait.tries_left.map(|tries| tries - 1);
                wait.pause = (wait.pause * 2).min(PAUSE_MAX);
                wait.next = Instant::now() + wait.pause;
                None
            }
            Err(error) => Some(Err(error.to_errno())),
        }
    }

    fn answer(&self, task: Task, outcome: Result<(), Errno>) {
        match outcome {
            Ok(()) => {
                if let Some(notifier) = self.notifier.get() {
                    // All pages, and the attributes. If the kernel knows nothing of the file any
                    // more, nothing is cached.
                    let _ = notifier.inval_inode(INodeNo(task.number), 0, 0);
                }
                task.reply.ok();
            }
            Err(errno) => task.reply.error(super::fuse(errno)),
        }
    }
}
