//! `sluice mount` and `sluice umount`.

mod background;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use mount::{Manner, MountPoint, Mounted};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use store::fs::FsStore;
use store::mem::MemStore;
use store::relay::RelayStore;
use store::{ReadOnly, Store};

use crate::args::{Mount, Umount};
use crate::place::{Place, Places};
use crate::report::{say, tell};

/// How long programs have to let go of what they have open when the mount is ended by a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Mounts, and serves until it is unmounted or interrupted.
pub(crate) fn mount(args: &Mount, places: &Places) -> Result<ExitCode> {
    if args.daemon && !background::is_second() {
        return background::start();
    }
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot take over signals")?;
    // A write beyond the process's own limit is then EFBIG for the program that asked for it.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot take over SIGXFSZ")?;
    // Each file that the kernel knows may hold a descriptor.
    let descriptors = store::fs::raise_descriptor_limit().unwrap_or(1024);

    let place = args.place.as_os_str();
    let store = store(place, &args.dir, places)?;
    let store: Arc<dyn Store> = if args.read_only { Arc::new(ReadOnly::new(store)) } else { store };
    let defaults = mount::Options::default();
    let share = usize::try_from(descriptors / 4).unwrap_or(usize::MAX);
    let options = mount::Options {
        read_only: args.read_only,
        allow_other: args.allow_other,
        source: place.to_string_lossy().into_owned(),
        nodes_max: defaults.nodes_max.min(share),
    };
    let mounted = Mounted::new(&*store, &args.dir, options)?;
    let point = mounted.point();
    let note = if args.read_only { " (read-only)" } else { "" };
    tell(format_args!("mounted {} on {}{note}", place.display(), point.dir().display()))?;
    background::leave_the_terminal();
    std::thread::spawn(move || end_by_signal(signals, &point));
    mounted.wait()?;
    Ok(ExitCode::SUCCESS)
}

/// Ends the mount at the first signal. Where programs use it, they have a little time; at its end, or at the next
/// signal, they lose what they have open.
fn end_by_signal(mut signals: Signals, point: &MountPoint) {
    signals.forever().next();
    match point.unmount(Manner::Unused) {
        Ok(()) => return,
        Err(mount::Error::Busy { .. }) => {}
        Err(error) => say(format_args!("sluice mount: {:#}", anyhow::Error::new(error))),
    }
    let _ = point.unmount(Manner::Lazy);
    let dir = point.dir().display();
    say(format_args!(
        "sluice mount: {dir} was in use; programs that have files open there get errors from now on"
    ));
    std::thread::spawn(|| {
        std::thread::sleep(GRACE);
        std::process::exit(0);
    });
    signals.forever().next();
    std::process::exit(0);
}

/// What a place names as a store.
fn store(text: &OsStr, dir: &Path, places: &Places) -> Result<Arc<dyn Store>> {
    if text == "mem:" {
        return Ok(Arc::new(MemStore::new()));
    }
    let place = places.find(text)?;
    // Said here, in words; behind the mount it would only be a number.
    let found = place.stat(true).map_err(|trouble| {
        let why = place.explain(&trouble);
        anyhow!("cannot mount {place}: {why}")
    })?;
    if !found.is_directory() {
        bail!("cannot mount {place}: it is not a directory");
    }
    match place {
        Place::Local(path) => {
            refuse_within(&path, dir)?;
            let store = FsStore::new(&path);
            Ok(Arc::new(store.with_context(|| format!("cannot mount {}", path.display()))?))
        }
        Place::Remote(remote) => {
            let path = remote.uri().path.as_bytes();
            Ok(Arc::new(RelayStore::new(Arc::clone(remote.session()), path)))
        }
    }
}

/// A directory that is mounted within itself would have no end.
fn refuse_within(place: &Path, dir: &Path) -> Result<()> {
    if let (Ok(outer), Ok(inner)) = (place.canonicalize(), dir.canonicalize())
        && inner.starts_with(&outer)
    {
        bail!(
            "{} lies within what is to be mounted there; name a directory outside",
            dir.display()
        );
    }
    Ok(())
}

/// Ends a mount, whichever process made it.
pub(crate) fn umount(args: &Umount) -> Result<ExitCode> {
    let manner = if args.lazy { Manner::Lazy } else { Manner::Unused };
    for dir in &args.dirs {
        mount::unmount(dir, manner)?;
    }
    Ok(ExitCode::SUCCESS)
}
