//! Buckets of object stores (S3 and what is compatible with it, Google's, Azure's), and files of web servers, as a
//! [`Store`](store::Store).
//!
//! An object store keeps whole objects under keys. It has no directories, no rights, no way to change a part of an object,
//! and every request takes long. What of a file tree can be had from it is shown here, and the rest is refused with a number
//! for the program and a sentence for its user; `docs/OBJECTS.md` says which is which.
//!
//! The way of one read:
//!
//! 1. [`ObjectStore::open`] makes a client of the service with the credentials of its ecosystem ([`Place`]).
//! 2. A walk asks for the object of the whole key, and only when there is none for what is below it (`tree`).
//! 3. Opening keeps what is known of the object: its size and its version, the ETag (`node`, `open`).
//! 4. A read takes what is in the cache or on its way; for the rest, requests are planned by the sieve together with those
//!    of other readers; who reads in order is read ahead of, and for who reads anywhere in one region what lies between is
//!    fetched, too (`read`, `plan`, `sequence`, `near`, `cache`).
//! 5. Each request is for the version that was opened: when the object was replaced, the read is an error.
//!
//! A file that is written is gathered, sent in parts when it is large, and becomes an object when it is closed (`write`,
//! `window`).
//!
//! Under a log, a bucket is read as one reads a file tree whose files keep their identity (`under`, `lineage`), and its objects
//! are replaced by next versions, in parts of which the service copies what has not changed (`replacement`).
//!
//! The asynchronous runtime that the client needs stays within (`runtime`): whoever calls waits.
#![forbid(unsafe_code)]

mod bucket;
mod buckets;
mod cache;
mod directory;
mod error;
mod lineage;
mod marker;
mod memory;
mod near;
mod node;
mod open;
mod place;
mod plan;
mod read;
mod replacement;
mod runtime;
mod sequence;
mod tree;
mod under;
mod whole;
mod window;
mod write;

pub use bucket::Requests;
pub use buckets::Buckets;
pub use error::{OpenError, Tell};
pub use place::{Place, VARIABLES};
pub use plan::Cost;
pub use under::UnderLog;
pub use whole::{ObjectStore, Options};
