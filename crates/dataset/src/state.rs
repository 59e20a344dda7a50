//! What is known of the replicas beyond their bytes: which of them are up to date, and with which
//! layout they were written. It is kept in `state.toml`, beside the log of intents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::file::{File, Surroundings};

/// The format of the file that this code writes.
const FORMAT: u32 = 1;

/// Whether a replica may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It holds what was last written, or will as soon as what is due was applied.
    Fresh,
    /// It does not, and is neither read nor written until it is rebuilt.
    Stale {
        /// Since when it does not, in words.
        reason: String,
    },
}

/// What is known of one replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// What its bytes mean; see [`crate::fingerprint`].
    pub(crate) layout: u128,
    pub(crate) condition: Condition,
    /// When its files were written last, as far as those know who keep it.
    pub(crate) written: Option<p9::Time>,
}

/// What is known of all of them, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct State {
    /// What the intents were written for.
    pub(crate) views: u128,
    pub(crate) replicas: BTreeMap<String, Known>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    views: String,
    #[serde(default)]
    replica: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    layout: String,
    stale: Option<String>,
    /// Seconds and nanoseconds.
    written: Option<(u64, u64)>,
}

impl State {
    /// Reads the file; none if there is none, which is how a new dataset is told.
    pub(crate) fn load(directory: &Path, around: &Surroundings) -> Result<Option<Self>> {
        let path = path(directory);
        let Some(file) = File::open(&path, around)? else { return Ok(None) };
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
        file.read_at(&mut bytes, 0)?;
        let wrong = |why: String| Error::State { path: path.clone(), why };
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let document: Document =
            toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        if document.format != FORMAT {
            return Err(wrong(format!("its format is {}, not {FORMAT}", document.format)));
        }
        let number = |text: &str, of: &str| {
            u128::from_str_radix(text, 16).map_err(|error| wrong(format!("{of}: {error}")))
        };
        let views = number(&document.views, "views")?;
        let mut state = Self { views, ..Self::default() };
        for Entry { name, layout, stale, written } in document.replica {
            let layout = number(&layout, &format!("layout of `{name}`"))?;
            let condition = match stale {
                Some(reason) => Condition::Stale { reason },
                None => Condition::Fresh,
            };
            let written = written.map(|(seconds, nanoseconds)| p9::Time { seconds, nanoseconds });
            state.replicas.insert(name, Known { layout, condition, written });
        }
        Ok(Some(state))
    }

    /// Replaces the file: after a crash it is the old one or the new one.
    pub(crate) fn save(&self, directory: &Path, around: &Surroundings) -> Result<()> {
        let (new, path) = (directory.join("state.toml.new"), path(directory));
        // One that was not finished.
        match around.change("unlink", &new, || rustix::fs::unlink(&new)) {
            Ok(()) => {}
            Err(error) if error.to_errno() == p9::Errno::ENOENT => {}
            Err(error) => return Err(error),
        }
        let file = File::create(&new, around)?;
        file.write_at(self.text().as_bytes(), 0)?;
        file.sync()?;
        around.change("rename", &path, || rustix::fs::rename(&new, &path))?;
        around.sync_directory(directory)
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# Written by sluice. Which replicas are up to date, and which layout they have.\n",
        );
        let mut line = |args: std::fmt::Arguments<'_>| {
            writeln!(text, "{args}").expect("text grows");
        };
        line(format_args!("format = {FORMAT}"));
        line(format_args!("views = \"{:032x}\"", self.views));
        for (name, Known { layout, condition, written }) in &self.replicas {
            line(format_args!("\n[[replica]]\nname = {}", quoted(name)));
            line(format_args!("layout = \"{layout:032x}\""));
            if let Condition::Stale { reason } = condition {
                line(format_args!("stale = {}", quoted(reason)));
            }
            if let Some(p9::Time { seconds, nanoseconds }) = written {
                line(format_args!("written = [{seconds}, {nanoseconds}]"));
            }
        }
        text
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("state.toml")
}

/// A basic string of TOML.
///
/// # Source
/// TOML 1.0.0, "String".
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => {
                write!(quoted, "\\u{:04X}", u32::from(character)).expect("text grows");
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let around = Surroundings::default();
        assert_eq!(State::load(dir.path(), &around).unwrap(), None);
        let mut state = State { views: 99, ..State::default() };
        state.save(dir.path(), &around).unwrap();
        assert_eq!(State::load(dir.path(), &around).unwrap(), Some(state.clone()));
        let stale = Condition::Stale { reason: "said \"no\"\n\\ \u{7f} µ".into() };
        state
            .replicas
            .insert("a b".into(), Known { layout: u128::MAX - 1, condition: stale, written: None });
        state.replicas.insert(
            "\"".into(),
            Known {
                layout: 7,
                condition: Condition::Fresh,
                written: Some(p9::Time { seconds: 1 << 33, nanoseconds: 999_999_999 }),
            },
        );
        state.save(dir.path(), &around).unwrap();
        assert_eq!(State::load(dir.path(), &around).unwrap(), Some(state));
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "format = 2",
            "format = 1\nmore = 3",
            "",
            "[[replica]]",
            "format = 1\nviews = \"0\"\n[[replica]]\nname = \"x\"\nlayout = \"g\"",
        ] {
            std::fs::write(dir.path().join("state.toml"), text).unwrap();
            let error = State::load(dir.path(), &Surroundings::default()).unwrap_err();
            assert!(error.to_string().contains("state.toml"), "{text}: {error}");
        }
    }
}
