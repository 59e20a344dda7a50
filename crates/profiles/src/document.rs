//! A profile as a file: TOML, one table for each part of the model, units in the names.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sieve::Profile;
use sieve::model::{CopyCost, Device, MapCost, RequestCost};

use crate::error::{Error, Result};

/// A profile and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The parameters.
    pub profile: Profile,
    /// For which place they were measured, for people.
    pub place: String,
    /// When, for people: UTC, ISO 8601.
    pub measured: String,
    /// What made the measurement doubtful.
    pub warnings: Vec<String>,
}

impl Stored {
    /// Reads the text of a file; `file` is named in errors.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Model`].
    pub fn parse(text: &str, file: &Path) -> Result<Self> {
        let document: Document = toml::from_str(text).map_err(|source| Error::Malformed {
            path: file.to_path_buf(),
            source: Box::new(source),
        })?;
        let stored: Stored = document.into();
        let wrong = |source| Error::Model { path: file.to_path_buf(), source };
        stored.profile.check().map_err(wrong)?;
        Ok(stored)
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let body = toml::to_string(&Document::from(self));
        // Numbers and strings in tables: there is nothing that TOML could refuse.
        let body = body.expect("numbers and strings");
        format!(
            "# What an access costs there: parameters of the sieve's cost model, in nanoseconds and bytes.\n{body}"
        )
    }
}

/// Single figures first, then the parts of the model: TOML wants it so.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    place: String,
    measured: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    page_bytes: u64,
    vector_entry_ns: f64,
    lock_ns: f64,
    read: RequestCost,
    write: RequestCost,
    copy: CopyCost,
    /// Older files have none.
    #[serde(default)]
    map: MapCost,
    device: Device,
}

impl From<&Stored> for Document {
    fn from(stored: &Stored) -> Self {
        // Destructured, so that a new parameter cannot be forgotten here.
        let Profile { read, write, device, copy, map, vector_entry_ns, lock_ns, page_bytes } =
            stored.profile;
        Self {
            place: stored.place.clone(),
            measured: stored.measured.clone(),
            warnings: stored.warnings.clone(),
            page_bytes,
            vector_entry_ns,
            lock_ns,
            read,
            write,
            copy,
            map,
            device,
        }
    }
}

impl From<Document> for Stored {
    fn from(document: Document) -> Self {
        let Document { place, measured, warnings, page_bytes, vector_entry_ns, lock_ns, .. } =
            document;
        let Document { read, write, copy, map, device, .. } = document;
        let profile =
            Profile { read, write, device, copy, map, vector_entry_ns, lock_ns, page_bytes };
        Self { profile, place, measured, warnings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Stored {
        Stored {
            profile: Profile::default(),
            place: "here".into(),
            measured: "now".into(),
            warnings: vec![],
        }
    }

    #[test]
    fn a_file_reads_back_as_it_was() {
        let text = stored().to_text();
        assert_eq!(Stored::parse(&text, Path::new("f")).unwrap(), stored());
    }

    #[test]
    fn a_file_from_before_there_were_mappings_is_read() {
        let text = stored().to_text();
        let (before, map) = text.split_once("[map]").unwrap();
        let (_, behind) = map.split_once("\n\n").unwrap();
        let old = format!("{before}{behind}");
        assert!(!old.contains("fault_ns"), "{old}");
        assert_eq!(Stored::parse(&old, Path::new("f")).unwrap(), stored());
    }

    #[test]
    fn what_is_no_profile_is_refused_by_name() {
        let text = stored().to_text();
        for broken in [
            text.replace("lock_ns", "lock_nanos"),
            text.replace("[copy]", "[copying]"),
            text.replace("latency_ns = 80000.0", "latency_ns = \"fast\""),
            "nonsense".to_owned(),
        ] {
            let error = Stored::parse(&broken, Path::new("some.toml")).unwrap_err();
            assert!(matches!(error, Error::Malformed { .. }), "{error:?}");
            assert!(error.to_string().contains("some.toml"));
        }
        let negative = text.replace("latency_ns = 80000.0", "latency_ns = -1.0");
        let error = Stored::parse(&negative, Path::new("some.toml")).unwrap_err();
        assert!(matches!(error, Error::Model { .. }), "{error:?}");
    }
}
