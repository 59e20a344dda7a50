//! What stands for MPI_COMM_WORLD, as `libsluice_world.so` says.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The communicator that is meant by a word that a program passed for one; see the function of this name
/// in `libsluice_world.so`.
#[inline]
pub(crate) fn own(word: usize) -> usize {
    let Some([world, own]) = words() else { return word };
    let world = world.load(Ordering::Acquire);
    let meant = if world <= u32::MAX as usize { word & u32::MAX as usize } else { word };
    if world != 0 && meant == world { own.load(Ordering::Relaxed) } else { word }
}

/// The two words of `libsluice_world.so`, if it is loaded.
fn words() -> Option<&'static [AtomicUsize; 2]> {
    static WORDS: OnceLock<Option<&[AtomicUsize; 2]>> = OnceLock::new();
    *WORDS.get_or_init(|| {
        // SAFETY: dlsym(3) with a NUL-terminated name.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"sluice_world_words".as_ptr()) };
        // SAFETY: the data of this name is two words for atomic access, in a library that was preloaded
        // and is never unloaded.
        unsafe { address.cast::<[AtomicUsize; 2]>().as_ref() }
    })
}
