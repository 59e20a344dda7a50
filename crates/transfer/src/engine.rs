//! One access from the call to the last byte: plan, carry out, learn.

use std::ops::Range;

use rustix::time::{ClockId, clock_gettime};
use sieve::aggregate::{self, Aggregate, Extent, FileSystem, Naive, Romio, ScanFile, SimplePm};
use sieve::plan::Mapped;
use sieve::{Access, Adaptive, FileView, Plan, Profile, Request, Warmth};

use crate::error::Result;
use crate::read::{MAPPED_BLOCK_MIN, Progress, Reader};
use crate::target::Target;
use crate::write::Writer;

/// Predicted nanoseconds from which on it pays to ask whether the data is at hand.
const PROBE_NS: f64 = 10_000.0;

/// Predicted nanoseconds below which not every plan is timed, as the clock and the notes cost more
/// than they teach; and of how many one is.
const OBSERVE_NS: f64 = 4_000.0;
const OBSERVE_ONE_OF: u32 = 8;

/// Predicted nanoseconds from which on the thread's own clock is asked, which is a system call.
const PROCESSOR_CLOCK_NS: f64 = 20_000.0;

/// Fewer small blocks are not worth the question whether they can be copied from a mapping.
const MAPPED_BLOCKS_MIN: u64 = 8;

/// What is locked while bytes are read in order to be written back.
///
/// Locks bind those who lock: other writers through Sluice, ROMIO, whoever uses fcntl(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// Nothing. Right when nobody else writes to the file at the same time.
    SingleWriter,
    /// Each window, from reading it to having written it. Blocks that are written by themselves
    /// are not locked: nothing around them is touched. Another writer's window, though, may hold
    /// an older state of them.
    #[default]
    Windows,
    /// Also blocks that are written by themselves, together, by a lock that only windows of others
    /// exclude. Then nothing is lost whoever writes what, as long as all do so.
    All,
}

/// What times an access.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// That on the wall.
    Wall,
    /// That of the thread, which stands still while others have the processor.
    Processor,
}

impl Clock {
    /// A read of what is at hand waits for nothing, so that all the time in which it was not running
    /// is other programs'. A write may have to wait, for locks and for pages to be written out.
    fn of(request: &Request, predicted_ns: f64) -> Self {
        let waits = request.access == Access::Write || request.warmth == Warmth::Cold;
        if waits || predicted_ns < PROCESSOR_CLOCK_NS { Clock::Wall } else { Clock::Processor }
    }

    pub(crate) fn now_ns(self) -> f64 {
        let id = match self {
            Clock::Wall => ClockId::Monotonic,
            Clock::Processor => ClockId::ThreadCPUTime,
        };
        let now = clock_gettime(id);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    }
}

/// Who decides what is reached together.
pub enum Planner {
    /// An aggregate function.
    Function(Box<dyn Aggregate + Send>),
    /// The cost model.
    Adaptive(Box<Adaptive>),
}

impl std::fmt::Debug for Planner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Planner::Function(function) => {
                f.debug_tuple("Function").field(&function.name()).finish()
            }
            Planner::Adaptive(adaptive) => f.debug_tuple("Adaptive").field(adaptive).finish(),
        }
    }
}

/// Reads and writes through views.
///
/// It keeps no file and no buffer, so that one engine can serve many; what it keeps is what it
/// learned.
#[derive(Debug)]
pub struct Engine {
    planner: Planner,
    locking: Locking,
    /// How many plans there were.
    plans: u32,
}

impl Engine {
    /// An engine that asks an aggregate function.
    #[must_use]
    pub fn with_function(function: impl Aggregate + Send + 'static) -> Self {
        Self {
            planner: Planner::Function(Box::new(function)),
            locking: Locking::default(),
            plans: 0,
        }
    }

    /// An engine that plans by a cost model.
    ///
    /// # Errors
    /// [`sieve::Error::Profile`].
    pub fn adaptive(profile: Profile) -> Result<Self> {
        let adaptive = Box::new(Adaptive::new(profile)?);
        Ok(Self { planner: Planner::Adaptive(adaptive), locking: Locking::default(), plans: 0 })
    }

    /// One of the built-in ways by its name: `naive`, `romio`, `simple_pm`, `extent`, `scanfile` or
    /// `adaptive`. None for another name, or for a profile that is none.
    #[must_use]
    pub fn by_name(name: &str, profile: Profile) -> Option<Self> {
        let device = &profile.device;
        let file_system = FileSystem {
            bandwidth: 1e9 / (profile.read.byte_ns + device.byte_ns).max(f64::MIN_POSITIVE),
            latency_network: device.latency_ns * 1e-9,
            latency_fs: profile.read.call_ns * 1e-9,
        };
        Some(match name {
            "naive" => Self::with_function(Naive),
            "romio" => Self::with_function(Romio),
            "simple_pm" => Self::with_function(SimplePm(file_system)),
            "extent" => Self::with_function(Extent(file_system)),
            "scanfile" => Self::with_function(ScanFile { stripe_bytes: device.stripe_bytes }),
            "adaptive" => Self::adaptive(profile).ok()?,
            _ => return None,
        })
    }

    /// An engine around a planner that is there already.
    #[must_use]
    pub fn new(planner: Planner) -> Self {
        Self { planner, locking: Locking::default(), plans: 0 }
    }

    /// The same with other locks.
    #[must_use]
    pub fn locking(mut self, locking: Locking) -> Self {
        self.locking = locking;
        self
    }

    /// What is locked.
    #[must_use]
    pub fn locks(&self) -> Locking {
        self.locking
    }

    /// Changes what is locked.
    pub fn set_locking(&mut self, locking: Locking) {
        self.locking = locking;
    }

    /// Who decides.
    #[must_use]
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Reads `out.len()` bytes of data from byte `offset` of the view's data, through `buffer`
    /// where that pays. Returns how many came: fewer than wanted where the file ends, or where
    /// something went wrong behind them; asking again from there says what.
    ///
    /// # Errors
    /// When not a byte could be read and the file does not end there: see [`crate::Error`].
    pub fn read<T: Target + ?Sized>(
        &mut self,
        target: &T,
        view: &FileView,
        buffer: &mut [u8],
        offset: u64,
        out: &mut [u8],
    ) -> Result<u64> {
        if out.is_empty() {
            target.check(Access::Read)?;
            return Ok(0);
        }
        let len = out.len() as u64;
        let buffer_bytes = buffer.len() as u64;
        let mut reader = Reader::new(target, view, offset, buffer, out)?;
        let result = match &mut self.planner {
            Planner::Function(function) => {
                let groups = aggregate::Groups::new(
                    view,
                    Access::Read,
                    offset,
                    len,
                    buffer_bytes,
                    function.as_mut(),
                );
                read_groups(groups?, &mut reader)
            }
            Planner::Adaptive(adaptive) => {
                let is_one_block = reader.is_one_block();
                let request = request(target, view, Access::Read, offset, len, buffer_bytes);
                // A single block leaves nothing to decide, unless there is a mapping.
                if is_one_block && request.mapped.is_none() {
                    reader.one_block().map(|_| ())
                } else {
                    drive(adaptive, target, view, request, &mut self.plans, |plan| {
                        if plan.in_flight > 1 {
                            return reader.batch(&mut plan.groups, plan.in_flight);
                        }
                        for group in &mut plan.groups {
                            if reader.group(&group)? == Progress::Ended {
                                return Ok(Progress::Ended);
                            }
                        }
                        Ok(Progress::Going)
                    })
                }
            }
        };
        match result {
            Err(error) if reader.done() == 0 => Err(error),
            _ => Ok(reader.done()),
        }
    }

    /// Writes `data` from byte `offset` of the view's data on. Bytes of the file that do not belong
    /// to the view keep what they hold; where the file ended before, they read as zero. Returns how
    /// many bytes were written: fewer than there are where something went wrong behind them; going
    /// on from there says what.
    ///
    /// # Errors
    /// When not a byte could be written: see [`crate::Error`].
    pub fn write<T: Target + ?Sized>(
        &mut self,
        target: &T,
        view: &FileView,
        buffer: &mut [u8],
        offset: u64,
        data: &[u8],
    ) -> Result<u64> {
        // Also for what comes: a descriptor for appending would take every byte, at its end.
        target.check(Access::Write)?;
        if data.is_empty() {
            return Ok(0);
        }
        let len = data.len() as u64;
        let buffer_bytes = buffer.len() as u64;
        let mut writer = Writer::new(target, view, offset, buffer, data, self.locking)?;
        let result = match &mut self.planner {
            Planner::Function(function) => {
                let groups = aggregate::Groups::new(
                    view,
                    Access::Write,
                    offset,
                    len,
                    buffer_bytes,
                    function.as_mut(),
                );
                write_groups(groups?, &mut writer)
            }
            Planner::Adaptive(adaptive) => {
                let is_one_block = writer.is_one_block();
                let mut request = request(target, view, Access::Write, offset, len, buffer_bytes);
                request.locked = self.locking != Locking::SingleWriter;
                if is_one_block && request.mapped.is_none() {
                    writer.one_block()
                } else {
                    drive(adaptive, target, view, request, &mut self.plans, |plan| {
                        for group in &mut plan.groups {
                            writer.group(&group, plan.in_flight)?;
                        }
                        Ok(Progress::Going)
                    })
                }
            }
        };
        match result {
            Err(error) if writer.done() == 0 => Err(error),
            _ => Ok(writer.done()),
        }
    }
}

fn read_groups<T: Target + ?Sized>(
    groups: aggregate::Groups<'_>,
    reader: &mut Reader<'_, T>,
) -> Result<()> {
    for group in groups {
        if reader.group(&group?)? == Progress::Ended {
            break;
        }
    }
    Ok(())
}

fn write_groups<T: Target + ?Sized>(
    groups: aggregate::Groups<'_>,
    writer: &mut Writer<'_, T>,
) -> Result<()> {
    for group in groups {
        writer.group(&group?, 1)?;
    }
    Ok(())
}

fn request<T: Target + ?Sized>(
    target: &T,
    view: &FileView,
    access: Access,
    offset: u64,
    len: u64,
    buffer_bytes: u64,
) -> Request {
    let request = Request::new(access, offset..offset + len, buffer_bytes);
    Request {
        readable: access == Access::Read || target.is_readable(),
        vectored: target.is_vectored(),
        announced: access == Access::Read && target.announces(),
        mapped: mapped(target, view, &request),
        ..request
    }
}

/// The mapping through which a request may go, if it is large enough for that to be a question.
fn mapped<T: Target + ?Sized>(target: &T, view: &FileView, request: &Request) -> Option<Mapped> {
    let Range { start, end } = request.data;
    let block = view.size() / view.tuple_count().max(1);
    if end - start < MAPPED_BLOCK_MIN && (end - start) / block.max(1) < MAPPED_BLOCKS_MIN {
        return None;
    }
    target.mapped(view.span(start, end - start).ok()?, request.access)
}

/// Plans part after part of a request, has each carried out, and tells the planner how long it
/// took.
fn drive<T: Target + ?Sized>(
    adaptive: &mut Adaptive,
    target: &T,
    view: &FileView,
    mut request: Request,
    plans: &mut u32,
    mut carry_out: impl FnMut(&mut Plan<'_>) -> Result<Progress>,
) -> Result<()> {
    while !request.data.is_empty() {
        request.warmth = Warmth::Warm;
        let mut plan = adaptive.plan(view, &request)?;
        // What takes hardly any time when it is at hand is not worth the question.
        if plan.prediction.corrected_ns > PROBE_NS {
            let span = view.span(request.data.start, plan.data_len)?;
            request.warmth = target.warmth(span);
            if request.warmth == Warmth::Cold {
                plan = adaptive.plan(view, &request)?;
            }
        }
        *plans = plans.wrapping_add(1);
        let is_worth_it =
            plan.prediction.corrected_ns > OBSERVE_NS || plans.is_multiple_of(OBSERVE_ONE_OF);
        let clock = Clock::of(&request, plan.prediction.corrected_ns);
        let start_ns = is_worth_it.then(|| clock.now_ns());
        let progress = carry_out(&mut plan)?;
        if progress == Progress::Ended {
            break;
        }
        if let Some(start_ns) = start_ns {
            adaptive.observe(&plan.prediction, clock.now_ns() - start_ns);
        }
        target.credit(plan.credit_ns);
        request.data.start += plan.data_len;
        if request.mapped.is_some() && !request.data.is_empty() {
            request.mapped = mapped(target, view, &request);
        }
    }
    Ok(())
}
