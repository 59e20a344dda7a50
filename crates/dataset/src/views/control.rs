//! The directory by which a dataset is looked at and changed: `.sluice`.
//!
//! | file | read | written |
//! |---|---|---|
//! | `definition` | the text of the definition in force | |
//! | `status` | how replicas and views are ([`crate::Report`]) | |
//! | `ctl` | what became of the command that was written through the same opening | commands ([`Dataset::command`](crate::Dataset::command)) |
//!
//! A write of `ctl` that fails says why in an errno, and in full to whoever reads through the same
//! opening afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, QidType, SetAttributes, StatFs, mode};
use store::{FIRST_COOKIE, Listing, Node, OpenListing, OpenNode, Result, Walk};

use super::directory::DirectoryNode;
use super::{Shared, attributes, failed, refusal};

/// What the directory is called.
pub(super) const DIRECTORY: &[u8] = super::CONTROL.as_bytes();

/// The files in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    Control,
    Definition,
    Status,
}

impl File {
    const ALL: [Self; 3] = [Self::Control, Self::Definition, Self::Status];

    fn name(self) -> &'static [u8] {
        match self {
            Self::Control => b"ctl",
            Self::Definition => b"definition",
            Self::Status => b"status",
        }
    }

    fn find(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }
}

impl Shared {
    fn control_qid(&self, file: Option<File>) -> Qid {
        let name = file.map_or(&b""[..], File::name);
        let path = self.path(&[b"/", DIRECTORY, b"/", name].concat());
        let kind = if file.is_some() { QidType::empty() } else { QidType::DIR };
        Qid { kind, version: 0, path }
    }

    /// What a file has before anything was written to it.
    fn content(&self, file: File) -> Result<Vec<u8>> {
        match file {
            File::Control => Ok(Vec::new()),
            File::Definition => {
                Ok(self.dataset.definition_text().map_err(failed("read"))?.into_bytes())
            }
            File::Status => Ok(self.dataset.report().to_text().into_bytes()),
        }
    }

    fn control_attributes(&self, file: Option<File>, size: u64) -> Attributes {
        let mode = match file {
            None => mode::DIRECTORY | 0o555,
            Some(File::Control) => mode::REGULAR | 0o600,
            Some(File::Definition | File::Status) => mode::REGULAR | 0o444,
        };
        let time = self.dataset.since();
        Attributes { mode, size, ..attributes(self.control_qid(file), time) }
    }
}

/// `.sluice`.
pub(super) struct ControlDirectory {
    shared: Arc<Shared>,
}

impl ControlDirectory {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }
}

impl Node for ControlDirectory {
    fn qid(&self) -> Qid {
        self.shared.control_qid(None)
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        super::walk(Arc::new(Self::new(&self.shared)), names, |name| {
            let (shared, file) = (Arc::clone(&self.shared), File::find(name)?);
            Some(Arc::new(ControlNode { shared, file }))
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.shared.control_attributes(None, 0))
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(refusal("setattr", Errno::EPERM))
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return Err(refusal("open", Errno::EISDIR));
        }
        Ok(Arc::new(OpenListing(Files(Arc::clone(&self.shared)))))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        match File::find(name) {
            Some(_) if flags.contains(OpenFlags::EXCLUSIVE) => Err(refusal("open", Errno::EEXIST)),
            Some(file) => {
                let node = ControlNode { shared: Arc::clone(&self.shared), file };
                let open = node.open(flags)?;
                Ok((Arc::new(node), open))
            }
            None => Err(refusal("open", Errno::EPERM)),
        }
    }

    fn make_directory(&self, _name: &[u8], _mode: u32) -> Result<Qid> {
        Err(refusal("mkdir", Errno::EPERM))
    }

    fn make_symlink(&self, _name: &[u8], _target: &[u8]) -> Result<Qid> {
        Err(refusal("symlink", Errno::EPERM))
    }

    fn link(&self, _existing: &dyn Node, _name: &[u8]) -> Result<()> {
        Err(refusal("link", Errno::EPERM))
    }

    fn rename(&self, _old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        Err(refusal("rename", Errno::EPERM))
    }

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        Err(refusal("unlink", Errno::EPERM))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        Ok((Arc::new(DirectoryNode::new(&self.shared)), DIRECTORY.to_vec()))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.shared.statfs()
    }
}

/// The files, once the directory is opened.
struct Files(Arc<Shared>);

impl Listing for Files {
    fn attributes(&self) -> Result<Attributes> {
        Ok(self.0.control_attributes(None, 0))
    }

    fn above(&self) -> Qid {
        self.0.directory_qid()
    }

    fn entries(
        &self,
        cookie: u64,
        _is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        for (offset, file) in (FIRST_COOKIE..).zip(File::ALL) {
            let entry = DirEntry::of(self.0.control_qid(Some(file)), offset, file.name());
            if offset > cookie && !take(entry) {
                break;
            }
        }
        Ok(())
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(refusal("setattr", Errno::EPERM))
    }
}

/// One of the files.
struct ControlNode {
    shared: Arc<Shared>,
    file: File,
}

impl Node for ControlNode {
    fn qid(&self) -> Qid {
        self.shared.control_qid(Some(self.file))
    }

    /// A command waits until what was written is durable.
    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        if names.is_empty() {
            let again = Self { shared: Arc::clone(&self.shared), file: self.file };
            return Ok(Walk { qids: Vec::new(), end: Some(Arc::new(again)) });
        }
        Err(refusal("walk", Errno::ENOTDIR))
    }

    fn attributes(&self) -> Result<Attributes> {
        let size = self.shared.content(self.file)?.len() as u64;
        Ok(self.shared.control_attributes(Some(self.file), size))
    }

    /// Shells cut what they write to.
    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        if self.file == File::Control { Ok(()) } else { Err(refusal("setattr", Errno::EPERM)) }
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::ENOTDIR));
        }
        if flags.writes() && self.file != File::Control {
            return Err(refusal("open", Errno::EACCES));
        }
        let content = Mutex::new(self.shared.content(self.file)?);
        Ok(Arc::new(OpenControl {
            shared: Arc::clone(&self.shared),
            file: self.file,
            flags,
            content,
        }))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        Ok((Arc::new(ControlDirectory::new(&self.shared)), self.file.name().to_vec()))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.shared.statfs()
    }
}

struct OpenControl {
    shared: Arc<Shared>,
    file: File,
    flags: OpenFlags,
    /// What is read: it does not change under whoever reads.
    content: Mutex<Vec<u8>>,
}

impl OpenNode for OpenControl {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.flags.reads() {
            return Err(refusal("read", Errno::EBADF));
        }
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..));
        let rest = rest.unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, data: &[u8], _offset: u64) -> Result<usize> {
        if !self.flags.writes() {
            return Err(refusal("write", Errno::EBADF));
        }
        let text = std::str::from_utf8(data).map_err(|_| refusal("write", Errno::EINVAL))?;
        let done = self.shared.dataset.command(text);
        let reply = match &done {
            Ok(said) => said.clone(),
            Err(error) => format!("{}\n", error.in_full()),
        };
        *self.content.lock().unwrap_or_else(PoisonError::into_inner) = reply.into_bytes();
        done.map(|_| data.len()).map_err(failed("write"))
    }

    fn attributes(&self) -> Result<Attributes> {
        let size = self.content.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        Ok(self.shared.control_attributes(Some(self.file), size))
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        if self.file == File::Control { Ok(()) } else { Err(refusal("setattr", Errno::EPERM)) }
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }
}
