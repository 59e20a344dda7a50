"""Ways to a file: local, through Sluice, or through an alternative, all used alike by the measurements."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Optional

from .measure import Failed
from .process import PROGRAM_SECONDS_MAX, Ran, run
from .workspace import Workspace

FAR_PREFIX = "/far"
"""Where Sluice maps the exported directory to, in the programs that it runs."""


class Session:
    """A way that is open: names files as the program must, and runs the program."""

    def __init__(self, root: str, command: Sequence[str] = (), env: Optional[dict[str, str]] = None):
        self.root = root
        self.command = list(command)
        self.env = env

    def path(self, name: str) -> str:
        """The name of a file of the far side, as a program is told it."""
        return f"{self.root}/{name}"

    def run(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = (),
            timeout: float = PROGRAM_SECONDS_MAX) -> Ran:
        """Runs a program. `reads` and `writes` name the far files it uses, for ways that copy them.

        The seconds are those until the far side has everything, the start of the program included.
        """
        return run(self.command + argv, env=self.env, timeout=timeout)

    def timed(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> float:
        """Runs a helper program that tells its own seconds; what the way needs before and after is added."""
        ran = self.run(argv, reads=reads, writes=writes)
        return float(json.loads(ran.stdout)["seconds"])


class Way:
    """One way. `label` is how reports call it, `name` how metrics do."""

    name = ""
    label = ""

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """A fresh session: what an earlier one left in caches does not serve this one."""
        raise NotImplementedError
        yield


class Local(Way):
    """The far directory itself, without anything between."""

    name, label = "local", "local"

    def __init__(self, space: Workspace):
        self.space = space

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        yield Session(self.space.far())


class Sluice(Way):
    """Through `sluice run`, with the far directory mapped to a prefix."""

    def __init__(self, name: str, label: str, binary: str, uri: str, extra: Sequence[str] = ()):
        self.name, self.label = name, label
        self.command = [binary, "run", *extra, "--map", f"{FAR_PREFIX}={uri}", "--"]

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        yield Session(FAR_PREFIX, self.command)


class SluiceMpi(Way):
    """Through `sluice run` as one rank of an MPI job whose other rank serves the far directory.

    Starting the job takes as long as the launcher likes: only for programs that tell their own seconds.
    """

    name, label = "mpi", "Sluice mpi"

    def __init__(self, launcher: Sequence[str], binary: str, space: Workspace, store: str):
        serve = [binary, "serve", "--listen", "mpi:bench", f"{store}={space.far()}"]
        client = [binary, "run", "--map", f"{FAR_PREFIX}=scdc+mpi://bench/{store}", "--"]
        self.command = [*launcher, "-n", "1", *serve, ":", "-n", "1", *client]

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        yield Session(FAR_PREFIX, self.command)


def mpi_launcher() -> Optional[list[str]]:
    """A launcher for two ranks on this machine; the one that spins less where there are few cores comes first."""
    for name, flags in (("mpirun.mpich", []), ("mpirun.openmpi", ["--oversubscribe", "--allow-run-as-root"])):
        if shutil.which(name):
            return [name, *flags]
    return None


def library_of(binary: str) -> str:
    """The preload library that belongs to a `sluice` binary."""
    return os.path.join(os.path.dirname(binary), "libsluice.so")


def check_binary(binary: str) -> None:
    """Fails where Sluice has not been built."""
    for file in (binary, library_of(binary)):
        if not os.path.exists(file):
            raise Failed(f"{os.path.basename(file)} is not built: cargo build --release")
