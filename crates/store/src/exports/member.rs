//! Files of a member, as the whole shows them.

use std::any::Any;
use std::sync::Arc;

use p9::{Attributes, DirEntry, OpenFlags, Qid};

use super::root::{self, RootNode};
use super::{List, Member};
use crate::error::{Error, Result};
use crate::node::{Node, OpenNode, Walk};
use crate::wrapper::hand_on;

pub(super) struct MemberNode {
    list: Arc<List>,
    member: Arc<Member>,
    inner: Arc<dyn Node>,
}

impl MemberNode {
    /// The member's own root.
    pub(super) fn top(list: &Arc<List>, member: &Arc<Member>) -> Result<Self> {
        let (list, member) = (Arc::clone(list), Arc::clone(member));
        let inner = member.store.root()?;
        Ok(Self { list, member, inner })
    }

    fn at(&self, inner: Arc<dyn Node>) -> Self {
        Self { list: Arc::clone(&self.list), member: Arc::clone(&self.member), inner }
    }

    fn is_top(&self) -> Result<bool> {
        Ok(self.member.store.root()?.qid().path == self.inner.qid().path)
    }

    fn opened(&self, inner: Arc<dyn OpenNode>) -> Arc<dyn OpenNode> {
        let is_top = self.inner.qid().kind.contains(p9::QidType::DIR)
            && self.is_top().is_ok_and(|is_top| is_top);
        Arc::new(MemberOpen { member: Arc::clone(&self.member), inner, is_top })
    }

    /// The other node of an operation as the member knows it, when it is of the same member.
    fn kin<'n>(&self, operation: &'static str, other: &'n dyn Node) -> Result<&'n dyn Node> {
        (other as &dyn Any)
            .downcast_ref::<Self>()
            .filter(|other| Arc::ptr_eq(&self.member, &other.member))
            .map(|other| other.inner.as_ref())
            .ok_or(Error::AcrossStores { operation })
    }
}

impl Node for MemberNode {
    hand_on!(blocks set_attributes read_link remove statfs xattr xattr_list set_xattr remove_xattr);

    fn qid(&self) -> Qid {
        self.member.qid(self.inner.qid())
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        // The way up is the only one that can leave the member: everything before goes at once.
        let up = names.iter().position(|name| *name == b"..").unwrap_or(names.len());
        let (down, rest) = names.split_at(up);
        let (mut qids, here) = if down.is_empty() && !rest.is_empty() {
            (Vec::new(), self.at(Arc::clone(&self.inner)))
        } else {
            let Walk { qids, end } = self.inner.walk(down)?;
            let qids: Vec<Qid> = qids.into_iter().map(|qid| self.member.qid(qid)).collect();
            let Some(end) = end else { return Ok(Walk { qids, end: None }) };
            (qids, self.at(end))
        };
        let Some((_, after)) = rest.split_first() else {
            return Ok(Walk { qids, end: Some(Arc::new(here)) });
        };
        let reached = (|| {
            let above: Arc<dyn Node> = if here.is_top()? {
                Arc::new(RootNode::new(&self.list))
            } else {
                let walk = here.inner.walk(&[b".."])?;
                let lost = Error::System { operation: "walk", errno: p9::Errno::ENOENT };
                Arc::new(self.at(walk.end.ok_or(lost)?))
            };
            Ok(above)
        })();
        let above = match reached {
            Ok(above) => above,
            Err(error) if qids.is_empty() => return Err(error),
            Err(_) => return Ok(Walk { qids, end: None }),
        };
        qids.push(above.qid());
        if after.is_empty() {
            return Ok(Walk { qids, end: Some(above) });
        }
        let walk = above.walk(after).unwrap_or(Walk { qids: Vec::new(), end: None });
        qids.extend(walk.qids);
        Ok(Walk { qids, end: walk.end })
    }

    fn attributes(&self) -> Result<Attributes> {
        let found = self.inner.attributes()?;
        Ok(Attributes { qid: self.member.qid(found.qid), ..found })
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        Ok(self.opened(self.inner.open(flags)?))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let (node, open) = self.inner.create(name, flags, mode)?;
        let member = Arc::clone(&self.member);
        let open = MemberOpen { member, inner: open, is_top: false };
        Ok((Arc::new(self.at(node)), Arc::new(open)))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        Ok(self.member.qid(self.inner.make_directory(name, mode)?))
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        Ok(self.member.qid(self.inner.make_symlink(name, target)?))
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.inner.link(self.kin("link", existing)?, name)
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        self.inner.rename(old, self.kin("rename", new_dir)?, new)
    }

    /// A member's top has a name too, but the list cannot be changed by it.
    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        if self.is_top()? {
            return Ok((Arc::new(RootNode::new(&self.list)), self.member.name.clone()));
        }
        let (dir, name) = self.inner.parent()?;
        Ok((Arc::new(self.at(dir)), name))
    }
}

struct MemberOpen {
    member: Arc<Member>,
    inner: Arc<dyn OpenNode>,
    is_top: bool,
}

impl OpenNode for MemberOpen {
    hand_on!(read_at write_at set_attributes sync close lost lock lock_in_the_way);
    hand_on!(at_hand as_fd takes_from_kernel write_by_kernel piece_bytes settled_size);

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.inner.read_directory(cookie, &mut |entry| {
            let qid = match entry.name {
                b".." if self.is_top => root::qid(),
                _ => self.member.qid(entry.qid),
            };
            take(DirEntry { qid, ..entry })
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        let found = self.inner.attributes()?;
        Ok(Attributes { qid: self.member.qid(found.qid), ..found })
    }
}
