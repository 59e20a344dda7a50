//! Methods that nodes have in common which stand before other nodes, or which nobody may change.
//!
//! A trait cannot give them: what one wrapper hands on another answers itself. So each names the methods that it does
//! not write.

/// Methods of [`Node`](crate::Node) and [`OpenNode`](crate::OpenNode) that ask the node in the field `inner`.
macro_rules! hand_on {
    ($($method:ident)*) => { $($crate::wrapper::hand_on!(=> $method);)* };
    (=> qid) => {
        fn qid(&self) -> p9::Qid {
            self.inner.qid()
        }
    };
    (=> blocks) => {
        fn blocks(&self) -> bool {
            self.inner.blocks()
        }
    };
    (=> attributes) => {
        fn attributes(&self) -> $crate::Result<p9::Attributes> {
            self.inner.attributes()
        }
    };
    (=> set_attributes) => {
        fn set_attributes(&self, set: &p9::SetAttributes) -> $crate::Result<()> {
            self.inner.set_attributes(set)
        }
    };
    (=> read_link) => {
        fn read_link(&self) -> $crate::Result<Vec<u8>> {
            self.inner.read_link()
        }
    };
    (=> remove) => {
        fn remove(&self, name: &[u8], directory: bool) -> $crate::Result<()> {
            self.inner.remove(name, directory)
        }
    };
    (=> statfs) => {
        fn statfs(&self) -> $crate::Result<p9::StatFs> {
            self.inner.statfs()
        }
    };
    (=> xattr) => {
        fn xattr(&self, name: &[u8]) -> $crate::Result<Vec<u8>> {
            self.inner.xattr(name)
        }
    };
    (=> xattr_list) => {
        fn xattr_list(&self) -> $crate::Result<Vec<u8>> {
            self.inner.xattr_list()
        }
    };
    (=> set_xattr) => {
        fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> $crate::Result<()> {
            self.inner.set_xattr(name, value, flags)
        }
    };
    (=> remove_xattr) => {
        fn remove_xattr(&self, name: &[u8]) -> $crate::Result<()> {
            self.inner.remove_xattr(name)
        }
    };
    (=> read_at) => {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> $crate::Result<usize> {
            self.inner.read_at(buffer, offset)
        }
    };
    (=> at_hand) => {
        fn at_hand(&self, offset: u64, len: usize) -> Option<Vec<$crate::Piece>> {
            self.inner.at_hand(offset, len)
        }
    };
    (=> write_at) => {
        fn write_at(&self, data: &[u8], offset: u64) -> $crate::Result<usize> {
            self.inner.write_at(data, offset)
        }
    };
    (=> read_directory) => {
        fn read_directory(
            &self,
            cookie: u64,
            take: &mut dyn FnMut(p9::DirEntry<'_>) -> bool,
        ) -> $crate::Result<()> {
            self.inner.read_directory(cookie, take)
        }
    };
    (=> sync) => {
        fn sync(&self, data_only: bool) -> $crate::Result<()> {
            self.inner.sync(data_only)
        }
    };
    (=> close) => {
        fn close(&self) -> $crate::Result<()> {
            self.inner.close()
        }
    };
    (=> lost) => {
        fn lost(&self) {
            self.inner.lost();
        }
    };
    (=> lock) => {
        fn lock(
            &self,
            owner: &$crate::LockOwner,
            range: $crate::LockRange,
        ) -> $crate::Result<bool> {
            self.inner.lock(owner, range)
        }
    };
    (=> lock_in_the_way) => {
        fn lock_in_the_way(
            &self,
            owner: &$crate::LockOwner,
            range: $crate::LockRange,
        ) -> $crate::Result<Option<($crate::LockOwner, $crate::LockRange)>> {
            self.inner.lock_in_the_way(owner, range)
        }
    };
    (=> as_fd) => {
        fn as_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            self.inner.as_fd()
        }
    };
    (=> takes_from_kernel) => {
        fn takes_from_kernel(&self) -> bool {
            self.inner.takes_from_kernel()
        }
    };
    (=> write_by_kernel) => {
        fn write_by_kernel(
            &self,
            offset: u64,
            len: usize,
            give: &mut dyn FnMut(std::os::fd::BorrowedFd<'_>) -> usize,
        ) -> usize {
            self.inner.write_by_kernel(offset, len, give)
        }
    };
    (=> piece_bytes) => {
        fn piece_bytes(&self) -> Option<usize> {
            self.inner.piece_bytes()
        }
    };
    (=> settled_size) => {
        fn settled_size(&self) -> Option<u64> {
            self.inner.settled_size()
        }
    };
}

/// Methods of [`Node`](crate::Node) that would change something, refused with `EROFS`. The node says by
/// `refuse_new(operation, name)` why a name cannot be made: it may exist already.
macro_rules! refuse_changes {
    () => {
        fn set_attributes(&self, _set: &p9::SetAttributes) -> $crate::Result<()> {
            Err($crate::Error::ReadOnly { operation: "setattr" })
        }

        fn make_directory(&self, name: &[u8], _mode: u32) -> $crate::Result<p9::Qid> {
            self.refuse_new("mkdir", name)
        }

        fn make_symlink(&self, name: &[u8], _target: &[u8]) -> $crate::Result<p9::Qid> {
            self.refuse_new("symlink", name)
        }

        fn link(&self, _existing: &dyn $crate::Node, name: &[u8]) -> $crate::Result<()> {
            self.refuse_new("link", name)
        }

        fn rename(
            &self,
            _old: &[u8],
            _new_dir: &dyn $crate::Node,
            _new: &[u8],
        ) -> $crate::Result<()> {
            Err($crate::Error::ReadOnly { operation: "rename" })
        }

        fn set_xattr(&self, _name: &[u8], _value: &[u8], _flags: u32) -> $crate::Result<()> {
            Err($crate::Error::ReadOnly { operation: "setxattr" })
        }

        fn remove_xattr(&self, _name: &[u8]) -> $crate::Result<()> {
            Err($crate::Error::ReadOnly { operation: "removexattr" })
        }
    };
}

pub(crate) use {hand_on, refuse_changes};
