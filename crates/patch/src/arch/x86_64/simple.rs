//! The instructions that nearly every function of a C library begins with, decoded by hand.
//!
//! A general disassembler builds its tables at first use, which costs more than a millisecond: in every process that a preload
//! library enters, more than all else the library does at load. So the few forms that compilers and hand-written wrappers of
//! system calls put at an entry are known here; whatever else comes along is left to iced-x86. A test decodes all of libc
//! with both and compares.
//!
//! Encodings: Intel SDM volume 2, chapter 2 and appendix A.

/// An instruction that can be moved by copying its bytes and perhaps correcting one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) length: usize,
    pub(super) kind: Kind,
}

/// What depends on the place of a [`Simple`] instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Plain,
    /// `endbr64`.
    LandingPad,
    /// Four bytes at this offset are a displacement from the end of the instruction.
    RipRelative { displacement_at: usize },
    /// A conditional branch with a displacement of one byte.
    ShortBranch { condition: u8, displacement: i8 },
    /// A jump, a call, a return or a long branch: it can be stepped over, but is not moved by copying.
    Elsewhere,
}

/// Decodes the instruction at the start of `code`, if it is of a form known here.
pub(super) fn decode(code: &[u8]) -> Option<Simple> {
    if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
        return Some(Simple { length: 4, kind: Kind::LandingPad });
    }
    let mut at = 0;
    // fs: is how the stack protector and thread-local data are read; 0x66 changes the size of immediates, so only forms
    // without one are known below.
    let prefix = code.first().copied().filter(|byte| matches!(byte, 0x64 | 0x66));
    at += usize::from(prefix.is_some());
    let rex = code.get(at).copied().filter(|byte| byte & 0xf0 == 0x40);
    at += usize::from(rex.is_some());
    let is_bare = prefix.is_none() && rex.is_none();
    let is_wide = rex.is_some_and(|rex| rex & 8 != 0);
    let has_narrow_operands = prefix == Some(0x66);
    let opcode = *code.get(at)?;
    at += 1;
    let known =
        |length: usize, kind: Kind| (length <= code.len()).then_some(Simple { length, kind });
    let plain = |length: usize| known(length, Kind::Plain);
    let elsewhere = |length: usize| known(length, Kind::Elsewhere);
    match opcode {
        // call, jmp, ret
        0xe8 | 0xe9 if is_bare => elsewhere(at + 4),
        0xeb if is_bare => elsewhere(at + 1),
        0xc3 if is_bare => elsewhere(at),
        // push imm8
        0x6a if is_bare => plain(at + 1),
        // push, pop
        0x50..=0x5f if prefix.is_none() => plain(at),
        // nop
        0x90 if is_bare => plain(at),
        // mov r32, imm32; with REX.W the immediate has eight bytes, and what follows may be somebody's jump
        0xb8..=0xbf if prefix.is_none() && !is_wide => plain(at + 4),
        // add or and sub xor cmp test with eax or rax, imm32
        0x05 | 0x0d | 0x25 | 0x2d | 0x35 | 0x3d | 0xa9 if prefix.is_none() => plain(at + 4),
        // cmp al and test al, imm8
        0x3c | 0xa8 if is_bare => plain(at + 1),
        0x70..=0x7f if is_bare => {
            let displacement = *code.get(at)? as i8;
            known(at + 1, Kind::ShortBranch { condition: opcode & 0xf, displacement })
        }
        // add or and sub xor cmp, test, mov between registers and memory, movsxd; lea, always of memory
        0x00..=0x03
        | 0x08..=0x0b
        | 0x20..=0x23
        | 0x28..=0x2b
        | 0x30..=0x33
        | 0x38..=0x3b
        | 0x63
        | 0x84
        | 0x85
        | 0x88..=0x8b => with_operand(code, at, 0),
        0x8d if code.get(at)? >> 6 != 3 => with_operand(code, at, 0),
        // the same with imm8, imm32; shifts
        0x80 | 0x83 | 0xc0 | 0xc1 if !has_narrow_operands => with_operand(code, at, 1),
        0x81 if !has_narrow_operands => with_operand(code, at, 4),
        // mov of imm8, imm32: the other operations of these opcodes are xabort and xbegin
        0xc6 | 0xc7 if !has_narrow_operands && code.get(at)? & 0x38 == 0 => {
            with_operand(code, at, if opcode == 0xc6 { 1 } else { 4 })
        }
        0xd1 | 0xd3 => with_operand(code, at, 0),
        // test, not, neg, mul, div: only test has an immediate
        0xf6 | 0xf7 if !has_narrow_operands => {
            let is_test = code.get(at)? & 0x30 == 0;
            with_operand(
                code,
                at,
                if !is_test {
                    0
                } else if opcode == 0xf6 {
                    1
                } else {
                    4
                },
            )
        }
        0x0f => {
            let second = *code.get(at)?;
            at += 1;
            match second {
                // syscall
                0x05 if is_bare => plain(at),
                0x80..=0x8f if is_bare => elsewhere(at + 4),
                // moves of vectors, nop with an operand, cmov, logic on vectors, setcc, imul, movzx, movsx
                0x10
                | 0x11
                | 0x1f
                | 0x28
                | 0x29
                | 0x40..=0x4f
                | 0x57
                | 0x6e
                | 0x6f
                | 0x7e
                | 0x7f
                | 0x90..=0x9f
                | 0xaf
                | 0xb6
                | 0xb7
                | 0xbe
                | 0xbf
                | 0xef => with_operand(code, at, 0),
                _ => None,
            }
        }
        _ => None,
    }
}

/// An instruction whose ModRM byte is at `at`, with an immediate of `immediate_bytes` at its end.
fn with_operand(code: &[u8], at: usize, immediate_bytes: usize) -> Option<Simple> {
    let modrm = *code.get(at)?;
    let (mode, memory) = (modrm >> 6, modrm & 7);
    let mut end = at + 1;
    let mut kind = Kind::Plain;
    if mode != 3 {
        let mut has_wide_displacement = mode == 2;
        if memory == 4 {
            has_wide_displacement |= mode == 0 && code.get(end)? & 7 == 5; // SIB without a base
            end += 1;
        } else if mode == 0 && memory == 5 {
            kind = Kind::RipRelative { displacement_at: end };
            has_wide_displacement = true;
        }
        end += if has_wide_displacement { 4 } else { usize::from(mode == 1) };
    }
    let length = end + immediate_bytes;
    (length <= code.len()).then_some(Simple { length, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};

    #[test]
    fn every_instruction_of_libc_means_the_same_to_iced() {
        let read = crate::resolve("read").unwrap().entry as usize;
        let segment = crate::object::code_around(read).unwrap();
        // SAFETY: a readable segment of libc, which stays loaded.
        let text = unsafe { std::slice::from_raw_parts(segment.start as *const u8, segment.len()) };
        let mut decoder = Decoder::with_ip(64, text, 0, DecoderOptions::NONE);
        let (mut all, mut known) = (0, [0; 5]);
        while decoder.can_decode() {
            let offset = decoder.position();
            let instruction = decoder.decode();
            all += 1;
            let Some(simple) = decode(&text[offset..]) else {
                continue;
            };
            assert!(!instruction.is_invalid(), "{simple:?} at {offset:#x}");
            assert_eq!(simple.length, instruction.len(), "{:?} at {offset:#x}", instruction.code());
            match simple.kind {
                Kind::Plain => {
                    known[0] += 1;
                    assert!(!instruction.is_ip_rel_memory_operand(), "{offset:#x}");
                    let is_straight = instruction.flow_control() == FlowControl::Next;
                    assert!(
                        is_straight || instruction.code() == Code::Syscall,
                        "{:?} at {offset:#x}",
                        instruction.code()
                    );
                }
                Kind::LandingPad => {
                    known[1] += 1;
                    assert_eq!(instruction.code(), Code::Endbr64);
                }
                Kind::RipRelative { displacement_at } => {
                    known[2] += 1;
                    let field = &text[offset + displacement_at..offset + displacement_at + 4];
                    let displacement = i32::from_le_bytes(field.try_into().unwrap());
                    let operand = decoder.ip().wrapping_add_signed(i64::from(displacement));
                    assert_eq!(operand, instruction.ip_rel_memory_address(), "{offset:#x}");
                }
                Kind::ShortBranch { displacement, .. } => {
                    known[3] += 1;
                    assert!(instruction.is_jcc_short(), "{:?} at {offset:#x}", instruction.code());
                    let target = decoder.ip().wrapping_add_signed(i64::from(displacement));
                    assert_eq!(target, instruction.near_branch_target());
                }
                Kind::Elsewhere => {
                    known[4] += 1;
                    assert_ne!(instruction.flow_control(), FlowControl::Next);
                }
            }
        }
        println!("{all} instructions, known: {known:?}");
        assert!(
            all > 200_000
                && known[0] > all / 2
                && known[2] > 1000
                && known[3] > 1000
                && known[4] > 1000
        );
    }

    #[test]
    fn what_is_cut_short_is_not_known() {
        let long = [0x48, 0x81, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8]; // add qword ptr [rsp+disp32], imm32
        assert_eq!(decode(&long).unwrap().length, long.len());
        assert!((0..long.len()).all(|length| decode(&long[..length]).is_none()));
    }
}
