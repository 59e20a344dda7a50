//! Compiling texts.

use drepl::{Compiled, Definition, Diagnostics, MemoryLoader};

pub(crate) fn compile(text: &str) -> Result<Compiled, Diagnostics> {
    drepl::compile("x.drepl", &mut MemoryLoader::new("x.drepl", text))
}

/// Asserts that a text means something.
#[track_caller]
pub(crate) fn right(text: &str) -> Definition {
    match compile(text) {
        Ok(compiled) => compiled.definition,
        Err(wrong) => panic!("{}", wrong.render(false)),
    }
}
