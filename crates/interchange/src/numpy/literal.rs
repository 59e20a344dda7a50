//! Literals of Python: what `numpy.dtype.descr` prints and what the header of a .npy file holds.

use crate::error::{Error, Result};

/// Nested deeper than this nobody writes.
const DEPTH_MAX: usize = 64;

/// A literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Number(u64),
    Truth(bool),
    None,
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dictionary(Vec<(String, Literal)>),
}

/// Reads one literal and nothing after it.
pub(super) fn parse(text: &str) -> Result<Literal> {
    let mut reader = Reader { text, at: 0 };
    let literal = reader.literal(0)?;
    match reader.peek() {
        None => Ok(literal),
        Some(_) => Err(reader.expected("the end")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expected(&self, expected: &str) -> Error {
        let line = 1 + self.text[..self.at].matches('\n').count();
        let found: String = self.rest().chars().take(20).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("{found:?}") };
        Error::Syntax { line, expected: expected.to_owned(), found }
    }

    fn literal(&mut self, depth: usize) -> Result<Literal> {
        if depth > DEPTH_MAX {
            return Err(self.expected("brackets less deep"));
        }
        match self.peek() {
            Some('\'' | '"') => self.quoted().map(Literal::Text),
            Some(digit) if digit.is_ascii_digit() => self.number(),
            Some('(') => {
                self.at += 1;
                let mut comma = false;
                let items = self.items(')', depth, &mut comma)?;
                // Brackets around one thing, without a comma, only group.
                match <[Literal; 1]>::try_from(items) {
                    Ok([only]) if !comma => Ok(only),
                    Ok(one) => Ok(Literal::Tuple(one.into())),
                    Err(items) => Ok(Literal::Tuple(items)),
                }
            }
            Some('[') => {
                self.at += 1;
                self.items(']', depth, &mut false).map(Literal::List)
            }
            Some('{') => {
                self.at += 1;
                self.entries(depth)
            }
            Some(_) => self.word(),
            None => Err(self.expected("a dtype, such as '<f4' or [('a', '<f4')]")),
        }
    }

    fn items(&mut self, close: char, depth: usize, comma: &mut bool) -> Result<Vec<Literal>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.literal(depth + 1)?);
            let more = self.take(',');
            *comma |= more;
            if !more && self.peek() != Some(close) {
                return Err(self.expected(&format!("',' or '{close}'")));
            }
        }
        Ok(items)
    }

    fn entries(&mut self, depth: usize) -> Result<Literal> {
        let mut entries = Vec::new();
        while !self.take('}') {
            if !matches!(self.peek(), Some('\'' | '"')) {
                return Err(self.expected("a key in quotes"));
            }
            let key = self.quoted()?;
            if !self.take(':') {
                return Err(self.expected("':'"));
            }
            entries.push((key, self.literal(depth + 1)?));
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.expected("',' or '}'"));
            }
        }
        Ok(Literal::Dictionary(entries))
    }

    fn quoted(&mut self) -> Result<String> {
        let quote = self.rest().chars().next().unwrap_or('\'');
        let inner = &self.rest()[1..];
        match inner.find([quote, '\\', '\n']) {
            Some(length) if inner[length..].starts_with(quote) => {
                let text = inner[..length].to_owned();
                self.at += length + 2;
                Ok(text)
            }
            _ => Err(self.expected("a text that ends on this line, without backslashes")),
        }
    }

    fn number(&mut self) -> Result<Literal> {
        let digits =
            self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match self.rest()[..digits].parse() {
            Ok(number) => {
                self.at += digits;
                // Python 2 wrote 3L.
                let _ = self.rest().starts_with('L') && self.take('L');
                Ok(Literal::Number(number))
            }
            Err(_) => Err(self.expected("a number of at most 64 bits")),
        }
    }

    fn word(&mut self) -> Result<Literal> {
        for (word, literal) in [
            ("True", Literal::Truth(true)),
            ("False", Literal::Truth(false)),
            ("None", Literal::None),
        ] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(literal);
            }
        }
        Err(self.expected("a dtype, such as '<f4' or [('a', '<f4')]"))
    }
}
