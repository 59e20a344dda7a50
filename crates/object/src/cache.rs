//! Bytes of objects that were read, kept in memory within a limit. They are filed by version, so that what is found is
//! of the version that was opened, and what another version left is never found again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Whose bytes: a key and what its service calls the version.
pub(crate) type Version = Arc<(String, String)>;

/// A cache that all open files of a store share.
pub(crate) struct Cache {
    bytes_max: u64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    versions: HashMap<Version, BTreeMap<u64, Segment>>,
    /// By when they were last used.
    order: BTreeMap<u64, (Version, u64)>,
    clock: u64,
    bytes: u64,
}

struct Segment {
    bytes: Bytes,
    used: u64,
}

impl Cache {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, inner: Mutex::default() }
    }

    /// Bytes of the version from `offset` on, as many as lie together.
    pub(crate) fn find(&self, version: &Version, offset: u64) -> Option<Bytes> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let now = inner.clock;
        let segments = inner.versions.get_mut(version)?;
        let (start, segment) = segments.range_mut(..=offset).next_back()?;
        let skip = usize::try_from(offset - start).ok()?;
        if skip >= segment.bytes.len() {
            return None;
        }
        let (start, before) = (*start, std::mem::replace(&mut segment.used, now));
        let found = segment.bytes.slice(skip..);
        inner.order.remove(&before);
        inner.order.insert(now, (Arc::clone(version), start));
        Some(found)
    }

    /// Where the next bytes behind `offset` begin that are here.
    pub(crate) fn next(&self, version: &Version, offset: u64) -> Option<u64> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let segments = inner.versions.get(version)?;
        segments.range(offset + 1..).next().map(|(start, _)| *start)
    }

    /// Keeps bytes, and lets go of those that were not used for longest.
    pub(crate) fn keep(&self, version: &Version, offset: u64, bytes: Bytes) {
        if bytes.is_empty() || bytes.len() as u64 > self.bytes_max {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let now = inner.clock;
        let len = bytes.len() as u64;
        let segments = inner.versions.entry(Arc::clone(version)).or_default();
        // The longer of two that begin together.
        if segments.get(&offset).is_some_and(|known| known.bytes.len() as u64 >= len) {
            return;
        }
        let former = segments.insert(offset, Segment { bytes, used: now });
        if let Some(former) = former {
            inner.order.remove(&former.used);
            inner.bytes -= former.bytes.len() as u64;
        }
        inner.order.insert(now, (Arc::clone(version), offset));
        inner.bytes += len;
        while inner.bytes > self.bytes_max {
            let Some((_, (version, offset))) = inner.order.pop_first() else { break };
            inner.drop_segment(&version, offset);
        }
    }
}

impl Inner {
    fn drop_segment(&mut self, version: &Version, offset: u64) {
        let Some(segments) = self.versions.get_mut(version) else { return };
        if let Some(gone) = segments.remove(&offset) {
            self.bytes -= gone.bytes.len() as u64;
        }
        if segments.is_empty() {
            self.versions.remove(version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(etag: &str) -> Version {
        Arc::new(("key".to_owned(), etag.to_owned()))
    }

    #[test]
    fn bytes_are_found_by_version_and_place() {
        let cache = Cache::new(1000);
        cache.keep(&version("1"), 10, Bytes::from_static(b"abcdef"));
        assert_eq!(cache.find(&version("1"), 12).unwrap(), "cdef");
        assert_eq!(cache.find(&version("1"), 16), None);
        assert_eq!(cache.find(&version("1"), 9), None);
        assert_eq!(cache.find(&version("2"), 12), None);
        assert_eq!(cache.next(&version("1"), 3), Some(10));
        assert_eq!(cache.next(&version("1"), 10), None);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_the_limit_holds() {
        let cache = Cache::new(30);
        for offset in [0, 10, 20] {
            cache.keep(&version("1"), offset, Bytes::from(vec![offset as u8; 10]));
        }
        assert!(cache.find(&version("1"), 0).is_some());
        cache.keep(&version("1"), 30, Bytes::from(vec![3; 10]));
        assert!(cache.find(&version("1"), 10).is_none(), "the one that nobody asked for");
        for offset in [0, 20, 30] {
            assert!(cache.find(&version("1"), offset).is_some(), "{offset}");
        }
        cache.keep(&version("1"), 40, Bytes::from(vec![0; 31]));
        assert!(cache.find(&version("1"), 40).is_none(), "larger than all there is room for");
        assert_eq!(cache.inner.lock().unwrap().bytes, 30);
    }
}
