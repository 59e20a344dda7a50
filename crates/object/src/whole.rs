//! The store of a bucket.

use std::sync::Arc;

use object_store::ObjectStore as Client;
use store::{Node, Result, Store};
use tokio::sync::Semaphore;

use crate::bucket::{Bucket, Requests};
use crate::cache::Cache;
use crate::error::{OpenError, Tell};
use crate::marker::Markers;
use crate::memory::Memory;
use crate::node::ObjectNode;
use crate::place::Place;
use crate::plan::Cost;
use crate::read::Shared;
use crate::tree::Tree;
use crate::under::UnderLog;

/// How a store goes about it.
#[derive(Clone)]
pub struct Options {
    /// Bytes of objects that are kept in memory for who reads them again or is about to.
    pub cache_bytes: u64,
    /// Bytes that are fetched at most ahead of a reader that goes on in order.
    pub read_ahead_bytes: u64,
    /// Bytes that one request fetches at most, and that a part has which is sent.
    pub part_bytes: u64,
    /// Requests for bytes that are under way together.
    pub together: u32,
    /// Bytes that the service copies by one request at most.
    pub copy_bytes_max: u64,
    /// What a request costs.
    pub cost: Cost,
    /// Is told what is wrong.
    pub tell: Option<Tell>,
    /// What stands in for the variables of the environment, where it is given.
    pub variables: Option<Vec<(String, String)>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            read_ahead_bytes: 64 << 20,
            part_bytes: 8 << 20,
            together: 16,
            // CopyObject of S3.
            copy_bytes_max: 5_000_000_000,
            cost: Cost::default(),
            tell: None,
            variables: None,
        }
    }
}

/// The least that a part may have which is not the last: S3's limit.
const PART_BYTES_MIN: u64 = 5 << 20;

/// What is below a prefix of a bucket.
pub struct ObjectStore {
    tree: Arc<Tree>,
    copy_bytes_max: u64,
}

impl ObjectStore {
    /// The store of a bucket, or of what is below `prefix` in it. Nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenError`] when the settings in the environment do not fit together, or the prefix is none.
    pub fn open(
        place: &Place,
        prefix: &[u8],
        options: Options,
    ) -> std::result::Result<Self, OpenError> {
        let root = root_of(place, prefix)?;
        let (client, markers) =
            crate::runtime::within(|| place.client(options.variables.as_deref()))?;
        let lists = !place.kind.is_web();
        Ok(Self::over((client, markers), &place.to_string(), root, lists, options))
    }

    fn over(
        (client, markers): (Arc<dyn Client>, Option<Markers>),
        name: &str,
        root: String,
        lists: bool,
        options: Options,
    ) -> Self {
        let Options {
            cache_bytes,
            read_ahead_bytes,
            part_bytes,
            together,
            copy_bytes_max,
            cost,
            tell,
            ..
        } = options;
        let part_bytes = part_bytes.max(PART_BYTES_MIN);
        // What is asked for has to fit until it is looked at.
        let cache_bytes = cache_bytes.max(4 * part_bytes);
        let bucket = Arc::new(Bucket::new((client, markers), name.to_owned(), lists, tell));
        let shared = Arc::new(Shared {
            bucket,
            cache: Cache::new(cache_bytes),
            memory: Arc::new(Memory::new(part_bytes)),
            slots: Arc::new(Semaphore::new(together.max(1) as usize)),
            together: together.max(1),
            request_bytes: part_bytes,
            read_ahead_bytes: read_ahead_bytes.min(cache_bytes / 4),
            cost,
        });
        Self { tree: Arc::new(Tree::new(shared, root, part_bytes)), copy_bytes_max }
    }

    /// The bucket as what lies under a log: files are looked up and read, and replaced as wholes.
    /// `None` for services that are not S3 or compatible with it.
    #[must_use]
    pub fn under_log(self) -> Option<UnderLog> {
        self.tree.bucket().s3()?;
        Some(UnderLog::new(self.tree, self.copy_bytes_max))
    }

    /// How often the service was asked for bytes.
    #[must_use]
    pub fn requests(&self) -> Arc<Requests> {
        Arc::clone(&self.tree.bucket().requests)
    }
}

/// The key of the root.
fn root_of(place: &Place, prefix: &[u8]) -> std::result::Result<String, OpenError> {
    let name = |why| OpenError::Name { place: place.to_string(), why };
    let text =
        std::str::from_utf8(prefix).map_err(|_| name("keys are UTF-8, and this prefix is not"))?;
    let names: Vec<&str> =
        text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.contains(&"..") {
        return Err(name("a prefix cannot lead up by `..`"));
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        return Err(name("a prefix has no control characters"));
    }
    Ok(names.join("/"))
}

impl Store for ObjectStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(ObjectNode::root(&self.tree)))
    }

    fn blocks(&self) -> bool {
        true
    }
}
