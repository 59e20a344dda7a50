//! The functions of MPI at which something happens: beginning, end, and what the library does for
//! MPI_COMM_WORLD and for no other communicator.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use crate::{part, world};

/// A handle passed by value.
type Word = usize;

thread_local! {
    /// The MPI library implements functions by others, which are not the program's calls.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` for the outermost call, and `pass` for one that is made within.
fn outermost(work: impl FnOnce() -> c_int, pass: impl FnOnce() -> c_int) -> c_int {
    if INSIDE.replace(true) {
        return pass();
    }
    let code = work();
    INSIDE.set(false);
    code
}

macro_rules! hooks {
    ($(
        $name:ident $profiling:ident ($($arg:ident: $ty:ty),*) |$pass:ident| $body:expr;
    )+) => {
        $(
            symbol!($name ($($arg: $ty),*) |$pass| $body);
            symbol!($profiling ($($arg: $ty),*) |$pass| $body);
        )+
    };
}

macro_rules! symbol {
    ($name:ident ($($arg:ident: $ty:ty),*) |$pass:ident| $body:expr) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "MPI's name")]
        unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
            static NEXT: mpi::Next = mpi::Next::new(
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a symbol name has no NUL"),
                },
            );
            let $pass = |$($arg: $ty),*| {
                let address = NEXT.address();
                if address.is_null() {
                    return crate::missing::missing();
                }
                // SAFETY: the next definition of this name has MPI's signature (MPI-5.0, annex A.3), which
                // the declaration repeats, with handles as words.
                let next = unsafe {
                    std::mem::transmute::<*const c_void, unsafe extern "C-unwind" fn($($ty),*) -> c_int>(
                        address,
                    )
                };
                // SAFETY: the program's own arguments, or what stands for them.
                unsafe { next($($arg),*) }
            };
            $body
        }
    };
}

/// MPI_Init or MPI_Init_thread, which asked for a level; `init` initializes MPI with another.
/// Returns the code and the level to tell the program.
fn initialize(
    asked: c_int,
    pass: impl FnOnce() -> c_int,
    init: impl FnOnce(c_int, &mut c_int) -> c_int,
) -> (c_int, Option<c_int>) {
    let wanted = part::is_wished().then(part::level_wanted).flatten();
    let Some(wanted) = wanted else { return (pass(), None) };
    let mut granted = 0;
    let code = init(wanted, &mut granted);
    if code != 0 {
        return (code, None);
    }
    (code, Some(part::enter(asked, granted)))
}

/// MPI_Init_thread behind us.
///
/// # Safety
/// The addresses that the program gave to MPI_Init, or null.
unsafe fn init_thread(
    argc: *mut c_int,
    argv: *mut c_void,
    level: c_int,
    granted: &mut c_int,
) -> c_int {
    type Init = unsafe extern "C-unwind" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
    static NEXT: mpi::Next = mpi::Next::new(c"MPI_Init_thread");
    let address = NEXT.address();
    if address.is_null() {
        return crate::missing::missing();
    }
    // SAFETY: the signature of the function of this name (MPI-4.1 §11.6.2).
    let next = unsafe { std::mem::transmute::<*const c_void, Init>(address) };
    // SAFETY: the caller's promise, and an integer to fill.
    unsafe { next(argc, argv, level, granted) }
}

hooks! {
    MPI_Init PMPI_Init(argc: *mut c_int, argv: *mut c_void) |pass| outermost(
        || initialize(
            0,
            || pass(argc, argv),
            // SAFETY: the program's own arguments.
            |level, granted| unsafe { init_thread(argc, argv, level, granted) },
        ).0,
        || pass(argc, argv),
    );

    MPI_Init_thread PMPI_Init_thread(
        argc: *mut c_int, argv: *mut c_void, asked: c_int, provided: *mut c_int
    ) |pass| outermost(
        || {
            let (code, level) = initialize(
                asked,
                || pass(argc, argv, asked, provided),
                |level, granted| pass(argc, argv, level, granted),
            );
            if let Some(level) = level {
                // SAFETY: the integer that the program wants filled.
                unsafe { provided.write(level) };
            }
            code
        },
        || pass(argc, argv, asked, provided),
    );

    MPI_Query_thread PMPI_Query_thread(provided: *mut c_int) |pass| {
        let code = pass(provided);
        if let Some(level) = part::level().filter(|_| code == 0) {
            // SAFETY: the integer that the library has just filled.
            unsafe { provided.write(level) };
        }
        code
    };

    MPI_Finalize PMPI_Finalize() |pass| outermost(
        || {
            part::leave();
            pass()
        },
        pass,
    );

    MPI_Comm_get_attr PMPI_Comm_get_attr(
        comm: Word, keyval: c_int, value: *mut c_void, flag: *mut c_int
    ) |pass| attribute(comm, flag, |comm| pass(comm, keyval, value, flag));

    MPI_Attr_get PMPI_Attr_get(
        comm: Word, keyval: c_int, value: *mut c_void, flag: *mut c_int
    ) |pass| attribute(comm, flag, |comm| pass(comm, keyval, value, flag));

    MPI_Comm_set_errhandler PMPI_Comm_set_errhandler(comm: Word, handler: Word) |pass| {
        handle_errors(comm, |comm| pass(comm, handler))
    };

    MPI_Errhandler_set PMPI_Errhandler_set(comm: Word, handler: Word) |pass| {
        handle_errors(comm, |comm| pass(comm, handler))
    };
}

/// Attributes that a library gives only to the one MPI_COMM_WORLD (MPI_TAG_UB …, MPI-4.1 §9.1.2) are asked
/// of that, if the program's own has none of the key.
fn attribute(comm: Word, flag: *mut c_int, get: impl Fn(Word) -> c_int) -> c_int {
    let code = get(world::own(comm));
    // SAFETY: the integer that the library has just filled.
    if code == 0 && world::is_replaced(comm) && unsafe { flag.read() } == 0 {
        return get(comm);
    }
    code
}

/// Errors that concern no communicator are raised on MPI_COMM_WORLD (MPI-4.1 §9.3), which for the library is
/// the whole job's.
fn handle_errors(comm: Word, set: impl Fn(Word) -> c_int) -> c_int {
    if world::is_replaced(comm) {
        let code = set(comm);
        if code != 0 {
            return code;
        }
    }
    set(world::own(comm))
}
