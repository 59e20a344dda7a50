//! Changes of names: checked as the target would check them, appended to the log, then done in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hostlog::{FileId, Operation, Sequence};
use p9::{Errno, QidType, mode};

use crate::content::Content;
use crate::error::{Tried, refuse};
use crate::inode::{Body, Inode, Meta};
use crate::names::{Entry, Place};
use crate::tree::{Tree, guard, reading};

/// Something new.
pub(crate) enum New<'a> {
    File { mode: u32 },
    Directory { mode: u32 },
    Symlink { target: &'a [u8] },
}

impl New<'_> {
    fn operation(&self, path: Vec<u8>) -> Operation {
        match *self {
            New::File { mode } => Operation::Create { path, mode },
            New::Directory { mode } => Operation::Mkdir { path, mode },
            New::Symlink { target } => Operation::Symlink { path, target: target.to_vec() },
        }
    }

    fn kind(&self) -> QidType {
        match self {
            New::File { .. } => QidType::empty(),
            New::Directory { .. } => QidType::DIR,
            New::Symlink { .. } => QidType::SYMLINK,
        }
    }

    /// What it is, with the group and the bits that its directory gives it.
    fn inode(&self, owner: (u32, u32), inherited: u32, file: FileId, since: Sequence) -> Inode {
        let (kind, body) = match *self {
            New::File { mode } => {
                let content = Content::of_size(0);
                (crate::tree::regular(mode), Body::File(Some(content).into()))
            }
            New::Directory { mode } => {
                // mkdir(2) takes the nine permission bits and the sticky bit only.
                (mode::DIRECTORY | mode & 0o1777 | inherited, Body::Directory(Default::default()))
            }
            New::Symlink { target } => {
                (mode::SYMLINK | 0o777, Body::Symlink(Some(target.to_vec())))
            }
        };
        Inode::made(file, body, Meta::new(kind, owner), since)
    }
}

impl Tree {
    fn is_there(&self, operation: &'static str, dir: &Arc<Inode>, name: &[u8]) -> Tried<bool> {
        match self.look_up(operation, dir, name) {
            Ok(_) => Ok(true),
            Err(error) if error.to_errno() == Errno::ENOENT => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn place_path(&self, operation: &'static str, dir: &Arc<Inode>, name: &[u8]) -> Tried<Vec<u8>> {
        let place = Place { dir: Arc::clone(dir), name: name.to_vec() };
        match self.path_of(&place) {
            Some(path) => Ok(path),
            None => refuse(operation, Errno::ENOENT),
        }
    }

    /// Makes something new.
    ///
    /// # Errors
    /// As open(2) with `O_CREAT | O_EXCL`.
    pub(crate) fn add(
        &self,
        operation: &'static str,
        stream: u32,
        dir: &Arc<Inode>,
        name: &[u8],
        new: &New<'_>,
    ) -> Tried<Arc<Entry>> {
        let _turn = guard(&self.changes);
        if self.is_there(operation, dir, name)? {
            return refuse(operation, Errno::EEXIST);
        }
        self.check_change(operation, dir)?;
        if new.kind() == QidType::SYMLINK {
            self.check_possible(operation, Errno::EOPNOTSUPP)?;
        }
        let path = self.place_path(operation, dir, name)?;
        self.check_path(operation, &path)?;
        let file = self.new_file(new.kind(), true);
        let since = self.record(operation, stream, Some(file), &new.operation(path))?;
        // A set-group-ID directory gives its group to what is made in it, and to directories the bit
        // too (inode(7)).
        let above = *guard(&dir.meta);
        let above = above.filter(|above| above.mode & 0o2000 != 0);
        let group = above.map_or(self.user.gid, |above| above.gid);
        let inherited = if above.is_some() { 0o2000 } else { 0 };
        let inode = Arc::new(new.inode((self.user.uid, group), inherited, file, since));
        let entry = Entry::unplaced(inode);
        if entry.inode.is_directory() {
            dir.add_links(1);
        }
        self.put(dir, name, &entry, since);
        Ok(entry)
    }

    /// Adds another name for a file.
    ///
    /// # Errors
    /// As link(2).
    pub(crate) fn link(
        &self,
        stream: u32,
        dir: &Arc<Inode>,
        name: &[u8],
        inode: &Arc<Inode>,
    ) -> Tried<()> {
        let _turn = guard(&self.changes);
        if self.is_there("link", dir, name)? {
            return refuse("link", Errno::EEXIST);
        }
        self.check_change("link", dir)?;
        self.check_possible("link", Errno::EOPNOTSUPP)?;
        if inode.is_directory() {
            return refuse("link", Errno::EPERM);
        }
        let file = self.bind_in_turn("link", stream, inode)?;
        let Some(existing) = self.path_of_inode(inode) else {
            return refuse("link", Errno::ENOENT);
        };
        let path = self.place_path("link", dir, name)?;
        let what = Operation::Link { existing, path };
        let since = self.record("link", stream, Some(file), &what)?;
        inode.add_links(1);
        self.put(dir, name, &Entry::unplaced(Arc::clone(inode)), since);
        Ok(())
    }

    /// Removes a name.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub(crate) fn remove(
        &self,
        stream: u32,
        dir: &Arc<Inode>,
        name: &[u8],
        directory: bool,
    ) -> Tried<()> {
        let _turn = guard(&self.changes);
        let entry = self.look_up("unlink", dir, name)?;
        self.check_change("unlink", dir)?;
        match (entry.inode.is_directory(), directory) {
            (true, false) => return refuse("unlink", Errno::EISDIR),
            (false, true) => return refuse("unlink", Errno::ENOTDIR),
            _ => {}
        }
        self.check_retiring("unlink", stream, &entry)?;
        let path = self.place_path("unlink", dir, name)?;
        let what = if directory { Operation::Rmdir { path } } else { Operation::Unlink { path } };
        let since = self.record("unlink", stream, entry.inode.file_id(), &what)?;
        self.retire(&entry, since);
        if directory {
            dir.add_links(-1);
        }
        self.cut(dir, name, since);
        Ok(())
    }

    /// Whether a name may be taken from what has it, and makes that ready to live on without.
    fn check_retiring(&self, operation: &'static str, stream: u32, entry: &Entry) -> Tried<()> {
        let inode = &entry.inode;
        if inode.is_directory() {
            inode.load_meta(operation)?;
            return if self.is_empty(inode)? {
                Ok(())
            } else {
                refuse(operation, Errno::ENOTEMPTY)
            };
        }
        match inode.load_meta(operation) {
            // What somebody else has removed already may go.
            Err(error) if error.to_errno() != Errno::ESTALE => return Err(error.into()),
            _ => {}
        }
        if inode.nlink().is_some_and(|links| links > 1) {
            // Its other names are to tell that they are one fewer, and to be found by the drain.
            self.bind_another(operation, stream, entry)?;
        } else if inode.openings.load(Ordering::Acquire) > 0 {
            // The target will not have it any more: it must be open there. It may have been opened here to
            // be written only.
            let _ = inode.reader();
        }
        Ok(())
    }

    /// Moves a name, replacing what has the new one.
    ///
    /// # Errors
    /// As rename(2).
    pub(crate) fn rename(
        &self,
        stream: u32,
        (old_dir, old): (&Arc<Inode>, &[u8]),
        (new_dir, new): (&Arc<Inode>, &[u8]),
    ) -> Tried<()> {
        let _turn = guard(&self.changes);
        old_dir.names("rename")?;
        new_dir.names("rename")?;
        let moved = self.look_up("rename", old_dir, old)?;
        self.check_change("rename", old_dir)?;
        self.check_change("rename", new_dir)?;
        if self.is_within(new_dir, &moved.inode) {
            return refuse("rename", Errno::EINVAL);
        }
        let replaced = match self.look_up("rename", new_dir, new) {
            Ok(entry) => Some(entry),
            Err(error) if error.to_errno() == Errno::ENOENT => None,
            Err(error) => return Err(error.into()),
        };
        let is_directory = moved.inode.is_directory();
        if is_directory {
            // As between file systems: mv(1) copies then.
            self.check_possible("rename", Errno::EXDEV)?;
        }
        if let Some(replaced) = &replaced {
            // Two names of one file: nothing happens, and both stay (rename(2)).
            if Arc::ptr_eq(&replaced.inode, &moved.inode) {
                return Ok(());
            }
            if self.is_within(old_dir, &replaced.inode) {
                return refuse("rename", Errno::ENOTEMPTY);
            }
            match (is_directory, replaced.inode.is_directory()) {
                (true, false) => return refuse("rename", Errno::ENOTDIR),
                (false, true) => return refuse("rename", Errno::EISDIR),
                _ => self.check_retiring("rename", stream, replaced)?,
            }
        }
        let file = self.bind_in_turn("rename", stream, &moved.inode)?;
        if !is_directory {
            let place = Place { dir: Arc::clone(old_dir), name: old.to_vec() };
            self.bind_name("rename", stream, file, &moved.inode, &place)?;
        }
        let (from, to) =
            (self.place_path("rename", old_dir, old)?, self.place_path("rename", new_dir, new)?);
        self.check_path("rename", &to)?;
        let what = Operation::Rename { from, to, flags: 0 };
        let since = self.record("rename", stream, Some(file), &what)?;
        if let Some(replaced) = &replaced {
            self.retire(replaced, since);
            if is_directory {
                new_dir.add_links(-1);
            }
        }
        // First in, then out: a look-up meanwhile may find both names, but never none.
        moved.inode.remove_bound(old_dir, old);
        self.put(new_dir, new, &moved, since);
        self.cut(old_dir, old, since);
        if is_directory {
            old_dir.add_links(-1);
            new_dir.add_links(1);
        }
        moved.inode.add_links(0);
        Ok(())
    }

    fn retire(&self, entry: &Entry, since: Sequence) {
        retire(entry, since);
        self.hold(&entry.inode);
        let file = entry.inode.file_id().filter(|_| is_unnamed(&entry.inode));
        let mut returning = guard(&self.returning);
        let gone = returning.as_mut().zip(file).and_then(|((_, all), file)| all.remove(&file));
        drop(returning);
        drop(gone);
    }

    /// Whether a directory has no names.
    fn is_empty(&self, dir: &Arc<Inode>) -> Tried<bool> {
        self.refresh(dir)?;
        Ok(guard(dir.names("rmdir")?).behind(0, 1).is_empty())
    }
}

/// Takes a name away from what had it.
pub(crate) fn retire(entry: &Entry, since: Sequence) {
    let inode = &entry.inode;
    if let Body::Directory(names) = &inode.body {
        guard(names).is_removed = true;
        inode.add_links(-2);
    } else {
        inode.add_links(-1);
    }
    inode.touched_by(since);
    if let Some(place) = entry.place() {
        inode.remove_bound(&place.dir, &place.name);
    }
    entry.move_to(None);
}

/// Whether an inode has bytes that only the log has and that nobody can name any more.
pub(crate) fn is_unnamed(inode: &Inode) -> bool {
    inode.nlink() == Some(0)
}

/// The size of what is logged of a file, for what is told of the store.
pub(crate) fn logged_bytes(inode: &Inode) -> u64 {
    match &inode.body {
        Body::File(content) => reading(content).as_ref().map_or(0, Content::logged_bytes),
        Body::Directory(_) | Body::Symlink(_) => 0,
    }
}
