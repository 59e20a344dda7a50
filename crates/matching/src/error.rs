//! Why a wish is not fulfilled.

use hyperslab::Slab;

use crate::{Component, Coupling, File, Place, VariableSpec};

/// What is wrong with a wish, as a matcher tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nobody wrote this part, and the variable is not filled.
    Unwritten {
        /// What is missing, or a part of it.
        part: Slab,
    },
    /// So few records were written.
    Records {
        /// How many.
        records: u64,
    },
    /// A writer has defined the file otherwise than the reader.
    Definition {
        /// Who differs.
        place: Place,
    },
    /// A rank that should have written is gone.
    Lost {
        /// Who is gone.
        place: Place,
    },
}

/// A wish that cannot be fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} of {component} cannot read `{variable}` of `{file}`: {why}")]
pub struct Refusal {
    /// The name of the reading component.
    pub component: String,
    /// Its rank.
    pub rank: u32,
    /// The name of the file.
    pub file: String,
    /// The name of the variable.
    pub variable: String,
    /// The reason, in a sentence.
    pub why: String,
    /// netCDF's error code for it.
    pub status: i32,
}

/// `NC_EINVALCOORDS`: an index beyond the bounds of a dimension.
pub(crate) const NC_EINVALCOORDS: i32 = -40;
/// `NC_ENOTVAR`: no such variable.
pub(crate) const NC_ENOTVAR: i32 = -49;
/// `NC_EBADDIM`: no such dimension.
const NC_EBADDIM: i32 = -46;
/// `NC_ECHAR`: text with numbers.
pub(crate) const NC_ECHAR: i32 = -56;
/// `NC_EREAD` of PnetCDF.
const NC_EREAD: i32 = -205;

impl Refusal {
    pub(crate) fn new(
        coupling: &Coupling,
        file: File,
        variable: &VariableSpec,
        reader: Place,
        why: &Why,
    ) -> Self {
        let spec = coupling.file(file);
        let writers = spec.map(|spec| names(coupling, &spec.writers)).unwrap_or_default();
        let (why, status) = match why {
            Why::Unwritten { part } => (
                format!(
                    "{writers} did not write {part}, and the variable is not filled; write it, or define the variable with fill values"
                ),
                NC_EREAD,
            ),
            Why::Records { records } => {
                (format!("{writers} wrote {records} records"), NC_EINVALCOORDS)
            }
            Why::Definition { place } => (
                format!(
                    "{} has defined the file with other variables, dimensions, types or fill values",
                    coupling.describe(*place)
                ),
                NC_EBADDIM,
            ),
            Why::Lost { place } => (
                format!("{} has ended or cannot be reached any more", coupling.describe(*place)),
                NC_EREAD,
            ),
        };
        Self {
            component: coupling.name(reader.component),
            rank: reader.rank,
            file: spec.map(|spec| spec.name.clone()).unwrap_or_default(),
            variable: variable.name.clone(),
            why,
            status,
        }
    }
}

/// The components of some ranks.
fn names(coupling: &Coupling, places: &[Place]) -> String {
    let mut components: Vec<Component> = places.iter().map(|place| place.component).collect();
    components.sort();
    components.dedup();
    let names: Vec<String> = components.into_iter().map(|one| coupling.name(one)).collect();
    names.join(" and ")
}
