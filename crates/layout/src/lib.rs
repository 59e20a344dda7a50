//! Where every element of a view lies, and how bytes go from one view to another.
#![forbid(unsafe_code)]
