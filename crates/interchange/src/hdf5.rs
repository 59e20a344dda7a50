//! HDF5: a view for each group that holds datasets, stored in the file itself.

use std::collections::BTreeMap;
use std::path::Path;

use drepl::Definition;
use drepl::definition::{ByteOrder, Order, Placing, ReplicaView, Storage, Type, Variable, View};
use hdf::{Element, HdfFile};

use crate::error::{Error, Result};
use crate::shape::{Fields, array, bytes};
use crate::{replica, stored, whole};

/// What was taken over, and what was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The definition; its replica is the file.
    pub definition: Definition,
    /// Datasets that no view can hold, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A definition for an HDF5 or netCDF-4 file, which it names `file`.
///
/// # Errors
/// When it is no HDF5 file, or holds no dataset that a view can hold.
pub fn import(path: &Path, file: &str) -> Result<Imported> {
    let (schema, mut left_out) = HdfFile::inspect(path)?;
    let mut groups: BTreeMap<String, Vec<&hdf::Dataset>> = BTreeMap::new();
    for dataset in schema.datasets() {
        let (group, name) = dataset.path.rsplit_once('/').unwrap_or(("", &dataset.path));
        if drepl::is_name(name) {
            groups.entry(group.to_owned()).or_default().push(dataset);
        } else {
            let reason = "its name is not made of letters, digits and _";
            left_out.push((dataset.path.clone(), reason.to_owned()));
        }
    }
    let (mut variables, mut views, mut replica_views) = (Vec::new(), Vec::new(), Vec::new());
    for (group, datasets) in groups {
        let mut held = Vec::new();
        for dataset in datasets {
            let name = dataset.path.rsplit('/').next().unwrap_or_default();
            let kind = match of_element(&dataset.element) {
                Ok(kind) if dataset.shape.is_empty() => kind,
                Ok(_) if dataset.shape.contains(&0) => {
                    left_out.push((dataset.path.clone(), "it is empty".to_owned()));
                    continue;
                }
                Ok(kind) => array(dataset.shape.clone(), kind),
                Err(error) => {
                    left_out.push((dataset.path.clone(), error.to_string()));
                    continue;
                }
            };
            let full = dataset.path.trim_start_matches('/').replace('/', "_");
            held.push(whole(name, variables.len(), Placing::default()));
            variables.push(Variable { name: unused(&variables, &full), kind });
        }
        if held.is_empty() {
            continue;
        }
        let name = match group.trim_start_matches('/').replace('/', "_") {
            root if root.is_empty() => "root".to_owned(),
            name => name,
        };
        let group = if group.is_empty() { "/".to_owned() } else { group };
        replica_views.push(ReplicaView { group: Some(group), ..stored(views.len()) });
        views.push(View {
            name,
            read_only: false,
            order: Order::RowMajor,
            byte_order: ByteOrder::Little,
            packed: false,
            header: 0,
            variables: held,
        });
    }
    if views.is_empty() {
        let reason = "it holds no dataset that a view can hold";
        return Err(Error::inexpressible(path.display().to_string(), reason));
    }
    let replicas = vec![replica(file, Storage::Hdf5, replica_views)];
    Ok(Imported { definition: Definition { variables, views, replicas }, left_out })
}

/// A name that no variable has: the wanted one, or that with a number.
fn unused(variables: &[Variable], wanted: &str) -> String {
    let is_free = |name: &str| variables.iter().all(|variable| variable.name != name);
    let mut numbered = (2..).map(|number| format!("{wanted}_{number}"));
    match is_free(wanted) {
        true => wanted.to_owned(),
        false => numbered.find(|name| is_free(name)).unwrap_or_default(),
    }
}

fn of_element(element: &Element) -> Result<Type> {
    Ok(match element {
        Element::Number(scalar) => Type::Scalar(*scalar),
        Element::Text(size) => bytes(*size),
        Element::Array { shape, element } => array(shape.clone(), of_element(element)?),
        Element::Compound { members, size } => {
            let mut fields = Fields::new();
            for member in members {
                fields.push(&member.name, of_element(&member.element)?, member.offset)?;
            }
            fields.finish(*size)
        }
    })
}
