//! Commands on the files of any service: SCDC's provider `access`. What they say are SCDC's words, because programs
//! look at them.

use std::sync::Arc;

use client::{At, Error as ClientError, RemoteFile, Session};
use p9::{Errno, OpenFlags, QidType};

use crate::dataset::Answer;
use crate::error::{Error, Result};
use crate::line::{Extent, split};
use crate::stream::Source;

/// A directory of a service that commands work in.
pub(crate) struct Files {
    session: Arc<Session>,
    /// The first name of its path: where `cd` without a directory leads.
    base: Vec<u8>,
    /// Below that, as it was given.
    within: Vec<u8>,
}

/// What a command comes to: its answer, and output.
pub(crate) type Done = Result<(Answer, Option<Reading>)>;

/// A file that is being read.
pub(crate) struct Reading {
    file: RemoteFile,
    at: u64,
    left: Option<u64>,
    ended: bool,
}

impl Reading {
    /// Whether all has been taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads on.
    pub(crate) fn take(&mut self, buffer: &mut [u8]) -> Result<(usize, bool)> {
        let most = self.left.map_or(buffer.len(), |left| {
            usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len())
        });
        if self.ended || most == 0 && self.left == Some(0) {
            return Ok((0, false));
        }
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.left = self.left.map(|left| left - count as u64);
        self.ended = (count == 0 && most > 0) || self.left == Some(0);
        Ok((count, !self.ended))
    }
}

/// A failure in SCDC's words; why, where that is not what is expected.
pub(crate) fn refused(what: String, error: &ClientError) -> Answer {
    match error {
        ClientError::Refused(
            Errno::ENOENT | Errno::EEXIST | Errno::EISDIR | Errno::ENOTDIR | Errno::ENOTEMPTY,
        ) => Answer::failed(what),
        other => Answer::failed(format!("{what}: {other}")),
    }
}

/// A path of several names below another.
pub(crate) fn below(base: &[u8], rest: &str) -> Vec<u8> {
    let mut path = base.to_vec();
    for name in rest.split('/').filter(|name| !name.is_empty()) {
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
    }
    path
}

/// Whether a path could lead out of where it begins.
pub(crate) fn leads_up(path: &str) -> bool {
    path.split('/').any(|name| name == "..")
}

/// The names in a directory, and whether each is a directory, in order.
pub(crate) fn list(session: &Arc<Session>, path: &[u8]) -> client::Result<Vec<(Vec<u8>, bool)>> {
    let handle = session.open(At::root(path), OpenFlags::DIRECTORY, 0)?.handle;
    let mut names = Vec::new();
    handle.into_entries(|entry| {
        names.push((entry.name.to_vec(), entry.qid.kind.contains(QidType::DIR)));
    })?;
    names.sort_unstable();
    Ok(names)
}

/// Writes the input into a file, which is made if it is missing; what is beyond stays as it is.
pub(crate) fn put(
    session: &Arc<Session>,
    path: &[u8],
    extent: Extent,
    input: Option<&mut dyn Source>,
) -> std::result::Result<(), Trouble> {
    let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
    let file = RemoteFile::new(session.open(At::root(path), flags, 0o666 & !umask())?);
    let mut at = extent.start;
    let mut left = extent.size;
    let mut piece = Vec::new();
    if let Some(input) = input {
        while left != Some(0) && input.next(&mut piece).map_err(Trouble::Input)? {
            let most = left.map_or(piece.len(), |left| {
                usize::try_from(left).unwrap_or(usize::MAX).min(piece.len())
            });
            let mut data = &piece[..most];
            while !data.is_empty() {
                let count = file.write_at(data, at)?;
                if count == 0 {
                    return Err(Trouble::Service(ClientError::Refused(Errno::EIO)));
                }
                at += count as u64;
                left = left.map(|left| left - count as u64);
                data = &data[count..];
            }
        }
    }
    Ok(file.finish()?)
}

/// Why a `put` was not done.
pub(crate) enum Trouble {
    Service(ClientError),
    Input(String),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        Self::Service(error)
    }
}

impl Trouble {
    pub(crate) fn answer(self, kind: &str, name: &str) -> Answer {
        match self {
            Self::Service(error) => refused(format!("opening {kind} '{name}' failed"), &error),
            Self::Input(text) => Answer::failed(format!("reading the input failed: {text}")),
        }
    }
}

/// Opens a file to read a part of it.
pub(crate) fn get(session: &Arc<Session>, path: &[u8], extent: Extent) -> client::Result<Reading> {
    let opened = session.open(At::root(path), OpenFlags::empty(), 0)?;
    if opened.attributes.is_directory() {
        opened.handle.close();
        return Err(ClientError::Refused(Errno::EISDIR));
    }
    let file = RemoteFile::new(opened);
    Ok(Reading { file, at: extent.start, left: extent.size, ended: false })
}

/// A list as SCDC has it: how many, and each behind a bar.
pub(crate) fn listed(names: impl ExactSizeIterator<Item = Vec<u8>>) -> Answer {
    let mut text = format!("{}|", names.len()).into_bytes();
    for name in names {
        text.extend_from_slice(&name);
        text.push(b'|');
    }
    Answer::done(text)
}

fn umask() -> u32 {
    // umask(2) only sets; /proc tells without a moment in which files of other threads get the wrong mode.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    field.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
}

impl Files {
    pub(crate) fn open(session: &Arc<Session>, names: &[&[u8]]) -> Result<Self> {
        let (base, within) =
            names.split_first().map_or((&[][..], &[][..]), |(base, rest)| (*base, rest));
        let files =
            Self { session: Arc::clone(session), base: base.to_vec(), within: within.join(&b'/') };
        match session.stat(At::root(&files.path()), true) {
            Ok(found) if found.is_directory() => Ok(files),
            Ok(_) | Err(ClientError::Refused(Errno::ENOENT | Errno::ENOTDIR)) => {
                if files.within.is_empty() {
                    return Err(Error::refused("no matching provider found"));
                }
                let within = String::from_utf8_lossy(&files.within).into_owned();
                Err(Error::refused(format!("opening dir '/{within}' failed")))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn path(&self) -> Vec<u8> {
        let parts = [&self.base[..], &self.within[..]];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&b'/')
    }

    pub(crate) fn run(&mut self, line: &[u8], input: Option<&mut dyn Source>) -> Done {
        let Ok(line) = std::str::from_utf8(line) else {
            return Ok((Answer::failed("the command is no text in UTF-8"), None));
        };
        let (word, rest) = split(line);
        let answer = match word {
            "cd" => self.change(rest),
            "pwd" => Answer::done(self.within.clone()),
            "ls" => match list(&self.session, &self.path()) {
                Ok(names) => listed(names.into_iter().map(|(name, directory)| {
                    [if directory { b"d:" } else { &b"f:"[..] }, &name].concat()
                })),
                Err(error) => refused("listing the directory failed".to_owned(), &error),
            },
            "info" => self.info(rest),
            "mkd" => {
                let made = self.outside(rest).or_else(|| {
                    let path = below(&self.path(), rest);
                    self.session.make_directory(At::root(&path), 0o777 & !umask()).err()
                });
                match made {
                    None => Answer::done(""),
                    Some(error) => refused(format!("making dir '{rest}' failed"), &error),
                }
            }
            "rm" => match self.outside(rest).or_else(|| self.remove(rest).err()) {
                None => Answer::done(""),
                Some(error) => refused(format!("removing file '{rest}' failed"), &error),
            },
            "put" | "get" => {
                let (name, bytes) = split(rest);
                let extent = match Extent::parse(bytes) {
                    Ok(extent) => extent,
                    Err(text) => return Ok((Answer::failed(text), None)),
                };
                if let Some(error) = self.outside(name) {
                    return Ok((refused(format!("opening file '{name}' failed"), &error), None));
                }
                let path = below(&self.path(), name);
                if word == "put" {
                    match put(&self.session, &path, extent, input) {
                        Ok(()) => Answer::done(""),
                        Err(trouble) => trouble.answer("file", name),
                    }
                } else {
                    match get(&self.session, &path, extent) {
                        Ok(reading) => return Ok((Answer::done(""), Some(reading))),
                        Err(error) => refused(format!("opening file '{name}' failed"), &error),
                    }
                }
            }
            _ => Answer::failed(format!("command '{word}' not implemented")),
        };
        Ok((answer, None))
    }

    /// What is wrong with a name that is missing, or leads out of the dataset.
    fn outside(&self, name: &str) -> Option<ClientError> {
        let wrong = name.split('/').all(str::is_empty) || leads_up(name);
        wrong.then_some(ClientError::Refused(Errno::ENOENT))
    }

    fn remove(&self, name: &str) -> client::Result<()> {
        let path = below(&self.path(), name);
        match self.session.remove(At::root(&path), false) {
            Err(ClientError::Refused(Errno::EISDIR)) => self.session.remove(At::root(&path), true),
            other => other,
        }
    }

    fn change(&mut self, to: &str) -> Answer {
        // From the base, or from here.
        let within = match to.starts_with('/') || to.is_empty() {
            true => below(b"", to),
            false => below(&self.within, to),
        };
        let shown = String::from_utf8_lossy(&within).into_owned();
        let failed = format!("opening dir '/{shown}' failed");
        if leads_up(to) {
            return Answer::failed(failed);
        }
        let path = below(&self.base, &shown);
        match self.session.stat(At::root(&path), true) {
            Ok(found) if found.is_directory() => {
                self.within = within;
                Answer::done("")
            }
            Ok(_) => Answer::failed(failed),
            Err(error) => refused(failed, &error),
        }
    }

    fn info(&self, name: &str) -> Answer {
        if leads_up(name) {
            return Answer::done(format!("entry '{name}' not found"));
        }
        let path = below(&self.path(), name);
        // Own writes count.
        self.session.files().settle_all();
        match self.session.stat(At::root(&path), true) {
            Ok(found) if found.is_directory() => match list(&self.session, &path) {
                Ok(names) => Answer::done(format!("entries: {}", names.len())),
                Err(error) => refused(format!("listing '{name}' failed"), &error),
            },
            Ok(found) => Answer::done(format!("entry '{name}', size: {}", found.size)),
            Err(ClientError::Refused(Errno::ENOENT | Errno::ENOTDIR)) => {
                Answer::done(format!("entry '{name}' not found"))
            }
            Err(error) => refused(format!("entry '{name}'"), &error),
        }
    }
}
