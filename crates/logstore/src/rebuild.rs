//! The overlay of a log that was found: what counts and is not drained is done again in memory.
//!
//! The target need not be as it was at the watermark: the drain may have gone on beyond it before it was
//! stopped. So nothing is looked up there while the records are read. What they say of existing files is
//! done to inodes whose base is unknown; these remember which identity they must have and every path that
//! they come by, and are looked for in the target at the end. What has never moved is where its directory is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use hostlog::{FileId, Operation, Replayed, Sequence, What};
use p9::{QidType, mode};
use store::Node;

use crate::changes::retire;
use crate::content::{Content, Edit};
use crate::error::{Error, Result};
use crate::inode::{Base, Body, Inode, Meta, is_made_here, kind_of};
use crate::names::{Entry, Found, Place, Slot};
use crate::node::apply_attributes;
use crate::open::list;
use crate::state::{Bound, IDENTITY_TAG};
use crate::tree::{Tree, guard, regular, writing};

/// An inode of which the target has something.
struct Expected {
    inode: Arc<Inode>,
    /// What it is, if that was said.
    identity: Option<u64>,
    /// Where it may be; for one that nothing was said of, where it was first seen.
    paths: Vec<Vec<u8>>,
    first: Place,
}

pub(crate) struct Rebuild<'t> {
    tree: &'t Tree,
    files: HashMap<FileId, Arc<Inode>>,
    expected: HashMap<usize, Expected>,
    /// In the order in which they were met, so that directories come before what is in them.
    order: Vec<usize>,
    edits: HashMap<FileId, Vec<(Sequence, Edit)>>,
    attributes: Vec<(Arc<Inode>, hostlog::Attributes)>,
    /// Names that files had or got: the target may or may not have them.
    links: Vec<(Arc<Inode>, Place)>,
    /// The last `Bind`, until its note comes.
    binding: Option<(FileId, Vec<u8>)>,
    entries: Vec<Arc<Entry>>,
}

impl Tree {
    /// Does everything that the log has and the target may not have.
    pub(crate) fn rebuild(&self, known: &[Bound]) -> Result<()> {
        let mut rebuild = Rebuild {
            tree: self,
            files: HashMap::new(),
            expected: HashMap::new(),
            order: Vec::new(),
            edits: HashMap::new(),
            attributes: Vec::new(),
            links: Vec::new(),
            binding: None,
            entries: Vec::new(),
        };
        for bound in known {
            rebuild.bind(bound.file, &bound.path, bound.identity, Sequence(0));
        }
        for record in self.log.replay() {
            rebuild.replay(record.map_err(Error::log("replaying"))?);
        }
        rebuild.resolve()
    }
}

fn address(inode: &Arc<Inode>) -> usize {
    Arc::as_ptr(inode).addr()
}

impl Rebuild<'_> {
    /// The directory that a path's last name is in, and that name.
    fn place<'p>(&mut self, path: &'p [u8]) -> (Arc<Inode>, &'p [u8]) {
        let mut dir = Arc::clone(&self.tree.root.inode);
        let mut elements = path.split(|byte| *byte == b'/').peekable();
        loop {
            let name = elements.next().unwrap_or_default();
            if elements.peek().is_none() {
                return (dir, name);
            }
            dir = match self.find(&dir, name) {
                Some(entry) if entry.inode.is_directory() => Arc::clone(&entry.inode),
                _ => self.plant(&dir, name, Inode::unknown(QidType::DIR), None),
            };
        }
    }

    fn find(&self, dir: &Arc<Inode>, name: &[u8]) -> Option<Arc<Entry>> {
        match guard(dir.names("replay").ok()?).get(name) {
            Some(Slot::Present { entry, .. }) => Some(Arc::clone(entry)),
            Some(Slot::Seen(entry)) => entry.upgrade(),
            Some(Slot::Removed { .. }) | None => None,
        }
    }

    /// Puts something of the target where the records say that it is.
    fn plant(
        &mut self,
        dir: &Arc<Inode>,
        name: &[u8],
        inode: Inode,
        identity: Option<u64>,
    ) -> Arc<Inode> {
        let inode = Arc::new(inode);
        self.expect(&inode, dir, name, identity);
        self.show(dir, name, &inode);
        inode
    }

    fn expect(&mut self, inode: &Arc<Inode>, dir: &Arc<Inode>, name: &[u8], identity: Option<u64>) {
        let first = Place { dir: Arc::clone(dir), name: name.to_vec() };
        let paths = self.tree.path_of(&first).into_iter().collect();
        self.order.push(address(inode));
        let expected = Expected { inode: Arc::clone(inode), identity, paths, first };
        self.expected.insert(address(inode), expected);
    }

    fn show(&mut self, dir: &Arc<Inode>, name: &[u8], inode: &Arc<Inode>) {
        let entry = Entry::placed(Arc::clone(inode), dir, name);
        if let Ok(names) = dir.names("replay") {
            guard(names).set(name, Slot::Seen(Arc::downgrade(&entry)));
        }
        self.entries.push(entry);
    }

    /// A file of the target has a number.
    fn bind(&mut self, file: FileId, path: &[u8], identity: u64, since: Sequence) {
        if path.is_empty() {
            let root = Arc::clone(&self.tree.root.inode);
            root.set_file_id(file);
            root.touched_by(since);
            self.tree.know(&root);
            self.files.insert(file, root);
            return;
        }
        let (dir, name) = self.place(path);
        if let Some(known) = self.files.get(&file).cloned() {
            // Another name of it.
            known.add_bound(&dir, name);
            if let Some(expected) = self.expected.get_mut(&address(&known)) {
                expected.paths.push(path.to_vec());
            }
            let here = self.find(&dir, name);
            if here.is_none_or(|entry| !Arc::ptr_eq(&entry.inode, &known)) {
                self.show(&dir, name, &known);
            }
            return;
        }
        let here = self.find(&dir, name).map(|entry| Arc::clone(&entry.inode));
        let here = here.filter(|inode| inode.file_id().is_none() && inode.kind() == kind_of(file));
        let inode = match here {
            Some(inode) => {
                if let Some(expected) = self.expected.get_mut(&address(&inode)) {
                    expected.identity = Some(identity);
                }
                inode
            }
            None if is_made_here(file) => {
                self.plant(&dir, name, Inode::drained(file), Some(identity))
            }
            None => self.plant(&dir, name, Inode::unknown(kind_of(file)), Some(identity)),
        };
        inode.set_file_id(file);
        inode.set_number(identity);
        inode.add_bound(&dir, name);
        inode.touched_by(since);
        self.tree.know(&inode);
        self.files.insert(file, inode);
    }

    fn replay(&mut self, record: Replayed) {
        let Replayed { sequence, file, what, .. } = record;
        let operation = match what {
            What::Data { offset, len, at } => {
                return self.edit(file, sequence, Edit::Data { offset, len, at });
            }
            What::Operation(operation) => operation,
        };
        match operation {
            Operation::Bind { path } => self.binding = Some((file, path)),
            Operation::Note { tag: IDENTITY_TAG, bytes } => {
                let binding = self.binding.take().filter(|(bound, _)| *bound == file);
                if let (Some((file, path)), Some(identity)) = (binding, bytes.first_chunk()) {
                    self.bind(file, &path, u64::from_le_bytes(*identity), sequence);
                }
            }
            Operation::Note { .. } => {}
            Operation::Create { path, mode } => {
                let body = Body::File(Some(Content::of_size(0)).into());
                self.make(file, &path, regular(mode), body, sequence);
            }
            Operation::Mkdir { path, mode } => {
                let mode = mode::DIRECTORY | mode & 0o1777;
                self.make(file, &path, mode, Body::Directory(Default::default()), sequence);
            }
            Operation::Symlink { path, target } => {
                let body = Body::Symlink(Some(target));
                self.make(file, &path, mode::SYMLINK | 0o777, body, sequence);
            }
            Operation::Link { path, .. } => self.link(file, &path, sequence),
            Operation::Unlink { path } | Operation::Rmdir { path } => {
                self.remove(&path, sequence);
            }
            Operation::Rename { from, to, .. } => self.rename(&from, &to, sequence),
            Operation::Truncate { size } => self.edit(file, sequence, Edit::Size(size)),
            Operation::Attributes { set, .. } => {
                if let Some(inode) = self.files.get(&file) {
                    inode.touched_by(sequence);
                    self.attributes.push((Arc::clone(inode), set));
                }
            }
        }
    }

    fn edit(&mut self, file: FileId, sequence: Sequence, edit: Edit) {
        if let Some(inode) = self.files.get(&file) {
            inode.touched_by(sequence);
            self.edits.entry(file).or_default().push((sequence, edit));
        }
    }

    fn make(&mut self, file: FileId, path: &[u8], mode: u32, body: Body, since: Sequence) {
        let (dir, name) = self.place(path);
        let above = *guard(&dir.meta);
        let inherits = above.filter(|above| above.mode & 0o2000 != 0);
        let group = inherits.map_or(self.tree.user.gid, |above| above.gid);
        let is_directory = matches!(body, Body::Directory(_));
        let inherited = if inherits.is_some() && is_directory { 0o2000 } else { 0 };
        let meta = Meta::new(mode | inherited, (self.tree.user.uid, group));
        let inode = Arc::new(Inode::made(file, body, meta, since));
        dir.add_links(i64::from(is_directory));
        self.tree.put(&dir, name, &Entry::unplaced(Arc::clone(&inode)), since);
        self.files.insert(file, inode);
    }

    fn link(&mut self, file: FileId, path: &[u8], since: Sequence) {
        let Some(inode) = self.files.get(&file).cloned() else { return };
        let (dir, name) = self.place(path);
        inode.add_links(1);
        self.count(&inode, &dir, name);
        self.tree.put(&dir, name, &Entry::unplaced(inode), since);
        let (dir, name) = self.place(path);
        if let Some(entry) = self.find(&dir, name) {
            self.moved(&entry);
        }
    }

    fn remove(&mut self, path: &[u8], since: Sequence) {
        let (dir, name) = self.place(path);
        if let Some(entry) = self.find(&dir, name) {
            self.count(&entry.inode, &dir, name);
            dir.add_links(-i64::from(entry.inode.is_directory()));
            retire(&entry, since);
        }
        self.tree.cut(&dir, name, since);
    }

    fn rename(&mut self, from: &[u8], to: &[u8], since: Sequence) {
        let (old_dir, old) = self.place(from);
        let (new_dir, new) = self.place(to);
        // What moves has been bound before; the target may hold this one's place by now.
        let moved = match self.find(&old_dir, old) {
            Some(moved) => moved,
            None => {
                let inode = Inode::unknown(QidType::empty());
                let inode = self.plant(&old_dir, old, inode, None);
                Entry::placed(inode, &old_dir, old)
            }
        };
        let is_directory = i64::from(moved.inode.is_directory());
        if let Some(replaced) = self.find(&new_dir, new) {
            new_dir.add_links(-i64::from(replaced.inode.is_directory()));
            self.count(&replaced.inode, &new_dir, new);
            retire(&replaced, since);
        }
        self.count(&moved.inode, &old_dir, old);
        self.count(&moved.inode, &new_dir, new);
        moved.inode.remove_bound(&old_dir, old);
        self.tree.put(&new_dir, new, &moved, since);
        self.tree.cut(&old_dir, old, since);
        old_dir.add_links(-is_directory);
        new_dir.add_links(is_directory);
        self.moved(&moved);
    }

    /// Notes a name that may be another's by now, for what the target has.
    fn count(&mut self, inode: &Arc<Inode>, dir: &Arc<Inode>, name: &[u8]) {
        if inode.created.is_none() && !inode.is_directory() {
            let place = Place { dir: Arc::clone(dir), name: name.to_vec() };
            self.tree.hold(inode);
            self.links.push((Arc::clone(inode), place));
        }
    }

    /// Notes where everything is that has moved.
    fn moved(&mut self, entry: &Arc<Entry>) {
        let mut rest = vec![Arc::clone(entry)];
        while let Some(entry) = rest.pop() {
            if let Some(expected) = self.expected.get_mut(&address(&entry.inode)) {
                let path = entry.place().and_then(|place| self.tree.path_of(&place));
                expected.paths.extend(path);
            }
            if let Body::Directory(names) = &entry.inode.body {
                rest.extend(guard(names).known());
            }
        }
    }

    // Looking things up in the target.

    fn resolve(mut self) -> Result<()> {
        for address in std::mem::take(&mut self.order) {
            if let Some(expected) = self.expected.get(&address) {
                self.resolve_one(expected)?;
            }
        }
        let mut counted = HashSet::new();
        for (inode, place) in std::mem::take(&mut self.links) {
            if counted.insert((address(&inode), address(&place.dir), place.name.clone())) {
                self.count_link(&inode, &place)?;
            }
        }
        for (file, edits) in std::mem::take(&mut self.edits) {
            if let Some(inode) = self.files.get(&file) {
                self.apply(inode, edits)?;
            }
        }
        for (inode, set) in std::mem::take(&mut self.attributes) {
            if self.load(&inode)? {
                apply_attributes(&inode, &set);
            }
            self.tree.hold(&inode);
        }
        for dir in self.tree.held() {
            self.count_directories(&dir)?;
        }
        let mut returning = self.files;
        returning.retain(|file, inode| is_made_here(*file) && inode.nlink() != Some(0));
        *guard(&self.tree.returning) = Some((Instant::now(), returning));
        Ok(())
    }

    fn walk(&self, path: &[u8]) -> Result<Option<Arc<dyn Node>>> {
        let Some(root) = self.tree.root.inode.base_node("walk").ok().flatten() else {
            return Ok(None);
        };
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        found(root.walk(&names))
    }

    fn resolve_one(&self, expected: &Expected) -> Result<()> {
        let Expected { inode, identity, paths, first } = expected;
        if !matches!(inode.base(), Base::Unknown) {
            return Ok(());
        }
        let mut node = None;
        match identity {
            Some(identity) => {
                for path in paths.iter().rev() {
                    let here = self.walk(path)?;
                    node = here.filter(|node| node.qid().path == *identity);
                    if node.is_some() {
                        break;
                    }
                }
            }
            // It has never moved itself.
            None => {
                if let Base::Node(dir) = first.dir.base() {
                    node = found(dir.walk(&[&first.name]))?;
                    node = node.filter(|node| node.qid().kind == inode.kind());
                }
            }
        }
        match node {
            Some(node) => self.tree.found(inode, node),
            None => inode.set_base(Base::Lost),
        }
        Ok(())
    }

    /// Loads the attributes of what the target has; false where it has not.
    fn load(&self, inode: &Arc<Inode>) -> Result<bool> {
        if matches!(inode.base(), Base::Lost | Base::Unknown) {
            return Ok(false);
        }
        inode.load_meta("stat").map_err(Error::target("reading attributes of"))?;
        Ok(true)
    }

    fn apply(&self, inode: &Arc<Inode>, edits: Vec<(Sequence, Edit)>) -> Result<()> {
        let Body::File(content) = &inode.body else { return Ok(()) };
        let mut size = 0;
        if inode.created.is_none() && self.load(inode)? {
            let base = inode.base_node("stat").map_err(Error::target("reading"))?;
            if let Some(base) = base {
                let found = base.attributes().map_err(Error::target("reading attributes of"))?;
                size = found.size;
            }
        }
        let mut fresh = Content::of_size(size);
        for (sequence, edit) in edits {
            fresh.apply(sequence, edit);
        }
        *writing(content) = Some(fresh);
        inode.touch_content(self.tree.user.uid);
        self.tree.hold(inode);
        Ok(())
    }

    /// Counts a name of a file of the target that this has not seen come or go.
    fn count_link(&self, inode: &Arc<Inode>, place: &Place) -> Result<()> {
        if !self.load(inode)? {
            return Ok(());
        }
        let there = match (place.dir.base(), self.tree.path_of(place)) {
            (Base::Node(dir), _) => found(dir.walk(&[&place.name]))?,
            // The target may have made the directory already.
            (_, Some(path)) => self.walk(&path)?,
            (_, None) => None,
        };
        let there = there.is_some_and(|node| node.qid().path == inode_path(inode));
        let here = self.find(&place.dir, &place.name);
        let here = here.is_some_and(|entry| Arc::ptr_eq(&entry.inode, inode));
        inode.add_links(i64::from(here) - i64::from(there));
        Ok(())
    }

    /// Counts the directories in one of the target, which has others than it will have.
    fn count_directories(&self, dir: &Arc<Inode>) -> Result<()> {
        let (Body::Directory(names), Base::Node(base)) = (&dir.body, dir.base()) else {
            return Ok(());
        };
        if guard(names).is_drained() || !self.load(dir)? {
            return Ok(());
        }
        let refused = Error::target("listing a directory of");
        let found = base.attributes().map_err(&refused)?.nlink;
        // Where file systems do not count, neither do we.
        if found < 2 {
            return Ok(());
        }
        let listed = list(&base).map_err(refused)?;
        let is_directory = |kind: QidType| kind == QidType::DIR;
        let before = listed.iter().filter(|(_, listed)| is_directory(listed.kind)).count();
        let mut names = guard(names);
        names.refresh(listed);
        let after = names.behind(0, usize::MAX).into_iter().filter(|(_, _, found)| match found {
            Found::Entry(entry) => entry.inode.is_directory(),
            Found::Target(listed) => is_directory(listed.kind),
        });
        let after = after.count();
        drop(names);
        let links = found + after as u64 - (before as u64).min(found);
        dir.change_meta(|meta, _| meta.nlink = links);
        Ok(())
    }
}

/// The path of the target's qid, which for what the log has made is not its number.
fn inode_path(inode: &Inode) -> u64 {
    match inode.base() {
        Base::Node(node) => node.qid().path,
        Base::None | Base::Unknown | Base::Lost => 0,
    }
}

/// The end of a walk, if there is something.
fn found(walk: store::Result<store::Walk>) -> Result<Option<Arc<dyn Node>>> {
    match walk {
        Ok(walk) => Ok(walk.end),
        Err(error) => match error.to_errno() {
            p9::Errno::ENOENT | p9::Errno::ENOTDIR => Ok(None),
            _ => Err(Error::target("looking up files of the log in")(error)),
        },
    }
}
