//! Arithmetic, with the precedence of Go: `*` and its like before `+` and its like, from the left.

use super::{Confused, Parsed, Parser};
use crate::ast::{At, Expr, ExprKind, Indexes, Operator};
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::EXPRESSION_DEPTH_MAX;
use crate::token::{Kind, NumberFault, number};

/// An expression and how deeply it nests.
type Deep = (Expr, usize);

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        Ok(self.climb(0, 0)?.0)
    }

    /// Reads operands and operators that bind more tightly than `least`; `outside` counts what this one stands in.
    fn climb(&mut self, least: u8, outside: usize) -> Parsed<Deep> {
        let (mut left, mut depth) = self.operand(outside)?;
        loop {
            // An operator at the begin of a line begins nothing: the declaration has ended.
            let Some((operator, power)) = operator(self.token.kind)
                .filter(|&(_, power)| power > least && (!self.token.begins_line || outside > 0))
            else {
                return Ok((left, depth));
            };
            self.advance();
            let (right, right_depth) = self.climb(power, outside + 1)?;
            depth = depth.max(right_depth) + 1;
            self.check_depth(depth + outside)?;
            let span = left.span.to(right.span);
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = Expr { kind, span };
        }
    }

    fn operand(&mut self, outside: usize) -> Parsed<Deep> {
        self.check_depth(outside)?;
        let token = self.token;
        match token.kind {
            Kind::Number => {
                self.advance();
                let kind = ExprKind::Number(self.value(token.span));
                Ok((Expr { kind, span: token.span }, 0))
            }
            Kind::Word => {
                let kind = ExprKind::Name(self.text_of(token.span).to_owned());
                self.advance();
                Ok((Expr { kind, span: token.span }, 0))
            }
            Kind::Minus => {
                self.advance();
                // Binds more tightly than any operator between two operands.
                let (inner, depth) = self.operand(outside + 1)?;
                let span = token.span.to(inner.span);
                Ok((Expr { kind: ExprKind::Negative(Box::new(inner)), span }, depth + 1))
            }
            Kind::Plus => {
                self.advance();
                self.operand(outside + 1)
            }
            Kind::OpenParen => {
                self.advance();
                let (inner, depth) = self.climb(0, outside + 1)?;
                let close = self.expect(Kind::CloseParen, "`)`")?;
                Ok((Expr { span: token.span.to(close), ..inner }, depth + 1))
            }
            Kind::Text => Err(self.unexpected("a number or a name, not a text", None)),
            _ => Err(self.unexpected("a number, a name or `(`", None)),
        }
    }

    fn check_depth(&mut self, depth: usize) -> Parsed<()> {
        if depth <= EXPRESSION_DEPTH_MAX {
            return Ok(());
        }
        let message = format!("this expression nests deeper than {EXPRESSION_DEPTH_MAX}");
        let error = Diagnostic::error(Code::Limit, self.token.span, message).label("too deep");
        self.findings.add(error.help("give a part of it a name with `const`"));
        Err(Confused)
    }

    /// The value of a number; 1 if it has none, after that was told.
    fn value(&mut self, span: crate::source::Span) -> i128 {
        let text = self.text_of(span);
        let fault = match number(text) {
            Ok(value) => return value,
            Err(fault) => fault,
        };
        let shown = super::shown(text);
        let (message, label, help) = match fault {
            NumberFault::LeadingZero => (
                format!("`{shown}` begins with a zero"),
                "octal or decimal?",
                Some(format!("write `0o{0}` or `{0}`", shown.trim_start_matches(['0', '_']))),
            ),
            NumberFault::NoNumber => (
                format!("`{shown}` is no number"),
                "expected digits, or `0x`, `0o`, `0b` and digits",
                None,
            ),
            NumberFault::TooLarge => {
                (format!("`{shown}` does not fit into 64 bits"), "too large", None)
            }
        };
        let error = Diagnostic::error(Code::Arithmetic, span, message);
        self.findings.add(error.label(label).maybe_help(help));
        1
    }

    /// `[a, b]` with at least one expression.
    pub(super) fn lengths(&mut self) -> Parsed<At<Vec<Expr>>> {
        let open = self.expect(Kind::OpenBracket, "`[`")?;
        let mut list = Vec::new();
        loop {
            if self.token.kind == Kind::CloseBracket && list.is_empty() {
                let help =
                    "an array of the dataset has lengths: `[N]`, or `[sz]` with `var sz int32`";
                return Err(self.unexpected("the length of the array", Some(help.into())));
            }
            list.push(self.climb(0, 1)?.0);
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        let close = self.expect(Kind::CloseBracket, "`,` or `]`")?;
        Ok(At { what: list, span: open.to(close) })
    }

    /// `[i, j*2]`, `[]` or `[,]`.
    pub(super) fn indexes(&mut self) -> Parsed<Indexes> {
        let open = self.expect(Kind::OpenBracket, "`[`")?;
        let mut list = Vec::new();
        loop {
            let is_empty = matches!(self.token.kind, Kind::Comma | Kind::CloseBracket);
            list.push(if is_empty { None } else { Some(self.climb(0, 1)?.0) });
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        let close = self.expect(Kind::CloseBracket, "`,` or `]`")?;
        Ok(Indexes { list, span: open.to(close) })
    }
}

/// An operator between two operands and how tightly it binds.
///
/// # Source
/// The Go Programming Language Specification, "Operator precedence".
fn operator(kind: Kind) -> Option<(Operator, u8)> {
    Some(match kind {
        Kind::Plus => (Operator::Add, 4),
        Kind::Minus => (Operator::Subtract, 4),
        Kind::Star => (Operator::Multiply, 5),
        Kind::Slash => (Operator::Divide, 5),
        Kind::Percent => (Operator::Remainder, 5),
        Kind::ShiftLeft => (Operator::ShiftLeft, 5),
        Kind::ShiftRight => (Operator::ShiftRight, 5),
        _ => return None,
    })
}
