//! Open files of one process that are the same file: what one writes, the others read.
//!
//! Each open file has a cache and write-behind of its own. Sharing them by the service's identity
//! of files would be simpler, but a foreign service may give two files of different devices the
//! same identity, and then one would be read for the other. Here such a mistake costs a few
//! messages and nothing else: who has written is made to settle, who wants to read forgets what
//! it had.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::file::core::Core;
use crate::lock;

/// Buffers of write-behind kept for later writes, in bytes of capacity. Fresh memory costs about
/// as much to touch for the first time as the copy that goes there.
const SPARE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The open files of one session.
#[derive(Default)]
pub struct Registry {
    files: Mutex<BTreeMap<u64, Arc<Siblings>>>,
    /// Files that have something gathered or on its way, by address: a program may have thousands open,
    /// and whoever settles must not look at each of them.
    unsettled: Mutex<BTreeMap<usize, Weak<Core>>>,
    spare: Mutex<Vec<Vec<u8>>>,
}

/// All open files with one identity.
pub(crate) struct Siblings {
    qid_path: u64,
    /// How many there are; while there is one, nothing needs to be kept in step.
    count: AtomicUsize,
    /// Raised by each write while there are several.
    epoch: AtomicU64,
    /// Something was written, ever.
    written: AtomicBool,
    /// Other processes write to the file while this one reads or writes: nothing of it is kept here.
    concurrent: AtomicBool,
    members: Mutex<Vec<Weak<Core>>>,
}

impl Registry {
    /// Sends every open file's gathered writes and waits for all acknowledgements. Errors are kept
    /// for the files' own next calls. Returns how many files it looked at: those that were written,
    /// however many are open.
    pub fn settle_all(&self) -> usize {
        let cores = self.unsettled();
        // All are on their way before the first is waited for.
        cores.iter().for_each(|core| core.send());
        for core in &cores {
            core.settle();
        }
        cores.len()
    }

    /// The same for the files with one identity (`Qid::path`). Returns whether there was any to
    /// settle, so that attributes asked for before are out of date.
    pub fn settle(&self, qid_path: u64) -> bool {
        let siblings = lock(&self.files).get(&qid_path).cloned();
        let members = siblings.map(|siblings| siblings.members()).unwrap_or_default();
        // Every one, not just the first that has something.
        members.iter().filter(|core| core.settle()).count() > 0
    }

    /// Sends every open file's gathered writes without waiting for acknowledgements.
    pub fn send_all(&self) {
        for core in self.unsettled() {
            core.send();
        }
    }

    /// Closes every open file where that means something to the service, and waits for it: the process ends. A file with
    /// a failed write that nobody was told of is left as if the process had been killed.
    pub fn finish_all(&self) {
        let closing: Vec<_> =
            self.cores().iter().filter_map(|core| core.begin_to_finish()).collect();
        for one in closing {
            // Nobody is there to be told.
            let _ = one.wait();
        }
    }

    /// Makes safe what was written to files that would count only when they are closed: this process is about to become
    /// another program, which has the files open without having opened them. Errors are for that one to find. What
    /// is stored as a whole is left to it, since it could not go on with what is stored.
    pub fn sync_all(&self) {
        let cores = self.cores();
        let counts = |core: &&Arc<Core>| core.close_counts() && !core.handle().is_stored_at_close();
        for core in cores.iter().filter(counts) {
            let _ = core.handle().sync(true);
        }
    }

    /// Drops what all open files have cached, after one of them, who knows which, was changed by
    /// path.
    pub fn invalidate_all(&self) {
        for core in self.cores() {
            core.lock().forget_reads();
        }
    }

    /// Runs `work`, which is fork(2), while no open file has anything outstanding or is in use by
    /// another thread: in the child every file then is whole and unlocked.
    pub fn quiesce<R>(&self, work: impl FnOnce() -> R) -> R {
        let files = lock(&self.files);
        let members: Vec<_> = files.values().map(|siblings| lock(&siblings.members)).collect();
        let cores: Vec<Arc<Core>> =
            members.iter().flat_map(|members| members.iter().filter_map(Weak::upgrade)).collect();
        let mut states = Vec::with_capacity(cores.len());
        for core in &cores {
            let mut state = core.lock();
            core.settle_locked(&mut state);
            state.forget_reads();
            states.push(state);
        }
        let unsettled = lock(&self.unsettled);
        let spare = lock(&self.spare);
        let result = work();
        drop(spare);
        drop(unsettled);
        drop(states);
        drop(members);
        drop(files);
        // Only now: the last owner of a file that is being dropped needs the locks.
        drop(cores);
        result
    }

    pub(crate) fn join(&self, qid_path: u64, core: Weak<Core>) -> Arc<Siblings> {
        let mut files = lock(&self.files);
        let siblings = files.entry(qid_path).or_insert_with(|| {
            Arc::new(Siblings {
                qid_path,
                count: AtomicUsize::new(0),
                epoch: AtomicU64::new(0),
                written: AtomicBool::new(false),
                concurrent: AtomicBool::new(false),
                members: Mutex::default(),
            })
        });
        let siblings = Arc::clone(siblings);
        let mut members = lock(&siblings.members);
        members.push(core);
        siblings.count.store(members.len(), Ordering::SeqCst);
        drop(members);
        siblings
    }

    pub(crate) fn leave(&self, siblings: &Siblings, core: &Core) {
        let mut files = lock(&self.files);
        let mut members = lock(&siblings.members);
        members.retain(|member| !std::ptr::eq(member.as_ptr(), core));
        siblings.count.store(members.len(), Ordering::SeqCst);
        if members.is_empty() {
            files.remove(&siblings.qid_path);
        }
    }

    /// Notes that a file has something to settle. Its lock is held.
    pub(crate) fn list(&self, core: Weak<Core>) {
        lock(&self.unsettled).insert(core.as_ptr() as usize, core);
    }

    /// Notes that it has nothing any more. Its lock is held, so that nobody who settles in the meantime
    /// misses a file whose acknowledgements are still waited for.
    pub(crate) fn unlist(&self, core: &Core) {
        lock(&self.unsettled).remove(&(std::ptr::from_ref(core) as usize));
    }

    /// An empty buffer, with room if there is one.
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn keep_buffer(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() < 4096 {
            return;
        }
        buffer.clear();
        let mut spare = lock(&self.spare);
        let held: usize = spare.iter().map(Vec::capacity).sum();
        if held + buffer.capacity() <= SPARE_BYTES_MAX {
            spare.push(buffer);
        }
    }

    fn unsettled(&self) -> Vec<Arc<Core>> {
        lock(&self.unsettled).values().filter_map(Weak::upgrade).collect()
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        let files = lock(&self.files);
        files.values().flat_map(|siblings| siblings.members()).collect()
    }
}

impl Siblings {
    /// The epoch: whoever has seen another one has caches that may be out of date.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The epoch that a new member has seen. Call it after joining: from then on every write of
    /// others is noted. `writes`: the file was opened for writing, which may have emptied it.
    pub(crate) fn first_epoch(&self, core: &Core, writes: bool) -> Option<u64> {
        let mut epoch = self.epoch();
        let others = self.others(core);
        for other in &others {
            // A write that began when the other was alone is over when its lock can be had.
            drop(other.lock());
        }
        if writes && !others.is_empty() {
            epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        }
        (!self.written.load(Ordering::Acquire)).then_some(epoch)
    }

    /// Other processes use the file at the same time, from now on until nobody here has it open.
    pub(crate) fn set_concurrent(&self) {
        self.concurrent.store(true, Ordering::Release);
    }

    /// Whether other processes use the file at the same time.
    #[inline]
    pub(crate) fn is_concurrent(&self) -> bool {
        self.concurrent.load(Ordering::Relaxed)
    }

    /// Notes a write by a member whose lock is held; `seen` is the epoch that it has seen.
    #[inline]
    pub(crate) fn note_write(&self, seen: &mut Option<u64>) {
        self.written.store(true, Ordering::Release);
        if self.count.load(Ordering::SeqCst) > 1 {
            let before = self.epoch.fetch_add(1, Ordering::AcqRel);
            if *seen == Some(before) {
                *seen = Some(before + 1);
            }
        }
    }

    /// Makes the members forget what they have cached, for a member whose lock is held and who has
    /// forgotten already; `seen` is the epoch that it has seen.
    pub(crate) fn note_sync(&self, seen: &mut Option<u64>) {
        if self.count.load(Ordering::SeqCst) > 1 {
            let before = self.epoch.fetch_add(1, Ordering::AcqRel);
            if *seen == Some(before) {
                *seen = Some(before + 1);
            }
        }
    }

    /// The members but `core`.
    pub(crate) fn others(&self, core: &Core) -> Vec<Arc<Core>> {
        let mut members = self.members();
        members.retain(|member| !std::ptr::eq(Arc::as_ptr(member), core));
        members
    }

    fn members(&self) -> Vec<Arc<Core>> {
        lock(&self.members).iter().filter_map(Weak::upgrade).collect()
    }
}
