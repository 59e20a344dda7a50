//! A bucket: what is asked of the service, with keys as text and errors as this workspace has them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, MultipartUpload, ObjectMeta,
    ObjectStore as Client, ObjectStoreExt, PutOptions,
};
use p9::{Errno, Time};
use store::{Error, Result};

use crate::error::{Tell, Trouble, explain, refusal};
use crate::marker::Markers;
use crate::memory::Memory;
use crate::runtime::wait;

/// What is known of an object. One version of it: another has another `etag`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) size: u64,
    pub(crate) mtime: Time,
    /// What the service calls this version; web servers may have nothing.
    pub(crate) etag: Option<String>,
}

impl Meta {
    fn of(found: &ObjectMeta) -> Self {
        let seconds = found.last_modified.timestamp().max(0);
        Self {
            size: found.size,
            mtime: Time {
                seconds: seconds as u64,
                nanoseconds: u64::from(found.last_modified.timestamp_subsec_nanos()),
            },
            etag: found.e_tag.clone(),
        }
    }

    /// A number for this version, never 0.
    pub(crate) fn version(&self) -> u32 {
        let mut hasher = DefaultHasher::new();
        match &self.etag {
            Some(etag) => etag.hash(&mut hasher),
            None => (self.size, self.mtime.seconds, self.mtime.nanoseconds).hash(&mut hasher),
        }
        (hasher.finish() as u32).max(1)
    }

    /// Whether both are one version, as far as the service tells versions apart.
    fn is_version_of(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(one), Some(two)) => one == two,
            _ => self.size == other.size && self.mtime == other.mtime,
        }
    }
}

/// What a directory holds.
pub(crate) struct Listed {
    /// The last names of the keys below that have more behind them.
    pub(crate) directories: Vec<String>,
    /// Names and objects.
    pub(crate) files: Vec<(String, Meta)>,
    /// Whether the prefix is there at all.
    pub(crate) exists: bool,
}

/// How often the service was asked.
#[derive(Debug, Default)]
pub struct Requests {
    gets: AtomicU64,
    bytes: AtomicU64,
}

impl Requests {
    /// Requests for bytes of objects.
    #[must_use]
    pub fn gets(&self) -> u64 {
        self.gets.load(Ordering::Relaxed)
    }

    /// Bytes that came with them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

pub(crate) struct Bucket {
    client: Arc<dyn Client>,
    markers: Option<Markers>,
    /// As a person names it.
    name: String,
    lists: bool,
    tell: Option<Tell>,
    pub(crate) requests: Arc<Requests>,
}

impl Bucket {
    pub(crate) fn new(
        (client, markers): (Arc<dyn Client>, Option<Markers>),
        name: String,
        lists: bool,
        tell: Option<Tell>,
    ) -> Self {
        Self { client, markers, name, lists, tell, requests: Arc::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it tells what is below a prefix. A web server does not.
    pub(crate) fn lists(&self) -> bool {
        self.lists
    }

    pub(crate) fn say(&self, text: &str) {
        if let Some(tell) = &self.tell {
            tell(text);
        }
    }

    /// Where it is one of S3, what is asked of that besides.
    pub(crate) fn s3(&self) -> Option<&Markers> {
        self.markers.as_ref()
    }

    fn shown(&self, key: &str) -> String {
        format!("{}/{key}", self.name)
    }

    pub(crate) fn fail(
        &self,
        operation: &'static str,
        key: &str,
        error: &object_store::Error,
    ) -> Error {
        explain(self.tell.as_ref(), &self.shown(key), operation, error)
    }

    /// The object of that key; `None` where there is none.
    pub(crate) fn head(&self, operation: &'static str, key: &str) -> Result<Option<Meta>> {
        let path = path(operation, key)?;
        match wait(self.client.head(&path)) {
            Ok(found) => Ok(Some(Meta::of(&found))),
            // What names no bucket in an answer without a body says so when it is asked to list.
            Err(error) if Trouble::of(&error) == Trouble::Missing => Ok(None),
            Err(error) => Err(self.fail(operation, key, &error)),
        }
    }

    /// Whether any key begins with this one and a slash.
    pub(crate) fn has_below(&self, operation: &'static str, key: &str) -> Result<bool> {
        if !self.lists {
            return Ok(key.is_empty());
        }
        let path = path(operation, key)?;
        let first = wait(async {
            let mut all = self.client.list(Some(&path));
            all.next().await
        });
        match first {
            None => Ok(false),
            Some(Ok(_)) => Ok(true),
            Some(Err(error)) => Err(self.fail(operation, key, &error)),
        }
    }

    /// What is directly below a prefix, each name once.
    pub(crate) fn list(&self, operation: &'static str, key: &str) -> Result<Listed> {
        if !self.lists {
            self.say(&format!(
                "{}: a web server does not tell what it has; name the file itself",
                self.shown(key)
            ));
            return Err(refusal(operation, Errno::EOPNOTSUPP));
        }
        let path = path(operation, key)?;
        let found = wait(self.client.list_with_delimiter(Some(&path)));
        let found = found.map_err(|error| self.fail(operation, key, &error))?;
        let exists = !found.objects.is_empty() || !found.common_prefixes.is_empty();
        let below = |full: &Path| {
            let full = full.as_ref();
            // The marker of the directory itself has no name in it.
            let name =
                if key.is_empty() { full } else { full.strip_prefix(key)?.strip_prefix('/')? };
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        let files = found.objects.iter();
        let files: Vec<_> =
            files.filter_map(|meta| Some((below(&meta.location)?, Meta::of(meta)))).collect();
        let directories = found.common_prefixes.iter().filter_map(below).collect();
        Ok(Listed { directories, files, exists })
    }

    /// Bytes of an object that is still the version that `expected` tells of.
    pub(crate) async fn get(
        &self,
        key: &str,
        range: Range<u64>,
        expected: &Meta,
        memory: &Arc<Memory>,
    ) -> std::result::Result<Bytes, object_store::Error> {
        let path = Path::parse(key)?;
        let changed = || object_store::Error::Precondition {
            path: key.to_owned(),
            source: "the answer is of another version than the one that was opened".into(),
        };
        self.requests.gets.fetch_add(1, Ordering::Relaxed);
        let options = GetOptions {
            if_match: expected.etag.clone(),
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let found = self.client.get_opts(&path, options).await?;
        // Not every service heeds conditions.
        if !Meta::of(&found.meta).is_version_of(expected) {
            return Err(changed());
        }
        let wanted = usize::try_from(range.end - range.start).map_err(|_| changed())?;
        let mut buffer = memory.take(wanted);
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            if piece.len() > wanted - buffer.len() {
                return Err(changed());
            }
            buffer.push(&piece);
        }
        self.requests.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        if buffer.len() != wanted {
            return Err(changed());
        }
        Ok(buffer.finish())
    }

    /// Stores a whole object.
    pub(crate) fn put(&self, operation: &'static str, key: &str, data: Bytes) -> Result<()> {
        let path = path(operation, key)?;
        let put = wait(self.client.put(&path, data.into()));
        put.map(|_| ()).map_err(|error| self.fail(operation, key, &error))
    }

    /// The object of that key, with what was noted of it when it was stored.
    pub(crate) fn head_noted(
        &self,
        key: &str,
        note: &'static str,
    ) -> Result<Option<(Meta, Option<String>)>> {
        let path = path("find", key)?;
        let options = GetOptions { head: true, ..GetOptions::default() };
        match wait(self.client.get_opts(&path, options)) {
            Ok(found) => {
                let noted = found.attributes.get(&Attribute::Metadata(note.into()));
                let noted = noted.map(|value| value.as_ref().to_owned());
                Ok(Some((Meta::of(&found.meta), noted)))
            }
            Err(error) if Trouble::of(&error) == Trouble::Missing => Ok(None),
            Err(error) => Err(self.fail("find", key, &error)),
        }
    }

    /// Stores a whole object, and notes something of it.
    pub(crate) fn put_noted(
        &self,
        key: &str,
        data: Bytes,
        attributes: Attributes,
    ) -> Result<Option<String>> {
        let path = path("write", key)?;
        let options = PutOptions { attributes, ..PutOptions::default() };
        let put = wait(self.client.put_opts(&path, data.into(), options));
        put.map(|stored| stored.e_tag).map_err(|error| self.fail("write", key, &error))
    }

    /// Begins an object that comes in parts.
    pub(crate) fn begin(&self, key: &str) -> Result<Box<dyn MultipartUpload>> {
        let path = path("write", key)?;
        let begun = wait(self.client.put_multipart(&path));
        begun.map_err(|error| self.fail("write", key, &error))
    }

    pub(crate) fn copy(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (path("rename", from)?, path("rename", to)?);
        let copied = wait(self.client.copy(&source, &target));
        copied.map_err(|error| self.fail("rename", from, &error))
    }

    /// Makes the marker of a directory, where the service has such.
    pub(crate) fn mark(&self, key: &str) -> Result<()> {
        let made = self.markers.as_ref().map_or(Ok(()), |markers| markers.make(key));
        made.map_err(|error| self.fail("mkdir", key, &error))
    }

    /// Removes the marker of a directory.
    pub(crate) fn unmark(&self, key: &str) -> Result<()> {
        let removed = self.markers.as_ref().map_or(Ok(()), |markers| markers.remove(key));
        removed.map_err(|error| self.fail("rmdir", key, &error))
    }

    /// Removes an object; that it is not there is no error.
    pub(crate) fn delete(&self, operation: &'static str, key: &str) -> Result<()> {
        let path = path(operation, key)?;
        match wait(self.client.delete(&path)) {
            Err(error) if Trouble::of(&error) != Trouble::Missing => {
                Err(self.fail(operation, key, &error))
            }
            _ => Ok(()),
        }
    }
}

/// A key as the library has it.
pub(crate) fn path(operation: &'static str, key: &str) -> Result<Path> {
    Path::parse(key).map_err(|_| refusal(operation, Errno::EINVAL))
}

/// Bytes that a key may have: 1,024 in S3, Google's and Azure's service.
const KEY_BYTES_MAX: usize = 1024;

/// The key of a name in a directory.
pub(crate) fn join(operation: &'static str, directory: &str, name: &[u8]) -> Result<String> {
    let name = std::str::from_utf8(name).map_err(|_| refusal(operation, Errno::EINVAL))?;
    if name.chars().any(|c| c.is_ascii_control()) {
        return Err(refusal(operation, Errno::EINVAL));
    }
    let key = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
    if key.len() > KEY_BYTES_MAX {
        return Err(refusal(operation, Errno::ENAMETOOLONG));
    }
    Ok(key)
}
