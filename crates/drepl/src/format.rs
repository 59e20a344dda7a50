//! A definition as it should look.
//!
//! Lines stay as they are parted, comments stay where they are. What changes is what nobody wants to think about: how
//! far a line is indented, blanks between tokens, `;` at the end of lines, more than one empty line.

use crate::diagnostic::{Diagnostics, Findings};
use crate::parse;
use crate::source::{Source, Sources};
use crate::token::{Kind, Lexer, Token, range};

const INDENT: &str = "    ";

/// Formats the text of a definition, or of a part that others include. Files that it includes are left alone.
///
/// Formatting twice changes nothing more, and what is meant stays the same.
///
/// # Errors
/// The text cannot be understood; [`Diagnostics::named`] says which one it is. What it says may be wrong otherwise.
pub fn format(text: &str) -> Result<String, Diagnostics> {
    let mut findings = Findings::default();
    parse::parse(text, 0, &mut findings);
    if findings.errors() > 0 {
        let mut sources = Sources::default();
        sources.add(Source { name: "definition".to_owned(), text: text.into() });
        return Err(findings.into_diagnostics(sources));
    }
    let tokens = tokens(text, &mut findings);
    let mut formatter =
        Formatter { text, out: String::with_capacity(text.len()), state: State::default() };
    let kept = without_needless(&tokens);
    for at in 0..kept.len() {
        formatter.write(&kept, at);
    }
    Ok(formatter.out)
}

/// A token and the lines on which it begins and ends.
#[derive(Debug, Clone, Copy)]
struct Placed {
    token: Token,
    line: usize,
    last_line: usize,
}

/// How many lines end between two tokens.
fn lines_between(before: Placed, after: Placed) -> usize {
    after.line - before.last_line
}

fn tokens(text: &str, findings: &mut Findings) -> Vec<Placed> {
    let newlines = |from: u32, to: u32| {
        text.as_bytes()[from as usize..to as usize].iter().filter(|&&byte| byte == b'\n').count()
    };
    let mut lexer = Lexer::new(text, 0);
    let (mut tokens, mut end, mut line) = (Vec::new(), 0, 0);
    loop {
        let token = lexer.next_with_comments(findings);
        line += newlines(end, token.span.start);
        let last_line = line + newlines(token.span.start, token.span.end);
        tokens.push(Placed { token, line, last_line });
        (end, line) = (token.span.end, last_line);
        if token.kind == Kind::End {
            return tokens;
        }
    }
}

/// All tokens but each `;` that ends what ends anyway.
fn without_needless(tokens: &[Placed]) -> Vec<Placed> {
    // What comes next behind each token that is neither a comment nor a `;`.
    let mut next = vec![None; tokens.len()];
    let mut found = None;
    for (at, placed) in tokens.iter().enumerate().rev() {
        next[at] = found;
        if !matches!(placed.token.kind, Kind::Comment | Kind::Semicolon) {
            found = Some(*placed);
        }
    }
    let mut before: Option<Placed> = None;
    let mut kept = Vec::with_capacity(tokens.len());
    for (placed, next) in tokens.iter().zip(next) {
        let ended = before.is_none_or(|before| {
            matches!(before.token.kind, Kind::OpenBrace | Kind::Semicolon)
                || lines_between(before, *placed) > 0
        });
        let ends = next.is_none_or(|next| {
            matches!(next.token.kind, Kind::CloseBrace | Kind::End)
                || lines_between(*placed, next) > 0
        });
        if placed.token.kind != Kind::Semicolon || !(ended || ends) {
            kept.push(*placed);
        }
        if placed.token.kind != Kind::Comment {
            before = Some(*placed);
        }
    }
    kept
}

/// Where in a definition a token stands.
#[derive(Debug, Default)]
struct State {
    /// Open braces.
    braces: usize,
    /// Open brackets and parentheses.
    brackets: usize,
    in_replica: bool,
    in_view: bool,
    /// Tokens of the declaration so far, comments not counted.
    position: usize,
    /// `=` of the declaration was passed.
    is_right_side: bool,
    /// The last token that is no comment asks for more.
    goes_on: bool,
    /// What `position` and `is_right_side` were outside of each open brace.
    outside: Vec<(usize, bool)>,
}

struct Formatter<'a> {
    text: &'a str,
    out: String,
    state: State,
}

impl Formatter<'_> {
    fn word(&self, token: Token) -> &str {
        &self.text[range(token.span)]
    }

    fn write(&mut self, tokens: &[Placed], at: usize) {
        let token = tokens[at].token;
        let before = at.checked_sub(1).map(|at| tokens[at]);
        let newlines = before.map_or(0, |before| lines_between(before, tokens[at]));
        let before = before.map(|before| before.token);
        if token.kind == Kind::End {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            return;
        }
        if newlines > 0 && self.state.brackets == 0 && !self.state.goes_on {
            self.begin_declaration();
        }
        self.open_or_close_before(token);
        if let Some(before) = before {
            if newlines > 0 {
                self.new_line(before, token, newlines);
            } else if self.is_parted(tokens, at, before) {
                self.out.push(' ');
            }
        }
        let text = self.text[range(token.span)].trim_end();
        self.out.push_str(text);
        self.after(token);
    }

    fn begin_declaration(&mut self) {
        self.state.position = 0;
        self.state.is_right_side = false;
    }

    fn open_or_close_before(&mut self, token: Token) {
        match token.kind {
            Kind::CloseBrace => {
                self.state.braces = self.state.braces.saturating_sub(1);
                let outside = self.state.outside.pop().unwrap_or_default();
                (self.state.position, self.state.is_right_side) = outside;
            }
            Kind::CloseBracket | Kind::CloseParen => {
                self.state.brackets = self.state.brackets.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn new_line(&mut self, before: Token, token: Token, newlines: usize) {
        let is_edge = before.kind == Kind::OpenBrace || token.kind == Kind::CloseBrace;
        self.out.push_str(if newlines > 1 && !is_edge { "\n\n" } else { "\n" });
        let closes = [Kind::OpenBrace, Kind::CloseBrace, Kind::CloseBracket, Kind::CloseParen];
        let is_within = self.state.position > 0 && !closes.contains(&token.kind);
        let is_continued = self.state.brackets > 0 || is_within;
        for _ in 0..self.state.braces + usize::from(is_continued) {
            self.out.push_str(INDENT);
        }
    }

    /// Whether a blank stands between two tokens of a line.
    fn is_parted(&self, tokens: &[Placed], at: usize, before: Token) -> bool {
        let token = tokens[at].token;
        match (before.kind, token.kind) {
            (Kind::Comment, _) | (_, Kind::Comment) => true,
            (Kind::OpenBrace, Kind::CloseBrace) => false,
            (Kind::OpenBracket | Kind::OpenParen | Kind::Dot, _) => false,
            (
                _,
                Kind::CloseBracket | Kind::CloseParen | Kind::Comma | Kind::Semicolon | Kind::Dot,
            ) => false,
            (Kind::Star | Kind::Slash | Kind::Percent | Kind::ShiftLeft | Kind::ShiftRight, _) => {
                false
            }
            (_, Kind::Star | Kind::Slash | Kind::Percent | Kind::ShiftLeft | Kind::ShiftRight) => {
                false
            }
            (Kind::Plus | Kind::Minus, _) => self.is_between(tokens, at - 1),
            (_, Kind::Plus | Kind::Minus) => !self.is_hyphen(tokens, at),
            (Kind::Word | Kind::CloseBracket, Kind::OpenBracket) => {
                self.is_parted_bracket(tokens, at, before)
            }
            (Kind::CloseBracket, Kind::Word) => {
                self.state.is_right_side
                    || self.state.in_replica
                    || self.word(token) == "record"
                    || (self.state.in_view && self.state.braces == 1)
            }
            _ => true,
        }
    }

    /// `data[i]`, but `var d [i]`.
    fn is_parted_bracket(&self, tokens: &[Placed], at: usize, before: Token) -> bool {
        if before.kind == Kind::CloseBracket || self.state.is_right_side {
            return false;
        }
        if !self.state.in_view {
            return true;
        }
        // The name of a variable or a field, or a word before a part. Else it is the base of a view type.
        let is_first = self.state.position <= 2;
        let is_field = self.state.braces > 1;
        let is_base = at >= 2 && tokens[at - 2].token.kind == Kind::CloseBracket;
        (is_first || is_field || self.word(before) == "record") && !is_base
    }

    /// Whether a sign stands between two operands; else it belongs to the one behind it.
    fn is_between(&self, tokens: &[Placed], at: usize) -> bool {
        if self.is_hyphen(tokens, at) {
            return false;
        }
        let Some(before) = at.checked_sub(1).map(|at| tokens[at].token) else { return false };
        match before.kind {
            Kind::Number | Kind::CloseParen | Kind::CloseBracket => true,
            Kind::Word => {
                let begins = ["header", "near", "at", "align", "pad", "deflate"];
                self.state.brackets > 0 || !begins.contains(&self.word(before))
            }
            _ => false,
        }
    }

    /// The hyphen of `read-only` and `on-close`.
    fn is_hyphen(&self, tokens: &[Placed], at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|at| tokens[at].token) else { return false };
        let Some(after) = tokens.get(at + 1).map(|after| after.token) else { return false };
        let Token { kind, span, .. } = tokens[at].token;
        kind == Kind::Minus
            && before.span.end == span.start
            && span.end == after.span.start
            && self.state.brackets == 0
            && !self.state.is_right_side
            && matches!((self.word(before), self.word(after)), ("read", "only") | ("on", "close"))
    }

    fn after(&mut self, token: Token) {
        let state = &mut self.state;
        if token.kind != Kind::Comment {
            state.goes_on = asks_for_more(token.kind);
        }
        match token.kind {
            Kind::Comment => return,
            Kind::OpenBrace => {
                state.outside.push((state.position + 1, state.is_right_side));
                state.braces += 1;
                self.begin_declaration();
                return;
            }
            Kind::OpenBracket | Kind::OpenParen => state.brackets += 1,
            Kind::Equals => state.is_right_side = true,
            Kind::Semicolon => return self.begin_declaration(),
            Kind::Word if state.braces == 0 && state.position == 0 => {
                let word = &self.text[range(token.span)];
                state.in_view = word == "view";
                state.in_replica = word == "replica";
            }
            _ => {}
        }
        self.state.position += 1;
    }
}

/// Whether nothing can end behind a token.
fn asks_for_more(kind: Kind) -> bool {
    match kind {
        Kind::Comma | Kind::Equals | Kind::Dot => true,
        Kind::Plus | Kind::Minus | Kind::Star | Kind::Slash | Kind::Percent => true,
        Kind::ShiftLeft | Kind::ShiftRight => true,
        Kind::Word | Kind::Number | Kind::Text | Kind::Comment => false,
        Kind::OpenBrace | Kind::CloseBrace | Kind::OpenBracket | Kind::CloseBracket => false,
        Kind::OpenParen | Kind::CloseParen | Kind::Semicolon => false,
        Kind::Strange | Kind::End => false,
    }
}
