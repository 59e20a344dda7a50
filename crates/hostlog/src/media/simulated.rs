//! A simulated disk for tests: it keeps the promises that a disk makes, and no others.
//!
//! What was written and not synced may be there after a crash, or not, or in part: each sector of 512
//! bytes for itself, whatever the order of the writes. A sync can fail, and what it should have made durable
//! is lost then, even if the next one succeeds, as with Linux. The disk can be full or read-only, bits can
//! flip, and the power can fail in the middle of any call. All of it follows from a seed.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{Media, MediaFile};

/// What a disk writes as a whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (Steele, Lea, Flood 2014: SplitMix64).
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    /// Whether it happens, in `of` cases one.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// What syncs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syncs {
    /// What they should.
    #[default]
    Work,
    /// The next one fails.
    FailOnce,
    /// All fail.
    Fail,
    /// All succeed and do nothing: a disk that no log can be safe on.
    Lie,
}

#[derive(Debug, Default, Clone)]
struct Node {
    /// What is on the disk.
    durable: Vec<u8>,
    /// What a read sees.
    current: Vec<u8>,
    /// What was written since the last sync, in order.
    pending: Vec<(u64, Vec<u8>)>,
    /// Whether the name is on the disk.
    named: bool,
}

#[derive(Debug)]
struct Inner {
    files: BTreeMap<String, Node>,
    locked: bool,
    syncs: Syncs,
    read_only: bool,
    capacity_bytes: u64,
    /// Grows when whoever had files open is gone.
    life: u64,
    /// Calls that change something, so far.
    calls: u64,
    /// The call at which the power fails.
    fuse: Option<u64>,
    dead: bool,
    dice: Dice,
}

/// A simulated disk with the files of one log. Its clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

fn power_failed() -> io::Error {
    io::Error::other("the power of the simulated disk has failed")
}

impl SimulatedDisk {
    /// An empty disk whose faults follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let inner = Inner {
            files: BTreeMap::new(),
            locked: false,
            syncs: Syncs::Work,
            read_only: false,
            capacity_bytes: u64::MAX,
            life: 0,
            calls: 0,
            fuse: None,
            dead: false,
            dice: Dice::new(seed),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the power fail in the middle of the `calls`th call from now that changes something.
    pub fn fail_power_after(&self, calls: u64) {
        let mut inner = self.inner();
        inner.fuse = Some(inner.calls + calls);
    }

    /// Whether the power has failed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.inner().dead
    }

    /// What syncs do from now on.
    pub fn set_syncs(&self, syncs: Syncs) {
        self.inner().syncs = syncs;
    }

    /// Refuses everything that changes something, as a file system does that was found damaged.
    pub fn set_read_only(&self, read_only: bool) {
        self.inner().read_only = read_only;
    }

    /// How many bytes all files together may have.
    pub fn set_capacity(&self, bytes: u64) {
        self.inner().capacity_bytes = bytes;
    }

    /// How many calls changed something so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// The process that used the disk is gone; the system is not, and remembers what was written.
    pub fn kill(&self) {
        let mut inner = self.inner();
        inner.life += 1;
        inner.locked = false;
        inner.fuse = None;
    }

    /// The power fails, and comes back. What is left is what was synced, and what of the rest had reached
    /// the disk.
    pub fn crash(&self) {
        let mut inner = self.inner();
        inner.life += 1;
        inner.locked = false;
        inner.fuse = None;
        inner.dead = false;
        let mut dice = inner.dice.clone();
        let fate = Survival::cast(&mut dice);
        inner.files.retain(|_, node| node.named || !dice.one_in(2));
        for node in inner.files.values_mut() {
            node.named = true;
            fate.apply(node, &mut dice);
        }
        inner.dice = dice;
    }

    /// Flips a bit of a file, on the disk and in memory. Returns whether there is such a byte.
    pub fn flip(&self, name: &str, byte: u64, bit: u32) -> bool {
        let mut inner = self.inner();
        let Some(node) = inner.files.get_mut(name) else {
            return false;
        };
        let mut there = false;
        for content in [&mut node.durable, &mut node.current] {
            if let Some(byte) = content.get_mut(byte as usize) {
                *byte ^= 1 << (bit % 8);
                there = true;
            }
        }
        there
    }

    /// All files' names and sizes.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let inner = self.inner();
        inner.files.iter().map(|(name, node)| (name.clone(), node.current.len() as u64)).collect()
    }

    /// A file's content as a read sees it.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.inner().files.get(name).map(|node| node.current.clone())
    }

    /// Makes a file whose content is on the disk, or makes it anew.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let node =
            Node { durable: content.clone(), current: content, pending: Vec::new(), named: true };
        self.inner().files.insert(name.to_owned(), node);
    }

    /// Another disk with the same content.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let inner = self.inner();
        let copy = Self::new(seed);
        copy.inner().files = inner.files.clone();
        copy
    }
}

/// What becomes of writes that were not synced.
enum Survival {
    Nothing,
    Everything,
    /// Every sector for itself.
    Sectors,
    /// Every write for itself.
    Writes,
    /// The writes up to one, and of that one some sectors.
    Prefix,
}

impl Survival {
    fn cast(dice: &mut Dice) -> Self {
        match dice.below(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2..=4 => Self::Sectors,
            5 => Self::Writes,
            _ => Self::Prefix,
        }
    }

    fn apply(&self, node: &mut Node, dice: &mut Dice) {
        let pending = std::mem::take(&mut node.pending);
        let until = dice.below(pending.len() as u64 + 1);
        // How many of the writes to a sector reached it, at most.
        let mut left: BTreeMap<u64, u64> = BTreeMap::new();
        for (index, (offset, bytes)) in pending.iter().enumerate() {
            let whole = match self {
                Self::Nothing => Some(false),
                Self::Everything => Some(true),
                Self::Writes => Some(dice.one_in(2)),
                Self::Prefix if (index as u64) < until => Some(true),
                Self::Prefix if index as u64 > until => Some(false),
                Self::Prefix | Self::Sectors => None,
            };
            let mut at = 0;
            while at < bytes.len() {
                let position = offset + at as u64;
                let sector = position / SECTOR_BYTES;
                let len = ((sector + 1) * SECTOR_BYTES - position).min((bytes.len() - at) as u64);
                let len = len as usize;
                let survives = whole.unwrap_or_else(|| {
                    let left = left.entry(sector).or_insert_with(|| dice.below(4));
                    let survives = *left > 0;
                    *left = left.saturating_sub(1);
                    survives
                });
                if survives {
                    write_into(&mut node.durable, position, &bytes[at..at + len]);
                }
                at += len;
            }
        }
        // A file may have become longer although what made it so was not written.
        if node.current.len() > node.durable.len() && dice.one_in(2) {
            node.durable.resize(node.current.len(), 0);
        }
        node.current.clone_from(&node.durable);
    }
}

fn write_into(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let end = offset as usize + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset as usize..end].copy_from_slice(bytes);
}

impl Inner {
    /// Begins a call that changes something; says whether the power fails during it.
    fn begin(&mut self) -> io::Result<bool> {
        if self.dead {
            return Err(power_failed());
        }
        if self.read_only {
            return Err(Errno::ROFS.into());
        }
        self.calls += 1;
        self.dead = self.fuse.is_some_and(|fuse| self.calls >= fuse);
        Ok(self.dead)
    }

    fn used_bytes(&self) -> u64 {
        self.files.values().map(|node| node.current.len() as u64).sum()
    }
}

impl Media for SimulatedDisk {
    fn place(&self) -> PathBuf {
        PathBuf::from("simulated")
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimulatedLock { disk: self.clone(), life: inner.life }))
    }

    fn segments(&self) -> io::Result<Vec<String>> {
        let inner = self.inner();
        Ok(inner.files.keys().filter(|name| name.ends_with(".seg")).cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediaFile>> {
        let mut inner = self.inner();
        if inner.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let failing = inner.begin()?;
        inner.files.insert(name.to_owned(), Node::default());
        let life = inner.life;
        drop(inner);
        match failing {
            true => Err(power_failed()),
            false => {
                Ok(Box::new(SimulatedFile { disk: self.clone(), name: name.to_owned(), life }))
            }
        }
    }

    fn open(&self, name: &str, _write: bool) -> io::Result<Box<dyn MediaFile>> {
        let inner = self.inner();
        if inner.dead {
            return Err(power_failed());
        }
        if !inner.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = SimulatedFile { disk: self.clone(), name: name.to_owned(), life: inner.life };
        Ok(Box::new(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let failing = inner.begin()?;
        if !failing || inner.dice.one_in(2) {
            inner.files.remove(name);
        }
        if failing { Err(power_failed()) } else { Ok(()) }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let failing = inner.begin()?;
        if !failing || inner.dice.one_in(2) {
            let node = Node {
                durable: bytes.to_vec(),
                current: bytes.to_vec(),
                pending: Vec::new(),
                named: true,
            };
            inner.files.insert(name.to_owned(), node);
        }
        if failing { Err(power_failed()) } else { Ok(()) }
    }
}

struct SimulatedLock {
    disk: SimulatedDisk,
    life: u64,
}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut inner = self.disk.inner();
        // Who is gone has no lock any more that it could give back.
        if inner.life == self.life {
            inner.locked = false;
        }
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    name: String,
    life: u64,
}

impl SimulatedFile {
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        let mut inner = self.disk.inner();
        if inner.dead || inner.life != self.life {
            return Err(power_failed());
        }
        act(&mut inner)
    }
}

impl MediaFile for SimulatedFile {
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.with(|inner| {
            let failing = inner.begin()?;
            let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            let used = inner.used_bytes();
            let capacity = inner.capacity_bytes;
            let node = inner.files.get_mut(&self.name).ok_or(io::ErrorKind::NotFound)?;
            let grows = (offset + bytes.len() as u64).saturating_sub(node.current.len() as u64);
            let full = used + grows > capacity;
            if full {
                // What fits is written.
                let fits = bytes.len() as u64 - grows + capacity.saturating_sub(used);
                bytes.truncate(fits as usize);
            }
            write_into(&mut node.current, offset, &bytes);
            node.pending.push((offset, bytes));
            match (failing, full) {
                (true, _) => Err(power_failed()),
                (false, true) => Err(Errno::NOSPC.into()),
                (false, false) => Ok(()),
            }
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|inner| {
            let node = inner.files.get(&self.name).ok_or(io::ErrorKind::NotFound)?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = node.current.get(from..from.saturating_add(buffer.len()));
            buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn size(&self) -> io::Result<u64> {
        self.with(|inner| {
            let node = inner.files.get(&self.name).ok_or(io::ErrorKind::NotFound)?;
            Ok(node.current.len() as u64)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|inner| {
            let failing = inner.begin()?;
            let syncs = inner.syncs;
            if syncs == Syncs::FailOnce {
                inner.syncs = Syncs::Work;
            }
            let done = syncs == Syncs::Work && (!failing || inner.dice.one_in(2));
            let node = inner.files.get_mut(&self.name).ok_or(io::ErrorKind::NotFound)?;
            if done {
                // Not all that a read sees: what an earlier sync failed to write stays lost.
                for (offset, bytes) in std::mem::take(&mut node.pending) {
                    write_into(&mut node.durable, offset, &bytes);
                }
                node.named = true;
            }
            match syncs {
                _ if failing => Err(power_failed()),
                Syncs::Work | Syncs::Lie => Ok(()),
                Syncs::Fail | Syncs::FailOnce => {
                    // The pages count as clean from here on, and are not on the disk.
                    node.pending.clear();
                    Err(Errno::IO.into())
                }
            }
        })
    }
}
