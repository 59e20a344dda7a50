"""What must not grow with the arrays: small reads at random places, and the memory of a map. And how
long a large definition takes."""

import ctypes
import os
import time

from lib.context import Bench
from lib.measure import Failed, Lane

from . import definitions
from .native import Map, Tools

LARGE_POINTS = 168_000_000
SMALL_POINTS = 16_800
GROWTH_MAX = 1.25
"""A cost that does not depend on sizes, and what the clock adds to it."""
COMPILE_MS_MAX = 100.0
VARIABLES = 10_000


def maps(bench: Bench, tools: Tools) -> None:
    """The map of 2 GB beside the map of 200 KB: its memory, and what it costs to cut four bytes out."""
    both = {}
    for name, n in (("small", SMALL_POINTS), ("large", LARGE_POINTS)):
        both[name] = Map(tools.engine, definitions.points(n), "soa", "aos")
    count = bench.pick(100_000, 1_000_000)
    lanes = {name: Lane(lambda mapped=mapped: mapped.clip_random(count)) for name, mapped in both.items()}
    figures, _ = bench.alternate(lanes, quick=9, full=15, budget=2.0, at_least=3)
    bench.board.add_ratio("random.map.growth", figures["large"], figures["small"], "lower", GROWTH_MAX)
    bench.board.add("random.map.time", [s * 1e9 for s in figures["large"]], "ns", "lower")
    bench.board.add("map.memory.growth", [both["large"].in_use() / both["small"].in_use()], "ratio", "lower", 1.0)
    bench.board.add("map.memory", [both["large"].in_use()], "bytes", "lower")
    for mapped in both.values():
        mapped.free()


def reads(bench: Bench, tools: Tools) -> None:
    """The same from files."""
    datasets, views = {}, {}
    for name, n in (("small", SMALL_POINTS), ("large", LARGE_POINTS)):
        path = bench.space.far(f"random-{name}.drepl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(definitions.points(n) + definitions.replica(f"random-{name}.raw", "aos"))
        datasets[name] = tools.engine.engine_open(path.encode())
        if not datasets[name]:
            raise Failed("the dataset of random reads cannot be opened; its message is above")
        views[name] = tools.engine.engine_view(datasets[name], b"soa")
        # In the page cache, as the other data of the bench.
        with open(bench.space.far(f"random-{name}.raw"), "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, 12 * n)
    count = bench.pick(100_000, 1_000_000)

    def once(name: str) -> float:
        total = ctypes.c_uint64()
        seconds = tools.engine.engine_read_random(datasets[name], views[name], count, ctypes.byref(total))
        if seconds < 0 or total.value:
            raise Failed("a random read failed or gave something else than zeros")
        return seconds

    try:
        lanes = {name: Lane(lambda name=name: once(name)) for name in datasets}
        figures, _ = bench.alternate(lanes, quick=9, full=15, budget=2.0, at_least=3)
    finally:
        for dataset in datasets.values():
            tools.engine.engine_close(dataset)
        for name in datasets:
            os.unlink(bench.space.far(f"random-{name}.raw"))
    # What is left beside the map is the system's: pages of 2 GB are in no cache of the processor.
    bench.board.add_ratio("random.read.growth", figures["large"], figures["small"], "lower")
    bench.board.add("random.read.time", [s * 1e9 for s in figures["large"]], "ns", "lower")


def definition(bench: Bench, tools: Tools) -> None:
    """From the text of a definition to a map."""
    text = definitions.large(VARIABLES)

    def once() -> float:
        began = time.thread_time()
        mapped = Map(tools.engine, text, "all", "turned")
        took = time.thread_time() - began
        mapped.free()
        return took

    figures, _ = bench.alternate({"compile": Lane(once)}, quick=9, full=15, budget=1.5, at_least=3)
    bench.board.add("compile.variables_10000", [s * 1e3 for s in figures["compile"]], "ms", "lower", COMPILE_MS_MAX)


def measure(bench: Bench, tools: Tools) -> None:
    bench.say("small reads at random places, and a large definition")
    definition(bench, tools)
    maps(bench, tools)
    reads(bench, tools)
