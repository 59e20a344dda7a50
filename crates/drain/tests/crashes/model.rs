//! What a target should hold: every record that counts, applied in the log's order by the simplest means.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hostlog::{FileId, Member, Operation, Sequence};
use p9::{OpenFlags, QidType};
use store::{Node, Store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory,
    File(Vec<u8>),
    Symlink(Vec<u8>),
}

pub(crate) type Tree = BTreeMap<String, Entry>;

/// A record as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) sequence: Sequence,
    pub(crate) file: FileId,
    pub(crate) member: Option<Member>,
    pub(crate) what: Said,
    /// Whether it counts; `None`: not yet.
    pub(crate) counts: Option<bool>,
}

#[derive(Debug, Clone)]
pub(crate) enum Said {
    Data(u64, Vec<u8>),
    Operation(Operation),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    Directory,
    File(FileId),
    Symlink(Vec<u8>),
}

/// Names and contents of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) names: BTreeMap<String, Name>,
    pub(crate) contents: HashMap<FileId, Vec<u8>>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Model {
    pub(crate) fn apply(&mut self, file: FileId, said: &Said) {
        match said {
            Said::Data(offset, bytes) => {
                let content = self.contents.entry(file).or_default();
                let (start, end) = (*offset as usize, *offset as usize + bytes.len());
                content.resize(content.len().max(end), 0);
                content[start..end].copy_from_slice(bytes);
            }
            Said::Operation(operation) => self.operation(file, operation),
        }
    }

    fn operation(&mut self, file: FileId, operation: &Operation) {
        match operation {
            Operation::Create { path, .. } => {
                self.names.insert(text(path), Name::File(file));
                self.contents.insert(file, Vec::new());
            }
            Operation::Mkdir { path, .. } => {
                self.names.insert(text(path), Name::Directory);
            }
            Operation::Symlink { path, target } => {
                self.names.insert(text(path), Name::Symlink(target.clone()));
            }
            Operation::Link { existing, path } => {
                let name = self.names[&text(existing)].clone();
                self.names.insert(text(path), name);
            }
            Operation::Unlink { path } | Operation::Rmdir { path } => {
                self.names.remove(&text(path));
            }
            Operation::Rename { from, to, .. } => {
                let (from, to) = (text(from), text(to));
                if self.names.get(&from) == self.names.get(&to)
                    && matches!(self.names[&from], Name::File(_))
                {
                    return;
                }
                let below = format!("{from}/");
                let moved: Vec<String> = self
                    .names
                    .keys()
                    .filter(|path| **path == from || path.starts_with(&below))
                    .cloned()
                    .collect();
                for path in moved {
                    let name = self.names.remove(&path).unwrap();
                    self.names.insert(format!("{to}{}", &path[from.len()..]), name);
                }
            }
            Operation::Truncate { size } => {
                self.contents.entry(file).or_default().resize(*size as usize, 0)
            }
            Operation::Bind { .. } | Operation::Attributes { .. } | Operation::Note { .. } => {}
        }
    }

    pub(crate) fn tree(&self) -> Tree {
        let entry = |name: &Name| match name {
            Name::Directory => Entry::Directory,
            Name::File(file) => Entry::File(self.contents[file].clone()),
            Name::Symlink(target) => Entry::Symlink(target.clone()),
        };
        self.names.iter().map(|(path, name)| (path.clone(), entry(name))).collect()
    }
}

/// What a store holds.
pub(crate) fn tree(store: &dyn Store) -> Tree {
    let mut tree = Tree::new();
    walk(&store.root().unwrap(), "", &mut tree);
    tree
}

fn walk(dir: &Arc<dyn Node>, path: &str, tree: &mut Tree) {
    let open = dir.open(OpenFlags::DIRECTORY).unwrap();
    let mut names = Vec::new();
    open.read_directory(0, &mut |entry| {
        names.push(entry.name.to_vec());
        true
    })
    .unwrap();
    for name in names.iter().filter(|name| !matches!(&name[..], b"." | b"..")) {
        let node = dir.walk(&[name]).unwrap().end.unwrap();
        let path = format!("{path}{}", text(name));
        let entry = match node.qid().kind {
            QidType::DIR => {
                walk(&node, &format!("{path}/"), tree);
                Entry::Directory
            }
            QidType::SYMLINK => Entry::Symlink(node.read_link().unwrap()),
            _ => {
                let mut bytes = vec![0; node.attributes().unwrap().size as usize];
                let len = node.open(OpenFlags::empty()).unwrap().read_at(&mut bytes, 0).unwrap();
                assert_eq!(len, bytes.len());
                Entry::File(bytes)
            }
        };
        tree.insert(path, entry);
    }
}
