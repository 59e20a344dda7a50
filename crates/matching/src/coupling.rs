//! Who exchanges what with whom: what every node knows from the start.

use std::collections::BTreeSet;
use std::fmt;

use hyperslab::{Slab, Span, Steps};
use nctypes::{Format, Type};

/// A program that takes part, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Component(pub u16);

/// A rank of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The component.
    pub component: Component,
    /// The rank in it.
    pub rank: u32,
}

/// A file, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct File(pub u32);

/// A variable of a file, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub u32);

/// One time that a file is written and read, counted from 0 on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cycle(pub u32);

/// All components and files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coupling {
    /// The names of the components, by their numbers.
    pub components: Vec<String>,
    /// The files, by their numbers.
    pub files: Vec<FileSpec>,
}

/// A file that is exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Its name, for messages.
    pub name: String,
    /// Which types its variables can have.
    pub format: Format,
    /// The ranks that write it, of one component or of several.
    pub writers: Vec<Place>,
    /// The ranks that read it.
    pub readers: Vec<Place>,
    /// How many of the writers match; none: one for each 64.
    pub matchers: Option<u32>,
    /// Who of them is responsible for what.
    pub distribution: Distribution,
    /// Whether a cycle with the same requests as a recorded one is not matched again.
    pub replay: bool,
    /// How many cycles writers may be ahead of readers, and what is done with more; none: as many as memory holds.
    pub queue: Option<(u32, FullQueue)>,
}

/// What happens to a cycle that is written while too many wait to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FullQueue {
    /// The writers wait until there is room.
    Block,
    /// It is dropped; readers never know of it.
    Discard,
}

/// Which matcher is responsible for which part of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Blocks of the slowest dimension, dealt out in turn. `block` indices each; none: the dimension is divided evenly.
    /// Variables of fewer than two dimensions go as a whole, in turn.
    ///
    /// # Source
    /// Martsinkevich et al. 2018, §2.3; DTF's `iodb_build_mode=range` and `DTF_VAR_BLOCK_RANGE`.
    Range {
        /// Indices of a block.
        block: Option<u64>,
    },
    /// Whole variables, in turn.
    ///
    /// # Source
    /// DTF's `iodb_build_mode=varid`.
    Variable,
    /// Tiles in as many dimensions as it takes for each matcher to have one of every variable, as little elongated as
    /// can be; variables of fewer tiles begin where the one before ended.
    Balanced,
}

/// The default number of ranks that one matcher works for.
///
/// # Source
/// Martsinkevich et al. 2018, §4.1; DTF's `MAX_WORKGROUP_SIZE`.
const GROUP: usize = 64;

impl FileSpec {
    /// A file that `writers` write and `readers` read, and all else as by default.
    #[must_use]
    pub fn new(name: &str, writers: Vec<Place>, readers: Vec<Place>) -> Self {
        Self {
            name: name.to_owned(),
            format: Format::Data64,
            writers,
            readers,
            matchers: None,
            distribution: Distribution::Balanced,
            replay: false,
            queue: None,
        }
    }

    /// The ranks that match, evenly spread over the writers; the first of them also keeps the queue.
    #[must_use]
    pub fn matching_places(&self) -> Vec<Place> {
        let all = self.writers.len();
        let count = self.matchers.map_or(all.div_ceil(GROUP), |count| count as usize).min(all);
        (0..count).map(|number| self.writers[number * all / count]).collect()
    }
}

/// The length of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// So many indices.
    Fixed(u64),
    /// As many records as were written; only the first dimension can be so.
    Records,
}

/// A variable of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VariableSpec {
    /// Its name, for messages.
    pub name: String,
    /// The type of its values in a file.
    pub type_: Type,
    /// Its dimensions, slowest first.
    pub shape: Vec<Length>,
    /// What stands where nobody wrote; none: to read that is an error. The first bytes are the value.
    pub fill: Option<[u8; 8]>,
}

impl VariableSpec {
    /// Whether its first dimension is that of records.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.shape.first() == Some(&Length::Records)
    }

    /// Whether a slab lies within it, whatever the number of records.
    #[must_use]
    pub fn holds(&self, slab: &Slab) -> bool {
        slab.rank() == self.shape.len()
            && slab.dimensions().iter().zip(&self.shape).all(|(steps, length)| match length {
                Length::Fixed(length) => steps.span().end <= *length,
                Length::Records => true,
            })
    }
}

/// A [`Coupling`] that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CouplingError {
    /// Nobody writes or reads a file.
    #[error("file `{file}`: no rank {what} it")]
    Nobody {
        /// Its name.
        file: String,
        /// `writes` or `reads`.
        what: &'static str,
    },
    /// A rank is listed twice, or of a component that does not exist.
    #[error("file `{file}`: rank {} of component {} is listed twice, or there is no such component", place.rank, place.component.0)]
    Members {
        /// Its name.
        file: String,
        /// The rank.
        place: Place,
    },
    /// A number that must not be 0.
    #[error("file `{file}`: {what} must be at least 1")]
    Zero {
        /// Its name.
        file: String,
        /// What is 0.
        what: &'static str,
    },
}

impl Coupling {
    /// Whether it can be.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), CouplingError> {
        for spec in &self.files {
            let file = || spec.name.clone();
            for (members, what) in [(&spec.writers, "writes"), (&spec.readers, "reads")] {
                if members.is_empty() {
                    return Err(CouplingError::Nobody { file: file(), what });
                }
                let mut seen = BTreeSet::new();
                let known = |place: &Place| (place.component.0 as usize) < self.components.len();
                let wrong = members.iter().find(|&place| !seen.insert(*place) || !known(place));
                if let Some(&place) = wrong {
                    return Err(CouplingError::Members { file: file(), place });
                }
            }
            let zero = match spec {
                FileSpec { matchers: Some(0), .. } => Some("the number of matchers"),
                FileSpec { queue: Some((0, _)), .. } => Some("the length of the queue"),
                FileSpec { distribution: Distribution::Range { block: Some(0) }, .. } => {
                    Some("the size of blocks")
                }
                _ => None,
            };
            if let Some(what) = zero {
                return Err(CouplingError::Zero { file: file(), what });
            }
        }
        Ok(())
    }

    /// The file of a number.
    #[must_use]
    pub fn file(&self, file: File) -> Option<&FileSpec> {
        self.files.get(file.0 as usize)
    }

    /// The name of a component, or its number.
    #[must_use]
    pub fn name(&self, component: Component) -> String {
        let name = self.components.get(component.0 as usize);
        name.cloned().unwrap_or_else(|| format!("component {}", component.0))
    }

    /// `rank 3 of ocean`.
    #[must_use]
    pub fn describe(&self, place: Place) -> String {
        format!("rank {} of {}", place.rank, self.name(place.component))
    }
}

/// A value that is the same wherever two definitions of a file are.
///
/// # Source
/// FNV-1a.
pub(crate) fn fingerprint(variables: &[VariableSpec]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for variable in variables {
        add(&(variable.name.len() as u64).to_le_bytes());
        add(variable.name.as_bytes());
        add(&[variable.type_ as u8, u8::from(variable.fill.is_some())]);
        add(&variable.fill.unwrap_or_default());
        add(&(variable.shape.len() as u64).to_le_bytes());
        for length in &variable.shape {
            let length = match length {
                Length::Fixed(length) => *length,
                // Longer than any dimension.
                Length::Records => u64::MAX,
            };
            add(&length.to_le_bytes());
        }
    }
    hash
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { block: None } => f.write_str("range"),
            Self::Range { block: Some(block) } => write!(f, "range by {block}"),
            Self::Variable => f.write_str("varid"),
            Self::Balanced => f.write_str("balanced"),
        }
    }
}

/// The indices of one block of a dimension.
pub(crate) fn block(number: u64, size: u64) -> Steps {
    let start = number.saturating_mul(size);
    Steps::of(Span::new(start, start.saturating_add(size)))
}
