//! Definitions in files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use drepl::limits::SOURCE_SIZE_MAX;
use drepl::{LoadError, Loaded, Loader};

/// What standard input is called.
pub(super) const STANDARD_INPUT: &str = "-";

/// Reads definitions and what they include from the file system.
#[derive(Debug, Default)]
pub(super) struct Files;

impl Loader for Files {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        let Some(from) = from else { return load(path) };
        let directory = Path::new(from).parent().filter(|_| from != STANDARD_INPUT);
        let path = directory.unwrap_or(Path::new("")).join(path);
        // What is joined of two texts is one.
        load(path.to_str().ok_or(LoadError::NotFound)?)
    }
}

fn load(path: &str) -> Result<Loaded, LoadError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => LoadError::NotFound,
        _ => LoadError::Io { source },
    };
    if path == STANDARD_INPUT {
        let bytes = read(&mut io::stdin().lock())?;
        return Ok(Loaded { name: path.to_owned(), bytes });
    }
    // Looked at before it is opened: opening a pipe waits for a writer.
    if !Path::new(path).metadata().map_err(failed)?.is_file() {
        return Err(LoadError::NotAFile);
    }
    let bytes = read(&mut File::open(path).map_err(failed)?)?;
    let name = name(Path::new(path)).to_str().map_or_else(|| path.to_owned(), str::to_owned);
    Ok(Loaded { name, bytes })
}

/// Reads all of a source, if it is not too large.
fn read(from: &mut dyn Read) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let read = from.take(SOURCE_SIZE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| LoadError::Io { source })?;
    if bytes.len() as u64 > SOURCE_SIZE_MAX { Err(LoadError::TooLarge) } else { Ok(bytes) }
}

/// One name for a file, by whatever path it was reached; relative where it is below the working directory.
fn name(path: &Path) -> PathBuf {
    let Ok(canonical) = path.canonicalize() else { return path.to_owned() };
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    match here.ok().and_then(|here| canonical.strip_prefix(here).map(Path::to_owned).ok()) {
        Some(relative) => relative,
        None => canonical,
    }
}
