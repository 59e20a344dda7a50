//! Holds the binding against a real MPI library: `judge LIBRARY [global]`.
//!
//! It loads the library as Python does (or globally, as a linked program has it), makes many derived
//! datatypes in all ways that MPI has, and compares the bytes that [`mpi::Flat`] finds with those that
//! MPI_Pack gathers. Prints the table of constants in force, and how many types were compared.

mod call;
mod make;
mod table;

use std::ffi::{CString, c_int, c_void};
use std::process::ExitCode;

use mpi::{Abi, Flat, Mpi};

use call::call;
use table::print_constants;

/// Functions that only this judge calls, by name.
struct Library {
    handle: *mut c_void,
    handle_bytes: usize,
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
