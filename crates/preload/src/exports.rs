//! The libc names as symbols of this library.
//!
//! A symbol is one jump through a slot. At first the slot leads to a resolver that looks up the next
//! definition of the name (libc's, or that of another preloaded library) and leads the slot there:
//! with patched entries nothing else is needed, because every call arrives at the entry anyway and
//! other preloaded libraries keep their turn. In the fallback [`crate::install`] leads the slots to
//! the hooks.

#[cfg(feature = "exports")]
use std::ffi::CStr;

/// One symbol for each name.
#[cfg(all(feature = "exports", target_arch = "x86_64"))]
macro_rules! exports {
    ($($name:ident)+) => {
        #[allow(non_snake_case)]
        mod exported {
            $(
                pub(super) mod $name {
                    pub(crate) static SLOT: $crate::hooks::Slot =
                        $crate::hooks::Slot::new(resolver as *const ());

                    #[unsafe(export_name = stringify!($name))]
                    #[unsafe(naked)]
                    unsafe extern "C" fn symbol() {
                        std::arch::naked_asm!("jmp qword ptr [rip + {}]", sym SLOT)
                    }

                    static NAME: $crate::exports::SymbolName = $crate::exports::SymbolName {
                        name: concat!(stringify!($name), "\0").as_ptr(),
                        slot: &SLOT,
                    };

                    #[unsafe(naked)]
                    unsafe extern "C" fn resolver() {
                        std::arch::naked_asm!(
                            "lea r11, [rip + {}]",
                            "jmp {}",
                            sym NAME,
                            sym $crate::exports::resolve,
                        )
                    }
                }
            )+
        }
    };
}

/// No symbols: a static library must not define libc's names, and elsewhere than on x86-64 the
/// fallback does not exist yet.
#[cfg(not(all(feature = "exports", target_arch = "x86_64")))]
macro_rules! exports {
    ($($name:ident)+) => {
        #[allow(non_snake_case)]
        mod exported {
            $(
                pub(super) mod $name {
                    pub(crate) static SLOT: $crate::hooks::Slot =
                        $crate::hooks::Slot::new(std::ptr::null());
                }
            )+
        }
    };
}
pub(crate) use exports;

/// What a resolver needs to know.
#[cfg(feature = "exports")]
#[repr(C)]
pub(crate) struct SymbolName {
    pub(crate) name: *const u8,
    pub(crate) slot: &'static crate::hooks::Slot,
}

// SAFETY: the pointer is to a string literal.
#[cfg(feature = "exports")]
unsafe impl Sync for SymbolName {}

// With the address of a `SymbolName` in `r11`. None of the hooked functions takes vector arguments.
#[cfg(all(feature = "exports", target_arch = "x86_64"))]
patch::jump_to_found!(pub(crate) resolve by next_definition);

#[cfg(feature = "exports")]
extern "C" fn next_definition(symbol: &'static SymbolName) -> *const () {
    // SAFETY: `exports!` makes the name from a literal that ends in NUL.
    let name = unsafe { CStr::from_ptr(symbol.name.cast()) };
    match crate::install::next_definition(name) {
        Some(address) => {
            symbol.slot.set(address);
            address
        }
        None => missing as *const (),
    }
}

/// Stands in for a function that this libc does not have; only a caller who found our symbol by
/// dlsym(3) can get here.
#[cfg(feature = "exports")]
extern "C" fn missing() -> isize {
    crate::outcome::set_errno(p9::Errno::ENOSYS);
    -1
}
