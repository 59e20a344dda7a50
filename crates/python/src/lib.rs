//! `sluice._sluice`: files of services for the Python package `sluice`, of which this is the part that is not Python.
//!
//! The way of one `file.readinto(buffer)`, where `file` came from `sluice.open(uri, "rb")`:
//!
//! 1. Python's `io.BufferedReader` asks the raw file of `sluice/_io.py`, which asks a [`File`](file::File).
//! 2. [`buffer`] takes the memory of whatever object was given, as the buffer protocol has it: nothing is copied.
//! 3. [`waiting`] lets other threads of Python run, and has pending signals handled while the service is waited for.
//! 4. `client::RemoteFile` puts the bytes where they are wanted, from its cache or straight from the socket.
//! 5. What went wrong becomes an `OSError` with errno and file name ([`error`]).
//!
//! Which service a name means is found by [`places`]; operations on names are in [`names`]. A service of
//! this process is [`serving`]; how the file of a dataset's view lies in memory tells [`layout`].

mod buffer;
mod error;
mod file;
mod layout;
mod names;
mod places;
mod serving;
mod waiting;

use pyo3::prelude::*;

/// Sluice's files, without Python's `io` around them.
#[pymodule]
fn _sluice(module: &Bound<'_, PyModule>) -> PyResult<()> {
    client::watch_interrupts(waiting::must_stop);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<file::File>()?;
    names::add(module)?;
    places::add(module)?;
    layout::add(module)?;
    serving::add(module)
}
