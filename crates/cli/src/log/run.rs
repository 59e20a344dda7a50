//! `sluice run --log`: the log's agent is found or started, and the program's files are led there.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use address::{Detour, Endpoint, RemotePath, Route, Routes, Settings, SocketName, Uri};
use anyhow::{Context, Result, bail};

use super::files::{Holder, Place};
use super::job;
use super::target::Target;
use crate::agents;
use crate::args::log::Through;
use crate::in_force::InForce;

/// Tells `libsluice_mpi.so` one log from another.
const LOG_VARIABLE: &str = "SLUICE_LOG";

/// The agent for messages.
const WHO: &str = "the log's agent";

/// So long after it ended the agent has surely noted that a run has, and so often it is looked at until then.
const NOTED_AFTER: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A log that the program uses.
pub(crate) struct Attached {
    holder: Holder,
    run: String,
    place: Place,
    /// A connection on which nothing is ever said. The program inherits it, and what it starts does: while one of them
    /// lives, so does the agent.
    lease: OwnedFd,
}

impl Attached {
    /// Tells the program's processes of the log.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(LOG_VARIABLE, &self.holder.log).env(job::RUN_VARIABLE, &self.run);
    }

    /// When the program has ended: waits until everything that was written is in its place.
    pub(crate) fn wait(self, in_force: &InForce) -> Result<()> {
        // What programs that were killed have not finished is dropped only when nobody is connected.
        drop(self.lease);
        super::offline::wait(&self.place, in_force)
    }
}

/// Finds the agent of the log that the command line or the configuration names, and leads the target's files there.
pub(crate) fn attach(
    args: &Through,
    in_force: &InForce,
    settings: &mut Settings,
) -> Result<Option<Attached>> {
    let config = &in_force.config.log;
    let Some(dir) = args.log.clone().or_else(|| config.dir.clone()) else {
        if args.to.is_some() {
            bail!("--to needs --log DIR: a directory on a disk of this node");
        }
        if args.wait {
            bail!("--wait needs --log DIR: it waits until what is in a log has come to its place");
        }
        return Ok(None);
    };
    let to = args.to.clone().or_else(|| config.to.clone().map(PathBuf::into_os_string));
    let Some(to) = to else {
        bail!(
            "--log {} needs --to URI|DIR: the place whose files are written through the log",
            dir.display()
        );
    };
    let target = Target::parse(&to)?;
    let place = Place::made(&dir)?;
    if let Target::Directory(path) = &target
        && (place.dir.starts_with(path.canonicalize()?)
            || path.canonicalize()?.starts_with(&place.dir))
    {
        bail!("--log {}: the log must lie outside of what is written through it", dir.display());
    }
    let run = job::run();
    let size = args.log_size.or(config.size_max_bytes);
    let bandwidth = args.log_bandwidth.or(config.bytes_per_second);
    let turn = place.turn(true)?;
    let holder = match place.holder() {
        Some(holder) => join(&place, holder, &target, &run)?,
        None => start(&place, &target, &run, size, bandwidth, &nodes(args)?)?,
    };
    let lease = lease(&holder.socket)?;
    drop(turn);
    lead(settings, &target, &to, &holder.socket)?;
    Ok(Some(Attached { holder, run, place, lease }))
}

/// Whether a log that is in use may be used by this run, too.
fn join(place: &Place, holder: Holder, target: &Target, run: &str) -> Result<Holder> {
    let dir = place.dir.display();
    let text = target.text()?;
    if holder.run != run && is_in_use(place) {
        bail!(
            "the log in {dir} is in use by another run, `{}` (its agent is process {}); give this run a log of its own, \
             or wait until that one has ended: `sluice log status --follow {dir}`",
            holder.command,
            holder.pid
        );
    }
    if holder.target != text {
        bail!(
            "the log in {dir} is still being drained to {}, and this run is for {text}: wait for it by `sluice log drain \
             {dir}`, or give this run a log of its own",
            holder.target
        );
    }
    Ok(holder)
}

/// Whether programs are connected. The agent writes down how things are once a second: of a run that has just ended, as
/// the step before this one in a script, it may not have done so yet.
fn is_in_use(place: &Place) -> bool {
    let since = Instant::now();
    loop {
        let clients = super::status::live(place).map_or(1, |report| report.clients);
        if clients == 0 || since.elapsed() >= NOTED_AFTER {
            return clients > 0;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Starts the agent, and waits until it is ready.
fn start(
    place: &Place,
    target: &Target,
    run: &str,
    size: Option<u64>,
    bandwidth: Option<u64>,
    nodes: &[OsString],
) -> Result<Holder> {
    let words: Vec<String> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut shown = if words.is_empty() { "sluice run".to_owned() } else { words.join(" ") };
    if let Some((end, _)) = shown.char_indices().nth(80) {
        shown.truncate(end);
        shown.push('…');
    }
    let mut command: Vec<OsString> = vec!["log".into(), "agent".into(), place.dir.clone().into()];
    let target = target.text()?;
    for (flag, value) in [("--to", &*target), ("--run", run), ("--command", &shown)] {
        command.extend([flag.into(), value.into()]);
    }
    for (flag, value) in [("--log-size", size), ("--log-bandwidth", bandwidth)] {
        command.extend(value.into_iter().flat_map(|value| [flag.into(), value.to_string().into()]));
    }
    command.extend_from_slice(nodes);
    let holder = agents::start(&command, WHO, &place.file("agent.log"))?;
    serde_json::from_str(&holder).context("the log's agent said nothing sensible")
}

/// What the agent is told of those of other nodes.
fn nodes(args: &Through) -> Result<Vec<OsString>> {
    let Some(dir) = &args.log_meet else {
        if args.log_listen.is_some() {
            bail!("--log-listen needs --log-meet DIR: a directory that all nodes of the job share");
        }
        return Ok(Vec::new());
    };
    let dir = std::path::absolute(dir).context("--log-meet")?;
    let mut words: Vec<OsString> = vec!["--log-meet".into(), dir.into()];
    words.extend(["--log-own".into(), args.log_own.to_string().into()]);
    if let Some(address) = &args.log_listen {
        words.extend(["--log-listen".into(), address.into()]);
    }
    Ok(words)
}

/// Connects for good.
fn lease(socket: &Path) -> Result<OwnedFd> {
    let stream = UnixStream::connect(socket)
        .with_context(|| format!("cannot reach the log's agent on {}", socket.display()))?;
    agents::lease(stream, WHO)
}

/// Leads the target's files over the agent.
fn lead(settings: &mut Settings, target: &Target, given: &OsString, socket: &Path) -> Result<()> {
    let endpoint = Endpoint::Unix(SocketName::Path(socket.to_owned()));
    let over = Uri { endpoint, path: RemotePath::default() };
    match target {
        Target::Service(uri) | Target::Bucket(uri) => {
            settings.detours.insert(0, Detour { from: uri.clone(), over });
        }
        Target::Directory(path) => {
            let mut routes: Vec<Route> = settings.routes.iter().cloned().collect();
            // By every name that a program may be given.
            let clean = address::clean_absolute(path.as_os_str().as_bytes());
            let real = path.canonicalize().with_context(|| format!("--to {}", given.display()))?;
            for prefix in [&clean[..], real.as_os_str().as_bytes()] {
                let route = Route::new(prefix, over.clone())?;
                if !routes
                    .iter()
                    .any(|other| other.prefix() == route.prefix() && *other.uri() == over)
                {
                    routes.retain(|other| other.prefix() != route.prefix());
                    routes.push(route);
                }
            }
            settings.routes = Routes::new(routes)?;
        }
    }
    Ok(())
}
