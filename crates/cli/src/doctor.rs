//! `sluice doctor`: what is in force here, and whether it works.

mod mounting;
mod mpi;
mod probe;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use crate::args::Doctor;
use crate::format::{bytes_text, name_text};
use crate::in_force::InForce;
use crate::launch::library;
use crate::place::{Outcome, Place, Places, Trouble};
use crate::report::tell;
use mpi::MpiFindings;
use probe::Probe;

/// Everything that is looked at.
#[derive(Serialize)]
struct Findings {
    version: &'static str,
    config: String,
    inherited_settings: bool,
    preload: Check,
    /// The way in which programs are carried.
    patching: Check,
    /// The way where the system forbids patching.
    interposition: Check,
    /// Not looked at where there is no preload library.
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi: Option<MpiFindings>,
    /// Whether `sluice mount` can be used; nothing else depends on it.
    mounting: Check,
    /// Where `scdc+uds://default` leads.
    default_service: ServiceFindings,
    client: ClientFindings,
    routes: Vec<RouteFindings>,
    stores: Vec<StoreFindings>,
}

/// Whether something works.
#[derive(Serialize)]
struct Check {
    ok: bool,
    detail: String,
}

#[derive(Serialize)]
struct ServiceFindings {
    socket: String,
    running: bool,
}

#[derive(Serialize)]
struct ClientFindings {
    read_ahead_bytes: u64,
    write_behind_bytes: u64,
    msize_bytes: u32,
    reconnect_seconds: u32,
}

#[derive(Serialize)]
struct RouteFindings {
    prefix: String,
    uri: String,
    /// What of the local file system the prefix hides.
    #[serde(skip_serializing_if = "Option::is_none")]
    hides: Option<String>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// From nothing to the attributes of the route's root: connecting included.
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_ms: Option<f64>,
    /// One request and its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<f64>,
}

#[derive(Serialize)]
struct StoreFindings {
    name: String,
    place: String,
    read_only: bool,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Check {
    fn new(outcome: Result<String>) -> Self {
        match outcome {
            Ok(detail) => Self { ok: true, detail },
            Err(error) => Self { ok: false, detail: format!("{error:#}") },
        }
    }
}

/// Looks at everything and says what it found.
pub(crate) fn doctor(args: &Doctor, in_force: InForce) -> Result<ExitCode> {
    let config = in_force.source.to_string();
    let inherited_settings = in_force.inherited;
    let options = in_force.settings.client;
    let places = Places::new(in_force)?;
    let settings = &places.in_force().settings;
    let library = library::find();
    let shown = library.as_ref().map(|path| path.display().to_string());
    let preload = Check::new(shown.map_err(|error| anyhow!("{error:#}")));
    let probe = library.and_then(Probe::new);
    let tried = |which: fn(&Probe) -> Result<String>, otherwise: &'static str| match &probe {
        Ok(probe) => which(probe).map_err(|error| anyhow!("{error:#}; {otherwise}")),
        Err(error) if preload.ok => Err(anyhow!("not tried: {error:#}")),
        Err(_) => Err(anyhow!("not tried: first see to the preload library")),
    };
    let findings = Findings {
        version: env!("CARGO_PKG_VERSION"),
        config,
        inherited_settings,
        patching: Check::new(tried(
            Probe::patched,
            "programs that read by stdio may not be carried; docs/COVERAGE.md says which calls are left",
        )),
        interposition: Check::new(tried(
            Probe::interposed,
            "this matters only where libc cannot be patched and with `sluice run --no-patch`",
        )),
        preload,
        mpi: probe.as_ref().ok().map(|probe| mpi::look(probe.library(), probe.scratch())),
        mounting: Check::new(mounting::try_it()),
        default_service: look_at_default(),
        client: ClientFindings {
            read_ahead_bytes: options.read_ahead_bytes,
            write_behind_bytes: options.write_behind_bytes,
            msize_bytes: options.msize_bytes,
            reconnect_seconds: options.reconnect_seconds,
        },
        routes: settings.routes.iter().map(|route| look_at(route, &places)).collect(),
        stores: settings.stores.iter().map(look_at_store).collect(),
    };
    if args.json {
        let findings = serde_json::to_string(&findings).context("cannot write the findings")?;
        tell(format_args!("{findings}"))?;
    } else {
        tell(format_args!("{}", findings.lines().join("\n")))?;
    }
    Ok(if findings.all_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn look_at(route: &address::Route, places: &Places) -> RouteFindings {
    let timed = || -> Result<(Duration, Duration)> {
        let place = places.remote(route.uri(), route.prefix().to_vec())?;
        let time = || time(&place).map_err(|trouble| explain(route, &trouble));
        let first = time()?;
        // The best of a few: what else the machine does is not the route's.
        let mut best = time()?;
        for _ in 0..4 {
            best = best.min(time()?);
        }
        Ok((first, best))
    };
    let outcome = timed();
    let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let hides =
        std::fs::symlink_metadata(route.prefix_path()).ok().map(|found| match found.is_dir() {
            true => "a local directory".to_owned(),
            false => "a local file".to_owned(),
        });
    RouteFindings {
        prefix: name_text(route.prefix()),
        uri: route.uri().to_string(),
        hides,
        ok: outcome.is_ok(),
        connect_ms: outcome.as_ref().ok().map(|(first, _)| ms(*first)),
        round_trip_ms: outcome.as_ref().ok().map(|(_, best)| ms(*best)),
        error: outcome.err().map(|error| format!("{error:#}")),
    }
}

/// Why a route leads nowhere, and what to do about it.
fn explain(route: &address::Route, trouble: &Trouble) -> anyhow::Error {
    if trouble.is_missing() {
        let endpoint = route.uri().endpoint.clone();
        let root = address::Uri { endpoint, path: address::RemotePath::default() };
        return anyhow!(
            "the service is there, but has no such file; `sluice ls {root}` shows what it has"
        );
    }
    anyhow!("{trouble}")
}

/// Whether the service that is meant when none is named runs.
fn look_at_default() -> ServiceFindings {
    let endpoint = address::Endpoint::Unix(address::SocketName::Named("default".into()));
    let Some(place) = client::Place::of(&endpoint) else {
        return ServiceFindings { socket: String::new(), running: false };
    };
    let dial = client::SocketDial::new(place);
    let socket = client::Dial::peer(&dial);
    let running =
        client::Session::new(Box::new(dial), client::Options::default()).connect().is_ok();
    ServiceFindings { socket, running }
}

fn time(place: &Place) -> Outcome<Duration> {
    let started = Instant::now();
    place.stat(true)?;
    Ok(started.elapsed())
}

fn look_at_store(store: &address::StoreSpec) -> StoreFindings {
    let error = match &store.place {
        address::StorePlace::Dir(dir) => match dir.metadata() {
            Ok(found) if found.is_dir() => None,
            Ok(_) => Some("it is no directory; name one".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Some("it does not exist; make the directory, or name another".to_owned())
            }
            Err(error) => Some(format!("it cannot be looked at: {error}")),
        },
        address::StorePlace::Dataset(path) => match path.metadata() {
            Ok(found) if found.is_file() => None,
            Ok(_) => Some("it is no file; name the definition of a dataset".to_owned()),
            Err(error) => Some(format!("it cannot be looked at: {error}")),
        },
        address::StorePlace::Mem | address::StorePlace::Relay(_) => None,
    };
    let place = name_text(&store.place.to_bytes());
    let name = name_text(&store.name);
    StoreFindings { name, place, read_only: store.read_only, ok: error.is_none(), error }
}

impl Findings {
    fn all_ok(&self) -> bool {
        self.preload.ok
            && self.patching.ok
            && self.interposition.ok
            && self.routes.iter().all(|route| route.ok)
            && self.stores.iter().all(|store| store.ok)
    }

    /// One line for each finding.
    fn lines(&self) -> Vec<String> {
        let line =
            |ok: bool, text: String| format!("{} {text}", if ok { "ok   " } else { "FAIL " });
        let plain = |text: String| format!("      {text}");
        let mut lines = vec![
            plain(format!("sluice {}", self.version)),
            plain(format!("configuration: {}", self.config)),
        ];
        let service = &self.default_service;
        let running = match service.running {
            true => "runs".to_owned(),
            false => "does not run; `sluice serve NAME=DIR` starts it".to_owned(),
        };
        if self.inherited_settings {
            lines.push(plain("settings of an enclosing `sluice run` are in force, too".into()));
        }
        for (what, check) in [
            ("preload library", &self.preload),
            ("patching libc", &self.patching),
            ("interposition", &self.interposition),
        ] {
            lines.push(line(check.ok, format!("{what}: {}", check.detail)));
        }
        lines.extend(self.mpi.as_ref().map(MpiFindings::lines).unwrap_or_default());
        lines.push(match &self.mounting {
            Check { ok: true, detail } => line(true, format!("sluice mount: {detail}")),
            Check { detail, .. } => plain(format!("sluice mount: cannot be used: {detail}")),
        });
        lines.push(plain(format!("service scdc+uds://default, {}: {running}", service.socket)));
        let client = &self.client;
        lines.push(plain(format!(
            "client: read ahead {}, write behind {}, messages {}, reconnect for {} s",
            bytes_text(client.read_ahead_bytes),
            bytes_text(client.write_behind_bytes),
            bytes_text(client.msize_bytes.into()),
            client.reconnect_seconds
        )));
        if self.routes.is_empty() {
            let text = "routes: none; name files by their URIs, or map a prefix: --map PREFIX=URI, or [routes]";
            lines.push(plain(text.into()));
        }
        for route in &self.routes {
            let outcome = match (&route.error, route.connect_ms, route.round_trip_ms) {
                (Some(error), ..) => error.clone(),
                (None, Some(connect), Some(trip)) => {
                    format!("reached in {connect} ms, round trip {trip} ms")
                }
                (None, ..) => "reached".into(),
            };
            lines.push(line(
                route.ok,
                format!("route {} -> {}: {outcome}", route.prefix, route.uri),
            ));
            if let Some(hides) = &route.hides {
                lines.push(plain(format!(
                    "note: {} is also {hides}, which carried programs do not see; if they shall, map another prefix",
                    route.prefix
                )));
            }
        }
        for store in &self.stores {
            let note = if store.read_only { ", read-only" } else { "" };
            let error = store.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let text = format!("store scdc:///{} -> {}{note}{error}", store.name, store.place);
            lines.push(line(store.ok, text));
        }
        lines
    }
}
