//! One client's conversation: version, fids, and what each request does.
//!
//! Nothing here waits for a client or knows a socket. [`Session::answer`] may be called from
//! several threads at a time; whoever calls decides which requests may run side by side.

mod fids;
mod legacy;
mod linux;
mod locks;
mod names;
mod shared;
mod xattr;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use p9::frame::{Header, MSIZE_MIN};
use p9::{Dialect, Errno, Reply, Request, Tag, WireError};
use store::Store;

use crate::Limits;
use fids::Fids;
pub(crate) use fids::{Entry, Opened};

/// What is to be done with the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Send what was answered, then close: the client does not speak the protocol.
    Close,
}

/// Why a request is refused. Becomes `Rlerror` or `Rerror`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) errno: Errno,
    /// Words for base 9P2000 where those of the number would mislead.
    text: Option<&'static str>,
}

impl Refusal {
    fn worded(errno: Errno, text: &'static str) -> Self {
        Self { errno, text: Some(text) }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self { errno, text: None }
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Self {
        error.to_errno().into()
    }
}

pub(crate) type Outcome<T = ()> = std::result::Result<T, Refusal>;

/// Where an answer goes: the tag it must carry and the bytes that leave.
pub(crate) struct Out<'a> {
    tag: Tag,
    pub(crate) bytes: &'a mut Vec<u8>,
}

impl<'a> Out<'a> {
    pub(crate) fn new(tag: Tag, bytes: &'a mut Vec<u8>) -> Self {
        Self { tag, bytes }
    }

    fn reply(&mut self, reply: &Reply<'_>) {
        reply.encode(self.tag, self.bytes);
    }
}

/// What was negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) dialect: Dialect,
    pub(crate) msize: u32,
}

/// One client's session over a store.
pub struct Session {
    store: Arc<dyn Store>,
    limits: Limits,
    /// Makes lock owners of different connections differ whatever they call themselves.
    id: u64,
    /// [`Terms`] in one word: the dialect above 32 bits of msize; 0 before `Tversion`.
    terms: AtomicU64,
    fids: Fids,
}

impl Session {
    /// A session that has not negotiated a version yet. `id` tells it from all others that lock
    /// files of the same store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, limits: Limits, id: u64) -> Self {
        let fids = Fids::new(limits.fids);
        Self { store, limits, id, terms: AtomicU64::new(0), fids }
    }

    /// The largest message in bytes that the client may send now.
    #[must_use]
    pub fn msize(&self) -> u32 {
        self.terms().map_or(MSIZE_MIN, |terms| terms.msize)
    }

    /// Fids in use.
    #[must_use]
    pub fn fid_count(&self) -> usize {
        self.fids.len()
    }

    /// Lets go of everything, when the client is gone: what he has not closed is not closed.
    pub(crate) fn forget(&self) {
        self.fids.clear();
    }

    pub(crate) fn terms(&self) -> Option<Terms> {
        let word = self.terms.load(Ordering::Acquire);
        let msize = word as u32;
        match word >> 32 {
            1 => Some(Terms { dialect: Dialect::Linux, msize }),
            2 => Some(Terms { dialect: Dialect::Plan9, msize }),
            3 => Some(Terms { dialect: Dialect::Sluice, msize }),
            _ => None,
        }
    }

    fn set_terms(&self, terms: Option<Terms>) {
        let word = terms.map_or(0, |terms| {
            let dialect = match terms.dialect {
                Dialect::Linux => 1,
                Dialect::Plan9 => 2,
                Dialect::Sluice => 3,
            };
            dialect << 32 | u64::from(terms.msize)
        });
        self.terms.store(word, Ordering::Release);
    }

    /// Does one request and appends its answer, a whole frame, to `out`.
    ///
    /// A request that cannot be understood is answered by an error and asks for the connection
    /// to be closed; one of an unknown type is only refused. A panic within the store is answered
    /// by `EIO`.
    pub fn answer(&self, header: &Header, body: &[u8], out: &mut Vec<u8>) -> Verdict {
        match Request::decode(header.kind, body) {
            Ok(request) => self.answer_request(header.tag, &request, out),
            Err(WireError::UnknownType { .. }) => {
                self.refuse(header.tag, Errno::EOPNOTSUPP.into(), out);
                Verdict::Continue
            }
            Err(_) => {
                self.refuse(header.tag, Errno::EPROTO.into(), out);
                Verdict::Close
            }
        }
    }

    /// As [`Session::answer`], for a request that is decoded already.
    pub(crate) fn answer_request(
        &self,
        tag: Tag,
        request: &Request<'_>,
        out: &mut Vec<u8>,
    ) -> Verdict {
        if self.terms().is_none() && !matches!(request, Request::Version { .. }) {
            self.refuse(tag, Errno::EPROTO.into(), out);
            return Verdict::Close;
        }
        let start = out.len();
        let outcome = guarded(|| self.act(request, &mut Out::new(tag, out)));
        if let Err(refusal) = outcome {
            out.truncate(start);
            self.refuse(tag, refusal, out);
        }
        Verdict::Continue
    }

    /// Appends an error in the words of the session's dialect.
    pub(crate) fn refuse(&self, tag: Tag, refusal: Refusal, out: &mut Vec<u8>) {
        let reply = match self.terms().map(|terms| terms.dialect) {
            Some(Dialect::Plan9) => {
                let text = refusal.text.unwrap_or(refusal.errno.message());
                Reply::Error { text: text.as_bytes() }
            }
            Some(Dialect::Linux | Dialect::Sluice) | None => Reply::Lerror { errno: refusal.errno },
        };
        reply.encode(tag, out);
    }

    /// Negotiates; every fid of the former session is gone (version(5)), and none of them was closed.
    fn version(&self, msize: u32, version: &[u8], out: &mut Out<'_>) -> Outcome {
        self.fids.clear();
        let agreed = msize.min(self.limits.msize);
        let dialect = Dialect::negotiate(version).filter(|_| agreed >= MSIZE_MIN);
        self.set_terms(dialect.map(|dialect| Terms { dialect, msize: agreed }));
        let version = dialect.map_or("unknown", Dialect::as_str).as_bytes();
        out.reply(&Reply::Version { msize: agreed, version });
        Ok(())
    }

    fn act(&self, request: &Request<'_>, out: &mut Out<'_>) -> Outcome {
        let dialect = self.terms().map(|terms| terms.dialect);
        match (request, dialect) {
            (Request::Version { msize, version }, _) => self.version(*msize, version, out),
            (_, None) => Err(Errno::EPROTO.into()),
            (
                Request::Auth { .. }
                | Request::Attach { .. }
                | Request::Flush { .. }
                | Request::Walk { .. }
                | Request::Read { .. }
                | Request::Write { .. }
                | Request::Clunk { .. }
                | Request::Remove { .. },
                _,
            ) => self.act_shared(request, out),
            (_, Some(Dialect::Linux | Dialect::Sluice)) => self.act_linux(request, out),
            (_, Some(Dialect::Plan9)) => self.act_legacy(request, out),
        }
    }
}

/// Runs a handler and turns a panic into `EIO`: a fault in one store or one request must not take
/// the service down. All state shared between requests stays consistent across an unwind: tables
/// are changed in single steps, and a file left half written is what a failed write means.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic: Box<dyn Any + Send>| {
        drop(panic);
        Err(Errno::EIO.into())
    })
}
