//! Slices: which elements of an array a view takes, by index arithmetic.

use super::part::{Parts, Taken};
use super::types::describe;
use super::values::{Linear, Scope};
use crate::ast::{ExprKind, Indexes, Shape, Step};
use crate::definition::{Array, Index, Length, Part, Slice, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::RANK_MAX;
use crate::source::Span;

/// A temporary variable of a slice: a dimension of the view's array.
pub(super) struct Temporary<'a> {
    name: &'a str,
    span: Span,
}

impl Parts<'_, '_, '_> {
    /// `data[…]` with what follows it, as `shape`.
    pub(super) fn slice(
        &mut self,
        kind: &Type,
        indexes: &Indexes,
        rest: &[Step],
        shape: Option<&Shape>,
        taken: Taken<'_>,
    ) -> Option<Part> {
        let Type::Array(array) = kind else {
            let message = format!("{} has no elements", describe(kind));
            let error = Diagnostic::error(Code::Shape, indexes.span, message);
            self.findings.add(error.label("expected no index"));
            return None;
        };
        if indexes.is_empty() {
            return self.all_of_both(array, indexes, rest, shape, taken);
        }
        if !self.has_rank(array, indexes, "index") {
            return None;
        }
        let (left, element) = match shape {
            Some(Shape::Array { indexes, element }) if !indexes.is_empty() => {
                (Some(indexes), element.as_deref())
            }
            _ => (None, None),
        };
        let temporaries = match left {
            Some(left) => self.temporaries(left, taken)?,
            None => Vec::new(),
        };
        let linear = self.linear(indexes, &temporaries, element, taken)?;
        if linear.iter().all(|one| one.terms.is_empty()) {
            // One element; the view's own dimensions are those of something within it.
            let indexes = self.fixed(array, indexes, &linear)?;
            let element = self.take(&array.element, rest, shape, taken)?;
            return self.made(Part::Slice(Slice {
                lengths: Vec::new(),
                indexes,
                element: Box::new(element),
            }));
        }
        let left = left?;
        let (lengths, indexes) = self.running(array, indexes, &linear, left, &temporaries)?;
        let mut outer: Vec<&str> = taken.outer.to_vec();
        outer.extend(temporaries.iter().map(|temporary| temporary.name));
        let element = self.take(&array.element, rest, element, Taken { outer: &outer, ..taken })?;
        self.made(Part::Slice(Slice { lengths, indexes, element: Box::new(element) }))
    }

    /// `[] … = data[]…`: every element, in order.
    fn all_of_both(
        &mut self,
        array: &Array,
        indexes: &Indexes,
        rest: &[Step],
        shape: Option<&Shape>,
        taken: Taken<'_>,
    ) -> Option<Part> {
        if indexes.list.len() > 1 && !self.has_rank(array, indexes, "index") {
            return None;
        }
        match shape {
            Some(Shape::Array { indexes: left, element }) if left.is_empty() => {
                if left.list.len() > 1 && !self.has_rank(array, left, "dimension") {
                    return None;
                }
                let element = self.take(&array.element, rest, element.as_deref(), taken)?;
                self.all_elements(array, element)
            }
            None if rest.is_empty() => self.made(Part::Whole),
            _ => {
                let message = "`[]` on the right is the same as `[]` on the left";
                let error = Diagnostic::error(Code::Index, indexes.span, message);
                let error = error.label("which elements?");
                self.findings.add(error.help("write `[]` on both sides, or `[i]` on both"));
                None
            }
        }
    }

    /// `[] … = data`: every element, in order, of each of them the same.
    pub(super) fn all_elements(&mut self, array: &Array, element: Part) -> Option<Part> {
        if element == Part::Whole {
            return self.made(Part::Whole);
        }
        let running = |dimension| Index::Running { dimension, step: 1, start: 0 };
        let indexes = (0..array.lengths.len()).map(running).collect();
        let (lengths, element) = (array.lengths.clone(), Box::new(element));
        self.made(Part::Slice(Slice { lengths, indexes, element }))
    }

    /// Whether as many indexes are given as there are dimensions, and none is left out among others.
    pub(super) fn has_rank(&mut self, array: &Array, indexes: &Indexes, what: &str) -> bool {
        let (given, rank) = (indexes.list.len(), array.lengths.len());
        let plural = match (rank, what) {
            (1, _) => "",
            (_, "index") => "es",
            _ => "s",
        };
        if given != rank {
            let message = format!("expected {rank} {what}{plural}, found {given}");
            let error = Diagnostic::error(Code::Shape, indexes.span, message);
            let label = format!("this is {}", describe(&Type::Array(array.clone().into())));
            self.findings.add(error.label(label));
            return false;
        }
        if !indexes.is_empty() && indexes.list.iter().any(Option::is_none) {
            let error = Diagnostic::error(Code::Index, indexes.span, "an index is missing");
            self.findings.add(error.label("expected one for every dimension, or for none"));
            return false;
        }
        true
    }

    /// The names of the view's dimensions.
    pub(super) fn temporaries<'e>(
        &mut self,
        left: &'e Indexes,
        taken: Taken<'_>,
    ) -> Option<Vec<Temporary<'e>>> {
        if left.list.len() > RANK_MAX {
            let message = format!("an array cannot have more than {RANK_MAX} dimensions");
            let error = Diagnostic::error(Code::Limit, left.span, message);
            self.findings.add(error.label(format!("has {}", left.list.len())));
            return None;
        }
        let mut temporaries: Vec<Temporary<'e>> = Vec::with_capacity(left.list.len());
        let mut is_right = true;
        for expr in &left.list {
            let Some(expr) = expr else {
                let error = Diagnostic::error(Code::Index, left.span, "a dimension has no name");
                self.findings.add(error.label("expected a name for every dimension, or for none"));
                return None;
            };
            let span = expr.span;
            let fault = match &expr.kind {
                ExprKind::Name(name) if self.dataset.constants.contains(name) => {
                    let message = format!("`{name}` is a constant");
                    let error = Diagnostic::error(Code::Index, span, message);
                    let error = error.label("expected a name that nothing has");
                    error.help("the view's array is as long as what it takes; `[]` takes all of it")
                }
                ExprKind::Name(name) if taken.outer.contains(&&**name) => {
                    let message = format!("`{name}` counts another dimension already");
                    let error = Diagnostic::error(Code::Index, span, message);
                    error.label("expected another name")
                }
                ExprKind::Name(name) => {
                    match temporaries.iter().find(|temporary| temporary.name == name) {
                        None => {
                            temporaries.push(Temporary { name, span });
                            continue;
                        }
                        Some(first) => {
                            let message = format!("`{name}` counts two dimensions");
                            let error = Diagnostic::error(Code::Index, span, message);
                            let error = error.label("expected another name");
                            error.related(first.span, "counts this one")
                        }
                    }
                }
                ExprKind::Number(_) => {
                    let message = "a dimension of a view has a name, not a length";
                    let error = Diagnostic::error(Code::Index, span, message);
                    let error = error.label("expected a name such as `i`");
                    error.help("the view's array is as long as what it takes; `[]` takes all of it")
                }
                _ => {
                    let message = "arithmetic stands on the right side";
                    let error = Diagnostic::error(Code::Index, span, message);
                    let error = error.label("expected a name such as `i`");
                    error.help("write `var d [i] = data[i*5]` for every fifth element")
                }
            };
            is_right = false;
            self.findings.add(fault);
        }
        is_right.then_some(temporaries)
    }

    fn linear(
        &mut self,
        indexes: &Indexes,
        temporaries: &[Temporary<'_>],
        within: Option<&Shape>,
        taken: Taken<'_>,
    ) -> Option<Vec<Linear>> {
        let names: Vec<&str> = temporaries.iter().map(|temporary| temporary.name).collect();
        let mut linear = Vec::with_capacity(indexes.list.len());
        let mut is_right = true;
        for expr in indexes.list.iter().flatten() {
            let scope = Scope {
                constants: &self.dataset.constants,
                variables: &self.dataset.variables,
                temporaries: &names,
            };
            if let ExprKind::Name(name) = &expr.kind
                && !names.contains(&&**name)
                && !self.dataset.constants.contains(name)
            {
                let error = Diagnostic::error(
                    Code::Index,
                    expr.span,
                    format!("`{name}` is no dimension of the view here"),
                );
                let is_within = || within.is_some_and(|shape| has_dimension(shape, name));
                let error = if taken.outer.contains(&&**name) || is_within() {
                    error.label("counts the elements of another array").help(
                        "each array is indexed by the dimensions that stand at its own place: \
                         `[i] [j] … = data[i].x[j]`",
                    )
                } else {
                    error
                        .label("not declared")
                        .help(format!("declare it on the left side: `[{name}] …`"))
                };
                self.findings.add(error);
                is_right = false;
                continue;
            }
            match scope.linear(expr, self.findings) {
                Some(one) => linear.push(one),
                None => is_right = false,
            }
        }
        is_right.then_some(linear)
    }

    fn fixed(&mut self, array: &Array, indexes: &Indexes, linear: &[Linear]) -> Option<Vec<Index>> {
        let mut fixed = Vec::with_capacity(linear.len());
        for ((length, expr), one) in array.lengths.iter().zip(&indexes.list).zip(linear) {
            let span = expr.as_ref().map_or(indexes.span, |expr| expr.span);
            fixed.push(self.fixed_index(*length, one.start, span)?);
        }
        Some(fixed)
    }

    fn fixed_index(&mut self, length: Length, index: i64, span: Span) -> Option<Index> {
        let Length::Fixed(length) = length else {
            self.findings.add(stored_index(span));
            return None;
        };
        match u64::try_from(index) {
            Ok(index) if index < length => Some(Index::Fixed(index)),
            _ => {
                let message = format!("there is no element {index}");
                let error = Diagnostic::error(Code::Index, span, message);
                self.findings.add(error.label(format!("expected 0 to {}", length - 1)));
                None
            }
        }
    }

    /// The indexes of an array of which at least one runs with the view's dimensions, and how long those are.
    fn running(
        &mut self,
        array: &Array,
        indexes: &Indexes,
        linear: &[Linear],
        left: &Indexes,
        temporaries: &[Temporary<'_>],
    ) -> Option<(Vec<Length>, Vec<Index>)> {
        let mut lengths: Vec<Option<(Length, Span)>> = vec![None; temporaries.len()];
        let mut made = Vec::with_capacity(linear.len());
        let mut is_right = true;
        for ((length, expr), one) in array.lengths.iter().zip(&indexes.list).zip(linear) {
            let span = expr.as_ref().map_or(indexes.span, |expr| expr.span);
            let &[(dimension, step)] = &*one.terms else {
                if one.terms.is_empty() {
                    made.extend(self.fixed_index(*length, one.start, span));
                } else {
                    let names: Vec<String> = one
                        .terms
                        .iter()
                        .map(|(number, _)| format!("`{}`", temporaries[*number].name))
                        .collect();
                    let message = format!("{} together make one index", names.join(" and "));
                    let error = Diagnostic::error(Code::Index, span, message);
                    let error = error.label("expected one of them, or none");
                    self.findings.add(error.help("elements on a diagonal cannot be taken"));
                    is_right = false;
                }
                continue;
            };
            let name = temporaries[dimension].name;
            if let Some((_, first)) = lengths[dimension] {
                let error = Diagnostic::error(Code::Index, span, format!("`{name}` is used twice"));
                let error = error.label("expected another dimension of the view");
                let error = error.related(first, "used here");
                self.findings.add(error.help("elements on a diagonal cannot be taken"));
                is_right = false;
                continue;
            }
            match self.running_index(*length, step, one.start, name, span) {
                Some(count) => {
                    lengths[dimension] = Some((count, span));
                    made.push(Index::Running { dimension, step, start: one.start });
                }
                None => {
                    // Used, though wrongly.
                    lengths[dimension] = Some((Length::Fixed(1), span));
                    is_right = false;
                }
            }
        }
        for (temporary, _) in
            temporaries.iter().zip(&lengths).filter(|(_, length)| length.is_none())
        {
            let message = format!("`{}` is never used", temporary.name);
            let error = Diagnostic::error(Code::Index, temporary.span, message);
            let error = error.label("what does it count?").related(indexes.span, "expected here");
            let help = if left.list.len() > array.lengths.len() {
                "an array within another has brackets of its own: `[i] [j] … = data[i].x[j]`"
                    .to_owned()
            } else {
                format!(
                    "use it on the right side, or leave it out: one of the dimensions is `{}`",
                    temporary.name
                )
            };
            self.findings.add(error.help(help));
            is_right = false;
        }
        if !is_right || made.len() != linear.len() {
            return None;
        }
        Some((lengths.into_iter().flatten().map(|(length, _)| length).collect(), made))
    }

    /// How many elements `step * i + start` names, for i from 0 on, before it leaves the array.
    fn running_index(
        &mut self,
        length: Length,
        step: i64,
        start: i64,
        name: &str,
        span: Span,
    ) -> Option<Length> {
        if step == 0 {
            let error =
                Diagnostic::error(Code::Index, span, format!("`{name}` cancels itself out"));
            self.findings.add(error.label("names the same element again and again"));
            return None;
        }
        let length = match length {
            Length::Stored(_) if (step, start) == (1, 0) => return Some(length),
            Length::Stored(_) => {
                self.findings.add(stored_index(span));
                return None;
            }
            Length::Fixed(length) => length,
        };
        let Some(first) = u64::try_from(start).ok().filter(|&first| first < length) else {
            let message = format!("the first element would be {start}");
            let error = Diagnostic::error(Code::Index, span, message);
            let error = error.label(format!("for `{name}` = 0 expected 0 to {}", length - 1));
            let backwards = u64::try_from(start) == Ok(length) && step == -1;
            let help = backwards.then(|| format!("the last element is `N-1-{name}` of N"));
            self.findings.add(error.maybe_help(help));
            return None;
        };
        let count = if step > 0 {
            (length - first).div_ceil(step.unsigned_abs())
        } else {
            first / step.unsigned_abs() + 1
        };
        Some(Length::Fixed(count))
    }
}

fn stored_index(span: Span) -> Diagnostic {
    Diagnostic::error(Code::VariableSize, span, "the length of this dimension is a variable")
        .label("expected the dimension of the view by itself, such as `i`")
        .help("which elements there are is known only when there is data")
}

/// Whether a name counts a dimension somewhere in a shape.
fn has_dimension(shape: &Shape, name: &str) -> bool {
    match shape {
        Shape::Array { indexes, element } => {
            let is_it =
                |expr: &crate::ast::Expr| matches!(&expr.kind, ExprKind::Name(one) if one == name);
            indexes.list.iter().flatten().any(is_it)
                || element.as_ref().is_some_and(|element| has_dimension(element, name))
        }
        Shape::Record { inner, .. } => {
            inner.as_ref().is_some_and(|inner| has_dimension(inner, name))
        }
        Shape::Named(_) | Shape::Fields { .. } => false,
    }
}
