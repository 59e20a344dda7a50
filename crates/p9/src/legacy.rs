//! Base 9P2000's file description and open modes, for clients older than 9P2000.L.

use bitflags::bitflags;

use crate::wire::{Field, Name, Reader, WireError};
use crate::{Errno, OpenFlags, Qid};

/// The open mode byte of `Topen` and `Tcreate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegacyMode(pub u8);

impl LegacyMode {
    /// Remove on clunk.
    pub const REMOVE_ON_CLOSE: u8 = 0x40;

    /// The mode in terms of open(2).
    ///
    /// # Errors
    /// `EINVAL` for `OEXEC` together with truncation and for unknown bits.
    pub fn to_flags(self) -> Result<OpenFlags, Errno> {
        let mut flags = match self.0 & 3 {
            0 | 3 => OpenFlags::empty(),
            1 => OpenFlags::WRITE_ONLY,
            _ => OpenFlags::READ_WRITE,
        };
        if self.0 & 0x10 != 0 {
            if !flags.writes() {
                return Err(Errno::EINVAL);
            }
            flags |= OpenFlags::TRUNCATE;
        }
        if self.0 & !(0x3 | 0x10 | 0x20 | Self::REMOVE_ON_CLOSE) != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(flags)
    }
}

impl Field<'_> for LegacyMode {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self(u8::get(from)?))
    }
}

bitflags! {
    /// The permission word of a [`LegacyStat`]: type bits above nine permission bits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct LegacyPermission: u32 {
        /// Directory (`DMDIR`).
        const DIRECTORY = 0x8000_0000;
        /// Append only (`DMAPPEND`).
        const APPEND = 0x4000_0000;
    }
}

/// A file's description: stat(5) of the Plan 9 manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegacyStat<'a> {
    /// For the service's use.
    pub kind: u16,
    /// For the service's use.
    pub device: u32,
    /// Identity.
    pub qid: Qid,
    /// Permission and type.
    pub mode: u32,
    /// Last access, seconds.
    pub atime: u32,
    /// Last change, seconds.
    pub mtime: u32,
    /// Bytes; 0 for directories.
    pub length: u64,
    /// Last element of the path.
    pub name: Name<'a>,
    /// Owner.
    pub uid: Name<'a>,
    /// Group.
    pub gid: Name<'a>,
    /// Who changed it last.
    pub muid: Name<'a>,
}

impl<'a> LegacyStat<'a> {
    /// `DMDIR`.
    pub const DIRECTORY: u32 = LegacyPermission::DIRECTORY.bits();

    /// What a `Twstat` fills into integer fields that it leaves alone.
    pub const UNTOUCHED: u32 = u32::MAX;

    /// Appends `size[2]` and the fields: one entry of a directory read, or the inside of a
    /// `Rstat`.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        0_u16.put(out);
        self.kind.put(out);
        self.device.put(out);
        self.qid.put(out);
        self.mode.put(out);
        self.atime.put(out);
        self.mtime.put(out);
        self.length.put(out);
        for name in [self.name, self.uid, self.gid, self.muid] {
            name.put(out);
        }
        let size = (out.len() - start - 2) as u16;
        out[start..start + 2].copy_from_slice(&size.to_le_bytes());
    }

    /// Reads one entry and says how many bytes it took.
    ///
    /// # Errors
    /// [`WireError`] when the bytes end early or the size is not that of the fields.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, usize), WireError> {
        let mut outer = Reader::new(bytes);
        let claimed = usize::from(u16::get(&mut outer)?);
        let mut from = Reader::new(outer.take(claimed, "stat")?);
        let stat = Self {
            kind: Field::get(&mut from)?,
            device: Field::get(&mut from)?,
            qid: Field::get(&mut from)?,
            mode: Field::get(&mut from)?,
            atime: Field::get(&mut from)?,
            mtime: Field::get(&mut from)?,
            length: Field::get(&mut from)?,
            name: Field::get(&mut from)?,
            uid: Field::get(&mut from)?,
            gid: Field::get(&mut from)?,
            muid: Field::get(&mut from)?,
        };
        if from.left() != 0 {
            return Err(WireError::StatLength { claimed, held: claimed - from.left() });
        }
        Ok((stat, claimed + 2))
    }
}

/// In `Rstat` and `Twstat` the entry is wrapped once more: `n[2] size[2] …`.
impl<'a> Field<'a> for LegacyStat<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        0_u16.put(out);
        LegacyStat::put(self, out);
        let size = (out.len() - start - 2) as u16;
        out[start..start + 2].copy_from_slice(&size.to_le_bytes());
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let claimed = usize::from(u16::get(from)?);
        let (stat, held) = Self::parse(from.take(claimed, "stat")?)?;
        if held != claimed {
            return Err(WireError::StatLength { claimed, held });
        }
        Ok(stat)
    }
}
