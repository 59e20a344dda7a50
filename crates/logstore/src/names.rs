//! Names: what the log knows of a directory's, over those that the target has there.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, Weak};

use hostlog::Sequence;
use p9::QidType;

use crate::inode::Inode;
use crate::tree::guard;

/// Where a name is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) dir: Arc<Inode>,
    pub(crate) name: Vec<u8>,
}

impl Place {
    pub(crate) fn is(&self, dir: &Arc<Inode>, name: &[u8]) -> bool {
        Arc::ptr_eq(&self.dir, dir) && self.name == name
    }
}

/// One name of a file. It stays the same entry when it is renamed, and so leads a node that was walked
/// to under the old name to the new one.
pub(crate) struct Entry {
    pub(crate) inode: Arc<Inode>,
    /// `None` for what was removed. A directory knows its place itself: entries of it come and go.
    place: Mutex<Option<Place>>,
}

impl Entry {
    pub(crate) fn unplaced(inode: Arc<Inode>) -> Arc<Self> {
        Arc::new(Self { inode, place: Mutex::default() })
    }

    pub(crate) fn placed(inode: Arc<Inode>, dir: &Arc<Inode>, name: &[u8]) -> Arc<Self> {
        let entry = Self::unplaced(inode);
        entry.move_to(Some(Place { dir: Arc::clone(dir), name: name.to_vec() }));
        let mut known = guard(&entry.inode.entries);
        known.retain(|other| other.strong_count() > 0);
        known.push(Arc::downgrade(&entry));
        drop(known);
        entry
    }

    pub(crate) fn place(&self) -> Option<Place> {
        if self.inode.is_directory() {
            guard(&self.inode.home).clone()
        } else {
            guard(&self.place).clone()
        }
    }

    pub(crate) fn move_to(&self, place: Option<Place>) {
        let slot = if self.inode.is_directory() { &self.inode.home } else { &self.place };
        // What was there may be the last to know its directory: it is dropped outside of the lock.
        let before = std::mem::replace(&mut *guard(slot), place);
        drop(before);
    }
}

/// What the log says of a name.
pub(crate) enum Slot {
    /// It is this, since that record.
    Present { entry: Arc<Entry>, since: Sequence },
    /// It is nothing, since that record, whatever the target has there.
    Removed { since: Sequence },
    /// Nothing: it is what the target has, and these are those who know it.
    Seen(Weak<Entry>),
}

/// An entry of the target's listing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) number: u64,
    pub(crate) kind: QidType,
    /// `DT_*` of readdir(3).
    pub(crate) entry_type: u8,
}

/// What a listing gives for a name.
pub(crate) enum Found {
    Entry(Arc<Entry>),
    Target(Listed),
}

/// The first cookie of an entry; `.` and `..` have those before.
pub(crate) const FIRST_COOKIE: u64 = 3;

/// Cookies only grow: a listing neither skips nor repeats an entry that was there all the while.
#[derive(Default)]
struct Listing {
    is_loaded: bool,
    by_name: HashMap<Vec<u8>, u64>,
    by_cookie: BTreeMap<u64, (Vec<u8>, Option<Listed>)>,
    next: u64,
}

impl Listing {
    fn add(&mut self, name: &[u8], listed: Option<Listed>) {
        let cookie = *self.by_name.entry(name.to_vec()).or_insert_with(|| {
            self.next = (self.next + 1).max(FIRST_COOKIE);
            self.next
        });
        self.by_cookie.insert(cookie, (name.to_vec(), listed));
    }

    fn remove(&mut self, name: &[u8]) {
        if let Some(cookie) = self.by_name.remove(name) {
            self.by_cookie.remove(&cookie);
        }
    }
}

/// What is known of a directory's names.
#[derive(Default)]
pub(crate) struct Names {
    slots: HashMap<Vec<u8>, Slot>,
    listing: Listing,
    /// How often names were given back to the target: who has asked the target meanwhile asks again.
    pub(crate) given_back: u64,
    /// The directory itself was removed: nothing can be put into it.
    pub(crate) is_removed: bool,
    /// Whether the target has said that it can be changed.
    pub(crate) is_writable: bool,
    /// When those that nobody knows any more are looked for.
    sweep_at: usize,
}

impl Names {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Slot> {
        self.slots.get(name)
    }

    pub(crate) fn set(&mut self, name: &[u8], slot: Slot) {
        match &slot {
            Slot::Present { .. } if self.listing.is_loaded => self.listing.add(name, None),
            Slot::Removed { .. } => self.listing.remove(name),
            Slot::Present { .. } | Slot::Seen(_) => {}
        }
        self.slots.insert(name.to_vec(), slot);
        if self.slots.len() > self.sweep_at {
            self.slots.retain(|_, slot| match slot {
                Slot::Seen(entry) => entry.strong_count() > 0,
                Slot::Present { .. } | Slot::Removed { .. } => true,
            });
            self.sweep_at = (2 * self.slots.len()).max(64);
        }
    }

    /// Gives a name back to the target if nothing was done to it behind `through`.
    pub(crate) fn give_back(&mut self, name: &[u8], through: Sequence) -> Option<Slot> {
        let before = match self.slots.get(name) {
            Some(Slot::Present { entry, since }) if *since <= through => {
                let seen = Slot::Seen(Arc::downgrade(entry));
                let (number, kind) = (entry.inode.number(), entry.inode.kind());
                if self.listing.is_loaded {
                    let listed = Listed { number, kind, entry_type: kind.entry_type() };
                    self.listing.add(name, Some(listed));
                }
                self.slots.insert(name.to_vec(), seen)
            }
            Some(Slot::Removed { since }) if *since <= through => self.slots.remove(name),
            _ => return None,
        };
        self.given_back += 1;
        before
    }

    /// Whether the target has all of it.
    pub(crate) fn is_drained(&self) -> bool {
        self.slots.values().all(|slot| matches!(slot, Slot::Seen(_)))
    }

    /// Every entry that is somebody's.
    pub(crate) fn known(&self) -> Vec<Arc<Entry>> {
        let entry = |slot: &Slot| match slot {
            Slot::Present { entry, .. } => Some(Arc::clone(entry)),
            Slot::Seen(entry) => entry.upgrade(),
            Slot::Removed { .. } => None,
        };
        self.slots.values().filter_map(entry).collect()
    }

    /// Takes notice of what the target lists now.
    pub(crate) fn refresh(&mut self, target: Vec<(Vec<u8>, Listed)>) {
        let mut gone: HashMap<Vec<u8>, u64> = self.listing.by_name.clone();
        for (name, listed) in target {
            gone.remove(&name);
            match self.slots.get(&name) {
                Some(Slot::Removed { .. }) => {}
                Some(Slot::Present { .. }) => self.listing.add(&name, None),
                Some(Slot::Seen(_)) | None => self.listing.add(&name, Some(listed)),
            }
        }
        for (name, slot) in &self.slots {
            if matches!(slot, Slot::Present { .. }) {
                gone.remove(name);
                self.listing.add(name, None);
            }
        }
        for name in gone.into_keys() {
            self.listing.remove(&name);
        }
        self.listing.is_loaded = true;
    }

    /// Up to `count` entries behind a cookie.
    pub(crate) fn behind(&self, cookie: u64, count: usize) -> Vec<(u64, Vec<u8>, Found)> {
        let rest = self.listing.by_cookie.range((Bound::Excluded(cookie), Bound::Unbounded));
        let found = rest.filter_map(|(cookie, (name, listed))| {
            let found = match self.slots.get(name) {
                Some(Slot::Present { entry, .. }) => Found::Entry(Arc::clone(entry)),
                Some(Slot::Removed { .. }) => return None,
                Some(Slot::Seen(_)) | None => Found::Target((*listed)?),
            };
            Some((*cookie, name.clone(), found))
        });
        found.take(count).collect()
    }

    pub(crate) fn clear(&mut self) -> Vec<Slot> {
        self.slots.drain().map(|(_, slot)| slot).collect()
    }
}
