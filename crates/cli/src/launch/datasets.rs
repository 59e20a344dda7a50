//! A program whose stores are datasets: they are served on a socket of the program's own for as long as it runs, because
//! several processes of a program cannot each keep replicas equal.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use address::{Endpoint, Settings, SocketName, StorePlace, StoreSpec};
use anyhow::{Context, Result, bail};
use service::{Limits, Running, Service};
use signal_hook::consts::SIGXFSZ;

use crate::report::say;
use crate::{serve, stores};

/// After so long at the end, the user is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Datasets that are served for one program.
pub(crate) struct Datasets {
    running: Running,
}

impl Datasets {
    /// Serves the datasets among the stores, and makes the settings lead there; none if there is none.
    pub(crate) fn start(settings: &mut Settings) -> Result<Option<Self>> {
        let mut own = Vec::new();
        for spec in &mut settings.stores {
            let StorePlace::Dataset(path) = &spec.place else { continue };
            // Programs share what is served for all of them.
            match dataset::Service::of(path).filter(|_| is_in_use(path)) {
                Some(service) if !service.is_private => {
                    spec.place = StorePlace::Relay(address::Uri::parse(service.uri.as_bytes())?);
                }
                _ => own.push(spec.clone()),
            }
        }
        if own.is_empty() {
            return Ok(None);
        }
        // A write beyond the limit is then EFBIG for the program, and not the end of the service (setrlimit(2)).
        signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot take over SIGXFSZ")?;
        stores::say_only_trouble();
        let exports = Arc::new(stores::exports(&own, false, settings)?);
        let name = SocketName::Named(format!("run-{}", std::process::id()));
        let listen = serve::listen(&Endpoint::Unix(name))?;
        let running = Service::builder(exports).limits(Limits::default()).listen(listen).start()?;
        let Some(uri) = running.addresses().first().map(serve::uri) else {
            bail!("the datasets could not be served")
        };
        let is_own = |spec: &StoreSpec| own.iter().any(|one| one.name == spec.name);
        for spec in settings.stores.iter_mut().filter(|spec| is_own(spec)) {
            spec.place = StorePlace::Relay(uri.join(&spec.name));
        }
        stores::announce(&own, &uri, true);
        Ok(Some(Self { running }))
    }

    /// Brings all replicas up to date. False, and said, if that fails.
    pub(crate) fn finish(self) -> bool {
        let (done, waiting) = channel::<()>();
        std::thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                say(format_args!(
                    "sluice run: the program has ended; bringing replicas up to date"
                ));
            }
        });
        self.running.stop();
        let is_well = stores::close_datasets();
        drop(done);
        is_well
    }
}

fn is_in_use(path: &Path) -> bool {
    dataset::Status::of(path).is_ok_and(|status| status.in_use)
}

/// What `--layout [PREFIX=]FILE` means: a store, and a prefix that leads there.
pub(crate) fn add_layouts(settings: &mut Settings, layouts: &[std::ffi::OsString]) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let cwd = std::env::current_dir().context("cannot tell the working directory")?;
    let mut routes: Vec<address::Route> = settings.routes.iter().cloned().collect();
    for text in layouts {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let (prefix, file) = match at {
            Some(at) if bytes.first() == Some(&b'/') => (Some(&bytes[..at]), &bytes[at + 1..]),
            _ => (None, bytes),
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(file));
        let Some(stem) = path.file_stem().filter(|_| !file.ends_with(b"/")) else {
            bail!("--layout {}: this is no file; name a definition", text.display())
        };
        let spec = StoreSpec {
            name: stem.as_bytes().to_vec(),
            place: StorePlace::Dataset(path.to_path_buf()),
            read_only: false,
        };
        // As any store: its name is checked by parsing it.
        let parsed = StoreSpec::parse(&[stem.as_bytes(), b"=", file].concat(), false)?;
        let spec = crate::in_force::absolute(StoreSpec { name: parsed.name, ..spec }, &cwd);
        if let Some(prefix) = prefix {
            let route = [prefix, b"=scdc:///", stem.as_bytes()].concat();
            let route = address::Route::parse(&route)?;
            routes.retain(|weaker| weaker.prefix() != route.prefix());
            routes.push(route);
        }
        settings.stores.retain(|weaker| weaker.name != spec.name);
        settings.stores.push(spec);
    }
    StoreSpec::check_distinct(&settings.stores)?;
    settings.routes = address::Routes::new(routes)?;
    Ok(())
}
