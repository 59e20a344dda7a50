//! Holds the binding against a real MPI library: `judge LIBRARY [global]`.
//!
//! It loads the library as Python does (or globally, as a linked program has it), makes many derived
//! datatypes in all ways that MPI has, and compares the bytes that [`mpi::Flat`] finds with those that
//! MPI_Pack gathers. Prints the table of constants in force, and how many types were compared.

use std::ffi::{CString, c_int, c_void};
use std::process::ExitCode;

use mpi::{Abi, Flat, Mpi};

/// Functions that only this judge calls, by name.
struct Library {
    handle: *mut c_void,
    handle_bytes: usize,
}

/// Calls, and returns the error code.
macro_rules! attempt {
    ($library:expr, $name:literal, ($($ty:ty),*), ($($value:expr),*)) => {{
        // SAFETY: the signature is the one that MPI-4.1, annex A.3, gives to this name.
        unsafe {
            let name = concat!($name, "\0").as_ptr().cast();
            let address = libc::dlsym($library.handle, name);
            assert!(!address.is_null(), "{} is missing", $name);
            let call: unsafe extern "C" fn($($ty),*) -> c_int = std::mem::transmute(address);
            call($($value),*)
        }
    }};
}

/// Calls, and must succeed.
macro_rules! call {
    ($library:expr, $name:literal, $types:tt, $values:tt) => {
        assert_eq!(attempt!($library, $name, $types, $values), 0, "{} failed", $name)
    };
}

/// Small, reproducible, and good enough to pick datatypes.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit) as i64
    }

    fn many(&mut self, count: i64, from: i64, limit: u64) -> Vec<c_int> {
        (0..count).map(|_| (from + self.below(limit)) as c_int).collect()
    }
}

impl Library {
    fn array(&self, types: &[usize]) -> Vec<u8> {
        types.iter().flat_map(|word| word.to_ne_bytes()[..self.handle_bytes].to_vec()).collect()
    }

    /// A random type made of another. Displacements may overlap and run backwards: allowed in memory.
    fn derive(&self, random: &mut Random, mpi: &Mpi, of: usize) -> (usize, &'static str) {
        if self.has_large_counts() && random.below(3) == 0 {
            return self.derive_large(random, mpi, of);
        }
        let numbers = mpi.constants().numbers;
        let mut made = 0usize;
        let to = &raw mut made;
        let count = 1 + random.below(4);
        // Open MPI misplaces data beside members without any.
        let least = i64::from(mpi.abi() == Abi::OpenMpi);
        let lengths = random.many(count, least, 4);
        let near = random.many(count, -3, 12);
        let bytes: Vec<i64> = near.iter().map(|at| i64::from(*at) * 7).collect();
        let order = [numbers.order_c, numbers.order_fortran][random.below(2) as usize];
        let name = match random.below(12) {
            0 => {
                call!(self, "PMPI_Type_dup", (usize, *mut usize), (of, to));
                "dup"
            }
            1 => {
                let count = (least + random.below(5)) as c_int;
                call!(self, "PMPI_Type_contiguous", (c_int, usize, *mut usize), (count, of, to));
                "contiguous"
            }
            2 => {
                let (length, stride) =
                    ((least + random.below(4)) as c_int, random.below(9) as c_int - 3);
                call!(
                    self,
                    "PMPI_Type_vector",
                    (c_int, c_int, c_int, usize, *mut usize),
                    (count as c_int, length, stride, of, to)
                );
                "vector"
            }
            3 => {
                let (length, stride) = ((least + random.below(4)) as c_int, random.below(99) - 30);
                call!(
                    self,
                    "PMPI_Type_create_hvector",
                    (c_int, c_int, i64, usize, *mut usize),
                    (count as c_int, length, stride, of, to)
                );
                "hvector"
            }
            4 => {
                call!(
                    self,
                    "PMPI_Type_indexed",
                    (c_int, *const c_int, *const c_int, usize, *mut usize),
                    (count as c_int, lengths.as_ptr(), near.as_ptr(), of, to)
                );
                "indexed"
            }
            5 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed",
                    (c_int, *const c_int, *const i64, usize, *mut usize),
                    (count as c_int, lengths.as_ptr(), bytes.as_ptr(), of, to)
                );
                "hindexed"
            }
            6 => {
                call!(
                    self,
                    "PMPI_Type_create_indexed_block",
                    (c_int, c_int, *const c_int, usize, *mut usize),
                    (count as c_int, lengths[0], near.as_ptr(), of, to)
                );
                "indexed_block"
            }
            7 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed_block",
                    (c_int, c_int, *const i64, usize, *mut usize),
                    (count as c_int, lengths[0], bytes.as_ptr(), of, to)
                );
                "hindexed_block"
            }
            8 => {
                let known = &mpi.constants().types;
                let choice = [known.byte.word(), of, known.double.word(), known.short_int.word()];
                let picked: Vec<usize> =
                    (0..count).map(|_| choice[random.below(4) as usize]).collect();
                let types = self.array(&picked);
                call!(
                    self,
                    "PMPI_Type_create_struct",
                    (c_int, *const c_int, *const i64, *const u8, *mut usize),
                    (count as c_int, lengths.as_ptr(), bytes.as_ptr(), types.as_ptr(), to)
                );
                "struct"
            }
            9 => {
                let dimensions = 1 + random.below(3);
                let sizes = random.many(dimensions, 1, 5);
                let part =
                    |random: &mut Random, size: &c_int| 1 + random.below(*size as u64) as c_int;
                let parts: Vec<c_int> = sizes.iter().map(|size| part(random, size)).collect();
                let room = |(size, part): (&c_int, &c_int)| {
                    random.below((size - part + 1) as u64) as c_int
                };
                let starts: Vec<c_int> = sizes.iter().zip(&parts).map(room).collect();
                call!(
                    self,
                    "PMPI_Type_create_subarray",
                    (c_int, *const c_int, *const c_int, *const c_int, c_int, usize, *mut usize),
                    (
                        dimensions as c_int,
                        sizes.as_ptr(),
                        parts.as_ptr(),
                        starts.as_ptr(),
                        order,
                        of,
                        to
                    )
                );
                "subarray"
            }
            10 => {
                self.distribute(random, mpi, order, of, to);
                "darray"
            }
            _ => {
                let (lower_bound, extent) = (random.below(9) - 4, 1 + random.below(64));
                call!(
                    self,
                    "PMPI_Type_create_resized",
                    (usize, i64, i64, *mut usize),
                    (of, lower_bound, extent, to)
                );
                "resized"
            }
        };
        (made, name)
    }

    fn has_large_counts(&self) -> bool {
        // SAFETY: dlsym(3) with a NUL-terminated name.
        !unsafe { libc::dlsym(self.handle, c"PMPI_Type_vector_c".as_ptr()) }.is_null()
    }

    /// The same by the calls of MPI-4.0, whose arguments come back in another form.
    fn derive_large(&self, random: &mut Random, mpi: &Mpi, of: usize) -> (usize, &'static str) {
        let numbers = mpi.constants().numbers;
        let mut made = 0usize;
        let to = &raw mut made;
        let count = 1 + random.below(4);
        let wide = |random: &mut Random, from, limit| -> Vec<i64> {
            random.many(count, from, limit).into_iter().map(i64::from).collect()
        };
        let lengths = wide(random, 0, 4);
        let near = wide(random, -3, 12);
        let order = [numbers.order_c, numbers.order_fortran][random.below(2) as usize];
        let name = match random.below(6) {
            0 => {
                call!(
                    self,
                    "PMPI_Type_vector_c",
                    (i64, i64, i64, usize, *mut usize),
                    (count, lengths[0], near[0], of, to)
                );
                "vector_c"
            }
            1 => {
                call!(
                    self,
                    "PMPI_Type_indexed_c",
                    (i64, *const i64, *const i64, usize, *mut usize),
                    (count, lengths.as_ptr(), near.as_ptr(), of, to)
                );
                "indexed_c"
            }
            2 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed_block_c",
                    (i64, i64, *const i64, usize, *mut usize),
                    (count, lengths[0], near.as_ptr(), of, to)
                );
                "hindexed_block_c"
            }
            3 => {
                let types = self.array(&vec![of; count as usize]);
                call!(
                    self,
                    "PMPI_Type_create_struct_c",
                    (i64, *const i64, *const i64, *const u8, *mut usize),
                    (count, lengths.as_ptr(), near.as_ptr(), types.as_ptr(), to)
                );
                "struct_c"
            }
            4 => {
                let sizes: [i64; 2] = [3 + random.below(4), 2 + random.below(4)];
                let parts = [1 + random.below(2), 1 + random.below(2)];
                let starts = [random.below(2), random.below(1)];
                call!(
                    self,
                    "PMPI_Type_create_subarray_c",
                    (c_int, *const i64, *const i64, *const i64, c_int, usize, *mut usize),
                    (2, sizes.as_ptr(), parts.as_ptr(), starts.as_ptr(), order, of, to)
                );
                "subarray_c"
            }
            _ => {
                let sizes: [i64; 2] = [3 + random.below(4), 2 + random.below(4)];
                let (kinds, arguments) = (
                    [numbers.distribute_cyclic, numbers.distribute_block],
                    [numbers.distribute_default; 2],
                );
                let grid = [2, 1];
                call!(
                    self,
                    "PMPI_Type_create_darray_c",
                    (
                        c_int,
                        c_int,
                        c_int,
                        *const i64,
                        *const c_int,
                        *const c_int,
                        *const c_int,
                        c_int,
                        usize,
                        *mut usize
                    ),
                    (
                        2,
                        random.below(2) as c_int,
                        2,
                        sizes.as_ptr(),
                        kinds.as_ptr(),
                        arguments.as_ptr(),
                        grid.as_ptr(),
                        order,
                        of,
                        to
                    )
                );
                "darray_c"
            }
        };
        (made, name)
    }

    fn distribute(&self, random: &mut Random, mpi: &Mpi, order: c_int, of: usize, to: *mut usize) {
        let numbers = mpi.constants().numbers;
        let dimensions = 1 + random.below(3);
        let sizes = random.many(dimensions, 1, 7);
        let (mut kinds, mut arguments, mut grid) = (Vec::new(), Vec::new(), Vec::new());
        for size in &sizes {
            let processes = 1 + random.below(3) as c_int;
            let (kind, argument, processes) = match random.below(5) {
                0 => (numbers.distribute_none, numbers.distribute_default, 1),
                1 => (numbers.distribute_block, numbers.distribute_default, processes),
                2 => (numbers.distribute_block, (size + processes - 1) / processes + 1, processes),
                3 => (numbers.distribute_cyclic, numbers.distribute_default, processes),
                _ => (numbers.distribute_cyclic, 1 + random.below(3) as c_int, processes),
            };
            kinds.push(kind);
            arguments.push(argument);
            grid.push(processes);
        }
        let processes: c_int = grid.iter().product();
        let rank = random.below(processes as u64) as c_int;
        let code = attempt!(
            self,
            "PMPI_Type_create_darray",
            (
                c_int,
                c_int,
                c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                c_int,
                usize,
                *mut usize
            ),
            (
                processes,
                rank,
                dimensions as c_int,
                sizes.as_ptr(),
                kinds.as_ptr(),
                arguments.as_ptr(),
                grid.as_ptr(),
                order,
                of,
                to
            )
        );
        // Open MPI refuses some that the standard allows.
        if code != 0 {
            assert_eq!(mpi.abi(), Abi::OpenMpi, "PMPI_Type_create_darray failed");
            call!(self, "PMPI_Type_dup", (usize, *mut usize), (of, to));
        }
    }

    /// The bytes that MPI gathers from a buffer in which every byte tells its place.
    fn packed(&self, mpi: &Mpi, of: usize, memory: &[u8], origin: usize, size: usize) -> Vec<u8> {
        let world = mpi.constants().comm_world.word();
        let mut position = 0;
        let mut packed = vec![0u8; size + 64];
        let room = packed.len() as c_int;
        call!(
            self,
            "PMPI_Pack",
            (*const u8, c_int, usize, *mut u8, c_int, *mut c_int, usize),
            (memory[origin..].as_ptr(), 2, of, packed.as_mut_ptr(), room, &mut position, world)
        );
        packed.truncate(position as usize);
        packed
    }
}

/// Where the tested type stands in memory, and how much there is before and behind.
const ORIGIN: usize = 1 << 20;

fn compare(library: &Library, mpi: &Mpi, of: usize, what: &str, memory: &[u8]) -> bool {
    // SAFETY: a type that was just made.
    let flat: Flat = match mpi.flatten(unsafe { mpi.datatype(of) }) {
        Ok(flat) => flat,
        Err(mpi::MpiError::Contradicted) => return false,
        Err(error) => panic!("{what}: {error}"),
    };
    let both = flat.repeated(2).expect("small types");
    if flat.size > 1 << 16
        || both.bounds().is_some_and(|(low, high)| low < -(1 << 19) || high > 1 << 19)
    {
        return false;
    }
    // Open MPI takes some types with negative strides for contiguous ones, and Intel MPI gathers some
    // overlapping ones in another order.
    if !mpi.version().contains("MPICH") && !both.is_ascending() {
        return false;
    }
    let ours: Vec<u8> = both
        .blocks()
        .flat_map(|(offset, length)| {
            let from = (ORIGIN as i64 + offset) as usize;
            memory[from..from + length as usize].to_vec()
        })
        .collect();
    let theirs = library.packed(mpi, of, memory, ORIGIN, ours.len());
    assert!(
        ours == theirs,
        "{what}: {} bytes, and MPI gathers {} others: {flat:?}",
        ours.len(),
        theirs.len(),
    );
    true
}

/// The table, as `tests/mpi/programs/constants.c` prints a header's.
fn print_constants(mpi: &Mpi) {
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

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: judge LIBRARY [global]");
        return ExitCode::from(2);
    };
    assert!(Mpi::find().is_err(), "no MPI is loaded yet");
    let scope = if arguments.next().is_some() { libc::RTLD_GLOBAL } else { libc::RTLD_LOCAL };
    let name = CString::new(path.clone()).expect("a path");
    // SAFETY: an MPI library, whose constructors may run.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | scope) };
    if handle.is_null() {
        eprintln!("judge: {path} cannot be loaded");
        return ExitCode::from(3);
    }
    let mpi = match Mpi::find() {
        Ok(mpi) => mpi,
        Err(error) => {
            eprintln!("judge: {error}");
            return ExitCode::FAILURE;
        }
    };
    let library = Library { handle, handle_bytes: mpi.constants().handle_bytes };
    println!("abi {}\nversion {}", mpi.abi().name(), mpi.version());
    print_constants(mpi);
    assert!(!mpi.is_running());
    call!(
        library,
        "PMPI_Init",
        (*mut c_int, *mut c_void),
        (std::ptr::null_mut(), std::ptr::null_mut())
    );
    assert!(mpi.is_running());
    let errors_return = match mpi.abi() {
        Abi::OpenMpi => {
            mpi.library().data(c"ompi_mpi_errors_return").expect("it").as_ptr() as usize
        }
        Abi::Mpich => 0x5400_0001,
        Abi::Standard => 0x143,
    };
    call!(
        library,
        "PMPI_Comm_set_errhandler",
        (usize, usize),
        (mpi.constants().comm_world.word(), errors_return)
    );
    let world = mpi.constants().comm_world;
    assert_eq!((mpi.rank(world).unwrap(), mpi.size(world).unwrap()), (0, 1));

    // Bytes that repeat late, so that a wrong place is seen.
    let memory: Vec<u8> = (0..2 * ORIGIN)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let mut random = Random(1);
    let mut compared = std::collections::BTreeMap::<&str, u32>::new();
    let known = &mpi.constants().types;
    let leaves = [
        known.byte,
        known.int,
        known.double,
        known.short_int,
        known.long_int,
        known.double_int,
        known.long_double_int,
    ];
    for leaf in leaves {
        compare(&library, mpi, leaf.word(), "predefined", &memory);
    }
    for _ in 0..6000 {
        let mut of = leaves[random.below(leaves.len() as u64) as usize].word();
        let mut what = String::from("predefined");
        let mut made = Vec::new();
        for _ in 0..1 + random.below(3) {
            let (next, name) = library.derive(&mut random, mpi, of);
            made.push(next);
            what = format!("{name} of {what}");
            of = next;
            let mut committed = of;
            call!(library, "PMPI_Type_commit", (*mut usize), (&mut committed));
            if !compare(&library, mpi, of, &what, &memory) {
                break;
            }
            *compared.entry(name).or_default() += 1;
        }
        for mut of in made {
            call!(library, "PMPI_Type_free", (*mut usize), (&mut of));
        }
    }
    call!(library, "PMPI_Finalize", (), ());
    assert!(!mpi.is_running());
    println!("compared {compared:?}");
    ExitCode::SUCCESS
}
