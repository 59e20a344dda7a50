"""The paper's combined experiment, its Figure 7: a simulation writes structures, and what draws pictures
reads one number of each. With one replica that number is taken from the structures; with two there is
a file of it."""

from lib.context import Bench, Figure
from lib.measure import Lane
from lib.process import run
from lib.workspace import forget

from . import definitions
from .native import Tools
from .reading import Served, sizes

FILES = ("both.aos", "both.b")


def measure(bench: Bench, tools: Tools) -> None:
    if bench.rushed(3, "combined"):
        return
    n, _ = sizes(bench)
    bench.say(f"{12 * n >> 20} MiB of structures written, and one number of each read")
    replica = definitions.replica
    served = Served(bench, tools, "combined", {
        "alone": definitions.points(n) + replica("one.aos", "aos", flags="sync"),
        "pair": definitions.points(n) + replica("two.aos", "aos", flags="sync") + replica("two.b", "b", flags="sync"),
    })

    def views(dataset: str) -> float:
        return served.timed("write", served.view(dataset, "aos"), 12 * n) \
            + served.timed("read", served.view(dataset, "b"), 4 * n)

    def hand_one() -> float:
        return served.timed("write", served.plain(FILES[0]), 12 * n) + served.timed("pick", served.plain(FILES[0]), n)

    def hand_two() -> float:
        return served.timed("hand2", n, *map(served.plain, FILES)) + served.timed("read", served.plain(FILES[1]), 4 * n)

    lanes = {"hand_one": Lane(hand_one), "one": Lane(lambda: views("alone")),
             "hand_two": Lane(hand_two), "two": Lane(lambda: views("pair"))}
    figures, _ = bench.alternate(lanes, quick=3, full=7, budget=1.5, at_least=1)
    for dataset in ("alone", "pair"):
        served.timed("check", served.view(dataset, "b"), "b", n)
    served.end()
    for name in ("one.aos", "two.aos", "two.b", *FILES):
        forget(bench.space.far(name))
    figure = Figure(
        "Figure 7. Cumulative bandwidth with one and with two replicas",
        f"{12 * n >> 20} MiB of structures {{a, b, c}} are written through the view aos, then all b are read, through a "
        "service on a Unix socket. By hand: plain files of the same service; the program keeps the second file itself, or "
        "takes b out of the structures (the paper: a Go service on SSDs).",
        "MB/s", "higher", ["one replica", "two replicas"])
    for label, kind in (("Sluice uds", ""), ("plain files", "hand_")):
        for group, number in (("one replica", "one"), ("two replicas", "two")):
            bandwidths = [16 * n / s / 1e6 for s in figures[kind + number]]
            figure.put(label, group, bandwidths)
            bench.board.add(f"combined.{kind}{number}.bandwidth", bandwidths, "MB/s", "higher")
    bench.figures["7"] = figure
