//! The next version of an object: sent by one request, or in parts under one upload, of which those that have not changed
//! are copied by the service. It is the object's version when the last request is answered, or, where that answer was lost,
//! when the object turns out to be noted with what only this version has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{Attribute, Attributes, PutMultipartOptions};
use p9::Errno;
use store::{Next, Replacement, Result, Version};

use crate::bucket::{Bucket, Meta, path};
use crate::error::refusal;
use crate::marker::{Markers, failed};
use crate::read::Reader;
use crate::runtime::wait;
use crate::under::{Under, version};

/// What an object is noted with that came from a log: `x-amz-meta-sluice-version`.
pub(crate) const NOTE: &str = "sluice-version";

pub(crate) struct Sending {
    under: Arc<Under>,
    key: String,
    path: Path,
    size: u64,
    part_bytes: u64,
    note: String,
    former: Option<Former>,
    /// Where it comes in parts.
    upload: Option<String>,
    sent: Mutex<Sent>,
}

struct Former {
    key: String,
    meta: Meta,
    reader: Arc<Reader>,
}

#[derive(Default)]
struct Sent {
    parts: Vec<Option<PartId>>,
    /// What the service called the version.
    etag: Option<String>,
    is_finished: bool,
}

/// A text that no other version has.
fn new_note() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", now.as_nanos(), std::process::id())
}

impl Sending {
    pub(crate) fn begin(
        under: &Arc<Under>,
        key: String,
        next: &Next,
        part_bytes: u64,
    ) -> Result<Self> {
        let path = path("write", &key)?;
        let bucket = under.tree.bucket();
        let former = match &next.former {
            None => None,
            Some(expected) => {
                let found = bucket.head_noted(&key, NOTE)?;
                let now = found.map(|(meta, note)| (version(&meta, note), meta));
                let Some((_, meta)) = now.filter(|(now, _)| now == expected) else {
                    bucket.say(&format!("{key}: it was replaced by somebody else meanwhile"));
                    return Err(refusal("write", Errno::ESTALE));
                };
                let reader = Reader::new(&under.tree.shared, &key, meta.clone());
                Some(Former { key: key.clone(), meta, reader: Arc::new(reader) })
            }
        };
        if next.is_new {
            // Whoever has the former file open keeps that.
            under.files.removed(&key);
        }
        let note = new_note();
        let upload = if next.size > part_bytes {
            let options =
                PutMultipartOptions { attributes: noted(&note), ..PutMultipartOptions::default() };
            let begun = wait(s3(bucket)?.client.create_multipart_opts(&path, options));
            Some(begun.map_err(|error| bucket.fail("write", &key, &error))?)
        } else {
            None
        };
        let parts = vec![None; next.size.div_ceil(part_bytes).max(1) as usize];
        Ok(Self {
            under: Arc::clone(under),
            key,
            path,
            size: next.size,
            part_bytes,
            note,
            former,
            upload,
            sent: Mutex::new(Sent { parts, ..Sent::default() }),
        })
    }

    /// Makes an object of all that another has, in parts: for one that is too large to be copied by one request.
    pub(crate) fn copy_whole(under: &Arc<Under>, from: &str, to: &str, meta: Meta) -> Result<()> {
        let size = meta.size;
        let part_bytes = under.part_bytes(size);
        let next = Next { former: None, is_new: false, size };
        let reader = Arc::new(Reader::new(&under.tree.shared, from, meta.clone()));
        let mut sending = Self::begin(under, to.to_owned(), &next, part_bytes)?;
        sending.former = Some(Former { key: from.to_owned(), meta, reader });
        let copied = (0..size.div_ceil(part_bytes).max(1)).try_for_each(|part| {
            if sending.take_over(part as usize)? {
                return Ok(());
            }
            let start = part * part_bytes;
            let mut bytes = vec![0; part_bytes.min(size - start) as usize];
            sending.read_former(&mut bytes, start)?;
            sending.send(part as usize, bytes)
        });
        let finished = copied.and_then(|()| sending.finish());
        sending.abandon();
        finished.map(drop)
    }

    fn bucket(&self) -> &Bucket {
        self.under.tree.bucket()
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrived(&self, part: usize, id: PartId) {
        if let Some(slot) = self.sent().parts.get_mut(part) {
            *slot = Some(id);
        }
    }

    /// Has the service copy a part. `None`: it does not do that.
    async fn copy(
        &self,
        s3: &Markers,
        former: &Former,
        upload: &str,
        part: usize,
    ) -> std::result::Result<Option<PartId>, object_store::Error> {
        let mut url = s3.address(&Method::PUT, &self.key).await?;
        // Of the path in the address, which has the bucket in it or not: the source always names it.
        let source = s3.address(&Method::PUT, &former.key).await?;
        let place = self.bucket().name().trim_start_matches("s3://");
        let address = source.path().trim_start_matches('/');
        let has_bucket = address.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
        let source = if has_bucket { address.to_owned() } else { format!("{place}/{address}") };
        let start = part as u64 * self.part_bytes;
        let end = (start + self.part_bytes).min(self.size);
        url.query_pairs_mut()
            .append_pair("partNumber", &(part + 1).to_string())
            .append_pair("uploadId", upload);
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value).map_err(failed)?;
            headers.insert(name, value);
            Ok::<_, object_store::Error>(())
        };
        set("x-amz-copy-source", &source)?;
        set("x-amz-copy-source-range", &format!("bytes={start}-{}", end - 1))?;
        if let Some(etag) = &former.meta.etag {
            set("x-amz-copy-source-if-match", etag)?;
        }
        let (status, words) = s3.ask(Method::PUT, &url, headers).await?;
        let text = words.split_once("<ETag>").and_then(|(_, rest)| rest.split_once("</ETag>"));
        match (status.as_u16(), text) {
            (200, Some((etag, _))) => {
                Ok(Some(PartId { content_id: etag.replace("&quot;", "\"").replace("&#34;", "\"") }))
            }
            // Another version, another upload, or not now: that is no answer to whether it copies.
            (200 | 404 | 409 | 412 | 429 | 500.., _) => Err(failed(format!("{status}: {words}"))),
            _ => Ok(None),
        }
    }

    /// Whether the object is this version now.
    fn is_there(&self) -> Result<Option<Version>> {
        let Some((meta, note)) = self.bucket().head_noted(&self.key, NOTE)? else {
            return Ok(None);
        };
        let answered = self.sent().etag.clone();
        let is_it = match (&note, &answered, &meta.etag) {
            (Some(note), _, _) => *note == self.note,
            (None, Some(answered), Some(found)) => answered == found,
            _ => false,
        };
        if !is_it || meta.size != self.size {
            return Ok(None);
        }
        self.under.files.replaced(&self.key, meta.clone());
        Ok(Some(version(&meta, note)))
    }
}

fn noted(note: &str) -> Attributes {
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::Metadata(NOTE.into()), note.to_owned().into());
    attributes
}

fn s3(bucket: &Bucket) -> Result<&Markers> {
    bucket.s3().ok_or(refusal("write", Errno::EOPNOTSUPP))
}

impl Replacement for Sending {
    fn id(&self) -> Option<&str> {
        self.upload.as_deref()
    }

    fn read_former(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let former = self.former.as_ref().ok_or(refusal("read", Errno::ESTALE))?;
        let len = former.reader.read_at(buffer, offset)?;
        if len == buffer.len() { Ok(()) } else { Err(refusal("read", Errno::ESTALE)) }
    }

    fn take_over(&self, part: usize) -> Result<bool> {
        let (Some(former), Some(upload)) = (&self.former, &self.upload) else { return Ok(false) };
        if !self.under.takes_over.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let copied = wait(self.copy(s3(self.bucket())?, former, upload, part));
        match copied.map_err(|error| self.bucket().fail("write", &self.key, &error))? {
            Some(id) => self.arrived(part, id),
            None => {
                self.under.takes_over.store(false, Ordering::Relaxed);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send(&self, part: usize, bytes: Vec<u8>) -> Result<()> {
        let bytes = Bytes::from(bytes);
        let Some(upload) = &self.upload else {
            let etag = self.bucket().put_noted(&self.key, bytes, noted(&self.note))?;
            self.under.tree.forget(&self.key);
            self.sent().etag = etag;
            return Ok(());
        };
        let client = &s3(self.bucket())?.client;
        let sent = wait(client.put_part(&self.path, upload, part, bytes.into()));
        self.arrived(part, sent.map_err(|error| self.bucket().fail("write", &self.key, &error))?);
        Ok(())
    }

    fn finish(&self) -> Result<Version> {
        let mut lost = None;
        if let Some(upload) = &self.upload {
            let parts: Option<Vec<PartId>> = self.sent().parts.iter().cloned().collect();
            let parts = parts.ok_or(refusal("write", Errno::EIO))?;
            let client = &s3(self.bucket())?.client;
            match wait(client.complete_multipart(&self.path, upload, parts)) {
                Ok(completed) => self.sent().etag = completed.e_tag,
                Err(error) => lost = Some(error),
            }
            self.under.tree.forget(&self.key);
        }
        match (self.is_there()?, lost) {
            (Some(version), _) => {
                self.sent().is_finished = true;
                Ok(version)
            }
            (None, Some(error)) => Err(self.bucket().fail("write", &self.key, &error)),
            (None, None) => {
                let place = self.bucket().name();
                self.bucket().say(&format!(
                    "{place}/{}: the object is not what was sent, although the service has said so; it is sent again",
                    self.key
                ));
                Err(refusal("write", Errno::EIO))
            }
        }
    }

    fn abandon(&self) {
        let Some(upload) = self.upload.as_ref().filter(|_| !self.sent().is_finished) else {
            return;
        };
        if let Ok(s3) = s3(self.bucket()) {
            // What stays is found by the log's journal.
            let _ = wait(s3.client.abort_multipart(&self.path, upload));
        }
    }
}
