//! What every store must do, as checks that any store's tests can run.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use store::{Store, conformance, mem::MemStore};
//! conformance::run(&|| Arc::new(MemStore::new()) as Arc<dyn Store>);
//! ```
//!
//! A check gets a factory of empty stores, each independent of the others, in which the caller
//! may do everything. Each promise in the documentation of [`Node`](crate::Node) and
//! [`OpenNode`](crate::OpenNode) has a check here, named for the promise. [`model`] is for random
//! sequences of operations, compared with a simple model or between two stores.
//!
//! Checks panic, as tests do.

mod attributes;
mod files;
mod helpers;
mod listing;
mod locks;
pub mod model;
mod names;
mod renames;
mod walking;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::node::Store;

/// Gives a new, empty store.
pub type Factory<'a> = &'a dyn Fn() -> Arc<dyn Store>;

/// One promise.
pub struct Check {
    /// What is promised.
    pub name: &'static str,
    /// Tries it.
    pub run: fn(Factory<'_>),
}

macro_rules! checks {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every check there is.
        pub const CHECKS: &[Check] = &[
            $($(Check { name: stringify!($name), run: $module::$name },)*)*
        ];
    };
}

checks! {
    walking:
        an_empty_walk_gives_a_second_handle
        a_missing_first_element_is_an_error_and_a_later_one_ends_the_walk
        dot_dot_goes_up_but_not_above_the_root
        symbolic_links_are_nodes_and_not_followed
        names_are_any_bytes_up_to_255
        names_that_are_no_names_are_refused;
    files:
        reads_are_short_only_at_the_end
        what_was_never_written_reads_as_zeros
        large_unaligned_writes_come_back
        appending_ignores_the_offset
        appends_of_many_threads_stay_whole
        threads_write_their_own_ranges
        truncate_on_opening_empties
        access_is_what_was_asked_for_at_opening
        what_cannot_be_opened_says_why
        create_opens_what_exists_unless_exclusive
        a_file_is_writable_by_its_creator_whatever_its_mode
        an_opening_outlives_rename_and_removal
        offsets_beyond_every_file_are_errors
        sync_is_possible_for_files_and_directories;
    names:
        directories_are_made_once_with_their_mode
        removal_asks_for_the_right_kind
        directories_must_be_empty_to_go
        symbolic_links_keep_their_target
        hard_links_are_one_file
        links_that_cannot_be_are_refused
        parent_follows_a_rename
        parent_is_lost_with_the_name_and_never_known_at_the_root
        nothing_is_made_in_a_removed_directory;
    renames:
        a_rename_replaces_files_and_empty_directories
        a_rename_between_kinds_is_refused
        a_directory_cannot_move_into_itself
        renaming_one_of_two_names_onto_the_other_does_nothing
        renames_move_whole_trees
        two_stores_do_not_mix;
    attributes:
        identities_are_unique_and_stay
        the_version_changes_with_the_content
        the_version_is_that_of_the_moment
        modes_can_be_changed
        times_are_kept_to_the_nanosecond
        impossible_times_are_refused
        sizes_can_be_set_without_opening
        sizes_can_be_set_through_an_opening_for_writing
        links_of_directories_are_counted
        a_removed_file_has_no_links_but_attributes
        statfs_tells_of_some_room
        extended_attributes_are_kept;
    listing:
        a_listing_has_every_entry_once
        a_listing_goes_on_from_any_cookie
        removing_what_was_listed_skips_nothing
        what_stays_is_listed_once_while_others_come_and_go
        only_directories_are_listed;
    locks:
        owners_exclude_each_other
        readers_share
        an_owner_replaces_its_own_locks
        a_lock_without_length_reaches_past_the_end
        locks_end_with_the_last_opening_that_took_them
        locks_need_the_access_that_they_protect
        impossible_ranges_are_refused;
}

/// Runs every check.
///
/// # Panics
/// When checks fail, naming them; each has printed why.
pub fn run(make: Factory<'_>) {
    run_except(make, &[]);
}

/// Runs every check but those named: promises that a kind of store openly does not make.
///
/// # Panics
/// When checks fail, naming them, or when there is no check of a name given.
pub fn run_except(make: Factory<'_>, except: &[&str]) {
    for name in except {
        assert!(CHECKS.iter().any(|check| check.name == *name), "there is no check `{name}`");
    }
    let wanted = CHECKS.iter().filter(|check| !except.contains(&check.name));
    let failed: Vec<&str> = wanted
        .filter(|check| catch_unwind(AssertUnwindSafe(|| (check.run)(make))).is_err())
        .map(|check| check.name)
        .collect();
    assert!(failed.is_empty(), "{} checks failed: {}", failed.len(), failed.join(", "));
}
