//! What can be wrong with an address, a route or a setting, where, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// Everything that this crate refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A URI could not be understood.
    #[error("`{text}`, byte {at}: {fault}")]
    Uri {
        /// The URI, lossily.
        text: String,
        /// Byte of `text` at which the trouble begins.
        at: usize,
        /// What is wrong there.
        fault: UriFault,
    },
    /// A `PREFIX=URI` pair of `--map` or `[routes]` has no `=`.
    #[error("route `{text}`: no `=`; write PREFIX=URI, such as /far=scdc+tcp://host/base")]
    RouteWithoutUri {
        /// What was given.
        text: String,
    },
    /// A route's prefix is not an absolute path below `/`.
    #[error(
        "route `{prefix}`: the prefix must be an absolute path other than `/`, without `..`, such as /far"
    )]
    RoutePrefix {
        /// The prefix, lossily.
        prefix: String,
    },
    /// Two routes begin at the same place.
    #[error("route `{prefix}` is given twice; keep one")]
    RouteTwice {
        /// The prefix, lossily.
        prefix: String,
    },
    /// A `NAME=WHERE` pair of `--store` or `serve` has no `=`.
    #[error("store `{text}`: no `=`; write NAME=DIR, NAME=mem:, NAME=FILE.drepl or NAME=URI")]
    StoreWithoutPlace {
        /// What was given.
        text: String,
    },
    /// A store's name is not one path component.
    #[error(
        "store `{name}`: a name is one path component: not empty, not `.` or `..`, without `/`"
    )]
    StoreName {
        /// The name, lossily.
        name: String,
    },
    /// A store's directory is missing from the text.
    #[error(
        "store `{name}`: no place is given after `=`; write a directory, `mem:`, a `.drepl` file or a URI"
    )]
    StorePlace {
        /// The name, lossily.
        name: String,
    },
    /// Two stores have one name.
    #[error("store `{name}` is given twice; names must differ")]
    StoreTwice {
        /// The name, lossily.
        name: String,
    },
    /// An address to listen on could not be understood.
    #[error(
        "listen address `{text}`: {fault}; write unix:PATH, tcp:HOST:PORT, or a scdc+uds:// or scdc+tcp:// URI"
    )]
    Listen {
        /// What was given.
        text: String,
        /// What is wrong with it.
        fault: UriFault,
    },
    /// A size is not a number of bytes with an optional suffix.
    #[error("`{text}` is not a size; write bytes, or a number with KiB, MiB or GiB")]
    Size {
        /// What was given.
        text: String,
    },
    /// A line of `SLUICE_SETTINGS` could not be understood.
    #[error(
        "SLUICE_SETTINGS, line {line}: {fault}; it is written by `sluice run`: start the program through it"
    )]
    Settings {
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        fault: SettingsFault,
    },
    /// A configuration file could not be understood.
    #[error("{}:{line}:{column}: {fault}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        fault: ConfigFault,
    },
}

/// Everything that is wrong with a configuration file: at least one error, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<AddressError>);

impl ConfigErrors {
    /// How many are shown: a file with more of them is hardly a configuration.
    const SHOWN_MAX: usize = 20;
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().take(Self::SHOWN_MAX).enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "\n" })?;
        }
        match self.0.len().saturating_sub(Self::SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// What is wrong with a URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriFault {
    /// It does not begin with a scheme of ours.
    #[error(
        "not a Sluice URI; one begins with scdc:, scdc+uds:, scdc+tcp:, scdc+mpi:, scdc+ssh:, s3:, gs: or az: and a slash"
    )]
    NotAUri,
    /// The transport after `+` is unknown.
    #[error("unknown transport `{transport}`; did you mean `{nearest}`? known: uds, tcp, mpi, ssh")]
    UnknownTransport {
        /// What stands after the `+`.
        transport: String,
        /// The known one that it resembles most.
        nearest: &'static str,
    },
    /// `scdc://host/…` names a host but no transport.
    #[error(
        "`{authority}` stands where a host would, but scdc: is in this process; write scdc:///{authority}/… or scdc+tcp://{authority}/…"
    )]
    HostWithoutTransport {
        /// What stands there.
        authority: String,
    },
    /// The authority (host, socket, bucket, port name) is missing.
    #[error("{what} is missing")]
    Missing {
        /// What should stand there.
        what: &'static str,
    },
    /// `scdc+uds:///path` without a component that ends in `.sock`.
    #[error(
        "no component ends in `.sock`, so it is unclear where the socket's path ends; escape it: scdc+uds://%2Ftmp%2Fsocket/base"
    )]
    SocketEnd,
    /// A socket's name is relative, or not one component.
    #[error(
        "`{name}` is neither an absolute path nor the plain name of a service; write scdc+uds:///dir/x.sock/base or scdc+uds://NAME/base"
    )]
    SocketName {
        /// The name, lossily.
        name: String,
    },
    /// A host has characters that no host name has.
    #[error("`{host}` is not a host name or address; IPv6 addresses stand in brackets: [::1]")]
    Host {
        /// The host, lossily.
        host: String,
    },
    /// A port is not a number from 1 to 65535.
    #[error("`{port}` is not a port; ports are 1 to 65535")]
    Port {
        /// The port, lossily.
        port: String,
    },
    /// A user name that a login would misunderstand.
    #[error("`{user}` is not a user name")]
    User {
        /// The user, lossily.
        user: String,
    },
    /// A bucket's name is malformed.
    #[error("`{bucket}` is not a bucket name")]
    Bucket {
        /// The bucket, lossily.
        bucket: String,
    },
    /// A `%` without two hexadecimal digits.
    #[error("`%` needs two hexadecimal digits here; a literal percent sign is %25")]
    Escape,
    /// An escaped text is not UTF-8 where it must be.
    #[error("the name is not UTF-8")]
    NotUtf8,
    /// A NUL byte: no path of any system contains one.
    #[error("a NUL byte cannot stand in a path")]
    Nul,
    /// The transport cannot listen.
    #[error("a service cannot listen on `{transport}`")]
    CannotListen {
        /// The transport.
        transport: &'static str,
    },
    /// There is a path where only an endpoint belongs.
    #[error("a path stands after the address; only the address belongs here")]
    PathAfterEndpoint,
}

/// What is wrong with a line of `SLUICE_SETTINGS`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsFault {
    /// The first line does not name this format.
    #[error("the format is not `{expected}`; launcher and library are of different versions")]
    Version {
        /// What the first line must be.
        expected: &'static str,
    },
    /// A line has no `=`, or too few fields.
    #[error("a field is missing")]
    Field,
    /// A key is unknown.
    #[error("unknown key `{key}`")]
    Key {
        /// The key.
        key: String,
    },
    /// A number is malformed.
    #[error("`{text}` is not a number")]
    Number {
        /// What stands there.
        text: String,
    },
    /// A percent escape is malformed.
    #[error("a malformed escape")]
    Escape,
    /// An address in it is malformed.
    #[error("{0}")]
    Address(Box<AddressError>),
}

/// What is wrong in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigFault {
    /// It is not TOML.
    #[error("{message}")]
    Syntax {
        /// What the TOML parser says.
        message: String,
    },
    /// A key that does not exist.
    #[error("unknown key `{key}`{}", match nearest { Some(near) => format!("; did you mean `{near}`?"), None => String::new() })]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The known key that it resembles most, if any does.
        nearest: Option<&'static str>,
    },
    /// A value of the wrong kind.
    #[error("`{key}` must be {expected}, not a {found}")]
    Kind {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A number out of range.
    #[error("`{key}` must be from {min} to {max}")]
    Range {
        /// The key.
        key: String,
        /// Smallest value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
    },
    /// A word that is none of those there are.
    #[error("`{value}` is no value of `{key}`, which is one of {choices}")]
    Choice {
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it may be set to, with commas between.
        choices: String,
    },
    /// A table lacks a key that it must have.
    #[error("`{table}` needs the key `{key}`")]
    MissingKey {
        /// The table.
        table: String,
        /// The key.
        key: &'static str,
    },
    /// An address in it is malformed.
    #[error("{0}")]
    Address(Box<AddressError>),
}

impl AddressError {
    /// The errno that a program gets when it uses such an address as a file name.
    ///
    /// # Source
    /// errno(3); numbers from Linux `asm-generic/errno-base.h` and `errno.h`.
    pub fn to_errno(&self) -> i32 {
        const EINVAL: i32 = 22;
        const EPROTONOSUPPORT: i32 = 93;
        match self {
            Self::Uri { fault: UriFault::UnknownTransport { .. }, .. } => EPROTONOSUPPORT,
            Self::Uri { .. }
            | Self::RouteWithoutUri { .. }
            | Self::RoutePrefix { .. }
            | Self::RouteTwice { .. }
            | Self::StoreWithoutPlace { .. }
            | Self::StoreName { .. }
            | Self::StorePlace { .. }
            | Self::StoreTwice { .. }
            | Self::Listen { .. }
            | Self::Size { .. }
            | Self::Settings { .. }
            | Self::Config { .. } => EINVAL,
        }
    }

    pub(crate) fn uri(text: &[u8], at: usize, fault: UriFault) -> Self {
        Self::Uri { text: lossy(text), at, fault }
    }
}

/// Bytes for a message.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
