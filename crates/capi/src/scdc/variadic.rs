//! Functions of C with a varying number of parameters. Rust cannot define such, so each is a few instructions that
//! make the list of its parameters as C has it, and call the function proper with a pointer to that.
//!
//! # Source
//! System V ABI for x86-64, §3.5.7 (variable argument lists) and §3.2.3 (how parameters are passed).

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A list of parameters: `va_list` is an array of one of these, so that C passes a pointer to it.
#[repr(C)]
pub(crate) struct Arguments {
    /// Where the next integer is in `saved`; from 48 on they are on the stack.
    integers: u32,
    /// The same of floating-point numbers, from 176 on.
    floats: u32,
    on_stack: *mut u8,
    saved: *mut u8,
}

impl Arguments {
    /// The next parameter that is an integer or a pointer.
    ///
    /// # Safety
    /// There is one, as the configuration of the call says.
    unsafe fn word(&mut self) -> u64 {
        // SAFETY: both point to eight bytes of the caller's frame as long as there are parameters (the ABI).
        unsafe {
            if self.integers < 48 {
                let word = self.saved.add(self.integers as usize).cast::<u64>().read();
                self.integers += 8;
                word
            } else {
                let word = self.on_stack.cast::<u64>().read();
                self.on_stack = self.on_stack.add(8);
                word
            }
        }
    }

    /// # Safety
    /// As [`Arguments::word`].
    pub(crate) unsafe fn int(&mut self) -> c_int {
        // SAFETY: the caller's promise. Of an int only the lower half is defined.
        unsafe { self.word() as u32 as c_int }
    }

    /// # Safety
    /// As [`Arguments::word`].
    pub(crate) unsafe fn long(&mut self) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { self.word() as i64 }
    }

    /// # Safety
    /// As [`Arguments::word`].
    pub(crate) unsafe fn pointer(&mut self) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { self.word() as *mut c_void }
    }

    /// The next parameter, a text.
    ///
    /// # Errors
    /// In words, if it is NULL or no UTF-8.
    ///
    /// # Safety
    /// As [`Arguments::word`], and it is NULL or a C string.
    pub(crate) unsafe fn text(&mut self, what: &str) -> Result<String, String> {
        // SAFETY: the caller's promise.
        unsafe { text(self.pointer().cast(), what) }
    }
}

/// The text behind a pointer.
///
/// # Errors
/// In words, if it is NULL or no UTF-8.
///
/// # Safety
/// It is NULL or a C string.
pub(crate) unsafe fn text(pointer: *const c_char, what: &str) -> Result<String, String> {
    if pointer.is_null() {
        return Err(format!("{what} is NULL"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(str::to_owned).map_err(|_| format!("{what} is no text in UTF-8"))
}

/// Defines `$name(…$fixed bytes of fixed parameters…, ...)`, which calls `$inner` with the fixed ones and, in
/// `$next`, the register behind them, a pointer to the list of the others.
macro_rules! variadic {
    ($(#[$doc:meta])* $name:ident, $fixed:literal, $next:literal, $inner:path) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As docs/C-API.md says: strings are NULL or end with a NUL, and the configuration names the parameters.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                // The list at 0, what registers held at 32: six integers, then eight floating-point numbers.
                "sub rsp, 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "movups [rsp + 80], xmm0",
                "movups [rsp + 96], xmm1",
                "movups [rsp + 112], xmm2",
                "movups [rsp + 128], xmm3",
                "movups [rsp + 144], xmm4",
                "movups [rsp + 160], xmm5",
                "movups [rsp + 176], xmm6",
                "movups [rsp + 192], xmm7",
                concat!("mov dword ptr [rsp], ", $fixed),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $next, ", rsp"),
                "call {inner}",
                "add rsp, 216",
                "ret",
                inner = sym $inner,
            )
        }
    };
}

variadic!(/// `scdc_init(conf, ...)`.
    scdc_init, "8", "rsi", super::library::init);
variadic!(/// `scdc_log_init(conf, ...)`.
    scdc_log_init, "8", "rsi", super::report::log_init);
variadic!(/// `scdc_dataprov_open(base_path, conf, ...)`.
    scdc_dataprov_open, "16", "rdx", super::providers::open);
variadic!(/// `scdc_nodeport_open(conf, ...)`.
    scdc_nodeport_open, "8", "rsi", super::ports::open);
variadic!(/// `scdc_nodeport_authority(conf, ...)`.
    scdc_nodeport_authority, "8", "rsi", super::ports::authority);
variadic!(/// `scdc_nodeport_supported(uri, ...)`.
    scdc_nodeport_supported, "8", "rsi", super::ports::supported);
variadic!(/// `scdc_dataset_open(uri, ...)`.
    scdc_dataset_open, "8", "rsi", super::datasets::open);
variadic!(/// `scdc_dataset_cmd(dataset, cmd, input, output, ...)`.
    scdc_dataset_cmd, "32", "r8", super::datasets::command);
variadic!(/// `scdc_dataset_input_create(input, conf, ...)`.
    scdc_dataset_input_create, "16", "rdx", super::tapes::input_create);
variadic!(/// `scdc_dataset_output_create(output, conf, ...)`.
    scdc_dataset_output_create, "16", "rdx", super::tapes::output_create);
variadic!(/// `scdc_dataset_input_redirect(input, conf, ...)`.
    scdc_dataset_input_redirect, "16", "rdx", super::tapes::input_redirect);
variadic!(/// `scdc_dataset_output_redirect(output, conf, ...)`.
    scdc_dataset_output_redirect, "16", "rdx", super::tapes::output_redirect);
