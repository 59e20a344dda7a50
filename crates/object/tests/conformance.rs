//! What of the suite that all stores must pass a bucket keeps, and what it openly does not.

#[path = "support/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;

use p9::{Attributes, DirEntry, OpenFlags, Qid, SetAttributes, StatFs};
use place::Bucket;
use store::{LockOwner, LockRange, Node, OpenNode, Result, Store, Walk, conformance};

/// A store whose openings are finished when they are dropped, as the suite drops them on purpose.
struct Finishing(Arc<dyn Store>);

struct FinishingNode(Arc<dyn Node>);

struct FinishingOpen(Arc<dyn OpenNode>);

impl Store for Finishing {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(FinishingNode(self.0.root()?)))
    }
}

impl Node for FinishingNode {
    fn qid(&self) -> Qid {
        self.0.qid()
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let Walk { qids, end } = self.0.walk(names)?;
        Ok(Walk { qids, end: end.map(|end| Arc::new(Self(end)) as Arc<dyn Node>) })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.0.attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.0.set_attributes(set)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        Ok(Arc::new(FinishingOpen(self.0.open(flags)?)))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let (node, open) = self.0.create(name, flags, mode)?;
        Ok((Arc::new(Self(node)), Arc::new(FinishingOpen(open))))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.0.make_directory(name, mode)
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.0.make_symlink(name, target)
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        let existing = (existing as &dyn std::any::Any).downcast_ref::<Self>().unwrap();
        self.0.link(&*existing.0, name)
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let new_dir = (new_dir as &dyn std::any::Any).downcast_ref::<Self>().unwrap();
        self.0.rename(old, &*new_dir.0, new)
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        self.0.remove(name, directory)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (parent, name) = self.0.parent()?;
        Ok((Arc::new(Self(parent)), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.0.statfs()
    }
}

impl OpenNode for FinishingOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.0.write_at(data, offset)
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.0.read_directory(cookie, take)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.0.attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.0.set_attributes(set)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.0.sync(data_only)
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        self.0.lock(owner, range)
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.0.lock_in_the_way(owner, range)
    }
}

impl Drop for FinishingOpen {
    fn drop(&mut self) {
        if let Err(error) = self.0.finish() {
            eprintln!("finish: {error}");
        }
    }
}

/// Promises of a file system that objects cannot keep, by what they lack.
const NOT_KEPT: &[&str] = &[
    // Links.
    "symbolic_links_are_nodes_and_not_followed",
    "what_cannot_be_opened_says_why",
    "removal_asks_for_the_right_kind",
    "symbolic_links_keep_their_target",
    "hard_links_are_one_file",
    "links_that_cannot_be_are_refused",
    "renaming_one_of_two_names_onto_the_other_does_nothing",
    "identities_are_unique_and_stay",
    "a_listing_has_every_entry_once",
    // Renaming directories, and an identity that a rename leaves.
    "dot_dot_goes_up_but_not_above_the_root",
    "an_opening_outlives_rename_and_removal",
    "parent_follows_a_rename",
    "a_rename_replaces_files_and_empty_directories",
    "a_rename_between_kinds_is_refused",
    "a_directory_cannot_move_into_itself",
    "renames_move_whole_trees",
    "links_of_directories_are_counted",
    // Changing what is stored.
    "appending_ignores_the_offset",
    "access_is_what_was_asked_for_at_opening",
    "sizes_can_be_set_without_opening",
    // Modes and times.
    "create_opens_what_exists_unless_exclusive",
    "a_file_is_writable_by_its_creator_whatever_its_mode",
    "directories_are_made_once_with_their_mode",
    "modes_can_be_changed",
    "times_are_kept_to_the_nanosecond",
    // Names that are not UTF-8.
    "names_are_any_bytes_up_to_255",
    // What has lost its name: a key is all there is of a file.
    "parent_is_lost_with_the_name_and_never_known_at_the_root",
    "nothing_is_made_in_a_removed_directory",
    "a_removed_file_has_no_links_but_attributes",
];

#[test]
fn a_bucket_keeps_what_it_can() {
    let bucket = Bucket::new();
    conformance::run_except(&|| Arc::new(Finishing(Arc::new(bucket.fresh()))), NOT_KEPT);
}
