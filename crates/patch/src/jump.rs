//! A jump to wherever a function says, for symbols that only learn when they are called where they lead.

/// Defines the function `$name`, which calls `$find` with the address that is in `r11` as its only argument, and jumps to its answer
/// with all argument registers as they came (System V ABI for x86-64, §3.2.3; `rax` counts the vector arguments of
/// variadic calls). Vector registers are not kept: `$find` must not be one that uses them, or no caller may pass any.
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! jump_to_found {
    ($vis:vis $name:ident by $find:path) => {
        #[unsafe(naked)]
        $vis unsafe extern "C" fn $name() {
            ::std::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "mov rdi, r11",
                "call {}",
                "mov r11, rax",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp r11",
                sym $find,
            )
        }
    };
}
