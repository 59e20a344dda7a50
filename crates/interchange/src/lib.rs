//! Layouts as other tools describe them: numpy's dtypes, C structs, HDF5 files.
//!
//! An import gives a [`Definition`] with one view, or for HDF5 one view for each group, that has
//! the very bytes of the description, and a replica that stores it. An export says how another
//! tool reads the file of a view.

#![forbid(unsafe_code)]

mod c;
mod error;
#[cfg(feature = "hdf5")]
mod hdf5;
mod numpy;
mod shape;

pub use c::{export as to_c, import as from_c};
pub use error::{Error, Result};
#[cfg(feature = "hdf5")]
pub use hdf5::{Imported, import as from_hdf5};
pub use numpy::{
    Mapped, export as to_numpy, import as from_numpy, import_npy as from_npy,
    mapped as numpy_arrays,
};

use drepl::Definition;
use drepl::definition::{
    Array, ByteOrder, Length, Order, Part, Placing, Replica, ReplicaView, Storage, Type, Update,
    Variable, View, ViewVariable,
};

/// Where the bytes of an imported description are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the view and of its variable.
    pub name: String,
    /// The file, as the definition is to name it.
    pub file: String,
    /// The length of each dimension of an array of such elements; none for a single one.
    pub shape: Vec<u64>,
    /// Bytes before the first element.
    pub header: u64,
}

/// A dataset of one variable, a view of it, and the replica that is the view's file.
fn single(place: &Place, kind: Type, byte_order: ByteOrder, order: Order) -> Definition {
    let kind = match place.shape.is_empty() {
        true => kind,
        false => {
            let lengths = place.shape.iter().copied().map(Length::Fixed).collect();
            Type::Array(Array { lengths, element: kind }.into())
        }
    };
    Definition {
        variables: vec![Variable { name: place.name.clone(), kind }],
        views: vec![View {
            name: place.name.clone(),
            read_only: false,
            order,
            byte_order,
            // The description has said where everything is.
            packed: true,
            header: place.header,
            variables: vec![whole(&place.name, 0, Placing::default())],
        }],
        replicas: vec![replica(&place.file, Storage::Raw, vec![stored(0)])],
    }
}

fn whole(name: &str, source: usize, placing: Placing) -> ViewVariable {
    ViewVariable { name: name.to_owned(), source, part: Part::Whole, placing, record: None }
}

fn replica(file: &str, storage: Storage, views: Vec<ReplicaView>) -> Replica {
    Replica {
        name: file.to_owned(),
        complete: false,
        update: Update::Sync,
        closeness: 0,
        storage,
        views,
    }
}

fn stored(view: usize) -> ReplicaView {
    ReplicaView { view, group: None, split: false, chunk: None, deflate: None }
}
