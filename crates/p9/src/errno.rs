//! Error numbers: what `Rlerror` carries.

use crate::wire::{Field, Reader, WireError};

/// A Linux error number (errno(3)), as on x86-64; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Errno {
            $(
                #[doc = $text]
                pub const $name: Errno = Errno($number);
            )*

            /// The symbolic name, or `errno` for a number without one here.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                    _ => "errno",
                }
            }

            /// What strerror(3) says.
            #[must_use]
            pub fn message(self) -> &'static str {
                match self {
                    $(Errno::$name => $text,)*
                    _ => "unknown error",
                }
            }
        }
    };
}

errnos! {
    EPERM = 1, "Operation not permitted";
    ENOENT = 2, "No such file or directory";
    EINTR = 4, "Interrupted system call";
    EIO = 5, "Input/output error";
    ENXIO = 6, "No such device or address";
    E2BIG = 7, "Argument list too long";
    ENOEXEC = 8, "Exec format error";
    EBADF = 9, "Bad file descriptor";
    EAGAIN = 11, "Resource temporarily unavailable";
    ENOMEM = 12, "Cannot allocate memory";
    EACCES = 13, "Permission denied";
    EFAULT = 14, "Bad address";
    EBUSY = 16, "Device or resource busy";
    EEXIST = 17, "File exists";
    EXDEV = 18, "Invalid cross-device link";
    ENODEV = 19, "No such device";
    ENOTDIR = 20, "Not a directory";
    EISDIR = 21, "Is a directory";
    EINVAL = 22, "Invalid argument";
    ENFILE = 23, "Too many open files in system";
    EMFILE = 24, "Too many open files";
    ENOTTY = 25, "Inappropriate ioctl for device";
    ETXTBSY = 26, "Text file busy";
    EFBIG = 27, "File too large";
    ENOSPC = 28, "No space left on device";
    ESPIPE = 29, "Illegal seek";
    EROFS = 30, "Read-only file system";
    EMLINK = 31, "Too many links";
    EPIPE = 32, "Broken pipe";
    ERANGE = 34, "Numerical result out of range";
    EDEADLK = 35, "Resource deadlock avoided";
    ENAMETOOLONG = 36, "File name too long";
    ENOLCK = 37, "No locks available";
    ENOSYS = 38, "Function not implemented";
    ENOTEMPTY = 39, "Directory not empty";
    ELOOP = 40, "Too many levels of symbolic links";
    ENODATA = 61, "No data available";
    EPROTO = 71, "Protocol error";
    EOVERFLOW = 75, "Value too large for defined data type";
    EOPNOTSUPP = 95, "Operation not supported";
    ECONNRESET = 104, "Connection reset by peer";
    ENOTCONN = 107, "Transport endpoint is not connected";
    ETIMEDOUT = 110, "Connection timed out";
    ECONNREFUSED = 111, "Connection refused";
    EHOSTUNREACH = 113, "No route to host";
    ESTALE = 116, "Stale file handle";
    EDQUOT = 122, "Disk quota exceeded";
}

impl Errno {
    /// From a raw number; what is not a positive errno (a lying peer) becomes `EIO`.
    #[must_use]
    pub fn from_raw(number: i32) -> Self {
        if (1..4096).contains(&number) { Errno(number) } else { Errno::EIO }
    }

    /// The number that goes into `errno`.
    #[must_use]
    pub fn raw(self) -> i32 {
        self.0
    }

    /// The error that base 9P2000's text stands for, where a peer speaks no numbers.
    ///
    /// Plan 9 servers word errors freely; the phrases matched are those of strerror(3) and of
    /// Plan 9's `/sys/src/9/port/error.h`.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Self {
        let lower = text.to_ascii_lowercase();
        let has = |phrase: &str| lower.windows(phrase.len()).any(|w| w == phrase.as_bytes());
        let phrases = [
            ("no such file", Errno::ENOENT),
            ("does not exist", Errno::ENOENT),
            ("not found", Errno::ENOENT),
            ("permission denied", Errno::EACCES),
            ("not permitted", Errno::EPERM),
            ("file exists", Errno::EEXIST),
            ("already exists", Errno::EEXIST),
            ("not a directory", Errno::ENOTDIR),
            ("is a directory", Errno::EISDIR),
            ("directory not empty", Errno::ENOTEMPTY),
            ("read-only", Errno::EROFS),
            ("read only", Errno::EROFS),
            ("no space", Errno::ENOSPC),
            ("invalid argument", Errno::EINVAL),
            ("name too long", Errno::ENAMETOOLONG),
            ("unknown fid", Errno::EBADF),
            ("bad file descriptor", Errno::EBADF),
            ("not supported", Errno::EOPNOTSUPP),
        ];
        phrases.iter().find(|(phrase, _)| has(phrase)).map_or(Errno::EIO, |(_, errno)| *errno)
    }
}

impl std::fmt::Debug for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            "errno" => write!(f, "error {}", self.0),
            _ => f.write_str(self.message()),
        }
    }
}

impl std::error::Error for Errno {}

impl Field<'_> for Errno {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0 as u32).put(out);
    }
    fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let number = u32::get(from)?;
        Ok(Self::from_raw(i32::try_from(number).unwrap_or(0)))
    }
}
