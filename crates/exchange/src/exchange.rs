//! One process among others.

use coupling::Rule;

use crate::{Fault, Plan, Wanted, Written};

/// The ranks that open a file together: an MPI communicator, or threads.
pub trait Group {
    /// Which of them this is.
    fn rank(&self) -> u32;

    /// How many they are.
    fn size(&self) -> u32;

    /// What each has given, by their ranks. Collective.
    ///
    /// # Errors
    /// [`Fault::Group`]
    fn gather_all(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Fault>;
}

/// Something that was written and that nobody has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub file: String,
    /// The how-manieth time that it was created, from 0.
    pub opening: u32,
    /// Why nobody will.
    pub why: String,
}

/// This process among those that are coupled. One for each process, made at the first coupled file; shared by its threads.
pub struct Exchange {
    plan: Plan,
}

impl Exchange {
    /// Takes this process's place.
    ///
    /// # Errors
    /// The directory cannot be used, or the thread cannot be started.
    pub fn join(plan: Plan) -> Result<Self, Fault> {
        Ok(Self { plan })
    }

    /// What the launcher has said.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The group creates a file that others read. Collective. Waits if the rule says that writers may be only so far ahead.
    ///
    /// In mode `file` the program then writes the file itself, and calls [`Written::close`] when it has closed it.
    ///
    /// # Errors
    /// The file is not coupled, or the readers are too late or gone while a queue is full.
    pub fn create(&self, name: &str, group: &dyn Group) -> Result<Written, Fault> {
        let _ = group;
        Err(self.not_coupled(name, "written"))
    }

    /// The group opens a file that others have written. Collective. Waits until they have finished a cycle of it; in mode `file`
    /// until they have closed it, and the program then reads the file itself.
    ///
    /// # Errors
    /// The file is not coupled, or the writers are too late or gone.
    pub fn open(&self, name: &str, group: &dyn Group) -> Result<Wanted, Fault> {
        let _ = group;
        Err(self.not_coupled(name, "read"))
    }

    /// Waits until what this process has written is read, or nobody is left to read it, and takes leave. For the end of the
    /// program, while it still can wait: at `MPI_Finalize`, or when it exits. What nobody has read is told.
    pub fn leave(&self) -> Vec<Unread> {
        Vec::new()
    }

    fn rule(&self, name: &str) -> Option<&Rule> {
        self.plan.rule(name)
    }

    fn not_coupled(&self, name: &str, what: &'static str) -> Fault {
        let _ = self.rule(name);
        let component = self.plan.component().to_owned();
        Fault::NotCoupled { file: name.to_owned(), what, component }
    }
}
