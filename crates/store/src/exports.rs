//! Several stores under one root, each by its name: what `sluice serve NAME=DIR…` serves.
//!
//! The root lists the members and is itself read-only. Below a member everything is the member's
//! own business; only identities are told apart, because two members may number their files
//! alike, and `..` leads from a member's top back to the root.

mod member;
mod root;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

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
    /// Replaced as a whole: who looks at it is in nobody's way.
    members: RwLock<Arc<Members>>,
    since: Time,
}

type Members = BTreeMap<Vec<u8>, Arc<Member>>;

impl List {
    fn members(&self) -> Arc<Members> {
        Arc::clone(&self.members.read().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Member {
    name: Vec<u8>,
    /// From 1 in the order of names: the same after a restart with the same members. Those that come later count on.
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
            check(&name)?;
            if stores.contains_key(&name) {
                return Err(bad(&name, "given twice"));
            }
            stores.insert(name, store);
        }
        let members = stores.into_iter().zip(1..).map(|((name, store), number)| {
            (name.clone(), Arc::new(Member { name, number, store }))
        });
        let now = rustix::time::clock_gettime(ClockId::Realtime);
        let since = Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 };
        let members = RwLock::new(Arc::new(members.collect()));
        Ok(Self { list: Arc::new(List { members, since }) })
    }

    /// Puts one more store under the root, also while it is served.
    ///
    /// # Errors
    /// [`Error::BadName`] as [`Exports::new`].
    pub fn add(&self, name: &[u8], store: Arc<dyn Store>) -> Result<()> {
        check(name)?;
        let mut members = self.list.members.write().unwrap_or_else(PoisonError::into_inner);
        if members.contains_key(name) {
            return Err(bad(name, "given twice"));
        }
        let number = members.values().map(|member| member.number).max().unwrap_or(0) + 1;
        let member = Arc::new(Member { name: name.to_vec(), number, store });
        Arc::make_mut(&mut members).insert(name.to_vec(), member);
        Ok(())
    }

    /// Takes a store away from the root; files that are open stay. False: there is none of that name.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut members = self.list.members.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut members).remove(name).is_some()
    }

    /// The names under the root, in order.
    #[must_use]
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.list.members().keys().cloned().collect()
    }
}

fn bad(name: &[u8], why: &'static str) -> Error {
    Error::BadName { name: name.escape_ascii().to_string(), why }
}

fn check(name: &[u8]) -> Result<()> {
    name::check("serve", name, Errno::EINVAL)
        .map_err(|_| bad(name, "not a name that a directory can list"))
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
