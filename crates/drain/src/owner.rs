//! Who has the log, as the drain sees it: somebody who shows it as files, or nobody.

use std::collections::HashSet;
use std::sync::Arc;

use hostlog::{FileId, Sequence};
use store::Node;

use crate::error::Result;

/// Where a file is in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Which.
    pub file: FileId,
    /// Its identity there.
    pub identity: u64,
    /// Its path, as of the mark that it is told with.
    pub path: Vec<u8>,
}

/// What an owner needs to have kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The number of the next file.
    pub next_file: u64,
    /// Files that it may still name in records.
    pub files: HashSet<FileId>,
}

/// The owner of a log.
pub trait Owner: Send + Sync {
    /// Where the files were at the mark that the log was opened with.
    fn bound(&self) -> Vec<Bound>;

    /// The mark must not pass this; `None`: only what does not count yet holds it back.
    fn drainable(&self) -> Option<Sequence>;

    /// All up to `through` is in the target, durably, and the log may give its space away when this has returned.
    /// `node` finds a file in the target as it is now; it answers `None` for those that were removed since.
    ///
    /// # Errors
    /// Then the log is not marked.
    fn drained(
        &self,
        through: Sequence,
        node: &dyn Fn(FileId) -> Option<Arc<dyn Node>>,
    ) -> Result<Kept>;

    /// What the log is to keep with the mark.
    fn state(&self, kept: &Kept, bound: &[Bound]) -> Vec<u8>;
}
