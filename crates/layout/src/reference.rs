//! What a definition means, byte by byte: an interpreter that walks every element of every array on
//! its own and knows nothing of leaves, slabs or strides. Random definitions are read and written
//! through both.

mod definitions;
mod interpreter;
mod language;
mod properties;
