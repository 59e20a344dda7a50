//! What the hooks do, in safe terms.

pub(crate) mod batch;
pub(crate) mod data;
pub(crate) mod descriptor;
pub(crate) mod environment;
pub(crate) mod memory;
pub(crate) mod metadata;
pub(crate) mod namespace;
pub(crate) mod open;
pub(crate) mod process;
pub(crate) mod readiness;
