//! Where every element of a view lies, and how bytes go from one view to another.
//!
//! A definition ([`drepl::Definition`]) says what a dataset consists of and what each view shows of
//! it. This room turns that into offsets and copies. It is pure: it reads no file. Nothing in it
//! grows with the arrays: a view of a terabyte and one of a kilobyte take the same memory and time,
//! if they have as many fields.
//!
//! The way of one read, of a view that no replica stores:
//!
//! 1. [`Layout::new`] numbers the *atoms* of the dataset: what is copied as one number or as one run
//!    of characters, counted once for all elements of the arrays around it.
//! 2. [`Layout::view`] and [`Layout::replica`] place a view and the replicas: for each atom in them
//!    a *leaf*, which along each dimension of the dataset's arrays has a first index, a step, a
//!    count and a stride in bytes. Permuted dimensions, slices, row-minor order and structs are all
//!    the same then. Where lengths are stored in variables, [`Lengths`] tells them.
//! 3. [`Conversion::read`] intersects the leaves of the view with those of the replicas, by the
//!    arithmetic of progressions, chooses for each variable who serves it, and joins what lies
//!    together: an array of structs that is the same on both sides becomes one run of bytes.
//!    [`Conversion::served`] explains it.
//! 4. For each read, [`Conversion::clip`] cuts that to a range of bytes, down to parts of numbers.
//!    It gives a few [`Slab`]s, as many as there are dimensions, not elements.
//! 5. [`Slab::origin`] and [`Slab::far_span`] say which bytes of which file of which replica are
//!    needed; [`Slab::split`] cuts where that would be more than a buffer holds. Somebody gets them,
//!    and [`Slab::read`] moves them to their places, by the loops of the crate `strided`.
//!
//! Where the files are in memory, [`Conversion::read_from`] does steps 4 and 5 in one pass over them
//! (`together`).
//!
//! The way of one write: [`Conversion::write`] of the view and each replica, [`Conversion::clip`] of
//! the range that is written, and [`Slab::write`] into the bytes of the replica's file. Slabs must
//! be carried out in their order: where a view shows an element twice, the later one counts. Between
//! the bytes that a slab writes lie others, if [`Slab::is_dense`] says no: a buffer has to be read
//! first.
//!
//! When a replica is made, [`Conversion::blanks`] gives what no variable writes (headers, padding,
//! Fortran markers); when it was lost, [`Conversion::read`] with its placement as the target gives
//! how it comes back from the others, file by file ([`Conversion::clip_file`]).
//!
//! ```
//! use drepl::definition::*;
//! use layout::{Conversion, Layout, Lengths};
//!
//! // var data [4]struct { a, b int16 }, as it is, and every second b.
//! let number = |name: &str| Field { name: name.into(), kind: Type::Scalar(Scalar::Int16) };
//! let element = Type::Struct([number("a"), number("b")].into());
//! let lengths = vec![Length::Fixed(4)];
//! let data = Variable { name: "data".into(), kind: Type::Array(Array { lengths, element }.into()) };
//! let view = |name: &str, part| View {
//!     name: name.into(),
//!     read_only: false,
//!     order: Order::RowMajor,
//!     byte_order: ByteOrder::Little,
//!     packed: false,
//!     header: 0,
//!     variables: vec![ViewVariable {
//!         name: "data".into(),
//!         source: 0,
//!         part,
//!         placing: Placing::default(),
//!         record: None,
//!     }],
//! };
//! let part = Part::Slice(Slice {
//!     lengths: vec![Length::Fixed(2)],
//!     indexes: vec![Index::Running { dimension: 0, step: 2, start: 0 }],
//!     element: Box::new(Part::Member { field: 1, part: Box::new(Part::Whole) }),
//! });
//! let definition = Definition {
//!     variables: vec![data],
//!     views: vec![view("all", Part::Whole), view("some", part)],
//!     replicas: vec![],
//! };
//!
//! let layout = Layout::new(&definition)?;
//! let all = layout.view(0, &Lengths::new())?;
//! let some = layout.view(1, &Lengths::new())?;
//! let stored: Vec<u8> = (0..all.size() as u8).collect();
//! let mut wanted = vec![0; 3];
//! for slab in Conversion::read(&some, &[&all])?.clip(1..4) {
//!     slab.read(&stored, 0, &mut wanted, 1);
//! }
//! assert_eq!(wanted, [3, 10, 11]);
//! # Ok::<(), layout::Error>(())
//! ```
//!
//! # Source
//! Ionkov, Lang, Maltzahn, "DRepl: Optimizing Access to Application Data for Analysis and
//! Visualization", §III.
#![forbid(unsafe_code)]

mod atom;
mod clip;
mod conversion;
mod error;
mod kernels;
mod leaf;
mod lengths;
mod placement;
#[cfg(test)]
mod reference;
mod slab;
mod together;
mod window;

pub use atom::{DEPTH_MAX, FIELDS_MAX};
pub use conversion::{Conversion, Served};
pub use error::{Error, Result};
pub use lengths::Lengths;
pub use placement::{Layout, Placed, Placement, SEAMS_MAX};
pub use slab::{Dim, Field, Origin, Slab};
pub use together::together;
