//! The memory of Python objects, by the buffer protocol.
//!
//! It is part of the stable interface from Python 3.11 on. Before that the same functions and the same structure were
//! there, only not promised; they have not changed since 3.3, so one binary serves 3.9 and later.
//!
//! # Source
//! Python/C API reference, "Buffer Protocol"; `Include/cpython/object.h` of 3.9, `Include/pybuffer.h` of 3.11.

use std::ffi::{c_char, c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;

/// `PyBUF_SIMPLE`: contiguous bytes.
const SIMPLE: c_int = 0;
/// `PyBUF_WRITABLE`.
const WRITABLE: c_int = 1;

/// `Py_buffer`.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// Contiguous memory that an object lends for as long as this lives. It cannot be sent to a thread that is not attached.
pub(crate) struct Buffer {
    /// In a box, because the object may have made it point to itself.
    view: Box<View>,
}

impl Buffer {
    /// Memory to read from.
    pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(object, SIMPLE)
    }

    /// Memory to write to.
    pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(object, SIMPLE | WRITABLE)
    }

    fn new(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(View {
            buf: std::ptr::null_mut(),
            obj: std::ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        });
        // SAFETY: the object lives, the thread is attached, and the view is where it stays until it is released.
        match unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) } {
            0 => Ok(Self { view }),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    fn len(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.view.buf.is_null() {
            return &[];
        }
        // SAFETY: the object keeps `len` bytes there until the view is released (PyBUF_SIMPLE). That no other thread changes
        // them meanwhile is up to the program, as with every call that lets others run.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast(), self.len()) }
    }

    /// The bytes, to be written. Of a view that is not writable: none.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.view.buf.is_null() || self.view.readonly != 0 {
            return &mut [];
        }
        // SAFETY: as above, and the object has granted writing.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast(), self.len()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was got by PyObject_GetBuffer, is released once, and the thread is attached: neither is `Buffer` `Send`, nor
        // does it outlive the call that made it.
        unsafe { PyBuffer_Release(&raw mut *self.view) };
    }
}
