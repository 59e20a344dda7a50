//! What a definition means: names are indexes, expressions are numbers, types are known.
//!
//! Types may be shared ([`Arc`]), because a named type that is used many times, also inside other
//! named types, would otherwise be copied as often as it is used.

use std::sync::Arc;

/// A dataset with its views and its replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The variables of the dataset, in the order of their declaration.
    pub variables: Vec<Variable>,
    /// The views, in the order of their declaration.
    pub views: Vec<View>,
    /// The replicas, in the order of their declaration.
    pub replicas: Vec<Replica>,
}

/// A named instance of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Unique in the dataset.
    pub name: String,
    /// What it holds.
    pub kind: Type,
}

/// What a variable, a field or an element holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// One number.
    Scalar(Scalar),
    /// `stringN`: an `int16` with the length in use, then `capacity` bytes (§III-B.1).
    Text {
        /// The N of `stringN`, in bytes.
        capacity: u16,
    },
    /// Fields one after the other.
    Struct(Arc<[Field]>),
    /// Elements of one type.
    Array(Arc<Array>),
}

/// A numeric type of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// 1-byte signed integer.
    Int8,
    /// 2-byte signed integer.
    Int16,
    /// 4-byte signed integer.
    Int32,
    /// 8-byte signed integer.
    Int64,
    /// 1-byte unsigned integer.
    Uint8,
    /// 2-byte unsigned integer.
    Uint16,
    /// 4-byte unsigned integer.
    Uint32,
    /// 8-byte unsigned integer.
    Uint64,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
}

impl Scalar {
    /// The bytes it takes, which is also its natural alignment.
    pub fn size(self) -> u64 {
        match self {
            Scalar::Int8 | Scalar::Uint8 => 1,
            Scalar::Int16 | Scalar::Uint16 => 2,
            Scalar::Int32 | Scalar::Uint32 | Scalar::Float32 => 4,
            Scalar::Int64 | Scalar::Uint64 | Scalar::Float64 => 8,
        }
    }

    /// What the language calls it.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Int8 => "int8",
            Scalar::Int16 => "int16",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            Scalar::Uint8 => "uint8",
            Scalar::Uint16 => "uint16",
            Scalar::Uint32 => "uint32",
            Scalar::Uint64 => "uint64",
            Scalar::Float32 => "float32",
            Scalar::Float64 => "float64",
        }
    }
}

/// A member of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Unique in its struct.
    pub name: String,
    /// What it holds; never of variable size.
    pub kind: Type,
}

/// An array of any rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The length of each dimension, the outermost first; at least one.
    pub lengths: Vec<Length>,
    /// What each element holds; never of variable size.
    pub element: Type,
}

/// How many elements a dimension has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Known from the definition.
    Fixed(u64),
    /// Stored in the scalar integer variable of this index, which is declared before the array. At
    /// most one dimension of an array, and only of a variable, not of a field or an element.
    Stored(usize),
}

/// One layout of the dataset, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The name of the file that serves it; unique among the views.
    pub name: String,
    /// Whether the dataset can be changed through it.
    pub read_only: bool,
    /// Which index of an array runs fastest.
    pub order: Order,
    /// The byte order of its numbers.
    pub byte_order: ByteOrder,
    /// Nothing is aligned, whatever its type.
    pub packed: bool,
    /// Bytes before the first variable, which belong to no variable.
    pub header: u64,
    /// What its file holds, in order.
    pub variables: Vec<ViewVariable>,
}

/// Which index of an array runs fastest in a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The last one, as in C.
    #[default]
    RowMajor,
    /// The first one, as in Fortran.
    RowMinor,
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// The least significant one.
    #[default]
    Little,
    /// The most significant one.
    Big,
}

/// A variable of a view: all, or a part, of a variable of the dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewVariable {
    /// Unique in its view.
    pub name: String,
    /// Index of the variable of the dataset.
    pub source: usize,
    /// What of it is in the view.
    pub part: Part,
    /// Where it begins, other than where the one before it ends.
    pub placing: Placing,
    /// Neighbours of one number lie in one Fortran record, without alignment between them.
    pub record: Option<Record>,
}

/// How a variable of a view is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placing {
    /// At this byte of the view, counted from its begin, its header included.
    pub at: Option<u64>,
    /// At the next multiple of this, in place of the type's alignment; a power of two.
    pub align: Option<u64>,
    /// Bytes that follow it and belong to no variable.
    pub pad: u64,
}

/// A record of a Fortran unformatted sequential file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Variables of a view that have the same number share the record.
    pub number: usize,
    /// The size of the markers around it.
    pub marker: Marker,
}

/// The length markers around a Fortran record, signed integers in the byte order of the view.
/// Records longer than a 4-byte marker can tell are split, with negative markers, as gfortran does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// 4 bytes, gfortran's default.
    Four,
    /// 8 bytes.
    Eight,
}

/// What a view takes of a type of the dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Of a struct, these fields in this order: `{ b, a }`.
    Fields(Vec<PartField>),
    /// Of a struct, one field that is not wrapped in a struct: `= data[i].b`.
    Member {
        /// Index of the field.
        field: usize,
        /// What of the field.
        part: Box<Part>,
    },
    /// Of an array, these elements: `d[i, j] = a[j, i*5]`.
    Slice(Slice),
    /// The same with Fortran markers around it: `[i] record {…}`.
    Record {
        /// The size of the markers.
        marker: Marker,
        /// What is between them.
        part: Box<Part>,
    },
}

impl Part {
    /// The type of what it takes of `kind`, in the order of the view; around a record, that of what is between
    /// the markers. `None` if it does not fit, which a definition that was checked does not have.
    pub fn taken(&self, kind: &Type) -> Option<Type> {
        match (self, kind) {
            (Part::Whole, kind) => Some(kind.clone()),
            (Part::Record { part, .. }, kind) => part.taken(kind),
            (Part::Fields(parts), Type::Struct(fields)) => {
                let taken = parts.iter().map(|part| {
                    let field = fields.get(part.field)?;
                    let kind = part.part.taken(&field.kind)?;
                    Some(Field { name: field.name.clone(), kind })
                });
                Some(Type::Struct(taken.collect::<Option<_>>()?))
            }
            (Part::Member { field, part }, Type::Struct(fields)) => {
                part.taken(&fields.get(*field)?.kind)
            }
            (Part::Slice(slice), Type::Array(array)) => {
                let element = slice.element.taken(&array.element)?;
                if slice.lengths.is_empty() {
                    return Some(element);
                }
                Some(Type::Array(Arc::new(Array { lengths: slice.lengths.clone(), element })))
            }
            (Part::Fields(_) | Part::Member { .. } | Part::Slice(_), _) => None,
        }
    }
}

/// A field of a substruct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartField {
    /// Index of the field in the struct of the dataset.
    pub field: usize,
    /// What of it.
    pub part: Part,
}

/// Elements of an array, chosen by index arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The length of each dimension of the view's array, the outermost first. None: one element,
    /// not an array.
    pub lengths: Vec<Length>,
    /// For every dimension of the dataset's array, which index is meant. Each dimension of the view
    /// is named by exactly one of them.
    pub indexes: Vec<Index>,
    /// What of each element.
    pub element: Box<Part>,
}

/// An index into one dimension of an array of the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// `step * i + start`, where `i` counts the view's dimension from 0. Never outside the array.
    Running {
        /// Which dimension of the view.
        dimension: usize,
        /// Not 0; negative when the view runs backwards.
        step: i64,
        /// The index of the view's first element.
        start: i64,
    },
    /// Always this element.
    Fixed(u64),
}

/// Where views are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Its file (a directory where a view has data of variable size), relative to the definition.
    pub name: String,
    /// Holds the whole dataset: what its views leave out follows them.
    pub complete: bool,
    /// When a write to the dataset reaches it.
    pub update: Update,
    /// Of two replicas that can serve a read at equal cost of conversion, the one with the smaller
    /// number does.
    pub closeness: u32,
    /// The format of its file.
    pub storage: Storage,
    /// The views it holds, one after the other.
    pub views: Vec<ReplicaView>,
}

/// When a replica is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Update {
    /// Before the write returns.
    #[default]
    Sync,
    /// Soon after, in order; writers wait when too much is due.
    Async,
    /// When the last writer closes its view, or asks for fsync.
    OnClose,
}

/// The format of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// The bytes of the views.
    #[default]
    Raw,
    /// An HDF5 file with a group for each view.
    Hdf5,
}

/// A view in a replica. What is said of HDF5 means nothing in a raw one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaView {
    /// Index of the view.
    pub view: usize,
    /// The HDF5 group that holds its datasets; the name of the view if not given.
    pub group: Option<String>,
    /// Structs become a group with a dataset for each field, not a compound type.
    pub split: bool,
    /// The chunk of its datasets, in elements; none: contiguous unless compressed.
    pub chunk: Option<Vec<u64>>,
    /// The gzip level of its datasets, 1 to 9.
    pub deflate: Option<u8>,
}
