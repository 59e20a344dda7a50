"""What a program waits for: its writes and syncs, through a log and to the same disk directly."""

import os
from typing import Optional

from lib import build
from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.workspace import forget

from .places import Log, Places

LARGE_MAX = 1.1
"""Times the local disk, for pieces of a mebibyte and more."""
SMALL_MAX = 0.5
"""Times the local disk, for pages with a sync after each, by several processes."""

PAGE, MIB = 4096, 1 << 20
PROCESSES = max(2, min(8, os.cpu_count() or 2))


class Pair:
    """The same program on the local disk and through a log. Files are new each time, and so is the log unless there is
    one that was used before."""

    def __init__(self, bench: Bench, places: Places, argv, used: Optional[Log]):
        self.bench, self.places, self.argv, self.used = bench, places, argv, used

    def local(self) -> float:
        path = self.places.disk("local")
        forget(path)
        return float(run(self.argv(path)).json()["seconds"])

    def logged(self) -> float:
        """The seconds of the program. Draining is not part of it, but goes on while it writes."""
        log = self.used or self.places.log()
        forget(self.bench.space.far("written"))
        took = float(log.run(self.argv(self.bench.space.far("written"))).json()["seconds"])
        log.do("drain")
        if log is not self.used:
            log.remove()
        return took

    def check(self, size: int) -> None:
        """Every byte of what the target got."""
        run([self.bench.tools["transfer"], "check", self.bench.space.far("written"), str(size), str(MIB)])

    def end(self) -> None:
        forget(self.bench.space.far("written"))
        forget(self.places.disk("local"))


def launchers() -> dict[str, list[str]]:
    return {"mpich": ["mpirun.mpich", "-n", str(PROCESSES)],
            "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", str(PROCESSES)]}


def cases(bench: Bench, places: Places):
    """(name, the program's words by file, size, goal, whether the log is new each time)."""
    into = os.path.dirname(places.writer)
    size = bench.pick(96, 768) * MIB
    large = lambda path: [places.writer, "pieces", path, str(size), str(MIB), str(size // 3)]
    yield "posix.large", large, size, LARGE_MAX, False
    yield "posix.large.first", large, size, LARGE_MAX, True
    count = bench.pick(100, 1000)
    yield ("posix.small", lambda path: [places.writer, "strided", path, str(4), str(count)], 4 * count * PAGE, SMALL_MAX,
           False)
    for mpi, launcher in launchers().items():
        try:
            ranks = build.with_mpi(into, mpi, "logranks")
        except Failed as why:
            bench.board.skip(f"wait.{mpi}", str(why))
            continue
        each = size // PROCESSES // MIB
        yield (f"{mpi}.large", lambda path: [*launcher, ranks, path, str(MIB), str(each), str(each // 3)],
               each * PROCESSES * MIB, LARGE_MAX, False)
        yield (f"{mpi}.small", lambda path: [*launcher, ranks, path, str(PAGE), str(count), "1"],
               count * PROCESSES * PAGE, SMALL_MAX, False)


def measure(bench: Bench, places: Places) -> None:
    figure = Figure(
        "What a program waits for",
        f"Seconds in open, write, sync and close. large: pieces of 1 MiB and three syncs; small: pages of a file that "
        f"processes or {PROCESSES} ranks take turns in, with a sync after each; first: a log that was never used.",
        "s", "lower", [])
    used = places.log()
    warm = True
    for name, argv, size, goal, fresh in cases(bench, places):
        if bench.rushed(3, f"wait.{name}"):
            continue
        bench.say(f"{name}: written to the local disk and through a log")
        pair = Pair(bench, places, argv, None if fresh else used)
        try:
            # The first round makes the log's segments; then it is one that was used before.
            figures, _ = bench.alternate({"local": Lane(pair.local), "log": Lane(pair.logged)}, quick=5, full=7,
                                         budget=2.5, at_least=1, warm=1 if warm else 0)
            warm = False
            pair.check(size)
        except Failed as why:
            bench.board.fault(f"wait.{name}", str(why))
            continue
        finally:
            pair.end()
        bench.board.add_ratio(f"wait.{name}.vs_local", figures["log"], figures["local"], "lower", goal)
        for lane in ("local", "log"):
            bench.board.add(f"wait.{name}.{lane}", figures[lane], "s", "lower")
        figure.groups.append(name)
        figure.put("local disk", name, figures["local"])
        figure.put("Sluice log", name, figures["log"])
    used.remove()
    bench.figures["log-waits"] = figure


def measure_pieces(bench: Bench, places: Places) -> None:
    """The paper's Figure 12: files of one piece, and pieces of one file, contiguous and not, on disk and on tmpfs."""
    if bench.quick:
        return
    sizes = [1 << shift for shift in range(10, 25, 2)]
    shown = [f"{size >> 10} KiB" if size < MIB else f"{size >> 20} MiB" for size in sizes]
    figure = Figure(
        "Figure 12. Local writes by size of the piece",
        "Bandwidth of files of one piece (open, write, sync, close), and of pieces of one file, one behind the "
        "other and with holes, sync and close included; 100 of them, at most 256 MiB. Programs on the disk or tmpfs itself, and through a log there.",
        "MB/s", "higher", [], log_scale=True)
    # 100 pieces, but of large ones no more than 256 MiB.
    count = lambda size: min(100, (256 << 20) // size)
    ways = {"files": lambda path, size: ["files", path, str(count(size)), str(size)],
            "contiguous": lambda path, size: ["extend", path + "/file", str(count(size)), str(size), str(size)],
            "with holes": lambda path, size: ["extend", path + "/file", str(count(size)), str(size), str(2 * size)]}
    for medium, root in (("disk", places.root), ("tmpfs", bench.space.near())):
        for way, words in ways.items():
            groups = [f"{medium} {way} {text}" for text in shown]
            figure.panels.append((f"{way}, {medium}", groups, shown))
            for size, group in zip(sizes, groups):
                one(bench, places, figure, root, group, lambda path: [places.writer, *words(path, size)],
                    size * count(size))
    bench.figures["log12"] = figure


def one(bench: Bench, places: Places, figure: Figure, root: str, group: str, argv, size: int) -> None:
    near, far = os.path.join(root, "local-files"), bench.space.far("files")
    os.makedirs(near, exist_ok=True)
    os.makedirs(far, exist_ok=True)
    log = places.log(on=root)

    def empty(folder: str) -> None:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))

    def local() -> float:
        empty(near)
        return float(run(argv(near)).json()["seconds"])

    def logged() -> float:
        empty(far)
        took = float(log.run(argv(far)).json()["seconds"])
        log.do("drain")
        return took

    try:
        figures, _ = bench.alternate({"local": Lane(local), "log": Lane(logged)}, quick=1, full=3)
        for lane, label in (("local", "local disk"), ("log", "Sluice log")):
            figure.put(label, group, [size / s / 1e6 for s in figures[lane]])
    except Failed as why:
        bench.board.fault(f"pieces.{group.replace(' ', '_')}", str(why))
    finally:
        log.remove()
        empty(near)
        empty(far)
