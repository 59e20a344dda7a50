//! The bench: every way of access on every pattern of a grid.
//!
//! 1. A [`Grid`](grid) is a list of [`Cell`]s: a pattern, reading or writing, data at hand or not.
//! 2. A [`Lane`] is something that can carry out the pattern of a cell and tells how long it took:
//!    the library on a local file ([`local`]), on a simulated cluster ([`simulated`]), or a program
//!    beside it ([`beside`]).
//! 3. [`run`](run::run) has all lanes do each cell, alternately, and measures again what lies far
//!    from the rest.
//! 4. [`results::Results`] keeps what was measured, cell by cell, so that an interrupted run can
//!    go on; [`summary`] says what it means.
//!
//! # Source
//! Zickler 2015, §5.1 (NCT-bench), §5.3 and Tables 5.1 and 5.2 (what is varied), §5.3.1 (three
//! runs, outliers measured again).

pub mod beside;
pub mod grid;
pub mod local;
pub mod results;
pub mod run;
pub mod simulated;
pub mod summary;

use sieve::{Access, FileView, Warmth};

use crate::error::Result;

/// One point of the grid: what is accessed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Reading or writing.
    pub access: Access,
    /// Whether the data is at hand.
    pub warmth: Warmth,
    /// Bytes of each block.
    pub data: u64,
    /// Bytes between two blocks.
    pub hole: u64,
    /// Offset of the first block.
    pub displacement: u64,
    /// Size of the sieving buffer in bytes.
    pub buffer_bytes: u64,
    /// The simulated cluster's servers; 0 for a real file.
    pub servers: u32,
    /// The simulated cluster's stripe size in bytes; 0 for a real file.
    pub stripe_bytes: u64,
}

impl Cell {
    /// Its view.
    ///
    /// # Errors
    /// When no file is that long.
    pub fn view(&self) -> Result<FileView> {
        Ok(FileView::strided(self.displacement, self.data, self.hole)?)
    }

    /// Bytes of data that a file of `file_bytes` has for it, whole blocks only.
    #[must_use]
    pub fn data_in(&self, file_bytes: u64) -> u64 {
        let room = file_bytes.saturating_sub(self.displacement);
        let period = self.data.saturating_add(self.hole).max(1);
        // The hole behind the last block need not be there.
        room.saturating_add(self.hole) / period * self.data
    }
}

/// Which time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// That of the clock on the wall: what users wait for.
    Wall,
    /// That in which the thread was running. Of warm files it is the same, but for what other
    /// programs take of the processors.
    Processor,
}

impl Clock {
    /// Seconds, from some moment on.
    #[must_use]
    pub fn now_s(self) -> f64 {
        let clock = match self {
            Clock::Wall => rustix::time::ClockId::Monotonic,
            Clock::Processor => rustix::time::ClockId::ThreadCPUTime,
        };
        let now = rustix::time::clock_gettime(clock);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Processor => "processor",
        }
    }
}

/// How much of a cell's pattern is to be done at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of data that one call carries.
    pub call_bytes: u64,
    /// How many blocks it carries at most, so that a call of small blocks is not a long one.
    pub call_blocks: u64,
    /// Calls are made until so many seconds have passed, from the start of the file again if it is
    /// shorter.
    pub seconds: f64,
    /// On which clock; the simulation has its own.
    pub clock: Clock,
}

impl Work {
    /// Calls of `call_bytes` for so many seconds on the wall.
    #[must_use]
    pub const fn new(file_bytes: u64, call_bytes: u64, seconds: f64) -> Self {
        Self { file_bytes, call_bytes, call_blocks: u64::MAX, seconds, clock: Clock::Wall }
    }

    /// Bytes of data that one call carries in a cell, but for the last.
    #[must_use]
    pub fn call_in(&self, cell: &Cell) -> u64 {
        self.call_bytes.min(self.call_blocks.saturating_mul(cell.data)).max(1)
    }

    /// How many calls the file has for a cell, and the data of each as offset and length.
    pub fn calls(&self, cell: &Cell) -> (u64, impl Fn(u64) -> (u64, u64) + use<>) {
        let total = cell.data_in(self.file_bytes);
        let call = self.call_in(cell);
        let of = move |number: u64| {
            let start = number * call;
            (start, call.min(total - start))
        };
        (total.div_ceil(call), of)
    }
}

/// What one turn of a lane did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Bytes of data.
    pub bytes: u64,
    /// Seconds, real or virtual.
    pub seconds: f64,
    /// Of these, seconds in which it did not run: it waited, or others had the processor.
    pub away_s: f64,
}

impl Turn {
    /// A turn in which it ran all the time, as far as is known.
    #[must_use]
    pub fn new(bytes: u64, seconds: f64) -> Self {
        Self { bytes, seconds, away_s: 0.0 }
    }

    /// Seconds for each byte of data.
    #[must_use]
    pub fn byte_s(&self) -> f64 {
        self.seconds / self.bytes.max(1) as f64
    }
}

/// Something that carries out patterns and can be timed.
pub trait Lane {
    /// How results and pages call it.
    fn name(&self) -> &str;

    /// Prepares for the turns of a cell. What was learned from others is forgotten.
    ///
    /// # Errors
    /// When it cannot do such cells.
    fn begin(&mut self, cell: &Cell, work: &Work) -> Result<()>;

    /// One turn, beginning at a call of its choice; called only after [`Lane::begin`].
    ///
    /// # Errors
    /// When an access fails.
    fn turn(&mut self, first_call: u64) -> Result<Turn>;

    /// What the lane is expected to take for each byte of data, in seconds, if somebody knows.
    fn expected_byte_s(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(data: u64, hole: u64) -> Cell {
        Cell {
            access: Access::Read,
            warmth: Warmth::Warm,
            data,
            hole,
            displacement: hole,
            buffer_bytes: 4 << 20,
            servers: 0,
            stripe_bytes: 0,
        }
    }

    #[test]
    fn calls_cover_the_file_and_no_more() {
        let work = Work::new(1000, 30, 1.0);
        // Blocks at 92, 192, … 992: ten of 8 bytes, the last just inside.
        assert_eq!(cell(8, 92).data_in(1000), 80);
        let (count, of) = work.calls(&cell(8, 92));
        assert_eq!(count, 3);
        assert_eq!([of(0), of(1), of(2)], [(0, 30), (30, 30), (60, 20)]);
        let work = Work { call_blocks: 2, ..work };
        assert_eq!(work.call_in(&cell(8, 92)), 16);
        assert_eq!(cell(8, 2000).data_in(1000), 0);
        assert_eq!(work.calls(&cell(8, 2000)).0, 0);
        assert_eq!(cell(100, 0).data_in(1000), 1000);
    }
}
