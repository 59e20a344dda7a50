//! What the last call said, and logging.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::variadic::{Arguments, text};

/// `scdcint_t`.
pub type ScdcInt = i64;

/// `SCDC_SUCCESS`.
pub(crate) const SUCCESS: ScdcInt = 1;
/// `SCDC_FAILURE`.
pub(crate) const FAILURE: ScdcInt = 0;

/// Bytes of the place for what was said.
const KEPT: usize = 64 << 10;

thread_local! {
    /// With a NUL. It stays where it is but for very long texts, because programs keep the pointer for too long.
    static LAST: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(KEPT));
}

/// What the thread's last call said.
pub(crate) fn say(text: &[u8]) {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    // While the thread is ending there is nobody left to ask.
    let _ = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        last.clear();
        last.extend_from_slice(&text[..end]);
        last.push(0);
    });
}

/// Carries out `work`. What it says, or why it failed, is the last result; `failed` goes to the caller then.
pub(crate) fn report<T>(failed: T, work: impl FnOnce() -> Result<(T, Vec<u8>), Vec<u8>>) -> T {
    // A panic must not cross into C.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok((value, text))) => {
            say(&text);
            value
        }
        Ok(Err(text)) => {
            say(&text);
            log(&text);
            failed
        }
        Err(_) => {
            say(b"a bug in Sluice was caught");
            failed
        }
    }
}

/// `scdc_last_result`: what the thread's last call said; valid until its next.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_last_result() -> *const c_char {
    let nothing = <&CStr>::default().as_ptr();
    let told = LAST.try_with(|last| {
        let last = last.borrow();
        if last.is_empty() { nothing } else { last.as_ptr().cast() }
    });
    told.unwrap_or(nothing)
}

/// `scdc_log_handler_f`.
type Handler = unsafe extern "C" fn(*mut c_void, *const c_char, ScdcInt) -> ScdcInt;

/// Where errors are logged.
enum Log {
    Handler { handler: Option<Handler>, data: *mut c_void },
    Stream(*mut libc::FILE),
    File(File),
}

// SAFETY: the pointers are the program's, which gave them to be used from whatever thread logs; C streams have locks.
unsafe impl Send for Log {}

static LOG: Mutex<Option<Log>> = Mutex::new(None);

fn log(text: &[u8]) {
    let mut line = b"scdc: ".to_vec();
    line.extend_from_slice(text);
    line.push(b'\n');
    // A handler that calls a function that fails is not called again for that.
    let Ok(mut log) = LOG.try_lock() else { return };
    match &mut *log {
        None => {}
        Some(Log::Handler { handler: None, .. }) => {}
        Some(Log::Handler { handler: Some(handler), data }) => {
            let size = line.len() as ScdcInt;
            line.push(0);
            // SAFETY: the program's own function, with the pointer that it wanted; the text ends with a NUL.
            unsafe { handler(*data, line.as_ptr().cast(), size) };
        }
        Some(Log::Stream(stream)) => {
            // SAFETY: the program's stream, which it keeps open while it is the log (docs/C-API.md).
            unsafe {
                libc::fwrite(line.as_ptr().cast(), 1, line.len(), *stream);
                libc::fflush(*stream);
            }
        }
        // Nobody could be told.
        Some(Log::File(file)) => drop(file.write_all(&line)),
    }
}

/// `scdc_log_init`. Errors are logged; there is no tracing.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn log_init(
    conf: *const c_char,
    arguments: *mut Arguments,
) -> ScdcInt {
    report(FAILURE, || {
        // SAFETY: the caller's promise.
        let (conf, arguments) = unsafe { (text(conf, "conf")?, &mut *arguments) };
        let log = match &*conf {
            "log_handler" => {
                // SAFETY: two functions, each followed by its pointer, as this configuration says.
                let [_, _, handler, data] = std::array::from_fn(|_| unsafe { arguments.pointer() });
                // SAFETY: NULL is no function; what is not NULL is one of the type that the interface wants.
                let handler =
                    unsafe { std::mem::transmute::<*mut c_void, Option<Handler>>(handler) };
                Log::Handler { handler, data }
            }
            "log_FILE" => {
                // SAFETY: two streams, as this configuration says.
                let [_, errors] = std::array::from_fn(|_| unsafe { arguments.pointer() });
                if errors.is_null() {
                    return Err(b"the stream for errors is NULL".to_vec());
                }
                Log::Stream(errors.cast())
            }
            "log_filepath" => {
                // SAFETY: a path, as this configuration says.
                let path = unsafe { arguments.text("the path of the log") }?;
                let open = |end: &str| {
                    let path = format!("{path}.{end}");
                    File::create(&path).map_err(|error| format!("cannot write {path}: {error}"))
                };
                open("out")?;
                Log::File(open("err")?)
            }
            other => {
                let known = "log_handler, log_FILE and log_filepath are known";
                return Err(format!("logging to `{other}` is not supported: {known}").into());
            }
        };
        *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(log);
        Ok((SUCCESS, Vec::new()))
    })
}

/// `scdc_log_release`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_log_release() {
    *LOG.lock().unwrap_or_else(PoisonError::into_inner) = None;
}
