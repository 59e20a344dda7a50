//! What a view, an aggregate function or a profile can get wrong.

use crate::aggregate::Nonsense;

/// The result of building views and planning accesses.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no view, or no plan for an access.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The tuples up to this one cover more than a file can hold (2^63 - 1 bytes).
    #[error("tuple {tuple} ends beyond the largest file offset (2^63 - 1)")]
    Overflow {
        /// Number of the tuple, from 0.
        tuple: u64,
    },
    /// The displacement alone is beyond the largest offset.
    #[error("displacement {displacement} is beyond the largest file offset (2^63 - 1)")]
    Displacement {
        /// The displacement, in bytes.
        displacement: u64,
    },
    /// The bytes asked for would lie beyond the largest offset of a file.
    #[error("{len} bytes at {offset} of the view end beyond the largest file offset (2^63 - 1)")]
    TooFar {
        /// Where the access begins, in bytes of data of the view.
        offset: u64,
        /// How many bytes of data it wants.
        len: u64,
    },
    /// A view without tuples.
    #[error("a file view needs at least one tuple")]
    NoTuples,
    /// Data was asked of a view whose tuples have none.
    #[error("all tuples of the view are empty, so no data can be reached through it")]
    NoData,
    /// A block starts before the one in front of it has ended.
    #[error("block {block} starts at {start}, before the one in front of it ends ({end})")]
    Overlap {
        /// Number of the block, from 0.
        block: u64,
        /// Where it starts, in bytes from the start of the pattern.
        start: u64,
        /// Where the block in front of it ends.
        end: u64,
    },
    /// A nested pattern with more levels than the closed form has room for.
    #[error("{levels} levels of nesting, more than the {max} that a closed form holds")]
    TooDeep {
        /// How many were given.
        levels: usize,
        /// How many there may be.
        max: usize,
    },
    /// An aggregate function gave an answer that has no meaning.
    #[error("aggregate function `{function}`, at tuple {tuple}: {nonsense}")]
    Aggregate {
        /// The function's name.
        function: String,
        /// The tuple it was asked about, counted from the start of the view's list.
        tuple: u64,
        /// What is wrong with the answer.
        nonsense: Nonsense,
    },
    /// The function gathers in a buffer, and the buffer has no room for even one byte.
    #[error("aggregate function `{function}` needs a sieving buffer of at least one byte")]
    NoBuffer {
        /// The function's name.
        function: String,
    },
    /// A parameter of the cost model that is no cost: negative, infinite or not a number.
    #[error("profile: `{field}` is {value}, which cannot be")]
    Profile {
        /// Name of the field.
        field: &'static str,
        /// What it was.
        value: f64,
    },
}

/// EINVAL, EFBIG and EOVERFLOW as in `asm-generic/errno-base.h` and `asm-generic/errno.h`; this
/// room makes no system call and so has no other use for a table of them.
const EINVAL: i32 = 22;
const EFBIG: i32 = 27;
const EOVERFLOW: i32 = 75;

impl Error {
    /// The number that a program sees in `errno`.
    #[must_use]
    pub fn to_errno(&self) -> i32 {
        match self {
            Error::Overflow { .. } | Error::Displacement { .. } => EOVERFLOW,
            Error::TooFar { .. } => EFBIG,
            Error::NoTuples
            | Error::NoData
            | Error::Overlap { .. }
            | Error::TooDeep { .. }
            | Error::Aggregate { .. }
            | Error::NoBuffer { .. }
            | Error::Profile { .. } => EINVAL,
        }
    }

    /// Whether trying again may help. It never does: all of these are about what was asked.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_errno_that_fits() {
        assert_eq!(Error::Overflow { tuple: 1 }.to_errno(), EOVERFLOW);
        assert_eq!(Error::Displacement { displacement: u64::MAX }.to_errno(), EOVERFLOW);
        assert_eq!(Error::TooFar { offset: 1, len: 2 }.to_errno(), EFBIG);
        assert_eq!(Error::NoTuples.to_errno(), EINVAL);
        let nonsense = Nonsense::NoProgress;
        let error = Error::Aggregate { function: "f".into(), tuple: 3, nonsense };
        assert_eq!(error.to_errno(), EINVAL);
        assert!(error.to_string().contains("tuple 3"));
    }
}
