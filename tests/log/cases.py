"""What is run: programs, their parts, and on how many ranks.

A case's program writes files to a directory and checks them itself; what it saw on the way it tells in files of a
directory beside. Both are compared with what it does on a local directory.
"""

import dataclasses
import shutil
import subprocess

from mpi.libraries import Failed, Missing
from log import stacks
from log.stacks import PROGRAMS

RANKS = (1, 2, 3, 4)


@dataclasses.dataclass
class Case:
    """`commands(stack, side, directory)` gives the words of each step; the steps are run one after the other, each on
    all ranks or, if `alone`, on one. `quick` is on how many ranks it is run without `--full`."""

    name: str
    commands: object
    quick: tuple = ()
    ranks: tuple = RANKS
    # Names of stacks.
    stacks: tuple = ("mpich", "ompio", "romio")
    # `sluice run` does not see that it uses MPI.
    hidden: bool = False
    # Files that no two runs write alike, by how their names end.
    volatile: tuple = ()
    seconds_max: int = 60


def parts_of(source, wanted):
    """A program of `scene.h` with those of its parts that the stack can take."""

    def commands(stack, side, directory):
        chosen = [part for part in wanted if part not in stack.without]
        if not chosen:
            raise Missing(stack.without[wanted[0]])
        return [[stack.compiled(source), side, directory, *chosen]]

    return commands


PATTERNS = ["segmented", "strided", "view", "collective", "collective-holes", "turns", "subarray", "header", "reopened",
            "moved", "large", "small", "own-writes", "other-writes"]
HANDLES = ["sizes", "preallocate", "own-size", "deletion", "renamed", "atomic", "shared-pointer", "shared-race",
           "individual-pointer", "nonblocking", "nonblocking-collective", "split", "appending", "syncs", "groups"]

CASES = [
    *(Case(f"patterns {part}", parts_of("patterns.c", [part]), (2,)) for part in PATTERNS),
    *(Case(f"handles {part}", parts_of("handles.c", [part]), (2,)) for part in HANDLES),
]
