//! x86-64: a five-byte `jmp rel32` at the entry.

use crate::PatchError;
use iced_x86::{BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionBlock};

/// Bytes of the jump written at an entry (`e9 rel32`).
pub(crate) const ENTRY_JUMP_BYTES: usize = 5;
/// How far a trampoline may lie from its entry: less than the ±2 GiB of a rel32, so that data beside the code is in reach too.
pub(crate) const REACH_BYTES: usize = 1 << 30;
/// How far a function of unknown size is decoded in search of its end.
const SEARCH_BYTES_MAX: usize = 64 << 10;

/// The instructions at the entry of a function which a jump would cover.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Where the jump is written: behind `endbr64`, which must stay for indirect branch tracking, else at the entry.
    pub(crate) jump_offset: usize,
    /// End of the last instruction that the jump touches; bytes from the entry.
    pub(crate) moved_end: usize,
    instructions: Vec<Instruction>,
    address: u64,
}

/// Decodes the entry of the function at `address`, whose code is `body`, and makes sure that it can be moved.
///
/// `body` ends with the function if `is_size_known`; else it may reach as far as code is mapped, and the end of the
/// function is searched: the first return or jump that no earlier branch passes over.
pub(crate) fn read_entry(body: &[u8], address: usize, is_size_known: bool) -> Result<Entry, PatchError> {
    let body = if is_size_known { body } else { &body[..find_end(body, address)?] };
    let mut decoder = Decoder::with_ip(64, body, address as u64, DecoderOptions::NONE);
    let mut instructions = Vec::with_capacity(6);
    let mut jump_offset = 0;
    while decoder.position() < jump_offset + ENTRY_JUMP_BYTES {
        let offset = decoder.position();
        if !decoder.can_decode() {
            return Err(PatchError::TooShort { size_bytes: offset, needed_bytes: jump_offset + ENTRY_JUMP_BYTES });
        }
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Err(PatchError::Undecodable { offset });
        }
        if offset == 0 && instruction.code() == Code::Endbr64 {
            jump_offset = instruction.len();
        } else if offset == jump_offset {
            check_first(&instruction, body, offset, decoder.position())?;
        }
        let is_last = match instruction.flow_control() {
            // A system call counts as a call with iced, but leaves no return address.
            FlowControl::Call | FlowControl::IndirectCall if instruction.code() != Code::Syscall => {
                return Err(PatchError::Unmovable { offset, instruction: format!("{:?}", instruction.code()) });
            }
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Exception => true,
            _ => false,
        };
        instructions.push(instruction);
        if is_last && decoder.position() < jump_offset + ENTRY_JUMP_BYTES {
            // What follows may be padding, but also code that an earlier branch of the entry leads to.
            return Err(PatchError::TooShort {
                size_bytes: decoder.position(),
                needed_bytes: jump_offset + ENTRY_JUMP_BYTES,
            });
        }
    }
    let entry = Entry { jump_offset, moved_end: decoder.position(), instructions, address: address as u64 };
    entry.check_branches(body)?;
    Ok(entry)
}

/// Refuses entries that are somebody's jump already.
fn check_first(first: &Instruction, body: &[u8], offset: usize, next: usize) -> Result<(), PatchError> {
    let mut first_bytes = [0; 5];
    let shown = body.len().min(offset + first_bytes.len()) - offset;
    first_bytes[..shown].copy_from_slice(&body[offset..offset + shown]);
    let already_patched = Err(PatchError::AlreadyPatched { first_bytes });
    match first.code() {
        // `jmp [rip+0]` is a hook with its address behind it; any other `jmp [rip+x]` reads a slot of the GOT.
        Code::Jmp_rm64 if first.is_ip_rel_memory_operand() && first.ip_rel_memory_address() != first.next_ip() => {
            Err(PatchError::PltStub)
        }
        Code::Jmp_rm64 | Code::Jmp_rel32_64 | Code::Jmp_rel8_64 | Code::Int3 => already_patched,
        // `mov reg, imm64; jmp reg` or `…; push reg; ret`.
        Code::Mov_r64_imm64 => {
            let second = Decoder::with_ip(64, &body[next..], first.next_ip(), DecoderOptions::NONE).decode();
            match second.code() {
                Code::Jmp_rm64 | Code::Push_r64 if second.op0_register() == first.op0_register() => already_patched,
                _ => Ok(()),
            }
        }
        // `push index; jmp PLT0` is the lazy half of a PLT stub.
        Code::Pushq_imm32 | Code::Pushq_imm8 => {
            let second = Decoder::with_ip(64, &body[next..], first.next_ip(), DecoderOptions::NONE).decode();
            if second.code() == Code::Jmp_rel32_64 { Err(PatchError::PltStub) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Length of the function at the start of `code`.
fn find_end(code: &[u8], address: usize) -> Result<usize, PatchError> {
    let code = &code[..code.len().min(SEARCH_BYTES_MAX)];
    let mut decoder = Decoder::with_ip(64, code, address as u64, DecoderOptions::NONE);
    let mut furthest = 0;
    while decoder.can_decode() {
        let offset = decoder.position();
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return Err(PatchError::Undecodable { offset });
        }
        let is_jump = match instruction.flow_control() {
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Exception => true,
            FlowControl::Interrupt => instruction.code() == Code::Int3,
            _ => false,
        };
        if let Some(target) = direct_target(&instruction)
            && instruction.flow_control() == FlowControl::ConditionalBranch
        {
            let forward = usize::try_from(target.wrapping_sub(address as u64)).unwrap_or(usize::MAX);
            if forward < code.len() {
                furthest = furthest.max(forward);
            }
        }
        if is_jump && decoder.position() > furthest {
            return Ok(decoder.position());
        }
    }
    Err(PatchError::NoEnd { searched_bytes: code.len() })
}

/// Where a direct jump, branch or call leads.
fn direct_target(instruction: &Instruction) -> Option<u64> {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
            let target = instruction.near_branch_target();
            (target != 0).then_some(target)
        }
        _ => None,
    }
}

impl Entry {
    /// Refuses a function in which a branch leads to bytes that will no longer be what they were.
    ///
    /// Whole functions would be costly to decode in every process that starts (tens of microseconds each for the largest), so
    /// the bytes are first searched for anything that could be such a branch; only then is the function decoded.
    fn check_branches(&self, body: &[u8]) -> Result<(), PatchError> {
        let mut is_inside_suspect = false;
        for instruction in &self.instructions {
            let Some(target) = direct_target(instruction) else { continue };
            let to_offset = target.wrapping_sub(self.address);
            let is_moved_too = self.instructions.iter().any(|other| other.ip() == target);
            is_inside_suspect |= to_offset < self.moved_end as u64 && !is_moved_too;
        }
        if !is_inside_suspect && !may_branch_below(body, self.moved_end) {
            return Ok(());
        }
        let mut decoder = Decoder::with_ip(64, body, self.address, DecoderOptions::NONE);
        while decoder.can_decode() {
            let from_offset = decoder.position();
            let instruction = decoder.decode();
            let Some(target) = direct_target(&instruction) else { continue };
            let to_offset = target.wrapping_sub(self.address);
            if to_offset >= self.moved_end as u64 {
                continue;
            }
            // A recursive call starts over at the entry as any other call does; a branch among the moved instructions moves along.
            let is_recursion = to_offset == 0 && instruction.flow_control() == FlowControl::Call;
            let moves_along = from_offset < self.moved_end && self.instructions.iter().any(|other| other.ip() == target);
            if !is_recursion && !moves_along {
                return Err(PatchError::EntryIsBranchTarget { from_offset, to_offset: to_offset as usize });
            }
        }
        Ok(())
    }

    /// The code of a trampoline at `address`: the moved instructions and a jump to the rest of the function.
    pub(crate) fn trampoline(&self, address: usize) -> Result<Vec<u8>, PatchError> {
        let back_to = self.address + self.moved_end as u64;
        let back = Instruction::with_branch(Code::Jmp_rel32_64, back_to).map_err(|_| PatchError::OutOfReach)?;
        let mut instructions = Vec::with_capacity(self.instructions.len() + 1);
        instructions.extend_from_slice(&self.instructions);
        instructions.push(back);
        BlockEncoder::encode(64, InstructionBlock::new(&instructions, address as u64), BlockEncoderOptions::NONE)
            .map(|result| result.code_buffer)
            .map_err(|_| PatchError::OutOfReach)
    }

    /// Writes the jump into `entry`, the bytes from the entry to [`Entry::moved_end`]. What is left of the moved instructions
    /// becomes breakpoints: whoever lands there stops instead of running half an instruction.
    pub(crate) fn overwrite(&self, entry: &mut [u8], jump: [u8; ENTRY_JUMP_BYTES]) {
        let (before_end, end) = (self.jump_offset + ENTRY_JUMP_BYTES, self.moved_end);
        entry[self.jump_offset..before_end].copy_from_slice(&jump);
        entry[before_end..end].fill(0xcc);
    }
}

/// Whether any byte of `body` could begin a direct branch to an offset below `end`.
///
/// The displacement of a direct branch is its last field, one byte or four, counted from the end of the instruction
/// (Intel SDM volume 2, Jcc, JMP, CALL, LOOP), so the search needs no instruction boundaries.
fn may_branch_below(body: &[u8], end: usize) -> bool {
    let leads_below = |next: usize, displacement: i64| {
        let target = next as i64 + displacement;
        (0..end as i64).contains(&target)
    };
    let is_short = |&opcode: &u8| matches!(opcode, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb);
    let short_reach = body.len().min(end + 128);
    let short = (1..short_reach).any(|at| is_short(&body[at - 1]) && leads_below(at + 1, i64::from(body[at] as i8)));
    // A backward displacement within a function has 0xff as its highest byte, or 0xfe for functions beyond 16 MiB.
    short
        || body.windows(5).enumerate().any(|(at, window)| {
            window[4] >= 0xfe
                && matches!(window[0], 0xe8 | 0xe9 | 0x80..=0x8f)
                && leads_below(at + 5, i64::from(i32::from_le_bytes([window[1], window[2], window[3], window[4]])))
        })
}

/// The jump at `from` to `to`, if that is within ±2 GiB.
pub(crate) fn entry_jump(from: usize, to: usize) -> Option<[u8; ENTRY_JUMP_BYTES]> {
    let next = from.wrapping_add(ENTRY_JUMP_BYTES);
    let displacement = i32::try_from(to.wrapping_sub(next) as isize).ok()?;
    let [a, b, c, d] = displacement.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

/// An island: `jmp [rip+0]` with the address behind it. It touches no register and reaches everywhere.
pub(crate) fn island(to: usize) -> Vec<u8> {
    let mut code = vec![0xff, 0x25, 0, 0, 0, 0];
    code.extend_from_slice(&(to as u64).to_le_bytes());
    code
}
