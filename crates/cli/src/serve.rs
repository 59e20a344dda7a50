//! `sluice serve`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use address::{Endpoint, SocketName, StorePlace, StoreSpec, Uri};
use anyhow::{Context, Result, bail};
use ranks::{Role, ServiceName};
use service::{Address, Limits, Listen, Service};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::args::Serve;
use crate::format::name_text;
use crate::in_force::{InForce, absolute};
use crate::rank::Rank;
use crate::report::{say, tell};
use crate::{sockets, stores};

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: &Serve, in_force: &InForce) -> Result<ExitCode> {
    // Before anything listens, so that a signal never leaves a socket behind.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).context("cannot take over SIGINT and SIGTERM")?;
    // A write beyond the service's own limit is then EFBIG for the client that asked for it, and not the
    // end of the service (setrlimit(2)).
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot take over SIGXFSZ")?;
    let specs = specs(args, in_force)?;
    let read_only = args.read_only || in_force.config.serve.read_only;
    let exports = Arc::new(stores::exports(&specs, read_only, &in_force.settings)?);

    let mut builder =
        Service::builder(exports).limits(limits(args, in_force)).insecure(args.insecure);
    let mut in_job = None;
    for endpoint in listens(args, in_force)? {
        match &endpoint {
            Endpoint::Mpi { service } if in_job.is_none() => {
                in_job = Some(ServiceName::new(service)?);
            }
            Endpoint::Mpi { .. } => {
                bail!("a service has one name in its MPI job; give --listen mpi:NAME once")
            }
            _ => builder = builder.listen(listen(&endpoint)?),
        }
    }
    let running = builder.start()?;
    let mut uris: Vec<Uri> = running.addresses().iter().map(uri).collect();
    let rank = match &in_job {
        Some(name) => Some(Rank::join(&Role::Service(name.clone()))?),
        None => None,
    };
    uris.extend(in_job.map(|name| Uri {
        endpoint: Endpoint::Mpi { service: name.as_str().to_owned() },
        path: address::RemotePath::default(),
    }));
    // Among the output of an MPI job's programs this would be in the way.
    if let Some(uri) = uris.iter().find(|uri| !matches!(uri.endpoint, Endpoint::Mpi { .. })) {
        stores::announce(&specs, uri, false);
    }
    let tell = |line: std::fmt::Arguments<'_>| match rank {
        Some(_) => {
            say(line);
            Ok(())
        }
        None => tell(line),
    };
    for uri in &uris {
        tell(format_args!("listening on {uri}"))?;
    }
    for spec in &specs {
        let note = if read_only || spec.read_only { " (read-only)" } else { "" };
        for uri in &uris {
            tell(format_args!("  {}{note}", uri.join(&spec.name)))?;
        }
    }
    std::thread::spawn(move || look_behind(&specs));
    match rank {
        Some(rank) => rank.serve(running, signals)?,
        None => {
            signals.forever().next();
            running.stop();
        }
    }
    Ok(if stores::close_datasets() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says which relays cannot be reached now. They are served all the same: what is behind may start later.
fn look_behind(specs: &[StoreSpec]) {
    for spec in specs {
        let StorePlace::Relay(uri) = &spec.place else {
            continue;
        };
        let Some(place) = client::Place::of(&uri.endpoint) else {
            continue;
        };
        let session = client::Session::new(
            Box::new(client::SocketDial::new(place)),
            client::Options::default(),
        );
        if let Err(error) = session.connect() {
            let name = name_text(&spec.name);
            say(format_args!(
                "sluice serve: store `{name}` relays to {uri}: {error}; it is tried again when used"
            ));
        }
    }
}

fn specs(args: &Serve, in_force: &InForce) -> Result<Vec<StoreSpec>> {
    let cwd = std::env::current_dir().context("cannot tell the working directory")?;
    let mut specs = Vec::new();
    for text in &args.stores {
        specs.push(absolute(StoreSpec::parse(text.as_bytes(), args.read_only)?, &cwd));
    }
    if specs.is_empty() {
        specs.clone_from(&in_force.config.serve.stores);
    }
    if specs.is_empty() {
        bail!(
            "nothing to serve: name a store, as in `sluice serve data=/srv/data`, or write [serve.stores] in sluice.toml"
        );
    }
    StoreSpec::check_distinct(&specs)?;
    Ok(specs)
}

fn limits(args: &Serve, in_force: &InForce) -> Limits {
    let (file, default) = (in_force.config.serve.limits, Limits::default());
    let count = |flag: Option<u32>, file: Option<u32>, default: usize| {
        flag.or(file).map_or(default, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let idle = args.idle_seconds.or(file.idle_seconds).filter(|seconds| *seconds != 0);
    Limits {
        connections: count(args.connections_max, file.connections_max, default.connections),
        fids: count(args.fids_max, file.fids_max, default.fids),
        msize: file.msize_bytes.unwrap_or(default.msize),
        idle: idle.map(|seconds| Duration::from_secs(seconds.into())).or(default.idle),
        ..default
    }
}

fn listens(args: &Serve, in_force: &InForce) -> Result<Vec<Endpoint>> {
    let mut endpoints = Vec::new();
    for text in &args.listen {
        endpoints.push(Endpoint::parse_listen(text.as_bytes())?);
    }
    if endpoints.is_empty() {
        endpoints.clone_from(&in_force.config.serve.listen);
    }
    if endpoints.is_empty() {
        endpoints.push(Endpoint::Unix(SocketName::Named("default".into())));
    }
    Ok(endpoints)
}

pub(crate) fn listen(endpoint: &Endpoint) -> Result<Listen> {
    match client::Place::of(endpoint) {
        Some(client::Place::Unix(path)) => {
            if matches!(endpoint, Endpoint::Unix(SocketName::Named(_))) {
                sockets::private_directory(path.parent().unwrap_or(Path::new("/")))
                    .context("give another place by --listen unix:PATH")?;
            }
            Ok(Listen::Unix(
                std::path::absolute(&path).with_context(|| path.display().to_string())?,
            ))
        }
        // Dialed, never listened on.
        Some(client::Place::Job { .. }) => bail!("cannot listen on {endpoint} here"),
        Some(client::Place::Tcp { host, port }) => {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            Ok(Listen::Tcp(format!("{host}:{port}")))
        }
        None => bail!("cannot listen on {endpoint}; write unix:PATH, tcp:HOST:PORT or mpi:NAME"),
    }
}

/// The URI under which clients reach an address.
pub(crate) fn uri(address: &Address) -> Uri {
    let endpoint = match address {
        Address::Unix(path) => Endpoint::Unix(SocketName::Path(path.clone())),
        Address::Tcp(address) => {
            Endpoint::Tcp { host: address.ip().to_string(), port: address.port() }
        }
    };
    Uri { endpoint, path: address::RemotePath::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_addresses_lead_back() {
        let address = Address::Tcp("[::1]:5641".parse().unwrap());
        assert_eq!(uri(&address).to_string(), "scdc+tcp://[::1]:5641/");
        let address = Address::Unix("/tmp/x.sock".into());
        assert_eq!(uri(&address).to_string(), "scdc+uds:///tmp/x.sock/");
    }
}
