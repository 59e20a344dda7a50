//! The functions of the MPI library that Sluice calls, under their profiling names.
//!
//! Handles are passed and received as words; where the library expects a 4-byte handle it takes the
//! lower half of the register (System V ABI §3.2.3). `C-unwind`, because an error handler of the
//! program may throw.

use std::ffi::{c_char, c_int, c_void};

use crate::{FindError, Library};

macro_rules! calls {
    ($(#[$meta:meta])* $table:ident { $( $field:ident: $symbol:literal ( $($ty:ty),* ); )+ }) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub(crate) struct $table {
            $( pub(crate) $field: unsafe extern "C-unwind" fn($($ty),*) -> c_int, )+
        }

        impl $table {
            pub(crate) fn bind(library: &Library) -> Result<Self, FindError> {
                Ok(Self { $(
                    $field: {
                        let address =
                            library.symbol($symbol).ok_or_else(|| library.missing($symbol))?;
                        // SAFETY: MPI-4.1, annex A.3, gives the function of this name this signature,
                        // with handles, Aint, Offset and Count as words.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C-unwind" fn($($ty),*) -> c_int,
                            >(address.as_ptr())
                        }
                    },
                )+ })
            }
        }
    };
}

/// A handle passed by value.
type Word = usize;
/// Where the library puts a handle or an array of handles.
type Words = *mut c_void;
/// The three functions of a generalized request (MPI-4.1 §13.2).
pub(crate) type Answer = unsafe extern "C-unwind" fn(*mut c_void, Status) -> c_int;
pub(crate) type Release = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
pub(crate) type Cancel = unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int;
/// An MPI_Status.
type Status = *mut c_void;

calls! {
    /// What every library has.
    Calls {
        initialized: c"PMPI_Initialized"(*mut c_int);
        finalized: c"PMPI_Finalized"(*mut c_int);
        error_class: c"PMPI_Error_class"(c_int, *mut c_int);
        error_string: c"PMPI_Error_string"(c_int, *mut c_char, *mut c_int);
        comm_rank: c"PMPI_Comm_rank"(Word, *mut c_int);
        comm_size: c"PMPI_Comm_size"(Word, *mut c_int);
        info_get: c"PMPI_Info_get"(Word, *const c_char, c_int, *mut c_char, *mut c_int);
        info_free: c"PMPI_Info_free"(Words);
        group_size: c"PMPI_Group_size"(Word, *mut c_int);
        group_free: c"PMPI_Group_free"(Words);
        type_size: c"PMPI_Type_size_x"(Word, *mut i64);
        type_extent: c"PMPI_Type_get_extent"(Word, *mut i64, *mut i64);
        type_free: c"PMPI_Type_free"(Words);
        type_name: c"PMPI_Type_get_name"(Word, *mut c_char, *mut c_int);
        type_envelope: c"PMPI_Type_get_envelope"(Word, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
        type_contents: c"PMPI_Type_get_contents"(
            Word, c_int, c_int, c_int, *mut c_int, *mut i64, Words
        );
        status_set_elements: c"PMPI_Status_set_elements_x"(Status, Word, i64);
        status_set_cancelled: c"PMPI_Status_set_cancelled"(Status, c_int);
        file_view: c"PMPI_File_get_view"(Word, *mut i64, Words, Words, *mut c_char);
        file_info: c"PMPI_File_get_info"(Word, Words);
        file_amode: c"PMPI_File_get_amode"(Word, *mut c_int);
        file_group: c"PMPI_File_get_group"(Word, Words);
        file_size: c"PMPI_File_get_size"(Word, *mut i64);
        file_atomicity: c"PMPI_File_get_atomicity"(Word, *mut c_int);
        file_position: c"PMPI_File_get_position"(Word, *mut i64);
        file_seek: c"PMPI_File_seek"(Word, i64, c_int);
        file_call_errhandler: c"PMPI_File_call_errhandler"(Word, c_int);
    }
}

calls! {
    /// What a transport needs: beginning and end, communicators, messages. Every library has them.
    MessageCalls {
        init_thread: c"PMPI_Init_thread"(*mut c_int, *mut c_void, c_int, *mut c_int);
        query_thread: c"PMPI_Query_thread"(*mut c_int);
        finalize: c"PMPI_Finalize"();
        comm_dup: c"PMPI_Comm_dup"(Word, Words);
        comm_split: c"PMPI_Comm_split"(Word, c_int, c_int, Words);
        comm_free: c"PMPI_Comm_free"(Words);
        comm_set_name: c"PMPI_Comm_set_name"(Word, *const c_char);
        comm_set_errhandler: c"PMPI_Comm_set_errhandler"(Word, Word);
        allgather: c"PMPI_Allgather"(*const c_void, c_int, Word, *mut c_void, c_int, Word, Word);
        isend: c"PMPI_Isend"(*const c_void, c_int, Word, c_int, c_int, Word, Words);
        irecv: c"PMPI_Irecv"(*mut c_void, c_int, Word, c_int, c_int, Word, Words);
        iprobe: c"PMPI_Iprobe"(c_int, c_int, Word, *mut c_int, Status);
        test: c"PMPI_Test"(Words, *mut c_int, Status);
        get_count: c"PMPI_Get_count"(Status, Word, *mut c_int);
        get_elements: c"PMPI_Get_elements_x"(Status, Word, *mut i64);
        grequest_start: c"PMPI_Grequest_start"(Answer, Release, Cancel, *mut c_void, Words);
        grequest_complete: c"PMPI_Grequest_complete"(Word);
    }
}

calls! {
    /// The large-count forms of MPI-4.0 that Open MPI 4 and 5 do not have.
    LargeCountCalls {
        type_envelope: c"PMPI_Type_get_envelope_c"(
            Word, *mut i64, *mut i64, *mut i64, *mut i64, *mut c_int
        );
        type_contents: c"PMPI_Type_get_contents_c"(
            Word, i64, i64, i64, i64, *mut c_int, *mut i64, *mut i64, Words
        );
    }
}

/// A non-zero return value as an error.
macro_rules! check {
    ($call:literal, $value:expr) => {
        match $value {
            0 => Ok(()),
            code => Err($crate::MpiError::Failed { call: $call, code }),
        }
    };
}
pub(crate) use check;
