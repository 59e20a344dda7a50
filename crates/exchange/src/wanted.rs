//! A file that this rank reads.

use hyperslab::{Memory, Slab};
use matching::{Variable, VariableSpec};
use nctypes::{Format, Type};

use crate::Fault;

/// A read that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// How many values did not fit in the type that was asked for (`NC_ERANGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranged(pub u64);

/// One opening of a file by one rank of its readers.
pub struct Wanted {
    is_file: bool,
}

impl Wanted {
    /// Whether the rule says that the file itself is handed over: it is complete now, and only [`close`](Self::close) has
    /// to be called.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// The header as the writers had it when they finished the cycle.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &[]
    }

    /// The format of the header.
    #[must_use]
    pub fn format(&self) -> Format {
        Format::Data64
    }

    /// The variables that it defines.
    #[must_use]
    pub fn variables(&self) -> &[VariableSpec] {
        &[]
    }

    /// How many records were written.
    #[must_use]
    pub fn records(&self) -> u64 {
        0
    }

    /// A part of a variable is wanted in memory, of which `bytes` may be written. After [`finish`](Self::finish) it is of the next
    /// cycle.
    ///
    /// # Errors
    /// What netCDF would refuse; a part that has no place in the memory.
    ///
    /// # Safety
    /// `address` leads to `bytes` bytes that can be written and that nobody looks at until [`wait`](Self::wait) for the token, or
    /// [`cancel`](Self::cancel), returns, or `self` is closed or dropped.
    pub unsafe fn read(
        &mut self,
        variable: Variable,
        slab: Slab,
        memory: Memory,
        type_: Type,
        address: *mut u8,
        bytes: usize,
    ) -> Result<Token, Fault> {
        let _ = (variable, slab, memory, type_, address, bytes);
        Err(unfinished())
    }

    /// Waits for some reads. The writers have finished the cycle already, hence this waits for no program to call anything.
    /// An answer for each token, in their order.
    pub fn wait(&mut self, tokens: &[Token]) -> Vec<Result<Ranged, Fault>> {
        tokens.iter().map(|_| Err(unfinished())).collect()
    }

    /// Nobody wants this any more; its memory is not touched from now on.
    pub fn cancel(&mut self, token: Token) {
        let _ = token;
    }

    /// Ends a cycle: reads that were not waited for are, and what is read next is of the writers' next cycle.
    ///
    /// # Errors
    /// The first of what could not be read.
    pub fn finish(&mut self) -> Result<(), Fault> {
        Err(unfinished())
    }

    /// The file is closed: [finishes](Self::finish) the cycle; the writers' memory for this rank is free.
    ///
    /// # Errors
    /// The first of what could not be read and was not waited for.
    pub fn close(self) -> Result<(), Fault> {
        Err(unfinished())
    }
}

fn unfinished() -> Fault {
    Fault::Broken { what: "this is not built yet".to_owned() }
}
