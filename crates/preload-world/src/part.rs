//! This program's part in the job: from MPI_Init to MPI_Finalize.

use std::ffi::{CString, c_int};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use mpi::Mpi;
use ranks::{Control, Error, Job, Parting, Result, Role, SOCKETS_VARIABLE, WORLD_VARIABLE};

use crate::world;

/// What is going on between MPI_Init and MPI_Finalize.
struct Part {
    job: std::sync::Arc<Job>,
    control: Control,
    sockets: String,
    /// Carries messages; there is none where the MPI library lets only one thread call it.
    carrier: Option<JoinHandle<Result<Parting>>>,
    /// The thread level that the program was told.
    level: c_int,
}

static PART: Mutex<Option<Part>> = Mutex::new(None);

fn part() -> std::sync::MutexGuard<'static, Option<Part>> {
    PART.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `sluice run` has put this program into a job with services.
pub(crate) fn is_wished() -> bool {
    std::env::var_os(SOCKETS_VARIABLE).is_some_and(|sockets| !sockets.is_empty())
}

/// The thread level to initialize MPI with.
pub(crate) fn level_wanted() -> Option<c_int> {
    Some(Mpi::find().ok()?.constants().numbers.thread_multiple)
}

/// Joins the job, after MPI has been initialized with `granted`, when the program had asked for `asked`.
/// Returns the level to tell the program.
///
/// A program that cannot join cannot go on either: its MPI_COMM_WORLD would be that of all. The job
/// is then ended with a sentence on standard error.
pub(crate) fn enter(asked: c_int, granted: c_int) -> c_int {
    let level = asked.min(granted);
    match join(granted, level) {
        Ok(()) => {}
        Err(error) => {
            tell(&error);
            std::process::exit(1);
        }
    }
    level
}

fn join(granted: c_int, level: c_int) -> Result<()> {
    let mpi = Mpi::find().map_err(|source| Error::Library { source })?;
    let variable = |name| std::env::var(name).unwrap_or_default();
    let job = Job::join(mpi, &Role::Program(variable(WORLD_VARIABLE)))?;
    if let Some(own) = job.world() {
        mpi.name_comm(own, c"MPI_COMM_WORLD");
        world::replace(mpi, own);
    }
    let (job, control) = (std::sync::Arc::new(job), Control::new()?);
    let sockets = variable(SOCKETS_VARIABLE);
    let wanted = mpi.constants().numbers.thread_multiple;
    let carrier = if granted < wanted {
        if !job.services().is_empty() {
            tell(&Error::ThreadLevel { granted, wanted });
        }
        None
    } else {
        Some(carry(&job, &sockets, &control)?)
    };
    *part() = Some(Part { job, control, sockets, carrier, level });
    Ok(())
}

/// Starts the thread that carries messages; returns when its sockets listen.
fn carry(
    job: &std::sync::Arc<Job>,
    sockets: &str,
    control: &Control,
) -> Result<JoinHandle<Result<Parting>>> {
    let (job, sockets, control) = (job.clone(), sockets.to_owned(), control.clone());
    let (ready, listening) = std::sync::mpsc::channel();
    let work = move || job.attend(&sockets, &control, || drop(ready));
    let thread =
        without_signals(|| std::thread::Builder::new().name("sluice-mpi".into()).spawn(work));
    let thread = thread.map_err(|source| Error::System { what: "start a thread", source })?;
    // Ends when `ready` is dropped, on whichever way.
    let _: std::result::Result<(), _> = listening.recv();
    Ok(thread)
}

/// Runs `work`, and what it starts, with all signals blocked: the program's handlers are for its own
/// threads.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset(3) fills the set; pthread_sigmask(3) reads it and fills the other.
    let is_blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = work();
    if is_blocked {
        // SAFETY: the set that pthread_sigmask(3) has filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

/// The thread level that the program was told, if it is in a job.
pub(crate) fn level() -> Option<c_int> {
    part().as_ref().map(|part| part.level)
}

/// Leaves the job, before MPI is finalized.
pub(crate) fn leave() {
    let Some(part) = part().take() else { return };
    settle(&part.job);
    part.control.end();
    let parting = match part.carrier {
        Some(carrier) => carrier.join().unwrap_or(Ok(Parting::Abandoned)),
        // Nothing was carried; the others wait for the goodbye.
        None => part.job.attend(&part.sockets, &part.control, || ()),
    };
    world::restore();
    match parting {
        Ok(Parting::Orderly) => {
            if let Some(job) = std::sync::Arc::into_inner(part.job) {
                job.leave();
            }
        }
        // What remains is for MPI_Finalize to notice.
        Ok(Parting::Abandoned) => {}
        Err(error) => tell(&error),
    }
}

/// Lets what the program has written arrive. `libsluice.so` waits for that before it looks at any path of
/// a service; without that library there is nothing to wait for.
fn settle(job: &Job) {
    for service in job.services() {
        let Ok(root) = CString::new(format!("scdc+mpi://{}/", service.name)) else { continue };
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: a NUL-terminated path, and room for what stat(2) finds, which nobody reads.
        unsafe { libc::stat(root.as_ptr(), found.as_mut_ptr()) };
    }
}

/// What a user must know and no return value can say.
fn tell(error: &Error) {
    let mut text = format!("sluice: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text += &format!(": {source}");
        cause = source.source();
    }
    let _ = writeln!(std::io::stderr(), "{text}");
}
