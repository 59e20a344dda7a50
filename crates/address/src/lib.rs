//! Addresses, routes and configuration: where a path really leads.
//!
//! Pure: texts in, values out; what exists and what the environment says is for callers to find out.
//!
//! One `open("/far/in.msh")` of a program under `sluice run --map /far=scdc+tcp://host/base`:
//!
//! 1. `sluice run` parses the flag into a [`Route`], merges what `sluice.toml` says ([`config`]), and hands all to the
//!    program's process in one environment variable ([`Settings::to_env`]).
//! 2. There the preload library reads it back ([`Settings::from_env`]) once.
//! 3. At `open`, [`detect()`] asks whether the path contains a URI: it has no colon, so no.
//! 4. [`Routes::resolve`] walks the names of the path along each prefix and answers with a [`Hit`]; for the many
//!    paths that are nobody's it answers [`Resolved::Local`] and has not allocated.
//! 5. [`Hit::uri`] is the [`Uri`]: an [`Endpoint`] to connect to and a [`RemotePath`] to walk there.
//! 6. When the program asks for its working directory, [`Routes::path_of`] leads back.
#![forbid(unsafe_code)]

#[cfg(feature = "config")]
pub mod config;
mod detect;
mod detour;
mod error;
mod escape;
mod nearest;
mod path;
mod routes;
mod settings;
mod size;
mod stores;
mod uri;

pub use detect::{Detected, detect};
pub use detour::Detour;
pub use error::{AddressError, ConfigErrors, ConfigFault, SettingsFault, UriFault};
pub use nearest::{nearest, nearest_of};
pub use path::{RemotePath, clean_absolute, demands_directory, names};
pub use routes::{Hit, Resolved, Route, Routes};
pub use settings::{ClientOptions, Settings};
pub use size::parse_size_bytes;
pub use stores::{StorePlace, StoreSpec};
pub use uri::{DEFAULT_TCP_PORT, Endpoint, ObjectKind, SocketName, Uri};
