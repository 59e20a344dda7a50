//! The markers of Fortran's unformatted sequential records.
//!
//! # Source
//! The GNU Fortran Compiler, "File format of unformatted sequential files": a record is preceded
//! and followed by its length. Of a record longer than a 4-byte marker may tell (2^31 - 9 bytes,
//! `-fmax-subrecord-length`), subrecords are written; the leading marker is negative if another
//! subrecord follows, the trailing one if another preceded.

use drepl::definition::{ByteOrder, Marker};

use super::SEAMS_MAX;
use super::walk::Manner;

/// The most bytes that gfortran writes between two 4-byte markers.
pub(super) const SUBRECORD_MAX: u64 = (1 << 31) - 9;

/// The markers of one record.
pub(super) struct Markers {
    pub(super) leading: [u8; 8],
    pub(super) trailing: [u8; 8],
    /// Between subrecords, the trailing marker of one and the leading marker of the next; each with
    /// its place in the payload.
    pub(super) between: Vec<(u64, [u8; 8])>,
}

/// The bytes of one marker.
pub(super) fn width(marker: Marker) -> u64 {
    match marker {
        Marker::Four => 4,
        Marker::Eight => 8,
    }
}

/// `None`: there would be too many subrecords.
pub(super) fn markers(marker: Marker, payload: u64, manner: &Manner) -> Option<Markers> {
    let (big, most) = (manner.byte_order == ByteOrder::Big, manner.subrecord_max);
    match marker {
        Marker::Eight => {
            let bytes = if big { payload.to_be_bytes() } else { payload.to_le_bytes() };
            Some(Markers { leading: bytes, trailing: bytes, between: Vec::new() })
        }
        Marker::Four => {
            let pieces = payload.div_ceil(most).max(1);
            if pieces > SEAMS_MAX {
                return None;
            }
            let length = |piece: u64| (payload - piece * most).min(most) as i32;
            let sign = |negative: bool| if negative { -1 } else { 1 };
            let leading = |piece: u64| four(length(piece) * sign(piece + 1 < pieces), big);
            let trailing = |piece: u64| four(length(piece) * sign(piece > 0), big);
            let between = (1..pieces)
                .map(|piece| {
                    let mut both = trailing(piece - 1);
                    both[4..].copy_from_slice(&leading(piece)[..4]);
                    (piece * most, both)
                })
                .collect();
            Some(Markers { leading: leading(0), trailing: trailing(pieces - 1), between })
        }
    }
}

fn four(value: i32, big: bool) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&if big { value.to_be_bytes() } else { value.to_le_bytes() });
    bytes
}
