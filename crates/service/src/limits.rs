//! What one client may take.

use std::time::Duration;

/// Bounds on what clients may use, so that a hostile or broken one cannot hurt others.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; a further one is closed at once.
    pub connections: usize,
    /// Fids of one connection; a request for a further one is answered by `EMFILE`.
    pub fids: usize,
    /// Requests of one connection that wait in its pool; while it is full, nothing more is
    /// received.
    pub waiting: usize,
    /// Bytes of requests of one connection that wait in its pool.
    pub waiting_bytes: usize,
    /// Threads of one connection's pool, started when needed.
    pub workers: usize,
    /// Largest message in bytes that a session may agree to.
    pub msize: u32,
    /// A connection on which nothing arrives for so long, and nothing is awaited, is closed. `None`: never, because a
    /// program may well keep a file open for days without touching it.
    pub idle: Option<Duration>,
    /// A connection whose client takes no answers for so long is closed.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            fids: 65_536,
            waiting: 256,
            waiting_bytes: 32 << 20,
            workers: 16,
            // 4 MiB of data and the room that Plan 9 leaves beside it.
            msize: (4 << 20) + p9::frame::IO_HEADER_LEN,
            idle: None,
            stall: Duration::from_secs(600),
        }
    }
}
