//! Random operations: what they are, and what they must do.
//!
//! Whoever tests a store generates sequences of [`Op`]s, lets a [`Player`] do them there and
//! compares each [`Outcome`] with that of the [`Model`], or of a player in another store.

use std::collections::BTreeMap;
use std::sync::Arc;

use p9::{Errno, OpenFlags, QidType, SetAttributes, SetattrMask};

use crate::error::Result;
use crate::node::{Node, OpenNode};

/// Names by which files are called: few, so that operations meet.
const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];

/// How many openings are kept at a time.
pub const SLOTS: u8 = 3;

/// A path from the root; each element is taken modulo the number of names.
pub type Path = Vec<u8>;

/// One operation. Paths must have at least one element; slots are taken modulo [`SLOTS`].
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Op {
    /// Creates, or opens if it may; the opening is kept in the slot.
    Create {
        path: Path,
        exclusive: bool,
        truncate: bool,
        slot: u8,
    },
    /// Opens for reading and writing.
    Open {
        path: Path,
        append: bool,
        slot: u8,
    },
    /// Drops an opening.
    Close {
        slot: u8,
    },
    Write {
        slot: u8,
        offset: u32,
        len: u16,
        byte: u8,
    },
    Read {
        slot: u8,
        offset: u32,
        len: u16,
    },
    SetSize {
        path: Path,
        size: u32,
    },
    SetOpenSize {
        slot: u8,
        size: u32,
    },
    MakeDirectory {
        path: Path,
    },
    MakeSymlink {
        path: Path,
    },
    Remove {
        path: Path,
        directory: bool,
    },
    Rename {
        from: Path,
        to: Path,
    },
    Link {
        from: Path,
        to: Path,
    },
    List {
        path: Path,
    },
    Stat {
        path: Path,
    },
    StatOpen {
        slot: u8,
    },
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Outcome {
    Done,
    /// The slot is empty.
    Nothing,
    Refused(Errno),
    Bytes(Vec<u8>),
    Names(BTreeMap<Vec<u8>, QidType>),
    /// The size is told of regular files and symbolic links only.
    Stat {
        kind: QidType,
        nlink: u64,
        size: u64,
    },
}

fn name(element: u8) -> &'static [u8] {
    NAMES[usize::from(element) % NAMES.len()]
}

/// Does operations in a store.
pub struct Player {
    root: Arc<dyn Node>,
    slots: [Option<Arc<dyn OpenNode>>; SLOTS as usize],
}

impl Player {
    /// Starts at a root.
    #[must_use]
    pub fn new(root: Arc<dyn Node>) -> Self {
        Self { root, slots: [const { None }; SLOTS as usize] }
    }

    /// Does one operation.
    pub fn play(&mut self, op: &Op) -> Outcome {
        self.try_play(op).unwrap_or_else(|error| Outcome::Refused(error.to_errno()))
    }

    /// One element at a time, so that each way to fail is told.
    fn walk(&self, path: &[u8]) -> Result<Arc<dyn Node>> {
        let mut here = Arc::clone(&self.root);
        for element in path {
            here = here.walk(&[name(*element)])?.end.expect("one element walked has an end");
        }
        Ok(here)
    }

    fn dir<'p>(&self, path: &'p [u8]) -> Result<(Arc<dyn Node>, &'p u8)> {
        let (last, above) = path.split_last().expect("a path has elements");
        Ok((self.walk(above)?, last))
    }

    fn slot(&mut self, slot: u8) -> &mut Option<Arc<dyn OpenNode>> {
        &mut self.slots[usize::from(slot % SLOTS)]
    }

    fn try_play(&mut self, op: &Op) -> Result<Outcome> {
        match op {
            Op::Create { path, exclusive, truncate, slot } => {
                let (dir, last) = self.dir(path)?;
                let mut flags = OpenFlags::READ_WRITE;
                flags.set(OpenFlags::EXCLUSIVE, *exclusive);
                flags.set(OpenFlags::TRUNCATE, *truncate);
                *self.slot(*slot) = Some(dir.create(name(*last), flags, 0o644)?.1);
            }
            Op::Open { path, append, slot } => {
                let mut flags = OpenFlags::READ_WRITE;
                flags.set(OpenFlags::APPEND, *append);
                *self.slot(*slot) = Some(self.walk(path)?.open(flags)?);
            }
            Op::Close { slot } => *self.slot(*slot) = None,
            Op::Write { slot, offset, len, byte } => {
                let Some(open) = self.slot(*slot) else { return Ok(Outcome::Nothing) };
                let data = vec![*byte; (*len).into()];
                assert_eq!(open.write_at(&data, (*offset).into())?, data.len());
            }
            Op::Read { slot, offset, len } => {
                let Some(open) = self.slot(*slot) else { return Ok(Outcome::Nothing) };
                let mut buffer = vec![0xee; (*len).into()];
                let got = open.read_at(&mut buffer, (*offset).into())?;
                buffer.truncate(got);
                return Ok(Outcome::Bytes(buffer));
            }
            Op::SetSize { path, size } => self.walk(path)?.set_attributes(&set_size(*size))?,
            Op::SetOpenSize { slot, size } => {
                let Some(open) = self.slot(*slot) else { return Ok(Outcome::Nothing) };
                open.set_attributes(&set_size(*size))?;
            }
            Op::MakeDirectory { path } => {
                let (dir, last) = self.dir(path)?;
                dir.make_directory(name(*last), 0o755)?;
            }
            Op::MakeSymlink { path } => {
                let (dir, last) = self.dir(path)?;
                dir.make_symlink(name(*last), b"target")?;
            }
            Op::Remove { path, directory } => {
                let (dir, last) = self.dir(path)?;
                dir.remove(name(*last), *directory)?;
            }
            Op::Rename { from, to } => {
                let (old_dir, old) = self.dir(from)?;
                let (new_dir, new) = self.dir(to)?;
                old_dir.rename(name(*old), new_dir.as_ref(), name(*new))?;
            }
            Op::Link { from, to } => {
                let existing = self.walk(from)?;
                let (dir, new) = self.dir(to)?;
                dir.link(existing.as_ref(), name(*new))?;
            }
            Op::List { path } => {
                let open = self.walk(path)?.open(OpenFlags::DIRECTORY)?;
                let mut names = BTreeMap::new();
                open.read_directory(0, &mut |entry| {
                    names.insert(entry.name.to_vec(), entry.qid.kind);
                    true
                })?;
                return Ok(Outcome::Names(names));
            }
            Op::Stat { path } => return Ok(told(&self.walk(path)?.attributes()?)),
            Op::StatOpen { slot } => {
                let Some(open) = self.slot(*slot) else { return Ok(Outcome::Nothing) };
                return Ok(told(&open.attributes()?));
            }
        }
        Ok(Outcome::Done)
    }
}

fn set_size(size: u32) -> SetAttributes {
    let valid = SetattrMask::SIZE;
    SetAttributes { valid, size: size.into(), ..SetAttributes::default() }
}

fn told(found: &p9::Attributes) -> Outcome {
    let size = if found.is_directory() { 0 } else { found.size };
    Outcome::Stat { kind: found.qid.kind, nlink: found.nlink, size }
}

#[derive(Debug)]
enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<&'static [u8], usize>),
    Symlink,
}

/// A file system as simple as can be: files by number, and never freed.
#[derive(Debug)]
pub struct Model {
    files: Vec<Body>,
    links: Vec<u64>,
    /// The file of each opening, and whether it appends.
    slots: [Option<(usize, bool)>; SLOTS as usize],
}

type Told<T> = std::result::Result<T, Errno>;

impl Default for Model {
    fn default() -> Self {
        let root = Body::Directory(BTreeMap::new());
        Self { files: vec![root], links: vec![2], slots: [None; SLOTS as usize] }
    }
}

impl Model {
    /// Does one operation.
    pub fn play(&mut self, op: &Op) -> Outcome {
        self.try_play(op).unwrap_or_else(Outcome::Refused)
    }

    fn names(&mut self, dir: usize) -> Told<&mut BTreeMap<&'static [u8], usize>> {
        match &mut self.files[dir] {
            Body::Directory(names) => Ok(names),
            Body::File(_) | Body::Symlink => Err(Errno::ENOTDIR),
        }
    }

    fn content(&mut self, file: usize) -> Told<&mut Vec<u8>> {
        match &mut self.files[file] {
            Body::File(content) => Ok(content),
            Body::Directory(_) => Err(Errno::EISDIR),
            Body::Symlink => Err(Errno::EINVAL),
        }
    }

    fn is_directory(&self, file: usize) -> bool {
        matches!(self.files[file], Body::Directory(_))
    }

    fn walk(&mut self, path: &[u8]) -> Told<usize> {
        path.iter().try_fold(0, |dir, element| {
            self.names(dir)?.get(name(*element)).copied().ok_or(Errno::ENOENT)
        })
    }

    fn dir(&mut self, path: &[u8]) -> Told<(usize, &'static [u8])> {
        let (last, above) = path.split_last().expect("a path has elements");
        let dir = self.walk(above)?;
        Ok((dir, name(*last)))
    }

    fn add(&mut self, path: &[u8], body: Body) -> Told<usize> {
        let (dir, last) = self.dir(path)?;
        let new = self.files.len();
        if self.names(dir)?.contains_key(last) {
            return Err(Errno::EEXIST);
        }
        self.names(dir)?.insert(last, new);
        let is_directory = matches!(body, Body::Directory(_));
        self.links[dir] += u64::from(is_directory);
        self.links.push(if is_directory { 2 } else { 1 });
        self.files.push(body);
        Ok(new)
    }

    fn check_open(&self, file: usize) -> Told<()> {
        match self.files[file] {
            Body::File(_) => Ok(()),
            Body::Directory(_) => Err(Errno::EISDIR),
            Body::Symlink => Err(Errno::ELOOP),
        }
    }

    /// Takes a link away from what is about to lose a name in `dir`.
    fn retire(&mut self, dir: usize, file: usize) -> Told<()> {
        if let Body::Directory(names) = &self.files[file] {
            if !names.is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            self.links[file] = 0;
            self.links[dir] -= 1;
        } else {
            self.links[file] -= 1;
        }
        Ok(())
    }

    fn is_within(&self, file: usize, above: usize) -> bool {
        file == above
            || matches!(&self.files[above], Body::Directory(names)
                if names.values().any(|child| self.is_within(file, *child)))
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Told<()> {
        let (old_dir, old) = self.dir(from)?;
        let (new_dir, new) = self.dir(to)?;
        let old_entry = self.names(old_dir)?.get(old).copied();
        let replaced = self.names(new_dir)?.get(new).copied();
        let moved = old_entry.ok_or(Errno::ENOENT)?;
        if self.is_within(new_dir, moved) {
            return Err(Errno::EINVAL);
        }
        if let Some(replaced) = replaced {
            if replaced == moved {
                return Ok(());
            }
            if self.is_within(old_dir, replaced) {
                return Err(Errno::ENOTEMPTY);
            }
            match (self.is_directory(moved), self.is_directory(replaced)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                _ => self.retire(new_dir, replaced)?,
            }
        }
        self.names(old_dir)?.remove(old);
        self.names(new_dir)?.insert(new, moved);
        if self.is_directory(moved) {
            self.links[old_dir] -= 1;
            self.links[new_dir] += 1;
        }
        Ok(())
    }

    fn write(&mut self, file: usize, offset: usize, data: &[u8]) -> Told<()> {
        let content = self.content(file)?;
        if !data.is_empty() {
            content.resize(content.len().max(offset + data.len()), 0);
            content[offset..offset + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn told(&self, file: usize) -> Outcome {
        let (kind, size) = match &self.files[file] {
            Body::File(content) => (QidType::empty(), content.len()),
            Body::Directory(_) => (QidType::DIR, 0),
            Body::Symlink => (QidType::SYMLINK, b"target".len()),
        };
        Outcome::Stat { kind, nlink: self.links[file], size: size as u64 }
    }

    fn try_play(&mut self, op: &Op) -> Told<Outcome> {
        let slot = |slot: &u8| usize::from(slot % SLOTS);
        match op {
            Op::Create { path, exclusive, truncate, slot: at } => {
                let file = match self.add(path, Body::File(Vec::new())) {
                    Err(Errno::EEXIST) if !exclusive => {
                        let file = self.walk(path)?;
                        self.check_open(file)?;
                        if *truncate {
                            self.content(file)?.clear();
                        }
                        file
                    }
                    other => other?,
                };
                self.slots[slot(at)] = Some((file, false));
            }
            Op::Open { path, append, slot: at } => {
                let file = self.walk(path)?;
                self.check_open(file)?;
                self.slots[slot(at)] = Some((file, *append));
            }
            Op::Close { slot: at } => self.slots[slot(at)] = None,
            Op::Write { slot: at, offset, len, byte } => {
                let Some((file, append)) = self.slots[slot(at)] else {
                    return Ok(Outcome::Nothing);
                };
                let end = self.content(file)?.len();
                let offset = if append { end } else { *offset as usize };
                self.write(file, offset, &vec![*byte; (*len).into()])?;
            }
            Op::Read { slot: at, offset, len } => {
                let Some((file, _)) = self.slots[slot(at)] else { return Ok(Outcome::Nothing) };
                let content = self.content(file)?;
                let rest = content.get(*offset as usize..).unwrap_or(&[]);
                return Ok(Outcome::Bytes(rest[..rest.len().min((*len).into())].to_vec()));
            }
            Op::SetSize { path, size } => {
                let file = self.walk(path)?;
                self.content(file)?.resize(*size as usize, 0);
            }
            Op::SetOpenSize { slot: at, size } => {
                let Some((file, _)) = self.slots[slot(at)] else { return Ok(Outcome::Nothing) };
                self.content(file)?.resize(*size as usize, 0);
            }
            Op::MakeDirectory { path } => {
                self.add(path, Body::Directory(BTreeMap::new()))?;
            }
            Op::MakeSymlink { path } => {
                self.add(path, Body::Symlink)?;
            }
            Op::Remove { path, directory } => {
                let (dir, last) = self.dir(path)?;
                let file = self.names(dir)?.get(last).copied().ok_or(Errno::ENOENT)?;
                match (self.is_directory(file), directory) {
                    (true, false) => return Err(Errno::EISDIR),
                    (false, true) => return Err(Errno::ENOTDIR),
                    _ => self.retire(dir, file)?,
                }
                self.names(dir)?.remove(last);
            }
            Op::Rename { from, to } => self.rename(from, to)?,
            Op::Link { from, to } => {
                let file = self.walk(from)?;
                let (dir, last) = self.dir(to)?;
                if self.names(dir)?.contains_key(last) {
                    return Err(Errno::EEXIST);
                }
                if self.is_directory(file) {
                    return Err(Errno::EPERM);
                }
                self.names(dir)?.insert(last, file);
                self.links[file] += 1;
            }
            Op::List { path } => {
                let dir = self.walk(path)?;
                let names: Vec<_> = match &self.files[dir] {
                    Body::Directory(names) => names.iter().map(|(n, f)| (*n, *f)).collect(),
                    Body::File(_) => return Err(Errno::ENOTDIR),
                    Body::Symlink => return Err(Errno::ELOOP),
                };
                let dots = [&b"."[..], b".."].map(|dot| (dot.to_vec(), QidType::DIR));
                let kinds = names.into_iter().map(|(name, file)| match self.told(file) {
                    Outcome::Stat { kind, .. } => (name.to_vec(), kind),
                    _ => unreachable!("told answers with Stat"),
                });
                return Ok(Outcome::Names(kinds.chain(dots).collect()));
            }
            Op::Stat { path } => {
                let file = self.walk(path)?;
                return Ok(self.told(file));
            }
            Op::StatOpen { slot: at } => {
                let Some((file, _)) = self.slots[slot(at)] else { return Ok(Outcome::Nothing) };
                return Ok(self.told(file));
            }
        }
        Ok(Outcome::Done)
    }
}
