//! The dataset section: constants, types and variables.

use super::{Parsed, Parser, did_you_mean};
use crate::ast::{Fields, Member, Name, TypeExpr};
use crate::token::Kind;
use crate::words;

impl Parser<'_, '_> {
    pub(super) fn dataset_members(&mut self) -> Parsed<Vec<Member>> {
        let closes = ["view", "replica", "dataset"];
        Ok(self.members("dataset", &closes, Self::dataset_member)?.0)
    }

    fn dataset_member(&mut self) -> Parsed<Member> {
        match self.word() {
            Some("const") => {
                self.advance();
                let name = self.name("a constant")?;
                self.expect(Kind::Equals, "`=` and the value of the constant")?;
                Ok(Member::Const { name, value: self.expression()? })
            }
            Some("type") => {
                self.advance();
                Ok(Member::Type { name: self.name("a type")?, kind: self.type_expr()? })
            }
            Some("var") => {
                self.advance();
                let names = self.names("a variable")?;
                Ok(Member::Var { names, kind: self.type_expr()? })
            }
            other => {
                let help = other.and_then(|word| words::nearest(word, ["const", "type", "var"]));
                let help = help.map(did_you_mean);
                Err(self.unexpected("`const`, `type`, `var` or `}`", help))
            }
        }
    }

    /// `a, b, c`.
    pub(super) fn names(&mut self, of_what: &str) -> Parsed<Vec<Name>> {
        let mut names = vec![self.name(of_what)?];
        while self.take(Kind::Comma).is_some() {
            names.push(self.name(of_what)?);
        }
        Ok(names)
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.nested(|parser| match parser.token.kind {
            _ if parser.token.begins_line => Err(parser.unexpected("a type", None)),
            Kind::OpenBracket => {
                let lengths = parser.lengths()?;
                let element = Box::new(parser.type_expr()?);
                let span = lengths.span.to(element.span());
                Ok(TypeExpr::Array { lengths: lengths.what, element, span })
            }
            Kind::Word if parser.word() == Some("struct") => {
                let keyword = parser.advance();
                let (fields, body) = parser.members("struct", &[], Self::fields)?;
                Ok(TypeExpr::Struct { fields, span: keyword.to(body) })
            }
            Kind::Word => Ok(TypeExpr::Named(parser.name("a type")?)),
            Kind::OpenBrace => {
                let help = "write `struct { … }`".to_owned();
                Err(parser.unexpected("a type", Some(help)))
            }
            Kind::Equals => {
                let help = "a variable of the dataset has a type: `var n int32`".to_owned();
                Err(parser.unexpected("a type", Some(help)))
            }
            _ => Err(parser.unexpected("a type", None)),
        })
    }

    fn fields(&mut self) -> Parsed<Fields> {
        if self.token.kind != Kind::Word {
            return Err(self.unexpected("the name of a field, or `}`", None));
        }
        // A field may have any name, also one that begins declarations elsewhere.
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
        let kind = self.type_expr()?;
        let begins = ["const", "type", "var", "dataset", "view", "replica"];
        if !self.is_at_end() && begins.contains(&&*names[0].text) {
            let help = format!(
                "if this `{}` is no field, the struct before it lacks its `}}`",
                names[0].text
            );
            return Err(self.unexpected("the end of the line, or `;`", Some(help)));
        }
        Ok(Fields { names, kind })
    }
}
