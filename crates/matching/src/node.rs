//! One rank: what it writes, reads and matches.

mod matcher;
mod reader;
mod writer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hyperslab::{Copies, Memory, Slab};
use nctypes::{Conversion, Type};

use crate::coupling::fingerprint;
use crate::error::{NC_ECHAR, NC_EINVALCOORDS, NC_ENOTVAR};
use crate::{
    Batch, Coupling, Cycle, File, FileSpec, Load, Message, Pattern, Place, Refusal, Said, Share,
    Variable, VariableSpec,
};
use matcher::Matcher;
use reader::Reader;
use writer::Writer;

/// What the driver calls a piece of a program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u64);

/// A part of a variable that a program writes or reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The variable.
    pub variable: Variable,
    /// Which part.
    pub slab: Slab,
    /// How its elements lie in memory.
    pub memory: Memory,
    /// What they are there.
    pub type_: Type,
    /// Where they begin.
    pub handle: Handle,
}

/// What the driver has to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send a message.
    Send {
        /// To whom.
        to: Place,
        /// What.
        message: Message,
    },
    /// A cycle has begun for the writer: calls that had to wait go on. None: it is dropped, and what is written to it goes nowhere.
    Begun {
        /// Of which file.
        file: File,
        /// Its number.
        cycle: Option<Cycle>,
    },
    /// Send values to a reader.
    Copy(Copy),
    /// Put a value wherever nobody wrote.
    Fill(Fill),
    /// Everything that a read asked for is in its memory.
    Complete {
        /// Its memory.
        handle: Handle,
    },
    /// A read has failed.
    Failed {
        /// Its memory, of which some may have changed.
        handle: Handle,
        /// Why.
        refusal: Refusal,
    },
    /// This memory of writes is not needed any more.
    Released {
        /// Of which file.
        file: File,
        /// The memory.
        handles: Vec<Handle>,
    },
    /// A finished cycle of the reader has all that it wished for, or was refused it.
    Read {
        /// Of which file.
        file: File,
        /// Which.
        cycle: Cycle,
    },
}

/// Runs of elements that are sent to a reader, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// To whom.
    pub to: Place,
    /// What [`Node::arrived`] is told there.
    pub file: File,
    /// Likewise.
    pub cycle: Cycle,
    /// Likewise.
    pub wish: u32,
    /// Likewise.
    pub part: Slab,
    /// Out of which memory.
    pub handle: Handle,
    /// Which elements.
    pub copies: Copies,
    /// What becomes of them on the way; values that do not fit are counted for the writer.
    pub conversion: Conversion,
}

/// Runs of elements that get one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// In which memory.
    pub handle: Handle,
    /// Which elements: the destinations.
    pub copies: Copies,
    /// The value, as one of the variable's type.
    pub value: [u8; 8],
    /// What becomes of it in memory.
    pub conversion: Conversion,
}

/// Where what has arrived belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// In which memory.
    pub handle: Handle,
    /// Which elements: the destinations; the sources lie one behind the other.
    pub copies: Copies,
    /// What becomes of them there; values that do not fit are counted for the reader.
    pub conversion: Conversion,
}

/// A call that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The file is not coupled, or this rank does not take part in that way.
    #[error("file `{file}` is not {what} by {place}")]
    NotAMember {
        /// The file.
        file: String,
        /// `written` or `read`.
        what: &'static str,
        /// Who asked.
        place: String,
    },
    /// The cycle has not begun or is not defined, or is finished.
    #[error("file `{file}`: {what}")]
    Order {
        /// The file.
        file: String,
        /// What is out of order.
        what: &'static str,
    },
    /// There is no such variable.
    #[error("file `{file}` has no variable number {number}")]
    NoVariable {
        /// The file.
        file: String,
        /// The number.
        number: u32,
    },
    /// It is not in the variable.
    #[error("variable `{variable}` of `{file}` does not hold {slab}")]
    Outside {
        /// The file.
        file: String,
        /// The variable.
        variable: String,
        /// The slab.
        slab: Slab,
    },
    /// Text and numbers.
    #[error("variable `{variable}` of `{file}` is {}: it cannot be {}", stored.name(), memory.name())]
    Text {
        /// The file.
        file: String,
        /// The variable.
        variable: String,
        /// Its type.
        stored: Type,
        /// The type in memory.
        memory: Type,
    },
    /// Elements that no memory holds.
    #[error("variable `{variable}` of `{file}`: {slab} has no place in memory by the given map")]
    Unmapped {
        /// The file.
        file: String,
        /// The variable.
        variable: String,
        /// The slab.
        slab: Slab,
    },
}

impl RequestError {
    /// netCDF's error code for it.
    #[must_use]
    pub fn status(&self) -> i32 {
        /// `NC_EPERM`, and `NC_EINVAL` of netcdf.h.
        const NC_EPERM: i32 = -37;
        const NC_EINVAL: i32 = -36;
        match self {
            Self::NotAMember { .. } | Self::Order { .. } => NC_EPERM,
            Self::NoVariable { .. } => NC_ENOTVAR,
            Self::Outside { .. } => NC_EINVALCOORDS,
            Self::Text { .. } => NC_ECHAR,
            Self::Unmapped { .. } => NC_EINVAL,
        }
    }
}

/// As what a rank takes part in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// It writes.
    Writer,
    /// It reads.
    Reader,
}

/// The variables of a file in one cycle.
#[derive(Debug)]
pub(crate) struct Definition {
    variables: Vec<VariableSpec>,
    fingerprint: u64,
    share: Share,
}

/// What was asked for in a cycle, without where it lies.
pub(crate) type Asked = Vec<(Variable, Slab, u32)>;

/// The requests of a cycle, and what matchers had said to them.
#[derive(Debug)]
pub(crate) struct Recorded<T> {
    cycle: Cycle,
    definition: u64,
    asked: Asked,
    answers: Vec<T>,
}

/// One rank of a component.
#[derive(Debug)]
pub struct Node {
    place: Place,
    coupling: Arc<Coupling>,
    writers: BTreeMap<File, Writer>,
    readers: BTreeMap<File, Reader>,
    matchers: BTreeMap<File, Matcher>,
    actions: VecDeque<Action>,
}

/// What the parts of a node have in common.
struct Context<'a> {
    file: File,
    spec: &'a FileSpec,
    place: Place,
    coupling: &'a Coupling,
    actions: &'a mut VecDeque<Action>,
}

impl Context<'_> {
    fn send(&mut self, to: Place, cycle: Cycle, said: Said) {
        let message = Message { file: self.file, cycle, said };
        self.actions.push_back(Action::Send { to, message });
    }

    fn order(&self, what: &'static str) -> RequestError {
        RequestError::Order { file: self.spec.name.clone(), what }
    }

    /// Cuts requests into batches for the matchers; each gets one, so that it knows that there is no more.
    fn batches(
        &mut self,
        cycle: Cycle,
        definition: &Definition,
        batch: &Batch,
        fill: impl FnOnce(&Share, &mut [Batch]),
    ) {
        let matchers = self.spec.matching_places();
        let mut batches = vec![batch.clone(); matchers.len()];
        fill(&definition.share, &mut batches);
        for (matcher, batch) in matchers.into_iter().zip(batches) {
            let last = batch.written || batch.wished;
            if last || !batch.announces.is_empty() || !batch.wishes.is_empty() {
                self.send(matcher, cycle, Said::Batch(batch));
            }
        }
    }

    /// What is wrong with a request, if anything is.
    fn check(&self, definition: &Definition, request: &Request) -> Result<(), RequestError> {
        request.check(&self.spec.name, &definition.variables)
    }
}

impl Request {
    /// What is wrong with it, if anything is, in a file of these variables.
    ///
    /// # Errors
    /// What netCDF would refuse.
    pub fn check(&self, file: &str, variables: &[VariableSpec]) -> Result<(), RequestError> {
        let (name, number) = (|| file.to_owned(), self.variable.0);
        let spec = variables.get(number as usize);
        let spec = spec.ok_or_else(|| RequestError::NoVariable { file: name(), number })?;
        let (variable, slab) = (spec.name.clone(), self.slab.clone());
        if !spec.holds(&slab) {
            return Err(RequestError::Outside { file: name(), variable, slab });
        }
        if (spec.type_ == Type::Char) != (self.type_ == Type::Char) {
            let (stored, memory) = (spec.type_, self.type_);
            return Err(RequestError::Text { file: name(), variable, stored, memory });
        }
        if Copies::gather(&slab, (&slab, &self.memory)).is_none() {
            return Err(RequestError::Unmapped { file: name(), variable, slab });
        }
        Ok(())
    }
}

impl Node {
    /// The rank `place` of a coupling that was [checked](Coupling::check).
    #[must_use]
    pub fn new(place: Place, coupling: Arc<Coupling>) -> Self {
        let (mut writers, mut readers) = (BTreeMap::new(), BTreeMap::new());
        let mut matchers = BTreeMap::new();
        for (spec, number) in coupling.files.iter().zip(0u32..) {
            if spec.writers.contains(&place) {
                writers.insert(File(number), Writer::default());
            }
            if spec.readers.contains(&place) {
                readers.insert(File(number), Reader::default());
            }
            let matching = spec.matching_places();
            if matching.contains(&place) {
                matchers.insert(File(number), Matcher::new(spec, matching[0] == place));
            }
        }
        Self { place, coupling, writers, readers, matchers, actions: VecDeque::new() }
    }

    /// Who this is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// What has to be done next.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The writer begins a cycle. With a limited queue it may have to wait: [`Action::Begun`] says when it goes on.
    ///
    /// # Errors
    /// This rank does not write the file, or the cycle before is not finished.
    pub fn begin_writing(&mut self, file: File) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| writer.begin(context))
    }

    /// The reader begins a cycle.
    ///
    /// # Errors
    /// This rank does not read the file, or the cycle before is not finished.
    pub fn begin_reading(&mut self, file: File) -> Result<(), RequestError> {
        self.with_reader(file, |reader, context| reader.begin(context))
    }

    /// The writer has defined the variables of the cycle; again, if it defines more before anything was sent.
    ///
    /// # Errors
    /// The cycle has not begun, or some of its requests have been sent.
    pub fn define_written(
        &mut self,
        file: File,
        variables: Vec<VariableSpec>,
    ) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| {
            let definition = definition(context.spec, variables);
            writer.define(context, definition)
        })
    }

    /// The reader knows the variables of the cycle.
    ///
    /// # Errors
    /// The cycle has not begun, or some of its requests have been sent.
    pub fn define_read(
        &mut self,
        file: File,
        variables: Vec<VariableSpec>,
    ) -> Result<(), RequestError> {
        self.with_reader(file, |reader, context| {
            let definition = definition(context.spec, variables);
            reader.define(context, definition)
        })
    }

    /// A part of a variable lies in memory, which must stay as it is until it is [released](Action::Released).
    ///
    /// # Errors
    /// A request that netCDF would refuse, or out of order.
    pub fn write(&mut self, file: File, request: Request) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| writer.write(context, request))
    }

    /// A part of a variable is wanted in memory, which must stay until it is [complete](Action::Complete).
    ///
    /// # Errors
    /// A request that netCDF would refuse, or out of order.
    pub fn read(&mut self, file: File, request: Request) -> Result<(), RequestError> {
        self.with_reader(file, |reader, context| reader.read(context, request))
    }

    /// What this rank writes from now on is newer than what any rank wrote before it did the same: for collective calls after
    /// which a file is consistent.
    ///
    /// # Errors
    /// This rank is not writing the file.
    pub fn synchronise(&mut self, file: File) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| writer.synchronise(context))
    }

    /// Sends what was asked for until now, so that matchers have it early. Does nothing where cycles are replayed.
    ///
    /// # Errors
    /// This rank is not writing the file.
    pub fn flush_written(&mut self, file: File) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| writer.flush(context))?;
        self.with_matcher(file, Matcher::opened)
    }

    /// The same for the reader: wishes are fulfilled before the cycle is finished, as soon as the writers have finished theirs. Such a
    /// cycle is never replayed.
    ///
    /// # Errors
    /// This rank is not reading the file.
    pub fn flush_read(&mut self, file: File) -> Result<(), RequestError> {
        self.with_reader(file, |reader, context| reader.flush(context))
    }

    /// The writer has written all of the cycle.
    ///
    /// # Errors
    /// This rank is not writing the file.
    pub fn finish_writing(&mut self, file: File) -> Result<(), RequestError> {
        self.with_writer(file, |writer, context| writer.finish(context))?;
        self.with_matcher(file, Matcher::opened)
    }

    /// The reader has asked for all of the cycle.
    ///
    /// # Errors
    /// This rank is not reading the file.
    pub fn finish_reading(&mut self, file: File) -> Result<(), RequestError> {
        self.with_reader(file, |reader, context| reader.finish(context))
    }

    /// A message has arrived.
    pub fn receive(&mut self, from: Place, message: Message) {
        let Message { file, cycle, said } = message;
        // What is for a role that this node does not have is nobody's.
        let _ = match said {
            Said::Batch(batch) => self.with_matcher(file, |matcher, context| {
                matcher.take(context, from, cycle, batch);
            }),
            Said::MayBegin => self.with_matcher(file, |matcher, context| {
                matcher.may_begin(context, from, cycle);
            }),
            Said::SameAs(role, recorded) => self.with_matcher(file, |matcher, context| {
                matcher.vote(context, cycle, (from, role), recorded);
            }),
            Said::Done => {
                self.with_matcher(file, |matcher, context| matcher.done(context, cycle, from))
            }
            Said::Deliver(list) => self.with_writer(file, |writer, context| {
                writer.deliver(context, cycle, list);
                Ok(())
            }),
            Said::Closed => self.with_writer(file, |writer, context| {
                writer.closed(context, cycle, from);
                Ok(())
            }),
            Said::Begin(admitted) => self.with_writer(file, |writer, context| {
                writer.begun(context, admitted);
                Ok(())
            }),
            Said::Gaps(list) => self.with_reader(file, |reader, context| {
                reader.gaps(context, cycle, list);
                Ok(())
            }),
            Said::Refuse(list) => self.with_reader(file, |reader, context| {
                reader.refuse(context, cycle, list);
                Ok(())
            }),
            Said::Replay(role, replayed) => match role {
                Role::Writer => self.with_writer(file, |writer, context| {
                    writer.decided(context, cycle, replayed);
                    Ok(())
                }),
                Role::Reader => self.with_reader(file, |reader, context| {
                    reader.decided(context, cycle, replayed);
                    Ok(())
                }),
            },
        };
    }

    /// Values have arrived; where they belong, unless nobody waits for them any more. The driver puts them there before it asks
    /// for the next action.
    pub fn arrived(&mut self, file: File, cycle: Cycle, wish: u32, part: &Slab) -> Option<Arrival> {
        let found = self
            .with_reader(file, |reader, context| Ok(reader.arrived(context, cycle, wish, part)));
        found.ok().flatten()
    }

    /// Where values belong that are still on their way, as [`arrived`](Self::arrived) says when all of them are there. A driver that
    /// puts them there piece by piece asks before each: none as soon as nobody waits for them any more.
    pub fn destination(
        &mut self,
        file: File,
        cycle: Cycle,
        wish: u32,
        part: &Slab,
    ) -> Option<Arrival> {
        let found = self.with_reader(file, |reader, context| {
            Ok(reader.destination(context, cycle, wish, part))
        });
        found.ok().flatten()
    }

    /// Whether nothing is under way: all that was written is released, all that was wished is there or refused, and no other
    /// rank needs this one as a matcher.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.actions.is_empty()
            && self.writers.values().all(Writer::is_idle)
            && self.readers.values().all(Reader::is_idle)
            && self.matchers.values().all(Matcher::is_idle)
    }

    /// A rank has ended, or cannot be reached. What only it could have done fails, and nobody waits for it.
    pub fn lost(&mut self, place: Place) {
        let files: BTreeSet<File> = (0..self.coupling.files.len() as u32).map(File).collect();
        for file in files {
            let _ = self.with_matcher(file, |matcher, context| matcher.lost(context, place));
            let _ = self.with_writer(file, |writer, context| {
                writer.lost(context, place);
                Ok(())
            });
            let _ = self.with_reader(file, |reader, context| {
                reader.lost(context, place);
                Ok(())
            });
        }
    }

    /// The work that this rank has had as a matcher.
    #[must_use]
    pub fn load(&self) -> Load {
        let loads = self.matchers.values().map(Matcher::load);
        loads.fold(Load::default(), Load::plus)
    }

    /// What this rank has sent in the newest cycle that was recorded, for files that are replayed.
    #[must_use]
    pub fn pattern(&self, file: File) -> Option<Pattern> {
        self.writers.get(&file)?.pattern(self.place, file)
    }

    fn with_writer<T>(
        &mut self,
        file: File,
        work: impl FnOnce(&mut Writer, &mut Context<'_>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        match (self.writers.get_mut(&file), self.coupling.file(file)) {
            (Some(writer), Some(spec)) => {
                let (coupling, actions) = (&*self.coupling, &mut self.actions);
                work(writer, &mut Context { file, spec, place: self.place, coupling, actions })
            }
            (_, spec) => Err(self.not_a_member(spec, "written")),
        }
    }

    fn with_reader<T>(
        &mut self,
        file: File,
        work: impl FnOnce(&mut Reader, &mut Context<'_>) -> Result<T, RequestError>,
    ) -> Result<T, RequestError> {
        match (self.readers.get_mut(&file), self.coupling.file(file)) {
            (Some(reader), Some(spec)) => {
                let (coupling, actions) = (&*self.coupling, &mut self.actions);
                work(reader, &mut Context { file, spec, place: self.place, coupling, actions })
            }
            (_, spec) => Err(self.not_a_member(spec, "read")),
        }
    }

    /// Does nothing where this rank does not match. The matcher also sees what its own rank has defined as a writer.
    fn with_matcher(
        &mut self,
        file: File,
        work: impl FnOnce(&mut Matcher, &mut matcher::Context<'_, '_>),
    ) -> Result<(), RequestError> {
        let (matcher, writer) = (self.matchers.get_mut(&file), self.writers.get(&file));
        if let (Some(matcher), Some(writer), Some(spec)) =
            (matcher, writer, self.coupling.file(file))
        {
            let (coupling, actions) = (&*self.coupling, &mut self.actions);
            let mut context = Context { file, spec, place: self.place, coupling, actions };
            work(matcher, &mut matcher::Context { node: &mut context, writer });
        }
        Ok(())
    }

    fn not_a_member(&self, spec: Option<&FileSpec>, what: &'static str) -> RequestError {
        let file = spec.map(|spec| spec.name.clone()).unwrap_or_default();
        RequestError::NotAMember { file, what, place: self.coupling.describe(self.place) }
    }
}

fn definition(spec: &FileSpec, variables: Vec<VariableSpec>) -> Arc<Definition> {
    let matchers = spec.matching_places().len();
    Arc::new(Definition {
        fingerprint: fingerprint(&variables),
        share: Share::new(spec.distribution, &variables, matchers),
        variables,
    })
}

#[cfg(test)]
mod tests;
