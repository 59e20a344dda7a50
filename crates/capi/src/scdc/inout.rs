//! Inputs and outputs as C has them.

use std::ffi::{c_char, c_void};

use commands::{Output, Shape, Source};

use super::report::{FAILURE, SUCCESS, ScdcInt, report};

/// `SCDC_RESULT_STR_MIN_SIZE`.
const RESULT_SIZE: usize = 512;

/// From so many bytes on, input goes on its way.
const PIECE_MIN: usize = 16 << 10;

/// So often in a row a next function may give nothing before it is taken for one that never ends.
const EMPTY_MAX: usize = 1 << 20;

/// `scdc_result_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ScdcResult {
    /// Bytes of `text`.
    pub size: ScdcInt,
    /// What is said, ended by a NUL.
    pub text: [u8; RESULT_SIZE],
}

impl Default for ScdcResult {
    fn default() -> Self {
        Self { size: RESULT_SIZE as ScdcInt, text: [0; RESULT_SIZE] }
    }
}

impl ScdcResult {
    pub(crate) fn say(&mut self, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(RESULT_SIZE - 1)];
        self.text[..bytes.len()].copy_from_slice(bytes);
        self.text[bytes.len()] = 0;
    }

    pub(crate) fn words(&self) -> &[u8] {
        let end = self.text.iter().position(|byte| *byte == 0).unwrap_or(RESULT_SIZE);
        &self.text[..end]
    }
}

/// `scdc_buf_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ScdcBuf {
    /// Where it is.
    pub ptr: *mut c_void,
    /// Its bytes; less than 0: of so many buffers.
    pub size: ScdcInt,
    /// Its data; less than 0: of so many buffers.
    pub current: ScdcInt,
}

/// `scdc_dataset_inout_next_f`.
pub type Next = unsafe extern "C" fn(*mut ScdcInout, *mut ScdcResult) -> ScdcInt;

/// `scdc_dataset_inout_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ScdcInout {
    /// What kind of data it is.
    pub format: [u8; 16],
    /// The data, or this piece of it.
    pub buf: ScdcBuf,
    /// The size of the whole.
    pub total_size: ScdcInt,
    /// How `total_size` is meant.
    pub total_size_given: c_char,
    /// Gives the next piece.
    pub next: Option<Next>,
    /// The user's.
    pub data: *mut c_void,
    /// The library's, not used.
    pub intern: *mut c_void,
    /// The library's: the number of a tape or output.
    pub intern_data: *mut c_void,
}

impl Default for ScdcInout {
    fn default() -> Self {
        let null = std::ptr::null_mut();
        Self {
            format: [0; 16],
            buf: ScdcBuf { ptr: null, size: 0, current: 0 },
            total_size: 0,
            total_size_given: b'n' as c_char,
            next: None,
            data: null,
            intern: null,
            intern_data: null,
        }
    }
}

impl ScdcInout {
    pub(crate) fn shape(&self) -> Shape {
        Shape { format: self.format, total: self.total_size, given: self.total_size_given as u8 }
    }

    pub(crate) fn set_shape(&mut self, shape: Shape) {
        self.format = shape.format;
        self.format[15] = 0;
        self.total_size = shape.total;
        self.total_size_given = shape.given as c_char;
    }

    /// The buffers, one or several.
    ///
    /// # Errors
    /// In words, if the sizes cannot be.
    ///
    /// # Safety
    /// The pointers lead to as many bytes as the sizes say.
    unsafe fn buffers(&self) -> Result<&[ScdcBuf], String> {
        if self.buf.size >= 0 {
            return Ok(std::slice::from_ref(&self.buf));
        }
        let count = self.buf.current.checked_neg().and_then(|count| usize::try_from(count).ok());
        let count =
            count.filter(|count| *count as u64 <= self.buf.size.unsigned_abs() && *count < 1 << 20);
        let Some(count) = count else {
            return Err(format!(
                "{} of {} buffers",
                -i128::from(self.buf.current),
                -i128::from(self.buf.size)
            ));
        };
        if self.buf.ptr.is_null() {
            return if count == 0 { Ok(&[]) } else { Err("the buffers are NULL".to_owned()) };
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { std::slice::from_raw_parts(self.buf.ptr.cast(), count) })
    }

    /// Puts the data of this piece into `piece`.
    ///
    /// # Errors
    /// In words, if the sizes cannot be.
    ///
    /// # Safety
    /// The pointers lead to as many bytes as the sizes say.
    pub(crate) unsafe fn copy_into(&self, piece: &mut Vec<u8>) -> Result<(), String> {
        piece.clear();
        // SAFETY: the caller's promise.
        for buffer in unsafe { self.buffers() }? {
            let wrong =
                || format!("{} bytes of data in a buffer of {}", buffer.current, buffer.size);
            let count = usize::try_from(buffer.current).map_err(|_| wrong())?;
            if buffer.current > buffer.size {
                return Err(wrong());
            }
            if count == 0 {
                continue;
            }
            if buffer.ptr.is_null() {
                return Err(format!("{count} bytes of data at NULL"));
            }
            // SAFETY: the caller's promise.
            piece
                .extend_from_slice(unsafe { std::slice::from_raw_parts(buffer.ptr.cast(), count) });
        }
        Ok(())
    }

    /// The room for a piece that the caller gave; none if it gave none.
    ///
    /// # Safety
    /// The pointer leads to as many bytes as the size says, which nobody else uses.
    pub(crate) unsafe fn room<'a>(&self) -> Option<&'a mut [u8]> {
        let size = usize::try_from(self.buf.size).ok().filter(|size| *size > 0)?;
        if self.buf.ptr.is_null() || isize::try_from(size).is_err() {
            return None;
        }
        // SAFETY: the caller's promise. What is there counts as initialised for C, and is only written to.
        Some(unsafe { std::slice::from_raw_parts_mut(self.buf.ptr.cast(), size) })
    }

    /// Calls the next function.
    ///
    /// # Errors
    /// What it says.
    ///
    /// # Safety
    /// This is the object that the function expects.
    pub(crate) unsafe fn call_next(&mut self, next: Next) -> Result<(), String> {
        let mut result = ScdcResult::default();
        // SAFETY: the caller's promise.
        if unsafe { next(self, &raw mut result) } == FAILURE {
            self.next = None;
            let words = String::from_utf8_lossy(result.words()).into_owned();
            return Err(if words.is_empty() {
                "the next function failed".to_owned()
            } else {
                words
            });
        }
        Ok(())
    }
}

/// Input that a program in C gives.
pub(crate) struct Given<'i> {
    input: &'i mut ScdcInout,
    begun: bool,
}

impl<'i> Given<'i> {
    /// # Safety
    /// The object and its buffers stay as long as this.
    pub(crate) unsafe fn new(input: &'i mut ScdcInout) -> Self {
        Self { input, begun: false }
    }
}

impl Source for Given<'_> {
    fn shape(&self) -> Shape {
        self.input.shape()
    }

    /// Small pieces are put together, as SCDC's buffers do it: each is a way to the service and back.
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, String> {
        piece.clear();
        if self.has_ended() {
            return Ok(false);
        }
        let mut part = Vec::new();
        let mut empty = 0;
        loop {
            if std::mem::replace(&mut self.begun, true) {
                let Some(next) = self.input.next else { return Ok(true) };
                // SAFETY: `new`.
                unsafe { self.input.call_next(next) }?;
            }
            // SAFETY: `new`.
            unsafe { self.input.copy_into(&mut part) }?;
            match piece.is_empty() {
                true => std::mem::swap(piece, &mut part),
                false => piece.extend_from_slice(&part),
            }
            empty = if piece.is_empty() { empty + 1 } else { 0 };
            if empty == EMPTY_MAX {
                return Err(format!(
                    "the next function of the input has given nothing {EMPTY_MAX} times"
                ));
            }
            if piece.len() >= PIECE_MIN || self.has_ended() {
                return Ok(true);
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.begun && self.input.next.is_none()
    }
}

/// Takes what a hook's output has.
///
/// # Errors
/// In words, if the sizes cannot be.
///
/// # Safety
/// As [`ScdcInout::copy_into`].
pub(crate) unsafe fn taken(output: &ScdcInout) -> Result<Output, String> {
    let mut data = Vec::new();
    // SAFETY: the caller's promise.
    unsafe { output.copy_into(&mut data) }?;
    Ok(Output { shape: output.shape(), data, more: output.next.is_some() })
}

/// `scdc_dataset_input_unset`.
///
/// # Safety
/// It is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_input_unset(input: *mut ScdcInout) {
    if !input.is_null() {
        // SAFETY: the caller's promise.
        unsafe { input.write(ScdcInout::default()) };
    }
}

/// `scdc_dataset_output_unset`.
///
/// # Safety
/// It is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_output_unset(output: *mut ScdcInout) {
    // SAFETY: the caller's promise.
    unsafe { scdc_dataset_input_unset(output) };
}

/// `scdc_dataset_inout_next_loop`: calls the next function until there is none, or it fails.
///
/// # Safety
/// `inout` is NULL or an object, and `result` NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_inout_next_loop(
    inout: *mut ScdcInout,
    result: *mut ScdcResult,
) -> ScdcInt {
    // SAFETY: the caller's promise.
    let Some(inout) = (unsafe { inout.as_mut() }) else {
        return report(FAILURE, || Err(b"the input or output is NULL".to_vec()));
    };
    while let Some(next) = inout.next {
        // SAFETY: the caller's promise.
        if unsafe { next(inout, result) } == FAILURE {
            return FAILURE;
        }
    }
    SUCCESS
}

unsafe extern "C" {
    /// stdio(3): standard output of C.
    static stdout: *mut libc::FILE;
}

fn pointer(pointer: *const c_void) -> String {
    if pointer.is_null() { "(nil)".to_owned() } else { format!("{pointer:p}") }
}

/// Prints an object to the standard output of C.
///
/// # Safety
/// It is NULL or an object with the data that it says.
unsafe fn print(kind: &str, inout: *const ScdcInout) {
    // SAFETY: the caller's promise.
    let text = match unsafe { inout.as_ref() } {
        None => format!("{kind}<NULL>").into_bytes(),
        // SAFETY: the caller's promise.
        Some(inout) => unsafe { shown(kind, inout) },
    };
    // SAFETY: a stream that is always open; text of that length.
    unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}

/// # Safety
/// As [`print`].
unsafe fn shown(kind: &str, inout: &ScdcInout) -> Vec<u8> {
    let one = |buf: &ScdcBuf| format!("{} of {} at {}", buf.current, buf.size, pointer(buf.ptr));
    let buffers = match inout.buf.size < 0 {
        false => one(&inout.buf),
        true => {
            // SAFETY: the caller's promise.
            let each = unsafe { inout.buffers() }.unwrap_or_default();
            let each = each.iter().enumerate().map(|(at, buf)| format!("[{at}] {}", one(buf)));
            let each: Vec<String> = each.collect();
            let [count, size] = [inout.buf.current, inout.buf.size].map(i64::unsigned_abs);
            format!("{count} of {size}: {}", each.join(", "))
        }
    };
    let end = inout.format.iter().position(|byte| *byte == 0).unwrap_or(16);
    let format = String::from_utf8_lossy(&inout.format[..end]).into_owned();
    let next = inout.next.map_or(std::ptr::null(), |next| next as *const c_void);
    let mut text = format!(
        "{kind}<buf: {buffers}, format: '{format}', total_size: {}, total_size_given: {}, next: {}, data: {}, intern: {}",
        inout.total_size,
        char::from(inout.total_size_given as u8),
        pointer(next),
        pointer(inout.data),
        pointer(inout.intern),
    )
    .into_bytes();
    let mut content = Vec::new();
    // SAFETY: the caller's promise.
    let has_content = unsafe { inout.copy_into(&mut content) }.is_ok() && !content.is_empty();
    if has_content && format == "text" {
        text.extend_from_slice(b", content: '");
        text.extend_from_slice(&content);
        text.push(b'\'');
    }
    text.push(b'>');
    text
}

/// `scdc_dataset_input_print`.
///
/// # Safety
/// It is NULL or an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_input_print(input: *mut ScdcInout) {
    // SAFETY: the caller's promise.
    unsafe { print("input", input) };
}

/// `scdc_dataset_output_print`.
///
/// # Safety
/// It is NULL or an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scdc_dataset_output_print(output: *mut ScdcInout) {
    // SAFETY: the caller's promise.
    unsafe { print("output", output) };
}
