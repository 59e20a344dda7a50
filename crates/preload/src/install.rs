//! Putting the hooks in place: patched entries, or where the system forbids that, the exported
//! symbols.

use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use patch::{PatchError, Patcher};

use crate::hooks::{Hook, When};

/// How calls reach the hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Technique {
    /// Not at all: nothing was installed.
    None,
    /// The entries of libc's functions are patched.
    Patching,
    /// The program's calls go to the exported symbols; libc's own calls are not seen.
    Interposing,
}

static TECHNIQUE: AtomicU8 = AtomicU8::new(0);

/// The one patcher of this process: it must remember what it patched.
static PATCHER: Mutex<Option<Patcher>> = Mutex::new(None);

/// How calls reach the hooks of this process.
pub fn technique() -> Technique {
    match TECHNIQUE.load(Ordering::Relaxed) {
        1 => Technique::Patching,
        2 => Technique::Interposing,
        _ => Technique::None,
    }
}

/// The next definition of a symbol behind this library.
pub(crate) fn next_definition(name: &CStr) -> Option<*const ()> {
    // SAFETY: a NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const().cast())
}

/// Installs all hooks. `patching` false goes straight to the fallback.
pub(crate) fn install(patching: bool) {
    if patching && patch_entries() {
        TECHNIQUE.store(1, Ordering::Relaxed);
    } else if cfg!(feature = "exports") {
        interpose();
        TECHNIQUE.store(2, Ordering::Relaxed);
    }
}

/// Calls `each` with the functions of libc that a hook stands before.
fn find(hook: &'static Hook, each: impl FnMut(patch::Target)) {
    match hook.text {
        // libc hides these; they are found by who calls them.
        "__openat64_nocancel" => {
            patch::resolve_callee("fchmodat", libc::SYS_openat).into_iter().for_each(each)
        }
        "__fcntl64_nocancel" => {
            patch::resolve_callee("opendir", libc::SYS_fcntl).into_iter().for_each(each)
        }
        name => patch::resolve_versions(name).into_iter().flatten().for_each(each),
    }
}

fn patch_entries() -> bool {
    let hooks = || crate::hooks::all().filter(|hook| hook.when == When::Always);
    // Some have old versions with code of their own.
    let mut patcher = Patcher::with_capacity(hooks().count() + 16);
    let mut entries = 0;
    let mut is_forbidden = false;
    for hook in hooks() {
        find(hook, |target| {
            // SAFETY: the target is a function of libc, which is never unloaded; the replacement has its
            // signature, which the hook's declaration repeats, and needs nothing but the context, which
            // is ready. vfork's replacement leaves the stack as it found it.
            let planned = unsafe { patcher.install(hook.text, target, hook.replacement.cast()) };
            match planned {
                Ok(trampoline) => {
                    // The first version is the default one; an old version with code of its own shares
                    // the hook, and its calls that are not ours go to the default's original.
                    if hook.original.get().is_null() {
                        hook.original.set(trampoline.cast());
                    }
                    entries += 1;
                }
                // The same code under a second name, which the first name's hook serves.
                Err(PatchError::OtherReplacement { .. }) => {}
                Err(error) if error.is_forbidden() => is_forbidden = true,
                // What cannot be patched is reached only by the name that this library exports; the
                // function's callees are patched, which is where the work is done.
                Err(_) => {}
            }
        });
    }
    if is_forbidden {
        return false;
    }
    if entries == 0 {
        // An architecture that the patcher does not know.
        return false;
    }
    let failures = patcher.commit();
    if failures.iter().any(|failure| failure.error.is_forbidden()) {
        for hook in crate::hooks::all() {
            hook.original.set(std::ptr::null());
        }
        return false;
    }
    *PATCHER.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(patcher);
    true
}

fn interpose() {
    for hook in crate::hooks::all() {
        if let Some(original) = next_definition(hook.name) {
            hook.original.set(original);
        }
    }
    // Only when every original is known may calls arrive at the hooks.
    for hook in crate::hooks::all() {
        if !hook.original.get().is_null() {
            hook.exported.set(hook.replacement);
        }
    }
}
