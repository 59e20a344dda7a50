"""Views written: one replica beside a plain file, three replicas beside three files written by hand."""

import ctypes
import time

import numpy as np

from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.workspace import forget

from . import definitions
from .native import Tools, address
from .reading import MATERIALISED_MIN, PLAIN, Served, sizes

THREE_MAX = 1.1
"""Times what three files take that are written one after the other by hand."""

PIECE = 1 << 20
FILES = ("hand.aos", "hand.soa", "hand.b")


def three(n: int, prefix: str) -> str:
    """A replica for each view, all of them up to date when a write returns."""
    return definitions.points(n) + "".join(
        definitions.replica(f"{prefix}.{view}", view, flags="sync") for view in ("aos", "soa", "b"))


def through_service(bench: Bench, tools: Tools, n: int) -> None:
    served = Served(bench, tools, "writing", {
        "one": definitions.points(n) + definitions.replica("one.raw", "aos"), "three": three(n, "three")})
    size = 12 * n
    lanes = {
        "plain": Lane(lambda: served.timed("write", served.plain(), size)),
        "one": Lane(lambda: served.timed("write", served.view("one", "aos"), size)),
        "hand": Lane(lambda: served.timed("hand", n, *(served.plain(name) for name in FILES))),
        "three": Lane(lambda: served.timed("write", served.view("three", "aos"), size)),
    }
    figures, _ = bench.alternate(lanes, quick=7, full=9, budget=2.5, at_least=2)
    for dataset, views in (("one", ("aos",)), ("three", ("aos", "soa", "b"))):
        for view in views:
            served.timed("check", served.view(dataset, view), view, n)
    served.end()
    for view in ("aos", "soa", "b"):
        run([tools.views, "check", bench.space.far(f"three.{view}"), view, str(n)])
    bench.board.add_ratio("write.one.vs_plain", figures["plain"], figures["one"], "higher", MATERIALISED_MIN)
    bench.board.add_ratio("write.three.vs_hand", figures["three"], figures["hand"], "lower", THREE_MAX)
    figure = Figure(
        "Figure 6. Bandwidth of writing structures",
        f"{12 * n >> 20} MiB of structures, 1 MiB at a time, through a service on a Unix socket: to one replica and to a "
        "plain file, to three replicas that are equal when a write returns and to three plain files one after the other.",
        "MB/s", "higher", ["one replica", "three replicas"])
    for group, ours, hand in (("one replica", "one", "plain"), ("three replicas", "three", "hand")):
        figure.put("Sluice uds", group, [size / s / 1e6 for s in figures[ours]])
        figure.put("plain files", group, [size / s / 1e6 for s in figures[hand]])
    bench.figures["6"] = figure
    for name in ("plain", "one", "three"):
        bench.board.add(f"write.{name}.bandwidth", [size / s / 1e6 for s in figures[name]], "MB/s", "higher")
    for name in (PLAIN, "one.raw", *FILES, "three.aos", "three.soa", "three.b"):
        forget(bench.space.far(name))


def within_process(bench: Bench, tools: Tools, n: int) -> None:
    """The same without a service: the engine beside a program that writes its three files itself."""
    path = bench.space.far("local.drepl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(three(n, "local"))
    dataset = tools.engine.engine_open(path.encode())
    if not dataset:
        raise Failed("the dataset of writes cannot be opened; its message is above")
    view = tools.engine.engine_view(dataset, b"aos")
    # The same piece again and again, as by hand: what is measured is where it goes.
    piece = np.arange(PIECE // 4, dtype=np.uint32)
    size = 12 * n // PIECE * PIECE

    def engine() -> float:
        began = time.perf_counter()
        written = tools.engine.engine_write(dataset, view, address(piece), ctypes.c_size_t(size), ctypes.c_size_t(PIECE))
        took = time.perf_counter() - began
        if written != size:
            raise Failed("a write failed; its message is above")
        return took

    def hand() -> float:
        ran = run([tools.views, "hand", str(size // 12 // 16 * 16), *(bench.space.far(name) for name in FILES)])
        return float(ran.json()["seconds"])

    try:
        figures, _ = bench.alternate({"hand": Lane(hand), "engine": Lane(engine)}, quick=7, full=9, budget=1.5, at_least=2)
    finally:
        tools.engine.engine_close(dataset)
    bench.board.add_ratio("write.three.local.vs_hand", figures["engine"], figures["hand"], "lower", THREE_MAX)
    for name in (*FILES, "local.aos", "local.soa", "local.b"):
        forget(bench.space.far(name))


def measure(bench: Bench, tools: Tools) -> None:
    if bench.rushed(4, "write"):
        return
    n, _ = sizes(bench)
    bench.say(f"views of {12 * n >> 20} MiB written")
    through_service(bench, tools, n)
    if not bench.rushed(3, "write.three.local"):
        within_process(bench, tools, n)
