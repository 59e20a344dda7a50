//! Planning patches and carrying them out together.

use crate::arch::{
    ENTRY_JUMP_BYTES, Entry, ISLAND_BYTES, MOVED_BYTES_MAX, TRAMPOLINE_BYTES_MAX, entry_jump,
    island, overwrite, read_entry,
};
use crate::near::Pool;
use crate::object::code_around;
use crate::pages::{Copies, runs_of};
use crate::{PatchError, Target};
use std::ops::Range;

/// A planned patch that [`Patcher::commit`] could not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The name it was installed under.
    pub name: &'static str,
    /// Why.
    pub error: PatchError,
}

/// Patches functions in batches: [`install`](Self::install) plans, [`commit`](Self::commit) carries out.
///
/// Its memory of what it patched is what tells its own jumps from a stranger's, so a process should keep one patcher for good.
/// Patches cannot be taken back, and outlive the patcher.
#[derive(Debug, Default)]
pub struct Patcher {
    patches: Vec<Patch>,
    /// How many of `patches` are committed; they come first.
    committed: usize,
    pools: Vec<Pool>,
    /// Code segments seen so far.
    segments: Vec<Range<usize>>,
    /// Entry addresses, ascending, each with the place of its patch in `patches`.
    known: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct Patch {
    name: &'static str,
    entry_address: usize,
    replacement: usize,
    trampoline: usize,
    jump_offset: usize,
    moved_end: usize,
    jump: [u8; ENTRY_JUMP_BYTES],
    /// The code as it was when the patch was planned, as far as it moves.
    original: [u8; MOVED_BYTES_MAX],
}

impl Patch {
    fn range(&self) -> Range<usize> {
        self.entry_address..self.entry_address + self.moved_end
    }
}

impl Patcher {
    /// A patcher with nothing planned.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), with room for as many patches as will be planned.
    #[must_use]
    pub fn with_capacity(patches: usize) -> Self {
        Patcher {
            patches: Vec::with_capacity(patches),
            known: Vec::with_capacity(patches),
            ..Self::default()
        }
    }

    /// Plans that every call of `target` shall reach `replacement`, and answers the trampoline: the address to call instead of
    /// the original. It can be called only after [`commit`](Self::commit) returned without a failure of this `name`; after a
    /// failure, the function itself is the original still.
    ///
    /// Installing the same entry again, as under another name of the same function, answers the same trampoline.
    ///
    /// # Safety
    /// - `target.entry` is the entry of a function, its size (if given) is that function's, no other function jumps into
    ///   the first 19 bytes behind the entry, and its object stays loaded.
    /// - `replacement` is code that can be jumped to wherever `target` can be called, as long as the process lives: same calling
    ///   convention, same arguments. For a function that returns twice or takes its return address off the stack, as vfork(2)
    ///   does, it must reach the trampoline by a jump, with the stack as it found it.
    ///
    /// # Errors
    /// Why this function cannot be patched; it and what else is planned stay as they are.
    pub unsafe fn install(
        &mut self,
        name: &'static str,
        target: Target,
        replacement: *const u8,
    ) -> Result<*const u8, PatchError> {
        let (address, replacement) = (target.entry as usize, replacement as usize);
        let place = match self.known.binary_search_by_key(&address, |(known, _)| *known) {
            Err(place) => place,
            Ok(place) => {
                let patch = &self.patches[self.known[place].1];
                return if patch.replacement == replacement {
                    Ok(patch.trampoline as *const u8)
                } else {
                    Err(PatchError::OtherReplacement { first_name: patch.name })
                };
            }
        };
        let segment = self.segment_around(address)?;
        let mapped_bytes = segment.end - address;
        let body_bytes =
            target.size_bytes.map_or(mapped_bytes, |size_bytes| size_bytes.min(mapped_bytes));
        // SAFETY: address..address+body_bytes lies in a readable segment of an object that stays loaded (caller).
        let body = unsafe { std::slice::from_raw_parts(target.entry, body_bytes) };
        let entry = read_entry(body, address, target.size_bytes.is_some())?;
        let (trampoline, jump) = self.write_trampoline(&entry, address, replacement)?;
        let mut original = [0; MOVED_BYTES_MAX];
        original[..entry.moved_end].copy_from_slice(&body[..entry.moved_end]);
        self.known.insert(place, (address, self.patches.len()));
        self.patches.push(Patch {
            name,
            entry_address: address,
            replacement,
            trampoline,
            jump_offset: entry.jump_offset,
            moved_end: entry.moved_end,
            jump,
            original,
        });
        Ok(trampoline as *const u8)
    }

    /// Carries out what is planned, and answers what could not be. Either all of a function's patch is in force afterwards or
    /// nothing of it. From the moment it is called on, replacements may be entered: whatever they need must be ready.
    ///
    /// It is meant for a time before other threads run. While they run, the only danger is a thread stopped exactly within the
    /// first instructions of a patched function.
    #[must_use = "functions that could not be patched are original still"]
    pub fn commit(&mut self) -> Vec<Failure> {
        let planned = &self.patches[self.committed..];
        // From the first replaced page on, memory allocation may enter a replacement (of mmap, say): room is made before.
        let mut failures = Vec::with_capacity(planned.len());
        let mut failed_addresses = Vec::with_capacity(planned.len());
        let mut fail = |patch: &Patch, error: PatchError| {
            failures.push(Failure { name: patch.name, error });
            failed_addresses.push(patch.entry_address);
        };
        let outcome = seal(&mut self.pools).and_then(|()| {
            let runs = runs_of(planned.iter().map(Patch::range), &self.segments);
            if runs.is_empty() {
                return Ok(());
            }
            // SAFETY: the runs are pages of code segments, which `install` found readable.
            let mut copies = unsafe { Copies::of(runs)? };
            for patch in planned {
                let entry = copies.bytes(patch.range());
                if *entry == patch.original[..entry.len()] {
                    overwrite(entry, patch.jump_offset, patch.jump);
                } else {
                    fail(patch, PatchError::Changed);
                }
            }
            // SAFETY: the copies differ from the originals in entries only, and those lead to replacements, or islands to them,
            // that are executable (sealed above) and promised to be ready (install, commit).
            unsafe {
                copies.replace(|run, error| {
                    let in_run = planned.iter().filter(|patch| run.contains(&patch.entry_address));
                    in_run.for_each(|patch| fail(patch, error.clone()));
                })
            }
        });
        if let Err(error) = outcome {
            failures.clear();
            failed_addresses.clear();
            for patch in planned {
                failures.push(Failure { name: patch.name, error: error.clone() });
                failed_addresses.push(patch.entry_address);
            }
        }
        if !failed_addresses.is_empty() {
            self.patches.retain(|patch| !failed_addresses.contains(&patch.entry_address));
            let places = self.patches.iter().enumerate();
            self.known = places.map(|(index, patch)| (patch.entry_address, index)).collect();
            self.known.sort_unstable();
        }
        self.committed = self.patches.len();
        failures
    }

    /// The code segment around `address`, remembered: most functions lie in one.
    fn segment_around(&mut self, address: usize) -> Result<Range<usize>, PatchError> {
        if let Some(segment) = self.segments.iter().find(|segment| segment.contains(&address)) {
            return Ok(segment.clone());
        }
        let segment = code_around(address).ok_or(PatchError::NotCode)?;
        self.segments.push(segment.clone());
        Ok(segment)
    }

    /// Writes the trampoline of `entry` and, where the replacement is out of the jump's reach, an island. Answers the
    /// trampoline's address and the jump for the entry.
    fn write_trampoline(
        &mut self,
        entry: &Entry,
        address: usize,
        replacement: usize,
    ) -> Result<(usize, [u8; ENTRY_JUMP_BYTES]), PatchError> {
        // A trampoline and an island, each with padding.
        const ROOM_BYTES: usize = (TRAMPOLINE_BYTES_MAX + ISLAND_BYTES).next_multiple_of(16) + 16;
        let pool = match self
            .pools
            .iter()
            .position(|pool| pool.has_room(ROOM_BYTES) && pool.reaches(address))
        {
            Some(index) => &mut self.pools[index],
            None => {
                self.pools.push(Pool::near(address)?);
                self.pools.last_mut().expect("pushed just now")
            }
        };
        let code = entry.trampoline(pool.next_address())?;
        let trampoline = pool.push(code.code());
        let jump_address = address + entry.jump_offset;
        let jump = match entry_jump(jump_address, replacement) {
            Some(jump) => jump,
            None => {
                let island_address = pool.push(&island(replacement));
                entry_jump(jump_address, island_address).ok_or(PatchError::OutOfReach)?
            }
        };
        Ok((trampoline, jump))
    }
}

/// Makes all trampolines executable.
fn seal(pools: &mut [Pool]) -> Result<(), PatchError> {
    pools.iter_mut().try_for_each(Pool::seal)
}
