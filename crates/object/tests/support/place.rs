//! A bucket to test with, and a store of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use address::ObjectKind;
use object::{ObjectStore, Options, Place};
use p9::{Errno, OpenFlags};
use store::{Node, OpenNode, Store};

use crate::server::Server;

pub(crate) struct Bucket {
    pub(crate) server: Server,
    pub(crate) directory: tempfile::TempDir,
    /// What was told to people.
    pub(crate) told: Arc<Mutex<Vec<String>>>,
    prefixes: AtomicU64,
}

#[allow(dead_code)]
impl Bucket {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("bucket")).unwrap();
        let server = Server::start(directory.path(), 0);
        Self { server, directory, told: Arc::default(), prefixes: AtomicU64::new(0) }
    }

    /// The options that lead to the server.
    pub(crate) fn options(&self) -> Options {
        let told = Arc::clone(&self.told);
        Options {
            variables: Some(self.server.variables()),
            tell: Some(Arc::new(move |text| {
                eprintln!("{text}");
                told.lock().unwrap().push(text.to_owned());
            })),
            ..Options::default()
        }
    }

    pub(crate) fn store_of(&self, bucket: &str, prefix: &str, options: Options) -> ObjectStore {
        let place = Place { kind: ObjectKind::S3, bucket: bucket.to_owned() };
        ObjectStore::open(&place, prefix.as_bytes(), options).unwrap()
    }

    pub(crate) fn store(&self) -> ObjectStore {
        self.store_of("bucket", "", self.options())
    }

    /// A store in which nothing is yet: a prefix of its own.
    pub(crate) fn fresh(&self) -> ObjectStore {
        let n = self.prefixes.fetch_add(1, Ordering::Relaxed);
        self.store_of("bucket", &format!("p{n}"), self.options())
    }

    /// What the bucket really holds.
    pub(crate) fn file(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.directory.path().join("bucket").join(key)).ok()
    }

    pub(crate) fn put(&self, key: &str, content: &[u8]) {
        let path = self.directory.path().join("bucket").join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn has_told(&self, words: &str) -> bool {
        self.told.lock().unwrap().iter().any(|text| text.contains(words))
    }
}

#[allow(dead_code)]
pub(crate) fn at(store: &ObjectStore, path: &str) -> Arc<dyn Node> {
    let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
    store.root().unwrap().walk(&names).unwrap().end.unwrap()
}

#[allow(dead_code)]
pub(crate) fn create(store: &ObjectStore, name: &str) -> Arc<dyn OpenNode> {
    store.root().unwrap().create(name.as_bytes(), OpenFlags::READ_WRITE, 0o644).unwrap().1
}

#[allow(dead_code)]
pub(crate) fn read(open: &dyn OpenNode) -> Vec<u8> {
    let mut buffer = vec![0; open.attributes().unwrap().size as usize + 1];
    let len = open.read_at(&mut buffer, 0).unwrap();
    buffer.truncate(len);
    buffer
}

#[allow(dead_code)]
#[track_caller]
pub(crate) fn errno<T>(result: store::Result<T>) -> Errno {
    match result {
        Ok(_) => panic!("this must fail, and did not"),
        Err(error) => error.to_errno(),
    }
}

/// Bytes that tell where they are.
#[allow(dead_code)]
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}
