"""The area `layout`: views and replicas, beside the same done by hand, by numpy and by memcpy.

Follows Ionkov, Lang and Maltzahn's evaluation of DRepl (their §IV, Figures 5 to 7): structures of three
numbers, as they are, as an array for each number, and one of the numbers alone. What they do not
measure is added: every fifth number, a matrix transposed, small reads at random places, large
definitions.
"""

from lib.context import Bench
from lib.measure import Failed
from lib.ways import check_binary

from . import combined, memory, native, reading, small, writing

QUICK_SECONDS = 44.0
"""What a quick run plans with, of the 50 s that it may take."""

NEED_BYTES = {"quick": 4 << 30, "full": 14 << 30}
"""Room for the replicas, and for plain files beside them."""

SECTIONS = {
    "memory": (memory.measure, 13),
    "small": (small.measure, 18),
    "reading": (reading.measure, 30),
    "writing": (writing.measure, 39),
    "combined": (combined.measure, 42),
}
"""What measures each section, and by which second of a quick run it should have ended."""


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
        tools = native.load(bench)
    except Failed as why:
        bench.board.fault("layout", str(why))
        return
    bench.go_through("layout", SECTIONS, only, tools)
