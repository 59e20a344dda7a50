//! Node ports: where the providers of this process can be reached from others.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use address::{DEFAULT_TCP_PORT, Endpoint, SocketName};
use service::{Limits, Listen, Running, Service};

use super::library::{library, lock};
use super::report::{FAILURE, SUCCESS, ScdcInt, report};
use super::uri::{self, DEFAULT_SOCKET};
use super::variadic::{Arguments, text};
use crate::handles::Table;

/// Modes of `scdc_nodeport_start`.
const NONE: ScdcInt = 0;
const LOOP_UNTIL_CANCEL: ScdcInt = 1;
const LOOP_UNTIL_IDLE: ScdcInt = 2;
const ASYNC_UNTIL_CANCEL: ScdcInt = 4;
const ASYNC_UNTIL_IDLE: ScdcInt = 8;

/// How often a port that runs until it is idle looks.
const LOOK_EACH: Duration = Duration::from_millis(50);

/// What a node port is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    /// None: this process alone, by function calls, which is possible without.
    listen: Option<Listen>,
    connections: Option<usize>,
}

struct Port {
    plan: Plan,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    cancelled: bool,
}

static PORTS: Table<Port> = Table::new("node port");

/// Reads a configuration with its parameters.
///
/// # Safety
/// The parameters are those that the configuration names.
unsafe fn plan(conf: &str, arguments: &mut Arguments) -> Result<Plan, String> {
    let mut words = conf.split(':');
    let kind = words.next().unwrap_or_default();
    match kind {
        "direct" | "tcp" | "uds" => {}
        "mpi" => {
            return Err("a node port `mpi` cannot be opened within a program: start a rank with `sluice serve \
                        --listen mpi:NAME`, which may relay to this program's node port"
                .to_owned());
        }
        _ => return Err(format!("a node port `{kind}` is not supported: direct, uds and tcp are")),
    }
    let mut port = DEFAULT_TCP_PORT;
    let mut socket = SocketName::Named(DEFAULT_SOCKET.to_owned());
    let mut connections = None;
    if kind == "direct" {
        // SAFETY: the port's name, as this configuration says.
        let name = unsafe { arguments.text("the node port's name") }?;
        if !uri::is_name(&name) {
            return Err(format!("`{name}` cannot be the name of a node port"));
        }
    }
    for word in words {
        match (kind, word) {
            (_, "") => {}
            (_, "max_connections") => {
                // SAFETY: an int, as this configuration says.
                let count = unsafe { arguments.int() };
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                connections = Some(count.ok_or("max_connections must be at least 1")?);
            }
            ("tcp", "port") => {
                // SAFETY: an int, as this configuration says.
                let number: c_int = unsafe { arguments.int() };
                port = u16::try_from(number).map_err(|_| format!("{number} is no port"))?;
            }
            ("uds", "socketname") => {
                // SAFETY: a text, as this configuration says.
                let name = unsafe { arguments.text("the socket's name") }?;
                if !uri::is_name(&name) {
                    return Err(format!("`{name}` cannot be the name of a socket"));
                }
                socket = SocketName::Named(name);
            }
            ("uds", "socketfile") => {
                // SAFETY: a text, as this configuration says.
                let path = unsafe { arguments.text("the socket's file") }?;
                let path =
                    std::path::absolute(&path).map_err(|error| format!("{path}: {error}"))?;
                socket = SocketName::Path(path);
            }
            _ => return Err(format!("`{word}` is not understood for a node port `{kind}`")),
        }
    }
    let listen = match kind {
        "direct" => None,
        "tcp" => Some(Listen::Tcp(format!("127.0.0.1:{port}"))),
        _ => Some(Listen::Unix(resolved(&socket))),
    };
    Ok(Plan { listen, connections })
}

fn resolved(socket: &SocketName) -> PathBuf {
    match client::Place::of(&Endpoint::Unix(socket.clone())) {
        Some(client::Place::Unix(path)) => path,
        _ => PathBuf::from(format!("/tmp/{DEFAULT_SOCKET}.sock")),
    }
}

/// `scdc_nodeport_open`.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn open(
    conf: *const c_char,
    arguments: *mut Arguments,
) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        library()?;
        // SAFETY: the caller's promise.
        let plan = unsafe { plan(&text(conf, "conf")?, &mut *arguments) }?;
        let port = Port { plan, state: Mutex::default(), changed: Condvar::new() };
        Ok((PORTS.add(port), Vec::new()))
    })
}

impl Port {
    fn start(&self, mode: ScdcInt) -> Result<(), String> {
        let library = library()?;
        let mut state = lock(&self.state);
        if !matches!(
            mode,
            NONE | LOOP_UNTIL_CANCEL | LOOP_UNTIL_IDLE | ASYNC_UNTIL_CANCEL | ASYNC_UNTIL_IDLE
        ) {
            return Err(format!("{mode} is no mode of starting a node port"));
        }
        if mode == NONE {
            return Ok(());
        }
        if state.running.is_some() {
            return Err("the node port is started already".to_owned());
        }
        state.cancelled = false;
        if let Some(listen) = &self.plan.listen {
            if let Listen::Unix(path) = listen
                && let Some(directory) = path.parent()
            {
                // What is wrong with it is told by binding.
                let _ = std::fs::DirBuilder::new().recursive(true).create(directory);
            }
            let mut limits = Limits::default();
            if let Some(connections) = self.plan.connections {
                limits.connections = connections;
            }
            let exports: Arc<store::Exports> = Arc::clone(&library.exports);
            let builder = Service::builder(exports).limits(limits).listen(listen.clone());
            let running = builder.start().map_err(|error| crate::error::in_words(&error))?;
            state.running = Some(running);
        }
        if matches!(mode, ASYNC_UNTIL_CANCEL | ASYNC_UNTIL_IDLE) {
            return Ok(());
        }
        let mut used = false;
        while !state.cancelled {
            if mode == LOOP_UNTIL_IDLE {
                let counters = state.running.as_ref().map(Running::counters).unwrap_or_default();
                used |= counters.accepted > 0;
                if used && counters.connections == 0 {
                    break;
                }
            }
            let wait = self.changed.wait_timeout(state, LOOK_EACH);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), String> {
        self.cancel();
        let running = lock(&self.state).running.take();
        // Without the lock: commands that are in progress may have something to say.
        match running.is_none_or(Running::stop) {
            true => Ok(()),
            false => Err("some connections have not ended in time".to_owned()),
        }
    }

    fn cancel(&self) {
        lock(&self.state).cancelled = true;
        self.changed.notify_all();
    }
}

fn on_port(nodeport: *mut c_void, work: impl FnOnce(&Port) -> Result<(), String>) -> ScdcInt {
    report(FAILURE, || {
        let port = PORTS.get(nodeport).map_err(|error| error.to_string())?;
        work(&port)?;
        Ok((SUCCESS, Vec::new()))
    })
}

/// `scdc_nodeport_start`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_nodeport_start(nodeport: *mut c_void, mode: ScdcInt) -> ScdcInt {
    on_port(nodeport, |port| port.start(mode))
}

/// `scdc_nodeport_stop`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_nodeport_stop(nodeport: *mut c_void) -> ScdcInt {
    on_port(nodeport, Port::stop)
}

/// `scdc_nodeport_cancel`: a port that blocks returns.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_nodeport_cancel(nodeport: *mut c_void, interrupt: ScdcInt) -> ScdcInt {
    on_port(nodeport, |port| {
        port.cancel();
        if interrupt != 0 { port.stop() } else { Ok(()) }
    })
}

/// `scdc_nodeport_close`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_nodeport_close(nodeport: *mut c_void) {
    report((), || {
        let port = PORTS.take(nodeport).map_err(|error| error.to_string())?;
        port.stop()?;
        Ok(((), Vec::new()))
    });
}

/// Stops what is left.
pub(crate) fn end_all() {
    for port in PORTS.take_all() {
        // Nobody is left to be told.
        let _ = port.stop();
    }
}

thread_local! {
    static AUTHORITY: std::cell::RefCell<CString> = std::cell::RefCell::default();
}

/// `scdc_nodeport_authority`: what stands in addresses for a node port; valid until the thread's next call.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn authority(
    conf: *const c_char,
    arguments: *mut Arguments,
) -> *const c_char {
    report(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let (conf, arguments) = unsafe { (text(conf, "conf")?, &mut *arguments) };
        let authority = match &*conf {
            "direct" | "tcp" | "uds" | "uds:socketname" | "uds:socketfile" => {
                // SAFETY: a text, as these say.
                let name = unsafe { arguments.text("the name") };
                name?
            }
            // SAFETY: a host and an int.
            "tcp:port" => unsafe { format!("{}:{}", arguments.text("the host")?, arguments.int()) },
            "mpi" | "mpi:world" => {
                // SAFETY: the number of a rank, as these say.
                unsafe { arguments.int() }.to_string()
            }
            other => {
                return Err(format!(
                    "a node port `{other}` is not supported: direct, uds and tcp are"
                )
                .into());
            }
        };
        let authority = CString::new(authority).map_err(|error| error.to_string())?;
        let pointer = AUTHORITY.with(|kept| {
            *kept.borrow_mut() = authority;
            kept.borrow().as_ptr()
        });
        Ok((pointer, Vec::new()))
    })
}

/// `scdc_nodeport_supported`.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn supported(
    uri: *const c_char,
    arguments: *mut Arguments,
) -> ScdcInt {
    report(FAILURE, || {
        // SAFETY: the caller's promise.
        let pattern = unsafe { text(uri, "uri") }?;
        // SAFETY: as many texts as there are places for them.
        let uri = uri::filled(&pattern, || unsafe { (*arguments).text("a part of the address") })?;
        let way = uri::parse(&uri)?;
        match way.endpoint == Endpoint::Direct || client::Place::of(&way.endpoint).is_some() {
            true => Ok((SUCCESS, Vec::new())),
            false => Err(format!("{} is not supported here", way.endpoint.scheme()).into()),
        }
    })
}
