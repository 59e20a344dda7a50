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
//! [sieve]
//! mpi = "adaptive"                      # strided reads and writes of MPI programs
//!
//! [log]                                 # `sluice run` writes through a log on this node's disk
//! dir = "/nvme/log"
//! to = "scdc+tcp://host/base"           # or a directory
//! size_max_bytes = "16GiB"
//! bytes_per_second = "0"                # 0: as fast as it goes
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
//! A key that does not exist is an error that names file, line and the nearest key that does. All errors of a file are
//! told at once.

pub mod table;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{
    AddressError, ClientOptions, ConfigErrors, ConfigFault, Endpoint, Route, Routes, StorePlace,
    StoreSpec, Uri,
};
use table::{Entry, Table};

/// What a configuration file says. What it does not say is `None` or empty, so that flags and defaults show through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// `[routes]`.
    pub routes: Routes,
    /// `[stores]`.
    pub stores: Vec<StoreSpec>,
    /// `[client]`.
    pub client: ClientKeys,
    /// `[sieve]`.
    pub sieve: SieveKeys,
    /// `[log]`.
    pub log: LogKeys,
    /// `[serve]`.
    pub serve: ServeKeys,
}

/// `[log]`: the host log of `sluice run`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogKeys {
    /// The directory that holds the log.
    pub dir: Option<PathBuf>,
    /// Where it is drained to: a directory, or the text of a URI.
    pub to: Option<PathBuf>,
    /// The size that it may have.
    pub size_max_bytes: Option<u64>,
    /// How fast it may be drained; 0: as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

/// `[sieve]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SieveKeys {
    /// How strided reads and writes of MPI programs are carried out where their hints do not say it.
    pub mpi: Option<SieveMethod>,
}

/// Who carries out non-contiguous accesses, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SieveMethod {
    /// The MPI library.
    Disable,
    /// What the cost model finds cheapest.
    Adaptive,
    /// Every block by a call of its own.
    Naive,
    /// Buffers filled from the next wanted byte on.
    Romio,
    /// The thesis's simple performance model.
    SimplePm,
    /// The same, ending with the last wanted byte.
    Extent,
    /// All of the file.
    ScanFile,
}

impl SieveMethod {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Disable,
        Self::Adaptive,
        Self::Naive,
        Self::Romio,
        Self::SimplePm,
        Self::Extent,
        Self::ScanFile,
    ];

    /// As it is written in the configuration, in hints and in the environment.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Adaptive => "adaptive",
            Self::Naive => "naive",
            Self::Romio => "romio",
            Self::SimplePm => "simple_pm",
            Self::Extent => "extent",
            Self::ScanFile => "scanfile",
        }
    }

    /// The method of a name; `enable` is `adaptive`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "enable" { "adaptive" } else { name };
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

impl fmt::Display for SieveMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// Each fault as an [`AddressError::Config`] with line and column.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigErrors> {
        table::with_root(text, file, |root| {
            // `couple` is read by those who couple: coupling::Configuration.
            root.only(&["routes", "stores", "client", "sieve", "log", "serve", "couple"]);
            let table = |key| root.table(key);
            Self {
                routes: table("routes").map(|table| routes(&table)).unwrap_or_default(),
                stores: table("stores").map(|table| stores(&table, file)).unwrap_or_default(),
                client: table("client").map(|table| client(&table)).unwrap_or_default(),
                sieve: table("sieve").map(|table| sieve(&table)).unwrap_or_default(),
                log: table("log").map(|table| log(&table, file)).unwrap_or_default(),
                serve: table("serve").map(|table| serve(&table, file)).unwrap_or_default(),
            }
        })
    }
}

fn routes(table: &Table<'_>) -> Routes {
    let route = |entry: Entry<'_>| {
        let uri = entry.text("a URI")?;
        let uri = entry.address(Uri::parse(uri.as_bytes()))?;
        entry.address(Route::new(entry.key.as_bytes(), uri))
    };
    let routes = Routes::new(table.entries().filter_map(route));
    routes.unwrap_or_else(|error| {
        table.fault(ConfigFault::Address(Box::new(error)));
        Routes::default()
    })
}

fn stores(table: &Table<'_>, file: &Path) -> Vec<StoreSpec> {
    table.entries().filter_map(|entry| store(&entry, file)).collect()
}

fn store(entry: &Entry<'_>, file: &Path) -> Option<StoreSpec> {
    let (place, read_only) = match entry.as_table() {
        Some(detail) => {
            detail.only(&["path", "read_only"]);
            let read_only = detail.flag("read_only").unwrap_or(false);
            let Some(path) = detail.get("path") else {
                let table = entry.key.to_owned();
                entry.fault(ConfigFault::MissingKey { table, key: "path" });
                return None;
            };
            (path.text("a directory, `mem:`, a `.drepl` file or a URI")?, read_only)
        }
        None => (
            entry.text("a directory, `mem:`, a `.drepl` file, a URI or a table with `path`")?,
            false,
        ),
    };
    let missing = || AddressError::StorePlace { name: entry.key.to_owned() };
    let place = StorePlace::parse(place.as_bytes()).and_then(|place| place.ok_or_else(missing));
    let place = match entry.address(place)? {
        StorePlace::Dir(dir) => StorePlace::Dir(beside(file, dir)),
        StorePlace::Dataset(path) => StorePlace::Dataset(beside(file, path)),
        other @ (StorePlace::Mem | StorePlace::Relay(_)) => other,
    };
    entry.address(StoreSpec::new(entry.key.as_bytes(), place, read_only))
}

fn beside(file: &Path, path: PathBuf) -> PathBuf {
    file.parent().map_or_else(|| path.clone(), |dir| dir.join(&path))
}

fn client(table: &Table<'_>) -> ClientKeys {
    table.only(&["read_ahead_bytes", "write_behind_bytes", "msize_bytes", "reconnect_seconds"]);
    ClientKeys {
        read_ahead_bytes: table.size("read_ahead_bytes", 0, 1 << 40),
        write_behind_bytes: table.size("write_behind_bytes", 0, 1 << 40),
        msize_bytes: msize(table),
        reconnect_seconds: table.count("reconnect_seconds", 0),
    }
}

fn sieve(table: &Table<'_>) -> SieveKeys {
    table.only(&["mpi"]);
    let method = |entry: Entry<'_>| {
        let name = entry.text("the name of a method")?;
        let method = SieveMethod::parse(name);
        if method.is_none() {
            let choices = SieveMethod::ALL.map(|method| format!("`{method}`")).join(", ");
            entry.no_choice(name, &choices);
        }
        method
    };
    SieveKeys { mpi: table.get("mpi").and_then(method) }
}

fn log(table: &Table<'_>, file: &Path) -> LogKeys {
    table.only(&["dir", "to", "size_max_bytes", "bytes_per_second"]);
    let to = |entry: Entry<'_>| {
        let text = entry.text("a directory or a URI")?;
        if crate::detect(text.as_bytes()).is_none() {
            return Some(beside(file, text.into()));
        }
        entry.address(Uri::parse(text.as_bytes()))?;
        Some(text.into())
    };
    let dir = table.get("dir").and_then(|entry| entry.text("a directory"));
    LogKeys {
        dir: dir.map(|dir| beside(file, dir.into())),
        to: table.get("to").and_then(to),
        size_max_bytes: table.size("size_max_bytes", 1 << 20, u64::MAX),
        bytes_per_second: table.size("bytes_per_second", 0, u64::MAX),
    }
}

fn msize(table: &Table<'_>) -> Option<u32> {
    let (min, max) = ClientOptions::MSIZE_BYTES_RANGE;
    // In range, hence below 2^32.
    table.size("msize_bytes", min.into(), max.into()).map(|bytes| bytes as u32)
}

fn serve(table: &Table<'_>, file: &Path) -> ServeKeys {
    table.only(&["listen", "read_only", "stores", "limits"]);
    ServeKeys {
        listen: table.get("listen").map(|entry| listen(&entry)).unwrap_or_default(),
        stores: table.table("stores").map(|table| stores(&table, file)).unwrap_or_default(),
        read_only: table.flag("read_only").unwrap_or(false),
        limits: table.table("limits").map(|table| limits(&table)).unwrap_or_default(),
    }
}

fn listen(entry: &Entry<'_>) -> Vec<Endpoint> {
    let addresses = entry.texts("a list of addresses").unwrap_or_default();
    let parse = |address: &str| entry.address(Endpoint::parse_listen(address.as_bytes()));
    addresses.into_iter().filter_map(parse).collect()
}

fn limits(table: &Table<'_>) -> Limits {
    table.only(&["connections_max", "fids_max", "msize_bytes", "idle_seconds"]);
    Limits {
        connections_max: table.count("connections_max", 1),
        fids_max: table.count("fids_max", 1),
        msize_bytes: msize(table),
        idle_seconds: table.count("idle_seconds", 0),
    }
}

#[cfg(test)]
mod tests;
