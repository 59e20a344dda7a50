//! The interface of Open MPI: `mpi.h` of Open MPI 4.1.4 and 5.0.11. Its predefined handles are the
//! addresses of data in the library.

use std::ffi::CStr;

use super::{Combiner, Constants, ErrorClasses, Mode, Numbers, Status, Types};
use crate::handle::{Comm, Datatype, ErrorHandler, File, Handle, Info};
use crate::{FindError, Library};

pub(super) fn constants(library: &Library) -> Result<Constants, FindError> {
    Ok(Constants {
        handle_bytes: 8,
        comm_world: at::<Comm>(library, c"ompi_mpi_comm_world")?,
        comm_self: at::<Comm>(library, c"ompi_mpi_comm_self")?,
        comm_null: at::<Comm>(library, c"ompi_mpi_comm_null")?,
        info_null: at::<Info>(library, c"ompi_mpi_info_null")?,
        file_null: at::<File>(library, c"ompi_mpi_file_null")?,
        errors_return: at::<ErrorHandler>(library, c"ompi_mpi_errors_return")?,
        datatype_null: at::<Datatype>(library, c"ompi_mpi_datatype_null")?,
        types: Types {
            byte: at(library, c"ompi_mpi_byte")?,
            int: at(library, c"ompi_mpi_int")?,
            double: at(library, c"ompi_mpi_double")?,
            short_int: at(library, c"ompi_mpi_short_int")?,
            long_int: at(library, c"ompi_mpi_long_int")?,
            double_int: at(library, c"ompi_mpi_double_int")?,
            long_double_int: at(library, c"ompi_mpi_longdbl_int")?,
        },
        numbers: &NUMBERS,
    })
}

fn at<H: Handle>(library: &Library, name: &CStr) -> Result<H, FindError> {
    let address = library.data(name).ok_or_else(|| library.missing(name))?;
    Ok(H::from_word(address.as_ptr() as usize))
}

static NUMBERS: Numbers = Numbers {
    status: Status { size: 24, source: 0, tag: 4, error: 8 },
    status_ignore: 0,
    in_place: 1,
    any_source: -1,
    any_tag: -1,
    proc_null: -2,
    undefined: -32766,
    mode: Mode {
        create: 1,
        rdonly: 2,
        wronly: 4,
        rdwr: 8,
        delete_on_close: 16,
        unique_open: 32,
        excl: 64,
        append: 128,
        sequential: 256,
    },
    seek_set: 600,
    seek_cur: 602,
    seek_end: 604,
    displacement_current: -54_278_278,
    order_c: 0,
    order_fortran: 1,
    distribute_block: 0,
    distribute_cyclic: 1,
    distribute_none: 2,
    distribute_default: -1,
    combiners: &[
        (0, Combiner::Named),
        (1, Combiner::Dup),
        (2, Combiner::Contiguous),
        (3, Combiner::Vector),
        (5, Combiner::Hvector),
        (6, Combiner::Indexed),
        (8, Combiner::Hindexed),
        (9, Combiner::IndexedBlock),
        (11, Combiner::Struct),
        (12, Combiner::Subarray),
        (13, Combiner::Darray),
        (14, Combiner::Fortran),
        (15, Combiner::Fortran),
        (16, Combiner::Fortran),
        (17, Combiner::Resized),
        (18, Combiner::HindexedBlock),
    ],
    error: ErrorClasses {
        count: 2,
        datatype: 3,
        argument: 13,
        other: 16,
        unsupported_operation: 52,
        no_space: 41,
        file: 30,
        io: 35,
        no_such_file: 42,
    },
    thread_funneled: 1,
    thread_multiple: 3,
    info_key_bytes_max: 36,
    info_value_bytes_max: 256,
    error_string_bytes_max: 256,
    datarep_bytes_max: 128,
};
