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
    let mut lexer = Lexer::new(text, 0);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_with_comments(&mut findings);
        tokens.push(token);
        if token.kind == Kind::End {
            break;
        }
    }
    let mut formatter =
        Formatter { text, out: String::with_capacity(text.len()), state: State::default() };
    let kept = (0..tokens.len()).filter(|&at| !formatter.is_needless(&tokens, at));
    let kept: Vec<Token> = kept.map(|at| tokens[at]).collect();
    for at in 0..kept.len() {
        formatter.write(&kept, at);
    }
    Ok(formatter.out)
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

    fn between(&self, before: Token, token: Token) -> usize {
        let text = &self.text[before.span.end as usize..token.span.start as usize];
        text.bytes().filter(|&byte| byte == b'\n').count()
    }

    /// A `;` that ends what ends anyway.
    fn is_needless(&self, tokens: &[Token], at: usize) -> bool {
        if tokens[at].kind != Kind::Semicolon {
            return false;
        }
        let is_comment = |token: &&Token| token.kind == Kind::Comment;
        let before = tokens[..at].iter().rev().find(|token| !is_comment(token));
        let ends = match before {
            None => true,
            Some(before) if matches!(before.kind, Kind::OpenBrace | Kind::Semicolon) => true,
            Some(before) => self.between(*before, tokens[at]) > 0,
        };
        let after = tokens[at + 1..]
            .iter()
            .find(|token| !is_comment(token) && token.kind != Kind::Semicolon);
        ends || after.is_none_or(|after| {
            matches!(after.kind, Kind::CloseBrace | Kind::End)
                || self.between(tokens[at], *after) > 0
        })
    }

    fn write(&mut self, tokens: &[Token], at: usize) {
        let token = tokens[at];
        let before = at.checked_sub(1).map(|at| tokens[at]);
        let newlines = before.map_or(0, |before| self.between(before, token));
        if token.kind == Kind::End {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            return;
        }
        if newlines > 0 && self.state.brackets == 0 && !self.is_continued(tokens, at) {
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

    /// Whether what is before a token asks for more.
    fn is_continued(&self, tokens: &[Token], at: usize) -> bool {
        let before = tokens[..at].iter().rev().find(|token| token.kind != Kind::Comment);
        let goes_on = [Kind::Comma, Kind::Equals, Kind::Plus, Kind::Minus, Kind::Star, Kind::Slash];
        let goes_on_too = [Kind::Percent, Kind::ShiftLeft, Kind::ShiftRight, Kind::Dot];
        before.is_some_and(|before| {
            goes_on.contains(&before.kind) || goes_on_too.contains(&before.kind)
        })
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
    fn is_parted(&self, tokens: &[Token], at: usize, before: Token) -> bool {
        let token = tokens[at];
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
    fn is_parted_bracket(&self, tokens: &[Token], at: usize, before: Token) -> bool {
        if before.kind == Kind::CloseBracket || self.state.is_right_side {
            return false;
        }
        if !self.state.in_view {
            return true;
        }
        // The name of a variable or a field, or a word before a part. Else it is the base of a view type.
        let is_first = self.state.position <= 2;
        let is_field = self.state.braces > 1;
        let is_base = at >= 2 && tokens[at - 2].kind == Kind::CloseBracket;
        (is_first || is_field || self.word(before) == "record") && !is_base
    }

    /// Whether a sign stands between two operands; else it belongs to the one behind it.
    fn is_between(&self, tokens: &[Token], at: usize) -> bool {
        if self.is_hyphen(tokens, at) {
            return false;
        }
        let Some(before) = at.checked_sub(1).map(|at| tokens[at]) else { return false };
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
    fn is_hyphen(&self, tokens: &[Token], at: usize) -> bool {
        let (Some(before), Some(after)) =
            (at.checked_sub(1).map(|at| tokens[at]), tokens.get(at + 1))
        else {
            return false;
        };
        let touches =
            before.span.end == tokens[at].span.start && tokens[at].span.end == after.span.start;
        tokens[at].kind == Kind::Minus
            && touches
            && self.state.brackets == 0
            && !self.state.is_right_side
            && matches!((self.word(before), self.word(*after)), ("read", "only") | ("on", "close"))
    }

    fn after(&mut self, token: Token) {
        let state = &mut self.state;
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
