//! Who writes and reads what.

use hyperslab::Slab;
use matching::{
    Component, Coupling, CouplingError, Distribution, FileSpec, Place, RequestError, VariableSpec,
};

/// One file that is exchanged between two components.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The variables.
    pub variables: Vec<VariableSpec>,
    /// For each rank of the writer: number of a variable, and what it writes of it.
    pub writes: Vec<Vec<(u32, Slab)>>,
    /// The same of the reader.
    pub reads: Vec<Vec<(u32, Slab)>>,
    /// How many of the writer's ranks match; none: one for each 64.
    pub matchers: Option<u32>,
    /// Who of them is responsible for what.
    pub distribution: Distribution,
    /// How often it is done.
    pub cycles: u32,
    /// Whether cycles after the first are replayed.
    pub replay: bool,
}

/// A scenario that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// There cannot be such a coupling.
    #[error("the scenario is none")]
    Coupling(#[from] CouplingError),
    /// A rank asks for what there is not.
    #[error("a request of the scenario is refused")]
    Request(#[from] RequestError),
    /// Too many ranks to count.
    #[error("{ranks} ranks are more than can be counted")]
    Ranks {
        /// How many.
        ranks: usize,
    },
}

pub(crate) const WRITER: Component = Component(0);
pub(crate) const READER: Component = Component(1);

impl Scenario {
    /// The coupling that it is.
    ///
    /// # Errors
    /// Ranks or numbers that cannot be.
    pub fn coupling(&self) -> Result<Coupling, ScenarioError> {
        let places = |component, ranks: usize| -> Result<Vec<Place>, ScenarioError> {
            let count = u32::try_from(ranks).map_err(|_| ScenarioError::Ranks { ranks })?;
            Ok((0..count).map(|rank| Place { component, rank }).collect())
        };
        let writers = places(WRITER, self.writes.len())?;
        let readers = places(READER, self.reads.len())?;
        let spec = FileSpec {
            matchers: self.matchers,
            distribution: self.distribution,
            replay: self.replay,
            ..FileSpec::new("simulated.nc", writers, readers)
        };
        let components = ["writer", "reader"].map(str::to_owned).to_vec();
        let coupling = Coupling { components, files: vec![spec] };
        coupling.check()?;
        Ok(coupling)
    }
}
