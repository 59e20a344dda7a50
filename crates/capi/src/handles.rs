//! Handles as C has them: numbers in the guise of pointers, never addresses.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The next number, of all tables: a handle of one kind is none of another. Odd, as no address of an object is.
static NEXT: AtomicUsize = AtomicUsize::new(0x5101);

/// The objects of one kind that C has handles of. No number is used twice: a stale handle stays one.
pub(crate) struct Table<T> {
    kind: &'static str,
    entries: LazyLock<Mutex<HashMap<usize, Arc<T>>>>,
}

impl<T> Table<T> {
    /// `kind` is what messages call it.
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self { kind, entries: LazyLock::new(Mutex::default) }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<usize, Arc<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new handle.
    pub(crate) fn add(&self, object: T) -> *mut c_void {
        let number = NEXT.fetch_add(2, Ordering::Relaxed);
        self.entries().insert(number, Arc::new(object));
        std::ptr::without_provenance_mut(number)
    }

    /// What a handle stands for; it stays as long as somebody uses it, also if it is closed meanwhile.
    pub(crate) fn get(&self, handle: *mut c_void) -> Result<Arc<T>> {
        self.entries().get(&handle.addr()).cloned().ok_or_else(|| self.wrong(handle))
    }

    /// Takes a handle back.
    pub(crate) fn take(&self, handle: *mut c_void) -> Result<Arc<T>> {
        self.entries().remove(&handle.addr()).ok_or_else(|| self.wrong(handle))
    }

    /// Takes all handles back.
    pub(crate) fn take_all(&self) -> Vec<Arc<T>> {
        self.entries().drain().map(|(_, object)| object).collect()
    }

    fn wrong(&self, handle: *mut c_void) -> Error {
        match handle.is_null() {
            true => Error::Null { argument: self.kind },
            false => Error::Stale { kind: self.kind },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_closed_and_foreign_handles_are_told_apart_from_open_ones() {
        static LETTERS: Table<char> = Table::new("letter");
        static DIGITS: Table<u8> = Table::new("digit");
        let letter = LETTERS.add('a');
        assert_eq!(*LETTERS.get(letter).expect("open"), 'a');
        assert!(matches!(DIGITS.get(letter), Err(Error::Stale { kind: "digit" })));
        assert_eq!(*LETTERS.take(letter).expect("open"), 'a');
        assert!(matches!(LETTERS.get(letter), Err(Error::Stale { .. })));
        assert!(matches!(LETTERS.take(letter), Err(Error::Stale { .. })));
        assert_ne!(LETTERS.add('b'), letter);
        assert!(matches!(LETTERS.get(std::ptr::null_mut()), Err(Error::Null { .. })));
    }
}
