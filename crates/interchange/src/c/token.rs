//! Tokens of C, as far as declarations of structs need them.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// A token and the line it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Word(String),
    Number(u64),
    Sign(char),
}

/// A text cut into tokens, and the numbers that `#define` gave names. Comments and all other lines
/// of the preprocessor are left out.
pub(super) struct Text {
    pub(super) tokens: Vec<Token>,
    pub(super) constants: HashMap<String, u64>,
}

/// Cuts a text.
pub(super) fn cut(text: &str) -> Result<Text> {
    let bare = without_comments(text);
    let mut found = Text { tokens: Vec::new(), constants: HashMap::new() };
    let mut continued = false;
    for (index, line) in bare.lines().enumerate() {
        let directive = line.trim_start().strip_prefix('#');
        if continued || directive.is_some() {
            continued = line.ends_with('\\');
            let mut words = directive.unwrap_or_default().split_whitespace();
            if let (Some("define"), Some(name), Some(value), None) =
                (words.next(), words.next(), words.next(), words.next())
                && let Some(value) = number(value)
            {
                found.constants.insert(name.to_owned(), value);
            }
            continue;
        }
        cut_line(line, index + 1, &mut found.tokens)?;
    }
    Ok(found)
}

fn cut_line(line: &str, number_of_line: usize, tokens: &mut Vec<Token>) -> Result<()> {
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let kind = if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            match number(word) {
                Some(number) => Kind::Number(number),
                None if first.is_ascii_digit() => {
                    return Err(Error::Syntax {
                        line: number_of_line,
                        expected: "a number of at most 64 bits".to_owned(),
                        found: format!("{word:?}"),
                    });
                }
                None => Kind::Word(word.to_owned()),
            }
        } else {
            rest = &rest[first.len_utf8()..];
            Kind::Sign(first)
        };
        tokens.push(Token { line: number_of_line, kind });
        rest = rest.trim_start();
    }
    Ok(())
}

/// The value of a decimal, hexadecimal or octal literal.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(hexadecimal) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        return u64::from_str_radix(hexadecimal, 16).ok();
    }
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// The text with comments replaced by spaces; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("/") {
        bare.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let end = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            bare.push('/');
            rest = &rest[1..];
            continue;
        };
        bare.push(' ');
        bare.extend(rest[..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
    bare.push_str(rest);
    bare
}
