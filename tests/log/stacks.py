"""What stands below a program: an MPI library, and the part of it that does file I/O.

  mpich  MPICH and ROMIO
  ompio  Open MPI and OMPIO
  romio  Open MPI and its copy of ROMIO
"""

import dataclasses
import pathlib
import shutil
import subprocess

from mpi import libraries
from mpi.libraries import Failed, Missing

COMPILE_SECONDS_MAX = 120
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


@dataclasses.dataclass
class Stack:
    """One of them; `programs` is where its programs are put."""

    name: str
    library: libraries.Library
    programs: pathlib.Path
    # Parts of programs that the library itself, without Sluice, cannot take at all or each time, and why. They are kept
    # apart from the others, and tried with and without Sluice (run.py).
    without: dict

    @property
    def is_open_mpi(self):
        return self.library.abi == "open-mpi"

    def launch(self, ranks, command, around=(), within=()):
        """The words that start a program on some ranks."""
        return [*around, *self.library.launcher, "-n", str(ranks), *within, *command]

    def compiled(self, name, language="c", compiler=None, flags=(), link=()):
        """The program made from `programs/NAME`; compiled once."""
        target = self.programs / pathlib.Path(name).stem
        if target.exists():
            return target
        if compiler is None:
            if language not in self.library.compilers:
                raise Missing(self.library.lacks.get(language, f"no compiler of {language} for {self.name}"))
            compiler = self.library.compilers[language]
        command = [*compiler, "-O1", *flags, "-o", target, PROGRAMS / name, *link]
        # Fortran modules are written to the working directory.
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, cwd=self.programs)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip()[-800:]}")
        return target

    def hdf5(self):
        """The words that compile with the parallel HDF5 of this library."""
        wrapper = shutil.which("h5pcc.openmpi" if self.is_open_mpi else "h5pcc.mpich")
        if not wrapper:
            raise Missing(f"libhdf5-{'openmpi' if self.is_open_mpi else 'mpich'}-dev is not installed")
        return [wrapper, "-shlib"]


def available(scratch):
    """The stacks that are installed, and (name, reason) of those that are not."""
    found, missing = [], []
    debian, absent = libraries.distribution()
    reasons = dict(absent)
    by_abi = {library.abi: library for library in debian}
    for name, abi, package in (("mpich", "mpich", "debian-mpich"), ("ompio", "open-mpi", "debian-openmpi"),
                               ("romio", "open-mpi", "debian-openmpi")):
        library = by_abi.get(abi)
        if library is None:
            missing.append((name, reasons.get(package, "not installed")))
            continue
        programs, without = scratch / "programs" / name, {}
        programs.mkdir(parents=True)
        if name == "romio":
            library = dataclasses.replace(library, environment=library.environment | {"OMPI_MCA_io": "romio321"})
            without["nonblocking-collective"] = "Open MPI's copy of ROMIO crashes in MPI_File_iwrite_at_all (4.1.4)"
        if name == "ompio":
            # Seen in 8 of 25 runs without Sluice.
            without["sizes"] = "OMPIO sometimes has a file empty after MPI_File_set_size, which it does on every rank (4.1.4)"
            without["appending"] = "Open MPI's MPI_File_open for appending sometimes never returns (4.1.4)"
        found.append(Stack(name, library, programs, without))
    return found, missing
