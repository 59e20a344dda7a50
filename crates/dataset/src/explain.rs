//! Where everything lies, and what it costs to read it.

use std::path::Path;
use std::sync::Arc;

use drepl::Definition;
use drepl::definition::{Storage, Update};

use crate::error::Result;
use crate::plan::{Model, Plan};

/// The views and the replicas of a definition. Arrays of variable size are as long as in a dataset
/// that was never written: empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The views, in the order of the definition.
    pub views: Vec<ViewPlace>,
    /// The replicas, in the order of the definition: name, and the bytes of each of its files.
    pub replicas: Vec<(String, Vec<u64>)>,
}

/// Where the variables of a view lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewPlace {
    /// Its name.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// In the order of the definition.
    pub variables: Vec<VariablePlace>,
}

/// Where a variable of a view lies, and where it is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariablePlace {
    /// Its name.
    pub name: String,
    /// Its first byte in the view.
    pub offset: u64,
    /// In bytes, with all that lies inside.
    pub size: u64,
    /// The replicas that serve it, while all are up to date.
    pub replicas: Vec<String>,
    /// The bytes of the dataset that a read of all of it moves.
    pub moved: u64,
    /// The bytes of the replicas that such a read touches: what lies between wanted bytes, up to a
    /// cache line, is touched with them.
    pub touched: u64,
    /// The bytes that no replica holds; they read as zeros. Of arrays of variable size: where each has
    /// a length of 1.
    pub missing: u64,
}

impl Explanation {
    /// Of the definition at `path`. Nothing but that is read.
    ///
    /// # Errors
    /// When the definition is wrong, or cannot be laid out.
    pub fn of(path: &Path) -> Result<Self> {
        Self::of_definition(crate::definition::load(path)?, path)
    }

    /// The same of a definition that was read already, from `path`.
    ///
    /// # Errors
    /// When it cannot be laid out, or an HDF5 replica cannot hold what it should.
    pub fn of_definition(definition: Definition, path: &Path) -> Result<Self> {
        let model = Arc::new(Model::new(definition));
        let plan = Plan::new(&model, None, path)?;
        let grown = Plan::new(&model, Some(model.lengths_of_one()), path)?;
        let replicas = &model.definition.replicas;
        for (number, replica) in replicas.iter().enumerate() {
            if replica.storage == Storage::Hdf5 {
                crate::hdf5::schema(&model.definition, replica, plan.replica(number))?;
            }
        }
        // As reads do: those that are always up to date, the closest first.
        let mut sources: Vec<usize> =
            (0..replicas.len()).filter(|index| replicas[*index].update == Update::Sync).collect();
        sources.sort_by_key(|index| replicas[*index].closeness);
        let mut views = Vec::new();
        for (number, view) in model.views() {
            let conversion = plan.read(number, &sources)?;
            let of_grown = grown.read(number, &sources)?;
            let mut variables = Vec::new();
            for (index, placed) in plan.view(number).variables().iter().enumerate() {
                let served = conversion.served().iter().find(|served| served.variable == index);
                let named = served.map(|served| {
                    let name = |source: &usize| replicas[sources[*source]].name.clone();
                    served.sources.iter().map(name).collect()
                });
                variables.push(VariablePlace {
                    name: view.variables[placed.variable].name.clone(),
                    offset: placed.offset,
                    size: placed.size,
                    replicas: named.unwrap_or_default(),
                    moved: served.map_or(0, |served| served.moved),
                    touched: served.map_or(0, |served| served.touched),
                    missing: (of_grown.served().iter())
                        .find(|served| served.variable == index)
                        .map_or(placed.size, |served| served.missing),
                });
            }
            views.push(ViewPlace { name: view.name.clone(), size: plan.size(number), variables });
        }
        let sizes = |(index, replica): (usize, &drepl::definition::Replica)| {
            (replica.name.clone(), plan.sizes(index))
        };
        Ok(Self { views, replicas: replicas.iter().enumerate().map(sizes).collect() })
    }
}
