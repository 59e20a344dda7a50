//! `libsluice.a`: the same library for a program that links itself.
//!
//! ```text
//! cc program.o -Wl,-u,sluice_start libsluice_static.a -lpthread -ldl -lm -o program
//! ```
//!
//! The program's libc must be the shared one: the entries of its functions are what is patched. The
//! option names the symbol below, so that the linker takes this archive in although the program calls
//! nothing of it; URIs in paths then work without `sluice run`, and mapped prefixes by the settings that
//! `sluice run` leaves in the environment.

/// Puts the hooks in place; called before `main` by itself.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_start() {
    sluice::start();
}

/// Runs [`sluice_start`] before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = sluice_start;
