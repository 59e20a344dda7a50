//! The DRepl language: a dataset, views of it, and the replicas that store them.
//!
//! A [`Definition`] is what a definition file means after every name was resolved, every constant
//! computed and every length checked. It says nothing about bytes; the crate `layout` places it.
//!
//! # Source
//!
//! Ionkov, Lang, Maltzahn, "DRepl: Optimizing Access to Application Data for Analysis and
//! Visualization", §II.
#![forbid(unsafe_code)]

pub mod definition;

pub use definition::Definition;
