//! A file that this rank writes.

use hyperslab::{Memory, Slab};
use matching::{Variable, VariableSpec};
use nctypes::{Format, Type};

use crate::{Fault, Ranged};

/// One opening of a file by one rank of its writers.
pub struct Written {
    is_file: bool,
}

impl Written {
    /// Whether the rule says that the file itself is handed over: then only [`close`](Self::close) has to be called.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// The header as PnetCDF has it, and the variables that it defines. After `enddef`; again after `redef`.
    ///
    /// # Errors
    /// Some of this cycle has been sent.
    pub fn define(
        &mut self,
        header: &[u8],
        format: Format,
        variables: Vec<VariableSpec>,
    ) -> Result<(), Fault> {
        let _ = (header, format, variables);
        Err(unfinished())
    }

    /// A part of a variable lies in memory, of which `bytes` may be looked at. It must stay as it is until
    /// [`settle`](Self::settle). The answer is how many values do not fit in the variable's type (`NC_ERANGE`): the others are
    /// written all the same.
    ///
    /// # Errors
    /// What netCDF would refuse; a part that does not lie in the memory; a file that is not defined.
    ///
    /// # Safety
    /// `address` leads to `bytes` bytes that can be read and that nobody changes until [`settle`](Self::settle) returns, or
    /// `self` is closed or dropped.
    pub unsafe fn write(
        &mut self,
        variable: Variable,
        slab: Slab,
        memory: Memory,
        type_: Type,
        address: *const u8,
        bytes: usize,
    ) -> Result<Ranged, Fault> {
        let _ = (variable, slab, memory, type_, address, bytes);
        Err(unfinished())
    }

    /// From now on the program may change its memory: what was not fetched is copied, unless it is fetched meanwhile.
    ///
    /// # Errors
    /// There is no memory for a copy.
    pub fn settle(&mut self) -> Result<(), Fault> {
        Err(unfinished())
    }

    /// What this rank writes from now on is newer than what any rank wrote before: for collective calls after which a file
    /// is consistent.
    ///
    /// # Errors
    /// The file is not defined.
    pub fn synchronise(&mut self) -> Result<(), Fault> {
        Err(unfinished())
    }

    /// Ends a cycle, which readers can read from now on; what is written next belongs to the next cycle. All ranks of the group do
    /// so equally often. `records` is how many records the file has for all that this rank knows, written by others or filled.
    ///
    /// # Errors
    /// The file is not defined.
    pub fn finish(&mut self, records: u64) -> Result<(), Fault> {
        let _ = records;
        Err(unfinished())
    }

    /// Waits until all cycles that are finished were read, as `dtf_transfer` does.
    ///
    /// # Errors
    /// The readers are too late or gone.
    pub fn delivered(&mut self) -> Result<(), Fault> {
        Err(unfinished())
    }

    /// The file is closed: [finishes](Self::finish) the cycle if something was written since the last one or there was none, and
    /// [settles](Self::settle).
    ///
    /// # Errors
    /// As these.
    pub fn close(self, records: u64) -> Result<(), Fault> {
        let _ = records;
        Err(unfinished())
    }

    /// The file is given up (`ncmpi_abort`): readers of a cycle that is not finished get an error.
    pub fn abort(self) {}
}

fn unfinished() -> Fault {
    Fault::Broken { what: "this is not built yet".to_owned() }
}
