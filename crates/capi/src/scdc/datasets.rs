//! Datasets: `scdc_dataset_open`, `scdc_dataset_cmd`, `scdc_dataset_close`.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex};

use address::Endpoint;
use client::Session;
use commands::Dataset;

use super::hooks::{CONFIG, HookDataset, Hooks};
use super::inout::{Given, ScdcInout};
use super::library::{library, lock};
use super::outputs;
use super::report::{FAILURE, SUCCESS, ScdcInt, report};
use super::uri::{self, Way};
use super::variadic::{Arguments, text};
use crate::handles::Table;

/// A dataset that was opened.
pub(crate) struct Open {
    pub(crate) used: Mutex<Used>,
}

/// What is behind it. Whoever has it locked is in a call.
pub(crate) struct Used {
    kind: Kind,
    /// Room for output of which the caller gave none.
    pub(crate) room: Vec<u8>,
    /// Counts commands: the output of an earlier one is gone.
    pub(crate) commands: u64,
}

enum Kind {
    /// Hooks of this process.
    Hook(HookDataset),
    /// Their configuration.
    Configuration(Arc<Hooks>),
    /// Files, or hooks of another process. The option is there to be taken at the end.
    Far(Option<Box<Far>>),
}

struct Far {
    dataset: Dataset,
    endpoint: Endpoint,
    session: Arc<Session>,
}

static DATASETS: Table<Open> = Table::new("dataset");

thread_local! {
    /// The dataset of the thread's last command without one: its output may still be looked at.
    static PASSING: RefCell<Option<Arc<Open>>> = const { RefCell::new(None) };
}

impl Used {
    /// What commands have left, if anything.
    pub(crate) fn far(&mut self) -> Option<&mut Dataset> {
        match &mut self.kind {
            Kind::Far(Some(far)) => Some(&mut far.dataset),
            Kind::Far(None) | Kind::Hook(_) | Kind::Configuration(_) => None,
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // The connection serves the next one. What the dataset was is told by dropping it.
        if let Ok(library) = library() {
            library.done_with(&self.endpoint, Arc::clone(&self.session));
        }
    }
}

/// Opens what an address leads to.
fn opened(way: &Way, checked: bool) -> Result<Open, String> {
    let library = library()?;
    let with = |kind| Open { used: Mutex::new(Used { kind, room: Vec::new(), commands: 0 }) };
    if way.endpoint == Endpoint::Direct {
        let (name, rest) = way.path.split_once('/').unwrap_or((&way.path, ""));
        if let Some(hooks) = lock(&library.hooks).get(name).cloned() {
            return Ok(with(match rest {
                CONFIG => Kind::Configuration(hooks),
                path => Kind::Hook(hooks.dataset(path)?),
            }));
        }
    }
    let session = library.connection(&way.endpoint)?;
    let far = Dataset::open(&session, way.path.as_bytes()).and_then(|mut dataset| {
        if checked {
            dataset.check()?;
        }
        Ok(dataset)
    });
    match far {
        Ok(dataset) => Ok(with(Kind::Far(Some(Box::new(Far {
            dataset,
            endpoint: way.endpoint.clone(),
            session,
        }))))),
        Err(commands::Error::Service(error)) => {
            Err(format!("open connection failed: {}", crate::error::in_words(&error)))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// `scdc_dataset_open`.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn open(uri: *const c_char, arguments: *mut Arguments) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        library()?;
        // SAFETY: the caller's promise.
        let pattern = unsafe { text(uri, "uri") }?;
        // SAFETY: as many texts as there are places for them.
        let uri = uri::filled(&pattern, || unsafe { (*arguments).text("a part of the address") })?;
        Ok((DATASETS.add(opened(&uri::parse(&uri)?, true)?), Vec::new()))
    })
}

/// `scdc_dataset_close`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_dataset_close(dataset: *mut c_void) {
    report((), || {
        let dataset = DATASETS.take(dataset).map_err(|error| error.to_string())?;
        // A call of another thread goes on, and drops it then.
        drop(dataset);
        Ok(((), Vec::new()))
    });
}

/// Ends what is left.
pub(crate) fn end_all() {
    drop(DATASETS.take_all());
    let _ = PASSING.try_with(|passing| passing.borrow_mut().take());
}

/// `scdc_dataset_cmd`.
///
/// # Safety
/// As [`super::variadic`] says; `input` and `output` are NULL or lead to objects, whose pointers lead to as many bytes as
/// they say.
pub(crate) unsafe extern "C" fn command(
    dataset: *mut c_void,
    cmd: *const c_char,
    input: *mut ScdcInout,
    output: *mut ScdcInout,
    arguments: *mut Arguments,
) -> ScdcInt {
    report(FAILURE, || {
        library()?;
        // SAFETY: the caller's promise.
        let cmd = unsafe { text(cmd, "cmd") }?;
        let (dataset, line) = if dataset.is_null() {
            let (pattern, line) = cmd.split_once(' ').unwrap_or((&cmd, ""));
            // SAFETY: as many texts as there are places for them.
            let uri =
                uri::filled(pattern, || unsafe { (*arguments).text("a part of the address") })?;
            let way = uri::parse(&uri)?;
            let failed = |why: String| match why.starts_with("open connection") {
                true => why,
                false => format!("opening dataset '{}' failed: {why}", way.path),
            };
            let dataset = Arc::new(opened(&way, false).map_err(failed)?);
            let _ = PASSING.try_with(|passing| passing.replace(Some(Arc::clone(&dataset))));
            (dataset, line.to_owned())
        } else {
            (DATASETS.get(dataset).map_err(|error| error.to_string())?, cmd)
        };
        let Ok(mut used) = dataset.used.try_lock() else {
            return Err(
                b"the dataset is in use by another call; give each thread a dataset of its own"
                    .to_vec(),
            );
        };
        used.commands += 1;
        // SAFETY: the caller's promise.
        let said = unsafe { carry_out(&dataset, &mut used, line.as_bytes(), input, output) }?;
        Ok((SUCCESS, said))
    })
}

/// # Safety
/// As [`command`].
unsafe fn carry_out(
    dataset: &Arc<Open>,
    used: &mut Used,
    line: &[u8],
    input: *mut ScdcInout,
    output: *mut ScdcInout,
) -> Result<Vec<u8>, Vec<u8>> {
    match &mut used.kind {
        Kind::Hook(hook) => {
            let (mut no_input, mut no_output) = (ScdcInout::default(), ScdcInout::default());
            let input = if input.is_null() { &raw mut no_input } else { input };
            // SAFETY: the caller's promise.
            match unsafe { output.as_mut() } {
                // Output that goes somewhere by itself.
                Some(sink) if sink.next.is_some() => {
                    // SAFETY: the caller's promise; the room of the sink is the hook's until it returns.
                    unsafe { outputs::from_hook_into(hook, line, input, sink) }
                        .map_err(String::into_bytes)
                }
                Some(output) => {
                    // SAFETY: the caller's promise.
                    unsafe { hook.call(line, input, output) }.map_err(String::into_bytes)
                }
                // SAFETY: objects of this function.
                None => unsafe { hook.call(line, input, &raw mut no_output) }
                    .map_err(String::into_bytes),
            }
        }
        Kind::Configuration(hooks) => {
            hooks.configure(line).map_err(|text| format!("command failed: {text}").into_bytes())
        }
        Kind::Far(None) => Err(b"the dataset is closed".to_vec()),
        Kind::Far(Some(far)) => {
            // SAFETY: the caller's promise.
            let mut given = unsafe { input.as_mut().map(|input| Given::new(input)) };
            let source = given.as_mut().map(|given| given as &mut dyn commands::Source);
            let answer = far.dataset.run(line, source, !output.is_null());
            let answer = answer.map_err(|error| error.to_string().into_bytes())?;
            // SAFETY: the caller's promise.
            if let Some(output) = unsafe { output.as_mut() }
                && answer.success
            {
                let source = given.as_mut().map(|given| given as &mut dyn commands::Source);
                // SAFETY: the caller's promise.
                unsafe { outputs::give(dataset, used, output, source) }
                    .map_err(String::into_bytes)?;
            } else {
                // SAFETY: the caller's promise.
                let output = unsafe { output.as_mut() };
                output.into_iter().for_each(|output| output.buf.current = 0);
            }
            if answer.success { Ok(answer.text) } else { Err(answer.text) }
        }
    }
}
