//! Whether a program uses MPI, so that the library for MPI-IO is preloaded, too.
//!
//! # Source
//! elf(5): `Elf64_Dyn`, `DT_NEEDED`, `DT_STRTAB`; ld.so(8).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
/// A dynamic section has some dozens of entries.
const ENTRIES_MAX: u64 = 4096;
/// A name of a library; longer ones are not MPI's.
const NAME_BYTES_MAX: usize = 64;

/// Programs that start MPI programs: what is preloaded into them is inherited.
const LAUNCHERS: [&str; 7] =
    ["mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun", "srun"];

/// Whether a program is linked with an MPI library or one that is always built on MPI, or starts such
/// programs. A program that loads MPI while it runs, such as Python, does not show.
pub(crate) fn is_mpi_program(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    // Debian's are called mpirun.openmpi, mpiexec.mpich.
    let is_launcher =
        LAUNCHERS.contains(&&*name) || name.starts_with("mpirun.") || name.starts_with("mpiexec.");
    is_launcher || File::open(path).is_ok_and(|file| needed(&file).iter().any(|name| is_mpi(name)))
}

fn is_mpi(library: &[u8]) -> bool {
    // libmpi.so.40, libmpich.so.12, libmpi_abi.so.1, libmpi_mpifh.so.40, libmpifort.so.12 …
    [&b"libmpi"[..], b"libpnetcdf.", b"libhdf5_openmpi", b"libhdf5_mpich"]
        .iter()
        .any(|prefix| library.starts_with(prefix))
}

/// The names of the libraries that a 64-bit program of this byte order is linked with. Empty for
/// anything else: whether it can be started at all has been found out before.
fn needed(file: &File) -> Vec<Vec<u8>> {
    read_needed(file).unwrap_or_default()
}

fn read_needed(file: &File) -> Option<Vec<Vec<u8>>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let table_at = word(&head, 32)?;
    let (size, count) = (half(&head, 54)?, half(&head, 56)?);
    let (mut loads, mut dynamic) = (Vec::new(), None);
    for index in 0..count {
        let mut header = [0; 56];
        let at = table_at.checked_add(u64::from(index) * u64::from(size))?;
        file.read_exact_at(&mut header, at).ok()?;
        let kind = u32::from_ne_bytes(header[..4].try_into().ok()?);
        let (offset, address, length) = (word(&header, 8)?, word(&header, 16)?, word(&header, 32)?);
        match kind {
            PT_LOAD => loads.push((offset, address, length)),
            PT_DYNAMIC => dynamic = Some((offset, length)),
            _ => {}
        }
    }
    let (dynamic_at, length) = dynamic?;
    let (mut names_at, mut names) = (None, Vec::new());
    for index in 0..(length / 16).min(ENTRIES_MAX) {
        let mut entry = [0; 16];
        file.read_exact_at(&mut entry, dynamic_at.checked_add(index * 16)?).ok()?;
        match (word(&entry, 0)?, word(&entry, 8)?) {
            (DT_NULL, _) => break,
            (DT_NEEDED, name) => names.push(name),
            (DT_STRTAB, address) => names_at = Some(address),
            _ => {}
        }
    }
    // The table's place is given as an address in memory.
    let address = names_at?;
    let strings_at = loads.iter().find_map(|(offset, start, length)| {
        let within = address.checked_sub(*start).filter(|within| within < length)?;
        offset.checked_add(within)
    })?;
    names.into_iter().map(|name| string(file, strings_at.checked_add(name)?)).collect()
}

/// A string that ends in NUL, or its beginning.
fn string(file: &File, at: u64) -> Option<Vec<u8>> {
    let mut bytes = [0; NAME_BYTES_MAX];
    // Short only at the end of the file.
    let length = file.read_at(&mut bytes, at).ok()?;
    let end = bytes[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
    Some(bytes[..end].to_vec())
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Links a program with an empty library of that name.
    fn linked_with(directory: &Path, library: &str) -> std::path::PathBuf {
        let source = directory.join("empty.c");
        std::fs::write(&source, "int mpi_is_here; int main(void) { return mpi_is_here; }").unwrap();
        let (library, program) = (directory.join(library), directory.join("program"));
        let name = library.file_name().unwrap().to_str().unwrap();
        let cc =
            |words: &[&str]| assert!(Command::new("cc").args(words).status().unwrap().success());
        let (source, shared) = (source.to_str().unwrap(), library.to_str().unwrap());
        cc(&["-shared", "-fPIC", "-o", shared, source, &format!("-Wl,-soname,{name}")]);
        cc(&["-o", program.to_str().unwrap(), source, "-Wl,--no-as-needed", shared]);
        program
    }

    #[test]
    fn a_program_linked_with_mpi_is_one() {
        for (library, expected) in [
            ("libmpi.so.40", true),
            ("libmpich.so.12", true),
            ("libmpi_abi.so.1", true),
            ("libpnetcdf.so.0d", true),
            ("libcompi.so.1", false),
            ("libm.so.6", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let program = linked_with(directory.path(), library);
            assert_eq!(is_mpi_program(&program), expected, "{library}");
        }
    }

    #[test]
    fn launchers_are_known_by_name() {
        assert!(is_mpi_program(Path::new("/usr/bin/mpirun")));
        assert!(is_mpi_program(Path::new("/usr/bin/mpiexec.mpich")));
        assert!(!is_mpi_program(Path::new("/usr/bin/mpicc-not-there")));
    }

    #[test]
    fn what_is_no_program_is_no_mpi_program() {
        assert!(!is_mpi_program(&std::env::current_exe().unwrap()));
        let mut own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 4, 63, 64, 100, 4096] {
            std::fs::write(file.path(), &own[..length]).unwrap();
            assert!(!is_mpi_program(file.path()), "{length} bytes");
        }
        // The table of program headers lies far outside.
        own[32..40].copy_from_slice(&[0xff; 8]);
        std::fs::write(file.path(), &own).unwrap();
        assert!(!is_mpi_program(file.path()));
    }
}
