//! Several stores under one root, each by its name: what `sluice serve NAME=DIR…` serves.
//!
//! The root lists the members and is itself read-only. Below a member everything is the member's
//! own business; only identities are told apart, because two members may number their files
//! alike, and `..` leads from a member's top back to the root.

mod member;
mod root;

use std::collections::BTreeMap;
use std::sync::Arc;

use p9::{Errno, Qid, Time};
use rustix::time::ClockId;

use crate::error::{Error, Result};
use crate::name;
use crate::node::{Node, Store};

/// Stores by name.
pub struct Exports {
    list: Arc<List>,
}

struct List {
    members: BTreeMap<Vec<u8>, Arc<Member>>,
    since: Time,
}

struct Member {
    name: Vec<u8>,
    /// From 1 in the order of names: the same after a restart with the same members.
    number: u64,
    store: Arc<dyn Store>,
}

impl Exports {
    /// Puts stores under one root.
    ///
    /// # Errors
    /// [`Error::BadName`] for names that cannot stand in a directory, and for one given twice.
    pub fn new(members: impl IntoIterator<Item = (Vec<u8>, Arc<dyn Store>)>) -> Result<Self> {
        let mut stores = BTreeMap::new();
        for (name, store) in members {
            let bad = |why| Error::BadName { name: name.escape_ascii().to_string(), why };
            name::check("serve", &name, Errno::EINVAL)
                .map_err(|_| bad("not a name that a directory can list"))?;
            if stores.contains_key(&name) {
                return Err(bad("given twice"));
            }
            stores.insert(name, store);
        }
        let members = stores.into_iter().zip(1..).map(|((name, store), number)| {
            (name.clone(), Arc::new(Member { name, number, store }))
        });
        let now = rustix::time::clock_gettime(ClockId::Realtime);
        let since = Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 };
        Ok(Self { list: Arc::new(List { members: members.collect(), since }) })
    }
}

impl Store for Exports {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(root::RootNode::new(&self.list)))
    }
}

impl Member {
    /// A member's identity of a file as the whole has it: marked in the upper byte, which the
    /// stores leave free in practice (beyond 255 members in the byte below too).
    fn path(&self, path: u64) -> u64 {
        path ^ (self.number << 56) ^ ((self.number >> 8) << 48)
    }

    fn qid(&self, qid: Qid) -> Qid {
        Qid { path: self.path(qid.path), ..qid }
    }
}
