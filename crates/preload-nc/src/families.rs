//! The functions that move data, family by family: `ncmpi_put_vara_int_all` and some 800 like it.
//!
//! A name is a verb, a form and a type, and each of these brings its arguments; so the functions are declared as a product.
//! [`every_access`] gives each of them to a macro: to the one that makes the exported function, and in tests to one that notes
//! its name.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use exchange::Type;

use crate::access::{self, Access, Elements, Many, Mode, Place, Verb};
use crate::codes;
use crate::files;
use mpi::Next;

use crate::symbol::c_name;

/// A handle passed by value.
type Word = usize;
/// Starts, counts, strides or maps of several requests.
type Lists = *const *const i64;

/// Makes the exported function: a file that is not coupled is left to the library after one look into a table.
macro_rules! export {
    ([$($piece:literal)+] ($($arg:ident: $ty:ty),*) |$file:ident| $body:expr) => {
        const _: () = {
            #[unsafe(export_name = concat!("ncmpi_", $($piece),+))]
            unsafe extern "C-unwind" fn hook(ncid: c_int, $($arg: $ty),*) -> c_int {
                static NEXT: Next = Next::of_any(c_name!("ncmpi_", $($piece),+));
                if let Some($file) = files::find(ncid) {
                    return $body;
                }
                let address = NEXT.address();
                if address.is_null() {
                    return codes::NC_ENOTSUPPORT;
                }
                // SAFETY: the next definition of this name has the signature of pnetcdf.h, which the declaration repeats,
                // with handles as words.
                let next = unsafe {
                    std::mem::transmute::<
                        *const c_void,
                        unsafe extern "C-unwind" fn(c_int, $($ty),*) -> c_int,
                    >(address)
                };
                // SAFETY: the program's own arguments.
                unsafe { next(ncid, $($arg),*) }
            }
        };
    };
}

/// One function that reads or writes a part of one variable.
macro_rules! one {
    (
        $each:ident [$verb:literal $kind:ident $mode:ident $all:literal ($($request:ident)?)]
        [$form:literal ($($place:ident: $place_type:ty),*) ($where:expr)]
        [$type:literal ($buffer:ident $(, $more:ident: $more_type:ty)*) ($elements:expr)]
    ) => {
        $each! {
            [$verb $form $type $all]
            (
                varid: c_int, $($place: $place_type,)* $buffer: *mut c_void
                $(, $more: $more_type)* $(, $request: *mut c_int)?
            )
            |file| {
                let access = Access {
                    verb: Verb::$kind, varid, place: $where, elements: $elements, buffer: $buffer,
                };
                // SAFETY: the program's own arguments.
                unsafe { one!(@call $mode, file, access $(, $request)?) }
            }
        }
    };
    (@call $mode:ident, $file:ident, $access:ident) => {
        access::blocking(&$file, Mode::$mode, &$access)
    };
    (@call $mode:ident, $file:ident, $access:ident, $request:ident) => {
        access::post(&$file, Mode::$mode, &$access, $request)
    };
}

/// One function that reads or writes parts of several variables.
macro_rules! several {
    (
        $each:ident [$verb:literal $kind:ident $mode:ident $all:literal]
        [$form:literal ($($list:ident),*) ($starts:expr, $counts:expr, $strides:expr, $imaps:expr)]
        [$type:literal ($($more:ident: $more_type:ty),*) ($elements:expr)]
    ) => {
        $each! {
            [$verb $form $type $all]
            (
                num: c_int, varids: *const c_int, $($list: Lists,)*
                buffers: *const *mut c_void $(, $more: $more_type)*
            )
            |file| {
                let many = Many {
                    verb: Verb::$kind, num, varids, form: $form,
                    lists: [$starts, $counts, $strides, $imaps],
                    elements: $elements, buffers,
                };
                // SAFETY: the program's own arguments.
                unsafe { access::several(&file, Mode::$mode, &many) }
            }
        }
    };
}

/// A form and a verb with each type that memory can have.
macro_rules! types {
    ($what:ident $each:ident $verb:tt $form:tt) => {
        types!(@typed $what $each $verb $form
            "_text" Char, "_schar" Byte, "_uchar" UByte, "_short" Short, "_ushort" UShort, "_int" Int,
            "_uint" UInt, "_long" Int64, "_float" Float, "_double" Double, "_longlong" Int64,
            "_ulonglong" UInt64
        );
        types!(@flexible $what $each $verb $form);
    };
    (@typed one $each:ident $verb:tt $form:tt $($type:literal $name:ident),+) => {
        $(one! { $each $verb $form [$type (buffer) (Elements::Of(Type::$name))] })+
    };
    (@typed several $each:ident $verb:tt $form:tt $($type:literal $name:ident),+) => {
        $(several! { $each $verb $form [$type () (access::SeveralElements::Of(Type::$name))] })+
    };
    (@flexible one $each:ident $verb:tt $form:tt) => {
        one! {
            $each $verb $form
            ["" (buffer, count: i64, datatype: Word) (Elements::Flexible { count, datatype })]
        }
    };
    (@flexible several $each:ident $verb:tt $form:tt) => {
        several! {
            $each $verb $form
            ["" (sizes: *const i64, datatypes: *const c_void) (
                access::SeveralElements::Flexible { counts: sizes, datatypes }
            )]
        }
    };
}

/// A verb with each form.
macro_rules! forms {
    (one $each:ident $verb:tt) => {
        types!(one $each $verb ["_var" () (Place::Whole)]);
        types!(one $each $verb ["_var1" (start: *const i64) (Place::Element { start })]);
        types!(one $each $verb ["_vara" (start: *const i64, count: *const i64) (
            Place::Part { start, count, stride: null(), imap: null() }
        )]);
        types!(one $each $verb ["_vars" (start: *const i64, count: *const i64, stride: *const i64) (
            Place::Part { start, count, stride, imap: null() }
        )]);
        types!(one $each $verb [
            "_varm" (start: *const i64, count: *const i64, stride: *const i64, imap: *const i64)
            (Place::Part { start, count, stride, imap })
        ]);
        types!(one $each $verb ["_varn" (num: c_int, starts: Lists, counts: Lists) (
            Place::Parts { num, starts, counts }
        )]);
    };
    (several $each:ident $verb:tt) => {
        types!(several $each $verb ["_var" () (null(), null(), null(), null())]);
        types!(several $each $verb ["_var1" (starts) (starts, null(), null(), null())]);
        types!(several $each $verb ["_vara" (starts, counts) (starts, counts, null(), null())]);
        types!(several $each $verb [
            "_vars" (starts, counts, strides) (starts, counts, strides, null())
        ]);
        types!(several $each $verb [
            "_varm" (starts, counts, strides, imaps) (starts, counts, strides, imaps)
        ]);
    };
}

/// All of them.
macro_rules! every_access {
    ($each:ident) => {
        forms!(one $each ["put" Write Independent "" ()]);
        forms!(one $each ["put" Write Collective "_all" ()]);
        forms!(one $each ["get" Read Independent "" ()]);
        forms!(one $each ["get" Read Collective "_all" ()]);
        forms!(one $each ["iput" Write Posted "" (request)]);
        forms!(one $each ["iget" Read Posted "" (request)]);
        forms!(one $each ["bput" Write Buffered "" (request)]);
        forms!(several $each ["mput" Write Independent ""]);
        forms!(several $each ["mput" Write Collective "_all"]);
        forms!(several $each ["mget" Read Independent ""]);
        forms!(several $each ["mget" Read Collective "_all"]);
    };
}

/// A part of a variable that is named by an MPI datatype.
macro_rules! by_filetype {
    ($verb:literal $kind:ident $mode:ident $all:literal) => {
        export! {
            [$verb "_vard" $all]
            (varid: c_int, filetype: Word, buffer: *mut c_void, count: i64, datatype: Word)
            |file| {
                let access = Access {
                    verb: Verb::$kind, varid, place: Place::Filetype { filetype },
                    elements: Elements::Flexible { count, datatype }, buffer,
                };
                // SAFETY: the program's own arguments.
                unsafe { access::blocking(&file, Mode::$mode, &access) }
            }
        }
    };
}

every_access!(export);
by_filetype!("put" Write Independent "");
by_filetype!("put" Write Collective "_all");
by_filetype!("get" Read Independent "");
by_filetype!("get" Read Collective "_all");

/// The names of all of these functions.
#[cfg(test)]
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    macro_rules! note {
        ([$($piece:literal)+] $($rest:tt)*) => {
            names.push(concat!("ncmpi_", $($piece),+).to_owned());
        };
    }
    every_access!(note);
    for verb in ["put", "get"] {
        names.extend(["", "_all"].map(|all| format!("ncmpi_{verb}_vard{all}")));
    }
    names
}
