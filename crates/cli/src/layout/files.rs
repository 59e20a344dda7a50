//! Definitions in files, and from standard input.

use std::io::{self, Read};

use dataset::definition::FileLoader;
use drepl::limits::SOURCE_SIZE_MAX;
use drepl::{LoadError, Loaded, Loader};

/// What standard input is called.
pub(super) const STANDARD_INPUT: &str = "-";

/// Reads definitions and what they include from the file system. What standard input includes is
/// relative to the working directory.
#[derive(Debug, Default)]
pub(super) struct Files;

impl Loader for Files {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        if path != STANDARD_INPUT || from.is_some() {
            return FileLoader.load(path, from);
        }
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(SOURCE_SIZE_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|source| LoadError::Io { source })?;
        if bytes.len() as u64 > SOURCE_SIZE_MAX {
            return Err(LoadError::TooLarge);
        }
        Ok(Loaded { name: path.to_owned(), bytes })
    }
}
