"""What is run: programs, their parts, and on how many ranks.

A case's program writes files to a directory and checks them itself; what it saw on the way it tells in files of a
directory beside. Both are compared with what it does on a local directory.
"""

import dataclasses
import pathlib
import re
import shutil

from mpi.libraries import Failed, Missing
from log import points
from log.stacks import PROGRAMS

RANKS = (1, 2, 3, 4)
OPEN_MPI = ("ompio", "romio")


class Alone(list):
    """The words of a step that is no MPI job."""


@dataclasses.dataclass
class Case:
    """`steps(stack, ranks, side, directory)` gives the words of each step; they are run one after the other.
    `after(side, outputs)` looks at what the steps printed, `final(stack, ranks, side, target)` at what there is in the
    end, when nothing of Sluice stands before it any more."""

    name: str
    steps: object
    # On how many ranks without `--full`, and with it.
    quick: tuple = ()
    ranks: tuple = RANKS
    stacks: tuple = ("mpich", "ompio", "romio")
    # `sluice run` does not see that it uses MPI.
    hidden: bool = False
    # The part of a program that it is, alone.
    part: str = ""
    after: object = None
    final: object = None
    seconds_max: int = 60


def parts_of(source, wanted, **how):
    """The parts of a program of `scene.h`; `how` gives what it is compiled with, asked of the stack."""

    def steps(stack, ranks, side, directory):
        # Alone a part is tried whatever is known of it.
        chosen = [part for part in wanted if part not in stack.without or len(wanted) == 1]
        made = stack.compiled(source, **{key: value(stack) for key, value in how.items()})
        return [[made, side, directory, *chosen]]

    return steps


def solver(stack, ranks, side, directory):
    return [[stack.compiled("solver.f90", "f08"), side, directory]]


def pnetcdf_link(stack):
    if not pathlib.Path("/usr/include/pnetcdf.h").exists():
        raise Missing("libpnetcdf-dev is not installed")
    return ["-lpnetcdf"]


def h5py(stack, ranks, side, directory):
    packages = pathlib.Path("/usr/lib/python3/dist-packages")
    for package, folder in (("python3-h5py-mpi", "h5py/_debian_h5py_mpi"), ("python3-mpi4py", "mpi4py")):
        if not (packages / folder).is_dir():
            raise Missing(f"{package} is not installed")
    return [["/usr/bin/python3", PROGRAMS / "series_h5py.py", side, directory]]


def lammps(stack, ranks, side, directory):
    if not shutil.which("lmp"):
        raise Missing("lammps is not installed")
    words = ["-var", "to", directory, "-var", "side", side, "-screen", "none"]
    return [["lmp", "-in", PROGRAMS / "lammps" / deck, *words] for deck in ("melt", "again")]


def lammps_told(side, outputs):
    """What goes on from the restart file has the energy that was there when it was written."""
    lines = (side / "told.0").read_text().splitlines()
    if len(lines) != 3 or lines[0] != lines[2]:
        raise Failed(f"energies before and after the restart: {lines}")


def openfoam(stack, ranks, side, directory):
    if not shutil.which("icoFoam"):
        raise Missing("openfoam is not installed")
    # The deck's number of ranks is filled in beside.
    deck = side / "deck"
    shutil.copytree(PROGRAMS / "openfoam", deck)
    numbered = deck / "system" / "decomposeParDict"
    numbered.write_text(numbered.read_text().replace("RANKS", str(ranks)))
    tool = ["env", "WM_PROJECT_DIR=/usr/share/openfoam"]
    at = ["-case", directory]
    parallel = ["-parallel"] if ranks > 1 else []
    return [Alone(["cp", "-r", f"{deck}/.", directory]), Alone([*tool, "blockMesh", *at]),
            *([Alone([*tool, "decomposePar", *at])] if ranks > 1 else []),
            [*tool, "icoFoam", *at, *parallel],
            *([Alone([*tool, "reconstructPar", *at])] if ranks > 1 else []),
            Alone([*tool, "checkMesh", *at])]


def openfoam_told(side, outputs):
    """Residuals, step by step; and every tool reached its end."""
    shutil.rmtree(side / "deck")
    for output in outputs[1:]:
        if "\nEnd" not in output:
            raise Failed(f"no end: {output[-600:]}")
    lines = re.findall(r"^(?:Time = |smoothSolver|DICPCG|time step continuity|Mesh OK).*", "\n".join(outputs), re.MULTILINE)
    if sum(line.startswith("Time =") for line in lines) < 10 or "Mesh OK." not in lines:
        raise Failed(f"told too little: {lines}")
    (side / "told.openfoam").write_text("\n".join(lines))


EPOCHS, EACH = 6, 30


def epochs(plan, calls, point):
    """The program of the crash matrix, when nothing happens to it: it gets to its last point."""

    def steps(stack, ranks, side, directory):
        return [[stack.compiled("epochs.c"), side, directory, plan, calls, point, EPOCHS, EACH]]

    def final(stack, ranks, side, target):
        checker = stack.compiled("points.c", compiler=["gcc"])
        # One file of all ranks, or one of each.
        files = [(plan, ranks, None, range(ranks))]
        if calls == "posix":
            files = [(f"{plan}.{rank}", 1, rank, [rank]) for rank in range(ranks)]
        for name, sharers, writer, noted in files:
            came = points.Points.noted(side, noted)
            if came != points.Points(EPOCHS, EPOCHS):
                raise Failed(f"{name}: {came} after {EPOCHS} epochs")
            equal, made_of = points.equal_to(checker, target / name, plan, sharers, EACH, EPOCHS, writer)
            if wrong := points.judge(equal, came, made_of):
                raise Failed(f"{name}: {wrong}")

        # Without --full, what the others are not.
    quick = (2,) if plan == "mixed" and (calls, point) in (("strided", "sync"), ("collective", "close"), ("posix", "sync")) else ()
    return Case(f"epochs {plan} {calls} {point}", steps, quick, final=final)


PATTERNS = ["segmented", "strided", "view", "collective", "collective-holes", "turns", "subarray", "header", "reopened",
            "moved", "large", "small", "own-writes", "other-writes"]
HANDLES = ["sizes", "preallocate", "own-size", "deletion", "renamed", "atomic", "shared-pointer", "shared-race",
           "individual-pointer", "nonblocking", "nonblocking-collective", "split", "appending", "syncs", "groups"]

PLAIN = ["steps", "append", "truncated", "replaced", "unlinked", "tree", "mixed", "asynchronous", "copied",
         "synchronous", "left-open"]

CASES = [
    # Without --full all parts in one go: launching takes longer than most of them.
    Case("patterns", parts_of("patterns.c", PATTERNS), (2,), ()),
    Case("handles", parts_of("handles.c", HANDLES), (2,), ()),
    Case("plain", parts_of("plain.c", PLAIN, compiler=lambda stack: ["gcc"]), (2,), (), ("mpich",)),
    *(Case(f"patterns {part}", parts_of("patterns.c", [part]), part=part) for part in PATTERNS),
    *(Case(f"handles {part}", parts_of("handles.c", [part]), part=part) for part in HANDLES),
    *(Case(f"plain {part}", parts_of("plain.c", [part], compiler=lambda stack: ["gcc"]), (), (1, 2), ("mpich",))
      for part in PLAIN),
    # The launcher of the other library.
    Case("plain all", parts_of("plain.c", PLAIN, compiler=lambda stack: ["gcc"]), (4,), (4,), ("ompio",)),
    Case("solver", solver, (2,)),
    *(Case(f"hdf5 {part}", parts_of("series_hdf5.c", [part], compiler=lambda stack: stack.hdf5()), (2,))
      for part in ("independent", "collective")),
    *(epochs(plan, calls, point) for plan in ("whole", "some", "growing", "mixed")
      for calls, point in (("independent", "sync"), ("strided", "sync"), ("collective", "sync"), ("collective", "close"),
                           ("nonblocking", "sync"), ("posix", "sync"), ("posix", "datasync"), ("posix", "close"))),
    # Debian's is made for Open MPI.
    Case("pnetcdf", parts_of("series_pnetcdf.c", ["series"], link=pnetcdf_link), (2,), stacks=OPEN_MPI),
    Case("h5py", h5py, (2,), stacks=OPEN_MPI, hidden=True),
    Case("lammps", lammps, stacks=OPEN_MPI, after=lammps_told),
    Case("openfoam", openfoam, stacks=("ompio",), after=openfoam_told),
]
