//! Source texts, places in them, and where they come from.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::limits::SOURCE_SIZE_MAX;

/// A range of bytes of one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Which source; see [`Sources::get`].
    pub source: u32,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// From the begin of this to the end of another of the same source.
    pub(crate) fn to(self, last: Span) -> Span {
        Span { end: last.end.max(self.end), ..self }
    }

    /// The empty place behind it.
    pub(crate) fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// One text of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What diagnostics call it, and what tells it from others: its path.
    pub name: String,
    /// What it says.
    pub text: Arc<str>,
}

/// All texts that a definition is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    list: Vec<Source>,
}

/// A place as people count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position<'a> {
    /// The name of the source.
    pub name: &'a str,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Sources {
    pub(crate) fn add(&mut self, source: Source) -> u32 {
        self.list.push(source);
        u32::try_from(self.list.len() - 1).expect("includes are limited")
    }

    /// Gives the first source a name.
    pub(crate) fn rename(&mut self, name: &str) {
        if let Some(first) = self.list.first_mut() {
            name.clone_into(&mut first.name);
        }
    }

    /// The source of a span.
    pub fn get(&self, source: u32) -> Option<&Source> {
        self.list.get(source as usize)
    }

    /// All of them, the first one being what was compiled and the others what it includes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Source> {
        self.list.iter()
    }

    /// Where a span begins.
    pub fn position(&self, span: Span) -> Option<Position<'_>> {
        let source = self.get(span.source)?;
        let before = source.text.get(..span.start as usize)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some(Position {
            name: &source.name,
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        })
    }
}

/// A file as a [`Loader`] gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What it is called. Two names of one file must be given as one, or a cycle of includes is
    /// found late.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Gives the content of files, so that this crate need not read any.
pub trait Loader {
    /// Reads a file. A relative `path` that the file `from` includes is relative to its directory.
    ///
    /// # Errors
    /// The file cannot be read or is larger than [`SOURCE_SIZE_MAX`].
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError>;
}

/// Why a source is not at hand.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The operating system says so.
    #[error("cannot read it")]
    Io {
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// It is larger than [`SOURCE_SIZE_MAX`].
    #[error("it is larger than {} MiB, the most that is taken for a definition", SOURCE_SIZE_MAX >> 20)]
    TooLarge,
    /// There is no file of that name.
    #[error("there is no such file")]
    NotFound,
    /// It is a directory, a device or the like.
    #[error("it is no regular file")]
    NotAFile,
}

/// Sources in memory; a path leads from the directory of the including file to another.
#[derive(Debug, Clone, Default)]
pub struct MemoryLoader {
    /// The files by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl MemoryLoader {
    /// One file.
    pub fn new(name: &str, text: &str) -> Self {
        Self::default().with(name, text)
    }

    /// One file more.
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.files.insert(name.to_owned(), text.as_bytes().to_vec());
        self
    }
}

impl Loader for MemoryLoader {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        let name = match from.and_then(|from| from.rsplit_once('/')) {
            Some((directory, _)) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.to_owned(),
        };
        let bytes = self.files.get(&name).ok_or(LoadError::NotFound)?.clone();
        Ok(Loaded { name, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let mut sources = Sources::default();
        sources.add(Source { name: "x".into(), text: "a\nµb\n".into() });
        let at = |start| {
            let found = sources.position(Span { source: 0, start, end: start }).unwrap();
            (found.line, found.column)
        };
        assert_eq!([at(0), at(2), at(4), at(6)], [(1, 1), (2, 1), (2, 2), (3, 1)]);
        assert_eq!(sources.position(Span { source: 1, start: 0, end: 0 }), None);
    }
}
