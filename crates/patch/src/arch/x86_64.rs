//! x86-64: a five-byte `jmp rel32` at the entry.

mod branches;
mod lanes;
mod simple;

use crate::PatchError;
use branches::{direct_target, find_end, may_branch_below};
pub(crate) use branches::{is_entry_like, possible_calls, size_if_calls_system};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock,
};
use simple::{Kind, Simple};

/// Bytes of the jump written at an entry (`e9 rel32`).
pub(crate) const ENTRY_JUMP_BYTES: usize = 5;
/// The most instructions that a jump covers or reaches into, `endbr64` before it included.
const MOVED_COUNT_MAX: usize = 1 + ENTRY_JUMP_BYTES;
/// The most bytes of them: `endbr64`, four bytes that the jump covers, and an instruction of the greatest length.
pub(crate) const MOVED_BYTES_MAX: usize = 4 + (ENTRY_JUMP_BYTES - 1) + 15;
/// How far a trampoline may lie from its entry: less than the ±2 GiB of a rel32, so that data beside the code is in reach too.
pub(crate) const REACH_BYTES: usize = 1 << 30;

/// The most bytes of a trampoline: five instructions of 15 bytes, branches among them that grew, and the jump back.
pub(crate) const TRAMPOLINE_BYTES_MAX: usize = 128;
/// Bytes of an island.
pub(crate) const ISLAND_BYTES: usize = 14;

/// A piece of code that is being written.
pub(crate) struct Piece {
    bytes: [u8; TRAMPOLINE_BYTES_MAX],
    len: usize,
}

impl Piece {
    fn new() -> Self {
        Piece { bytes: [0; TRAMPOLINE_BYTES_MAX], len: 0 }
    }

    fn push(&mut self, code: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.len..self.len + code.len())?.copy_from_slice(code);
        self.len += code.len();
        Some(())
    }

    /// What has been written.
    pub(crate) fn code(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The instructions at the entry of a function which a jump would cover.
///
/// It cannot be printed: the names of all instructions would be strings to relocate in every process that starts.
pub(crate) struct Entry {
    /// Where the jump is written: behind `endbr64`, which must stay for indirect branch tracking, else at the entry.
    pub(crate) jump_offset: usize,
    /// End of the last instruction that the jump touches; bytes from the entry.
    pub(crate) moved_end: usize,
    moved: Moved,
    address: u64,
}

/// The instructions that move.
enum Moved {
    /// The usual case, in which no disassembler is needed and nothing is allocated: some hundred entries are read in every
    /// process.
    Simple(SimpleCode),
    General(Vec<Instruction>),
}

/// The bytes of some instructions, and what these are.
struct SimpleCode {
    bytes: [u8; MOVED_BYTES_MAX],
    instructions: [Simple; MOVED_COUNT_MAX],
    count: usize,
}

impl SimpleCode {
    fn instructions(&self) -> &[Simple] {
        &self.instructions[..self.count]
    }
}

/// Decodes the entry of the function at `address`, whose code is `body`, and makes sure that it can be moved.
///
/// `body` ends with the function if `is_size_known`; else it may reach as far as code is mapped, and the end of the
/// function is searched: the first return or jump that no earlier branch passes over.
pub(crate) fn read_entry(
    body: &[u8],
    address: usize,
    is_size_known: bool,
) -> Result<Entry, PatchError> {
    let body = if is_size_known { body } else { &body[..find_end(body, address)?] };
    if let Some(entry) = read_simple(body, address) {
        return Ok(entry);
    }
    let entry = read_general(body, address)?;
    entry.check_branches(body)?;
    Ok(entry)
}

/// [`read_entry`] for an entry of nothing but simple instructions into which nothing can possibly branch.
fn read_simple(body: &[u8], address: usize) -> Option<Entry> {
    let mut instructions = [Simple { length: 0, kind: Kind::Plain }; MOVED_COUNT_MAX];
    let (mut jump_offset, mut end, mut count) = (0, 0, 0);
    while end < jump_offset + ENTRY_JUMP_BYTES {
        let instruction = simple::decode(&body[end..])?;
        end += instruction.length;
        match instruction.kind {
            Kind::LandingPad if end == instruction.length => jump_offset = end,
            Kind::LandingPad | Kind::Elsewhere => return None,
            // Within the moved instructions, or before the function: left to the general way.
            Kind::ShortBranch { displacement, .. }
                if displacement < 0 || (displacement as usize) < ENTRY_JUMP_BYTES =>
            {
                return None;
            }
            _ => {}
        }
        instructions[count] = instruction;
        count += 1;
    }
    let mut from = 0;
    for instruction in &instructions[..count] {
        from += instruction.length;
        if let Kind::RipRelative { displacement_at } = instruction.kind {
            let displacement = read_i32(body, from - instruction.length + displacement_at);
            let reads_own_code =
                from.checked_add_signed(displacement as isize).is_some_and(|operand| operand < end);
            if reads_own_code {
                return None;
            }
        }
    }
    let mut bytes = [0; MOVED_BYTES_MAX];
    bytes[..end].copy_from_slice(&body[..end]);
    let moved = Moved::Simple(SimpleCode { bytes, instructions, count });
    let entry = Entry { jump_offset, moved_end: end, moved, address: address as u64 };
    (!may_branch_below(body, end)).then_some(entry)
}

/// A little-endian field of four bytes.
fn read_i32(code: &[u8], at: usize) -> i32 {
    i32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])
}

/// [`read_entry`] with a disassembler. `body` ends with the function.
fn read_general(body: &[u8], address: usize) -> Result<Entry, PatchError> {
    let mut decoder = Decoder::with_ip(64, body, address as u64, DecoderOptions::NONE);
    let mut instructions = Vec::with_capacity(6);
    let mut jump_offset = 0;
    while decoder.position() < jump_offset + ENTRY_JUMP_BYTES {
        let offset = decoder.position();
        if !decoder.can_decode() {
            return Err(PatchError::TooShort {
                size_bytes: offset,
                needed_bytes: jump_offset + ENTRY_JUMP_BYTES,
            });
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
            FlowControl::Call | FlowControl::IndirectCall
                if instruction.code() != Code::Syscall =>
            {
                return Err(PatchError::Unmovable { offset, reason: "it is a call" });
            }
            FlowControl::Return
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Exception => true,
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
    let moved_end = decoder.position();
    let own_code = address as u64..(address + moved_end) as u64;
    if let Some(own) = instructions.iter().find(|one| {
        one.is_ip_rel_memory_operand() && own_code.contains(&one.ip_rel_memory_address())
    }) {
        return Err(PatchError::Unmovable {
            offset: (own.ip() - address as u64) as usize,
            reason: "it reads bytes that the jump overwrites",
        });
    }
    Ok(Entry {
        jump_offset,
        moved_end,
        moved: Moved::General(instructions),
        address: address as u64,
    })
}

/// Refuses entries that are somebody's jump already.
fn check_first(
    first: &Instruction,
    body: &[u8],
    offset: usize,
    next: usize,
) -> Result<(), PatchError> {
    let mut first_bytes = [0; 5];
    let shown = body.len().min(offset + first_bytes.len()) - offset;
    first_bytes[..shown].copy_from_slice(&body[offset..offset + shown]);
    let already_patched = Err(PatchError::AlreadyPatched { first_bytes });
    match first.code() {
        // `jmp [rip+0]` is a hook with its address behind it; any other `jmp [rip+x]` reads a slot of the GOT.
        Code::Jmp_rm64
            if first.is_ip_rel_memory_operand()
                && first.ip_rel_memory_address() != first.next_ip() =>
        {
            Err(PatchError::PltStub)
        }
        Code::Jmp_rm64 | Code::Jmp_rel32_64 | Code::Jmp_rel8_64 | Code::Int3 => already_patched,
        // `mov reg, imm64; jmp reg` or `…; push reg; ret`.
        Code::Mov_r64_imm64 => {
            let second =
                Decoder::with_ip(64, &body[next..], first.next_ip(), DecoderOptions::NONE).decode();
            match second.code() {
                Code::Jmp_rm64 | Code::Push_r64
                    if second.op0_register() == first.op0_register() =>
                {
                    already_patched
                }
                _ => Ok(()),
            }
        }
        // `push index; jmp PLT0` is the lazy half of a PLT stub.
        Code::Pushq_imm32 | Code::Pushq_imm8 => {
            let second =
                Decoder::with_ip(64, &body[next..], first.next_ip(), DecoderOptions::NONE).decode();
            if second.code() == Code::Jmp_rel32_64 { Err(PatchError::PltStub) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

impl Entry {
    /// Refuses a function in which a branch leads to bytes that will no longer be what they were.
    ///
    /// Decoding whole functions would be costly in every process that starts, so the bytes are first searched for anything that
    /// could be such a branch.
    fn check_branches(&self, body: &[u8]) -> Result<(), PatchError> {
        if !may_branch_below(body, self.moved_end) {
            return Ok(());
        }
        let Moved::General(moved) = &self.moved else {
            return Ok(());
        };
        let mut decoder = Decoder::with_ip(64, body, self.address, DecoderOptions::NONE);
        while decoder.can_decode() {
            let from_offset = decoder.position();
            let instruction = decoder.decode();
            let Some(target) = direct_target(&instruction) else {
                continue;
            };
            let to_offset = target.wrapping_sub(self.address);
            if to_offset >= self.moved_end as u64 {
                continue;
            }
            // A recursive call starts over at the entry as any other call does; a branch among the moved instructions moves along.
            let is_recursion = to_offset == 0 && instruction.flow_control() == FlowControl::Call;
            let moves_along =
                from_offset < self.moved_end && moved.iter().any(|other| other.ip() == target);
            if !is_recursion && !moves_along {
                return Err(PatchError::EntryIsBranchTarget {
                    from_offset,
                    to_offset: to_offset as usize,
                });
            }
        }
        Ok(())
    }

    /// The code of a trampoline at `address`: the moved instructions and a jump to the rest of the function.
    pub(crate) fn trampoline(&self, address: usize) -> Result<Piece, PatchError> {
        match &self.moved {
            Moved::Simple(code) => self
                .move_simple(&code.bytes, code.instructions(), address)
                .ok_or(PatchError::OutOfReach),
            Moved::General(instructions) => self.move_general(instructions, address),
        }
    }

    fn move_simple(&self, bytes: &[u8], instructions: &[Simple], address: usize) -> Option<Piece> {
        let mut code = Piece::new();
        let mut from = 0;
        for instruction in instructions {
            let next = from + instruction.length;
            let displacement_to = |target: u64, code: &Piece, length: usize| {
                let moved_next = (address + code.len + length) as u64;
                i32::try_from(target.wrapping_sub(moved_next) as i64).ok().map(i32::to_le_bytes)
            };
            let next_address = self.address + next as u64;
            match instruction.kind {
                Kind::Plain | Kind::LandingPad | Kind::Elsewhere => {
                    code.push(&bytes[from..next])?;
                }
                Kind::RipRelative { displacement_at } => {
                    let at = from + displacement_at;
                    let displacement = read_i32(bytes, at);
                    let operand = next_address.wrapping_add_signed(i64::from(displacement));
                    let field = displacement_to(operand, &code, instruction.length)?;
                    code.push(&bytes[from..at])?;
                    code.push(&field)?;
                    code.push(&bytes[at + 4..next])?;
                }
                Kind::ShortBranch { condition, displacement } => {
                    const NEAR_BRANCH_BYTES: usize = 6; // 0f 8x rel32
                    let target = next_address.wrapping_add_signed(i64::from(displacement));
                    let field = displacement_to(target, &code, NEAR_BRANCH_BYTES)?;
                    code.push(&[0x0f, 0x80 | condition])?;
                    code.push(&field)?;
                }
            }
            from = next;
        }
        let back = entry_jump(address + code.len, self.address as usize + self.moved_end)?;
        code.push(&back)?;
        Some(code)
    }

    fn move_general(
        &self,
        instructions: &[Instruction],
        address: usize,
    ) -> Result<Piece, PatchError> {
        let back_to = self.address + self.moved_end as u64;
        let back = Instruction::with_branch(Code::Jmp_rel32_64, back_to)
            .map_err(|_| PatchError::OutOfReach)?;
        let mut block = instructions.to_vec();
        block.push(back);
        let mut code = Piece::new();
        BlockEncoder::encode(
            64,
            InstructionBlock::new(&block, address as u64),
            BlockEncoderOptions::NONE,
        )
        .ok()
        .and_then(|result| code.push(&result.code_buffer))
        .ok_or(PatchError::OutOfReach)?;
        Ok(code)
    }
}

/// Writes the jump into `entry`, the bytes from the entry to [`Entry::moved_end`]. What is left of the moved instructions
/// becomes breakpoints: whoever lands there stops instead of running half an instruction.
pub(crate) fn overwrite(entry: &mut [u8], jump_offset: usize, jump: [u8; ENTRY_JUMP_BYTES]) {
    let before_end = jump_offset + ENTRY_JUMP_BYTES;
    entry[jump_offset..before_end].copy_from_slice(&jump);
    entry[before_end..].fill(0xcc);
}

/// The jump at `from` to `to`, if that is within ±2 GiB.
pub(crate) fn entry_jump(from: usize, to: usize) -> Option<[u8; ENTRY_JUMP_BYTES]> {
    let next = from.wrapping_add(ENTRY_JUMP_BYTES);
    let displacement = i32::try_from(to.wrapping_sub(next) as isize).ok()?;
    let [a, b, c, d] = displacement.to_le_bytes();
    Some([0xe9, a, b, c, d])
}

/// An island: `jmp [rip+0]` with the address behind it. It touches no register and reaches everywhere.
pub(crate) fn island(to: usize) -> [u8; ISLAND_BYTES] {
    let [a, b, c, d, e, f, g, h] = (to as u64).to_le_bytes();
    [0xff, 0x25, 0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_entries_are_moved_as_the_disassembler_moves_them() {
        let read = crate::resolve("read").unwrap().entry as usize;
        let segment = crate::object::code_around(read).unwrap();
        // SAFETY: a readable segment of libc, which stays loaded.
        let text = unsafe { std::slice::from_raw_parts(segment.start as *const u8, segment.len()) };
        let mut compared = 0;
        for offset in (0..text.len() - 64).step_by(16) {
            let (body, address) = (&text[offset..offset + 64], segment.start + offset);
            let Some(simple) = read_simple(body, address) else {
                continue;
            };
            let general = read_general(body, address)
                .unwrap_or_else(|error| panic!("{error:?} at {offset:#x}: {:x?}", &body[..16]));
            assert_eq!(
                (simple.jump_offset, simple.moved_end),
                (general.jump_offset, general.moved_end),
                "at {offset:#x}"
            );
            general.check_branches(body).unwrap();
            let trampoline_address = segment.start - (100 << 20);
            let (ours, theirs) =
                (simple.trampoline(trampoline_address), general.trampoline(trampoline_address));
            // Equality of instructions is that of meaning: an instruction may have several encodings.
            let read_again = |code: &[u8]| -> Vec<Instruction> {
                Decoder::with_ip(64, code, trampoline_address as u64, DecoderOptions::NONE)
                    .into_iter()
                    .collect()
            };
            let (Ok(ours), Ok(theirs)) = (&ours, &theirs) else {
                // What begins within an instruction may have any operand, one out of reach too.
                assert_eq!(ours.err(), theirs.err(), "at {offset:#x}");
                continue;
            };
            assert!(
                read_again(ours.code()) == read_again(theirs.code()),
                "at {offset:#x}: {:x?} {:x?}",
                ours.code(),
                theirs.code()
            );
            compared += 1;
        }
        println!("{compared} compared");
        assert!(compared > 10_000);
    }

    #[test]
    fn a_trampoline_out_of_reach_is_refused() {
        let code = [0x80, 0x3d, 0, 0, 0, 0, 0, 0xc3]; // cmp byte ptr [rip], 0; ret
        let entry = read_entry(&code, 0x10_0000_0000, true).unwrap();
        assert!(entry.trampoline(0x10_7000_0000).is_ok());
        assert_eq!(entry.trampoline(0x20_0000_0000).err(), Some(PatchError::OutOfReach));
        assert_eq!(entry_jump(0x10_0000_0000, 0x20_0000_0000), None);
    }
}
