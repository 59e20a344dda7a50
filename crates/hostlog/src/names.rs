//! What the files of a log are called.

/// The file that is locked.
pub(crate) const LOCK: &str = "lock";
/// What the log is, as TOML.
pub(crate) const MANIFEST: &str = "log.toml";
/// Where the log begins and ends.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The directory of the segments.
pub(crate) const SEGMENTS: &str = "segments";

/// The name of a segment file.
pub(crate) fn segment(slot: u32) -> String {
    format!("{SEGMENTS}/{slot:08}.seg")
}
