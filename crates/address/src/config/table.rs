//! TOML tables whose every complaint knows file, line and column; for other rooms that read TOML, too.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{AddressError, ConfigErrors, ConfigFault, nearest, parse_size_bytes};

/// The file that is read, and what is wrong with it so far.
struct Source<'a> {
    text: &'a str,
    file: &'a Path,
    /// With the byte where each was found.
    faults: RefCell<Vec<(usize, AddressError)>>,
}

impl Source<'_> {
    fn fault(&self, at: usize, fault: ConfigFault) {
        self.faults.borrow_mut().push((at, self.located(at, fault)));
    }

    fn located(&self, at: usize, fault: ConfigFault) -> AddressError {
        let (line, column) = self.position(at);
        AddressError::Config { file: self.file.to_path_buf(), line, column, fault }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_at = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_at..].chars().count() + 1)
    }
}

/// One table. What is asked for and is wrong is written down and not given, so that one reading finds every fault.
pub struct Table<'a> {
    source: &'a Source<'a>,
    at: usize,
    table: &'a DeTable<'a>,
}

/// One key of a table and its value.
pub struct Entry<'a> {
    source: &'a Source<'a>,
    /// Its name.
    pub key: &'a str,
    key_at: usize,
    value: &'a Spanned<DeValue<'a>>,
}

/// Parses `text` and hands its root table to `read`.
///
/// # Errors
/// All faults, in the order of the file.
pub fn with_root<T>(
    text: &str,
    file: &Path,
    read: impl FnOnce(&Table<'_>) -> T,
) -> Result<T, ConfigErrors> {
    let source = Source { text, file, faults: RefCell::default() };
    let (parsed, errors) = DeTable::parse_recoverable(text);
    let mut lines = BTreeSet::new();
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        // The rest of a broken line is guesswork.
        if lines.insert(text.get(..at).unwrap_or(text).matches('\n').count()) {
            source.fault(at, ConfigFault::Syntax { message: error.message().to_owned() });
        }
    }
    // What is left of a file with syntax errors is not what its author meant.
    let value = if source.faults.borrow().is_empty() {
        Some(read(&Table { source: &source, at: 0, table: parsed.get_ref() }))
    } else {
        None
    };
    let mut faults = source.faults.into_inner();
    faults.sort_by_key(|(at, _)| *at);
    match value.filter(|_| faults.is_empty()) {
        Some(value) => Ok(value),
        None => Err(ConfigErrors(faults.into_iter().map(|(_, error)| error).collect())),
    }
}

impl<'a> Table<'a> {
    /// Refuses every key but `known`.
    pub fn only(&self, known: &[&'static str]) {
        for entry in self.entries().filter(|entry| !known.contains(&entry.key)) {
            let nearest = nearest(entry.key, known);
            let fault = ConfigFault::UnknownKey { key: entry.key.to_owned(), nearest };
            self.source.fault(entry.key_at, fault);
        }
    }

    /// Every key, in alphabetical order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> {
        let source = self.source;
        self.table.iter().map(move |(key, value)| Entry {
            source,
            key: key.get_ref().as_ref(),
            key_at: key.span().start,
            value,
        })
    }

    /// What stands under `key`.
    pub fn get(&self, key: &str) -> Option<Entry<'a>> {
        self.entries().find(|entry| entry.key == key)
    }

    /// The table under `key`.
    pub fn table(&self, key: &str) -> Option<Table<'a>> {
        let entry = self.get(key)?;
        entry.must(entry.as_table(), "a table")
    }

    /// Yes or no.
    pub fn flag(&self, key: &str) -> Option<bool> {
        let entry = self.get(key)?;
        entry.must(entry.value.get_ref().as_bool(), "true or false")
    }

    /// A number of things.
    pub fn count(&self, key: &str, min: u32) -> Option<u32> {
        let entry = self.get(key)?;
        let number = entry.must(entry.integer(), "a whole number")?;
        // In range, hence below 2^32.
        entry.within(number, min.into(), u32::MAX.into()).map(|number| number as u32)
    }

    /// A number of bytes: an integer, or a text such as "4MiB".
    pub fn size(&self, key: &str, min: u64, max: u64) -> Option<u64> {
        let entry = self.get(key)?;
        let bytes = match (entry.integer(), entry.value.get_ref().as_str()) {
            (None, Some(text)) => Some(entry.address(parse_size_bytes(text))?),
            (number, _) => {
                let expected = "a size: a whole number of bytes or a text such as \"4MiB\"";
                entry.must(number, expected)?
            }
        };
        entry.within(bytes, min, max)
    }

    /// Line and column at which the table begins, from 1.
    pub fn position(&self) -> (usize, usize) {
        self.source.position(self.at)
    }

    /// Writes down what is wrong with the table as a whole.
    pub fn fault(&self, fault: ConfigFault) {
        self.source.fault(self.at, fault);
    }
}

impl<'a> Entry<'a> {
    /// The table that the value is, if it is one.
    pub fn as_table(&self) -> Option<Table<'a>> {
        let table = self.value.get_ref().as_table()?;
        Some(Table { source: self.source, at: self.key_at, table })
    }

    /// A text.
    pub fn text(&self, expected: &'static str) -> Option<&'a str> {
        self.must(self.value.get_ref().as_str(), expected)
    }

    /// A list of texts.
    pub fn texts(&self, expected: &'static str) -> Option<Vec<&'a str>> {
        let array = self.must(self.value.get_ref().as_array(), expected)?;
        array.iter().map(|item| self.must(item.get_ref().as_str(), expected)).collect()
    }

    /// A list of tables.
    pub fn tables(&self, expected: &'static str) -> Option<Vec<Table<'a>>> {
        let array = self.must(self.value.get_ref().as_array(), expected)?;
        let tables = array.iter().map(|item| {
            let table = self.must(item.get_ref().as_table(), expected)?;
            Some(Table { source: self.source, at: item.span().start, table })
        });
        tables.collect()
    }

    /// Line and column of the value, from 1.
    pub fn position(&self) -> (usize, usize) {
        self.source.position(self.value.span().start)
    }

    /// Writes down that `value` is none of `choices`.
    pub fn no_choice(&self, value: &str, choices: &str) {
        let (key, value) = (self.key.to_owned(), value.to_owned());
        self.fault(ConfigFault::Choice { key, value, choices: choices.to_owned() });
    }

    /// None if this is no integer; inside, none if it is negative or too great.
    fn integer(&self) -> Option<Option<u64>> {
        let integer = self.value.get_ref().as_integer()?;
        Some(u64::from_str_radix(integer.as_str().trim_start_matches('+'), integer.radix()).ok())
    }

    /// What the value is, if it is of the kind expected.
    fn must<T>(&self, value: Option<T>, expected: &'static str) -> Option<T> {
        if value.is_none() {
            let found = self.value.get_ref().type_str();
            self.fault(ConfigFault::Kind { key: self.key.to_owned(), expected, found });
        }
        value
    }

    /// The number, if it is in range. None was beyond every range.
    fn within(&self, number: Option<u64>, min: u64, max: u64) -> Option<u64> {
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.fault(ConfigFault::Range { key: self.key.to_owned(), min, max });
        }
        number
    }

    /// Writes down what is wrong with the value.
    pub fn fault(&self, fault: ConfigFault) {
        self.source.fault(self.value.span().start, fault);
    }

    /// What an address in this entry means, if it means anything.
    pub fn address<T>(&self, parsed: Result<T, AddressError>) -> Option<T> {
        parsed.map_err(|error| self.fault(ConfigFault::Address(Box::new(error)))).ok()
    }
}
