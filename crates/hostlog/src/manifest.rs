//! `log.toml`: what a log is, for people and for whoever opens it.

use std::fmt::Write;
use std::io;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::format::VERSION;
use crate::media::Media;
use crate::names::MANIFEST;

/// What the owner of a log says of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// Where the log is drained to, as given by the user.
    pub target: String,
    /// The run that it belongs to.
    pub run: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
}

/// `log.toml` as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What its owner said of it.
    pub description: Description,
    /// A number that the log's files share and those of other logs do not.
    pub log: u64,
    /// The size of a segment.
    pub segment_bytes: u64,
}

#[derive(Deserialize)]
struct Version {
    format: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(rename = "format")]
    _format: u64,
    log: String,
    segment_bytes: u64,
    target: String,
    run: String,
    created: u64,
}

impl Manifest {
    /// Reads `log.toml`.
    ///
    /// # Errors
    /// `Missing`, `Version`, `Manifest`, `System`.
    pub fn read(media: &dyn Media) -> Result<Self> {
        let place = media.place();
        let system = |source| Error::system("reading", &place, MANIFEST, source);
        let file = match media.open(MANIFEST, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing { place });
            }
            Err(source) => return Err(system(source)),
        };
        let len = file.size().map_err(system)?;
        let wrong = |why: String| Error::Manifest { path: place.join(MANIFEST), why };
        let len = usize::try_from(len).ok().filter(|len| *len <= 1 << 20);
        let len = len.ok_or_else(|| wrong("it is larger than a mebibyte".to_owned()))?;
        let mut bytes = vec![0; len];
        file.read_at(&mut bytes, 0).map_err(system)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let found: Version = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if found.format != u64::from(VERSION) {
            return Err(Error::Version { place, found: found.format });
        }
        let text: Text = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let log = u64::from_str_radix(&text.log, 16)
            .map_err(|_| wrong(format!("log = \"{}\" is no hexadecimal number", text.log)))?;
        let description = Description { target: text.target, run: text.run, created: text.created };
        Ok(Self { description, log, segment_bytes: text.segment_bytes })
    }

    /// Writes `log.toml`, as a whole.
    ///
    /// # Errors
    /// `System`.
    pub(crate) fn write(&self, media: &dyn Media) -> Result<()> {
        let text = format!(
            "# A log of Sluice: see docs/LOGFORMAT.md. `sluice log status` reads it.\n\
             format = {VERSION}\nlog = \"{:016x}\"\nsegment_bytes = {}\ntarget = {}\nrun = {}\n\
             created = {}\n",
            self.log,
            self.segment_bytes,
            quoted(&self.description.target),
            quoted(&self.description.run),
            self.description.created,
        );
        media
            .replace(MANIFEST, text.as_bytes())
            .map_err(|source| Error::system("writing", &media.place(), MANIFEST, source))
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
