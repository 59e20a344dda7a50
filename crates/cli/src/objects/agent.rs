//! The agent's own process.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use object::Buckets;
use service::{Listen, Running, Service};

use crate::agents::{self, Starter};
use crate::args::ObjectsAgent;

/// How often it looks whether anybody is there.
const TICK: Duration = Duration::from_millis(500);
/// How long it stays without anybody: the next program may come at once, and finds what this one has read. It is longer
/// than what a writer left is kept for.
const LINGER: Duration = Duration::from_secs(75);
/// The variable that says another time, in seconds: for tests.
const LINGER_VARIABLE: &str = "SLUICE_OBJECTS_LINGER";

/// Serves all buckets until nobody needs them any more.
pub(crate) fn agent(args: &ObjectsAgent) -> Result<ExitCode> {
    let stop = agents::begin()?;
    let running = match start(&args.socket) {
        Ok(running) => running,
        Err(error) => {
            Starter::failed(&error);
            return Ok(ExitCode::FAILURE);
        }
    };
    Starter::ready("", &super::log_of(&args.socket));
    stay(&running, &stop, &args.socket);
    running.stop();
    Ok(ExitCode::SUCCESS)
}

fn start(socket: &Path) -> Result<Running> {
    let tell: object::Tell = Arc::new(|text: &str| agents::note(format_args!("{text}")));
    let options = object::Options { tell: Some(tell), ..object::Options::default() };
    let store = Arc::new(Buckets::new(options));
    Ok(Service::builder(store).listen(Listen::Unix(socket.to_path_buf())).start()?)
}

fn stay(running: &Running, stop: &AtomicBool, socket: &Path) {
    let seconds = std::env::var(LINGER_VARIABLE).ok().and_then(|text| text.parse().ok());
    let linger = seconds.map_or(LINGER, Duration::from_secs_f64);
    let mut alone_since = Instant::now();
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(TICK);
        if running.counters().connections > 0 {
            alone_since = Instant::now();
        }
        if alone_since.elapsed() < linger {
            continue;
        }
        // While somebody is about to connect, it is their turn.
        let turn = super::turn(socket);
        // Where the directory is gone, as a user's is at the end of a login, nobody can come any more.
        if turn.is_err() && socket.exists() {
            continue;
        }
        if running.counters().connections > 0 {
            continue;
        }
        // Whoever comes from now on starts another.
        let _ = std::fs::remove_file(socket);
        return;
    }
}
