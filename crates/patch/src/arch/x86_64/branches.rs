//! Where branches lead: the end of a function, what may branch back into its entry, what it calls.

use super::lanes::{LANES, Lanes};
use super::simple::{self, Kind};
use crate::PatchError;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};

/// How far a function of unknown size is decoded in search of its end.
const SEARCH_BYTES_MAX: usize = 64 << 10;
/// How far into a function its system call is searched.
const SYSTEM_CALL_BYTES_MAX: usize = 256;
/// An unconditional jump ahead by less than this stays in its function: the usual way into a loop.
const INNER_JUMP_BYTES_MAX: usize = 4 << 10;
/// Length of the function at the start of `code`: to the first return or jump that no earlier branch passes over.
///
/// What follows a call that does not return may be taken for part of the function; that errs on the safe side.
pub(super) fn find_end(code: &[u8], address: usize) -> Result<usize, PatchError> {
    let code = &code[..code.len().min(SEARCH_BYTES_MAX)];
    let (mut at, mut furthest) = (0, 0);
    while at < code.len() {
        let step = step(code, at, address)?;
        // A jump far ahead leads to another function.
        let reach = if step.is_conditional { code.len() } else { at + INNER_JUMP_BYTES_MAX };
        if let Some(target) = step.target
            && target > at
            && target < reach
        {
            furthest = furthest.max(target);
        }
        at += step.length;
        if step.is_last && at > furthest {
            return Ok(at);
        }
    }
    Err(PatchError::NoEnd { searched_bytes: code.len() })
}

/// One instruction of a function whose end is being searched.
struct Step {
    length: usize,
    /// Whether what follows is not reached from here.
    is_last: bool,
    is_conditional: bool,
    /// Offset to which a jump or branch leads; none for a call.
    target: Option<usize>,
}

fn step(code: &[u8], at: usize, address: usize) -> Result<Step, PatchError> {
    let plain = |length| Step { length, is_last: false, is_conditional: false, target: None };
    if let Some(instruction) = simple::decode(&code[at..])
        && instruction.kind != Kind::Elsewhere
    {
        let Kind::ShortBranch { displacement, .. } = instruction.kind else {
            return Ok(plain(instruction.length));
        };
        let target = (at + instruction.length).checked_add_signed(isize::from(displacement));
        return Ok(Step { is_conditional: true, target, ..plain(instruction.length) });
    }
    let near = |opcode_bytes: usize| {
        let field = code.get(at + opcode_bytes..at + opcode_bytes + 4)?;
        let displacement = i32::from_le_bytes(field.try_into().ok()?);
        (at + opcode_bytes + 4).checked_add_signed(displacement as isize)
    };
    match code[at..] {
        [0xc3, ..] => {
            return Ok(Step { is_last: true, ..plain(1) });
        }
        [0xe8, _, _, _, _, ..] => return Ok(plain(5)),
        [0xe9, _, _, _, _, ..] => {
            return Ok(Step { is_last: true, target: near(1), ..plain(5) });
        }
        [0xeb, displacement, ..] => {
            let target = (at + 2).checked_add_signed(isize::from(displacement as i8));
            return Ok(Step { is_last: true, target, ..plain(2) });
        }
        [0x0f, 0x80..=0x8f, _, _, _, _, ..] => {
            return Ok(Step { is_conditional: true, target: near(2), ..plain(6) });
        }
        _ => {}
    }
    let instruction =
        Decoder::with_ip(64, &code[at..], (address + at) as u64, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return Err(PatchError::Undecodable { offset: at });
    }
    let flow = instruction.flow_control();
    let is_last = match flow {
        FlowControl::Return
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Exception => true,
        FlowControl::Interrupt => instruction.code() == Code::Int3,
        _ => false,
    };
    let target = (flow != FlowControl::Call).then(|| direct_target(&instruction)).flatten();
    let target =
        target.and_then(|target| usize::try_from(target.wrapping_sub(address as u64)).ok());
    let is_conditional = flow == FlowControl::ConditionalBranch;
    Ok(Step { length: instruction.len(), is_last, is_conditional, target })
}

/// Where a direct jump, branch or call leads.
pub(super) fn direct_target(instruction: &Instruction) -> Option<u64> {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
            let target = instruction.near_branch_target();
            (target != 0).then_some(target)
        }
        _ => None,
    }
}

/// Whether a direct branch to an offset below `end` may be in `body`.
///
/// The displacement of a direct branch is its last field, one byte or four, counted from the end of the instruction
/// (Intel SDM volume 2, Jcc, JMP, CALL, LOOP), so the search needs no instruction boundaries. What it finds is looked at again.
pub(super) fn may_branch_below(body: &[u8], end: usize) -> bool {
    may_branch_shortly_below(body, end) || may_branch_far_below(body, end)
}

fn leads_below(end: usize, next: usize, displacement: i64) -> bool {
    (0..end as i64).contains(&(next as i64 + displacement))
}

/// Whether `check` says yes for some offset of `body`. It is asked only of the offsets that pass `test`, which gets the offset of
/// the first of some lanes, may read as far as `APART` bytes behind the last one, and may pass too many.
#[inline(always)]
fn any_of_candidates<const APART: usize>(
    body: &[u8],
    test: impl Fn(usize) -> Lanes,
    check: impl Fn(usize) -> bool,
) -> bool {
    let Some(last) = body.len().checked_sub(LANES + APART) else {
        return (0..body.len()).any(check);
    };
    let mut start = 0;
    loop {
        let mut candidates = test(start).bits();
        while candidates != 0 {
            if check(start + candidates.trailing_zeros() as usize) {
                return true;
            }
            candidates &= candidates - 1;
        }
        if start == last {
            // Behind the last lanes no branch has room.
            return false;
        }
        start = (start + LANES).min(last);
    }
}

/// The part of [`may_branch_below`] for displacements of one byte.
fn may_branch_shortly_below(body: &[u8], end: usize) -> bool {
    let near = &body[..body.len().min(end + 128)];
    any_of_candidates::<1>(
        near,
        |at| {
            let opcodes = Lanes::of(near, at);
            let are_short =
                opcodes.have(0xf0, 0x70).or(opcodes.have(0xfc, 0xe0)).or(opcodes.have(0xff, 0xeb));
            // Modulo 256 the target is the displacement and where the branch ends.
            let ends = Lanes::numbers().plus(Lanes::all((at as u8).wrapping_add(2)));
            are_short.and(Lanes::of(near, at + 1).plus(ends).at_most(end as u8 - 1))
        },
        |at| {
            let Some(&[opcode, displacement]) = near.get(at..at + 2) else { return false };
            matches!(opcode, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb)
                && leads_below(end, at + 2, i64::from(displacement as i8))
                && may_be_branch(body, at)
        },
    )
}

/// The part of [`may_branch_below`] for displacements of four bytes.
fn may_branch_far_below(body: &[u8], end: usize) -> bool {
    const LENGTH: usize = 5;
    let leads_there = |at: usize| {
        let Some(&[opcode, a, b, c, d]) = body.get(at..at + LENGTH) else { return false };
        matches!(opcode, 0xe8 | 0xe9 | 0x80..=0x8f)
            && leads_below(end, at + LENGTH, i64::from(i32::from_le_bytes([a, b, c, d])))
            && may_be_branch(body, at)
    };
    // The highest byte of a displacement that leads back is 0xff (0xfe in a function of more than 16 MiB), and in a function
    // of no more than 64 KiB the one before it as well.
    let second_mask = if body.len() <= 1 << 16 { 0xff } else { 0 };
    let leads_back_there = any_of_candidates::<4>(
        body,
        |at| {
            let opcodes = Lanes::of(body, at);
            let are_long = opcodes.have(0xfe, 0xe8).or(opcodes.have(0xf0, 0x80));
            let second = Lanes::of(body, at + 3).have(second_mask, second_mask);
            are_long.and(second).and(Lanes::of(body, at + 4).have(0xfe, 0xfe))
        },
        leads_there,
    );
    // One that leads onward to below `end` stands before it whole.
    leads_back_there || (0..end.saturating_sub(LENGTH)).any(leads_there)
}

/// Whether the byte at `opcode_at` may be the opcode of a branch: false if it is seen to be another part of an instruction.
fn may_be_branch(body: &[u8], opcode_at: usize) -> bool {
    let mut at = 0;
    loop {
        let Some(instruction) = simple::decode(&body[at..]) else {
            return true;
        };
        if opcode_at < at + instruction.length {
            return match instruction.kind {
                Kind::Plain | Kind::LandingPad | Kind::RipRelative { .. } => false,
                Kind::ShortBranch { .. } => opcode_at == at,
                // The opcode of a long conditional branch has two bytes.
                Kind::Elsewhere => opcode_at == at + usize::from(body[at] == 0x0f),
            };
        }
        at += instruction.length;
    }
}

/// Offsets in `body` at which a direct call or jump could begin, and the address that it would lead to.
pub(crate) fn possible_calls(body: &[u8], address: usize) -> impl Iterator<Item = usize> {
    body.windows(5).enumerate().filter(|(_, window)| matches!(window[0], 0xe8 | 0xe9)).map(
        move |(at, window)| {
            let displacement = i32::from_le_bytes([window[1], window[2], window[3], window[4]]);
            (address + at + 5).wrapping_add_signed(displacement as isize)
        },
    )
}

/// Whether `address` could be the entry of a function: compilers align them, unless told to save space.
pub(crate) fn is_entry_like(address: usize) -> bool {
    address.is_multiple_of(16)
}

/// Length of the function at the start of `code`, if in it the system call `number` is made: `mov eax, number; syscall`.
pub(crate) fn size_if_calls_system(code: &[u8], address: usize, number: u32) -> Option<usize> {
    let [a, b, c, d] = number.to_le_bytes();
    let sequence = [0xb8, a, b, c, d, 0x0f, 0x05];
    let near = &code[..code.len().min(SYSTEM_CALL_BYTES_MAX)];
    near.windows(sequence.len()).position(|window| window == sequence)?;
    let size_bytes = find_end(code, address).ok()?;
    code[..size_bytes]
        .windows(sequence.len())
        .any(|window| window == sequence)
        .then_some(size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_into_the_entry_is_seen_wherever_it_stands() {
        const END: usize = 9;
        for at in 0..150 {
            let with = |branch: &[u8]| {
                let mut body = vec![0x90; 160];
                body[at..at + branch.len()].copy_from_slice(branch);
                body
            };
            for target in 0..END + 3 {
                let is_below = target < END;
                if let Ok(displacement) = i8::try_from(target as isize - at as isize - 2) {
                    for opcode in [0x70, 0x7f, 0xe2, 0xeb] {
                        let body = with(&[opcode, displacement as u8]);
                        assert_eq!(may_branch_below(&body, END), is_below, "{at} to {target}");
                    }
                }
                let displacement_from =
                    |length: usize| (target as i32 - (at + length) as i32).to_le_bytes();
                for opcode in [0xe8, 0xe9] {
                    let [a, b, c, d] = displacement_from(5);
                    let body = with(&[opcode, a, b, c, d]);
                    assert_eq!(may_branch_below(&body, END), is_below, "{at} to {target}");
                }
                let [a, b, c, d] = displacement_from(6);
                let body = with(&[0x0f, 0x84, a, b, c, d]);
                assert_eq!(may_branch_below(&body, END), is_below, "{at} to {target}");
            }
        }
    }
}
