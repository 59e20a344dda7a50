//! What a replica that is an HDF5 file holds.
//!
//! Such a file describes itself, so it has the values of its views and not their bytes: its numbers
//! are little-endian, without headers, padding and markers. Therefore each of its views is stood in
//! for by another one of that kind behind the user's views, which nobody is shown; the replica is
//! placed, converted and rebuilt as any other, and `hdf` turns offsets into places in the file.

use drepl::Definition;
use drepl::definition::{
    Array, ByteOrder, Length, Order, Part, Placing, Replica, ReplicaView, Scalar, Slice, Storage,
    Type, Update, View, ViewVariable,
};
use hdf::{Dataset, Element, Member, Schema};
use layout::Placement;

use crate::error::{Error, Result};

/// The bytes of a chunk where the definition only asks for compression.
const CHUNK_BYTES: u64 = 256 * 1024;

/// The most dimensions of a dataset: `H5S_MAX_RANK`.
const RANK_MAX: usize = 32;

/// Lets HDF5 replicas hold views of values, which it adds.
pub(crate) fn add_stored_views(definition: &mut Definition) {
    for index in 0..definition.replicas.len() {
        if definition.replicas[index].storage != Storage::Hdf5 {
            continue;
        }
        for place in 0..definition.replicas[index].views.len() {
            let held = &definition.replicas[index].views[place];
            let shown = &definition.views[held.view];
            let group = held.group.clone().unwrap_or_else(|| format!("/{}", shown.name));
            let stored = stored_view(definition, shown, held.split);
            let number = definition.views.len();
            definition.views.push(stored);
            let held = &mut definition.replicas[index].views[place];
            held.view = number;
            held.group = Some(group);
        }
    }
}

/// The values of a view. With `split`, a variable of structs becomes one for each field.
fn stored_view(definition: &Definition, shown: &View, split: bool) -> View {
    let mut variables = Vec::new();
    for variable in &shown.variables {
        let part = without_records(&variable.part);
        let kind = &definition.variables[variable.source].kind;
        let parts = match split.then(|| split_up(kind, &part)).flatten() {
            Some(parts) => parts,
            None => vec![(String::new(), part)],
        };
        variables.extend(parts.into_iter().map(|(field, part)| ViewVariable {
            // A path within the group.
            name: format!("{}{field}", variable.name),
            source: variable.source,
            part,
            placing: Placing::default(),
            record: None,
        }));
    }
    View {
        name: format!("{} as HDF5 has it", shown.name),
        read_only: false,
        order: shown.order,
        byte_order: ByteOrder::Little,
        packed: true,
        header: 0,
        variables,
    }
}

fn without_records(part: &Part) -> Part {
    match part {
        Part::Whole => Part::Whole,
        Part::Record { part, .. } => without_records(part),
        Part::Member { field, part } => {
            Part::Member { field: *field, part: Box::new(without_records(part)) }
        }
        Part::Fields(fields) => {
            let mut fields = fields.clone();
            fields.iter_mut().for_each(|field| field.part = without_records(&field.part));
            Part::Fields(fields)
        }
        Part::Slice(slice) => {
            let element = Box::new(without_records(&slice.element));
            Part::Slice(Slice { element, ..slice.clone() })
        }
    }
}

/// The fields of a struct, or of an array of structs: each as a path and a part.
fn split_up(kind: &Type, part: &Part) -> Option<Vec<(String, Part)>> {
    match (kind, part) {
        (Type::Struct(fields), Part::Whole) => {
            let members = fields.iter().enumerate();
            let member = |field| Part::Member { field, part: Box::new(Part::Whole) };
            Some(members.map(|(index, f)| (format!("/{}", f.name), member(index))).collect())
        }
        (Type::Struct(fields), Part::Fields(parts)) => {
            let member = |part: &drepl::definition::PartField| {
                let inner = Part::Member { field: part.field, part: Box::new(part.part.clone()) };
                (format!("/{}", fields[part.field].name), inner)
            };
            Some(parts.iter().map(member).collect())
        }
        (Type::Struct(fields), Part::Member { field, part }) => {
            let inner = split_up(&fields[*field].kind, part)?;
            let around = |part| Part::Member { field: *field, part: Box::new(part) };
            Some(inner.into_iter().map(|(name, part)| (name, around(part))).collect())
        }
        (Type::Array(array), Part::Whole) => {
            let dimensions = 0..array.lengths.len();
            let running =
                |dimension| drepl::definition::Index::Running { dimension, step: 1, start: 0 };
            let slice = Slice {
                lengths: array.lengths.clone(),
                indexes: dimensions.map(running).collect(),
                element: Box::new(Part::Whole),
            };
            split_up(kind, &Part::Slice(slice))
        }
        (Type::Array(array), Part::Slice(slice)) => {
            let inner = split_up(&array.element, &slice.element)?;
            let around = |(name, part)| {
                (name, Part::Slice(Slice { element: Box::new(part), ..slice.clone() }))
            };
            Some(inner.into_iter().map(around).collect())
        }
        _ => None,
    }
}

/// The datasets of an HDF5 replica, each where the placement has its variable.
///
/// # Errors
/// [`Error::Unsupported`]: arrays of variable size, a complete replica whose views leave something
/// out, chunks in a replica that is written at once.
pub(crate) fn schema(
    definition: &Definition,
    replica: &Replica,
    placement: &Placement,
) -> Result<Schema> {
    let unsupported = |what| Error::Unsupported { replica: replica.name.clone(), what };
    if placement.sizes().len() > 1 {
        return Err(unsupported("HDF5 replicas hold no arrays of variable size"));
    }
    let mut datasets = Vec::new();
    for placed in placement.variables() {
        let Some(number) = placed.view else {
            return Err(unsupported(
                "a complete HDF5 replica needs views of everything: what they leave out would \
                 have no names",
            ));
        };
        let held = replica.views.iter().find(|held| held.view == number);
        let view = &definition.views[number];
        let (Some(held), Some(variable)) = (held, view.variables.get(placed.variable)) else {
            return Err(unsupported("its placement names what it does not hold"));
        };
        let source = &definition.variables[variable.source];
        let kind = variable.part.taken(&source.kind);
        let kind = kind.ok_or_else(|| unsupported("a view does not fit the dataset"))?;
        let Some((shape, element)) = shape_and_element(&kind, view.order) else {
            return Err(unsupported("HDF5 replicas hold no arrays of variable size"));
        };
        let group = held.group.as_deref().unwrap_or_default().trim_end_matches('/');
        let root = if group.starts_with('/') || group.is_empty() { "" } else { "/" };
        datasets.push(Dataset {
            path: format!("{root}{group}/{}", variable.name),
            start: placed.offset,
            storage: storage(held, &shape, element.size()),
            element,
            shape,
        });
    }
    let is_chunked = |dataset: &Dataset| matches!(dataset.storage, hdf::Storage::Chunked { .. });
    if replica.update != Update::OnClose && datasets.iter().any(is_chunked) {
        return Err(unsupported(
            "HDF5 with chunks or compression is written when a view is closed: say `on-close`, \
             and have another replica that is written at once",
        ));
    }
    Schema::new(datasets).map_err(Error::from)
}

/// The lengths of a dataset, and what it has of each. Arrays within arrays are more dimensions, which
/// readers like netCDF's and VTK's understand, as they do not elements that are arrays.
fn shape_and_element(kind: &Type, order: Order) -> Option<(Vec<u64>, Element)> {
    let (mut lengths, mut kind) = (Vec::new(), kind);
    while let Type::Array(array) = kind {
        let inner = shape(array, order)?;
        if lengths.len() + inner.len() > RANK_MAX {
            break;
        }
        lengths.extend(inner);
        kind = &array.element;
    }
    Some((lengths, element(kind, order)?))
}

/// The lengths as HDF5 has them, which knows only the order of C.
fn shape(array: &Array, order: Order) -> Option<Vec<u64>> {
    let lengths = array.lengths.iter().map(|length| match length {
        Length::Fixed(length) => Some(*length),
        Length::Stored(_) => None,
    });
    let mut shape: Vec<u64> = lengths.collect::<Option<_>>()?;
    if order == Order::RowMinor {
        shape.reverse();
    }
    Some(shape)
}

fn element(kind: &Type, order: Order) -> Option<Element> {
    Some(match kind {
        Type::Scalar(scalar) => Element::Number(*scalar),
        Type::Text { capacity } => {
            let length = Element::Number(Scalar::Int16);
            let text = Element::Text(u64::from(*capacity));
            compound([("length", length), ("text", text)].into_iter())
        }
        Type::Struct(fields) => {
            let members = fields.iter().map(|f| Some((&*f.name, element(&f.kind, order)?)));
            compound(members.collect::<Option<Vec<_>>>()?.into_iter())
        }
        Type::Array(array) => Element::Array {
            shape: shape(array, order)?,
            element: Box::new(element(&array.element, order)?),
        },
    })
}

/// Members back to back, as views have them.
fn compound<'a>(members: impl Iterator<Item = (&'a str, Element)>) -> Element {
    let mut size = 0;
    let members = members.map(|(name, element)| {
        let offset = size;
        size += element.size();
        Member { name: name.to_owned(), offset, element }
    });
    let members = members.collect();
    Element::Compound { members, size }
}

/// How a dataset is stored: in chunks where that is asked for and it has the rank for it.
fn storage(held: &ReplicaView, shape: &[u64], element: u64) -> hdf::Storage {
    let chunk = match &held.chunk {
        Some(chunk) if chunk.len() == shape.len() => chunk.clone(),
        _ if held.deflate.is_some() => whole_rows(shape, element),
        _ => return hdf::Storage::Contiguous,
    };
    if shape.is_empty() || shape.contains(&0) {
        return hdf::Storage::Contiguous;
    }
    let chunk = chunk.iter().zip(shape).map(|(chunk, length)| *chunk.min(length)).collect();
    hdf::Storage::Chunked { chunk, deflate: held.deflate }
}

/// As many whole rows, planes, … as fit into a chunk of the usual size.
fn whole_rows(shape: &[u64], element: u64) -> Vec<u64> {
    let mut rest = (CHUNK_BYTES / element.max(1)).max(1);
    let mut chunk = vec![1; shape.len()];
    for (chunk, length) in chunk.iter_mut().zip(shape).rev() {
        *chunk = rest.min(*length).max(1);
        rest = (rest / *length.max(&1)).max(1);
        if *chunk < *length {
            break;
        }
    }
    chunk
}
