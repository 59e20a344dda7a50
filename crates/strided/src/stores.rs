//! Where stores go: to the caches, or past them.
//!
//! A store to memory that is not in the cache brings it there first, to change a part of it. Where
//! whole lines are written, that is wasted: stores past the caches ("non-temporal", "streaming")
//! leave it out, which is a third of the memory's work when a large array is converted. They are for
//! what is too large to be found in the cache later: data that would have stayed there they throw
//! out, and whoever reads them next pays three times.

/// How the bytes of a copy are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    /// As usual.
    Cached,
    /// Past the caches, where there is a loop that can. A hint: nobody may rely on it.
    Streaming,
}

/// A streaming store writes so many bytes, at a multiple of them.
pub(crate) const ALIGNMENT: usize = 64;

impl Stores {
    /// For a copy that writes so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes >= threshold() { Self::Streaming } else { Self::Cached }
    }

    /// How many elements of `size` bytes lie before the first one that is aligned. `None`: stores
    /// go to the caches, or no element is.
    pub(crate) fn head(self, dst: &[u8], size: usize) -> Option<usize> {
        let first = dst.as_ptr().addr();
        let aligned = |count: &usize| (first + count * size).is_multiple_of(ALIGNMENT);
        if self == Self::Streaming { (0..ALIGNMENT).find(aligned) } else { None }
    }

    /// Whether stores are to go past the caches, to a slice that begins like this one.
    pub(crate) fn streams_to(self, dst: &[u8]) -> bool {
        self == Self::Streaming && dst.as_ptr().addr().is_multiple_of(ALIGNMENT)
    }
}

/// From how many bytes on: more than what is left of the last cache, half of which the source takes.
fn threshold() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        use std::sync::OnceLock;
        static BYTES: OnceLock<usize> = OnceLock::new();
        *BYTES.get_or_init(|| crate::level::last_cache_bytes().unwrap_or(CACHE_BYTES) / 2)
    }
    #[cfg(not(target_arch = "x86_64"))]
    usize::MAX
}

/// What a last cache has where the processor does not say.
#[cfg(target_arch = "x86_64")]
const CACHE_BYTES: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streaming_stores_begin_where_an_element_is_aligned() {
        let bytes = vec![0_u8; 1 << 10];
        let aligned = bytes.as_ptr().align_offset(ALIGNMENT);
        let head = |skip: usize, size| Stores::Streaming.head(&bytes[aligned + skip..], size);
        assert_eq!((head(0, 12), head(4, 4), head(4, 8)), (Some(0), Some(15), None));
        // 28 + 3 * 12 = 64
        assert_eq!((head(28, 12), head(1, 4)), (Some(3), None));
        assert_eq!(Stores::Cached.head(&bytes, 4), None);
        assert_eq!((Stores::of(0), Stores::of(usize::MAX - 1)).0, Stores::Cached);
    }
}
