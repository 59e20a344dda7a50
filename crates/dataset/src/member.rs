//! A replica while its dataset is open, and who uses a view.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use drepl::definition::Update;
use store::FileLocks;

use crate::ranges::Ranges;
use crate::replica::{Files, Place};

/// A replica of the definition.
pub(crate) struct Member {
    pub(crate) place: Place,
    pub(crate) update: Update,
    pub(crate) closeness: u32,
    /// What its bytes mean.
    pub(crate) layout: u128,
    /// None while it is stale.
    files: RwLock<Option<Arc<Files>>>,
    /// Of a replica that is written on close: what it lacks, by view.
    lacks: Mutex<Vec<Ranges>>,
    is_behind: AtomicBool,
    /// It is not the definition's any more.
    is_removed: AtomicBool,
    /// It is being made.
    filling: Mutex<Option<Arc<Filling>>>,
    /// Why its file is not under its name any more although it is used.
    orphaned: Mutex<Option<String>>,
}

impl Member {
    pub(crate) fn new(
        place: Place,
        (update, closeness): (Update, u32),
        layout: u128,
        files: Option<Arc<Files>>,
    ) -> Self {
        Self {
            place,
            update,
            closeness,
            layout,
            files: RwLock::new(files),
            lacks: Mutex::default(),
            is_behind: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            filling: Mutex::default(),
            orphaned: Mutex::default(),
        }
    }

    /// Its files; none while it is stale.
    pub(crate) fn files(&self) -> Option<Arc<Files>> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that it is stale, or that it is up to date in these files.
    pub(crate) fn set_files(&self, files: Option<Arc<Files>>) {
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::SeqCst)
    }

    /// It is not the definition's any more, and neither read nor written again.
    pub(crate) fn remove(&self) {
        self.is_removed.store(true, Ordering::SeqCst);
        self.set_files(None);
    }

    /// Notes that it lacks bytes of a view.
    pub(crate) fn lack(&self, view: usize, range: Range<u64>) {
        add(&mut self.lacks(), view, range);
        self.is_behind.store(true, Ordering::SeqCst);
    }

    /// Whether it lacks anything.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    /// What it lacks of a view.
    pub(crate) fn lacking(&self, view: usize) -> Vec<Range<u64>> {
        self.lacks().get(view).map(|ranges| ranges.iter().collect()).unwrap_or_default()
    }

    /// It lacks nothing of a view any more.
    pub(crate) fn caught_up(&self, view: usize) {
        let mut lacks = self.lacks();
        if let Some(ranges) = lacks.get_mut(view) {
            *ranges = Ranges::default();
        }
        let is_behind = lacks.iter().any(|ranges| !ranges.is_empty());
        self.is_behind.store(is_behind, Ordering::SeqCst);
    }

    fn lacks(&self) -> MutexGuard<'_, Vec<Ranges>> {
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of its being made, if it is.
    pub(crate) fn filling(&self) -> Option<Arc<Filling>> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to note what is written while it is being made; none if somebody makes it already.
    pub(crate) fn begin_filling(&self) -> Option<Arc<Filling>> {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        if filling.is_some() {
            return None;
        }
        *filling = Some(Arc::default());
        filling.clone()
    }

    pub(crate) fn end_filling(&self) {
        *self.filling.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why its file is not under its name any more, although it is used.
    pub(crate) fn orphaned(&self) -> Option<String> {
        self.orphaned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says why its file is not under its name any more. True: that is news.
    pub(crate) fn set_orphaned(&self, reason: Option<String>) -> bool {
        let mut orphaned = self.orphaned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = orphaned.is_some() != reason.is_some();
        *orphaned = reason;
        is_news
    }
}

fn add(all: &mut Vec<Ranges>, view: usize, range: Range<u64>) {
    if all.len() <= view {
        // Views are added while it is there.
        all.resize_with(view + 1, Ranges::default);
    }
    all[view].add(range);
}

/// How far a replica is that is being made.
#[derive(Default)]
pub(crate) struct Filling {
    done: AtomicU64,
    all: AtomicU64,
    /// What was written meanwhile, by view.
    missed: Mutex<Vec<Ranges>>,
}

impl Filling {
    /// Notes that bytes of a view were written, which may have been copied before.
    pub(crate) fn miss(&self, view: usize, range: Range<u64>) {
        add(&mut self.missed.lock().unwrap_or_else(PoisonError::into_inner), view, range);
    }

    /// What was written since this was called last: view, and where.
    pub(crate) fn take_missed(&self) -> Vec<(usize, Range<u64>)> {
        let missed =
            std::mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner));
        let views = missed.iter().enumerate();
        views.flat_map(|(view, ranges)| ranges.iter().map(move |range| (view, range))).collect()
    }

    pub(crate) fn set_progress(&self, done: u64, all: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// Bytes of its files that are done, and all of them.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed))
    }
}

/// Who uses a view.
pub(crate) struct Use {
    /// `qid.path` of its file.
    pub(crate) path: u64,
    /// Openings for writing.
    pub(crate) writers: AtomicUsize,
    /// Openings of any kind.
    pub(crate) openings: AtomicUsize,
    pub(crate) locks: Arc<FileLocks>,
}

impl Use {
    pub(crate) fn new(path: u64) -> Self {
        let (writers, openings) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { path, writers, openings, locks: Arc::default() }
    }
}
