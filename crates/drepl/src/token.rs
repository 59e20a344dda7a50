//! From text to tokens.

use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::source::Span;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, or a word of the language.
    Word,
    /// Digits; its value is looked at when it is used.
    Number,
    /// `"…"`.
    Text,
    /// `//`, `#` or `/* */`.
    Comment,
    /// `{`.
    OpenBrace,
    /// `}`.
    CloseBrace,
    /// `[`.
    OpenBracket,
    /// `]`.
    CloseBracket,
    /// `(`.
    OpenParen,
    /// `)`.
    CloseParen,
    /// `,`.
    Comma,
    /// `;`.
    Semicolon,
    /// `.`.
    Dot,
    /// `=`.
    Equals,
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `*`.
    Star,
    /// `/`.
    Slash,
    /// `%`.
    Percent,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// What belongs to no token, which was told.
    Strange,
    /// Behind the last one.
    End,
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// It begins a line: a declaration may have ended before it.
    pub(crate) begins_line: bool,
}

/// Cuts a text into tokens.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    source: u32,
    at: usize,
    begins_line: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, source: u32) -> Self {
        // A byte order mark says nothing in UTF-8.
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, source, at, begins_line: true }
    }

    /// The next token that is no comment.
    pub(crate) fn next(&mut self, findings: &mut Findings) -> Token {
        let mut begins_line = false;
        loop {
            let token = self.next_with_comments(findings);
            begins_line |= token.begins_line;
            if token.kind != Kind::Comment {
                return Token { begins_line, ..token };
            }
            begins_line |= self.text[range(token.span)].contains('\n');
        }
    }

    /// The next token. What belongs to none is told.
    pub(crate) fn next_with_comments(&mut self, findings: &mut Findings) -> Token {
        self.skip_blanks();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else {
            return self.token(Kind::End, start);
        };
        let kind = self.scan(first, findings).unwrap_or_else(|| {
            self.skip_strange(start, findings);
            Kind::Strange
        });
        self.token(kind, start)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn token(&mut self, kind: Kind, start: usize) -> Token {
        let begins_line = std::mem::replace(&mut self.begins_line, false);
        Token { kind, span: self.span(start), begins_line }
    }

    fn span(&self, start: usize) -> Span {
        // Sources are limited to far less than 4 GiB.
        Span { source: self.source, start: start as u32, end: self.at as u32 }
    }

    fn skip_blanks(&mut self) {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start_matches(blank).len();
        self.begins_line |= rest[..blanks].contains('\n');
        self.at += blanks;
    }

    /// Passes over one token, if there is one.
    fn scan(&mut self, first: char, findings: &mut Findings) -> Option<Kind> {
        let rest = self.rest();
        let (kind, len) = match first {
            '{' => (Kind::OpenBrace, 1),
            '}' => (Kind::CloseBrace, 1),
            '[' => (Kind::OpenBracket, 1),
            ']' => (Kind::CloseBracket, 1),
            '(' => (Kind::OpenParen, 1),
            ')' => (Kind::CloseParen, 1),
            ',' => (Kind::Comma, 1),
            ';' => (Kind::Semicolon, 1),
            '.' => (Kind::Dot, 1),
            '=' => (Kind::Equals, 1),
            '+' => (Kind::Plus, 1),
            '-' => (Kind::Minus, 1),
            '*' => (Kind::Star, 1),
            '%' => (Kind::Percent, 1),
            '<' if rest.starts_with("<<") => (Kind::ShiftLeft, 2),
            '>' if rest.starts_with(">>") => (Kind::ShiftRight, 2),
            '#' => (Kind::Comment, line_len(rest)),
            '/' if rest.starts_with("//") => (Kind::Comment, line_len(rest)),
            '/' if rest.starts_with("/*") => (Kind::Comment, self.block_len(findings)),
            '/' => (Kind::Slash, 1),
            '"' => self.scan_text(findings),
            c if begins_word(c) => (Kind::Word, word_len(rest)),
            // Letters in a number are told of when its value is taken.
            c if c.is_ascii_digit() => (Kind::Number, word_len(rest)),
            _ => return None,
        };
        self.at += len;
        Some(kind)
    }

    fn block_len(&self, findings: &mut Findings) -> usize {
        let rest = self.rest();
        if let Some(end) = rest[2..].find("*/") {
            return 2 + end + 2;
        }
        let start = self.at as u32;
        let span = Span { source: self.source, start, end: start + 2 };
        findings.add(
            Diagnostic::error(Code::Token, span, "this comment has no end")
                .label("begins here")
                .help("end it with `*/`"),
        );
        rest.len()
    }

    /// A text with its quotes. It ends with its line if it has no second quote.
    fn scan_text(&self, findings: &mut Findings) -> (Kind, usize) {
        let rest = self.rest();
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return (Kind::Text, at + 1),
                _ => {}
            }
        }
        let len = line_len(rest);
        let start = self.at as u32;
        let span = Span { source: self.source, start, end: start + len as u32 };
        findings.add(
            Diagnostic::error(Code::Token, span, "this text has no end")
                .label("begins here")
                .help("end it with `\"` in the same line"),
        );
        (Kind::Strange, len)
    }

    fn skip_strange(&mut self, start: usize, findings: &mut Findings) {
        let strange = |c: char| !(c.is_whitespace() || c.is_ascii_graphic() || begins_word(c));
        let rest = self.rest();
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let more = rest[first..].find(|c| !strange(c)).unwrap_or(rest.len() - first);
        self.at += first + more;
        let what = &self.text[start..self.at];
        let shown: String = what.chars().take(8).collect();
        let is_plain = !shown.contains(|c: char| c.is_control() || c.is_whitespace());
        let shown = if is_plain { shown } else { shown.escape_default().to_string() };
        let message = format!("`{shown}` is not part of the language");
        let help = match what {
            "&" | "|" | "^" | "!" | "~" | "<" | ">" => {
                Some("expressions have + - * / % << >> and parentheses".to_owned())
            }
            "'" => Some("texts stand between double quotes".to_owned()),
            ":" => Some("a name and its type stand beside each other: `var n int32`".to_owned()),
            _ => None,
        };
        let error = Diagnostic::error(Code::Token, self.span(start), message);
        findings.add(error.label("not expected anywhere").maybe_help(help));
    }
}

/// The bytes of a span in its text.
pub(crate) fn range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}

/// Up to the end of the line, without a carriage return.
fn line_len(rest: &str) -> usize {
    let line = rest.split('\n').next().unwrap_or_default();
    line.trim_end_matches('\r').len()
}

fn begins_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn word_len(rest: &str) -> usize {
    rest.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(rest.len())
}

/// The value of a number: decimal, or hexadecimal, octal and binary with `0x`, `0o` and `0b`; `_`
/// may part digits.
pub(crate) fn number(text: &str) -> Result<i128, NumberFault> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'0'..=b'9' | b'_', ..] => return Err(NumberFault::LeadingZero),
        _ => (&*lower, 10),
    };
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(NumberFault::NoNumber);
    }
    let value = u64::from_str_radix(&digits, radix).map_err(|_| NumberFault::TooLarge)?;
    Ok(i128::from(value))
}

/// Why digits are no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    /// `007`, which is octal in C and decimal elsewhere.
    LeadingZero,
    /// `0xg`, `12a`.
    NoNumber,
    /// More than 64 bits.
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let (mut lexer, mut findings) = (Lexer::new(text, 0), Findings::default());
        let mut kinds = Vec::new();
        loop {
            match lexer.next(&mut findings).kind {
                Kind::End => break,
                kind => kinds.push(kind),
            }
        }
        kinds
    }

    #[test]
    fn comments_of_three_styles_are_none_of_the_parsers_business() {
        use Kind::{Number, Slash, Word};
        assert_eq!(kinds("a // b\n/* c\n */ d # e\n1 / 2"), [Word, Word, Number, Slash, Number]);
    }

    #[test]
    fn a_line_within_a_comment_ends_a_declaration_too() {
        let (mut lexer, mut findings) =
            (Lexer::new("a /* \n */ b /* */ c", 0), Findings::default());
        let begins = [(); 3].map(|()| lexer.next(&mut findings).begins_line);
        assert_eq!(begins, [true, true, false]);
    }

    #[test]
    fn numbers_have_four_radixes() {
        let values = ["0", "1_000", "0x1F", "0o17", "0b101"].map(|text| number(text).ok());
        assert_eq!(values, [0, 1000, 31, 15, 5].map(Some));
        assert_eq!(number("010"), Err(NumberFault::LeadingZero));
        assert_eq!(number("12a"), Err(NumberFault::NoNumber));
        assert_eq!(number("0x"), Err(NumberFault::NoNumber));
        assert_eq!(number("99999999999999999999"), Err(NumberFault::TooLarge));
    }
}
