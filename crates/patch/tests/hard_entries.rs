//! Hand-written entries, each with one difficulty: moved correctly, or refused with the reason.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

mod common;

use common::{assert_no_page_is_writable_and_executable, in_child, permissions_at};
use patch::{PatchError, Patcher, Target};
use std::arch::global_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

// Every function takes and returns an integer: `long f(long)`.
global_asm!(
    ".balign 16",
    // cmpb $0, x(%rip) at the entry, as in read of glibc 2.36
    ".globl hard_rip",
    "hard_rip:",
    "cmp byte ptr [rip + hard_data], 7",
    "jne 2f",
    "lea rax, [rdi + 100]",
    "ret",
    "2: mov eax, -1",
    "ret",
    ".balign 16",
    ".globl hard_endbr",
    "hard_endbr:",
    "endbr64",
    "xor eax, eax",
    "test edi, edi",
    "cmp rax, rdi",
    "sete al",
    "ret",
    ".balign 16",
    // the moved range holds a short branch to code behind it
    ".globl hard_jcc",
    "hard_jcc:",
    "test rdi, rdi",
    "je 2f",
    "mov eax, 1",
    "ret",
    "2: mov eax, 2",
    "ret",
    ".balign 16",
    // the moved range holds a loop of its own
    ".globl hard_inner_loop",
    "hard_inner_loop:",
    "dec rdi",
    "jg hard_inner_loop",
    "mov rax, rdi",
    "ret",
    ".balign 16",
    ".globl hard_jrcxz",
    "hard_jrcxz:",
    "push rdi",
    "pop rcx",
    "jrcxz 2f",
    "nop",
    "mov eax, 1",
    "ret",
    "2: mov eax, 2",
    "ret",
    ".balign 16",
    // the jump covers a system call
    ".globl hard_syscall",
    "hard_syscall:",
    "push 39",
    "pop rax",
    "syscall",
    "cmp rax, -4096",
    "ret",
    ".balign 16",
    // code behind the entry loops back into the second instruction
    ".globl hard_loop_inside",
    "hard_loop_inside:",
    "xor eax, eax",
    "2: add rax, rdi",
    "dec rdi",
    "nop",
    "jne 2b",
    "ret",
    ".balign 16",
    // ... to the very entry
    ".globl hard_loop_entry",
    "hard_loop_entry:",
    "lea rdi, [rdi - 2]",
    "nop",
    "nop",
    "test rdi, rdi",
    "jg hard_loop_entry",
    "mov rax, rdi",
    "ret",
    ".balign 16",
    // ... from far behind, with a long displacement
    ".globl hard_loop_far",
    "hard_loop_far:",
    "xor eax, eax",
    "2: add rax, rdi",
    "dec rdi",
    ".rept 300",
    "nop",
    ".endr",
    "jne 2b",
    "ret",
    ".balign 16",
    // ... from a loop that is entered by a jump
    ".globl hard_loop_jumped",
    "hard_loop_jumped:",
    "xor eax, eax",
    "nop",
    "2: add rax, rdi",
    "jmp 4f",
    "3: dec rdi",
    "jne 2b",
    "ret",
    "4: dec rdi",
    "jne 3b",
    "ret",
    ".balign 16",
    // ... to behind a lock prefix, into the middle of an instruction
    ".globl hard_lock_prefix",
    "hard_lock_prefix:",
    "test edi, edi",
    "je 2f",
    "lock",
    "2: dec dword ptr [rip + hard_data + 8]",
    "jmp 2b",
    "ret",
    ".balign 16",
    ".globl hard_short",
    "hard_short:",
    "mov rax, rdi",
    "ret",
    ".balign 16",
    // five bytes exactly
    ".globl hard_five",
    "hard_five:",
    "lea rax, [rdi + 5]",
    "ret",
    ".balign 16",
    ".globl hard_recursive",
    "hard_recursive:",
    "test rdi, rdi",
    "jle 2f",
    "dec rdi",
    "sub rsp, 8",
    "call hard_recursive",
    "add rsp, 8",
    "inc rax",
    "ret",
    "2: xor eax, eax",
    "ret",
    ".balign 16",
    ".globl hard_call",
    "hard_call:",
    "push rbx",
    "call hard_short",
    "pop rbx",
    "ret",
    ".balign 16",
    ".globl hard_own_code",
    "hard_own_code:",
    "mov rax, qword ptr [rip + hard_own_code]",
    "ret",
    ".balign 16",
    ".globl hard_jump",
    "hard_jump:",
    "jmp hard_five",
    ".balign 16",
    ".globl hard_absolute_hook",
    "hard_absolute_hook:",
    "jmp [rip]",
    ".quad 0",
    ".balign 16",
    ".globl hard_register_hook",
    "hard_register_hook:",
    "movabs r11, 0x1122334455667788",
    "jmp r11",
    ".balign 16",
    ".globl hard_breakpoint",
    "hard_breakpoint:",
    "int3",
    "mov eax, 3",
    "ret",
    ".balign 16",
    ".globl hard_plt",
    "hard_plt:",
    "jmp [rip + hard_slot]",
    "push 3",
    "jmp hard_plt",
    ".balign 16",
    ".globl hard_plt_ibt",
    "hard_plt_ibt:",
    "endbr64",
    "jmp [rip + hard_slot]",
    "nop",
    "nop",
    ".balign 16",
    ".globl hard_bad",
    "hard_bad:",
    "nop",
    ".byte 0x06",
    "nop",
    "nop",
    "nop",
    "nop",
    "ret",
    ".balign 16",
    ".globl hard_target",
    "hard_target:",
    "mov rax, rdi",
    "add rax, 1",
    "ret",
    ".globl hard_target_again",
    ".set hard_target_again, hard_target",
    ".data",
    ".balign 16",
    ".globl hard_data",
    "hard_data: .byte 7",
    ".balign 16",
    ".quad 0",
    ".globl hard_slot",
    "hard_slot: .quad 0",
    ".text",
);

unsafe extern "C" {
    fn hard_rip(x: i64) -> i64;
    fn hard_endbr(x: i64) -> i64;
    fn hard_jcc(x: i64) -> i64;
    fn hard_inner_loop(x: i64) -> i64;
    fn hard_jrcxz(x: i64) -> i64;
    fn hard_syscall(x: i64) -> i64;
    fn hard_loop_inside(x: i64) -> i64;
    fn hard_loop_entry(x: i64) -> i64;
    fn hard_loop_far(x: i64) -> i64;
    fn hard_loop_jumped(x: i64) -> i64;
    fn hard_lock_prefix(x: i64) -> i64;
    fn hard_short(x: i64) -> i64;
    fn hard_five(x: i64) -> i64;
    fn hard_recursive(x: i64) -> i64;
    fn hard_call(x: i64) -> i64;
    fn hard_own_code(x: i64) -> i64;
    fn hard_jump(x: i64) -> i64;
    fn hard_absolute_hook(x: i64) -> i64;
    fn hard_register_hook(x: i64) -> i64;
    fn hard_breakpoint(x: i64) -> i64;
    fn hard_plt(x: i64) -> i64;
    fn hard_plt_ibt(x: i64) -> i64;
    fn hard_bad(x: i64) -> i64;
    fn hard_target(x: i64) -> i64;
    fn hard_target_again(x: i64) -> i64;
    static hard_data: u8;
}

type Function = unsafe extern "C" fn(i64) -> i64;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static TRAMPOLINE: AtomicUsize = AtomicUsize::new(0);

/// Counts, and answers what the original does.
extern "C" fn counting(x: i64) -> i64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the trampoline of the one function that the test patched, of this type.
    unsafe { std::mem::transmute::<usize, Function>(TRAMPOLINE.load(Ordering::Relaxed))(x) }
}

extern "C" fn other(_x: i64) -> i64 {
    0
}

fn target(function: Function, size_bytes: Option<usize>) -> Target {
    Target { entry: function as *const u8, size_bytes }
}

/// Patches `function`, and compares its answers for some arguments before and after.
fn assert_moves(function: Function, size_bytes: Option<usize>) {
    let arguments = [0, 1, 2, 7, 1000];
    // SAFETY: the functions above take any argument.
    let before = arguments.map(|x| unsafe { function(x) });
    let mut patcher = Patcher::new();
    // SAFETY: a function of this program, and a replacement of the same type.
    let trampoline =
        unsafe { patcher.install("f", target(function, size_bytes), counting as *const u8) }
            .unwrap();
    TRAMPOLINE.store(trampoline as usize, Ordering::Relaxed);
    assert_eq!(
        permissions_at(trampoline),
        "rw-p",
        "a trampoline that is planned is not executable yet"
    );
    assert_eq!(patcher.commit(), []);
    assert_eq!(permissions_at(trampoline), "r-xp");
    assert_eq!(permissions_at(function as *const u8), "r-xp");
    assert_no_page_is_writable_and_executable();
    CALLS.store(0, Ordering::Relaxed);
    for (x, answer) in arguments.into_iter().zip(before) {
        let calls = CALLS.load(Ordering::Relaxed);
        // SAFETY: as above.
        assert_eq!(unsafe { function(x) }, answer, "of {x}");
        assert!(CALLS.load(Ordering::Relaxed) > calls, "the replacement was not called");
    }
}

fn refusal(function: Function, size_bytes: Option<usize>) -> PatchError {
    let mut patcher = Patcher::new();
    // SAFETY: a function of this program, and a replacement of the same type.
    let error =
        unsafe { patcher.install("f", target(function, size_bytes), counting as *const u8) }
            .unwrap_err();
    assert_eq!(patcher.commit(), [], "a refused function leaves nothing to do");
    error
}

macro_rules! moves {
    ($($test:ident: $function:ident),* $(,)?) => {$(
        #[test]
        fn $test() {
            in_child(stringify!($test), || assert_moves($function, None));
        }
    )*};
}

moves! {
    rip_relative_operand_is_moved: hard_rip,
    landing_pad_stays_and_what_follows_is_moved: hard_endbr,
    short_branch_out_of_the_moved_range_is_widened: hard_jcc,
    loop_within_the_moved_range_moves_along: hard_inner_loop,
    jrcxz_is_moved: hard_jrcxz,
    system_call_is_moved: hard_syscall,
    function_of_five_bytes_is_moved: hard_five,
    recursive_function_is_moved: hard_recursive,
}

#[test]
fn landing_pad_is_still_the_first_instruction() {
    in_child("landing_pad_is_still_the_first_instruction", || {
        assert_moves(hard_endbr, None);
        // SAFETY: code of this program.
        let bytes = unsafe { std::slice::from_raw_parts(hard_endbr as *const u8, 9) };
        assert_eq!(bytes[..5], [0xf3, 0x0f, 0x1e, 0xfa, 0xe9]);
    });
}

#[test]
fn branches_into_the_entry_are_refused() {
    let is_branch_to = |error: PatchError, offset: usize| {
        assert!(
            matches!(error, PatchError::EntryIsBranchTarget { to_offset, .. } if to_offset == offset),
            "{error:?}"
        );
    };
    is_branch_to(refusal(hard_loop_inside, None), 2);
    is_branch_to(refusal(hard_loop_inside, Some(12)), 2);
    is_branch_to(refusal(hard_loop_entry, None), 0);
    is_branch_to(refusal(hard_loop_far, None), 2);
    is_branch_to(refusal(hard_loop_far, Some(316)), 2);
    is_branch_to(refusal(hard_loop_jumped, None), 3);
    is_branch_to(refusal(hard_lock_prefix, Some(14)), 5);
}

#[test]
fn what_is_too_short_is_refused() {
    assert_eq!(refusal(hard_short, None), PatchError::TooShort { size_bytes: 4, needed_bytes: 5 });
    assert_eq!(
        refusal(hard_target, Some(3)),
        PatchError::TooShort { size_bytes: 3, needed_bytes: 5 }
    );
}

#[test]
fn somebody_elses_entry_is_refused() {
    for function in [hard_jump as Function, hard_absolute_hook, hard_register_hook, hard_breakpoint]
    {
        let error = refusal(function, Some(13));
        assert!(matches!(error, PatchError::AlreadyPatched { .. }), "{error:?}");
    }
    assert_eq!(refusal(hard_plt, Some(16)), PatchError::PltStub);
    assert_eq!(refusal(hard_plt_ibt, Some(16)), PatchError::PltStub);
}

#[test]
fn what_cannot_run_elsewhere_is_refused() {
    assert!(matches!(refusal(hard_call, None), PatchError::Unmovable { offset: 1, .. }));
    assert!(matches!(refusal(hard_own_code, None), PatchError::Unmovable { offset: 0, .. }));
    assert_eq!(refusal(hard_bad, Some(7)), PatchError::Undecodable { offset: 1 });
}

#[test]
fn data_is_refused() {
    let mut patcher = Patcher::new();
    // SAFETY: refused, so nothing is promised.
    let error =
        unsafe { patcher.install("data", Target::at(&raw const hard_data), other as *const u8) };
    assert_eq!(error, Err(PatchError::NotCode));
}

#[test]
fn second_name_of_a_function_gets_the_same_trampoline() {
    in_child("second_name_of_a_function_gets_the_same_trampoline", || {
        let mut patcher = Patcher::new();
        let install = |patcher: &mut Patcher, name, function, replacement: Function| {
            // SAFETY: a function of this program, and a replacement of the same type.
            unsafe { patcher.install(name, target(function, None), replacement as *const u8) }
        };
        let first = install(&mut patcher, "first", hard_target, counting).unwrap();
        assert_eq!(install(&mut patcher, "second", hard_target_again, counting), Ok(first));
        let conflict = Err(PatchError::OtherReplacement { first_name: "first" });
        assert_eq!(install(&mut patcher, "third", hard_target_again, other), conflict);
        TRAMPOLINE.store(first as usize, Ordering::Relaxed);
        assert_eq!(patcher.commit(), []);
        assert_eq!(
            install(&mut patcher, "second", hard_target_again, counting),
            Ok(first),
            "after the commit too"
        );
        assert_eq!(install(&mut patcher, "third", hard_target_again, other), conflict);
        // Another patcher does not know the jump.
        let stranger = install(&mut Patcher::new(), "stranger", hard_target, counting);
        assert!(matches!(stranger, Err(PatchError::AlreadyPatched { .. })), "{stranger:?}");
        // SAFETY: a function that takes any argument.
        let answer = unsafe { hard_target(4) };
        assert_eq!((answer, CALLS.load(Ordering::Relaxed)), (5, 1));
    });
}

#[test]
fn a_second_batch_leaves_the_first_in_force() {
    in_child("a_second_batch_leaves_the_first_in_force", || {
        let mut patcher = Patcher::new();
        // SAFETY: functions of this program, most likely in one page, and replacements of the same type.
        unsafe {
            patcher.install("first", target(hard_five, None), other as *const u8).unwrap();
            assert_eq!(patcher.commit(), []);
            let trampoline = patcher
                .install("second", target(hard_target, None), counting as *const u8)
                .unwrap();
            TRAMPOLINE.store(trampoline as usize, Ordering::Relaxed);
            assert_eq!(hard_target(4), 5);
            assert_eq!(CALLS.load(Ordering::Relaxed), 0, "planned, not committed");
            assert_eq!(patcher.commit(), []);
            assert_eq!((hard_five(4), hard_target(4)), (0, 5));
            assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        }
    });
}

#[test]
fn a_far_replacement_is_reached_by_an_island() {
    in_child("a_far_replacement_is_reached_by_an_island", || {
        // A replacement 16 TiB away from every library: `lea rax, [rdi + 42]; ret`.
        let far = 0x1000_0000_0000 as *mut libc::c_void;
        let code = [0x48u8, 0x8d, 0x47, 42, 0xc3];
        // SAFETY: new memory at a free place, written before it is made executable; the code has the type of the functions above.
        unsafe {
            let (prot, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            assert_eq!(libc::mmap(far, 4096, prot, flags | libc::MAP_FIXED_NOREPLACE, -1, 0), far);
            std::ptr::copy_nonoverlapping(code.as_ptr(), far.cast(), code.len());
            assert_eq!(libc::mprotect(far, 4096, libc::PROT_READ | libc::PROT_EXEC), 0);
            let mut patcher = Patcher::new();
            let trampoline = patcher.install("far", target(hard_target, None), far.cast()).unwrap();
            assert_eq!(patcher.commit(), []);
            assert_eq!(hard_target(1), 43);
            assert_eq!(std::mem::transmute::<*const u8, Function>(trampoline)(1), 2);
        }
        assert_no_page_is_writable_and_executable();
    });
}

#[test]
fn a_changed_entry_is_left_alone_and_the_others_are_patched() {
    in_child("a_changed_entry_is_left_alone_and_the_others_are_patched", || {
        let mut patcher = Patcher::new();
        // SAFETY: functions of this program and replacements of the same type; the page is this program's own.
        unsafe {
            patcher.install("changed", target(hard_five, None), other as *const u8).unwrap();
            patcher.install("kept", target(hard_target, None), other as *const u8).unwrap();
            let page = (hard_five as *const () as usize & !4095) as *mut libc::c_void;
            // Executable all the while: other threads may be running what else is on these pages.
            let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            assert_eq!(libc::mprotect(page, 8192, all), 0);
            *(hard_five as *mut u8).add(3) = 6; // lea rax, [rdi + 6]
            assert_eq!(libc::mprotect(page, 8192, libc::PROT_READ | libc::PROT_EXEC), 0);
            let failures = patcher.commit();
            assert_eq!(failures.len(), 1);
            assert_eq!((failures[0].name, &failures[0].error), ("changed", &PatchError::Changed));
            assert_eq!((hard_five(1), hard_target(1)), (7, 0));
        }
    });
}

#[test]
fn a_policy_that_refuses_new_code_leaves_everything_as_it_was() {
    in_child("a_policy_that_refuses_new_code_leaves_everything_as_it_was", || {
        const PR_SET_MDWE: i32 = 65; // linux/prctl.h, since 6.3
        const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;
        // SAFETY: prctl(2) of this process; from here on no memory of it becomes executable.
        if unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) } != 0 {
            println!("skipped: this kernel has no PR_SET_MDWE");
            return;
        }
        let mut patcher = Patcher::new();
        // SAFETY: functions of this program and libc, which are not patched in the end.
        unsafe {
            patcher.install("five", target(hard_five, None), other as *const u8).unwrap();
            patcher
                .install("getppid", patch::resolve("getppid").unwrap(), other as *const u8)
                .unwrap();
        }
        let failures = patcher.commit();
        assert_eq!(
            failures.iter().map(|failure| failure.name).collect::<Vec<_>>(),
            ["five", "getppid"]
        );
        assert!(failures.iter().all(|failure| failure.error.is_forbidden()), "{failures:?}");
        // SAFETY: plain functions.
        assert_eq!(unsafe { hard_five(1) }, 6);
        assert!(std::process::id() != 0 && std::os::unix::process::parent_id() != 0);
    });
}
