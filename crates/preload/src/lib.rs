//! `libsluice.so`: the files of an unmodified program, wherever they are.
//!
//! It is loaded into a program by `LD_PRELOAD` (or linked into it), and stands before libc's functions
//! that open, read, write, list and change files. Calls that do not concern a redirected file cost a
//! few nanoseconds and are otherwise untouched.
//!
//! The way of one `fread(3)` of a redirected file:
//!
//! 1. Before `main`, [`start`] reads the settings that `sluice run` left in the environment, finds
//!    inherited descriptors, and [`install`] patches the entries of libc's functions.
//! 2. The program's `fopen(3)` is libc's own; it calls libc's `open`, whose patched entry is
//!    `hooks::open`. The path leads to a service (`context`), so `ops::open` opens it there and gives
//!    out a real descriptor (`state`), which `table` remembers.
//! 3. libc's `fread(3)` calls its `read`, whose patched entry is `hooks::data`. One load from `table`
//!    says that the descriptor is ours; `ops::data` asks the `RemoteFile`, which has read ahead.
//! 4. A descriptor that is not ours goes to the original through a trampoline.
//!
//! Inside someone else's process we are guests: nothing is printed, no thread is started, `errno` stays as
//! libc leaves it, memory is our own allocator's, and what cannot be done right fails with EIO.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
compile_error!(
    "redirection works on x86-64 Linux with glibc only: elsewhere the calls of a program could not be \
     caught, and it would use local files without a word"
);

mod context;
mod description;
mod exports;
mod glance;
pub mod hooks;
pub mod install;
mod listing;
mod ops;
mod outcome;
mod own;
mod remote;
mod state;
mod table;

use address::Settings;

// The unwinder of our panics, linked in. As a library of its own it would have to be loaded into every program, and when
// it is, it asks the processor what it can do: under a hypervisor that alone is a tenth of a millisecond. Linkers that do
// not look back at an archive take the shared one all the same.
#[link(name = "gcc_eh", kind = "static", modifiers = "-bundle")]
unsafe extern "C" {}

/// Memory of our own: a hook may be entered from inside the program's allocator, or from a signal
/// handler that interrupted it.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Runs before `main`, and before constructors of libraries that depend on this one.
#[cfg(feature = "exports")]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Reads the settings and puts the hooks in place. Without settings in the environment only URIs in
/// paths are redirected.
pub extern "C" fn start() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    STARTED.call_once(|| {
        // A panic must not reach the program, and its message must not reach the terminal.
        let _ = std::panic::catch_unwind(|| {
            std::panic::set_hook(Box::new(|_| {}));
            // SAFETY: called once, before other threads exist.
            unsafe { dlmalloc::enable_alloc_after_fork() };
            ops::process::start();
            let settings = std::env::var_os(Settings::VARIABLE)
                .and_then(|value| Settings::from_env(value.as_encoded_bytes()).ok())
                .unwrap_or_default();
            ops::environment::remember();
            context::start(settings);
            ops::process::adopt_inherited();
            install::install(std::env::var_os("SLUICE_PATCH").is_none_or(|value| value != "0"));
        });
    });
}
