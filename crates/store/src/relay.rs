//! Another 9P service as a store.
//!
//! A [node](node::RelayNode) is a fid at the other service; every operation is one request there,
//! made by the thread that calls, so that as many are in flight as there are callers. Nothing is
//! kept here but names: a fid has none in 9P, yet after a break of the connection a file can be
//! found again only by its name, and [`Node::parent`](crate::Node::parent) asks for it. What is
//! renamed through this store is therefore [written down](names); what others rename is found to
//! be another file (`ESTALE`) after a break, never taken for the old one.
//!
//! The way of one read: the service's worker calls [`open::RelayFile`], which asks the
//! [`client::Connection`] for all parts at once, and the payload goes from the socket into the
//! caller's buffer.

mod names;
mod node;
mod open;

use std::sync::{Arc, Mutex, PoisonError};

use client::{At, O_PATH, Session};
use p9::OpenFlags;

use crate::error::{Error, Result};
use crate::node::{Node, Store};
use names::Names;
use node::{RelayNode, Tree};

/// The tree at a path of another service.
pub struct RelayStore {
    session: Arc<Session>,
    path: Vec<u8>,
    root: Mutex<Option<Arc<Tree>>>,
}

impl RelayStore {
    /// Relays what is at `path` of the session's service; empty for its root. Nothing is asked of
    /// the service until the store is used.
    #[must_use]
    pub fn new(session: Arc<Session>, path: &[u8]) -> Self {
        Self { session, path: path.to_vec(), root: Mutex::new(None) }
    }

    fn tree(&self) -> Result<Arc<Tree>> {
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = &*root {
            return Ok(Arc::clone(tree));
        }
        let at = At::root(&self.path);
        let opened = self.session.open(at, O_PATH | OpenFlags::DIRECTORY, 0);
        let opened = opened.map_err(refused("attach"))?;
        let tree = Arc::new(Tree {
            identity: opened.attributes.qid,
            place: opened.handle,
            names: Names::default(),
        });
        *root = Some(Arc::clone(&tree));
        Ok(tree)
    }
}

impl Store for RelayStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        let tree = self.tree()?;
        let (_, place) = tree.place.walk(&[]).map_err(refused("walk"))?;
        let Some(place) = place else {
            return Err(Error::System { operation: "walk", errno: p9::Errno::ESTALE });
        };
        Ok(Arc::new(RelayNode::new(&tree, place, Vec::new(), tree.identity)))
    }

    fn blocks(&self) -> bool {
        true
    }
}

/// The other service's refusal, or the connection's failure, as this store's.
fn refused(operation: &'static str) -> impl Fn(client::Error) -> Error {
    move |error| Error::System { operation, errno: error.to_errno() }
}
