//! The model's costs, taken apart into what depends on a group's start, its end and its blocks.

use crate::group::Method;
use crate::model::{Circumstances, Extents, Profile, Warmth};

/// What a group through one buffer costs, taken apart: `fixed` once, `slope` for each byte that it
/// spans, and for each block and byte of data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    pub(super) fixed: f64,
    pub(super) slope: f64,
    pub(super) block: f64,
    pub(super) byte: f64,
    /// For each stripe that it touches, and the size of one.
    pub(super) stripe: f64,
    pub(super) stripe_bytes: u64,
    /// Offset of the row's first byte, from which files are counted here.
    pub(super) origin: u64,
}

/// What a block by itself costs: `fixed` for one byte and `slope` for each further; what the device
/// adds to that depends on the distance of the block before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Single<'a> {
    /// How it is reached.
    pub(super) method: Method,
    fixed: f64,
    slope: f64,
    factor: f64,
    /// Where the device is asked.
    cold: Option<(&'a Profile, Circumstances)>,
}

impl<'a> Single<'a> {
    /// By a call of its own; all of it multiplied by `factor`.
    pub(super) fn each(profile: &'a Profile, now: &Circumstances, factor: f64) -> Self {
        let warm = Circumstances { warmth: Warmth::Warm, ..*now };
        let fixed = factor * profile.each_ns(1.0, 1.0, &warm);
        let slope = (factor * profile.each_ns(4097.0, 4097.0, &warm) - fixed) / 4096.0;
        let cold = (now.warmth == Warmth::Cold).then_some((profile, *now));
        Self { method: Method::Each, fixed, slope, factor, cold }
    }

    /// Through a mapping, in a row of blocks; all of it multiplied by `factor`.
    pub(super) fn mapped(profile: &'a Profile, row: &Extents, factor: f64) -> Self {
        let map = &profile.map;
        let slope = factor * map.byte_ns;
        // What calls and pages cost is shared by the blocks.
        let rest = factor * profile.mapped_ns(row) - slope * row.data;
        Self { method: Method::Mapped, fixed: rest / row.blocks + slope, slope, factor, cold: None }
    }

    /// A block of `len` bytes that begins `stride` bytes after the one before.
    #[inline]
    pub(super) fn ns(&self, len: u64, stride: u64) -> f64 {
        match &self.cold {
            None => self.fixed + self.slope * float(len - 1),
            Some((profile, now)) => self.factor * profile.each_ns(float(len), float(stride), now),
        }
    }
}

/// File offsets are no more than 63 bits, and signed numbers are the ones that convert in one
/// instruction.
#[inline]
pub(super) fn float(bytes: u64) -> f64 {
    bytes as i64 as f64
}

impl Linear {
    /// Takes a cost apart that is linear in each of the three, by asking for four groups.
    pub(super) fn of(cost: impl Fn(&Extents) -> f64, stripes: (u64, f64), origin: u64) -> Self {
        // Far from 0, where the model's lower limits bend it.
        let base = Extents { file: 65536.0, data: 1024.0, blocks: 16.0 };
        let at = cost(&base);
        let slope = (cost(&Extents { file: base.file * 2.0, ..base }) - at) / base.file;
        let byte = (cost(&Extents { data: base.data * 2.0, ..base }) - at) / base.data;
        let block = (cost(&Extents { blocks: base.blocks * 2.0, ..base }) - at) / base.blocks;
        let fixed = at - slope * base.file - byte * base.data - block * base.blocks;
        Self { fixed, slope, block, byte, stripe: stripes.1, stripe_bytes: stripes.0, origin }
    }

    /// What depends on where a group ends.
    #[inline]
    pub(super) fn end(&self, file: u64) -> f64 {
        let bytes = self.slope * float(file);
        if self.stripe_bytes == 0 {
            return bytes;
        }
        bytes + self.stripe * float((self.origin + file).div_ceil(self.stripe_bytes))
    }

    /// What depends on where it starts, to be taken off.
    #[inline]
    pub(super) fn start(&self, file: u64) -> f64 {
        let bytes = self.slope * float(file);
        if self.stripe_bytes == 0 {
            return bytes;
        }
        bytes + self.stripe * float((self.origin + file) / self.stripe_bytes)
    }

    /// What depends on a block of `len` bytes.
    #[inline]
    pub(super) fn each(&self, len: u64) -> f64 {
        self.block + self.byte * float(len)
    }
}
