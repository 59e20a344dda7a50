"""Ways on which a program's files get to a directory, which is then looked at without Sluice.

  native  another local directory: are the cases themselves sane?
  far     a service, by `sluice run --map`
  careful the same, with nothing read ahead or written behind: every rank sees at once what others wrote
  log     the host's log over a directory, by `sluice run --log`; drained and verified at the end
  nodes   as log, but the ranks are on two nodes, which are played by two logs: even ranks have the one and odd ones the other
"""

import dataclasses
import pathlib
import shutil
import subprocess

from house import tree
from house.services import Service
from mpi.libraries import Failed, Missing

DRAIN_SECONDS_MAX = 120


@dataclasses.dataclass
class Way:
    """What a program is given: `around` stands before the launcher, `within` before the program on each rank, and
    `directory` is what the program takes for the place of its files."""

    directory: str
    around: list = dataclasses.field(default_factory=list)
    within: list = dataclasses.field(default_factory=list)


class Carrier:
    """One way. `start` for each run, `finish` when its program has ended well, then `compare`."""

    name = "native"

    def __init__(self, sluice, scratch):
        self.sluice, self.scratch = sluice, scratch / self.name
        self.scratch.mkdir(parents=True)
        self.target = None

    def missing(self):
        """Why it cannot be used, or None."""
        return None

    def start(self, name, library=None):
        """A fresh, empty place. `library` is preloaded into programs of which `sluice run` cannot see that they
        use MPI."""
        self.target = self.scratch / name
        self.target.mkdir(parents=True)
        return Way(str(self.target))

    def finish(self):
        """Everything that the program has written gets to the target."""

    def compare(self, reference: pathlib.Path):
        """How the target differs from a directory that was written without Sluice: lines, none if they are equal."""
        return tree.differences(tree.snapshot(reference), tree.snapshot(self.target))

    def close(self):
        """Ends what was started for all runs."""


class Far(Carrier):
    """A service on this machine. Every rank reaches it by itself."""

    name = "far"
    flags = ()

    def __init__(self, sluice, scratch):
        super().__init__(sluice, scratch)
        self.service = None

    def missing(self):
        return None if self.sluice else "no sluice binary; build it with `./dev test` or `cargo build --release`"

    def start(self, name, library=None):
        super().start(name)
        if self.service is None:
            self.service = Service(self.sluice, [f"x={self.scratch}"], f"unix:{self.scratch.parent}/{self.name}.sock",
                                   log=self.scratch.parent / f"{self.name}.log")
        preload = ["env", f"LD_PRELOAD={library}"] if library else []
        run = [str(self.sluice), "run", *self.flags, "--map", f"/far={self.service.uri}/x/{name}", "--"]
        return Way("/far", within=[*preload, *run])

    def close(self):
        if self.service:
            self.service.stop()


class Careful(Far):
    """What a program sees that shares its files with others as on one local file system."""

    name = "careful"
    flags = ("--read-ahead-bytes", "0", "--write-behind-bytes", "0")


class Log(Carrier):
    """A log for each run, over the target's directory, whose own path the program uses."""

    name = "log"

    def __init__(self, sluice, scratch):
        super().__init__(sluice, scratch)
        self.log = None

    def missing(self):
        if not self.sluice:
            return Far.missing(self)
        asked = subprocess.run([self.sluice, "log", "--help"], capture_output=True, timeout=30)
        return None if asked.returncode == 0 else "this sluice has no host log"

    def start(self, name, library=None):
        super().start(name)
        self.log = self.scratch / f"{name}.log"
        preload = ["env", f"LD_PRELOAD={library}"] if library else []
        return Way(str(self.target), within=preload,
                   around=[str(self.sluice), "run", "--log", str(self.log), "--to", str(self.target), "--"])

    def finish(self):
        for command in ("verify", "drain", "verify"):
            self.command(command)

    def command(self, *words):
        """`sluice log WORDS DIR`."""
        done = subprocess.run([self.sluice, "log", *words, self.log], capture_output=True, text=True,
                              timeout=DRAIN_SECONDS_MAX)
        if done.returncode != 0:
            raise Failed(f"sluice log {' '.join(words)}: status {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
        return done.stdout


class Nodes(Log):
    """Two nodes, each with a log of its own. They see each other's through TCP only."""

    name = "nodes"

    def start(self, name, library=None):
        Carrier.start(self, name)
        self.logs = [self.scratch / f"{name}.log{node}" for node in range(2)]
        return Way(str(self.target), within=through_nodes(self.sluice, self.logs, self.scratch / f"{name}.meeting", self.target,
                                                          library))

    def finish(self):
        # All of them have their part in the drain of the one that keeps the order.
        for command in ("verify", "drain", "verify"):
            for self.log in self.logs:
                if (self.log / "log.toml").exists():
                    self.command(command)
        # Segments are as large as they will be: those of a hundred cases would fill a disk.
        for log in self.logs:
            shutil.rmtree(log, ignore_errors=True)


def through_nodes(sluice, logs, meeting, target, library=None, flags=()):
    """The words that lead a rank through the log of its node, and writes of any size but the smallest into it."""
    preload = f"LD_PRELOAD={library} " if library else ""
    first = f"{logs[0]}".removesuffix("0")
    return ["sh", "-c", f'rank=${{PMI_RANK:-${{OMPI_COMM_WORLD_RANK:-0}}}}; {preload} exec "$0" run {" ".join(flags)} '
            f'--log {first}$((rank % {len(logs)})) --log-meet {meeting} --log-listen 127.0.0.1 --log-own 600 --to {target} -- "$@"',
            str(sluice)]


CARRIERS = {carrier.name: carrier for carrier in (Carrier, Far, Careful, Log, Nodes)}


def made(name, sluice, scratch):
    """The carrier of that name.

    # Errors

    `Missing` if it cannot be used here.
    """
    carrier = CARRIERS[name](sluice, scratch)
    if reason := carrier.missing():
        raise Missing(reason)
    return carrier
