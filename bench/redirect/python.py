"""Streaming through the Python package, beside the C program under `sluice run`: the same blocks from the same service."""

import os
import shutil
import sys

from lib.context import Bench
from lib.measure import Failed, Lane
from lib.process import run
from lib.services import sluice_uri
from lib.workspace import forget

from .streams import BUFFER, READ, WRITTEN, moved

VS_C_MIN = 0.9
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# As the C program: seconds from before the open until after the close.
READER = """
import sys, time, sluice
uri, size, block = sys.argv[1], int(sys.argv[2]), bytearray(int(sys.argv[3]))
began, total = time.perf_counter(), 0
with sluice.open(uri, "rb", 0) as file:
    while count := file.readinto(block):
        total += count
took = time.perf_counter() - began
assert total == size, total
print('{"seconds": %.9f}' % took)
"""

WRITER = """
import sys, time, sluice
uri, size, block = sys.argv[1], int(sys.argv[2]), bytes(int(sys.argv[3]))
began, total = time.perf_counter(), 0
with sluice.open(uri, "wb", 0) as file:
    while total < size:
        total += file.write(block)
took = time.perf_counter() - began
print('{"seconds": %.9f}' % took)
"""


def package(bench: Bench) -> str:
    """A directory where this Python finds the package, as it was built beside the binary."""
    assert bench.binary
    module = os.path.join(os.path.dirname(bench.binary), "lib_sluice.so")
    if not os.path.exists(module):
        raise Failed(f"{module} is missing: cargo build --release -p python")
    place = bench.space.run("python")
    if not os.path.exists(place):
        shutil.copytree(os.path.join(PROJECT, "python", "sluice"), os.path.join(place, "sluice"),
                        ignore=shutil.ignore_patterns("_bin", "*.so", "__pycache__"))
        shutil.copy(module, os.path.join(place, "sluice", "_sluice.abi3.so"))
    return place


def measure(bench: Bench) -> None:
    way = bench.ours.get("uds")
    if not way:
        return
    place = package(bench)
    size = bench.pick(256 << 20, 1 << 30)
    bench.say(f"streaming {size >> 20} MiB through Python")
    run([bench.tools["transfer"], "write", bench.space.far(READ), str(size), str(BUFFER)])
    root = sluice_uri(bench.addresses["uds"])

    def python(program: str, name: str) -> float:
        argv = [sys.executable, "-c", program, f"{root}/{name}", str(size), str(BUFFER)]
        if program is WRITER:
            forget(bench.space.far(name))
        return float(run(argv, env={"PYTHONPATH": place}).json()["seconds"])

    for direction, program, name in (("read", READER, READ), ("write", WRITER, WRITTEN)):
        lanes = {"uds": Lane(lambda: moved(bench, way, direction, size)), "python": Lane(lambda: python(program, name))}
        figures, fallen = bench.alternate(lanes, quick=5, full=9, budget=1.2, at_least=3)
        for lane, why in fallen.items():
            bench.board.fault(f"python.{direction}.{lane}", why)
        if figures.get("python") and figures.get("uds"):
            goal = VS_C_MIN if direction == "read" else None
            bench.board.add_ratio(f"python.{direction}.vs_c", figures["uds"], figures["python"], "higher", goal)
            bench.board.add(f"python.{direction}.bandwidth", [size / s / 1e6 for s in figures["python"]], "MB/s", "higher")
    forget(bench.space.far(WRITTEN))
