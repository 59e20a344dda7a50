//! Making a log, and opening one that a crash may have left behind.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::SystemTime;

use super::{Live, Log, Segment, State};
use crate::checkpoint::CheckpointFile;
use crate::elsewhere::Others;
use crate::error::{Error, Result};
use crate::format::{Checkpoint, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::ids::{FileId, Group, Sequence};
use crate::manifest::{Description, Manifest};
use crate::media::{Media, MediaFile};
use crate::names::{CHECKPOINT, LOCK};
use crate::rules::{InDoubt, Rules};
use crate::shelf::Shelf;
use crate::walk::{Found, walk};

/// How much is written at once when what was found is written once more.
const SECURED_BYTES: u64 = 1 << 20;

/// How a log is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The size of a segment, a multiple of 4096. It is settled when the log is made.
    pub segment_bytes: u64,
    /// The size that data may make all segments together have; at least two segments. Commits and what
    /// else is needed to get on may exceed it.
    pub size_max_bytes: u64,
    /// How many segments [`Log::prepare_ahead`] keeps ready.
    pub ready_segments: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, size_max_bytes: 16 << 30, ready_segments: 2 }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        let wrong = |what, must, value| Err(Error::Options { what, must, value });
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes)
            || !self.segment_bytes.is_multiple_of(4096)
        {
            return wrong(
                "the size of a segment",
                "a multiple of 4096 from 8192 to 2^31",
                self.segment_bytes,
            );
        }
        if self.size_max_bytes < 2 * self.segment_bytes {
            return wrong("the size of the log", "two segments at least", self.size_max_bytes);
        }
        Ok(())
    }
}

/// What was found when a log was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The last record that is part of the log.
    pub last: Sequence,
    /// All up to this one is in the target, and
    pub drained: Sequence,
    /// this is what was said when it was ([`Log::drained`]).
    pub drained_state: Vec<u8>,
    /// Whether the log was closed in peace.
    pub closed: bool,
    /// Whether something was being written when the log ended: where, and what is found there.
    pub torn: Option<String>,
    /// Whole records behind the end, which no commit had made durable.
    pub dropped_records: u64,
    /// Bytes of their payloads.
    pub dropped_bytes: u64,
    /// Epochs to decide on.
    pub in_doubt: Vec<InDoubt>,
    /// No file in the log has a higher number.
    pub last_file: FileId,
    /// No group in the log has a higher number.
    pub last_group: Option<Group>,
}

impl Log {
    /// Makes a log where there is none.
    ///
    /// # Errors
    /// `Busy`, `Exists`, `Options`, `System`.
    pub fn create(
        media: Arc<dyn Media>,
        description: &Description,
        options: Options,
    ) -> Result<Self> {
        options.check()?;
        let lock = lock(&*media)?;
        let place = media.place();
        match Manifest::read(&*media) {
            Err(Error::Missing { .. }) => {}
            Ok(_) | Err(Error::Version { .. } | Error::Manifest { .. }) => {
                return Err(Error::Exists { place });
            }
            Err(error) => return Err(error),
        }
        // What an earlier attempt left is not part of any log.
        let system = |name: &str, source| Error::system("creating", &place, name, source);
        for name in media.segments().map_err(|e| system("segments", e))? {
            media.remove(&name).map_err(|e| system(&name, e))?;
        }
        match media.remove(CHECKPOINT) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(system(CHECKPOINT, error));
            }
            _ => {}
        }
        let mut id = [0; 8];
        rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| system(CHECKPOINT, errno.into()))?;
        let log = u64::from_le_bytes(id);
        let file = media.create(CHECKPOINT).map_err(|e| system(CHECKPOINT, e))?;
        let start = Checkpoint { log, ..Checkpoint::default() };
        let checkpoint = CheckpointFile::create(file, start).map_err(|e| system(CHECKPOINT, e))?;
        let mut description = description.clone();
        if description.created == 0 {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            description.created = now.map_or(0, |since| since.as_secs());
        }
        let manifest = Manifest { description, log, segment_bytes: options.segment_bytes };
        // From here on there is a log.
        manifest.write(&*media)?;
        let state = State { next: 1, ..empty_state() };
        Ok(assemble(media, manifest, options, state, checkpoint, lock, 0))
    }

    /// Opens a log, and says in what state it was left. `options.segment_bytes` is of no effect.
    ///
    /// Whatever no commit covers is void once something has been appended. [`Log::replay`] then tells what
    /// counts, from behind what was drained on.
    ///
    /// # Errors
    /// `Busy`, `Missing`, `Version`, `Manifest`, `Corrupt` where records are missing that had been durable,
    /// `System`.
    pub fn open(media: Arc<dyn Media>, options: Options) -> Result<(Self, Recovery)> {
        let lock = match Manifest::read(&*media) {
            Ok(_) => lock(&*media)?,
            Err(error) => return Err(error),
        };
        let shelf = Shelf::open(&*media, true)?;
        let options = Options { segment_bytes: shelf.manifest.segment_bytes, ..options };
        options.check()?;
        let found = walk(&shelf)?;
        if found.is_corrupt() {
            return Err(found.corrupt(&shelf));
        }
        let recovery = recovery(&shelf, &found);
        for walked in &found.segments {
            let slot = &shelf.slots[walked.link.slot];
            secure(&*slot.file, walked.unsure, walked.end)
                .map_err(|e| Error::system("securing", &shelf.place, &slot.name, e))?;
        }
        let log = settle(media, shelf, found, options, lock)?;
        Ok((log, recovery))
    }
}

/// Makes durable what was found: it is taken for that from here on.
///
/// A process that was killed may have left it in memory alone. If a sync had failed before, the system may
/// take for clean what is not on the disk, and another sync would do nothing: so it is written once more.
fn secure(file: &dyn MediaFile, from: u64, end: u64) -> io::Result<()> {
    let mut at = from;
    let mut bytes = vec![0; SECURED_BYTES.min(end - from) as usize];
    while at < end {
        let piece = &mut bytes[..SECURED_BYTES.min(end - at) as usize];
        file.read_at(piece, at)?;
        file.write_at(&[IoSlice::new(piece)], at)?;
        at += piece.len() as u64;
    }
    file.sync()
}

fn lock(media: &dyn Media) -> Result<Box<dyn Send + Sync>> {
    let place = media.place();
    media.lock().map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => Error::Busy { place },
        _ => Error::system("locking", &place, LOCK, source),
    })
}

fn recovery(shelf: &Shelf, found: &Found) -> Recovery {
    let end = found
        .end
        .map(|end| format!("{} in {} at byte {}", end.bad, shelf.slots[end.slot].name, end.offset));
    Recovery {
        last: Sequence(found.last),
        drained: Sequence(found.drained),
        drained_state: found.drained_state.clone(),
        closed: shelf.checkpoint.closed,
        torn: end.filter(|_| found.is_torn()),
        dropped_records: found.dropped.0,
        dropped_bytes: found.dropped.1,
        in_doubt: found.rules.in_doubt(),
        last_file: FileId(found.last_file),
        last_group: (found.last_group != 0).then_some(Group(found.last_group)),
    }
}

/// Takes what was found for the log, and says so in the checkpoint before anything is changed.
fn settle(
    media: Arc<dyn Media>,
    shelf: Shelf,
    found: Found,
    options: Options,
    lock: Box<dyn Send + Sync>,
) -> Result<Log> {
    let place = shelf.place.clone();
    let mut segments: Vec<Option<Arc<Segment>>> = Vec::new();
    let mut next_slot = 0;
    let mut highest = shelf.checkpoint.highest;
    for slot in &shelf.slots {
        highest = highest.max(slot.header.map_or(0, |header| header.used.number));
        let number = slot.name.trim_end_matches(".seg").rsplit('/').next();
        let number: Option<u32> = number.and_then(|number| number.parse().ok());
        next_slot = next_slot.max(number.map_or(0, |number| number + 1));
        // One that never got a number is made anew: whether its zeros are on the disk is not known.
        if slot.whole && slot.header.is_some() {
            segments.push(Some(Arc::new(Segment {
                name: slot.name.clone(),
                file: slot.file.clone(),
                number: AtomicU32::new(0),
            })));
        } else {
            media
                .remove(&slot.name)
                .map_err(|e| Error::system("removing", &place, &slot.name, e))?;
            segments.push(None);
        }
    }
    let mut live = VecDeque::new();
    for walked in &found.segments {
        let Some(segment) = segments[walked.link.slot].take() else {
            continue;
        };
        segment.number.store(walked.link.used.number, std::sync::atomic::Ordering::Release);
        live.push_back(Live {
            segment,
            used: walked.link.used,
            first: walked.first,
            last: walked.last,
            dirty: false,
        });
    }
    let free: Vec<Arc<Segment>> = segments.into_iter().flatten().collect();
    let value = Checkpoint {
        durable: found.last,
        drained: found.drained,
        used: found.used,
        first: live.front().map_or(0, |live| live.used.number),
        last: live.back().map_or(0, |live| live.used.number),
        highest,
        closed: false,
        ..shelf.checkpoint
    };
    let file = media
        .open(CHECKPOINT, true)
        .map_err(|e| Error::system("opening", &place, CHECKPOINT, e))?;
    let mut checkpoint = CheckpointFile::open(file, shelf.checkpoint)
        .map_err(|e| Error::system("reading", &place, CHECKPOINT, e))?;
    checkpoint.write_synced(value).map_err(|e| Error::system("writing", &place, CHECKPOINT, e))?;
    let state = State {
        next: found.used + 1,
        written: found.used,
        // Not `used`: nobody knows of the records between to be durable, and they are no part of the log.
        durable: found.last,
        drained: found.drained,
        restart: Some(found.last),
        files: (live.len() + free.len()) as u64,
        live,
        free,
        rules: found.rules,
        ..empty_state()
    };
    let log = assemble(media, shelf.manifest, options, state, checkpoint, lock, next_slot);
    log.recycle()?;
    Ok(log)
}

fn empty_state() -> State {
    State {
        failed: None,
        next: 1,
        written: 0,
        writing: VecDeque::new(),
        durable: 0,
        syncing: false,
        unsynced: 0,
        untold: 0,
        sync_ahead_at: None,
        drained: 0,
        restart: None,
        tail: None,
        live: VecDeque::new(),
        ready: VecDeque::new(),
        free: Vec::new(),
        files: 0,
        decisions: VecDeque::new(),
        rules: Rules::new(),
        disk_full: None,
        waiting: 0,
    }
}

fn assemble(
    media: Arc<dyn Media>,
    manifest: Manifest,
    options: Options,
    state: State,
    checkpoint: CheckpointFile,
    lock: Box<dyn Send + Sync>,
    next_slot: u32,
) -> Log {
    let readable: BTreeMap<u32, Arc<Segment>> =
        state.live.iter().map(|live| (live.used.number, live.segment.clone())).collect();
    Log {
        place: media.place(),
        media,
        manifest,
        options,
        state: Mutex::new(state),
        changed: Condvar::new(),
        grown: Condvar::new(),
        watcher: Mutex::default(),
        checkpoint: Mutex::new(checkpoint),
        preparing: Mutex::new(next_slot),
        readable: RwLock::new(readable),
        others: Others::default(),
        _lock: lock,
    }
}
