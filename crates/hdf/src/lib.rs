//! HDF5 files as a place for the bytes of views.
//!
//! A [`Schema`] lists datasets and the byte at which each begins in a row of bytes: the row is what
//! a raw file with the same content would hold. An [`HdfFile`] is read and written by offsets into
//! that row. A dataset that is stored contiguously lies in one piece of the HDF5 file; its bytes
//! are read and written there with pread(2) and pwrite(2), past the library, which holds one lock
//! for the whole process. A chunked one goes through the library.
//!
//! The way of one read: [`HdfFile::read_at`] finds the datasets that overlap the range, gives zeros
//! for what lies between them, and for each of them reads from the file (contiguous) or asks the
//! library for the boxes of elements that cover the range (chunked).
//!
//! # Source
//!
//! HDF5 1.14 reference manual, H5D, H5T; "HDF5 File Format Specification", §IV.A.2.i (layout).

mod contents;
mod element;
mod error;
mod file;
mod library;
mod schema;
mod slab;

pub use element::{Element, Member};
pub use error::{Error, Result};
pub use file::HdfFile;
pub use schema::{Dataset, Schema, Storage};
