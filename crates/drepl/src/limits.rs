//! What a definition may not exceed, so that no text can exhaust the stack, the memory or the patience of a program.

/// The largest file that is taken for a definition.
pub const SOURCE_SIZE_MAX: u64 = 16 << 20;
/// How large a file and all that it includes may be together.
pub const SOURCES_SIZE_MAX: u64 = 4 * SOURCE_SIZE_MAX;
/// How many files a definition may have.
pub const SOURCES_MAX: usize = 1000;
/// How deeply files may include files.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// How deeply types, and what views make of them, may nest.
pub const NESTING_MAX: usize = 64;
/// The most dimensions of an array.
///
/// # Source
/// H5S_MAX_RANK of HDF5, which may store any of them.
pub const RANK_MAX: usize = 32;
/// How deeply an expression may nest; a sum of so many terms nests so deeply.
pub const EXPRESSION_DEPTH_MAX: usize = 256;
/// The most numbers and texts that the types of a dataset may have (those of an array's element count once), and the
/// most parts that views may name: what works on a definition walks through them.
pub const LEAVES_MAX: u64 = 1_000_000;
/// The most diagnostics that are kept; of the others only the number is told.
pub const DIAGNOSTICS_MAX: usize = 100;

/// The largest file.
///
/// # Source
/// lseek(2): `off_t` is a signed number of 64 bits.
pub const FILE_SIZE_MAX: u64 = i64::MAX as u64;
