//! Profiles: measured parameters of the sieve's cost model, kept.
//!
//! What an access costs depends on the place where the file is, and is measured once for each
//! place: by `sluice sieve tune`. Whoever plans accesses later looks up what was measured:
//!
//! 1. [`Place::of_path`] says which place a file is in: a mounted file system. [`Place::Service`]
//!    is the other kind, known by its address.
//! 2. [`directory`] is where this user's profiles are, one file for each place.
//! 3. [`load`] reads the one for a place, [`save`] writes it. A file is TOML, made to be read and
//!    changed by people ([`Stored`]).
#![forbid(unsafe_code)]

mod document;
mod error;
mod place;

use std::path::{Path, PathBuf};

pub use document::Stored;
pub use error::{Error, Result};
pub use place::Place;

/// Where the profiles of a user are, by the values of the environment variables `XDG_CONFIG_HOME`
/// and `HOME`; none when neither is a usable directory.
///
/// # Source
/// XDG Base Directory Specification 0.8: relative paths are to be ignored.
#[must_use]
pub fn directory(xdg_config_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let absolute = |path: Option<&Path>| path.filter(|path| path.is_absolute()).map(PathBuf::from);
    let config = absolute(xdg_config_home).or_else(|| Some(absolute(home)?.join(".config")))?;
    Some(config.join("sluice").join("sieve"))
}

/// Reads the profile that was measured for a place; none if none was.
///
/// # Errors
/// [`Error::Io`] when the file is there but cannot be read, [`Error::Malformed`] and
/// [`Error::Model`] when it holds no profile.
pub fn load(directory: &Path, place: &Place) -> Result<Option<Stored>> {
    let file = directory.join(place.file_name());
    match read(&file) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Reads a profile from a file.
///
/// # Errors
/// As [`load`]; also when the file does not exist.
pub fn read(file: &Path) -> Result<Stored> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        what: "read",
        path: file.to_path_buf(),
        source,
    })?;
    Stored::parse(&text, file)
}

/// Keeps a profile for a place, in place of an older one; returns the file's name. The file is
/// replaced as a whole, so that nobody ever reads half of it.
///
/// # Errors
/// [`Error::Io`].
pub fn save(directory: &Path, place: &Place, stored: &Stored) -> Result<PathBuf> {
    let file = directory.join(place.file_name());
    let failed = |source| Error::Io { what: "write", path: file.clone(), source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let part = file.with_extension(format!("part-{}", std::process::id()));
    let written =
        std::fs::write(&part, stored.to_text()).and_then(|()| std::fs::rename(&part, &file));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&part);
        return Err(failed(error));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sieve::Profile;

    #[test]
    fn the_directory_follows_the_environment() {
        let dir = |xdg: Option<&str>, home: Option<&str>| {
            directory(xdg.map(Path::new), home.map(Path::new))
        };
        assert_eq!(dir(Some("/x"), Some("/h")), Some("/x/sluice/sieve".into()));
        assert_eq!(dir(Some("relative"), Some("/h")), Some("/h/.config/sluice/sieve".into()));
        assert_eq!(dir(None, None), None);
    }

    #[test]
    fn what_was_saved_is_loaded_for_its_place_only() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::Service("scdc+tcp://localhost:5640".into());
        assert_eq!(load(dir.path(), &place).unwrap(), None);
        let mut profile = Profile::default();
        profile.device.latency_ns = 123_456.75;
        let stored = Stored {
            profile,
            place: place.to_string(),
            measured: "today".into(),
            warnings: vec!["noisy".into()],
        };
        let file = save(&dir.path().join("new"), &place, &stored).unwrap();
        assert_eq!(load(&dir.path().join("new"), &place).unwrap(), Some(stored.clone()));
        assert_eq!(read(&file).unwrap(), stored);
        let other = Place::Service("scdc+tcp://localhost:5641".into());
        assert_eq!(load(&dir.path().join("new"), &other).unwrap(), None);
        // Nothing but the profile is left behind.
        assert_eq!(std::fs::read_dir(dir.path().join("new")).unwrap().count(), 1);
    }
}
