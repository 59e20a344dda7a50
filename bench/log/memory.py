"""A log of very many small records: what the agent and the program need for it, and a recovery of it."""

import os
import signal
import subprocess
import tempfile
import time

from lib.context import Bench
from lib.measure import Failed
from lib.process import run

from .places import Places
from .drained import HOLD

BASE_BYTES, EXTENT_BYTES = 32 << 20, 48
"""What an agent may have, and for each extent in its log."""
RECORD, STRIDE = 16, 64


def peak(argv: list[str]) -> tuple[int, float]:
    """Runs a program; returns the most memory that it had, in bytes, and its seconds.

    What this process had when it started the program is less, or the figure would be too high.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if child.returncode:
            said = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise Failed(f"{os.path.basename(argv[0])} ended with status {child.returncode}: {said}")
        return usage.ru_maxrss * 1024, seconds


def high_water(pid: int) -> int:
    """The most memory that a process has had so far."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise Failed(f"/proc/{pid}/status has no VmHWM")


def measure(bench: Bench, places: Places) -> None:
    if bench.rushed(10, "memory"):
        return
    count = bench.pick(250_000, 1_000_000)
    bench.say(f"a log of {count} small records")
    words = ["extend", "FILE", str(count), str(RECORD), str(STRIDE)]
    program = lambda path: [places.writer, *(path if word == "FILE" else word for word in words)]
    alone = run(program(places.disk("records"))).json()["peak_kib"] << 10
    target = bench.space.far("records")
    log = places.log()
    told = log.run(program(target), HOLD).json()
    with_log = told["peak_kib"] << 10
    most = BASE_BYTES + EXTENT_BYTES * count
    pid = log.agent()
    if pid is None:
        raise Failed("the agent has ended by itself")
    mib = 1 / (1 << 20)
    bench.board.add("memory.extents", [count], "extents", "higher")
    bench.board.add("memory.agent", [high_water(pid) * mib], "MiB", "lower", round(most * mib, 1))
    bench.board.add("memory.program.added", [(with_log - alone) * mib], "MiB", "lower", BASE_BYTES * mib)
    bench.board.add("records.write", [told["seconds"] / count * 1e6], "µs/record", "lower")
    log.end(signal.SIGKILL)
    most_seen, seconds = peak([bench.binary, "log", "recover", log.folder])
    bench.board.add("memory.recovery", [most_seen * mib], "MiB", "lower", round(most * mib, 1))
    bench.board.add("records.recovery", [seconds / count * 1e6], "µs/record", "lower")
    if not same(places.disk("records"), target):
        raise Failed("what was recovered is not what was written")
    log.remove()


def same(one: str, other: str) -> bool:
    """Whether two files are equal, holes included."""
    return subprocess.run(["cmp", "-s", one, other]).returncode == 0
