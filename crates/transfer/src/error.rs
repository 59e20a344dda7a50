//! Why an access through a view could not be carried out.

use rustix::io::Errno;
use sieve::Access;

/// The result of carrying out an access.
pub type Result<T> = std::result::Result<T, Error>;

/// Why not a single byte could be carried.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is no plan for it.
    #[error(transparent)]
    Plan(#[from] sieve::Error),
    /// The file refused.
    #[error("{} {len} bytes at offset {offset}", match access { Access::Read => "reading", Access::Write => "writing" })]
    Io {
        /// What was tried.
        access: Access,
        /// Where, in the file.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// What the file said.
        #[source]
        errno: Errno,
    },
    /// A part of the file that was to be read and written back could not be locked.
    #[error("locking {len} bytes at offset {offset}")]
    Lock {
        /// Where, in the file.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// What the file said.
        #[source]
        errno: Errno,
    },
    /// A write with holes has to read, and the file is open for writing only.
    #[error(
        "writing around holes means reading them first, and the file is not open for reading: \
         open it with O_RDWR, or write each block by itself"
    )]
    NotReadable,
    /// Writes to a file that is open for appending go to its end, whatever their offset: pwrite(2).
    #[error("the file is open with O_APPEND, so that nothing can be written at an offset")]
    Append,
    /// A group of a plan spans more than the buffer holds.
    #[error("a group spans {span} bytes, more than the buffer of {buffer} bytes holds")]
    BufferTooSmall {
        /// Bytes of the file that the group spans.
        span: u64,
        /// Bytes in the buffer.
        buffer: u64,
    },
}

impl Error {
    /// The number that a program sees in `errno`.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Error::Plan(error) => Errno::from_raw_os_error(error.to_errno()),
            Error::Io { errno, .. } | Error::Lock { errno, .. } => *errno,
            Error::NotReadable => Errno::BADF,
            Error::Append | Error::BufferTooSmall { .. } => Errno::INVAL,
        }
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Io { errno, .. } | Error::Lock { errno, .. } => {
                matches!(*errno, Errno::INTR | Errno::AGAIN)
            }
            Error::Plan(error) => error.is_retryable(),
            Error::NotReadable | Error::Append | Error::BufferTooSmall { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_errno_that_fits() {
        let io = Error::Io { access: Access::Write, offset: 5, len: 9, errno: Errno::NOSPC };
        assert_eq!(io.to_errno(), Errno::NOSPC);
        assert_eq!(io.to_string(), "writing 9 bytes at offset 5");
        let lock = Error::Lock { offset: 0, len: 1, errno: Errno::AGAIN };
        assert!(lock.is_retryable() && !io.is_retryable());
        assert_eq!(Error::NotReadable.to_errno(), Errno::BADF);
        assert_eq!(Error::Append.to_errno(), Errno::INVAL);
        assert_eq!(Error::BufferTooSmall { span: 2, buffer: 1 }.to_errno(), Errno::INVAL);
        assert_eq!(Error::Plan(sieve::Error::NoTuples).to_errno(), Errno::INVAL);
    }
}
