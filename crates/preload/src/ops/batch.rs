//! Many reads or writes of one open file in one go.

use std::ffi::c_int;

use client::{ReadPart, WritePart};
use p9::{Errno, OpenFlags};

use crate::table;

/// What became of one range: how many bytes, or why none.
pub(crate) type Done = Result<usize, Errno>;

/// Reads ranges that are under way together.
pub(crate) fn read(fd: c_int, parts: &mut [ReadPart<'_>]) -> Vec<Done> {
    let description = table::get(fd).ok_or(Errno::EBADF);
    let file = description
        .and_then(|description| description.with(fd, |live| Ok(live.file_to_read()?.0.clone())));
    let outcome = file.and_then(|file| file.read_parts(parts).map_err(|error| error.to_errno()));
    parts.iter().map(|part| done(outcome, part.done, part.refusal)).collect()
}

/// Writes ranges that are under way together; on a descriptor that appends, one after the other.
/// What is reported as written is at the service.
pub(crate) fn write(fd: c_int, parts: &mut [WritePart<'_>]) -> Vec<Done> {
    let description = table::get(fd).ok_or(Errno::EBADF);
    let file = description.and_then(|description| {
        description.with(fd, |live| {
            let (file, state) = live.file_to_write()?;
            let flags = OpenFlags::from_bits_retain(state.flags());
            Ok((file.clone(), flags.contains(OpenFlags::APPEND)))
        })
    });
    let outcome = match file {
        Ok((_, true)) => {
            // An offset of any value: Linux appends wherever it is.
            let one = |part: &mut WritePart<'_>| super::data::write_at(fd, part.data, 0);
            return parts.iter_mut().map(one).collect();
        }
        Ok((file, false)) => file.write_parts(parts).map_err(|error| error.to_errno()),
        Err(errno) => Err(errno),
    };
    parts.iter().map(|part| done(outcome, part.done, part.refusal)).collect()
}

fn done(outcome: Result<(), Errno>, count: usize, refusal: Option<Errno>) -> Done {
    outcome?;
    match refusal {
        Some(errno) if count == 0 => Err(errno),
        _ => Ok(count),
    }
}
