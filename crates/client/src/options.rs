//! What a session may be told.

use std::time::Duration;

/// How a session talks to its service.
#[derive(Debug, Clone)]
pub struct Options {
    /// The message size to propose, in bytes. The default leaves exactly 1 MiB for the data of a
    /// read or write.
    pub msize: u32,
    /// The most that read-ahead may have outstanding or unread for one file, in bytes. 0: nothing is read
    /// ahead, the first read that travels with an open included, and nothing is kept: every read and every
    /// size is asked of the service. With [`write_behind_max`](Self::write_behind_max) 0 processes see each
    /// other's writes as soon as they have returned, as on one local file system.
    pub read_ahead_max: usize,
    /// The most that write-behind may hold for one file, in bytes. 0: every write waits.
    pub write_behind_max: usize,
    /// For how long a broken connection is tried to be made again before operations fail.
    pub reconnect_for: Duration,
    /// How long a service may be silent, or deaf, while a reply is awaited.
    pub request_timeout: Duration,
    /// The user named at attach.
    pub uname: String,
}

impl From<&address::ClientOptions> for Options {
    fn from(settings: &address::ClientOptions) -> Self {
        Self {
            msize: settings.msize_bytes,
            read_ahead_max: usize::try_from(settings.read_ahead_bytes).unwrap_or(usize::MAX),
            write_behind_max: usize::try_from(settings.write_behind_bytes).unwrap_or(usize::MAX),
            reconnect_for: Duration::from_secs(settings.reconnect_seconds.into()),
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            msize: 1024 * 1024 + 4096,
            read_ahead_max: 16 * 1024 * 1024,
            write_behind_max: 16 * 1024 * 1024,
            reconnect_for: Duration::from_secs(15),
            request_timeout: Duration::from_secs(60),
            uname: String::new(),
        }
    }
}
