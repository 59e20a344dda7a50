//! Which parameters the cost model is given.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use address::detect;
use anyhow::{Context, Result};
use measure::bench::simulated::{self, Model};
use profiles::{Place, Stored};
use sieve::Profile;

use crate::args::sieve::Parameters;
use crate::in_force::InForce;

/// Parameters, and where they come from, in words.
pub(super) struct Known {
    pub(super) profile: Profile,
    pub(super) origin: String,
}

/// The user's directory of profiles.
pub(super) fn directory() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    profiles::directory(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref())
        .context("neither XDG_CONFIG_HOME nor HOME is a directory to keep parameters in")
}

/// The place of a word of the command line, for which parameters are kept.
pub(super) fn place(text: &OsStr, in_force: &InForce) -> Result<Place> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = text.as_bytes();
    let cwd = std::env::current_dir().context("cannot tell the working directory")?;
    let endpoint = match detect(bytes) {
        Some(found) => Some(found.uri(bytes)?.endpoint),
        None => match in_force.settings.routes.resolve(cwd.as_os_str().as_bytes(), bytes) {
            address::Resolved::Remote(hit) => Some(hit.uri().endpoint),
            address::Resolved::Local | address::Resolved::LocalCleaned => None,
        },
    };
    match endpoint {
        Some(endpoint) => Ok(Place::Service(endpoint.to_string())),
        None => Place::of_path(Path::new(text)).with_context(|| {
            format!("cannot tell the file system of {}", Path::new(text).display())
        }),
    }
}

/// Finds what the flags ask for.
pub(super) fn known(
    parameters: &Parameters,
    in_force: &dyn Fn() -> Result<InForce>,
    default_place: &Path,
) -> Result<Known> {
    if let Some(name) = &parameters.profile {
        return named(name);
    }
    let asked = parameters.place.as_deref();
    let place = place(asked.unwrap_or(default_place.as_os_str()), &in_force()?)?;
    let stored = match directory() {
        Ok(directory) => profiles::load(&directory, &place)?,
        Err(_) => None,
    };
    Ok(match stored {
        Some(Stored { profile, measured, .. }) => {
            Known { profile, origin: format!("{place}, measured {measured}") }
        }
        None => Known {
            profile: Profile::default(),
            origin: format!("built in; `sluice sieve tune` measures those of {place}"),
        },
    })
}

fn named(name: &OsStr) -> Result<Known> {
    let profile = match name.to_str() {
        Some("default") => Profile::default(),
        Some("wr") => simulated::profile(&Model::Wr.cluster(2, 2 << 20)),
        Some("dkrz") => simulated::profile(&Model::Dkrz.cluster(2, 2 << 20)),
        _ => {
            let stored = profiles::read(Path::new(name))?;
            let origin = format!("{}, measured {}", stored.place, stored.measured);
            return Ok(Known { profile: stored.profile, origin });
        }
    };
    Ok(Known { profile, origin: name.to_string_lossy().into_owned() })
}
