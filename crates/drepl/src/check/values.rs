//! Arithmetic: constants, and indexes that are linear in the temporary variables of a slice.

use std::collections::HashMap;

use super::graph;
use crate::ast::{Expr, ExprKind, Name, Operator};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::source::Span;
use crate::words;

/// `start + step * temporary + …`; a plain number where it has no terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) start: i64,
    /// Temporary variables by their number, each once, and what they are multiplied with. A step may be 0: `i - i`.
    pub(super) terms: Vec<(usize, i64)>,
}

/// What names in an expression may mean.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) constants: &'a Constants<'a>,
    /// Variables of the dataset, which have no value before there is data.
    pub(super) variables: &'a HashMap<&'a str, usize>,
    /// Temporary variables of the slice.
    pub(super) temporaries: &'a [&'a str],
}

/// The constants of a dataset.
#[derive(Debug, Default)]
pub(super) struct Constants<'a> {
    /// `None`: wrong, which was told.
    values: HashMap<&'a str, Option<i64>>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(
        defined: &[(&'a Name, &'a Expr)],
        variables: &HashMap<&'a str, usize>,
        findings: &mut Findings,
    ) -> Self {
        let numbers = defined.iter().enumerate().map(|(number, (name, _))| (&*name.text, number));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let references: Vec<Vec<usize>> = defined
            .iter()
            .map(|(_, value)| {
                let mut names = Vec::new();
                names_of(value, &mut names);
                names.iter().filter_map(|(name, _)| numbers.get(name).copied()).collect()
            })
            .collect();
        let ordered = graph::order(&references);
        let mut constants = Self { values: numbers.keys().map(|&name| (name, None)).collect() };
        for cycle in &ordered.cycles {
            let (name, _) = defined[cycle[0]];
            let chain = cycle.iter().chain(&cycle[..1]).map(|&one| &*defined[one].0.text);
            let message = format!("the constant `{}` is defined by itself", name.text);
            let error = Diagnostic::error(Code::Cycle, name.span, message);
            let chain = chain.collect::<Vec<_>>().join(" → ");
            findings.add(error.label(format!("needs its own value: {chain}")));
        }
        for number in ordered.order {
            let (name, value) = defined[number];
            let scope = Scope { constants: &constants, variables, temporaries: &[] };
            let value = scope.constant(value, findings);
            constants.values.insert(&name.text, value);
        }
        constants
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }
}

/// All names in an expression with their places.
fn names_of<'a>(expr: &'a Expr, names: &mut Vec<(&'a str, Span)>) {
    match &expr.kind {
        ExprKind::Number(_) => {}
        ExprKind::Name(name) => names.push((name, expr.span)),
        ExprKind::Negative(inner) => names_of(inner, names),
        ExprKind::Binary(_, left, right) => {
            names_of(left, names);
            names_of(right, names);
        }
    }
}

impl Scope<'_> {
    /// The value of an expression in which temporary variables have no place; `None` if it has none, after telling why.
    pub(super) fn constant(&self, expr: &Expr, findings: &mut Findings) -> Option<i64> {
        let plain = Scope { temporaries: &[], ..*self };
        plain.linear(expr, findings).map(|linear| linear.start)
    }

    /// What an expression amounts to.
    pub(super) fn linear(&self, expr: &Expr, findings: &mut Findings) -> Option<Linear> {
        match &expr.kind {
            ExprKind::Number(number) => plain(i64::try_from(*number).ok(), expr.span, findings),
            ExprKind::Name(name) => self.named(name, expr.span, findings),
            ExprKind::Negative(inner) => {
                // The least number has no positive counterpart.
                if let ExprKind::Number(number) = inner.kind {
                    return plain(i64::try_from(-number).ok(), expr.span, findings);
                }
                let inner = self.linear(inner, findings)?;
                scaled(&inner, -1, expr.span, findings)
            }
            ExprKind::Binary(operator, left, right) => {
                // Both sides are looked at, so that both are told of.
                let (left_is, right_is) =
                    (self.linear(left, findings), self.linear(right, findings));
                self.binary(*operator, (left, left_is?), (right, right_is?), expr.span, findings)
            }
        }
    }

    fn named(&self, name: &str, span: Span, findings: &mut Findings) -> Option<Linear> {
        if let Some(number) = self.temporaries.iter().position(|&temporary| temporary == name) {
            return Some(Linear { start: 0, terms: vec![(number, 1)] });
        }
        if let Some(value) = self.constants.values.get(name) {
            return value.map(|start| Linear { start, terms: Vec::new() });
        }
        if self.variables.contains_key(name) {
            let message = format!("`{name}` is a variable, whose value is not known here");
            let error = Diagnostic::error(Code::VariableSize, span, message);
            let error = error.label("expected a constant");
            findings
                .add(error.help("a variable alone can be the length of an array: `[sz]float32`"));
            return None;
        }
        let known = self.constants.values.keys().copied().chain(self.temporaries.iter().copied());
        let near = if findings.is_full() { None } else { words::nearest(name, known) };
        let help = match near {
            Some(word) => Some(crate::parse::did_you_mean(word)),
            None => Some(format!("define it in the dataset: `const {name} = …`")),
        };
        let error =
            Diagnostic::error(Code::UnknownName, span, format!("there is no constant `{name}`"));
        findings.add(error.label("not defined").maybe_help(help));
        None
    }

    fn binary(
        &self,
        operator: Operator,
        (left_expr, left): (&Expr, Linear),
        (right_expr, right): (&Expr, Linear),
        span: Span,
        findings: &mut Findings,
    ) -> Option<Linear> {
        match operator {
            Operator::Add => sum(&left, &right, span, findings),
            Operator::Subtract => {
                let right = scaled(&right, -1, span, findings)?;
                sum(&left, &right, span, findings)
            }
            Operator::Multiply => match (&*left.terms, &*right.terms) {
                (_, []) => scaled(&left, right.start, span, findings),
                ([], _) => scaled(&right, left.start, span, findings),
                _ => {
                    let error = Diagnostic::error(
                        Code::Index,
                        span,
                        "indexes are multiplied with each other",
                    );
                    let error = error.label("only multiples are possible: `step * i + start`");
                    findings.add(error.help("multiply with a constant"));
                    None
                }
            },
            _ => {
                for (expr, side) in [(left_expr, &left), (right_expr, &right)] {
                    if !side.terms.is_empty() {
                        findings.add(not_linear(operator, expr.span, span));
                        return None;
                    }
                }
                let value = quotient(operator, left.start, right.start);
                match value {
                    Ok(value) => plain(value, span, findings),
                    Err(message) => {
                        let error = Diagnostic::error(Code::Arithmetic, span, message);
                        findings.add(error.label(format!("the right side is {}", right.start)));
                        None
                    }
                }
            }
        }
    }
}

fn not_linear(operator: Operator, part: Span, whole: Span) -> Diagnostic {
    let (done, help) = match operator {
        Operator::Divide | Operator::ShiftRight => (
            "is divided",
            "it would name elements several times; to take every n-th element, multiply: `i*n`",
        ),
        Operator::Remainder => ("is divided", "it would name elements several times"),
        _ => ("is shifted", "multiply: `i*8` for `i<<3`"),
    };
    Diagnostic::error(Code::Index, whole, format!("an index {done}"))
        .label("only multiples are possible: `step * i + start`")
        .related(part, "has a temporary variable")
        .help(help)
}

/// Division and shifts of constants. `Ok(None)`: does not fit.
fn quotient(operator: Operator, left: i64, right: i64) -> Result<Option<i64>, &'static str> {
    let (wide, shift) = (i128::from(left), u32::try_from(right).ok().filter(|&by| by < 64));
    match operator {
        Operator::Divide | Operator::Remainder if right == 0 => Err("division by zero"),
        Operator::Divide => Ok(left.checked_div(right)),
        Operator::Remainder => Ok(Some(left.checked_rem(right).unwrap_or(0))),
        Operator::ShiftLeft | Operator::ShiftRight => match shift {
            None => Err("a shift by other than 0 to 63 bits"),
            Some(by) if operator == Operator::ShiftLeft => Ok(i64::try_from(wide << by).ok()),
            Some(by) => Ok(Some(left >> by)),
        },
        Operator::Add | Operator::Subtract | Operator::Multiply => Ok(None),
    }
}

fn plain(value: Option<i64>, span: Span, findings: &mut Findings) -> Option<Linear> {
    if value.is_none() {
        let error = Diagnostic::error(Code::Arithmetic, span, "a value does not fit into 64 bits");
        findings.add(error.label("values are from -2^63 to 2^63-1"));
    }
    value.map(|start| Linear { start, terms: Vec::new() })
}

fn scaled(linear: &Linear, by: i64, span: Span, findings: &mut Findings) -> Option<Linear> {
    let start = plain(linear.start.checked_mul(by), span, findings)?.start;
    let mut terms = Vec::with_capacity(linear.terms.len());
    for &(number, step) in &linear.terms {
        terms.push((number, plain(step.checked_mul(by), span, findings)?.start));
    }
    Some(Linear { start, terms })
}

fn sum(left: &Linear, right: &Linear, span: Span, findings: &mut Findings) -> Option<Linear> {
    let start = plain(left.start.checked_add(right.start), span, findings)?.start;
    let mut terms = left.terms.clone();
    for &(number, step) in &right.terms {
        match terms.iter_mut().find(|(one, _)| *one == number) {
            Some((_, sum)) => *sum = plain(sum.checked_add(step), span, findings)?.start,
            None => terms.push((number, step)),
        }
    }
    Some(Linear { start, terms })
}
