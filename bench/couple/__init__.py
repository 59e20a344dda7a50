"""The area `couple`: two MPI programs that hand each other a file by PnetCDF, coupled, beside the file and beside MPI alone."""

import json
import os
import shutil
import subprocess
import tempfile

from lib.build import SOURCES, is_current
from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import PROGRAM_SECONDS_MAX, end_group, run
from lib.ways import check_binary

QUICK_SECONDS = 55.0
"""What a quick run plans with."""

NEED_BYTES = {"quick": 2 << 30, "full": 2 << 30}
"""Room for the files of all cycles, with some to spare."""

CYCLES = 5
COLUMNS = 4096
FASTER_MIN, SLOWER_MAX = 3.0, 1.5
"""How much faster than by the file, and how much slower than the same bytes by MPI alone (in times)."""

LAUNCHER = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]

CONFIGURATION = """[[component]]
name = "writer"
command = {writer}

[[component]]
name = "reader"
command = {reader}

[[file]]
name = "field.%.nc"
mode = "transfer"
writers = ["writer"]
readers = ["reader"]
lent = {lent}
"""


def program(bench: Bench) -> str:
    """Compiles the program for Open MPI, which Debian's PnetCDF is made for; returns its path."""
    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(bench.binary or "")), "libsluice_nc.so")):
        raise Failed("libsluice_nc.so is not built: cargo build --release -p preload-nc")
    source = os.path.join(SOURCES, "handover.c")
    target = os.path.join(os.path.dirname(bench.tools["transfer"]), "handover")
    if is_current(target, source):
        return target
    argv = ["mpicc.openmpi", "-O2", "-Wall", "-Wextra", "-o", target, source, "-lpnetcdf"]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    except FileNotFoundError:
        raise Failed("mpicc.openmpi is not installed (package libopenmpi-dev)") from None
    if done.returncode:
        raise Failed(f"mpicc.openmpi cannot compile handover.c (package libpnetcdf-dev): {done.stdout.strip()}")
    return target


class Pair:
    """Two jobs of so many ranks each, and the FIFOs by which they agree when a cycle begins."""

    def __init__(self, bench: Bench, handover: str, ranks: int, rows: int):
        self.bench, self.handover, self.ranks, self.rows = bench, handover, ranks, rows

    def commands(self, prefix: str, when: str) -> list[list[str]]:
        """The writer's and the reader's. FIFOs are new each time: what an earlier run left in them is not for this one."""
        fifos = [self.bench.space.run(f"{way}.fifo") for way in ("there", "back")]
        for fifo in fifos:
            if os.path.exists(fifo):
                os.unlink(fifo)
            os.mkfifo(fifo)
        there, back = fifos
        start = [*LAUNCHER, "-n", str(self.ranks), self.handover]
        common = [prefix, str(CYCLES), str(self.rows)]
        return [[*start, "write", *common, there, back], [*start, "read", *common, back, there, when]]

    def by_file(self, directory: str) -> float:
        """Seconds of a cycle in which the file is written, and read when it is closed."""
        children = [subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     start_new_session=True)
                    for argv in self.commands(os.path.join(directory, "field"), "later")]
        try:
            told = [child.communicate(timeout=PROGRAM_SECONDS_MAX) for child in children]
        except subprocess.TimeoutExpired:
            raise Failed(f"two programs by the file had not ended after {PROGRAM_SECONDS_MAX:.0f} s") from None
        finally:
            for child in children:
                end_group(child)
        if any(child.returncode for child in children):
            raise Failed("two programs by the file: " + " / ".join(err.strip().splitlines()[-1] for _, err in told if err.strip()))
        return json.loads(told[0][0])["seconds"] / CYCLES

    def coupled(self, lent: bool) -> float:
        """The same when the programs are coupled: no file is made. `lent`: the writer's memory is not copied before it closes."""
        directory = self.bench.space.near("coupled")
        os.makedirs(directory, exist_ok=True)
        writer, reader = self.commands(os.path.join(directory, "field"), "now")
        configuration = self.bench.space.run("couple.toml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(writer=json.dumps(writer), reader=json.dumps(reader), lent=json.dumps(lent)))
        ran = run([self.bench.binary, "couple", "run", configuration, "--quiet"])
        if left := os.listdir(directory):
            raise Failed(f"coupled programs made files: {', '.join(left)}")
        numbers = [line for line in ran.stdout.splitlines() if '"seconds"' in line]
        if not numbers:
            raise Failed(f"the writer of a coupled pair told no time: {ran.stdout.strip()[-200:]!r}")
        return json.loads(numbers[0][numbers[0].index("{"):])["seconds"] / CYCLES

    def by_mpi(self) -> float:
        """The same bytes between the same ranks, out of the one's memory into the other's."""
        argv = [*LAUNCHER, "-n", str(2 * self.ranks), self.handover, "pass", str(CYCLES), str(self.rows)]
        return run(argv).json()["seconds"] / CYCLES


def handed_over(bench: Bench, handover: str) -> None:
    """Five times 256 MB, by one and by two ranks on either side: rows are written, columns are read."""
    size = 256_000_000 // (8 * COLUMNS) * 8 * COLUMNS
    disk = tempfile.mkdtemp(prefix="sluice-bench-couple-", dir="/var/tmp")
    figure = Figure("Figure 1. Handing over a file", f"{CYCLES} × {size / 1e6:.0f} MB from one program to another, each with so many ranks: "
                    "bandwidth from the begin of writing to the end of reading.", "MB/s", "higher", ["1 + 1", "2 + 2"])
    try:
        for ranks in (1, 2):
            if bench.rushed(12, f"couple.{ranks}"):
                continue
            bench.say(f"{CYCLES} × {size / 1e6:.0f} MB between {ranks} + {ranks} ranks")
            pair = Pair(bench, handover, ranks, size // (8 * COLUMNS))
            lanes = {"coupled": Lane(lambda: pair.coupled(False)), "lent": Lane(lambda: pair.coupled(True)),
                     "tmpfs": Lane(lambda: pair.by_file(bench.space.far())),
                     "disk": Lane(lambda: pair.by_file(disk)), "mpi": Lane(pair.by_mpi)}
            figures, fallen = bench.alternate(lanes, quick=3, full=9, budget=16.0, at_least=2)
            name = f"couple.{ranks}+{ranks}"
            for way in ("coupled", "lent"):
                if way in fallen:
                    bench.board.fault(f"{name}.{way}", fallen.pop(way))
                for place in ("tmpfs", "disk"):
                    bench.board.add_ratio(f"{name}.{place}.vs_{way}", figures[place], figures[way], "higher", FASTER_MIN)
                bench.board.add_ratio(f"{name}.{way}.vs_mpi", figures[way], figures["mpi"], "lower", SLOWER_MAX)
            bench.fell(name, fallen)
            labels = {"coupled": "Sluice", "lent": "Sluice, lent", "tmpfs": "file on tmpfs", "disk": "file on disk", "mpi": "MPI alone"}
            for lane, label in labels.items():
                figure.put(label, f"{ranks} + {ranks}", [size / s / 1e6 for s in figures[lane]])
    finally:
        shutil.rmtree(disk, ignore_errors=True)
    bench.figures["1"] = figure


SECTIONS = {"handed_over": (handed_over, 50)}
"""What measures each section, and by which second of a quick run it should have ended."""


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
        handover = program(bench)
    except Failed as why:
        bench.board.fault("couple", str(why))
        return
    bench.go_through("couple", SECTIONS, only, handover)
