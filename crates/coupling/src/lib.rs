//! Which files programs exchange, and how.
//!
//! Pure: a text in, a [`Configuration`] or everything that is wrong with it out.
//!
//! One `ncmpi_create("003/history.d01.nc", …)` of a component:
//!
//! 1. [`Configuration::parse`] had read the file that all components share: in the grammar of DTF's paper, in the one that
//!    was released, or in TOML. All end in one [`Draft`](draft), so that they mean the same and are checked alike.
//! 2. [`Configuration::rule`] looks for the rule whose [`NamePattern`] the name matches and that does not exclude it.
//! 3. The [`Rule`] says who writes and who reads, whether data goes from memory to memory or the reader waits for the
//!    file, and how requests are matched.
#![forbid(unsafe_code)]

mod diagnostic;
mod draft;
mod dtf;
mod pattern;
#[cfg(feature = "toml")]
mod tables;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use pattern::NamePattern;

use matching::{Distribution, FullQueue};

/// What all components of a workflow agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The components' names.
    pub components: Vec<String>,
    /// The files; where several rules match a name, the first counts.
    pub rules: Vec<Rule>,
    /// How components are started, where it is said.
    pub programs: Vec<Program>,
    /// What is strange, but no error.
    pub warnings: Vec<Diagnostic>,
}

/// How a component is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The component's name.
    pub component: String,
    /// The command line; at least its first word.
    pub command: Vec<String>,
    /// Where it is started, from the configuration's own directory on; none: where the launcher is.
    pub directory: Option<String>,
    /// Variables that are set for it.
    pub environment: Vec<(String, String)>,
    /// Where this stands, from 1.
    pub line: usize,
}

/// How files of some names are exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which names.
    pub name: NamePattern,
    /// Which of these not.
    pub exclude: Vec<NamePattern>,
    /// Between whom.
    pub parties: Parties,
    /// By which way.
    pub mode: Mode,
    /// Nobody reads them: components only take turns in writing.
    pub write_only: bool,
    /// How often each component opens and closes such a file; none: unknown.
    pub sessions: Option<u32>,
    /// What is matched once is sent again without being matched, while requests stay the same.
    pub replay: bool,
    /// Data is copied when it is written, so that the program may change its memory at once.
    pub buffer: bool,
    /// Programs promise to leave memory that they wrote from as it is until they have closed the file: it need not be copied.
    pub lent: bool,
    /// The first rank of the file has the same number in both components.
    pub mirror_root: bool,
    /// When a cycle ends, beside at `close` and `dtf_transfer`.
    pub cycle: CycleEnd,
    /// How many of the writers match; none: one for each 64.
    pub matchers: Option<u32>,
    /// Who of them is responsible for what.
    pub distribution: Distribution,
    /// How many cycles writers may be ahead of readers, and what happens to more.
    pub queue: Option<(u32, FullQueue)>,
    /// Where the rule begins, from 1.
    pub line: usize,
}

/// Who takes part in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parties {
    /// These write, those read.
    Directed {
        /// Names of components.
        writers: Vec<String>,
        /// Names of components.
        readers: Vec<String>,
    },
    /// Whoever of the two creates the file writes it, and the other reads it.
    Either(String, String),
}

impl Parties {
    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Directed { writers, readers } => (writers.as_slice(), readers.as_slice()),
            Self::Either(one, other) => (std::slice::from_ref(one), std::slice::from_ref(other)),
        };
        first.iter().chain(second).map(String::as_str)
    }
}

/// A call that ends a cycle of a file that stays open, for writers and readers alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CycleEnd {
    /// None.
    #[default]
    Close,
    /// `ncmpi_sync`.
    Sync,
    /// `ncmpi_wait_all`.
    Wait,
}

/// How data gets from one component to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By the file: readers wait until the writers have closed it.
    File,
    /// From memory to memory.
    Transfer,
}

impl Configuration {
    /// Reads the text of `file`: TOML if its name ends so, and otherwise DTF's grammar, of the paper or as released.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    pub fn parse(text: &str, file: &str) -> Result<Self, Diagnostics> {
        #[cfg(feature = "toml")]
        if file.ends_with(".toml") {
            return Self::from_toml(text, file);
        }
        Self::from_dtf(text, file)
    }

    /// Reads DTF's grammar, as in the paper or as released; keys of both may stand in one file.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    ///
    /// # Source
    /// Martsinkevich et al. 2018, Figure 4; maneka07/DTF, doc/README.config.
    pub fn from_dtf(text: &str, file: &str) -> Result<Self, Diagnostics> {
        dtf::parse(text, file)
    }

    /// Reads TOML; of a file that is called `sluice.toml`, the section `[couple]`.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the file.
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str, file: &str) -> Result<Self, Diagnostics> {
        tables::parse(text, file)
    }

    /// The rule for a file, if it is exchanged.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            rule.name.matches(name) && !rule.exclude.iter().any(|one| one.matches(name))
        })
    }
}
