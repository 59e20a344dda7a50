//! What is in force: flags over the settings of an enclosing `sluice run` over the configuration file over defaults.

use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use address::config::{ClientKeys, Config};
use address::{Route, Routes, Settings, StorePlace, StoreSpec};
use anyhow::{Context, Result};

use crate::args::Common;

/// Settings and where they come from.
pub(crate) struct InForce {
    /// What programs that are run are told, and what the commands themselves follow.
    pub(crate) settings: Settings,
    /// What the file says, `[serve]` included.
    pub(crate) config: Config,
    /// Where it was found.
    pub(crate) source: Source,
    /// Whether an enclosing `sluice run` added settings.
    pub(crate) inherited: bool,
}

/// Which configuration file is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// None was found.
    None,
    /// `--config`.
    Flag(PathBuf),
    /// `$SLUICE_CONFIG`.
    Variable(PathBuf),
    /// The working directory or the user's configuration directory.
    Found(PathBuf),
}

impl Source {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Flag(path) | Self::Variable(path) | Self::Found(path) => Some(path),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(
                "none, all as by default; ./sluice.toml or ~/.config/sluice/sluice.toml would be read",
            ),
            Self::Flag(path) => write!(f, "{} (--config)", path.display()),
            Self::Variable(path) => write!(f, "{} ($SLUICE_CONFIG)", path.display()),
            Self::Found(path) => write!(f, "{}", path.display()),
        }
    }
}

impl InForce {
    /// Reads the configuration file and lays the flags over it.
    pub(crate) fn new(common: &Common) -> Result<Self> {
        let cwd = std::env::current_dir()
            .context("cannot tell the working directory; change to one that exists")?;
        let (source, config) = read_config(common.config.as_deref(), &cwd)?;
        let outer = match std::env::var_os(Settings::VARIABLE) {
            Some(value) => Some(Settings::from_env(value.as_bytes())?),
            None => None,
        };
        let inherited = outer.is_some();
        let outer = outer.unwrap_or_default();

        let flags = common
            .map
            .iter()
            .map(|text| Route::parse(text.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let routes = layered([&Routes::new(flags)?, &outer.routes, &config.routes])?;
        let mut stores = Vec::new();
        for text in &common.store {
            stores.push(absolute(StoreSpec::parse(text.as_bytes(), false)?, &cwd));
        }
        StoreSpec::check_distinct(&stores)?;
        for weaker in outer.stores.iter().chain(&config.stores) {
            if stores.iter().all(|store| store.name != weaker.name) {
                stores.push(absolute(weaker.clone(), &cwd));
            }
        }
        let flags = ClientKeys {
            read_ahead_bytes: common.client.read_ahead_bytes,
            write_behind_bytes: common.client.write_behind_bytes,
            msize_bytes: common.client.msize_bytes,
            reconnect_seconds: common.client.reconnect_seconds,
        };
        let outer_keys = ClientKeys {
            read_ahead_bytes: Some(outer.client.read_ahead_bytes).filter(|_| inherited),
            write_behind_bytes: Some(outer.client.write_behind_bytes).filter(|_| inherited),
            msize_bytes: Some(outer.client.msize_bytes).filter(|_| inherited),
            reconnect_seconds: Some(outer.client.reconnect_seconds).filter(|_| inherited),
        };
        let client = flags.or(outer_keys).or(config.client).options();
        let (detours, objects) = (outer.detours, outer.objects);
        let settings = Settings { routes, stores, detours, objects, client };
        Ok(Self { settings, config, source, inherited })
    }
}

/// Routes of several layers, the strongest first; a stronger route hides a weaker one of the same prefix.
fn layered(layers: [&Routes; 3]) -> Result<Routes> {
    let mut routes: Vec<Route> = Vec::new();
    for route in layers.into_iter().flatten() {
        if routes.iter().all(|stronger| stronger.prefix() != route.prefix()) {
            routes.push(route.clone());
        }
    }
    Ok(Routes::new(routes)?)
}

/// The same store with an absolute path: the program may change its working directory.
pub(crate) fn absolute(mut store: StoreSpec, cwd: &Path) -> StoreSpec {
    if let StorePlace::Dir(dir) | StorePlace::Dataset(dir) = &mut store.place {
        let clean = address::clean_absolute(cwd.join(&dir).as_os_str().as_bytes());
        // `..` after a symbolic link must not be folded by its text.
        if !dir.components().any(|part| part == std::path::Component::ParentDir) {
            *dir = PathBuf::from(std::ffi::OsString::from_vec(clean));
        } else {
            *dir = cwd.join(&dir);
        }
    }
    store
}

fn read_config(flag: Option<&Path>, cwd: &Path) -> Result<(Source, Config)> {
    let variable = std::env::var_os("SLUICE_CONFIG").filter(|value| !value.is_empty());
    let source = match (flag, variable) {
        (Some(path), _) => Source::Flag(path.to_path_buf()),
        (None, Some(path)) => Source::Variable(path.into()),
        (None, None) => {
            let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let places = Config::search_order(cwd, xdg.as_deref(), home.as_deref());
            // A file that is there but cannot be read is in force and must be complained about.
            let found = places.into_iter().find(|path| path.symlink_metadata().is_ok());
            found.map_or(Source::None, Source::Found)
        }
    };
    let Some(path) = source.path() else {
        return Ok((source, Config::default()));
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration file {source}"))?;
    let path = if path.is_absolute() { path.to_path_buf() } else { cwd.join(path) };
    let config = Config::parse(&text, &path)?;
    Ok((source, config))
}
