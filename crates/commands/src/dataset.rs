//! A dataset that commands are given to, whatever it is made of.

use std::sync::Arc;

use client::{At, Error as ClientError, O_PATH, Session};
use p9::{Errno, QidType};

use crate::error::{Error, Result};
use crate::files::{Files, Reading};
use crate::hook;
use crate::remote::Remote;
use crate::shelf::Shelf;
use crate::stream::{Output, Source};
use crate::wire;

/// The kind of a control file that is none: it says that the directory is a shelf.
const SHELF_KIND: QidType = hook::KIND.union(QidType::TEMPORARY);

/// What a command answers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether it was done.
    pub success: bool,
    /// What it says.
    pub text: Vec<u8>,
}

impl Answer {
    pub(crate) fn done(text: impl Into<Vec<u8>>) -> Self {
        Self { success: true, text: text.into() }
    }

    pub(crate) fn failed(text: impl Into<Vec<u8>>) -> Self {
        Self { success: false, text: text.into() }
    }
}

/// A dataset in use.
pub struct Dataset {
    kind: Kind,
    pending: Pending,
}

enum Kind {
    Hooks(Remote),
    Files(Files),
    Shelf(Shelf),
}

/// Output that has not been taken yet.
#[derive(Default)]
enum Pending {
    #[default]
    Nothing,
    /// Bytes of a file.
    Reading(Reading),
    /// What hooks have given and was not taken.
    Hooks { output: Output, taken: usize },
}

impl Dataset {
    /// Marks a store whose top has directories of files, which `put` and `rm` make and remove: what SCDC calls a store.
    #[must_use]
    pub fn shelf(files: Arc<dyn store::Store>) -> store::Marked {
        store::Marked::new(files, wire::NAME, SHELF_KIND)
    }

    /// Begins to use the dataset at `path` of a service. With hooks, only the first command tells whether there is one.
    ///
    /// # Errors
    /// When there is none, in the words of SCDC; when the service cannot be reached.
    pub fn open(session: &Arc<Session>, path: &[u8]) -> Result<Self> {
        let names: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let kind = match look(session, &names)? {
            Some(kind) if kind == hook::KIND => {
                Kind::Hooks(Remote::open(session, &control(&names))?)
            }
            Some(kind) if kind == SHELF_KIND => Kind::Shelf(Shelf::open(session, &names, None)?),
            _ => match names.split_last() {
                Some((last, above))
                    if !above.is_empty() && look(session, above)? == Some(SHELF_KIND) =>
                {
                    Kind::Shelf(Shelf::open(session, above, Some(last))?)
                }
                _ => Kind::Files(Files::open(session, &names)?),
            },
        };
        Ok(Self { kind, pending: Pending::Nothing })
    }

    /// Whether hooks answer its commands.
    #[must_use]
    pub fn is_hooks(&self) -> bool {
        matches!(self.kind, Kind::Hooks(_))
    }

    /// Asks hooks whether there is such a dataset, which is otherwise learned from the first command.
    ///
    /// # Errors
    /// When there is none.
    pub fn check(&mut self) -> Result<()> {
        let Kind::Hooks(remote) = &mut self.kind else { return Ok(()) };
        let given = remote.run(b"", None, false)?;
        match given.success {
            true => Ok(()),
            false => Err(Error::refused(String::from_utf8_lossy(&given.text))),
        }
    }

    /// Carries out a command. Its input is taken as far as it is wanted; output is waiting for [`Dataset::take`]
    /// afterwards. What was left of the output of an earlier one is gone.
    ///
    /// # Errors
    /// When the service cannot be reached, or does not speak as it should: an answer of failure is none.
    pub fn run(
        &mut self,
        line: &[u8],
        input: Option<&mut dyn Source>,
        wants_output: bool,
    ) -> Result<Answer> {
        self.pending = Pending::Nothing;
        let (answer, reading) = match &mut self.kind {
            Kind::Hooks(remote) => {
                let given = remote.run(line, input, wants_output)?;
                self.pending = Pending::Hooks { output: given.output, taken: 0 };
                return Ok(Answer { success: given.success, text: given.text });
            }
            Kind::Files(files) => files.run(line, input)?,
            Kind::Shelf(shelf) => shelf.run(line, input)?,
        };
        if let Some(reading) = reading {
            self.pending = Pending::Reading(reading);
        }
        Ok(answer)
    }

    /// What is said of the output that is taken next.
    #[must_use]
    pub fn output_shape(&self) -> crate::Shape {
        match &self.pending {
            Pending::Hooks { output, .. } => output.shape,
            Pending::Nothing | Pending::Reading(_) => crate::Shape::default(),
        }
    }

    /// How large the piece is that is waiting, if that is known.
    #[must_use]
    pub fn waiting_bytes(&self) -> Option<usize> {
        match &self.pending {
            Pending::Hooks { output, taken } => Some(output.data.len() - taken),
            Pending::Nothing | Pending::Reading(_) => None,
        }
    }

    /// Takes output into `buffer`: how many bytes, and whether there may be more. `input` is what is left of the
    /// command's input, if its hooks go on to use it.
    ///
    /// # Errors
    /// When reading fails, or hooks say so.
    pub fn take(
        &mut self,
        buffer: &mut [u8],
        input: Option<&mut dyn Source>,
    ) -> Result<(usize, bool)> {
        match &mut self.pending {
            Pending::Nothing => Ok((0, false)),
            Pending::Reading(reading) => reading.take(buffer),
            Pending::Hooks { output, taken } => {
                if *taken == output.data.len() && output.more {
                    let Kind::Hooks(remote) = &mut self.kind else { return Ok((0, false)) };
                    // After a failure there is no more.
                    output.more = false;
                    *output = remote.next(input)?;
                    *taken = 0;
                }
                let count = buffer.len().min(output.data.len() - *taken);
                buffer[..count].copy_from_slice(&output.data[*taken..*taken + count]);
                *taken += count;
                Ok((count, output.more || *taken < output.data.len()))
            }
        }
    }

    /// Gets the next piece of hooks' output without taking it, so that its size is known.
    ///
    /// # Errors
    /// As [`Dataset::take`].
    pub fn fetch(&mut self, input: Option<&mut dyn Source>) -> Result<()> {
        self.take(&mut [], input).map(drop)
    }

    /// Whether output may be left.
    #[must_use]
    pub fn has_output(&self) -> bool {
        match &self.pending {
            Pending::Nothing => false,
            Pending::Reading(reading) => !reading.has_ended(),
            Pending::Hooks { output, taken } => output.more || *taken < output.data.len(),
        }
    }

    /// Ends the use. Dropping does the same, but for telling the service at once.
    pub fn close(self) {
        if let Kind::Hooks(remote) = self.kind {
            remote.close();
        }
    }
}

fn control(names: &[&[u8]]) -> Vec<u8> {
    let mut names = names.to_vec();
    names.push(wire::NAME);
    names.join(&b'/')
}

/// The kind of the control file in a directory, if there is one.
fn look(session: &Arc<Session>, names: &[&[u8]]) -> Result<Option<QidType>> {
    match session.open(At::root(&control(names)), O_PATH, 0) {
        Ok(opened) => {
            let kind = opened.handle.qid().kind;
            opened.handle.close();
            Ok(Some(kind))
        }
        Err(ClientError::Refused(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
