//! What an access costs: parameters, and time as a function of what is asked.

mod fit;

pub use fit::Sample;

use crate::error::{Error, Result};
use crate::group::{Access, Method};

/// What one request costs whoever makes it, wherever the data is. All times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RequestCost {
    /// Whatever its size: the system call, the file system's own work.
    pub call_ns: f64,
    /// For each page of the page cache that it touches.
    pub page_ns: f64,
    /// For each byte that is carried.
    pub byte_ns: f64,
}

/// What stands behind the page cache, or at the other end of a network. All of it is free while
/// the data is at hand already.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Device {
    /// From asking to the first byte, in nanoseconds: network, file system, seek.
    pub latency_ns: f64,
    /// For each byte, by one server, in nanoseconds.
    pub byte_ns: f64,
    /// How many requests it works on at a time. 1 where more brings nothing.
    pub in_flight_max: u32,
    /// Bytes that it moves at least, whatever is asked: a page, a read-ahead, an RPC.
    pub unit_bytes: u64,
    /// Bytes that it fetches ahead at a time when blocks follow each other without leaving out a unit;
    /// 0 when it does not.
    pub read_ahead_bytes: u64,
    /// How many servers (I/O nodes) the file is striped over.
    pub servers: u32,
    /// Bytes on one server before the next comes; 0 for none.
    pub stripe_bytes: u64,
    /// Whether a write is done before the device has it, as in a page cache. Then only what has to
    /// be read for a write waits for the device.
    pub write_behind: bool,
}

/// What copying costs in the process itself.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct CopyCost {
    /// For each block, in nanoseconds.
    pub block_ns: f64,
    /// For each byte while the buffer fits the processor's cache, in nanoseconds.
    pub byte_ns: f64,
    /// For each byte of a buffer that does not, in nanoseconds.
    pub far_byte_ns: f64,
    /// How large a buffer may be to fit, in bytes.
    pub cache_bytes: u64,
}

/// What copying between the program's memory and a mapping of a file costs, while its data is at
/// hand. All times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct MapCost {
    /// For each call, which takes so many blocks.
    pub call_ns: f64,
    /// For each block.
    pub block_ns: f64,
    /// For each page of the file that it touches: what the processor has to look up.
    pub page_ns: f64,
    /// For each byte.
    pub byte_ns: f64,
    /// For each part of the file ([`MAP_PART_BYTES`]) that is touched for the first time.
    pub fault_ns: f64,
}

impl Default for MapCost {
    /// For pages of 4 KiB on current hardware.
    fn default() -> Self {
        Self { call_ns: 500.0, block_ns: 25.0, page_ns: 80.0, byte_ns: 0.06, fault_ns: 1_500.0 }
    }
}

/// How much of a mapped file is entered into the process's tables at a time, in bytes: as much as
/// Linux maps around a fault (`fault_around_bytes`).
pub const MAP_PART_BYTES: u64 = 64 << 10;

/// How many blocks one call copies from or to a mapping: `UIO_MAXIOV`, readv(2).
pub const MAP_BLOCKS_MAX: u64 = 1024;

/// All parameters of the cost model, for one place where files are.
///
/// # Source
/// Zickler 2015, §3.1 and §3.3.3, "Advanced Data Sieving Model": bandwidth, latency of network,
/// system call and file system, number and stripe size of I/O nodes, block alignment; to which are
/// added what §5.3.4 and §5.3.5 find missing: the cost of read-modify-write and of its lock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// A read whose data is at hand.
    pub read: RequestCost,
    /// A write into the page cache.
    pub write: RequestCost,
    /// What stands behind it.
    pub device: Device,
    /// Copying.
    pub copy: CopyCost,
    /// Copying from and to a mapping, where there is one.
    pub map: MapCost,
    /// For each place in memory that a vectored call names, in nanoseconds.
    pub vector_entry_ns: f64,
    /// A lock of a range and its release, in nanoseconds.
    pub lock_ns: f64,
    /// Size of a page in bytes.
    pub page_bytes: u64,
}

impl Default for Profile {
    /// A local file system on current hardware, data in the page cache or on a solid-state disk.
    /// Good enough to start from; `observe` and a measured profile make it right.
    fn default() -> Self {
        Self {
            read: RequestCost { call_ns: 230.0, page_ns: 60.0, byte_ns: 0.055 },
            write: RequestCost { call_ns: 1_300.0, page_ns: 80.0, byte_ns: 0.065 },
            device: Device {
                latency_ns: 80_000.0,
                byte_ns: 0.8,
                in_flight_max: 32,
                unit_bytes: 4096,
                read_ahead_bytes: 128 << 10,
                servers: 1,
                stripe_bytes: 0,
                write_behind: true,
            },
            copy: CopyCost {
                block_ns: 2.0,
                byte_ns: 0.04,
                far_byte_ns: 0.065,
                cache_bytes: 512 << 10,
            },
            map: MapCost::default(),
            vector_entry_ns: 20.0,
            lock_ns: 2_000.0,
            page_bytes: 4096,
        }
    }
}

/// Whether the data is at hand, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Warmth {
    /// In the page cache: the device is not asked.
    #[default]
    Warm,
    /// Not in the page cache, or there is none: the device is asked.
    Cold,
}

impl Profile {
    /// Checks that all parameters are costs.
    ///
    /// # Errors
    /// [`Error::Profile`] names the first that is negative, infinite or not a number, or a count or
    /// size of 0 where there is always one.
    pub fn check(&self) -> Result<()> {
        let times = [
            ("read.call_ns", self.read.call_ns),
            ("read.page_ns", self.read.page_ns),
            ("read.byte_ns", self.read.byte_ns),
            ("write.call_ns", self.write.call_ns),
            ("write.page_ns", self.write.page_ns),
            ("write.byte_ns", self.write.byte_ns),
            ("device.latency_ns", self.device.latency_ns),
            ("device.byte_ns", self.device.byte_ns),
            ("copy.block_ns", self.copy.block_ns),
            ("copy.byte_ns", self.copy.byte_ns),
            ("copy.far_byte_ns", self.copy.far_byte_ns),
            ("map.call_ns", self.map.call_ns),
            ("map.block_ns", self.map.block_ns),
            ("map.page_ns", self.map.page_ns),
            ("map.byte_ns", self.map.byte_ns),
            ("map.fault_ns", self.map.fault_ns),
            ("vector_entry_ns", self.vector_entry_ns),
            ("lock_ns", self.lock_ns),
        ];
        if let Some((field, value)) = times.into_iter().find(|(_, ns)| !ns.is_finite() || *ns < 0.0)
        {
            return Err(Error::Profile { field, value });
        }
        let counts = [
            ("device.in_flight_max", u64::from(self.device.in_flight_max)),
            ("device.servers", u64::from(self.device.servers)),
            ("page_bytes", self.page_bytes),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((field, _)) => Err(Error::Profile { field, value: 0.0 }),
            None => Ok(()),
        }
    }

    /// Nanoseconds that copying a byte between a buffer of `buffer_bytes` and memory takes.
    #[must_use]
    pub fn copy_byte_ns(&self, buffer_bytes: u64) -> f64 {
        if buffer_bytes <= self.copy.cache_bytes {
            self.copy.byte_ns
        } else {
            self.copy.far_byte_ns
        }
    }

    /// Nanoseconds that a request saves for each byte when its memory is a buffer of
    /// `buffer_bytes`: as much as copying saves, if that fits the processor's cache. The kernel
    /// copies, too.
    fn near_byte_ns(&self, cost: &RequestCost, buffer_bytes: u64) -> f64 {
        let saved = self.copy.far_byte_ns - self.copy_byte_ns(buffer_bytes);
        saved.clamp(0.0, 0.6 * cost.byte_ns)
    }

    /// What one request in `access` costs the process.
    #[must_use]
    pub fn request(&self, access: Access) -> &RequestCost {
        match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
        }
    }

    /// How many pages `bytes` at an unknown offset touch, on average.
    #[must_use]
    pub fn pages(&self, bytes: f64) -> f64 {
        1.0 + (bytes - 1.0).max(0.0) / self.page_bytes as f64
    }

    /// Nanoseconds that the device adds to one request for `bytes` at an unknown offset, when
    /// `in_flight` are under way together, and the one before it began `stride` bytes earlier.
    #[must_use]
    pub fn device_ns(&self, bytes: f64, stride: f64, in_flight: u32) -> f64 {
        let device = &self.device;
        let together = f64::from(in_flight.min(device.in_flight_max).max(1));
        // A request that spans stripes is served by several at once; several requests likewise.
        let spread = match device.stripe_bytes {
            0 => 1.0,
            stripe => 1.0 + bytes / stripe as f64,
        };
        let servers = (spread * together).min(f64::from(device.servers)).max(1.0);
        let byte_ns = device.byte_ns / servers;
        let ahead = device.read_ahead_bytes as f64;
        if ahead > 0.0 && stride - bytes < device.unit_bytes as f64 && stride < ahead {
            // All units are wanted, and many come with each request to the device.
            return stride * (byte_ns + device.latency_ns / together / ahead);
        }
        // Whole units, wherever in one the request begins.
        let moved = bytes + device.unit_bytes.saturating_sub(1) as f64;
        device.latency_ns / together + moved * byte_ns
    }
}

/// The circumstances of an access, on which its cost depends besides its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Circumstances {
    /// Reading or writing.
    pub access: Access,
    /// Whether the data is at hand.
    pub warmth: Warmth,
    /// How many requests are under way together; 1 for one after the other.
    pub in_flight: u32,
    /// Whether what is read in order to be written is locked meanwhile.
    pub locked: bool,
}

/// The size of one group, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extents {
    /// Bytes of the file from the first to the last wanted one.
    pub file: f64,
    /// Wanted bytes.
    pub data: f64,
    /// Pieces of data.
    pub blocks: f64,
}

impl Profile {
    /// One call that carries `bytes`: what the process itself pays.
    fn call_ns(&self, access: Access, bytes: f64) -> f64 {
        let cost = self.request(access);
        cost.call_ns + cost.page_ns * self.pages(bytes) + cost.byte_ns * bytes
    }

    /// One read of `bytes` that has nothing to do with the one before.
    fn read_ns(&self, bytes: f64, now: &Circumstances) -> f64 {
        let device = match now.warmth {
            Warmth::Warm => 0.0,
            Warmth::Cold => self.device_ns(bytes, f64::INFINITY, now.in_flight),
        };
        self.call_ns(Access::Read, bytes) + device
    }

    /// One write of `bytes` that have just been read.
    fn write_back_ns(&self, bytes: f64, now: &Circumstances) -> f64 {
        let device = match (now.warmth, self.device.write_behind) {
            (Warmth::Cold, false) => self.device_ns(bytes, f64::INFINITY, now.in_flight),
            (Warmth::Cold, true) | (Warmth::Warm, _) => 0.0,
        };
        self.call_ns(Access::Write, bytes) + device
    }

    fn lock(&self, now: &Circumstances) -> f64 {
        if now.locked { self.lock_ns } else { 0.0 }
    }

    /// Nanoseconds for one block of `bytes` by a call of its own, when the block before it began
    /// `stride` bytes earlier.
    #[must_use]
    pub fn each_ns(&self, bytes: f64, stride: f64, now: &Circumstances) -> f64 {
        let device = match (now.warmth, now.access) {
            (Warmth::Warm, _) => 0.0,
            // A page that is written in part must be there: the first and the last.
            (Warmth::Cold, Access::Write) if self.device.write_behind => {
                let wanted = bytes.min(2.0 * self.page_bytes as f64);
                self.device_ns(wanted, stride - bytes + wanted, now.in_flight)
            }
            (Warmth::Cold, _) => self.device_ns(bytes, stride, now.in_flight),
        };
        self.call_ns(now.access, bytes) + device
    }

    /// Nanoseconds for a group that is carried through a window of at most `window_bytes`.
    #[must_use]
    pub fn window_ns(&self, size: &Extents, window_bytes: u64, now: &Circumstances) -> f64 {
        let copy = size.blocks * self.copy.block_ns + size.data * self.copy_byte_ns(window_bytes);
        let read =
            self.read_ns(size.file, now) - size.file * self.near_byte_ns(&self.read, window_bytes);
        let write = match now.access {
            Access::Read => 0.0,
            Access::Write => {
                self.write_back_ns(size.file, now) + self.lock(now)
                    - size.file * self.near_byte_ns(&self.write, window_bytes)
            }
        };
        copy + read + write
    }

    /// Nanoseconds for a group by a method: [`Profile::each_ns`] for each of its blocks, taken to be
    /// alike, [`Profile::window_ns`] or [`Profile::vector_ns`].
    #[must_use]
    pub fn group_ns(
        &self,
        method: Method,
        size: &Extents,
        window_bytes: u64,
        now: &Circumstances,
    ) -> f64 {
        match method {
            Method::Each => {
                let blocks = size.blocks.max(1.0);
                blocks * self.each_ns(size.data / blocks, size.file / blocks, now)
            }
            Method::Window => self.window_ns(size, window_bytes, now),
            Method::Vector => self.vector_ns(size, now),
            Method::Mapped => self.mapped_ns(size),
        }
    }

    /// Nanoseconds for blocks that are copied from or to a mapping all of whose parts have been
    /// touched before.
    #[must_use]
    pub fn mapped_ns(&self, size: &Extents) -> f64 {
        let calls = (size.blocks / MAP_BLOCKS_MAX as f64).max(1.0);
        calls * self.map.call_ns + self.mapped_blocks_ns(size)
    }

    /// The same without what the calls cost.
    fn mapped_blocks_ns(&self, size: &Extents) -> f64 {
        let page = self.page_bytes as f64;
        // No more pages than there are, and no more than the blocks touch.
        let pages = (size.blocks + size.data / page).min(size.file / page);
        size.blocks * self.map.block_ns + pages * self.map.page_ns + size.data * self.map.byte_ns
    }

    /// Nanoseconds for a group that one vectored call carries.
    #[must_use]
    pub fn vector_ns(&self, size: &Extents, now: &Circumstances) -> f64 {
        let entries = (2.0 * size.blocks - 1.0) * self.vector_entry_ns;
        entries
            + self.read_ns(size.file, now)
            + match now.access {
                Access::Read => 0.0,
                Access::Write => self.write_back_ns(size.file, now) + self.lock(now),
            }
    }
}
