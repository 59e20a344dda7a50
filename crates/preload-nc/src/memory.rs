//! A program's memory: what lies in it, and how a request's parts lie in it.

use std::ffi::c_void;
use std::ptr;

use exchange::{Length, Memory, Slab, Type, Variable, VariableSpec};
use mpi::Mpi;
use mpi::flat::Shape;

use crate::access::{Access, Elements, Verb};
use crate::codes;
use crate::failure::Code;
use crate::place::Part;

/// What a program calls its memory, looked at.
pub(crate) struct Buffer {
    type_: Type,
    address: *mut u8,
    /// How many values there are, where the call says it.
    values: Option<u64>,
    /// Where the bytes lie, if they have gaps.
    gaps: Option<Shape>,
}

impl Buffer {
    /// The memory of a call about a variable.
    ///
    /// # Safety
    /// The arguments of a call of PnetCDF.
    pub(crate) unsafe fn of(access: &Access, spec: &VariableSpec) -> Result<Buffer, Code> {
        let address = access.buffer.cast();
        let plain = |type_, values| Buffer { type_, address, values, gaps: None };
        let buffer = match access.elements {
            Elements::Of(type_) => plain(type_, None),
            Elements::Flexible { count, datatype } => {
                // SAFETY: the caller's promise.
                unsafe { flexible(address, count, datatype, spec)? }
            }
        };
        if (buffer.type_ == Type::Char) != (spec.type_ == Type::Char) {
            return Err(Code(codes::NC_ECHAR));
        }
        Ok(buffer)
    }
}

/// The memory of a flexible call.
///
/// # Safety
/// As of [`Buffer::of`].
///
/// # Source
/// PnetCDF 1.12.3: a datatype that is NULL is the variable's, a count of -1 stands for as many as the part has.
unsafe fn flexible(
    address: *mut u8,
    count: i64,
    datatype: usize,
    spec: &VariableSpec,
) -> Result<Buffer, Code> {
    let mpi = Mpi::find().map_err(|_| Code(codes::NC_EFILE))?;
    // SAFETY: the caller's promise.
    let datatype = unsafe { mpi.datatype(datatype) };
    let plain = |type_, values| Buffer { type_, address, values, gaps: None };
    if datatype == mpi.constants().datatype_null {
        return Ok(plain(spec.type_, None));
    }
    let unknown = |_| Code(codes::NC_EUNSPTETYPE);
    let name = mpi.element_name(datatype).map_err(unknown)?.ok_or(Code(codes::NC_EMULTITYPES))?;
    let type_ = type_of(&name, spec.type_).ok_or(Code(codes::NC_EUNSPTETYPE))?;
    if count == -1 {
        return Ok(plain(type_, None));
    }
    let count = u64::try_from(count).map_err(|_| Code(codes::NC_EINVAL))?;
    let flat = mpi.flatten(datatype).map_err(unknown)?;
    let values = flat.size.saturating_mul(count) / type_.size_bytes() as u64;
    if flat.is_dense() && matches!(flat.shape, Shape::Nothing | Shape::Block { offset: 0, .. }) {
        return Ok(plain(type_, Some(values)));
    }
    let shape = flat.repeated(count).map_err(|_| Code(codes::NC_EUNSPTETYPE))?;
    Ok(Buffer { type_, address, values: Some(values), gaps: Some(shape) })
}

/// The type of values that an MPI datatype of this name has. Bytes are whatever the variable's are, if these are bytes.
fn type_of(name: &str, stored: Type) -> Option<Type> {
    Some(match name.strip_prefix("MPI_")? {
        "CHAR" | "CHARACTER" => Type::Char,
        "BYTE" | "PACKED" if stored.size_bytes() == 1 => stored,
        "BYTE" | "PACKED" | "SIGNED_CHAR" | "INT8_T" | "INTEGER1" => Type::Byte,
        "UNSIGNED_CHAR" | "UINT8_T" => Type::UByte,
        "SHORT" | "INT16_T" | "INTEGER2" => Type::Short,
        "UNSIGNED_SHORT" | "UINT16_T" => Type::UShort,
        "INT" | "INT32_T" | "INTEGER" | "INTEGER4" => Type::Int,
        "UNSIGNED" | "UNSIGNED_INT" | "UINT32_T" => Type::UInt,
        "LONG" | "LONG_INT" | "LONG_LONG" | "LONG_LONG_INT" | "INT64_T" | "INTEGER8" | "OFFSET"
        | "AINT" | "COUNT" => Type::Int64,
        "UNSIGNED_LONG" | "UNSIGNED_LONG_LONG" | "UINT64_T" => Type::UInt64,
        "FLOAT" | "REAL" | "REAL4" => Type::Float,
        "DOUBLE" | "DOUBLE_PRECISION" | "REAL8" => Type::Double,
        _ => return None,
    })
}

/// A handle of an array of the program's.
///
/// # Safety
/// An array of MPI_Datatype that is longer than `at`.
pub(crate) unsafe fn handle_at(array: *const c_void, at: usize) -> usize {
    let Ok(mpi) = Mpi::find() else { return 0 };
    // SAFETY: the caller's promise.
    unsafe { mpi.datatype_at(array, at) }.word()
}

/// Which elements of a variable the bytes of a file type are: first elements and numbers.
///
/// # Safety
/// A datatype that the program passed.
pub(crate) unsafe fn spans(filetype: usize, spec: &VariableSpec) -> Result<Vec<(u64, u64)>, Code> {
    let mpi = Mpi::find().map_err(|_| Code(codes::NC_EFILE))?;
    // SAFETY: the caller's promise.
    let datatype = unsafe { mpi.datatype(filetype) };
    if datatype == mpi.constants().datatype_null {
        return Ok(Vec::new());
    }
    if spec.shape.contains(&Length::Records) {
        let sentence = format!(
            "`{}` has records: where their bytes would be in a file is not known to who exchanges data; use varn instead of vard",
            spec.name
        );
        return Err(Code::explained(codes::NC_ENOTSUPPORT, sentence));
    }
    let unknown = |_| Code(codes::NC_EUNSPTETYPE);
    let flat = mpi.flatten(datatype).map_err(unknown)?;
    let size = spec.type_.size_bytes() as u64;
    let mut spans = Vec::new();
    for (offset, length) in flat.shape.blocks() {
        let offset = u64::try_from(offset).map_err(|_| Code(codes::NC_EINVALCOORDS))?;
        if offset % size != 0 || length % size != 0 {
            return Err(Code(codes::NC_EIOMISMATCH));
        }
        spans.push((offset / size, length / size));
    }
    Ok(spans)
}

/// One part of a request.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) slab: Slab,
    pub(crate) memory: Memory,
    /// Where its first element lies, in bytes from the address.
    pub(crate) offset: usize,
    /// How far its memory reaches from there.
    pub(crate) bytes: usize,
}

/// A request that can be handed on.
pub(crate) struct Resolved {
    verb: Verb,
    pub(crate) variable: Variable,
    /// What its values are in memory.
    pub(crate) type_: Type,
    pub(crate) pieces: Vec<Piece>,
    /// Where the memory begins: the program's, or our copy.
    pub(crate) address: *mut u8,
    /// Our copy.
    pub(crate) own: Option<Vec<u8>>,
    /// Where the values go that were read into our copy.
    scatters: Option<(*mut u8, Shape)>,
    stored_bytes: u64,
    /// How many records there are at least when it is written.
    pub(crate) records: u64,
}

// SAFETY: the addresses are the program's, which has given the memory away until its call is answered.
unsafe impl Send for Resolved {}

impl Resolved {
    /// Puts together what a call says.
    ///
    /// # Safety
    /// The arguments of a call of PnetCDF.
    pub(crate) unsafe fn new(
        access: &Access,
        spec: &VariableSpec,
        parts: Vec<Part>,
        buffer: Buffer,
    ) -> Result<Resolved, Code> {
        let Buffer { type_, mut address, values, gaps } = buffer;
        let size = type_.size_bytes();
        let (mut pieces, mut total, mut records) = (Vec::new(), 0u64, 0u64);
        for Part { slab, memory } in parts {
            let elements = u64::try_from(slab.elements()).map_err(|_| Code(codes::NC_EINVAL))?;
            if elements == 0 {
                continue;
            }
            let offset = usize::try_from(total).ok().and_then(|at| at.checked_mul(size));
            let offset = offset.ok_or(Code(codes::NC_EINVAL))?;
            let bytes = reach(&slab, &memory).and_then(|reach| reach.checked_mul(size));
            let bytes = bytes.ok_or(Code(codes::NC_EINVAL))?;
            if spec.has_records() {
                records = records.max(slab.dimensions()[0].span().end);
            }
            total += elements;
            pieces.push(Piece { slab, memory, offset, bytes });
        }
        if values.is_some_and(|values| values != total) {
            return Err(Code(codes::NC_EIOMISMATCH));
        }
        let (mut own, mut scatters) = (None, None);
        if let Some(shape) = gaps.filter(|_| total > 0) {
            let bytes = shape.bytes().and_then(|bytes| usize::try_from(bytes).ok());
            let mut packed = vec![0; bytes.ok_or(Code(codes::NC_EINVAL))?];
            if pieces.iter().any(|piece| piece.offset + piece.bytes > packed.len()) {
                return Err(Code(codes::NC_EIOMISMATCH));
            }
            let program = address;
            address = packed.as_mut_ptr();
            // What stays as it is must be read too, if a map leaves some of the values out.
            // SAFETY: the program's memory, as its datatype says.
            unsafe { gather(program, &shape, &mut packed) };
            if access.verb == Verb::Read {
                scatters = Some((program, shape));
            }
            own = Some(packed);
        }
        Ok(Resolved {
            verb: access.verb,
            variable: Variable(access.varid.cast_unsigned()),
            type_,
            pieces,
            address,
            own,
            scatters,
            stored_bytes: total * spec.type_.size_bytes() as u64,
            records,
        })
    }

    /// Whether nothing is moved.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether it reads.
    pub(crate) fn is_read(&self) -> bool {
        self.verb == Verb::Read
    }

    /// How much it is in a file.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Takes a copy of what is to be written.
    ///
    /// # Safety
    /// The program's memory is what it says.
    pub(crate) unsafe fn copy(&mut self) {
        if self.own.is_some() {
            return;
        }
        let end = self.pieces.iter().map(|piece| piece.offset + piece.bytes).max().unwrap_or(0);
        let mut copy = vec![0; end];
        for piece in &self.pieces {
            // SAFETY: the caller's promise; the copy is as long as the last piece reaches.
            unsafe {
                let from = self.address.byte_add(piece.offset);
                ptr::copy_nonoverlapping(from, copy.as_mut_ptr().add(piece.offset), piece.bytes);
            }
        }
        self.address = copy.as_mut_ptr();
        self.own = Some(copy);
    }

    /// Puts what was read into our copy where the program wants it.
    ///
    /// # Safety
    /// The program's memory is what it says.
    pub(crate) unsafe fn scatter(&self) {
        let (Some((program, shape)), Some(own)) = (&self.scatters, &self.own) else { return };
        let mut at = 0;
        for (offset, length) in shape.blocks() {
            let length = length as usize;
            // SAFETY: the caller's promise; the copy has as many bytes as the shape.
            unsafe {
                let to = program.byte_offset(offset as isize);
                ptr::copy_nonoverlapping(own.as_ptr().add(at), to, length);
            }
            at += length;
        }
    }
}

/// # Safety
/// Memory that has the bytes of the shape; as many as `to` is long.
unsafe fn gather(from: *const u8, shape: &Shape, to: &mut [u8]) {
    let mut at = 0;
    for (offset, length) in shape.blocks() {
        let length = length as usize;
        let to = &mut to[at..at + length];
        // SAFETY: the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(from.byte_offset(offset as isize), to.as_mut_ptr(), length);
        }
        at += length;
    }
}

/// How many elements of memory a part needs; none for what lies before the address.
fn reach(slab: &Slab, memory: &Memory) -> Option<usize> {
    let mut last = 0i64;
    for (steps, distance) in slab.dimensions().iter().zip(memory.distances()) {
        let steps = i64::try_from(steps.count()).ok()? - 1;
        if *distance < 0 && steps > 0 {
            return None;
        }
        last = last.checked_add(steps.checked_mul(*distance)?)?;
    }
    usize::try_from(last).ok()?.checked_add(1)
}
