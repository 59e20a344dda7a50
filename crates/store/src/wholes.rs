//! Files that cannot be changed in part, only replaced as wholes, as in an object store.
//!
//! Whoever has all changes of a file together, as the drain of a log does, makes its next version from what is new and what
//! the version before has: in parts, in any order and several at once. It takes the former's place at once, or never.

use std::sync::Arc;

use crate::error::Result;

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// What tells it from others.
    pub tag: String,
    /// Its bytes.
    pub size: u64,
}

/// What is to become of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The version whose bytes it may have; `None`: it begins from nothing.
    pub former: Option<Version>,
    /// Whether it is another file than the one that has its path now, if one has.
    pub is_new: bool,
    /// Its bytes.
    pub size: u64,
}

/// A place of such files. Paths are relative to its root.
pub trait Wholes: Send + Sync {
    /// Whether something can have this path here.
    ///
    /// # Errors
    /// As creating it.
    fn check(&self, operation: &'static str, path: &[u8]) -> Result<()>;

    /// The number that what is at a path has for who looks it up for the first time.
    fn identity(&self, path: &[u8]) -> u64;

    /// The version of the file at a path; `None` if there is no file.
    ///
    /// # Errors
    /// When it cannot be told.
    fn version(&self, path: &[u8]) -> Result<Option<Version>>;

    /// How long the parts are of a file of so many bytes, all but the last. One that fits a part comes in one.
    fn part_bytes(&self, size: u64) -> u64;

    /// Begins the next version of a file. Nobody sees it before it is [finished](Replacement::finish).
    ///
    /// # Errors
    /// When nothing can be sent.
    fn replace(&self, path: &[u8], next: &Next) -> Result<Arc<dyn Replacement>>;

    /// Removes what a replacement has left that was never finished, as its process died. None being left is no error.
    ///
    /// # Errors
    /// When it may still be there.
    fn abandon(&self, path: &[u8], id: &str) -> Result<()>;
}

/// A version that is being made. Parts are counted from 0.
pub trait Replacement: Send + Sync {
    /// What [`Wholes::abandon`] knows it by; `None` if it leaves nothing behind.
    fn id(&self) -> Option<&str>;

    /// Fills `buffer` with bytes of the former version.
    ///
    /// # Errors
    /// Also when it is not there any more.
    fn read_former(&self, buffer: &mut [u8], offset: u64) -> Result<()>;

    /// Has a part be what the former version has there. False: it cannot, and the part is to be sent.
    ///
    /// # Errors
    /// When it could and did not.
    fn take_over(&self, part: usize) -> Result<bool>;

    /// Sends a part.
    ///
    /// # Errors
    /// When it did not arrive whole.
    fn send(&self, part: usize, bytes: Vec<u8>) -> Result<()>;

    /// Makes it the file's version, and proves that it is.
    ///
    /// # Errors
    /// When that is not certain.
    fn finish(&self) -> Result<Version>;

    /// Lets go of what was sent, if it is not finished.
    fn abandon(&self);
}
