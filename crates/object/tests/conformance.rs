//! What of the suite that all stores must pass a bucket keeps, and what it openly does not.

#[path = "support/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;

use place::Bucket;
use store::conformance;

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
    conformance::run_except(&|| Arc::new(bucket.fresh()), NOT_KEPT);
}
