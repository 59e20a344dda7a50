//! What is known of the replicas beyond their bytes: which of them are up to date, and with which
//! layout they were written. It is kept in `state.toml`, beside the log of intents.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::file::{File, Surroundings};

/// The format of the file that this code writes.
const FORMAT: u32 = 2;

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

impl Condition {
    /// That of a replica of which nothing is known.
    pub(crate) fn not_made() -> Self {
        Self::Stale { reason: "it was not made yet".to_owned() }
    }
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
    /// What the views mean whose numbers the intents have.
    pub(crate) views: Vec<u128>,
    /// What the variables mean whose numbers the intents have.
    pub(crate) variables: u128,
    pub(crate) replicas: BTreeMap<String, Known>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "format")]
    _format: u32,
    views: Vec<String>,
    variables: String,
    #[serde(default)]
    replica: Vec<Entry>,
}

/// All that every format has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// The first format had one number for all views.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    format: u32,
    #[serde(rename = "views")]
    _views: String,
    #[serde(default)]
    replica: Vec<Entry>,
}

impl From<First> for Document {
    fn from(First { format, replica, .. }: First) -> Self {
        // Of intents nobody knows what they are for: all is compared.
        Self { _format: format, views: Vec::new(), variables: "0".to_owned(), replica }
    }
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
        let parsed = |error: toml::de::Error| wrong(error.message().to_owned());
        let document = match toml::from_str::<Version>(&text).map_err(parsed)?.format {
            FORMAT => toml::from_str::<Document>(&text).map_err(parsed)?,
            1 => toml::from_str::<First>(&text).map_err(parsed)?.into(),
            format => return Err(wrong(format!("its format is {format}, not {FORMAT}"))),
        };
        let number = |text: &str, of: &str| {
            u128::from_str_radix(text, 16).map_err(|error| wrong(format!("{of}: {error}")))
        };
        let views = document.views.iter().map(|view| number(view, "views"));
        let views = views.collect::<Result<Vec<_>>>()?;
        let variables = number(&document.variables, "variables")?;
        let mut state = Self { views, variables, ..Self::default() };
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
        crate::file::replace(
            &path(directory),
            "state.toml.new",
            self.text().as_bytes(),
            None,
            around,
        )
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# Written by sluice. Which replicas are up to date, and which layout they have.\n",
        );
        let mut line = |args: std::fmt::Arguments<'_>| {
            writeln!(text, "{args}").expect("text grows");
        };
        line(format_args!("format = {FORMAT}"));
        let views = self.views.iter().map(|view| format!("\"{view:032x}\""));
        line(format_args!("views = [{}]", views.collect::<Vec<_>>().join(", ")));
        line(format_args!("variables = \"{:032x}\"", self.variables));
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
pub(crate) fn quoted(text: &str) -> String {
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
        let mut state = State { views: vec![99, 7], variables: 3, ..State::default() };
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
    fn the_first_format_is_read_and_its_intents_mean_everything() {
        let dir = tempfile::tempdir().unwrap();
        let text = "format = 1\nviews = \"1f\"\n[[replica]]\nname = \"x\"\nlayout = \"2\"\n";
        std::fs::write(dir.path().join("state.toml"), text).unwrap();
        let state = State::load(dir.path(), &Surroundings::default()).unwrap().unwrap();
        assert_eq!((state.views.len(), state.replicas["x"].layout), (0, 2));
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "format = 3",
            "format = 2\nviews = []",
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
