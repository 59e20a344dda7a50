//! Processors whose code this crate cannot patch yet: every install is refused, nothing else is ever reached.

use crate::PatchError;

pub(crate) const ENTRY_JUMP_BYTES: usize = 1;
pub(crate) const MOVED_BYTES_MAX: usize = 1;
pub(crate) const REACH_BYTES: usize = 1;

pub(crate) const TRAMPOLINE_BYTES_MAX: usize = 1;
pub(crate) const ISLAND_BYTES: usize = 1;

pub(crate) struct Piece;

impl Piece {
    pub(crate) fn code(&self) -> &[u8] {
        &[]
    }
}

pub(crate) struct Entry {
    pub(crate) jump_offset: usize,
    pub(crate) moved_end: usize,
}

pub(crate) fn read_entry(
    _body: &[u8],
    _address: usize,
    _is_size_known: bool,
) -> Result<Entry, PatchError> {
    Err(PatchError::UnsupportedArchitecture)
}

impl Entry {
    pub(crate) fn trampoline(&self, _address: usize) -> Result<Piece, PatchError> {
        Err(PatchError::UnsupportedArchitecture)
    }
}

pub(crate) fn overwrite(_entry: &mut [u8], _jump_offset: usize, _jump: [u8; ENTRY_JUMP_BYTES]) {}

pub(crate) fn entry_jump(_from: usize, _to: usize) -> Option<[u8; ENTRY_JUMP_BYTES]> {
    None
}

pub(crate) fn island(_to: usize) -> [u8; ISLAND_BYTES] {
    [0]
}

pub(crate) fn possible_calls(_body: &[u8], _address: usize) -> impl Iterator<Item = usize> {
    std::iter::empty()
}

pub(crate) fn is_entry_like(_address: usize) -> bool {
    false
}

pub(crate) fn size_if_calls_system(_code: &[u8], _address: usize, _number: u32) -> Option<usize> {
    None
}
