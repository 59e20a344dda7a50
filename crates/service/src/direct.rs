//! A service within the caller's own process: a function call instead of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use p9::frame::{HEADER_LEN, Header};
use p9::{Errno, Reply, Tag};
use store::Store;

use crate::{Limits, Session};

/// One client's session with a store in the same process.
///
/// Calls from several threads run side by side; as each call returns only when its answer is
/// there, a caller orders its requests simply by waiting.
pub struct Direct {
    session: Session,
}

/// Tells sessions apart as owners of locks; sockets count on from the same number.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

pub(crate) fn next_session() -> u64 {
    SESSIONS.fetch_add(1, Ordering::Relaxed)
}

impl Direct {
    /// A session that has not negotiated a version yet.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_limits(store, Limits::default())
    }

    /// As [`Direct::new`], with other limits.
    #[must_use]
    pub fn with_limits(store: Arc<dyn Store>, limits: Limits) -> Self {
        Self { session: Session::new(store, limits, next_session()) }
    }

    /// Does one request. `request` is a whole frame; the whole frame of the answer is appended to
    /// `reply`. A caller that keeps the buffer allocates nothing.
    ///
    /// A frame that contradicts its own length is answered by `EPROTO`.
    pub fn exchange(&self, request: &[u8], reply: &mut Vec<u8>) {
        let msize = self.session.msize();
        let header = request
            .first_chunk::<HEADER_LEN>()
            .and_then(|bytes| Header::parse(bytes, msize).ok())
            .filter(|header| header.size as usize == request.len());
        match header {
            Some(header) => {
                // There is no connection to close: the caller has its answer.
                let _ = self.session.answer(&header, &request[HEADER_LEN..], reply);
            }
            None => Reply::Lerror { errno: Errno::EPROTO }.encode(Tag::NONE, reply),
        }
    }

    /// The session behind the calls.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl client::Exchange for Direct {
    fn exchange(&self, request: &[u8], reply: &mut Vec<u8>) {
        Direct::exchange(self, request, reply);
    }
}
