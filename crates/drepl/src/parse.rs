//! From tokens to what they say.
//!
//! A declaration that cannot be understood is told of, and the next one is looked at: [`Parser::members`] goes on where
//! a line begins at the same depth of braces.

use crate::ast::{Dataset, Include, Item, Name, Section};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::NESTING_MAX;
use crate::source::Span;
use crate::token::{Kind, Lexer, Token, range};
use crate::words;

mod dataset;
mod expression;
mod replica;
mod view;

/// What stands for a declaration that was not understood, after it was told why.
#[derive(Debug)]
struct Confused;

type Parsed<T> = Result<T, Confused>;

/// Reads one source.
#[derive(Debug)]
pub(crate) struct Parser<'a, 'f> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// What is looked at.
    token: Token,
    /// What comes behind it.
    next: Token,
    /// The place of what was taken last.
    last: Span,
    /// Braces that are open.
    depth: usize,
    /// Where the declaration begins that is being read.
    declaration: u32,
    /// Types within types that are being read.
    nesting: usize,
    findings: &'f mut Findings,
}

/// Reads all that a text says.
pub(crate) fn parse(text: &str, source: u32, findings: &mut Findings) -> Vec<Item> {
    let mut lexer = Lexer::new(text, source);
    let token = lexer.next(findings);
    let next = lexer.next(findings);
    let last = Span { source, ..Span::default() };
    let mut parser =
        Parser { text, lexer, token, next, last, depth: 0, declaration: 0, nesting: 0, findings };
    parser.file()
}

impl Parser<'_, '_> {
    fn file(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while self.token.kind != Kind::End {
            if self.take(Kind::Semicolon).is_some() {
                continue;
            }
            let start = self.begin();
            match self.item() {
                Ok(item) => items.push(item),
                Err(Confused) => self.skip_to_section(start),
            }
        }
        items
    }

    fn item(&mut self) -> Parsed<Item> {
        let section = match self.word() {
            Some("dataset") => Section::Dataset,
            Some("view") => Section::View,
            Some("replica") => Section::Replica,
            other => {
                let sections = ["dataset", "view", "replica"];
                let help = match other {
                    Some("const" | "type" | "var") => {
                        Some("constants, types and variables stand within `dataset { … }`".into())
                    }
                    Some(word) => words::nearest(word, sections).map(did_you_mean),
                    None => None,
                };
                return Err(self.unexpected("`dataset`, `view` or `replica`", help));
            }
        };
        let keyword = self.advance();
        let item = match section {
            _ if self.is_include() => {
                let path = self.text_name()?;
                Item::Include(Include { section, path })
            }
            Section::Dataset => {
                Item::Dataset(Dataset { keyword, members: self.dataset_members()? })
            }
            Section::View => Item::View(self.view(keyword)?),
            Section::Replica => Item::Replica(self.replica(keyword)?),
        };
        self.end_of_declaration()?;
        Ok(item)
    }

    /// A text with nothing behind it names a file; with flags or a body behind it, it is a name.
    fn is_include(&self) -> bool {
        self.token.kind == Kind::Text
            && match self.next.kind {
                Kind::End | Kind::Semicolon => true,
                Kind::OpenBrace => false,
                _ => self.next.begins_line,
            }
    }

    /// What stands between braces, one after the other. `closes` says which words, at the begin of a line, show that a
    /// brace is missing.
    fn members<T>(
        &mut self,
        what: &str,
        closes: &[&str],
        mut member: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<(Vec<T>, Span)> {
        let open = self.expect(Kind::OpenBrace, &format!("`{{` and the content of the {what}"))?;
        let depth = self.depth;
        let mut members = Vec::new();
        loop {
            if self.take(Kind::Semicolon).is_some() {
                continue;
            }
            if let Some(close) = self.take(Kind::CloseBrace) {
                return Ok((members, open.to(close)));
            }
            let is_next_section = self.token.begins_line
                && matches!(self.next.kind, Kind::Word | Kind::Text | Kind::OpenBrace)
                && self.word().is_some_and(|word| closes.contains(&word));
            if self.token.kind == Kind::End || is_next_section {
                let error =
                    Diagnostic::error(Code::Syntax, open, format!("this {what} is not closed"));
                let error = error.label("no `}` belongs to it");
                self.findings.add(error.related(self.token.span, "expected `}` before this"));
                // Nothing is known of the depth any more: what follows stands at the outermost level.
                self.depth = depth - 1;
                return Ok((members, open.to(self.last)));
            }
            let start = self.begin();
            let parsed = member(self).and_then(|parsed| {
                self.end_of_declaration()?;
                Ok(parsed)
            });
            match parsed {
                Ok(parsed) => members.push(parsed),
                Err(Confused) => self.skip_to_member(start, depth, closes),
            }
        }
    }

    /// Goes on where the next declaration of a body of this depth may begin, or at its closing brace. The declaration
    /// that was not understood began at `start`.
    fn skip_to_member(&mut self, start: u32, depth: usize, closes: &[&str]) {
        loop {
            let is_first = self.token.span.start == start;
            let is_closing = self.token.begins_line
                && self.next.kind == Kind::Word
                && self.word().is_some_and(|word| closes.contains(&word));
            let is_here = self.depth == depth
                && match self.token.kind {
                    Kind::Semicolon | Kind::CloseBrace => true,
                    _ => self.token.begins_line && !is_first && self.token.kind == Kind::Word,
                };
            if self.token.kind == Kind::End || is_here || is_closing {
                self.depth = depth;
                self.nesting = 0;
                return;
            }
            // A brace of the body itself must not be passed over, whatever was open within it.
            if self.depth <= depth && self.token.kind == Kind::CloseBrace {
                return;
            }
            self.advance();
        }
    }

    fn skip_to_section(&mut self, start: u32) {
        loop {
            let begins_section = self.token.begins_line
                && self.token.span.start != start
                && matches!(self.word(), Some("dataset" | "view" | "replica"));
            if self.token.kind == Kind::End || begins_section {
                (self.depth, self.nesting) = (0, 0);
                return;
            }
            self.advance();
        }
    }

    /// A declaration ends with its line, with `;`, or with what it stands in.
    fn end_of_declaration(&mut self) -> Parsed<()> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(self.unexpected("the end of the line, or `;`", None))
        }
    }

    fn is_at_end(&self) -> bool {
        let ends = [Kind::End, Kind::Semicolon, Kind::CloseBrace];
        self.token.begins_line || ends.contains(&self.token.kind)
    }

    // ---- tokens -----------------------------------------------------------------------------------

    fn advance(&mut self) -> Span {
        match self.token.kind {
            Kind::OpenBrace => self.depth += 1,
            Kind::CloseBrace => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.last = self.token.span;
        self.token = std::mem::replace(&mut self.next, self.lexer.next(self.findings));
        self.last
    }

    /// Remembers where a declaration begins.
    fn begin(&mut self) -> u32 {
        self.declaration = self.token.span.start;
        self.declaration
    }

    fn take(&mut self, kind: Kind) -> Option<Span> {
        (self.token.kind == kind).then(|| self.advance())
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parsed<Span> {
        match self.take(kind) {
            Some(span) => Ok(span),
            None => Err(self.unexpected(what, None)),
        }
    }

    fn text_of(&self, span: Span) -> &str {
        &self.text[range(span)]
    }

    /// The word that is looked at, if it is one.
    fn word(&self) -> Option<&str> {
        (self.token.kind == Kind::Word).then(|| self.text_of(self.token.span))
    }

    /// The word that is looked at, if it stands in the same line as what was before it.
    fn word_in_line(&self) -> Option<&str> {
        self.word().filter(|_| !self.token.begins_line)
    }

    /// Any word that may be a name. The first word of the next declaration is not taken for it.
    fn name(&mut self, of_what: &str) -> Parsed<Name> {
        let begins_next = self.token.begins_line
            && matches!(
                self.word(),
                Some("const" | "type" | "var" | "view" | "replica" | "dataset")
            );
        if self.token.kind == Kind::Word && !begins_next {
            let text = self.text_of(self.token.span).to_owned();
            return Ok(Name { text, span: self.advance() });
        }
        Err(self.unexpected(&format!("the name of {of_what}"), None))
    }

    /// A name, also as a text: `"points.raw"`.
    fn file_name(&mut self, of_what: &str) -> Parsed<Name> {
        if self.token.kind == Kind::Text { self.text_name() } else { self.name(of_what) }
    }

    /// The content of a text, in which `\"` and `\\` stand for `"` and `\`.
    fn text_name(&mut self) -> Parsed<Name> {
        let span = self.expect(Kind::Text, "a text between double quotes")?;
        let quoted = self.text_of(span);
        // One without an end was told of by the lexer.
        let inner = quoted.strip_prefix('"').unwrap_or(quoted);
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        let (mut text, mut escaped, mut strange) = (String::new(), false, None);
        for c in inner.chars() {
            match c {
                '\\' if !escaped => escaped = true,
                _ => {
                    if escaped && !matches!(c, '\\' | '"') {
                        strange = Some(c);
                    }
                    escaped = false;
                    text.push(c);
                }
            }
        }
        if let Some(c) = strange {
            let error = Diagnostic::error(Code::Token, span, format!("`\\{c}` means nothing"));
            self.findings.add(error.label("in this text").help("write `\\\\` for a backslash"));
        }
        Ok(Name { text, span })
    }

    // ---- faults -----------------------------------------------------------------------------------

    /// Tells that something else was expected. What is no token at all was told of before.
    fn unexpected(&mut self, expected: &str, help: Option<String>) -> Confused {
        let token = self.token;
        if token.kind == Kind::Strange {
            return Confused;
        }
        // What is missing at the end of a line is shown there, not in the next one.
        let is_behind = token.begins_line && token.span.start != self.declaration;
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            _ if is_behind => "the end of the line".to_owned(),
            _ => format!("`{}`", shown(self.text_of(token.span))),
        };
        let span = if is_behind { self.last.after() } else { token.span };
        let message = format!("expected {expected}, found {found}");
        let error = Diagnostic::error(Code::Syntax, span, message);
        self.findings.add(error.label(format!("expected {expected}")).maybe_help(help));
        Confused
    }

    /// Reads something that may contain itself.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= NESTING_MAX {
            let message = format!("this nests deeper than {NESTING_MAX}");
            let error = Diagnostic::error(Code::Limit, self.token.span, message);
            self.findings.add(
                error
                    .label("too deep")
                    .help("dimensions of one array stand in one pair of brackets: `[2, 3]`"),
            );
            return Err(Confused);
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting = self.nesting.saturating_sub(1);
        parsed
    }
}

pub(crate) fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// Text of a source as it can stand in a message.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(40) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
