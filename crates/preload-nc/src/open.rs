//! One coupled file that is open.

use std::ffi::c_int;

use exchange::{CycleEnd, VariableSpec, Wanted, Written};

use crate::codes;
use crate::definition::Definition;
use crate::failure::Code;
use crate::group::Ranks;
use crate::header::Private;
use crate::requests::Requests;

/// What calls are allowed, as PnetCDF has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Dimensions and variables are being defined.
    Define,
    /// Data mode: calls are made by all ranks.
    Collective,
    /// Data mode: each rank for itself.
    Independent,
}

/// Which side of the exchange this process is on.
pub(crate) enum Side {
    /// It has created the file.
    Writer(Written),
    /// It has opened the file.
    Reader(Wanted),
}

/// A file between programs.
pub(crate) struct OpenFile {
    /// As the program names it.
    pub(crate) name: String,
    pub(crate) ncid: c_int,
    /// What PnetCDF has open.
    pub(crate) private: Private,
    pub(crate) ranks: Ranks,
    pub(crate) side: Side,
    pub(crate) phase: Phase,
    pub(crate) definition: Definition,
    /// The header that the other side knows.
    pub(crate) defined: Vec<u8>,
    pub(crate) fills: Fills,
    pub(crate) records: u64,
    pub(crate) requests: Requests,
    /// What travels behind the header.
    pub(crate) notes: Notes,
    /// Copies that the exchange looks into until it settles.
    pub(crate) kept: Vec<Vec<u8>>,
    /// Which calls end a cycle, beside closing and `dtf_transfer`.
    pub(crate) cycle_end: CycleEnd,
    /// The program knows that its memory must stay until it calls `dtf_transfer`.
    pub(crate) is_patient: bool,
    pub(crate) put_bytes: u64,
    pub(crate) got_bytes: u64,
}

/// Which variables are filled where nobody writes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fills {
    /// The mode of the file, for variables that are defined later.
    pub(crate) mode: bool,
    /// Each variable that is defined.
    pub(crate) variables: Vec<bool>,
}

/// What a writer tells readers of a cycle beside the header: a byte behind it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Readers call `dtf_transfer` several times, and `dtf_complete_multiple` at the end.
    pub(crate) several_times: bool,
}

impl Notes {
    fn byte(self) -> u8 {
        u8::from(self.several_times)
    }

    /// A header, and the notes behind it.
    pub(crate) fn split(bytes: &[u8]) -> (&[u8], Notes) {
        match bytes.split_last() {
            Some((byte, header)) => (header, Notes { several_times: *byte == 1 }),
            None => (bytes, Notes::default()),
        }
    }
}

impl OpenFile {
    /// The variable of a call that moves data.
    pub(crate) fn variable(&self, varid: c_int) -> Result<&VariableSpec, Code> {
        if varid == codes::NC_GLOBAL {
            return Err(Code(codes::NC_EGLOBAL));
        }
        let found = usize::try_from(varid).ok().and_then(|at| self.definition.variables.get(at));
        found.ok_or(Code(codes::NC_ENOTVAR))
    }

    /// Asks PnetCDF what it has in its private file.
    pub(crate) fn learn(&mut self) -> Result<(), Code> {
        let fills = self.fills.variables.clone();
        let is_filled = |at: usize| fills.get(at).copied().unwrap_or(false);
        self.definition = Definition::of(self.ncid, is_filled)?;
        Ok(())
    }

    /// Tells the exchange what the file looks like, if that is news.
    pub(crate) fn define(&mut self) -> Result<(), Code> {
        let mut header = self.private.header(self.ncid)?;
        header.push(self.notes.byte());
        if header == self.defined {
            return Ok(());
        }
        let Side::Writer(written) = &mut self.side else { return Ok(()) };
        let Definition { format, variables, .. } = &self.definition;
        written.define(&header, *format, variables.clone())?;
        self.defined = header;
        Ok(())
    }

    /// From now on the program may change its memory.
    pub(crate) fn settle(&mut self) -> Result<(), Code> {
        if let (Side::Writer(written), false) = (&mut self.side, self.is_patient) {
            written.settle()?;
            self.kept.clear();
        }
        Ok(())
    }

    /// Makes the number of records the same for all ranks. Collective.
    pub(crate) fn agree_on_records(&mut self) -> Result<(), Code> {
        if self.definition.unlimited.is_some() && matches!(self.side, Side::Writer(_)) {
            self.records = self.ranks.greatest(self.records)?;
        }
        Ok(())
    }

    /// A reader that has ended a cycle waits for the next one before it asks for more.
    pub(crate) fn await_cycle(&mut self) -> Result<(), Code> {
        if let Side::Reader(wanted) = &mut self.side {
            wanted.await_cycle()?;
            self.records = wanted.records();
        }
        Ok(())
    }

    /// Ends a cycle. Collective.
    pub(crate) fn transfer(&mut self) -> Result<(), Code> {
        if self.phase == Phase::Define {
            return Err(Code(codes::NC_EINDEFINE));
        }
        self.agree_on_records()?;
        self.define()?;
        match &mut self.side {
            Side::Writer(written) => {
                // Not until it is read: the readers may wait for something that this program does next.
                written.finish(self.records)?;
                written.settle()?;
                self.kept.clear();
                self.notes = Notes::default();
            }
            Side::Reader(wanted) => {
                wanted.finish()?;
            }
        }
        Ok(())
    }

    /// A reader that asks how many records there are waits for the next cycle, too, if it is `sync` that ended the last one: a
    /// program that follows a file asks so. When there is no further cycle the number stays.
    pub(crate) fn follow(&mut self) {
        if self.cycle_end == CycleEnd::Sync {
            let _ = self.await_cycle();
        }
    }

    /// Whether the writers have said that this cycle is read by several calls of `dtf_transfer`.
    pub(crate) fn is_read_several_times(&self) -> bool {
        match &self.side {
            Side::Reader(wanted) => Notes::split(wanted.header()).1.several_times,
            Side::Writer(_) => false,
        }
    }
}
