//! The configuration file, `sluice.toml`.
//!
//! ```toml
//! [routes]
//! "/far" = "scdc+tcp://host/base"
//!
//! [stores]                              # scdc:///data, in each program's own process
//! data = "/srv/data"
//! reference = { path = "/srv/reference", read_only = true }
//!
//! [client]
//! read_ahead_bytes = "16MiB"            # a number, or a text with a unit
//! write_behind_bytes = "16MiB"
//! msize_bytes = "1MiB"
//! reconnect_seconds = 15
//!
//! [serve]
//! listen = ["unix:/run/user/1000/sluice/data.sock", "tcp:127.0.0.1:5640"]
//! read_only = false
//!
//! [serve.stores]
//! data = "/srv/data"
//! scratch = "mem:"
//! behind = "scdc+tcp://login-node/base"
//!
//! [serve.limits]
//! connections_max = 1024
//! fids_max = 65536
//! idle_seconds = 0                      # 0: never
//! ```
//!
//! A key that does not exist is an error that names file, line and the nearest key that does.

mod table;

use std::path::{Path, PathBuf};

use crate::{
    AddressError, ClientOptions, ConfigFault, Endpoint, Route, Routes, StorePlace, StoreSpec, Uri,
};
use table::Table;

/// What a configuration file says. What it does not say is `None` or empty, so that flags and defaults show through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// `[routes]`.
    pub routes: Routes,
    /// `[stores]`.
    pub stores: Vec<StoreSpec>,
    /// `[client]`.
    pub client: ClientKeys,
    /// `[serve]`.
    pub serve: ServeKeys,
}

/// `[client]`, key by key. The flags of `sluice run` fill one of these, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientKeys {
    /// See [`ClientOptions::read_ahead_bytes`].
    pub read_ahead_bytes: Option<u64>,
    /// See [`ClientOptions::write_behind_bytes`].
    pub write_behind_bytes: Option<u64>,
    /// See [`ClientOptions::msize_bytes`].
    pub msize_bytes: Option<u32>,
    /// See [`ClientOptions::reconnect_seconds`].
    pub reconnect_seconds: Option<u32>,
}

impl ClientKeys {
    /// The keys that are set here, and `weaker`'s where they are not.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            read_ahead_bytes: self.read_ahead_bytes.or(weaker.read_ahead_bytes),
            write_behind_bytes: self.write_behind_bytes.or(weaker.write_behind_bytes),
            msize_bytes: self.msize_bytes.or(weaker.msize_bytes),
            reconnect_seconds: self.reconnect_seconds.or(weaker.reconnect_seconds),
        }
    }

    /// The options, with defaults where no key is set.
    pub fn options(self) -> ClientOptions {
        let default = ClientOptions::default();
        ClientOptions {
            read_ahead_bytes: self.read_ahead_bytes.unwrap_or(default.read_ahead_bytes),
            write_behind_bytes: self.write_behind_bytes.unwrap_or(default.write_behind_bytes),
            msize_bytes: self.msize_bytes.unwrap_or(default.msize_bytes),
            reconnect_seconds: self.reconnect_seconds.unwrap_or(default.reconnect_seconds),
        }
    }
}

/// `[serve]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServeKeys {
    /// Where to listen.
    pub listen: Vec<Endpoint>,
    /// `[serve.stores]`.
    pub stores: Vec<StoreSpec>,
    /// True if every store is read-only.
    pub read_only: bool,
    /// `[serve.limits]`.
    pub limits: Limits,
}

/// `[serve.limits]`, key by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most connections at a time.
    pub connections_max: Option<u32>,
    /// Most fids of one connection.
    pub fids_max: Option<u32>,
    /// Greatest message, in bytes.
    pub msize_bytes: Option<u32>,
    /// Seconds after which a silent connection is closed; 0: never.
    pub idle_seconds: Option<u32>,
}

impl Config {
    /// Where a configuration file is looked for, first to last: `sluice.toml` in the working directory, then the user's.
    /// `--config` and `$SLUICE_CONFIG` come before, and must exist if given.
    pub fn search_order(
        cwd: &Path,
        xdg_config_home: Option<&Path>,
        home: Option<&Path>,
    ) -> Vec<PathBuf> {
        let user = match (xdg_config_home.filter(|dir| dir.is_absolute()), home) {
            (Some(dir), _) => Some(dir.to_path_buf()),
            (None, home) => home.map(|home| home.join(".config")),
        };
        let user = user.map(|dir| dir.join("sluice").join("sluice.toml"));
        std::iter::once(cwd.join("sluice.toml")).chain(user).collect()
    }

    /// Parses the text of `file`, whose directory is where relative directories in it begin.
    ///
    /// # Errors
    /// [`AddressError::Config`] with line and column.
    pub fn parse(text: &str, file: &Path) -> Result<Self, AddressError> {
        table::with_root(text, file, |root| {
            root.only(&["routes", "stores", "client", "serve"])?;
            let mut config = Self::default();
            if let Some(table) = root.table("routes")? {
                config.routes = routes(&table)?;
            }
            if let Some(table) = root.table("stores")? {
                config.stores = stores(&table, file)?;
            }
            if let Some(table) = root.table("client")? {
                config.client = client(&table)?;
            }
            if let Some(table) = root.table("serve")? {
                config.serve = serve(&table, file)?;
            }
            Ok(config)
        })
    }
}

fn routes(table: &Table<'_>) -> Result<Routes, AddressError> {
    let mut routes = Vec::new();
    for entry in table.entries() {
        let uri = entry.text("a URI")?;
        let uri = Uri::parse(uri.as_bytes()).map_err(|error| entry.address(error))?;
        routes.push(Route::new(entry.key.as_bytes(), uri).map_err(|error| entry.address(error))?);
    }
    Routes::new(routes).map_err(|error| table.fault(ConfigFault::Address(Box::new(error))))
}

fn stores(table: &Table<'_>, file: &Path) -> Result<Vec<StoreSpec>, AddressError> {
    let mut stores = Vec::new();
    for entry in table.entries() {
        let (place, read_only) = match entry.as_table() {
            Some(detail) => {
                detail.only(&["path", "read_only"])?;
                let Some(path) = detail.get("path") else {
                    return Err(entry.fault(ConfigFault::MissingKey {
                        table: entry.key.to_owned(),
                        key: "path",
                    }));
                };
                (
                    path.text("a directory, `mem:` or a URI")?,
                    detail.flag("read_only")?.unwrap_or(false),
                )
            }
            None => (entry.text("a directory, `mem:`, a URI or a table with `path`")?, false),
        };
        let place = StorePlace::parse(place.as_bytes()).map_err(|error| entry.address(error))?;
        let missing = || entry.address(AddressError::StorePlace { name: entry.key.to_owned() });
        let place = match place.ok_or_else(missing)? {
            StorePlace::Dir(dir) => StorePlace::Dir(beside(file, dir)),
            other @ (StorePlace::Mem | StorePlace::Relay(_)) => other,
        };
        stores.push(
            StoreSpec::new(entry.key.as_bytes(), place, read_only)
                .map_err(|error| entry.address(error))?,
        );
    }
    Ok(stores)
}

fn beside(file: &Path, path: PathBuf) -> PathBuf {
    file.parent().map_or_else(|| path.clone(), |dir| dir.join(&path))
}

fn client(table: &Table<'_>) -> Result<ClientKeys, AddressError> {
    table.only(&["read_ahead_bytes", "write_behind_bytes", "msize_bytes", "reconnect_seconds"])?;
    Ok(ClientKeys {
        read_ahead_bytes: table.size("read_ahead_bytes", 0, 1 << 40)?,
        write_behind_bytes: table.size("write_behind_bytes", 0, 1 << 40)?,
        msize_bytes: msize(table)?,
        reconnect_seconds: table.count("reconnect_seconds", 0)?,
    })
}

fn msize(table: &Table<'_>) -> Result<Option<u32>, AddressError> {
    let (min, max) = ClientOptions::MSIZE_BYTES_RANGE;
    let size = table.size("msize_bytes", min.into(), max.into())?;
    // In range, hence below 2^32.
    Ok(size.map(|bytes| bytes as u32))
}

fn serve(table: &Table<'_>, file: &Path) -> Result<ServeKeys, AddressError> {
    table.only(&["listen", "read_only", "stores", "limits"])?;
    let mut serve =
        ServeKeys { read_only: table.flag("read_only")?.unwrap_or(false), ..ServeKeys::default() };
    if let Some(entry) = table.get("listen") {
        for address in entry.texts("a list of addresses")? {
            let listen =
                Endpoint::parse_listen(address.as_bytes()).map_err(|error| entry.address(error))?;
            serve.listen.push(listen);
        }
    }
    if let Some(table) = table.table("stores")? {
        serve.stores = stores(&table, file)?;
    }
    if let Some(table) = table.table("limits")? {
        table.only(&["connections_max", "fids_max", "msize_bytes", "idle_seconds"])?;
        serve.limits = Limits {
            connections_max: table.count("connections_max", 1)?,
            fids_max: table.count("fids_max", 1)?,
            msize_bytes: msize(&table)?,
            idle_seconds: table.count("idle_seconds", 0)?,
        };
    }
    Ok(serve)
}

#[cfg(test)]
mod tests;
