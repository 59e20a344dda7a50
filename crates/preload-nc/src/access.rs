//! Calls that move data, once it is known that they are about a coupled file.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use exchange::{CycleEnd, Token, Type};

use crate::codes;
use crate::failure::{Code, answer};
use crate::memory::{Buffer, Resolved};
use crate::open::{OpenFile, Phase, Side};
use crate::requests::Posted;
use crate::{memory, place};

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
}

/// Who takes part in a call, and when it is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// This rank, now.
    Independent,
    /// All ranks, now.
    Collective,
    /// When it is waited for.
    Posted,
    /// Likewise, but the memory is copied now.
    Buffered,
}

/// Which part of a variable, as the program says it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// All of it.
    Whole,
    /// One element.
    Element { start: *const i64 },
    /// A regular part; all but `start` and `count` may be NULL.
    Part { start: *const i64, count: *const i64, stride: *const i64, imap: *const i64 },
    /// Several parts, one behind the other in memory.
    Parts { num: c_int, starts: *const *const i64, counts: *const *const i64 },
    /// Bytes of the variable.
    Filetype { filetype: usize },
}

/// What lies in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Elements {
    /// Values of one type.
    Of(Type),
    /// What an MPI datatype says.
    Flexible { count: i64, datatype: usize },
}

/// A call about one variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) verb: Verb,
    pub(crate) varid: c_int,
    pub(crate) place: Place,
    pub(crate) elements: Elements,
    pub(crate) buffer: *mut c_void,
}

/// A call about several variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Many {
    pub(crate) verb: Verb,
    pub(crate) num: c_int,
    pub(crate) varids: *const c_int,
    /// `_var`, `_var1`, …: which of the lists there are.
    pub(crate) form: &'static str,
    /// Starts, counts, strides, maps.
    pub(crate) lists: [*const *const i64; 4],
    pub(crate) elements: SeveralElements,
    pub(crate) buffers: *const *mut c_void,
}

/// What lies in several memories.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeveralElements {
    /// Values of one type.
    Of(Type),
    /// What MPI datatypes say.
    Flexible { counts: *const i64, datatypes: *const c_void },
}

type Shared = Arc<Mutex<OpenFile>>;

/// A call that is carried out before it returns.
///
/// # Safety
/// The arguments of a call of PnetCDF.
pub(crate) unsafe fn blocking(file: &Shared, mode: Mode, access: &Access) -> c_int {
    answer(|| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        allowed(&file, mode, access.verb)?;
        file.await_cycle()?;
        // SAFETY: the caller's promise.
        let done =
            unsafe { resolve(&file, access).and_then(|one| carry_out(&mut file, vec![one])) };
        finish(&mut file, mode, done)
    })
}

/// A call that is carried out when the program waits for it.
///
/// # Safety
/// The arguments of a call of PnetCDF.
pub(crate) unsafe fn post(
    file: &Shared,
    mode: Mode,
    access: &Access,
    request: *mut c_int,
) -> c_int {
    let mut number = codes::NC_REQ_NULL;
    let code = answer(|| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        allowed(&file, mode, access.verb)?;
        file.await_cycle()?;
        // SAFETY: the caller's promise.
        let mut resolved = unsafe { resolve(&file, access)? };
        if resolved.is_empty() {
            return Ok(());
        }
        let mut buffered = None;
        if mode == Mode::Buffered {
            let bytes = resolved.stored_bytes();
            file.requests.make_room(bytes)?;
            // SAFETY: the program's memory, as it says.
            unsafe { resolved.copy() };
            buffered = Some(bytes);
        }
        number = file.requests.add(Posted { resolved, buffered });
        Ok(())
    });
    if !request.is_null() {
        // SAFETY: the caller's promise: room for a number.
        unsafe { request.write(number) };
    }
    code
}

/// A call about several variables.
///
/// # Safety
/// The arguments of a call of PnetCDF.
pub(crate) unsafe fn several(file: &Shared, mode: Mode, many: &Many) -> c_int {
    answer(|| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        allowed(&file, mode, many.verb)?;
        file.await_cycle()?;
        let count = usize::try_from(many.num).map_err(|_| Code(codes::NC_EINVAL))?;
        let resolved: Result<Vec<Resolved>, Code> = (0..count)
            // SAFETY: the caller's promise: lists that are `num` long.
            .map(|at| unsafe { resolve(&file, &many.one(at)) })
            .collect();
        // SAFETY: as above.
        let done = resolved.and_then(|all| unsafe { carry_out(&mut file, all) });
        finish(&mut file, mode, done)
    })
}

impl Many {
    /// The call about one of the variables.
    ///
    /// # Safety
    /// Lists that are longer than `at`.
    unsafe fn one(&self, at: usize) -> Access {
        let list = |number: usize| {
            let list = self.lists[number];
            // SAFETY: the caller's promise; a list may be NULL as in the call for one variable.
            if list.is_null() { std::ptr::null() } else { unsafe { list.add(at).read() } }
        };
        let place = match self.form {
            "_var" => Place::Whole,
            "_var1" => Place::Element { start: list(0) },
            _ => Place::Part { start: list(0), count: list(1), stride: list(2), imap: list(3) },
        };
        // SAFETY: as above.
        unsafe {
            let elements = match self.elements {
                SeveralElements::Of(type_) => Elements::Of(type_),
                SeveralElements::Flexible { counts, datatypes } => Elements::Flexible {
                    count: counts.add(at).read(),
                    datatype: memory::handle_at(datatypes, at),
                },
            };
            let (varid, buffer) = (self.varids.add(at).read(), self.buffers.add(at).read());
            Access { verb: self.verb, varid, place, elements, buffer }
        }
    }
}

/// Waits for requests that were posted: `ncmpi_wait` and `ncmpi_wait_all`.
///
/// # Safety
/// The arguments of such a call.
pub(crate) unsafe fn wait(
    file: &Shared,
    mode: Mode,
    count: c_int,
    requests: *mut c_int,
    statuses: *mut c_int,
) -> c_int {
    answer(|| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.phase == Phase::Define {
            return Err(Code(codes::NC_EINDEFINE));
        }
        if mode == Mode::Independent && count == 0 {
            return Ok(());
        }
        in_phase(&file, mode)?;
        let done = if count < 0 {
            let numbers = file.requests.numbers(count);
            numbers.and_then(|numbers| complete(&mut file, &numbers, |_, _| {}))
        } else {
            // SAFETY: the caller's promise: so many requests, and statuses or NULL.
            let numbers: Vec<c_int> =
                (0..count as usize).map(|at| unsafe { requests.add(at).read() }).collect();
            complete(&mut file, &numbers, |at, status| {
                // SAFETY: as above.
                unsafe {
                    if status != codes::NC_EINVAL_REQUEST {
                        requests.add(at).write(codes::NC_REQ_NULL);
                    }
                    if !statuses.is_null() {
                        statuses.add(at).write(status);
                    }
                }
            })
        };
        let done = finish(&mut file, mode, done);
        if mode == Mode::Collective && file.cycle_end == CycleEnd::Wait {
            // All ranks do, whatever became of their requests.
            let ended = file.transfer();
            return done.and(ended);
        }
        done
    })
}

/// Forgets requests that were posted: `ncmpi_cancel`.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn cancel(
    file: &Shared,
    count: c_int,
    requests: *mut c_int,
    statuses: *mut c_int,
) -> c_int {
    answer(|| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if count < 0 {
            for number in file.requests.numbers(count)? {
                file.requests.take(number);
            }
            return Ok(());
        }
        let mut first = Ok(());
        for at in 0..count as usize {
            // SAFETY: the caller's promise: so many requests, and statuses or NULL.
            let place = unsafe { requests.add(at) };
            // SAFETY: as above.
            let number = unsafe { place.read() };
            let mut status = codes::NC_NOERR;
            if number != codes::NC_REQ_NULL {
                if file.requests.take(number).is_some() {
                    // SAFETY: as above.
                    unsafe { place.write(codes::NC_REQ_NULL) };
                } else {
                    status = codes::NC_EINVAL_REQUEST;
                    first = first.and(Err(Code(status)));
                }
            }
            if !statuses.is_null() {
                // SAFETY: as above.
                unsafe { statuses.add(at).write(status) };
            }
        }
        first
    })
}

/// Whether PnetCDF would let a call be made now.
fn allowed(file: &OpenFile, mode: Mode, verb: Verb) -> Result<(), Code> {
    match (verb, &file.side) {
        (Verb::Write, Side::Reader(_)) => return Err(Code(codes::NC_EPERM)),
        (Verb::Read, Side::Writer(_)) => {
            let sentence = format!(
                "`{}` is written for other programs; what was written to it cannot be read back",
                file.name
            );
            return Err(Code::explained(codes::NC_EPERM, sentence));
        }
        _ => {}
    }
    match mode {
        Mode::Posted | Mode::Buffered => Ok(()),
        Mode::Independent | Mode::Collective => {
            if file.phase == Phase::Define {
                return Err(Code(codes::NC_EINDEFINE));
            }
            in_phase(file, mode)
        }
    }
}

fn in_phase(file: &OpenFile, mode: Mode) -> Result<(), Code> {
    match (mode, file.phase) {
        (Mode::Independent, Phase::Collective) => Err(Code(codes::NC_ENOTINDEP)),
        (Mode::Collective, Phase::Independent) => Err(Code(codes::NC_EINDEP)),
        _ => Ok(()),
    }
}

/// What a call means.
///
/// # Safety
/// The arguments of a call of PnetCDF.
unsafe fn resolve(file: &OpenFile, access: &Access) -> Result<Resolved, Code> {
    let spec = file.variable(access.varid)?;
    // SAFETY: the caller's promise.
    unsafe {
        let buffer = Buffer::of(access, spec)?;
        let parts = place::parts(access, spec, file.records)?;
        Resolved::new(access, spec, parts, buffer)
    }
}

/// Moves data; in this order: all writes, all reads.
///
/// # Safety
/// What was resolved of the arguments of a call that has not returned, or whose memory the program leaves alone.
unsafe fn carry_out(file: &mut OpenFile, all: Vec<Resolved>) -> Result<(), Code> {
    let mut first = Ok(());
    let mut tokens = Vec::new();
    for mut one in all {
        // SAFETY: the caller's promise.
        let done = unsafe { begin(file, &mut one) };
        match done {
            Ok(some) => tokens.push((some, one)),
            Err(code) => first = first.and(Err(code)),
        }
    }
    for (tokens, one) in tokens {
        // SAFETY: as above.
        first = first.and(unsafe { end(file, &tokens, &one) });
    }
    file.settle()?;
    first
}

/// Hands a request to the exchange.
///
/// # Safety
/// As of [`carry_out`].
unsafe fn begin(file: &mut OpenFile, one: &mut Resolved) -> Result<Vec<Token>, Code> {
    let mut tokens = Vec::new();
    let mut ranged = 0;
    for piece in &one.pieces {
        let (slab, memory) = (piece.slab.clone(), piece.memory.clone());
        // SAFETY: the pieces lie in the program's memory, or in our copy.
        let address = unsafe { one.address.byte_add(piece.offset) };
        match &mut file.side {
            Side::Writer(written) => {
                // SAFETY: the program leaves its memory alone until the call is answered, when this has been settled; or it
                // is promised to until it calls `dtf_transfer` or closes the file. Our copy is kept until then, too.
                let range = unsafe {
                    written.write(one.variable, slab, memory, one.type_, address, piece.bytes)
                };
                ranged += range?.0;
            }
            Side::Reader(wanted) => {
                // SAFETY: nobody looks at the memory until the call is answered, and then it was waited for.
                let token = unsafe {
                    wanted.read(one.variable, slab, memory, one.type_, address, piece.bytes)
                };
                tokens.push(token?);
            }
        }
    }
    match &file.side {
        Side::Writer(_) => {
            file.put_bytes += one.stored_bytes();
            file.records = file.records.max(one.records);
            file.kept.extend(one.own.take());
        }
        Side::Reader(_) => file.got_bytes += one.stored_bytes(),
    }
    if ranged > 0 { Err(Code(codes::NC_ERANGE)) } else { Ok(tokens) }
}

/// Waits for what was read.
///
/// # Safety
/// As of [`carry_out`].
unsafe fn end(file: &mut OpenFile, tokens: &[Token], one: &Resolved) -> Result<(), Code> {
    let Side::Reader(wanted) = &mut file.side else { return Ok(()) };
    let mut first = Ok(());
    let mut ranged = 0;
    for answer in wanted.wait(tokens) {
        match answer {
            Ok(range) => ranged += range.0,
            Err(fault) => first = first.and(Err(Code::from(fault))),
        }
    }
    // SAFETY: the program's memory, as it says.
    unsafe { one.scatter() };
    first?;
    if ranged > 0 { Err(Code(codes::NC_ERANGE)) } else { Ok(()) }
}

/// Carries out requests; `tell` is told the status of each.
fn complete(
    file: &mut OpenFile,
    numbers: &[c_int],
    mut tell: impl FnMut(usize, c_int),
) -> Result<(), Code> {
    let mut first = Ok(());
    let mut begun = Vec::new();
    for (at, number) in numbers.iter().enumerate() {
        if *number == codes::NC_REQ_NULL {
            tell(at, codes::NC_NOERR);
            continue;
        }
        let Some(mut posted) = file.requests.take(*number) else {
            tell(at, codes::NC_EINVAL_REQUEST);
            first = first.and(Err(Code(codes::NC_EINVAL_REQUEST)));
            continue;
        };
        // SAFETY: the program leaves the memory of a posted request alone until it has waited for it.
        match unsafe { begin(file, &mut posted.resolved) } {
            Ok(tokens) => begun.push((at, tokens, posted)),
            Err(code) => {
                tell(at, code.0);
                first = first.and(Err(code));
            }
        }
    }
    for (at, tokens, posted) in begun {
        // SAFETY: as above.
        let done = unsafe { end(file, &tokens, &posted.resolved) };
        tell(at, done.err().map_or(codes::NC_NOERR, |code| code.0));
        first = first.and(done);
    }
    file.settle()?;
    first
}

/// What a collective call has to do whatever became of it on this rank.
fn finish(file: &mut OpenFile, mode: Mode, done: Result<(), Code>) -> Result<(), Code> {
    let agreed = if mode == Mode::Collective { file.agree_on_records() } else { Ok(()) };
    done.and(agreed)
}
