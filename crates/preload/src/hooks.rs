//! Every libc function that Sluice stands before, in one table.
//!
//! Each module declares its functions with [`hooks!`]: the names under which libc has them, the
//! signature, the cheap test whether a call may be ours, and the operation. From that one
//! declaration come the function that a patched entry jumps to, the exported symbol of the
//! fallback, and the row in [`all`].

pub(crate) mod batch;
pub(crate) mod data;
pub(crate) mod descriptor;
pub(crate) mod memory;
pub(crate) mod metadata;
pub(crate) mod namespace;
pub(crate) mod open;
pub(crate) mod process;
pub(crate) mod readiness;
pub(crate) mod stdio;

use std::sync::atomic::{AtomicPtr, Ordering};

/// When a function is hooked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Always.
    Always,
    /// Only in the fallback, where libc's own use of its functions is not seen.
    Interposing,
}

/// A libc function that Sluice stands before.
pub struct Hook {
    /// The libc symbol.
    pub name: &'static std::ffi::CStr,
    /// The same as text.
    pub text: &'static str,
    /// In which mode.
    pub when: When,
    /// What the entry is patched to jump to.
    pub replacement: *const (),
    /// How the original is reached: a trampoline, or in the fallback the next definition.
    pub original: &'static Slot,
    /// Where the exported symbol jumps.
    pub exported: &'static Slot,
}

// SAFETY: the pointers are to code and statics.
unsafe impl Sync for Hook {}

/// An address that code jumps through.
#[repr(transparent)]
pub struct Slot(AtomicPtr<()>);

impl Slot {
    /// A slot that leads to `target`.
    pub(crate) const fn new(target: *const ()) -> Self {
        Self(AtomicPtr::new(target.cast_mut()))
    }

    /// Where it leads.
    #[inline(always)]
    pub(crate) fn get(&self) -> *const () {
        self.0.load(Ordering::Relaxed)
    }

    /// Leads it elsewhere.
    pub(crate) fn set(&self, target: *const ()) {
        self.0.store(target.cast_mut(), Ordering::Release);
    }
}

/// One of a hook's names: each has an original of its own.
pub(crate) trait Named {
    fn original() -> &'static Slot;
}

/// All hooks.
pub fn all() -> impl Iterator<Item = &'static Hook> {
    [
        batch::HOOKS,
        data::HOOKS,
        descriptor::HOOKS,
        memory::HOOKS,
        metadata::HOOKS,
        namespace::HOOKS,
        open::HOOKS,
        process::HOOKS,
        readiness::HOOKS,
        stdio::HOOKS,
    ]
    .into_iter()
    .flatten()
}

impl Slot {
    /// The function that the slot leads to.
    #[inline(always)]
    pub(crate) fn function<F: Copy>(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*const ()>()) };
        let address = self.get();
        // SAFETY: only `original!` calls this, with the type of a function pointer; the slot holds
        // the address of the libc function of its hook's name (or of its trampoline), whose C
        // signature the hook's declaration repeats.
        unsafe { std::mem::transmute_copy::<*const (), F>(&address) }
    }
}

/// A static of this library by its distance from the code. The compiler would load its address from the GOT first, which
/// is one more place that a call of the program has to wait for.
macro_rules! direct {
    ($static:path) => {{
        let mut address = &raw const $static;
        // SAFETY: computes the address that `address` has already; the static lies in the same object, which no symbol
        // of another can replace, because it is not exported.
        unsafe {
            std::arch::asm!(
                "lea {address}, [rip + {place}]",
                address = out(reg) address,
                place = sym $static,
                options(pure, nomem, nostack, preserves_flags),
            );
            &*address
        }
    }};
}
pub(crate) use direct;

/// The original of the name `H`, with a signature.
macro_rules! original {
    ($h:ident : fn($($ty:ty),*) -> $ret:ty) => {
        $h::original().function::<unsafe extern "C-unwind" fn($($ty),*) -> $ret>()
    };
}
pub(crate) use original;

/// Declares hooks: see the module's text. Behind `also` stand rows for functions that are written out
/// because they look at what the original answered.
macro_rules! hooks {
    ($(
        $(#[$meta:meta])*
        $when:ident [$($name:ident)+]
        fn $hook:ident($($arg:ident : $ty:ty),*) -> $ret:ty
        where $test:expr => $operation:expr;
    )+ $(=> also { $( $also_when:ident $also_hook:ident [$($also_name:ident)+] )+ })?) => {
        $(
            $(#[$meta])*
            pub(crate) unsafe extern "C-unwind" fn $hook<H: $crate::hooks::Named>($($arg: $ty),*) -> $ret {
                if !$test {
                    // SAFETY: the program's own arguments.
                    return unsafe { $crate::hooks::original!(H: fn($($ty),*) -> $ret)($($arg),*) };
                }
                /// Apart, so that a call that is not ours needs no stack of ours.
                #[inline(never)]
                unsafe extern "C-unwind" fn ours<H: $crate::hooks::Named>($($arg: $ty),*) -> $ret {
                    match $crate::outcome::guarded(|| $operation) {
                        $crate::outcome::Outcome::Handled(value) => value,
                        $crate::outcome::Outcome::Fail(errno) => {
                            <$ret as $crate::outcome::CReturn>::failed(errno)
                        }
                        $crate::outcome::Outcome::PassThrough => {
                            // SAFETY: the program's own arguments.
                            unsafe { $crate::hooks::original!(H: fn($($ty),*) -> $ret)($($arg),*) }
                        }
                    }
                }
                // SAFETY: the program's own arguments.
                unsafe { ours::<H>($($arg),*) }
            }
        )+
        $crate::hooks::table! {
            $( $when $hook [$($name)+] )+
            $($( $also_when $also_hook [$($also_name)+] )+)?
        }
    };
}
pub(crate) use hooks;

/// The rows of hooks that are functions already, generic over their name.
macro_rules! table {
    ($( $when:ident $hook:ident [$($name:ident)+] )+) => {
        #[allow(non_upper_case_globals)]
        mod originals {
            $($(
                pub(super) static $name: $crate::hooks::Slot =
                    $crate::hooks::Slot::new(std::ptr::null());
            )+)+
        }

        #[allow(non_camel_case_types)]
        mod names {
            $($(
                pub(super) struct $name;
                impl $crate::hooks::Named for $name {
                    #[inline(always)]
                    fn original() -> &'static $crate::hooks::Slot {
                        $crate::hooks::direct!(super::originals::$name)
                    }
                }
            )+)+
        }

        $crate::exports::exports! { $($( $name )+)+ }

        pub(super) static HOOKS: &[$crate::hooks::Hook] = &[$($(
            $crate::hooks::Hook {
                name: {
                    const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("a symbol name has no NUL"),
                    };
                    NAME
                },
                text: stringify!($name),
                when: $crate::hooks::When::$when,
                replacement: $hook::<names::$name> as *const (),
                original: &originals::$name,
                exported: &exported::$name::SLOT,
            },
        )+)+];
    };
}
pub(crate) use table;
