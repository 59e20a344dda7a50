//! What depends on the processor: reading an entry, moving its instructions, and jumps.
//!
//! Every architecture gives the same items. For patching: [`ENTRY_JUMP_BYTES`], [`MOVED_BYTES_MAX`], [`REACH_BYTES`],
//! [`TRAMPOLINE_BYTES_MAX`], [`ISLAND_BYTES`], [`read_entry`] with what an [`Entry`] can do, [`entry_jump`], [`overwrite`] and [`island`]. For finding hidden functions: [`possible_calls`], [`is_entry_like`] and
//! [`size_if_calls_system`]. Everything else in this crate is written in their terms.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(target_arch = "x86_64"))]
mod unsupported;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use unsupported::*;
