//! Memory for trampolines and islands, close enough to the code they serve.

use crate::pages::page_len;
use crate::{PatchError, arch::REACH_BYTES};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::ffi::c_void;

/// One pool serves some hundred functions; another is made when it is full.
const POOL_BYTES: usize = 16 << 10;
/// Pieces start on this boundary, as functions do.
const ALIGNMENT_BYTES: usize = 16;

/// A mapping that is written first and executed later, never both.
#[derive(Debug)]
pub(crate) struct Pool {
    start: usize,
    used_bytes: usize,
    is_sealed: bool,
}

impl Pool {
    /// Maps a writable pool whose every byte is within reach of `address`.
    pub(crate) fn near(address: usize) -> Result<Self, PatchError> {
        // The kernel fills its mapping area from the top, so what it picks nearly always is a few MiB below the libraries.
        let anywhere = Self::map(0, MapFlags::PRIVATE)?;
        if anywhere.reaches(address) {
            return Ok(anywhere);
        }
        drop(anywhere);
        let maps =
            std::fs::read_to_string("/proc/self/maps").map_err(|_| PatchError::NoMemoryNear)?;
        for hint in free_places_near(&maps, address) {
            // A place may be refused though it is free (guard gap of a stack, an address limit): the next one will do.
            if let Ok(pool) = Self::map(hint, MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE)
                && pool.reaches(address)
            {
                return Ok(pool);
            }
        }
        Err(PatchError::NoMemoryNear)
    }

    fn map(hint: usize, flags: MapFlags) -> Result<Self, PatchError> {
        // SAFETY: mmap(2) of new anonymous memory; without MAP_FIXED no existing mapping is touched (FIXED_NOREPLACE fails
        // instead, and kernels that do not know it take the hint as a hint).
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                hint as *mut c_void,
                POOL_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }
        .map_err(|errno| PatchError::from_system("mmap", errno))?;
        Ok(Pool { start: start as usize, used_bytes: 0, is_sealed: false })
    }

    /// Whether all of the pool is within reach of `address` in both directions.
    pub(crate) fn reaches(&self, address: usize) -> bool {
        address.abs_diff(self.start) <= REACH_BYTES
            && address.abs_diff(self.start + POOL_BYTES) <= REACH_BYTES
    }

    /// Whether [`Pool::push`] of `size_bytes` would succeed.
    pub(crate) fn has_room(&self, size_bytes: usize) -> bool {
        !self.is_sealed && self.used_bytes + size_bytes <= POOL_BYTES
    }

    /// Where the next piece will lie.
    pub(crate) fn next_address(&self) -> usize {
        self.start + self.used_bytes
    }

    /// Appends a piece of code and answers where it lies. The caller has asked [`Pool::has_room`].
    pub(crate) fn push(&mut self, code: &[u8]) -> usize {
        assert!(self.has_room(code.len()), "the caller made sure of room");
        let address = self.next_address();
        // SAFETY: has_room: the pool is still writable, and address..address+len lies in the mapping, which this value owns.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), address as *mut u8, code.len()) };
        self.used_bytes =
            (self.used_bytes + code.len()).next_multiple_of(ALIGNMENT_BYTES).min(POOL_BYTES);
        address
    }

    /// Ends writing and begins execution. The mapping stays for the life of the process from here on.
    pub(crate) fn seal(&mut self) -> Result<(), PatchError> {
        if self.is_sealed {
            return Ok(());
        }
        // SAFETY: mprotect(2) of this value's own mapping.
        unsafe {
            rustix::mm::mprotect(
                self.start as *mut c_void,
                POOL_BYTES,
                MprotectFlags::READ | MprotectFlags::EXEC,
            )
        }
        .map_err(|errno| PatchError::from_system("mprotect", errno))?;
        self.is_sealed = true;
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.is_sealed {
            // SAFETY: munmap(2) of this value's own mapping; it was never executable, so nobody runs in it.
            let _ = unsafe { rustix::mm::munmap(self.start as *mut c_void, POOL_BYTES) };
        }
    }
}

/// Addresses of free gaps within reach of `address`, nearest first, from the text of /proc/self/maps (proc(5)).
fn free_places_near(maps: &str, address: usize) -> Vec<usize> {
    let page = page_len();
    let mut places = Vec::new();
    let mut gap_start = REACH_BYTES.min(1 << 20); // far above vm.mmap_min_addr
    let mappings = maps.lines().filter_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let end = rest.split(' ').next()?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    });
    for (start, end) in mappings {
        // One page stays free on either side: a stack below or above must be able to see its guard.
        if start > gap_start && start - gap_start >= POOL_BYTES + 2 * page {
            let lowest = gap_start + page;
            let highest = (start - page - POOL_BYTES) / page * page;
            places.push(address.clamp(lowest, highest) / page * page);
        }
        gap_start = gap_start.max(end);
    }
    places.retain(|place| place.abs_diff(address) <= REACH_BYTES);
    places.sort_by_key(|place| place.abs_diff(address));
    places.truncate(64);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_found_on_either_side_and_the_nearest_comes_first() {
        let maps = "7f0000000000-7f0000100000 r--p 0 0 0 /a\n7f0000200000-7f0000300000 r-xp 0 0 0 /b\n7f0000301000-7f0000400000 rw-p 0 0 0\n";
        let places = free_places_near(maps, 0x7f00_0020_0000);
        let page = page_len();
        assert_eq!(places[0], 0x7f00_0020_0000 - page - POOL_BYTES);
        assert!(places.iter().all(|place| place.abs_diff(0x7f00_0020_0000) <= REACH_BYTES));
        assert!(!places.contains(&0x7f00_0030_0000), "a gap of one page is too small");
    }

    #[test]
    fn a_far_away_pool_is_made_near_the_address_asked_for() {
        // Far from every library: the kernel's own choice cannot be in reach.
        let far = 0x1000_0000_0000;
        let mut pool = Pool::near(far).unwrap();
        assert!(pool.reaches(far));
        let first = pool.push(&[0xc3]);
        let second = pool.push(&[0xc3]);
        assert_eq!(second - first, ALIGNMENT_BYTES);
        pool.seal().unwrap();
        assert!(!pool.has_room(1), "a sealed pool takes nothing more");
    }
}
