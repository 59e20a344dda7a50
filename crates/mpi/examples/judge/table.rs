//! Printing the table of constants.

use mpi::{Abi, Mpi};

/// The table, as `tests/mpi/programs/constants.c` prints a header's.
pub(crate) fn print_constants(mpi: &Mpi) {
    let constants = mpi.constants();
    println!("handle_bytes {}", constants.handle_bytes);
    println!("file_bytes 8\noffset_bytes 8\naint_bytes 8\ncount_bytes 8");
    if mpi.abi() != Abi::OpenMpi {
        println!("comm_world {:#x}", constants.comm_world.word());
        println!("comm_self {:#x}", constants.comm_self.word());
        println!("comm_null {:#x}", constants.comm_null.word());
        println!("info_null {:#x}", constants.info_null.word());
        println!("file_null {}", hexadecimal(constants.file_null.word()));
        println!("datatype_null {:#x}", constants.datatype_null.word());
        let types = &constants.types;
        println!("byte {:#x}", types.byte.word());
        println!("int {:#x}", types.int.word());
        println!("double {:#x}", types.double.word());
        println!("short_int {:#x}", types.short_int.word());
        println!("long_int {:#x}", types.long_int.word());
        println!("double_int {:#x}", types.double_int.word());
        println!("long_double_int {:#x}", types.long_double_int.word());
    }
    let numbers = constants.numbers;
    let status = &numbers.status;
    println!("status.size {}\nstatus.source {}", status.size, status.source);
    println!("status.tag {}\nstatus.error {}", status.tag, status.error);
    println!("status_ignore {}\nin_place {}", numbers.status_ignore, numbers.in_place);
    println!("any_source {}\nany_tag {}", numbers.any_source, numbers.any_tag);
    println!("proc_null {}\nundefined {}", numbers.proc_null, numbers.undefined);
    let mode = &numbers.mode;
    println!("mode.create {}\nmode.rdonly {}", mode.create, mode.rdonly);
    println!("mode.wronly {}\nmode.rdwr {}", mode.wronly, mode.rdwr);
    println!(
        "mode.delete_on_close {}\nmode.unique_open {}",
        mode.delete_on_close, mode.unique_open
    );
    println!("mode.excl {}\nmode.append {}", mode.excl, mode.append);
    println!("mode.sequential {}", mode.sequential);
    println!("seek_set {}\nseek_cur {}", numbers.seek_set, numbers.seek_cur);
    println!("seek_end {}", numbers.seek_end);
    println!("displacement_current {}", numbers.displacement_current);
    println!("order_c {}\norder_fortran {}", numbers.order_c, numbers.order_fortran);
    println!("distribute_block {}", numbers.distribute_block);
    println!("distribute_cyclic {}", numbers.distribute_cyclic);
    println!("distribute_none {}", numbers.distribute_none);
    println!("distribute_default {}", numbers.distribute_default);
    for (number, combiner) in numbers.combiners {
        // Not every installed header has the one of MPI-4.1.
        if *combiner != mpi::abi::Combiner::ValueIndex {
            println!("combiner.{combiner:?} {number}");
        }
    }
    let error = &numbers.error;
    println!("error.count {}\nerror.datatype {}", error.count, error.datatype);
    println!("error.argument {}\nerror.other {}", error.argument, error.other);
    println!("error.unsupported_operation {}", error.unsupported_operation);
    println!("error.no_space {}\nerror.file {}", error.no_space, error.file);
    println!("error.io {}\nerror.no_such_file {}", error.io, error.no_such_file);
    println!("thread_multiple {}", numbers.thread_multiple);
    println!("info_key_bytes_max {}", numbers.info_key_bytes_max);
    println!("info_value_bytes_max {}", numbers.info_value_bytes_max);
    println!("error_string_bytes_max {}", numbers.error_string_bytes_max);
    println!("datarep_bytes_max {}", numbers.datarep_bytes_max);
}

/// As C's `%#x` prints it, which leaves the prefix out before zero.
fn hexadecimal(word: usize) -> String {
    if word == 0 { "0".to_owned() } else { format!("{word:#x}") }
}
