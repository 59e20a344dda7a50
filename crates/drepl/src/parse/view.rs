//! View sections: flags, view types, variables and records.

use super::{Parsed, Parser, did_you_mean};
use crate::ast::{
    At, Name, Path, PlacingWord, Shape, ShapeFields, Step, View, ViewFlag, ViewMember, ViewType,
    ViewVar,
};
use crate::definition::{ByteOrder, Marker, Order};
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::NESTING_MAX;
use crate::source::Span;
use crate::token::Kind;
use crate::words::{self, Role};

impl Parser<'_, '_> {
    pub(super) fn view(&mut self, keyword: Span) -> Parsed<View> {
        let name = self.file_name("a view")?;
        let mut flags = Vec::new();
        while self.token.kind == Kind::Word {
            flags.push(self.view_flag()?);
        }
        let closes = ["view", "replica", "dataset"];
        let (members, _) = self.members("view", &closes, Self::view_member)?;
        Ok(View { name, whole: keyword.to(self.last), flags, members })
    }

    fn view_flag(&mut self) -> Parsed<At<ViewFlag>> {
        let start = self.token.span;
        let what = match self.word() {
            Some("readonly") => ViewFlag::ReadOnly,
            Some("read") if self.next.kind == Kind::Minus => {
                self.hyphenated("only", "`read-only`")?;
                ViewFlag::ReadOnly
            }
            Some("rowmajor" | "default") => ViewFlag::Order(Order::RowMajor),
            Some("rowminor" | "columnmajor") => ViewFlag::Order(Order::RowMinor),
            Some("littleendian") => ViewFlag::ByteOrder(ByteOrder::Little),
            Some("bigendian") => ViewFlag::ByteOrder(ByteOrder::Big),
            Some("packed") => ViewFlag::Packed,
            Some("header") => {
                self.advance();
                let what = ViewFlag::Header(self.expression()?);
                return Ok(At { what, span: start.to(self.last) });
            }
            Some("records") => {
                self.advance();
                let marker = self.marker()?.unwrap_or(Marker::Four);
                return Ok(At { what: ViewFlag::Records(marker), span: start.to(self.last) });
            }
            other => {
                let help = other.and_then(|word| words::nearest(word, words::of(Role::ViewFlag)));
                let help = help.map(did_you_mean).or_else(|| {
                    let flags: Vec<&str> = words::of(Role::ViewFlag).collect();
                    Some(format!("a view has the flags {}", flags.join(", ")))
                });
                return Err(self.unexpected("a flag of the view, or `{`", help));
            }
        };
        self.advance();
        Ok(At { what, span: start.to(self.last) })
    }

    /// Takes the first part of a word such as `read-only` and its hyphen, and leaves the second part to be taken.
    pub(super) fn hyphenated(&mut self, second: &str, whole: &str) -> Parsed<()> {
        let first = self.advance();
        let hyphen = self.advance();
        let touches = first.end == hyphen.start && hyphen.end == self.token.span.start;
        if touches && self.word() == Some(second) {
            Ok(())
        } else {
            Err(self.unexpected(whole, Some(format!("write {whole} without blanks"))))
        }
    }

    /// The size of record markers, if one is given.
    fn marker(&mut self) -> Parsed<Option<Marker>> {
        if self.token.kind != Kind::Number || self.token.begins_line {
            return Ok(None);
        }
        match self.text_of(self.token.span) {
            "4" => {
                self.advance();
                Ok(Some(Marker::Four))
            }
            "8" => {
                self.advance();
                Ok(Some(Marker::Eight))
            }
            _ => {
                let help = "gfortran writes 4 bytes, or 8 with -frecord-marker=8".to_owned();
                Err(self.unexpected("4 or 8, the size of record markers", Some(help)))
            }
        }
    }

    fn view_member(&mut self) -> Parsed<ViewMember> {
        match self.word() {
            Some("type") => Ok(ViewMember::Type(self.view_type()?)),
            Some("var") => Ok(ViewMember::Var(self.view_var()?)),
            Some("record") => {
                let keyword = self.advance();
                let marker = self.marker()?;
                let closes = ["view", "replica", "dataset"];
                let (vars, _) = self.members("record", &closes, Self::record_member)?;
                Ok(ViewMember::Record { keyword, marker, vars })
            }
            other => {
                let help = match other {
                    Some("const") => Some("constants stand in the dataset".to_owned()),
                    Some(word) => words::nearest(word, ["type", "var", "record"]).map(did_you_mean),
                    None => None,
                };
                Err(self.unexpected("`var`, `type`, `record` or `}`", help))
            }
        }
    }

    fn record_member(&mut self) -> Parsed<ViewVar> {
        if self.word() == Some("var") {
            return self.view_var();
        }
        Err(self.unexpected("`var` or `}`", None))
    }

    fn view_type(&mut self) -> Parsed<ViewType> {
        self.advance();
        let name = self.name("a view type")?;
        if !self.begins_shape() {
            let help = "a view type is a part of a type of the dataset: `type PointB { b } Point`";
            return Err(self.unexpected("a part: `{` or `[`", Some(help.to_owned())));
        }
        let shape = self.shape_of_type()?;
        if self.token.kind != Kind::Word || self.token.begins_line {
            let help = "the type of the dataset stands behind its part: `type PointB { b } Point`";
            return Err(self.unexpected("a type of the dataset", Some(help.to_owned())));
        }
        Ok(ViewType { name, shape, base: self.path("a type of the dataset")? })
    }

    /// A shape with the name of the base behind it, which is not taken for the shape of the elements.
    fn shape_of_type(&mut self) -> Parsed<Shape> {
        if self.token.kind != Kind::OpenBracket {
            return self.shape();
        }
        let indexes = self.indexes()?;
        let is_base = self.token.kind == Kind::Word
            && self.word() != Some("record")
            && (self.next.kind != Kind::Word || self.next.begins_line);
        let element = match () {
            () if is_base => None,
            () if self.token.kind == Kind::OpenBracket => Some(self.nested(Self::shape_of_type)?),
            () if self.begins_shape() => Some(self.shape()?),
            () => None,
        };
        Ok(Shape::Array { indexes, element: element.map(Box::new) })
    }

    fn view_var(&mut self) -> Parsed<ViewVar> {
        self.advance();
        let name = self.name("a variable")?;
        if self.token.kind == Kind::Comma {
            let help = "a view's variables are declared one by one".to_owned();
            return Err(self.unexpected("`=` or a part", Some(help)));
        }
        let shape = if self.begins_shape() { Some(self.shape()?) } else { None };
        let help = format!("say what it is taken from: `var {0} = {0}`", name.text);
        if self.token.kind != Kind::Equals {
            return Err(self.unexpected("`=` and a variable of the dataset", Some(help)));
        }
        self.advance();
        let source = self.path("a variable of the dataset")?;
        let mut placing = Vec::new();
        while !self.is_at_end() {
            placing.push(self.placing()?);
        }
        Ok(ViewVar { name, shape, source, placing })
    }

    fn placing(&mut self) -> Parsed<At<PlacingWord>> {
        let start = self.token.span;
        let make = match self.word() {
            Some("at") => PlacingWord::At,
            Some("align") => PlacingWord::Align,
            Some("pad") => PlacingWord::Pad,
            other => {
                let near = other.and_then(|word| words::nearest(word, words::of(Role::Placing)));
                let help = near.map(did_you_mean);
                let expected = "`at`, `align`, `pad` or the end of the line";
                return Err(self.unexpected(expected, help));
            }
        };
        self.advance();
        let what = make(self.expression()?);
        Ok(At { what, span: start.to(self.last) })
    }

    fn begins_shape(&self) -> bool {
        !self.token.begins_line
            && matches!(self.token.kind, Kind::OpenBrace | Kind::OpenBracket | Kind::Word)
    }

    fn shape(&mut self) -> Parsed<Shape> {
        self.nested(|parser| match parser.token.kind {
            Kind::OpenBracket => {
                let indexes = parser.indexes()?;
                let element =
                    if parser.begins_shape() { Some(Box::new(parser.shape()?)) } else { None };
                Ok(Shape::Array { indexes, element })
            }
            Kind::OpenBrace => {
                let (fields, span) = parser.members("substruct", &[], Self::shape_fields)?;
                Ok(Shape::Fields { fields, span })
            }
            _ if parser.word() == Some("record") => {
                let keyword = parser.advance();
                let marker = parser.marker()?;
                let inner =
                    if parser.begins_shape() { Some(Box::new(parser.shape()?)) } else { None };
                Ok(Shape::Record { keyword, marker, inner })
            }
            _ if parser.word() == Some("struct") => {
                let help = "a view names the fields it takes: `{ a, b }`".to_owned();
                Err(parser.unexpected("a part", Some(help)))
            }
            _ => Ok(Shape::Named(parser.name("a view type")?)),
        })
    }

    fn shape_fields(&mut self) -> Parsed<ShapeFields> {
        let mut names = Vec::new();
        loop {
            if self.token.kind != Kind::Word {
                return Err(self.unexpected("the name of a field", None));
            }
            let text = self.text_of(self.token.span).to_owned();
            names.push(Name { text, span: self.advance() });
            if self.take(Kind::Comma).is_none() {
                break;
            }
        }
        let shape = if self.begins_shape() { Some(self.shape()?) } else { None };
        let mut source = None;
        if self.token.kind == Kind::Equals && !self.token.begins_line {
            if names.len() > 1 {
                let help = "part the fields with `;`".to_owned();
                return Err(self.unexpected("one field before `=`", Some(help)));
            }
            self.advance();
            source = Some(self.path("the field")?);
        }
        Ok(ShapeFields { names, shape, source })
    }

    /// `data[i*3].position`.
    fn path(&mut self, of_what: &str) -> Parsed<Path> {
        let root = self.name(of_what)?;
        let mut steps = Vec::new();
        loop {
            if steps.len() >= NESTING_MAX {
                let message = format!("this path is longer than {} steps", NESTING_MAX);
                let error = Diagnostic::error(Code::Limit, self.token.span, message);
                self.findings.add(error.label("no type nests so deeply"));
                return Err(super::Confused);
            }
            match self.token.kind {
                Kind::OpenBracket if !self.token.begins_line => {
                    steps.push(Step::Index(self.indexes()?));
                }
                Kind::Dot => {
                    self.advance();
                    steps.push(Step::Member(self.name("a field")?));
                }
                _ => break,
            }
        }
        let span = root.span.to(self.last);
        Ok(Path { root, steps, span })
    }
}
