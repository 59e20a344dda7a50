//! The agent through which programs reach object stores: they know no TLS and no runtime, so one process of this user
//! speaks with the services, and programs speak 9P with it on a Unix socket.
//!
//! `sluice run` finds or starts it ([`attach`]). All programs of the user that have the same credentials share it, and what it has
//! read. It ends when nobody has been connected for a while.

mod agent;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use address::{Endpoint, RemotePath, Settings, SocketName, StorePlace, Uri};
use anyhow::{Context, Result};

pub(crate) use agent::agent;

use crate::agents;

/// The agent for messages.
const WHO: &str = "the agent for object stores";

/// Tells credentials from others: an agent acts with those it was started with.
fn fingerprint() -> u64 {
    let matters = |name: &OsStr| {
        let name = name.as_bytes();
        let proxies: [&[u8]; 3] = [b"HTTPS_PROXY", b"HTTP_PROXY", b"NO_PROXY"];
        object::VARIABLES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
            || proxies.iter().any(|proxy| name.eq_ignore_ascii_case(proxy))
            || name == b"HOME"
    };
    let variables: BTreeMap<OsString, OsString> =
        std::env::vars_os().filter(|(name, _)| matters(name)).collect();
    let mut hasher = DefaultHasher::new();
    // Also from those of another version.
    (env!("CARGO_PKG_VERSION"), variables).hash(&mut hasher);
    hasher.finish()
}

/// Whether anything that the program is given leads to a bucket.
fn is_wanted(settings: &Settings, program: &[OsString]) -> bool {
    let is_object = |uri: &Uri| matches!(uri.endpoint, Endpoint::Object { .. });
    let by_route = settings.routes.iter().any(|route| is_object(route.uri()));
    let by_store = settings
        .stores
        .iter()
        .any(|spec| matches!(&spec.place, StorePlace::Relay(uri) if is_object(uri)));
    let by_detour = settings.detours.iter().any(|detour| is_object(&detour.over));
    // In a word of a shell's command, too.
    let schemes: [&[u8]; 3] = [b"s3:/", b"gs:/", b"az:/"];
    let named = |word: &OsString| {
        let word = word.as_bytes();
        schemes.iter().any(|scheme| word.windows(scheme.len()).any(|part| part == *scheme))
    };
    by_route || by_store || by_detour || program.iter().any(named)
}

/// Leads addresses of buckets over the agent, where the program is given any or `always` says so. What is returned keeps the
/// agent, and is inherited by the program and what it starts.
pub(crate) fn attach(
    settings: &mut Settings,
    program: &[OsString],
    always: bool,
) -> Result<Option<OwnedFd>> {
    if !always && !is_wanted(settings, program) {
        return Ok(None);
    }
    let socket = crate::sockets::private(&format!("objects-{:016x}", fingerprint()))?;
    // Of those who come together one starts it.
    let turn = turn(&socket)?;
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(_) => {
            start(&socket)?;
            UnixStream::connect(&socket)
                .with_context(|| format!("cannot reach {WHO} on {}", socket.display()))?
        }
    };
    drop(turn);
    let over =
        Uri { endpoint: Endpoint::Unix(SocketName::Path(socket)), path: RemotePath::default() };
    settings.objects = Some(over);
    let led = settings.clone();
    for spec in &mut settings.stores {
        if let StorePlace::Relay(uri) = &spec.place
            && matches!(uri.endpoint, Endpoint::Object { .. })
        {
            spec.place = StorePlace::Relay(led.lead(uri.clone()));
        }
    }
    agents::lease(stream, WHO).map(Some)
}

/// Keeps everybody else from starting or ending the agent of this socket.
fn turn(socket: &Path) -> Result<std::fs::File> {
    let path = socket.with_extension("lock");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Starts the agent, and waits until it listens.
fn start(socket: &Path) -> Result<()> {
    let words = ["objects-agent".into(), socket.into()];
    agents::start(&words, WHO, &log_of(socket)).map(drop)
}

/// Where the agent of this socket writes what it says.
fn log_of(socket: &Path) -> PathBuf {
    socket.with_extension("log")
}
