//! TOML tables whose every complaint knows file, line and column.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{AddressError, ConfigFault, nearest, parse_size_bytes};

/// The file that is read, for messages.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    file: &'a Path,
}

impl Source<'_> {
    fn fault(&self, at: usize, fault: ConfigFault) -> AddressError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_at = before.rfind('\n').map_or(0, |newline| newline + 1);
        AddressError::Config {
            file: self.file.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_at..].chars().count() + 1,
            fault,
        }
    }
}

/// One table.
pub(super) struct Table<'a> {
    source: Source<'a>,
    at: usize,
    table: &'a DeTable<'a>,
}

/// One key of a table and its value.
pub(super) struct Entry<'a> {
    source: Source<'a>,
    pub(super) key: &'a str,
    key_at: usize,
    value: &'a Spanned<DeValue<'a>>,
}

/// Parses `text` and hands its root table to `read`.
pub(super) fn with_root<T>(
    text: &str,
    file: &Path,
    read: impl FnOnce(&Table<'_>) -> Result<T, AddressError>,
) -> Result<T, AddressError> {
    let source = Source { text, file };
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.fault(at, ConfigFault::Syntax { message: error.message().to_owned() })
    })?;
    read(&Table { source, at: 0, table: parsed.get_ref() })
}

impl<'a> Table<'a> {
    /// Refuses every key but `known`.
    pub(super) fn only(&self, known: &[&'static str]) -> Result<(), AddressError> {
        // The map is ordered by key; complain about the one that comes first in the file.
        let unknown = self
            .entries()
            .filter(|entry| !known.contains(&entry.key))
            .min_by_key(|entry| entry.key_at);
        match unknown {
            Some(entry) => {
                let fault = ConfigFault::UnknownKey {
                    key: entry.key.to_owned(),
                    nearest: nearest(entry.key, known),
                };
                Err(self.source.fault(entry.key_at, fault))
            }
            None => Ok(()),
        }
    }

    /// Every key, in alphabetical order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let source = self.source;
        self.table.iter().map(move |(key, value)| Entry {
            source,
            key: key.get_ref().as_ref(),
            key_at: key.span().start,
            value,
        })
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<'a>> {
        self.entries().find(|entry| entry.key == key)
    }

    /// The table under `key`.
    pub(super) fn table(&self, key: &str) -> Result<Option<Table<'a>>, AddressError> {
        let Some(entry) = self.get(key) else {
            return Ok(None);
        };
        entry.as_table().map(Some).ok_or_else(|| entry.kind("a table"))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, AddressError> {
        let Some(entry) = self.get(key) else {
            return Ok(None);
        };
        entry.value.get_ref().as_bool().map(Some).ok_or_else(|| entry.kind("true or false"))
    }

    /// A number of things.
    pub(super) fn count(&self, key: &str, min: u32) -> Result<Option<u32>, AddressError> {
        let Some(entry) = self.get(key) else {
            return Ok(None);
        };
        let number = entry.integer().ok_or_else(|| entry.kind("a whole number"))?;
        let range = || {
            entry.fault(ConfigFault::Range {
                key: key.to_owned(),
                min: min.into(),
                max: u32::MAX.into(),
            })
        };
        number.and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= min).map(Some).ok_or_else(range)
    }

    /// A number of bytes: an integer, or a text such as "4MiB".
    pub(super) fn size(&self, key: &str, min: u64, max: u64) -> Result<Option<u64>, AddressError> {
        let Some(entry) = self.get(key) else {
            return Ok(None);
        };
        let bytes = match (entry.integer(), entry.value.get_ref().as_str()) {
            (Some(number), _) => number,
            (None, Some(text)) => {
                Some(parse_size_bytes(text).map_err(|error| entry.address(error))?)
            }
            (None, None) => {
                return Err(
                    entry.kind("a size: a whole number of bytes or a text such as \"4MiB\"")
                );
            }
        };
        let range = || entry.fault(ConfigFault::Range { key: key.to_owned(), min, max });
        bytes.filter(|bytes| (min..=max).contains(bytes)).map(Some).ok_or_else(range)
    }

    pub(super) fn fault(&self, fault: ConfigFault) -> AddressError {
        self.source.fault(self.at, fault)
    }
}

impl<'a> Entry<'a> {
    pub(super) fn as_table(&self) -> Option<Table<'a>> {
        let table = self.value.get_ref().as_table()?;
        Some(Table { source: self.source, at: self.key_at, table })
    }

    pub(super) fn text(&self, expected: &'static str) -> Result<&'a str, AddressError> {
        self.value.get_ref().as_str().ok_or_else(|| self.kind(expected))
    }

    pub(super) fn texts(&self, expected: &'static str) -> Result<Vec<&'a str>, AddressError> {
        let array = self.value.get_ref().as_array().ok_or_else(|| self.kind(expected))?;
        array
            .iter()
            .map(|item| item.get_ref().as_str().ok_or_else(|| self.kind(expected)))
            .collect()
    }

    /// None if this is no integer; inside, none if it is negative or too great.
    fn integer(&self) -> Option<Option<u64>> {
        let integer = self.value.get_ref().as_integer()?;
        Some(u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()).ok())
    }

    fn kind(&self, expected: &'static str) -> AddressError {
        let found = self.value.get_ref().type_str();
        self.fault(ConfigFault::Kind { key: self.key.to_owned(), expected, found })
    }

    /// A complaint about the value.
    pub(super) fn fault(&self, fault: ConfigFault) -> AddressError {
        self.source.fault(self.value.span().start, fault)
    }

    /// A complaint about an address in this entry.
    pub(super) fn address(&self, error: AddressError) -> AddressError {
        self.fault(ConfigFault::Address(Box::new(error)))
    }
}
