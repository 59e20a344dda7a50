//! A replica while its dataset is open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use drepl::definition::Update;

use crate::ranges::Ranges;
use crate::replica::{Files, Place};

/// A replica of the definition.
pub(crate) struct Member {
    pub(crate) place: Place,
    pub(crate) update: Update,
    pub(crate) closeness: u32,
    /// None while it is stale.
    files: RwLock<Option<Arc<Files>>>,
    /// Of a replica that is written on close: what it lacks, by view.
    lacks: Mutex<Vec<Ranges>>,
    is_behind: AtomicBool,
}

impl Member {
    pub(crate) fn new(
        place: Place,
        update: Update,
        closeness: u32,
        files: Option<Files>,
        views: usize,
    ) -> Self {
        Self {
            place,
            update,
            closeness,
            files: RwLock::new(files.map(Arc::new)),
            lacks: Mutex::new((0..views).map(|_| Ranges::default()).collect()),
            is_behind: AtomicBool::new(false),
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

    /// Notes that it lacks bytes of a view.
    pub(crate) fn lack(&self, view: usize, range: std::ops::Range<u64>) {
        self.lacks()[view].add(range);
        self.is_behind.store(true, Ordering::SeqCst);
    }

    /// Whether it lacks anything.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    /// What it lacks of a view.
    pub(crate) fn lacking(&self, view: usize) -> Vec<std::ops::Range<u64>> {
        self.lacks()[view].iter().collect()
    }

    /// It lacks nothing of a view any more.
    pub(crate) fn caught_up(&self, view: usize) {
        let mut lacks = self.lacks();
        lacks[view] = Ranges::default();
        let is_behind = lacks.iter().any(|ranges| !ranges.is_empty());
        self.is_behind.store(is_behind, Ordering::SeqCst);
    }

    fn lacks(&self) -> MutexGuard<'_, Vec<Ranges>> {
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
