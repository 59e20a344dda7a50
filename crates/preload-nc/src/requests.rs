//! Nonblocking requests that were posted and not waited for.

use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::codes;
use crate::failure::Code;
use crate::memory::Resolved;

/// What a program has posted for a file.
#[derive(Default)]
pub(crate) struct Requests {
    posted: BTreeMap<c_int, Posted>,
    writes: c_int,
    reads: c_int,
    /// Room for copies that the program has attached, in bytes.
    attached: Option<u64>,
}

/// One of them.
pub(crate) struct Posted {
    pub(crate) resolved: Resolved,
    /// Bytes of the attached room that it takes.
    pub(crate) buffered: Option<u64>,
}

impl Requests {
    /// Notes a request. Writes have even numbers and reads odd ones, as in PnetCDF.
    pub(crate) fn add(&mut self, posted: Posted) -> c_int {
        let (counter, odd) =
            if posted.resolved.is_read() { (&mut self.reads, 1) } else { (&mut self.writes, 0) };
        let number = *counter * 2 + odd;
        *counter += 1;
        self.posted.insert(number, posted);
        number
    }

    /// Takes a request.
    pub(crate) fn take(&mut self, number: c_int) -> Option<Posted> {
        self.posted.remove(&number)
    }

    /// The numbers that `NC_REQ_ALL`, `NC_GET_REQ_ALL` or `NC_PUT_REQ_ALL` mean.
    pub(crate) fn numbers(&self, which: c_int) -> Result<Vec<c_int>, Code> {
        let odd = match which {
            codes::NC_REQ_ALL => None,
            codes::NC_GET_REQ_ALL => Some(1),
            codes::NC_PUT_REQ_ALL => Some(0),
            _ => return Err(Code(codes::NC_EINVAL)),
        };
        let meant = |number: &&c_int| odd.is_none_or(|odd| **number % 2 == odd);
        Ok(self.posted.keys().filter(meant).copied().collect())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.posted.len()
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.posted.is_empty()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.posted.clear();
    }

    /// How much of the attached room is taken.
    pub(crate) fn usage(&self) -> Result<u64, Code> {
        self.size()?;
        Ok(self.posted.values().filter_map(|posted| posted.buffered).sum())
    }

    /// How much room is attached.
    pub(crate) fn size(&self) -> Result<u64, Code> {
        self.attached.ok_or(Code(codes::NC_ENULLABUF))
    }

    /// Attaches room.
    pub(crate) fn attach(&mut self, bytes: i64) -> Result<(), Code> {
        let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(Code(codes::NC_ENULLBUF))?;
        if self.attached.is_some() {
            return Err(Code(codes::NC_EPREVATTACHBUF));
        }
        self.attached = Some(bytes);
        Ok(())
    }

    /// Detaches it.
    pub(crate) fn detach(&mut self) -> Result<(), Code> {
        self.size()?;
        if self.posted.values().any(|posted| posted.buffered.is_some()) {
            return Err(Code(codes::NC_EPENDINGBPUT));
        }
        self.attached = None;
        Ok(())
    }

    /// Whether a copy of so many bytes still fits.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<(), Code> {
        if self.usage()?.saturating_add(bytes) > self.size()? {
            return Err(Code(codes::NC_EINSUFFBUF));
        }
        Ok(())
    }
}
