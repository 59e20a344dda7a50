//! Commands on directories of files without more below: SCDC's provider `store`, with its words.

use std::sync::Arc;

use client::{At, Error as ClientError, Session};
use p9::Errno;

use crate::dataset::Answer;
use crate::error::{Error, Result};
use crate::files::{Done, below, get, list, listed, put, refused};
use crate::line::{Extent, split};
use crate::stream::Source;

/// The word for no single directory.
const ADMIN: &str = "ADMIN";

/// All directories, or one that was chosen.
pub(crate) struct Shelf {
    session: Arc<Session>,
    base: Vec<u8>,
    chosen: Option<String>,
}

/// Whether a name can be one: there is nothing below.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..")
}

impl Shelf {
    pub(crate) fn open(
        session: &Arc<Session>,
        names: &[&[u8]],
        chosen: Option<&[u8]>,
    ) -> Result<Self> {
        let mut shelf =
            Self { session: Arc::clone(session), base: names.join(&b'/'), chosen: None };
        if let Some(chosen) = chosen {
            let chosen = String::from_utf8_lossy(chosen).into_owned();
            let answer = shelf.choose(&chosen);
            if !answer.success {
                return Err(Error::refused(String::from_utf8_lossy(&answer.text)));
            }
        }
        Ok(shelf)
    }

    fn at(&self, name: &str) -> Vec<u8> {
        match &self.chosen {
            Some(chosen) => below(&below(&self.base, chosen), name),
            None => below(&self.base, name),
        }
    }

    fn choose(&mut self, name: &str) -> Answer {
        if name.is_empty() || name == ADMIN {
            self.chosen = None;
            return Answer::done("");
        }
        let failed = format!("opening store '{name}' failed");
        if !is_name(name) {
            return Answer::failed(failed);
        }
        match self.session.stat(At::root(&below(&self.base, name)), true) {
            Ok(found) if found.is_directory() => {
                self.chosen = Some(name.to_owned());
                Answer::done("")
            }
            Ok(_) => Answer::failed(failed),
            Err(error) => refused(failed, &error),
        }
    }

    /// The names here: files of the directory that was chosen, or all directories.
    fn names(&self) -> client::Result<Vec<Vec<u8>>> {
        let wanted = self.chosen.is_none();
        let names = list(&self.session, &self.at(""))?.into_iter();
        Ok(names.filter(|(_, directory)| *directory == wanted).map(|(name, _)| name).collect())
    }

    pub(crate) fn run(&mut self, line: &[u8], input: Option<&mut dyn Source>) -> Done {
        let Ok(line) = std::str::from_utf8(line) else {
            return Ok((Answer::failed("the command is no text in UTF-8"), None));
        };
        let (word, rest) = split(line);
        let (several, one) = match self.chosen {
            Some(_) => ("entries", "entry"),
            None => ("stores", "store"),
        };
        let answer = match word {
            "cd" => self.choose(rest),
            "pwd" => Answer::done(self.chosen.clone().unwrap_or_default()),
            "ls" => match self.names() {
                Ok(names) => listed(names.into_iter()),
                Err(error) => refused(format!("listing the {several} failed"), &error),
            },
            "info" if rest.is_empty() => match self.names() {
                Ok(names) => Answer::done(format!("{several}: {}", names.len())),
                Err(error) => refused(format!("listing the {several} failed"), &error),
            },
            "info" => self.info(one, rest),
            "rm" => match self.remove(rest) {
                Ok(()) => Answer::done(""),
                Err(error) => refused(format!("removing {one} '{rest}' failed"), &error),
            },
            "put" if self.chosen.is_none() => match self.make(rest) {
                Ok(()) => Answer::done(""),
                Err(error) => refused(format!("making store '{rest}' failed"), &error),
            },
            "get" if self.chosen.is_none() => Answer::failed("command not available for a store"),
            "put" | "get" => {
                let (name, bytes) = split(rest);
                let extent = match Extent::parse(bytes) {
                    Ok(extent) => extent,
                    Err(text) => return Ok((Answer::failed(text), None)),
                };
                if !is_name(name) {
                    return Ok((Answer::failed(format!("opening entry '{name}' failed")), None));
                }
                let path = self.at(name);
                if word == "put" {
                    match put(&self.session, &path, extent, input) {
                        Ok(()) => Answer::done(""),
                        Err(trouble) => trouble.answer("entry", name),
                    }
                } else {
                    match get(&self.session, &path, extent) {
                        Ok(reading) => return Ok((Answer::done(""), Some(reading))),
                        Err(error) => refused(format!("opening entry '{name}' failed"), &error),
                    }
                }
            }
            _ => Answer::failed(format!("command '{word}' not implemented")),
        };
        Ok((answer, None))
    }

    fn info(&self, one: &str, name: &str) -> Answer {
        let missing = || Answer::done(format!("{one} '{name}' not found"));
        if !is_name(name) {
            return missing();
        }
        self.session.files().settle_all();
        match self.session.stat(At::root(&self.at(name)), true) {
            Ok(found) if found.is_directory() => match list(&self.session, &self.at(name)) {
                Ok(names) => Answer::done(format!("{one} '{name}', entries: {}", names.len())),
                Err(error) => refused(format!("{one} '{name}'"), &error),
            },
            Ok(found) => Answer::done(format!("{one} '{name}', size: {}", found.size)),
            Err(ClientError::Refused(Errno::ENOENT)) => missing(),
            Err(error) => refused(format!("{one} '{name}'"), &error),
        }
    }

    fn make(&self, name: &str) -> client::Result<()> {
        if !is_name(name) || name == ADMIN {
            return Err(ClientError::Refused(Errno::ENOENT));
        }
        self.session.make_directory(At::root(&self.at(name)), 0o755)
    }

    /// Removes an entry, or a whole directory of entries.
    fn remove(&self, name: &str) -> client::Result<()> {
        if !is_name(name) {
            return Err(ClientError::Refused(Errno::ENOENT));
        }
        let path = self.at(name);
        if self.chosen.is_some() {
            return self.session.remove(At::root(&path), false);
        }
        for (entry, _) in list(&self.session, &path)? {
            let entry = [&path[..], &entry].join(&b'/');
            self.session.remove(At::root(&entry), false)?;
        }
        self.session.remove(At::root(&path), true)
    }
}
