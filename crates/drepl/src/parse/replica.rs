//! Replica sections: flags, and views with how they are stored.

use super::{Parsed, Parser, did_you_mean};
use crate::ast::{At, Replica, ReplicaFlag, ReplicaView, StorageOption};
use crate::definition::{Storage, Update};
use crate::source::Span;
use crate::token::Kind;
use crate::words::{self, Role};

impl Parser<'_, '_> {
    pub(super) fn replica(&mut self, keyword: Span) -> Parsed<Replica> {
        let name = self.file_name("a replica")?;
        let mut flags = Vec::new();
        while self.token.kind == Kind::Word {
            flags.push(self.replica_flag()?);
        }
        let closes = ["replica", "dataset"];
        let (views, _) = self.members("replica", &closes, Self::replica_view)?;
        Ok(Replica { name, whole: keyword.to(self.last), flags, views })
    }

    fn replica_flag(&mut self) -> Parsed<At<ReplicaFlag>> {
        let start = self.token.span;
        let what = match self.word() {
            Some("complete") => ReplicaFlag::Complete,
            Some("sync") => ReplicaFlag::Update(Update::Sync),
            Some("async") => ReplicaFlag::Update(Update::Async),
            Some("on") if self.next.kind == Kind::Minus => {
                self.hyphenated("close", "`on-close`")?;
                ReplicaFlag::Update(Update::OnClose)
            }
            Some("hdf5") => ReplicaFlag::Storage(Storage::Hdf5),
            Some("near") => {
                self.advance();
                let what = ReplicaFlag::Near(self.expression()?);
                return Ok(At { what, span: start.to(self.last) });
            }
            other => {
                let near =
                    other.and_then(|word| words::nearest(word, words::of(Role::ReplicaFlag)));
                let help = near.map(did_you_mean).or_else(|| {
                    let flags: Vec<&str> = words::of(Role::ReplicaFlag).collect();
                    Some(format!("a replica has the flags {}", flags.join(", ")))
                });
                return Err(self.unexpected("a flag of the replica, or `{`", help));
            }
        };
        self.advance();
        Ok(At { what, span: start.to(self.last) })
    }

    fn replica_view(&mut self) -> Parsed<ReplicaView> {
        if self.word() != Some("view") {
            let help = match self.word() {
                Some("var" | "type" | "const") => {
                    Some("a replica holds views, which have the variables".to_owned())
                }
                Some(word) => words::nearest(word, ["view"]).map(did_you_mean),
                None => None,
            };
            return Err(self.unexpected("`view` or `}`", help));
        }
        self.advance();
        let name = self.file_name("a view")?;
        let mut options = Vec::new();
        while !self.is_at_end() {
            options.push(self.storage_option()?);
        }
        Ok(ReplicaView { name, options })
    }

    fn storage_option(&mut self) -> Parsed<At<StorageOption>> {
        let start = self.token.span;
        let what = match self.word_in_line() {
            Some("group") => {
                self.advance();
                StorageOption::Group(self.text_name()?.text)
            }
            Some("split") => {
                self.advance();
                StorageOption::Split
            }
            Some("chunk") => {
                self.advance();
                StorageOption::Chunk(self.lengths()?.what)
            }
            Some("deflate") => {
                self.advance();
                StorageOption::Deflate(self.expression()?)
            }
            other => {
                let near = other.and_then(|word| words::nearest(word, words::of(Role::Storage)));
                let help = match (near, self.token.kind) {
                    (Some(word), _) => Some(did_you_mean(word)),
                    (None, Kind::OpenBrace) => {
                        Some("a view is defined outside of replicas, and named in them".to_owned())
                    }
                    _ => None,
                };
                let expected = "`group`, `split`, `chunk`, `deflate` or the end of the line";
                return Err(self.unexpected(expected, help));
            }
        };
        Ok(At { what, span: start.to(self.last) })
    }
}
