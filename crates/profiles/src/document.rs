//! A profile as a file: TOML, one table for each part of the model, units in the names.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sieve::Profile;
use sieve::model::{CopyCost, Device, RequestCost};

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
    read: Request,
    write: Request,
    copy: Copy,
    device: Beyond,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    call_ns: f64,
    page_ns: f64,
    byte_ns: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    block_ns: f64,
    byte_ns: f64,
    far_byte_ns: f64,
    cache_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beyond {
    latency_ns: f64,
    byte_ns: f64,
    in_flight_max: u32,
    unit_bytes: u64,
    read_ahead_bytes: u64,
    servers: u32,
    stripe_bytes: u64,
    write_behind: bool,
}

impl From<RequestCost> for Request {
    fn from(RequestCost { call_ns, page_ns, byte_ns }: RequestCost) -> Self {
        Self { call_ns, page_ns, byte_ns }
    }
}

impl From<Request> for RequestCost {
    fn from(Request { call_ns, page_ns, byte_ns }: Request) -> Self {
        Self { call_ns, page_ns, byte_ns }
    }
}

impl From<&Stored> for Document {
    fn from(stored: &Stored) -> Self {
        // Destructured, so that a new parameter cannot be forgotten here.
        let Profile { read, write, device, copy, vector_entry_ns, lock_ns, page_bytes } =
            stored.profile;
        let CopyCost { block_ns, byte_ns, far_byte_ns, cache_bytes } = copy;
        Self {
            place: stored.place.clone(),
            measured: stored.measured.clone(),
            warnings: stored.warnings.clone(),
            page_bytes,
            vector_entry_ns,
            lock_ns,
            read: read.into(),
            write: write.into(),
            copy: Copy { block_ns, byte_ns, far_byte_ns, cache_bytes },
            device: Beyond::from(device),
        }
    }
}

impl From<Device> for Beyond {
    fn from(device: Device) -> Self {
        let Device {
            latency_ns,
            byte_ns,
            in_flight_max,
            unit_bytes,
            read_ahead_bytes,
            servers,
            stripe_bytes,
            write_behind,
        } = device;
        Self {
            latency_ns,
            byte_ns,
            in_flight_max,
            unit_bytes,
            read_ahead_bytes,
            servers,
            stripe_bytes,
            write_behind,
        }
    }
}

impl From<Beyond> for Device {
    fn from(beyond: Beyond) -> Self {
        let Beyond {
            latency_ns,
            byte_ns,
            in_flight_max,
            unit_bytes,
            read_ahead_bytes,
            servers,
            stripe_bytes,
            write_behind,
        } = beyond;
        Self {
            latency_ns,
            byte_ns,
            in_flight_max,
            unit_bytes,
            read_ahead_bytes,
            servers,
            stripe_bytes,
            write_behind,
        }
    }
}

impl From<Document> for Stored {
    fn from(document: Document) -> Self {
        let Copy { block_ns, byte_ns, far_byte_ns, cache_bytes } = document.copy;
        Self {
            profile: Profile {
                read: document.read.into(),
                write: document.write.into(),
                device: document.device.into(),
                copy: CopyCost { block_ns, byte_ns, far_byte_ns, cache_bytes },
                vector_entry_ns: document.vector_entry_ns,
                lock_ns: document.lock_ns,
                page_bytes: document.page_bytes,
            },
            place: document.place,
            measured: document.measured,
            warnings: document.warnings,
        }
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
