//! Definitions from files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use drepl::limits::SOURCE_SIZE_MAX;
use drepl::{Compiled, Definition, Diagnostics, LoadError, Loaded, Loader};

use crate::error::{Error, Result};

/// Files of this machine; what they include is relative to the directory of who includes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileLoader;

impl Loader for FileLoader {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        let path = match from.and_then(|from| Path::new(from).parent()) {
            Some(directory) => directory.join(path),
            None => PathBuf::from(path),
        };
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => LoadError::NotFound,
            _ => LoadError::Io { source },
        };
        // A FIFO would wait for somebody to write it.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(LoadError::NotAFile);
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(failed)?;
        file.take(SOURCE_SIZE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > SOURCE_SIZE_MAX {
            return Err(LoadError::TooLarge);
        }
        // One file has one name, so that a file that includes itself is noticed.
        let name = path.canonicalize().map_err(failed)?;
        let name = name.strip_prefix(std::env::current_dir().unwrap_or_default()).unwrap_or(&name);
        Ok(Loaded { name: name.to_string_lossy().into_owned(), bytes })
    }
}

/// A definition as it would be if its file had another text.
struct Instead {
    text: String,
}

impl Loader for Instead {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        let loaded = FileLoader.load(path, from)?;
        match from {
            None => Ok(Loaded { bytes: self.text.clone().into_bytes(), ..loaded }),
            Some(_) => Ok(loaded),
        }
    }
}

/// The text of a definition's file alone.
pub(crate) fn text(path: &Path) -> Result<String> {
    let wrong = |why: String| Error::Definition { text: format!("{}: {why}", path.display()) };
    let name = path.to_str().ok_or_else(|| wrong("not UTF-8".to_owned()))?;
    let loaded = FileLoader.load(name, None).map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(loaded.bytes).map_err(|error| wrong(error.to_string()))
}

/// What the file of a definition would mean with this text.
pub(crate) fn compiled(path: &Path, text: String) -> Result<Compiled> {
    let wrong = |text| Error::Definition { text };
    let name = path.to_str().ok_or_else(|| wrong(format!("{}: not UTF-8", path.display())))?;
    drepl::compile(name, &mut Instead { text })
        .map_err(|diagnostics: Diagnostics| wrong(diagnostics.render(false)))
}

/// Reads a definition, and what it includes.
///
/// # Errors
/// [`Error::Definition`], with all that is wrong.
pub fn load(path: &Path) -> Result<Definition> {
    let wrong = |text| Error::Definition { text };
    let name = path.to_str().ok_or_else(|| wrong(format!("{}: not UTF-8", path.display())))?;
    drepl::compile(name, &mut FileLoader)
        .map(|compiled| compiled.definition)
        .map_err(|diagnostics: Diagnostics| wrong(diagnostics.render(false)))
}
