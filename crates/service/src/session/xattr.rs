//! Extended attributes: values read and written through fids.

use std::sync::{Mutex, PoisonError};

use p9::Errno;
use store::Node;

use super::Outcome;

/// XATTR_SIZE_MAX of Linux' `include/uapi/linux/limits.h`.
const VALUE_BYTES_MAX: u64 = 65_536;

/// XATTR_REPLACE of setxattr(2).
const REPLACE: u32 = 2;

/// The value of an attribute, or the list of names, as it was when the fid was made.
pub(crate) struct XattrRead {
    value: Vec<u8>,
}

impl XattrRead {
    pub(crate) fn new(value: Vec<u8>) -> Self {
        Self { value }
    }

    /// Up to `count` bytes from `offset` on; nothing beyond the end.
    pub(crate) fn part(&self, offset: u64, count: usize) -> &[u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.value.len());
        let end = start.saturating_add(count).min(self.value.len());
        &self.value[start..end]
    }
}

/// A value that arrives by writes and is set when the fid is clunked.
pub(crate) struct XattrWrite {
    name: Vec<u8>,
    size: usize,
    flags: u32,
    value: Mutex<Vec<u8>>,
}

impl XattrWrite {
    /// # Errors
    /// `E2BIG` when Linux would not take a value of that size, `EINVAL` for an empty name.
    pub(crate) fn new(name: &[u8], size: u64, flags: u32) -> Outcome<Self> {
        if name.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        if size > VALUE_BYTES_MAX {
            return Err(Errno::E2BIG.into());
        }
        Ok(Self { name: name.to_vec(), size: size as usize, flags, value: Mutex::default() })
    }

    /// Takes the next part of the value.
    ///
    /// # Errors
    /// `EINVAL` for a part out of order, `ENOSPC` for more than was announced.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Outcome<usize> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != value.len() as u64 {
            return Err(Errno::EINVAL.into());
        }
        if value.len() + data.len() > self.size {
            return Err(Errno::ENOSPC.into());
        }
        value.extend_from_slice(data);
        Ok(data.len())
    }

    /// Sets the attribute, or removes it: Linux' client asks for a removal by size 0 with
    /// XATTR_REPLACE (`fs/9p/xattr.c` gets both from `vfs_removexattr`).
    ///
    /// # Errors
    /// `EINVAL` when less arrived than was announced; else as the store.
    pub(crate) fn finish(&self, node: &dyn Node) -> Outcome {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if value.len() != self.size {
            return Err(Errno::EINVAL.into());
        }
        if value.is_empty() && self.flags == REPLACE {
            return Ok(node.remove_xattr(&self.name)?);
        }
        Ok(node.set_xattr(&self.name, &value, self.flags)?)
    }
}
