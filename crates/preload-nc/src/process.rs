//! This process among those that are coupled.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use exchange::{Configuration, CycleEnd, Exchange, Fault, Plan, Role};

use crate::failure::Code;
use crate::inside::Inside;

/// What the launcher has said.
static GIVEN: OnceLock<Option<Plan>> = OnceLock::new();
/// What `dtf_init` has said, where the launcher said nothing.
static CALLED: OnceLock<Plan> = OnceLock::new();
static EXCHANGE: OnceLock<Exchange> = OnceLock::new();
static JOINING: Mutex<()> = Mutex::new(());
static HAS_LEFT: AtomicBool = AtomicBool::new(false);

/// What is coupled; none if nothing is. With a plan that is wrong every name would be a guess: so it is told, and the program
/// ends before it can do any harm.
fn plan() -> Option<&'static Plan> {
    let given = GIVEN.get_or_init(|| {
        let _inside = Inside::enter();
        match Plan::of_environment()? {
            Ok(plan) => Some(plan),
            Err(fault) => {
                tell(&fault.report());
                // SAFETY: _exit(2).
                unsafe { libc::_exit(127) }
            }
        }
    });
    given.as_ref().or_else(|| CALLED.get())
}

/// Takes the plan of `dtf_init` where the launcher has given none.
///
/// # Errors
/// A configuration that cannot be read, a component that it does not have.
pub(crate) fn plan_by_call(file: &Path, component: &str) -> Result<(), Fault> {
    if let Some(plan) = plan() {
        if plan.component() == component {
            return Ok(());
        }
        let known = plan.component().to_owned();
        return Err(Fault::NoComponent { component: component.to_owned(), known });
    }
    let meet = ["SLUICE_COUPLE_MEET", "DTF_GLOBAL_PATH"].into_iter().find_map(std::env::var_os);
    let meet = meet.ok_or(Fault::Environment { variable: "SLUICE_COUPLE_MEET" })?;
    let text = std::fs::read_to_string(file).map_err(|source| Fault::Directory {
        what: "the configuration",
        path: file.to_owned(),
        source,
    })?;
    let configuration = Configuration::parse(&text, &file.to_string_lossy())
        .map_err(|source| Fault::Configuration { source })?;
    let plan = Plan::new(configuration, component, Path::new(&meet))?;
    CALLED.get_or_init(|| plan);
    Ok(())
}

/// The plan, and a name of the program's, if something is coupled and this is not asked on our own behalf.
///
/// # Safety
/// NULL or a string.
unsafe fn asked<'a>(name: *const c_char) -> Option<(&'static Plan, &'a str)> {
    if name.is_null() || Inside::is_entered() {
        return None;
    }
    let plan = plan()?;
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    Some((plan, name.strip_prefix("ufs:").unwrap_or(name)))
}

/// The name of a coupled file, and what this program does with it.
///
/// # Safety
/// NULL or a string.
pub(crate) unsafe fn role(name: *const c_char, creates: bool) -> Option<(String, Role)> {
    // SAFETY: the caller's promise.
    let (plan, name) = unsafe { asked(name)? };
    Some((name.to_owned(), plan.role(name, creates)?))
}

/// Whether a name is that of a file that another program writes for this one: it exists for all that asks, as whoever opens it
/// waits for it.
///
/// # Safety
/// NULL or a string.
pub(crate) unsafe fn is_expected(name: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let Some((plan, name)) = (unsafe { asked(name) }) else { return false };
    // Who carries data looks for files there.
    let is_meeting = std::env::var(Plan::MEET).is_ok_and(|meet| name.starts_with(&meet));
    plan.role(name, false) == Some(Role::Reader) && !is_meeting
}

/// Whether a name is that of a file which this program exchanges from memory, and which does not exist as a file.
///
/// # Safety
/// NULL or a string.
pub(crate) unsafe fn is_carried(name: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    let Some((plan, name)) = (unsafe { asked(name) }) else { return false };
    plan.rule(name).is_some_and(|rule| rule.mode == exchange::Mode::Transfer)
        && !std::path::Path::new(name).exists()
}

/// Whether the program leaves memory that it wrote from alone until it closes the file, or calls `dtf_transfer`.
pub(crate) fn is_lent(name: &str) -> bool {
    plan()
        .and_then(|plan| plan.rule(name))
        .is_some_and(|rule| rule.lent || crate::dtf::is_used() && !rule.buffer)
}

/// Which calls end a cycle of a file.
pub(crate) fn cycle_end(name: &str) -> CycleEnd {
    plan().and_then(|plan| plan.rule(name)).map_or(CycleEnd::Close, |rule| rule.cycle)
}

/// This process's exchange, made at the first coupled file.
pub(crate) fn exchange() -> Result<&'static Exchange, Code> {
    if let Some(exchange) = EXCHANGE.get() {
        return Ok(exchange);
    }
    let _one_at_a_time = JOINING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(exchange) = EXCHANGE.get() {
        return Ok(exchange);
    }
    let plan = plan().ok_or(Fault::Environment { variable: Plan::CONFIGURATION })?;
    let exchange = Exchange::join(plan.clone())?;
    Ok(EXCHANGE.get_or_init(|| exchange))
}

/// Takes leave, once: waits until what was written is read. What nobody has read is told, as it is lost.
pub(crate) fn leave() {
    let Some(exchange) = EXCHANGE.get() else { return };
    if HAS_LEFT.swap(true, Ordering::AcqRel) {
        return;
    }
    for unread in exchange.leave() {
        let exchange::Unread { file, opening, why } = unread;
        tell(&format!(
            "file `{file}`, created for the time number {}: was not read by anybody: {why}",
            opening + 1
        ));
    }
}

/// Says on standard error what the program cannot be told.
pub(crate) fn tell(sentence: &str) {
    let line = format!("sluice: {sentence}\n");
    // SAFETY: write(2) of a string; if it fails nobody listens.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Runs when the process exits, for programs that do not end MPI.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    let _ = std::panic::catch_unwind(leave);
}
