//! Output on its way to a program in C: into its buffer, and the rest behind a next function of ours.

use std::ffi::c_void;
use std::io::{Read, Seek, Write};
use std::sync::{Arc, Mutex};

use commands::Source;

use super::datasets::{Open, Used};
use super::hooks::HookDataset;
use super::inout::{ScdcInout, ScdcResult, taken};
use super::library::lock;
use super::report::{FAILURE, SUCCESS, ScdcInt};
use crate::handles::Table;

/// Bytes of the buffer of an output that has none.
const ROOM: usize = 1 << 20;

/// Output that was not taken yet.
struct Waiting {
    dataset: Arc<Open>,
    /// Of which command it is.
    command: u64,
    /// The output is in the caller's own buffer, of which this is the address and the size: next functions may not be
    /// asked to write elsewhere.
    kept: Mutex<Option<std::fs::File>>,
}

static WAITING: Table<Waiting> = Table::new("output");

/// Ends what is left.
pub(crate) fn end_all() {
    drop(WAITING.take_all());
}

/// Puts the first piece of a command's output into `output`, or all of it into where it goes by itself. `source` is
/// what is left of the input: it must be at its end when this returns, because the caller may take it away.
///
/// # Safety
/// The object's pointers lead to as many bytes as it says.
pub(crate) unsafe fn give(
    dataset: &Arc<Open>,
    used: &mut Used,
    output: &mut ScdcInout,
    mut source: Option<&mut dyn Source>,
) -> Result<(), String> {
    if output.next.is_some() {
        // SAFETY: the caller's promise.
        return unsafe { pour(used, output, source) };
    }
    // Hooks may make output of input that is still coming.
    let mut kept = None;
    if source.as_ref().is_some_and(|source| !source.has_ended())
        && let Some(far) = used.far()
        && far.is_hooks()
        && far.has_output()
    {
        kept = Some(spool(far, &mut source)?);
    }
    let waiting =
        Waiting { dataset: Arc::clone(dataset), command: used.commands, kept: Mutex::new(kept) };
    // SAFETY: the caller's promise.
    let more = unsafe { fill(used, &waiting, output) }?;
    if more {
        output.next = Some(next);
        output.intern_data = WAITING.add(waiting);
    }
    Ok(())
}

/// Writes output that comes while input goes into a file that has no name, so that memory holds pieces only.
fn spool(
    far: &mut commands::Dataset,
    source: &mut Option<&mut dyn Source>,
) -> Result<std::fs::File, String> {
    let failed = |error: std::io::Error| {
        format!("keeping output in {}: {error}", std::env::temp_dir().display())
    };
    let mut file = unnamed().map_err(failed)?;
    let mut buffer = vec![0; ROOM];
    while far.has_output() {
        let input = source.as_mut().map(|source| &mut **source as &mut dyn Source);
        let (count, _) = far.take(&mut buffer, input).map_err(|error| error.to_string())?;
        file.write_all(&buffer[..count]).map_err(failed)?;
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// A file without a name (open(2), `O_TMPFILE`).
fn unnamed() -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(std::env::temp_dir())
}

/// Puts the next piece into `output`; whether there may be more.
///
/// # Safety
/// As [`give`].
unsafe fn fill(used: &mut Used, waiting: &Waiting, output: &mut ScdcInout) -> Result<bool, String> {
    let Used { room, .. } = used;
    let mut room = std::mem::take(room);
    // SAFETY: the caller's promise.
    let own = unsafe { output.room() }.filter(|own| own.as_ptr() != room.as_ptr());
    let given = own.is_some();
    if !given && room.is_empty() {
        room = vec![0; ROOM];
    }
    let target = own.unwrap_or(&mut room);
    let taken = match &mut *lock(&waiting.kept) {
        Some(file) => read(file, target),
        None => match used.far() {
            Some(far) => far
                .fetch(None)
                .and_then(|()| {
                    output.set_shape(far.output_shape());
                    far.take(target, None)
                })
                .map_err(|error| error.to_string()),
            None => Ok((0, false)),
        },
    };
    if !given {
        output.buf.ptr = room.as_mut_ptr().cast();
        output.buf.size = taken.as_ref().map_or(0, |(count, _)| *count as ScdcInt);
    }
    used.room = room;
    let (count, more) = taken.inspect_err(|_| output.buf.current = 0)?;
    output.buf.current = count as ScdcInt;
    Ok(more)
}

fn read(file: &mut std::fs::File, target: &mut [u8]) -> Result<(usize, bool), String> {
    let count = file.read(target).map_err(|error| format!("reading output again: {error}"))?;
    Ok((count, count > 0))
}

/// Puts all output through the next function that the caller's object has, piece by piece.
///
/// # Safety
/// As [`give`].
unsafe fn pour(
    used: &mut Used,
    sink: &mut ScdcInout,
    mut source: Option<&mut dyn Source>,
) -> Result<(), String> {
    let Some(into) = sink.next else { return Ok(()) };
    let buf = sink.buf;
    let mut room = std::mem::take(&mut used.room);
    if room.is_empty() {
        room = vec![0; ROOM];
    }
    let poured = (|| {
        let Some(far) = used.far() else { return Ok(()) };
        while far.has_output() && sink.next.is_some() {
            let input = source.as_mut().map(|source| &mut **source as &mut dyn Source);
            let (count, _) = far.take(&mut room, input).map_err(|error| error.to_string())?;
            if count == 0 {
                continue;
            }
            sink.set_shape(far.output_shape());
            sink.buf.ptr = room.as_mut_ptr().cast();
            sink.buf.size = room.len() as ScdcInt;
            sink.buf.current = count as ScdcInt;
            // SAFETY: the object that the caller has given this function with.
            unsafe { sink.call_next(into) }?;
        }
        Ok(())
    })();
    used.room = room;
    sink.buf = buf;
    sink.buf.current = 0;
    poured
}

/// A command of hooks of this process, whose output goes into a sink.
///
/// # Safety
/// As [`give`], and of `input` too.
pub(crate) unsafe fn from_hook_into(
    hook: &HookDataset,
    line: &[u8],
    input: *mut ScdcInout,
    sink: &mut ScdcInout,
) -> Result<Vec<u8>, String> {
    let Some(into) = sink.next else { return Ok(Vec::new()) };
    let mut room = vec![0_u8; ROOM];
    let mut output = ScdcInout::default();
    output.buf.ptr = room.as_mut_ptr().cast();
    output.buf.size = ROOM as ScdcInt;
    // SAFETY: the caller's promise.
    let said = unsafe { hook.call(line, input, &raw mut output) }?;
    let buf = sink.buf;
    let poured = (|| {
        loop {
            // SAFETY: the hook's promise.
            let mut piece = unsafe { taken(&output) }?;
            if !piece.data.is_empty() {
                sink.set_shape(piece.shape);
                sink.buf.ptr = piece.data.as_mut_ptr().cast();
                sink.buf.size = piece.data.len() as ScdcInt;
                sink.buf.current = sink.buf.size;
                // SAFETY: the object that the caller has given this function with.
                unsafe { sink.call_next(into) }?;
            }
            match output.next {
                // SAFETY: the object that the hook has given this function with.
                Some(next) => unsafe { output.call_next(next) }?,
                None => return Ok(()),
            }
        }
    })();
    sink.buf = buf;
    sink.buf.current = 0;
    poured.map(|()| said)
}

/// The next function of outputs that were given.
unsafe extern "C" fn next(output: *mut ScdcInout, result: *mut ScdcResult) -> ScdcInt {
    let work = || {
        // SAFETY: the caller's promise: NULL or an object.
        let output = unsafe { output.as_mut() }.ok_or("the output is NULL")?;
        let handle: *mut c_void = output.intern_data;
        let went = (|| {
            let waiting = WAITING.get(handle).map_err(|_| "there is no more of this output")?;
            let Ok(mut used) = waiting.dataset.used.try_lock() else {
                return Err("the dataset is in use by another call".to_owned());
            };
            if used.commands != waiting.command {
                return Err("another command has ended this output".to_owned());
            }
            // SAFETY: the caller's promise.
            unsafe { fill(&mut used, &waiting, output) }
        })();
        if !matches!(went, Ok(true)) {
            // What is in the room stays there until the dataset is used again.
            let _ = WAITING.take(handle);
            output.next = None;
            output.intern_data = std::ptr::null_mut();
        }
        if went.is_err() {
            output.buf.current = 0;
        }
        went
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match done.unwrap_or_else(|_| Err("a bug in Sluice was caught".to_owned())) {
        Ok(_) => SUCCESS,
        Err(text) => {
            super::report::say(text.as_bytes());
            // SAFETY: the caller's promise: NULL or a result.
            if let Some(result) = unsafe { result.as_mut() } {
                result.say(&text);
            }
            FAILURE
        }
    }
}
