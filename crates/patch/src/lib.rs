//! Patching the entry of a function in memory, so that every call reaches a replacement: calls through the PLT, calls from
//! inside the C library itself (stdio, opendir, realpath never pass the PLT), and calls through pointers taken earlier.
//!
//! One function on its way through this crate:
//!
//! 1. [`resolve`] reads the symbol table of the libc that is mapped here and answers with a [`Target`]: entry and size. It asks
//!    neither `dlsym` nor the PLT, so no other preload library can stand in between.
//! 2. [`Patcher::install`] decodes the first instructions of the target, refuses what cannot be moved safely
//!    ([`PatchError`] says why), and writes a *trampoline* within ±2 GiB: those instructions, re-encoded for their new place,
//!    and a jump back behind them. Calling the trampoline runs the original. Nothing executable has changed so far.
//! 3. [`Patcher::commit`] makes the trampolines executable, copies every page that holds a planned entry, writes a five-byte jump
//!    into each copy, makes the copies executable, and moves them over the originals with `mremap(2)`.
//! 4. A call of the function now jumps to the replacement, directly when it lies within ±2 GiB, else by way of an *island* (an
//!    indirect jump beside the trampoline).
//!
//! No page is ever writable and executable at once, and no page of the target is ever not executable: a replaced page appears
//! in one step, so code that runs in it, in this thread or another, does not notice. Whatever a security policy can forbid
//! (memory that becomes executable) is tried on the copies first, so a refusal ([`PatchError::Forbidden`]) leaves the process
//! as it was. System calls of this crate are made directly and never enter a patched function.
//!
//! What a five-byte jump covers is known only for the architectures in `arch`; elsewhere every install answers
//! [`PatchError::UnsupportedArchitecture`].

#![warn(unsafe_op_in_unsafe_fn)]

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!("patch knows the ELF loader of glibc on Linux only");

mod arch;
mod error;
mod jump;
mod near;
mod object;
mod pages;
mod patcher;

pub use error::{Errno, PatchError};
pub use object::{Target, Versions, resolve, resolve_callee, resolve_versions};
pub use patcher::{Failure, Patcher};
