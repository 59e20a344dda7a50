//! Hooks: functions of the program that answer commands.

use std::ffi::{CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use commands::{Given, Output, Provider, Served, Source};

use super::inout::{ScdcInout, ScdcResult, taken};
use super::library::lock;
use super::report::{FAILURE, SUCCESS, ScdcInt};
use super::variadic::Arguments;

/// Bytes of the buffers that hooks are given for a client's input and output.
const ROOM: usize = 16 << 10;

/// The most bytes of a dataset's state.
const STATE_MAX: usize = 16 << 10;

/// How long closing a provider waits for its hooks to return.
const GRACE: Duration = Duration::from_secs(5);

/// The path of a provider's configuration.
pub(crate) const CONFIG: &str = "CONFIG";

/// `scdc_dataprov_hook_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HookTable {
    open: Option<unsafe extern "C" fn(*const c_char, *mut Arguments) -> *mut c_void>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> ScdcInt>,
    config: Option<ConfigHook>,
    dataset_open:
        Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut ScdcResult) -> *mut c_void>,
    dataset_close:
        Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut ScdcResult) -> ScdcInt>,
    dataset_close_write_state: Option<WriteState>,
    dataset_open_read_state: Option<ReadState>,
    dataset_cmd: Option<CommandHook>,
}

type ConfigHook = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    *const c_char,
    *const c_char,
    ScdcInt,
    *mut ScdcResult,
) -> ScdcInt;
type WriteState = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    ScdcInt,
    *mut ScdcResult,
) -> ScdcInt;
type ReadState =
    unsafe extern "C" fn(*mut c_void, *const c_void, ScdcInt, *mut ScdcResult) -> *mut c_void;
type CommandHook = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *const c_char,
    *const c_char,
    *mut ScdcInout,
    *mut ScdcInout,
    *mut ScdcResult,
) -> ScdcInt;

/// A provider made of hooks.
pub(crate) struct Hooks {
    table: HookTable,
    dataprov: *mut c_void,
    gate: Mutex<Gate>,
    left: Condvar,
}

// SAFETY: the pointer is the program's, which gets it back in its hooks; that those may be called by several threads is
// what docs/C-API.md tells it.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

/// Who is in.
#[derive(Default)]
struct Gate {
    closed: bool,
    /// Hooks that are being carried out.
    inside: usize,
    /// Datasets that are open, as the hooks know them.
    datasets: Vec<usize>,
}

/// A hook is being carried out.
struct Inside<'h>(&'h Hooks);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        lock(&self.0.gate).inside -= 1;
        self.0.left.notify_all();
    }
}

/// What a hook said, or that it said nothing.
fn words(result: &ScdcResult, otherwise: &str) -> String {
    match result.words() {
        [] => otherwise.to_owned(),
        words => String::from_utf8_lossy(words).into_owned(),
    }
}

fn c_string(text: &[u8], what: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{what} contains a NUL"))
}

impl Hooks {
    /// Opens a provider.
    ///
    /// # Errors
    /// In words, if there is no hook for commands.
    ///
    /// # Safety
    /// `table` leads to a table of hooks of the right types, and `arguments` to what its `open` expects.
    pub(crate) unsafe fn open(
        table: *const HookTable,
        conf: &str,
        arguments: *mut Arguments,
    ) -> Result<Arc<Self>, String> {
        // SAFETY: the caller's promise.
        let table = unsafe { table.as_ref() }.ok_or("the table of hooks is NULL")?;
        if table.dataset_cmd.is_none() {
            return Err("the table of hooks has no dataset_cmd".to_owned());
        }
        let conf = c_string(conf.as_bytes(), "conf")?;
        let dataprov = match table.open {
            // SAFETY: the caller's promise.
            Some(open) => unsafe { open(conf.as_ptr(), arguments) },
            None => std::ptr::null_mut(),
        };
        let (gate, left) = (Mutex::default(), Condvar::new());
        Ok(Arc::new(Self { table: *table, dataprov, gate, left }))
    }

    fn enter(&self) -> Result<Inside<'_>, String> {
        let mut gate = lock(&self.gate);
        if gate.closed {
            return Err("the provider is closed".to_owned());
        }
        gate.inside += 1;
        Ok(Inside(self))
    }

    /// Closes the provider, and what is left of its datasets. Waits until its hooks have returned, but not for ever.
    pub(crate) fn close(&self) -> Result<(), String> {
        let mut gate = lock(&self.gate);
        if std::mem::replace(&mut gate.closed, true) {
            return Ok(());
        }
        let until = Instant::now() + GRACE;
        while gate.inside > 0 {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(format!(
                    "{} hooks have not returned yet; the provider is left to them",
                    gate.inside
                ));
            }
            gate = self.left.wait_timeout(gate, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        let datasets = std::mem::take(&mut gate.datasets);
        drop(gate);
        for dataset in datasets {
            self.close_hook(dataset as *mut c_void);
        }
        if let Some(close) = self.table.close {
            // SAFETY: the program's own function, with what its `open` gave.
            unsafe { close(self.dataprov) };
        }
        Ok(())
    }

    fn close_hook(&self, dataset: *mut c_void) {
        if let Some(close) = self.table.dataset_close {
            let mut result = ScdcResult::default();
            // SAFETY: the program's own function, with what its own functions gave.
            unsafe { close(self.dataprov, dataset, &raw mut result) };
        }
    }

    /// Opens a dataset.
    pub(crate) fn dataset(self: &Arc<Self>, path: &str) -> Result<HookDataset, String> {
        let inside = self.enter()?;
        let path = c_string(path.as_bytes(), "the path")?;
        let mut dataset = std::ptr::null_mut();
        if let Some(open) = self.table.dataset_open {
            let mut result = ScdcResult::default();
            // SAFETY: the program's own function, with strings of C.
            dataset = unsafe { open(self.dataprov, path.as_ptr(), &raw mut result) };
            if dataset.is_null() {
                return Err(words(&result, "the hook has not opened the dataset"));
            }
        }
        drop(inside);
        self.known(dataset)
    }

    fn known(self: &Arc<Self>, dataset: *mut c_void) -> Result<HookDataset, String> {
        lock(&self.gate).datasets.push(dataset as usize);
        Ok(HookDataset { hooks: Arc::clone(self), dataset, call: None })
    }

    /// A command on the provider's configuration.
    pub(crate) fn configure(&self, line: &[u8]) -> Result<Vec<u8>, String> {
        let line = String::from_utf8_lossy(line).into_owned();
        let mut parts = line.splitn(3, ' ');
        let [command, parameter, value] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let failed = || match parameter {
            "" => format!("config command '{command}' failed"),
            _ => format!("config command for parameter '{parameter}' failed"),
        };
        let hook = self.table.config.ok_or_else(failed)?;
        let _inside = self.enter()?;
        let [c, p, v] =
            [command, parameter, value].map(|text| c_string(text.as_bytes(), "the command"));
        let (c, p, v) = (c?, p?, v?);
        let mut result = ScdcResult::default();
        let size = value.len() as ScdcInt;
        // SAFETY: the program's own function, with strings of C.
        let done = unsafe {
            hook(self.dataprov, c.as_ptr(), p.as_ptr(), v.as_ptr(), size, &raw mut result)
        };
        match done {
            FAILURE => Err(words(&result, &failed())),
            _ => Ok(result.words().to_vec()),
        }
    }
}

/// A dataset of hooks that somebody uses.
pub(crate) struct HookDataset {
    hooks: Arc<Hooks>,
    dataset: *mut c_void,
    call: Option<Box<Call>>,
}

// SAFETY: as of `Hooks`: its pointers are the program's or, in a call, lead to what is owned here.
unsafe impl Send for HookDataset {}

/// A command of a client's.
struct Call {
    input: ScdcInout,
    output: ScdcInout,
    piece: Vec<u8>,
    /// What output is given into; the hook has its address.
    _room: Vec<u8>,
    /// Where more input comes from, while the hook may ask for it.
    source: Option<NonNull<dyn Source>>,
}

impl Call {
    fn new() -> Box<Self> {
        let mut room = vec![0; ROOM];
        let mut output = ScdcInout::default();
        output.buf.ptr = room.as_mut_ptr().cast();
        output.buf.size = ROOM as ScdcInt;
        Box::new(Self {
            input: ScdcInout::default(),
            output,
            piece: Vec::new(),
            _room: room,
            source: None,
        })
    }

    /// Runs `work` while the hook may take input from `source`.
    fn with<T>(&mut self, source: &mut dyn Source, work: impl FnOnce(&mut Self) -> T) -> T {
        // SAFETY: only the lifetime is changed; the pointer is taken back before the reference ends.
        let pointer = unsafe {
            std::mem::transmute::<NonNull<dyn Source + '_>, NonNull<dyn Source + 'static>>(
                NonNull::from(source),
            )
        };
        self.source = Some(pointer);
        let done = work(self);
        self.source = None;
        done
    }

    /// Tells the hook of the piece of input that is here.
    fn show_piece(&mut self, more: bool) {
        if self.piece.len() < ROOM {
            self.piece.reserve(ROOM - self.piece.len());
        }
        self.input.buf.ptr = self.piece.as_mut_ptr().cast();
        self.input.buf.size = self.piece.capacity() as ScdcInt;
        self.input.buf.current = self.piece.len() as ScdcInt;
        self.input.next = more.then_some(feed);
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut source = self.source.ok_or("the command is over")?;
        // SAFETY: it is there as long as `with` runs, and nobody else uses it meanwhile.
        let source = unsafe { source.as_mut() };
        if !source.next(&mut self.piece)? {
            self.piece.clear();
            self.show_piece(false);
            return Ok(());
        }
        self.show_piece(!source.has_ended());
        Ok(())
    }
}

/// The next function of the input that hooks are given.
unsafe extern "C" fn feed(input: *mut ScdcInout, result: *mut ScdcResult) -> ScdcInt {
    // SAFETY: hooks pass the object that they were given, whose number is the address of its call.
    let call =
        unsafe { input.as_ref().and_then(|input| input.intern_data.cast::<Call>().as_mut()) };
    let filled = match call {
        Some(call) => call.fill(),
        None => Err("this is not the input of a command".to_owned()),
    };
    match filled {
        Ok(()) => SUCCESS,
        Err(text) => {
            // SAFETY: the hook's promise: NULL or a result.
            if let Some(result) = unsafe { result.as_mut() } {
                result.say(&text);
            }
            FAILURE
        }
    }
}

impl HookDataset {
    /// Calls the hook for a command with the objects of whoever gives it.
    ///
    /// # Safety
    /// Both lead to objects.
    pub(crate) unsafe fn call(
        &self,
        line: &[u8],
        input: *mut ScdcInout,
        output: *mut ScdcInout,
    ) -> Result<Vec<u8>, String> {
        let _inside = self.hooks.enter()?;
        let split = line.iter().position(|byte| *byte == b' ');
        let (word, rest) = split.map_or((line, &[][..]), |at| (&line[..at], &line[at + 1..]));
        let (word, rest) = (c_string(word, "the command")?, c_string(rest, "the command")?);
        let command = self.hooks.table.dataset_cmd.ok_or("there is no hook for commands")?;
        let mut result = ScdcResult::default();
        let Hooks { dataprov, .. } = &*self.hooks;
        // SAFETY: the program's own function; the caller's promise.
        let done = unsafe {
            command(
                *dataprov,
                self.dataset,
                word.as_ptr(),
                rest.as_ptr(),
                input,
                output,
                &raw mut result,
            )
        };
        match done {
            FAILURE => Err(words(&result, "the command failed")),
            _ => Ok(result.words().to_vec()),
        }
    }
}

impl Served for HookDataset {
    fn run(&mut self, line: &[u8], source: &mut dyn Source, has_input: bool, _: bool) -> Given {
        // Objects that were used before are made anew, but for the room.
        let mut call = self.call.take().unwrap_or_else(Call::new);
        let room = call._room.as_mut_ptr();
        call.input = ScdcInout::default();
        call.output = ScdcInout::default();
        call.output.buf.ptr = room.cast();
        call.output.buf.size = ROOM as ScdcInt;
        call.input.set_shape(source.shape());
        call.input.intern_data = (&raw mut *call).cast();
        // Not NULL, as programs that print it are used to.
        (call.input.intern, call.output.intern) = (call.input.intern_data, call.input.intern_data);
        let done = call.with(source, |call| {
            call.piece.clear();
            match has_input {
                true => call.fill()?,
                false => call.show_piece(false),
            }
            // SAFETY: both are in the box.
            let text = unsafe { self.call(line, &raw mut call.input, &raw mut call.output) }?;
            // SAFETY: the hook's promise.
            Ok((text, unsafe { taken(&call.output) }?))
        });
        self.call = Some(call);
        match done {
            Ok((text, output)) => Given { success: true, text, output },
            Err(text) => {
                let text: String = text;
                Given::failed(text)
            }
        }
    }

    fn next(&mut self, source: &mut dyn Source) -> Result<Output, String> {
        let _inside = self.hooks.enter()?;
        let Some(call) = &mut self.call else { return Ok(Output::default()) };
        let Some(next) = call.output.next else { return Ok(Output::default()) };
        call.with(source, |call| {
            // SAFETY: the object that the hook has given this function with.
            unsafe {
                call.output.call_next(next)?;
                taken(&call.output)
            }
        })
    }

    fn end(&mut self) {
        if let Some(call) = &mut self.call {
            call.output.next = None;
            call.input.next = None;
        }
    }

    fn suspend(&mut self) -> Option<Vec<u8>> {
        let write = self.hooks.table.dataset_close_write_state?;
        self.hooks.table.dataset_open_read_state?;
        let _inside = self.hooks.enter().ok()?;
        let mut state = vec![0; STATE_MAX];
        let mut result = ScdcResult::default();
        let (dataprov, size) = (self.hooks.dataprov, STATE_MAX as ScdcInt);
        // SAFETY: the program's own function, with what its own functions gave, and room of that size.
        let count = unsafe {
            write(dataprov, self.dataset, state.as_mut_ptr().cast(), size, &raw mut result)
        };
        // It is closed, whatever came of it.
        self.forget();
        state.truncate(usize::try_from(count).unwrap_or(0).min(STATE_MAX));
        Some(state)
    }
}

impl HookDataset {
    /// Takes it from the list of what is open; false: it is closed already.
    fn forget(&self) -> bool {
        let mut gate = lock(&self.hooks.gate);
        let place = gate.datasets.iter().position(|known| *known == self.dataset as usize);
        place.map(|at| gate.datasets.swap_remove(at)).is_some()
    }
}

impl Drop for HookDataset {
    fn drop(&mut self) {
        if let Ok(_inside) = self.hooks.enter()
            && self.forget()
        {
            self.hooks.close_hook(self.dataset);
        }
    }
}

/// The provider, as node ports show it.
pub(crate) struct Shown(pub(crate) Arc<Hooks>);

impl Provider for Shown {
    fn open(&self, path: &[u8]) -> Result<Box<dyn Served>, String> {
        if path == CONFIG.as_bytes() {
            return Ok(Box::new(Configuration(Arc::clone(&self.0))));
        }
        let path = std::str::from_utf8(path).map_err(|_| "the path is no text in UTF-8")?;
        Ok(Box::new(self.0.dataset(path)?))
    }

    fn resume(&self, state: &[u8]) -> Result<Box<dyn Served>, String> {
        let hooks = &self.0;
        let read = hooks.table.dataset_open_read_state.ok_or("this provider keeps no states")?;
        let inside = hooks.enter()?;
        let mut result = ScdcResult::default();
        let size = state.len() as ScdcInt;
        // SAFETY: the program's own function, with bytes of that size.
        let dataset = unsafe { read(hooks.dataprov, state.as_ptr().cast(), size, &raw mut result) };
        drop(inside);
        if dataset.is_null() {
            return Err(words(&result, "the hook has not opened the dataset by its state"));
        }
        Ok(Box::new(hooks.known(dataset)?))
    }
}

/// A provider's configuration as a dataset.
struct Configuration(Arc<Hooks>);

impl Served for Configuration {
    fn run(&mut self, line: &[u8], _: &mut dyn Source, _: bool, _: bool) -> Given {
        match self.0.configure(line) {
            Ok(text) => Given { success: true, text, ..Given::default() },
            Err(text) => Given::failed(format!("command failed: {text}")),
        }
    }
}
