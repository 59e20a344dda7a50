"""What redirection adds to what is not redirected: single calls, and whole programs on local files."""

import os
import statistics
import sys

from lib.context import Bench
from lib.measure import Failed, Lane
from lib.process import Answering, run
from lib.ways import Way
from lib.workspace import forget

ADDED_NS_MAX = 10.0
"""For each call: open and close are two. What both add together is told beside it."""
PROGRAM_RATIO_MAX = 1.02

TREE_FILES = 16_000
"""Files of the tree that tar packs: as many as a source tree of some size has. tar is busy with them for some tenths of a
second; with few files its ratio would be that of its start, which `program.start.added` tells by itself."""

# Calls per turn, so that a turn takes about 0.4 ms: most are over before another program gets the processor.
CALLS = {"read": 2800, "open": 1100, "stat": 1100, "fread": 60000}
TURNS = 100
"""Turns of one pair of processes. The median of their differences is one sample: where the memory of a process happens to
lie makes a nanosecond or two, so that several pairs are needed."""


def difference(plain: Answering, ours: Answering) -> tuple[float, float]:
    """Nanoseconds per call of the first process, and how many more the second one needs, by taking turns."""
    costs, differences = [], []
    for turn in range(TURNS):
        # Who follows whom must not matter.
        answers = {}
        for process in (plain, ours) if turn % 2 else (ours, plain):
            answers[process] = float(process.ask())
        costs.append(answers[plain])
        differences.append(answers[ours] - answers[plain])
    return statistics.median(costs), statistics.median(differences)


def added(bench: Bench, way: Way) -> None:
    """Nanoseconds added per call, by pairs of processes on the same core."""
    file = bench.space.near("calls.dat")
    with open(file, "wb") as data:
        data.write(b"\0" * (1 << 20))
    cpu = max(os.sched_getaffinity(0))
    for kind, calls in CALLS.items():
        argv = [bench.tools["calls"], kind, str(calls), file]
        differences: list[float] = []

        def pair(command: list[str]) -> float:
            with Answering(argv, cpu=cpu) as plain, Answering(command + argv, cpu=cpu) as ours:
                cost, more = difference(plain, ours)
            differences.append(more)
            return cost

        try:
            with way.session() as session:
                lanes = {"plain": Lane(lambda: pair(session.command))}
                figures, _ = bench.alternate(lanes, quick=9, full=25, budget=0.9, at_least=5, warm=0)
        except Failed as why:
            bench.board.fault(f"call.{kind}.{way.name}", str(why))
            continue
        bench.board.add(f"call.{kind}.plain", figures["plain"], "ns", "lower")
        bench.board.add(f"call.{kind}.added", differences, "ns", "lower", ADDED_NS_MAX)
        if kind == "open":
            bench.board.add("call.open.added.pair", [2 * more for more in differences], "ns", "lower")


def whole_program(bench: Bench, way: Way, name: str, argv: list[str], *, quick: int, full: int,
                  budget: float) -> None:
    """A program on local files with and without `sluice run`: by the clock with the goal, by CPU time to tell."""
    cpu: dict[str, list[float]] = {"plain": [], way.name: []}

    def once(lane: str, command: list[str]) -> float:
        ran = run(command + argv)
        cpu[lane].append(ran.cpu_seconds)
        return ran.seconds

    with way.session() as session:
        lanes = {"plain": Lane(lambda: once("plain", [])), way.name: Lane(lambda: once(way.name, session.command))}
        figures, fallen = bench.alternate(lanes, quick=quick, full=full, budget=budget)
    bench.fell(f"program.{name}", fallen)
    if fallen:
        return
    bench.board.add(f"program.{name}.plain", figures["plain"], "s", "lower")
    bench.board.add_ratio(f"program.{name}.ratio", figures[way.name], figures["plain"], "lower", PROGRAM_RATIO_MAX)
    bench.board.add_ratio(f"program.{name}.cpu_ratio", cpu[way.name], cpu["plain"], "lower")


def start(bench: Bench, way: Way) -> None:
    """Milliseconds that `sluice run` adds to the start of a program, which the ratios above contain."""
    with way.session() as session:
        lanes = {"plain": Lane(lambda: run(["true"]).seconds),
                 way.name: Lane(lambda: run([*session.command, "true"]).seconds)}
        figures, fallen = bench.alternate(lanes, quick=10, full=40, budget=0.5)
    bench.fell("program.start", fallen)
    bench.board.add("program.start.added", [(b - a) * 1e3 for a, b in zip(figures["plain"], figures[way.name])], "ms",
                    "lower")


def programs(bench: Bench, way: Way) -> None:
    """Whole programs that only touch local files, with and without `sluice run`."""
    near = bench.space.near
    os.makedirs(near("tree"))
    run([bench.tools["smallfiles"], "make", near("tree"), str(TREE_FILES)])
    with open(near("lines.txt"), "w") as lines:
        lines.writelines(f"{line * 2654435761 % 2**32:08x} a line to sort\n" for line in range(600_000))
    cases = {
        "sort": ["sort", "--parallel=1", "-o", near("sorted.txt"), near("lines.txt")],
        "tar": ["tar", "-cf", near("tree.tar"), "-C", near("tree"), "."],
        "python": [sys.executable, "-c",
                   f"import os,hashlib\nd={near('tree')!r}\nh=hashlib.sha256()\n"
                   "for _ in range(3):\n for n in sorted(os.listdir(d)):\n"
                   "  with open(os.path.join(d,n),'rb') as f: h.update(f.read())\nprint(h.hexdigest())"],
    }
    for name, argv in cases.items():
        if name != "tar" and bench.quick:
            continue
        whole_program(bench, way, name, argv, quick=7, full=15, budget=3.0)
    for leftover in ("lines.txt", "sorted.txt", "tree.tar"):
        forget(near(leftover))


def measure(bench: Bench) -> None:
    way = bench.ours.get("uds") or bench.ours.get("tcp")
    if not way:
        bench.board.skip("call", "needs Sluice")
        return
    bench.say("calls that are not redirected")
    added(bench, way)
    bench.say("whole programs on local files")
    start(bench, way)
    programs(bench, way)
