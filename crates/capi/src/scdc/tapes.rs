//! Inputs and outputs that are files, descriptors, streams, or made up: `scdc_dataset_input_create` and its kin.

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::sync::Mutex;

use super::inout::{ScdcInout, ScdcResult};
use super::library::lock;
use super::report::{FAILURE, SUCCESS, ScdcInt, report};
use super::variadic::{Arguments, text};
use crate::handles::Table;

/// Bytes of the buffers of inputs.
const ROOM: usize = 256 << 10;

/// What stands behind an input or output.
struct Tape(Mutex<State>);

struct State {
    end: End,
    room: Vec<u8>,
    /// Bytes that are still to come, or to be taken, if that is limited.
    left: Option<u64>,
}

enum End {
    File(File),
    /// A descriptor that stays the program's.
    Borrowed(Option<File>),
    Stream(*mut libc::FILE),
    /// Zeros to read; nothing to write.
    Nothing,
    Zeros,
}

// SAFETY: a stream is the program's, and has a lock of its own (flockfile(3)).
unsafe impl Send for End {}

impl Drop for End {
    fn drop(&mut self) {
        if let Self::Borrowed(file) = self
            && let Some(file) = file.take()
        {
            // Not ours to close.
            let _ = file.into_raw_fd();
        }
    }
}

static TAPES: Table<Tape> = Table::new("input or output");

/// Ends what is left.
pub(crate) fn end_all() {
    drop(TAPES.take_all());
}

impl End {
    fn read(&mut self, target: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) | Self::Borrowed(Some(file)) => loop {
                match file.read(target) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    other => return other,
                }
            },
            Self::Stream(stream) => {
                // SAFETY: the program's stream, which it keeps open as long as this is used; room of that length.
                let count =
                    unsafe { libc::fread(target.as_mut_ptr().cast(), 1, target.len(), *stream) };
                // SAFETY: as above.
                if count == 0 && unsafe { libc::ferror(*stream) } != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(count)
            }
            Self::Zeros => {
                target.fill(0);
                Ok(target.len())
            }
            Self::Nothing | Self::Borrowed(None) => Ok(0),
        }
    }

    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        match self {
            Self::File(file) | Self::Borrowed(Some(file)) => file.write_all(data),
            Self::Stream(stream) => {
                // SAFETY: the program's stream, which it keeps open as long as this is used.
                let count = unsafe { libc::fwrite(data.as_ptr().cast(), 1, data.len(), *stream) };
                if count == data.len() { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            }
            Self::Nothing | Self::Zeros | Self::Borrowed(None) => Ok(()),
        }
    }
}

/// Opens what a configuration describes.
///
/// # Safety
/// The parameters are those that the configuration names.
unsafe fn tape(conf: &str, arguments: &mut Arguments, writes: bool) -> Result<State, String> {
    let mut words = conf.split(':');
    let kind = words.next().unwrap_or_default();
    let mut end = match kind {
        "none" => End::Nothing,
        "produce" | "zero" if !writes => End::Zeros,
        "consume" if writes => End::Nothing,
        "fd" | "fddup" => {
            // SAFETY: an int, as this says.
            let fd = unsafe { arguments.int() };
            if fd < 0 {
                return Err(format!("{fd} is no descriptor"));
            }
            // SAFETY: not -1; a number that is not open is EBADF of the system.
            let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
            let own = borrowed
                .try_clone_to_owned()
                .map_err(|error| format!("descriptor {fd}: {error}"))?;
            match kind {
                "fddup" => End::File(File::from(own)),
                // SAFETY: it is open, as was just seen; whoever drops this does not close it.
                _ => End::Borrowed(Some(unsafe { File::from_raw_fd(fd) })),
            }
        }
        "stream" | "streamdup" => {
            // SAFETY: a stream, as this says.
            let stream = unsafe { arguments.pointer() };
            if stream.is_null() {
                return Err("the stream is NULL".to_owned());
            }
            End::Stream(stream.cast())
        }
        "file" => {
            // SAFETY: a path, as this says.
            let path = unsafe { arguments.text("the path") }?;
            let file = if writes {
                // Not emptied: a part of it may be what is to be written.
                let partly = conf.contains(":offset");
                let mut options = File::options();
                options.write(true).create(true).truncate(!partly).open(&path)
            } else {
                File::open(&path)
            };
            End::File(file.map_err(|error| format!("opening file '{path}' failed: {error}"))?)
        }
        _ => {
            return Err(format!(
                "`{kind}` is not understood: none, fd, stream, file, produce and consume are known"
            ));
        }
    };
    let mut left = None;
    for word in words.filter(|word| !word.is_empty()) {
        let mut value = || {
            // SAFETY: a scdcint_t, as each of these says.
            let value = unsafe { arguments.long() };
            u64::try_from(value).map_err(|_| format!("{value} is no {word}"))
        };
        match word {
            "offset" => {
                let offset = value()?;
                match &mut end {
                    End::File(file) | End::Borrowed(Some(file)) => {
                        file.seek(SeekFrom::Start(offset))
                            .map_err(|error| format!("offset {offset}: {error}"))?;
                    }
                    _ => return Err(format!("`{kind}` has no offsets")),
                }
            }
            "size" => left = Some(value()?),
            _ => return Err(format!("`{word}` is not understood: offset and size are known")),
        }
    }
    Ok(State { end, room: Vec::new(), left })
}

impl State {
    /// Reads the next piece: how many bytes, and whether there may be more.
    fn fill(&mut self) -> Result<(usize, bool), String> {
        if self.room.is_empty() {
            self.room = vec![0; ROOM];
        }
        let most = self.left.map_or(ROOM, |left| usize::try_from(left).unwrap_or(ROOM).min(ROOM));
        let mut count = 0;
        while count < most {
            let part = self.end.read(&mut self.room[count..most]);
            match part.map_err(|error| format!("reading failed: {error}"))? {
                0 => break,
                part => count += part,
            }
        }
        self.left = self.left.map(|left| left - count as u64);
        Ok((count, count == most && most > 0 && self.left != Some(0)))
    }
}

fn format_of(word: &[u8]) -> [u8; 16] {
    let mut format = [0; 16];
    format[..word.len()].copy_from_slice(word);
    format
}

/// Makes `input` the first piece of a tape.
fn show(input: &mut ScdcInout, state: State) -> Result<(), String> {
    let mut state = state;
    let size = match (&state.end, state.left) {
        (End::Zeros, left) => left,
        (End::File(file), left) => {
            file.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| {
                let at = (&*file).stream_position().unwrap_or(0);
                let rest = found.len().saturating_sub(at);
                left.map_or(rest, |left| left.min(rest))
            })
        }
        _ => None,
    };
    let (count, more) = state.fill()?;
    *input = ScdcInout::default();
    input.format = format_of(b"data");
    if let Some(size) = size {
        input.total_size = size as ScdcInt;
        input.total_size_given = b'x' as c_char;
    }
    input.buf.ptr = state.room.as_mut_ptr().cast();
    input.buf.size = state.room.len() as ScdcInt;
    input.buf.current = count as ScdcInt;
    input.next = more.then_some(next_of_input);
    input.intern_data = TAPES.add(Tape(Mutex::new(state)));
    Ok(())
}

/// Carries a next function of ours out.
///
/// # Safety
/// `result` is NULL or a result.
unsafe fn answered(result: *mut ScdcResult, work: impl FnOnce() -> Result<(), String>) -> ScdcInt {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    match done.unwrap_or_else(|_| Err("a bug in Sluice was caught".to_owned())) {
        Ok(()) => SUCCESS,
        Err(text) => {
            // SAFETY: the caller's promise.
            if let Some(result) = unsafe { result.as_mut() } {
                result.say(&text);
            }
            FAILURE
        }
    }
}

/// The next function of an input that is a tape.
unsafe extern "C" fn next_of_input(input: *mut ScdcInout, result: *mut ScdcResult) -> ScdcInt {
    let work = || {
        // SAFETY: the caller's promise: NULL or an object.
        let input = unsafe { input.as_mut() }.ok_or("the input is NULL")?;
        let tape = TAPES.get(input.intern_data).map_err(|error| error.to_string())?;
        let mut state = lock(&tape.0);
        let (count, more) = state.fill()?;
        input.buf.ptr = state.room.as_mut_ptr().cast();
        input.buf.current = count as ScdcInt;
        input.next = more.then_some(next_of_input);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { answered(result, work) }
}

/// The next function of an output that is a tape: writes the piece that is in it.
unsafe extern "C" fn next_of_output(output: *mut ScdcInout, result: *mut ScdcResult) -> ScdcInt {
    let work = || {
        // SAFETY: the caller's promise: NULL or an object.
        let output = unsafe { output.as_mut() }.ok_or("the output is NULL")?;
        let tape = TAPES.get(output.intern_data).map_err(|error| error.to_string())?;
        let mut piece = Vec::new();
        // SAFETY: whoever calls it has put a piece there.
        unsafe { output.copy_into(&mut piece) }?;
        write(&mut lock(&tape.0), &piece)
    };
    // SAFETY: the caller's promise.
    unsafe { answered(result, work) }
}

fn write(state: &mut State, piece: &[u8]) -> Result<(), String> {
    let most = state
        .left
        .map_or(piece.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(piece.len()));
    state.end.write(&piece[..most]).map_err(|error| format!("writing failed: {error}"))?;
    state.left = state.left.map(|left| left - most as u64);
    Ok(())
}

/// `scdc_dataset_input_create`.
///
/// # Safety
/// As [`super::variadic`] says; `input` is NULL or may be written.
pub(crate) unsafe extern "C" fn input_create(
    input: *mut ScdcInout,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> *mut ScdcInout {
    report(std::ptr::null_mut(), || {
        if input.is_null() {
            return Err(b"input is NULL".to_vec());
        }
        // SAFETY: the caller's promise.
        let state = unsafe { tape(&text(conf, "conf")?, &mut *arguments, false) }?;
        let mut made = ScdcInout::default();
        show(&mut made, state)?;
        // SAFETY: the caller's promise.
        unsafe { input.write(made) };
        Ok((input, Vec::new()))
    })
}

/// `scdc_dataset_output_create`.
///
/// # Safety
/// As [`super::variadic`] says; `output` is NULL or may be written.
pub(crate) unsafe extern "C" fn output_create(
    output: *mut ScdcInout,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> *mut ScdcInout {
    report(std::ptr::null_mut(), || {
        if output.is_null() {
            return Err(b"output is NULL".to_vec());
        }
        // SAFETY: the caller's promise.
        let state = unsafe { tape(&text(conf, "conf")?, &mut *arguments, true) }?;
        let made = ScdcInout {
            format: format_of(b"data"),
            next: Some(next_of_output),
            intern_data: TAPES.add(Tape(Mutex::new(state))),
            ..ScdcInout::default()
        };
        // SAFETY: the caller's promise.
        unsafe { output.write(made) };
        Ok((output, Vec::new()))
    })
}

/// `scdc_dataset_input_destroy`.
///
/// # Safety
/// It is NULL or an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_input_destroy(input: *mut ScdcInout) {
    report((), || {
        // SAFETY: the caller's promise.
        let input = unsafe { input.as_mut() }.ok_or("the input or output is NULL")?;
        let taken = TAPES.take(input.intern_data);
        *input = ScdcInout::default();
        taken.map_err(|error| error.to_string())?;
        Ok(((), Vec::new()))
    });
}

/// `scdc_dataset_output_destroy`.
///
/// # Safety
/// It is NULL or an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_output_destroy(output: *mut ScdcInout) {
    // SAFETY: the caller's promise.
    unsafe { scdc_dataset_input_destroy(output) };
}

/// The next function of an output that is an input: `data` leads to that.
unsafe extern "C" fn next_of_input_in_output(
    output: *mut ScdcInout,
    result: *mut ScdcResult,
) -> ScdcInt {
    // SAFETY: `redirect` has made it so, and the input stays as long as the command.
    let input =
        unsafe { output.as_ref().and_then(|output| output.data.cast::<ScdcInout>().as_mut()) };
    let work = || {
        let input = input.ok_or("there is no input")?;
        if let Some(next) = input.next {
            // SAFETY: the object that its owner has given this function with.
            unsafe { input.call_next(next) }?;
        } else {
            input.buf.current = 0;
        }
        // SAFETY: as above.
        unsafe { pass(input, &mut *output) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { answered(result, work) }
}

/// Makes the piece of an input that of an output.
///
/// # Safety
/// Both are objects of one command.
unsafe fn pass(input: &mut ScdcInout, output: &mut ScdcInout) {
    output.buf = input.buf;
    output.next = input.next.map(|_| next_of_input_in_output as super::inout::Next);
    output.data = (&raw mut *input).cast::<c_void>();
}

/// Redirects one object to or from another, or a tape.
///
/// # Safety
/// As [`super::variadic`] says; both are NULL or objects.
unsafe fn redirect(
    inout: *mut ScdcInout,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> ScdcInt {
    report(FAILURE, || {
        // SAFETY: the caller's promise.
        let (conf, arguments) = unsafe { (text(conf, "conf")?, &mut *arguments) };
        // SAFETY: the caller's promise.
        let inout = unsafe { inout.as_mut() }.ok_or("the input or output is NULL")?;
        match &*conf {
            "to:output" | "from:input" => {
                // SAFETY: an object, as these say.
                let other = unsafe { arguments.pointer().cast::<ScdcInout>().as_mut() };
                let other = other.ok_or("the other object is NULL")?;
                let (input, output) =
                    if conf == "to:output" { (inout, other) } else { (other, inout) };
                output.set_shape(input.shape());
                // SAFETY: the caller's promise.
                unsafe { pass(input, output) };
            }
            _ => match conf.split_once(':') {
                Some(("to", conf)) => {
                    // SAFETY: the caller's promise.
                    let mut state = unsafe { tape(conf, arguments, true) }?;
                    let mut piece = Vec::new();
                    loop {
                        // SAFETY: the caller's promise.
                        unsafe { inout.copy_into(&mut piece) }?;
                        write(&mut state, &piece)?;
                        match inout.next {
                            // SAFETY: the object that its owner has given this function with.
                            Some(next) => unsafe { inout.call_next(next) }?,
                            None => break,
                        }
                    }
                }
                Some(("from", conf)) => {
                    // SAFETY: the caller's promise.
                    show(inout, unsafe { tape(conf, arguments, false) }?)?;
                }
                _ => {
                    let known = "to:output, from:input, and to: or from: with what an input can be created with";
                    return Err(format!("`{conf}` is not understood: {known}").into());
                }
            },
        }
        Ok((SUCCESS, Vec::new()))
    })
}

/// `scdc_dataset_input_redirect`.
///
/// # Safety
/// As [`redirect`].
pub(crate) unsafe extern "C" fn input_redirect(
    input: *mut ScdcInout,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> ScdcInt {
    // SAFETY: the caller's promise.
    unsafe { redirect(input, conf, arguments) }
}

/// `scdc_dataset_output_redirect`.
///
/// # Safety
/// As [`redirect`].
pub(crate) unsafe extern "C" fn output_redirect(
    output: *mut ScdcInout,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> ScdcInt {
    // SAFETY: the caller's promise.
    unsafe { redirect(output, conf, arguments) }
}
