"""The area `log`: programs that write through a host's log, beside the same programs writing to the local disk and
to the far place itself.

Follows the evaluation of iFast (their Figures 4, 7, 8, 10,
11 and 12): end-to-end time at several output frequencies, recovery, and what local writes cost. Everything that is
measured is the time of a whole, unmodified program under `sluice run --log`.
"""

from lib.context import Bench
from lib.measure import Failed
from lib.ways import check_binary

from . import drained, endtoend, local, memory
from .places import Places

QUICK_SECONDS = 78.0
"""What a quick run plans with, of the 90 s that it may take."""

NEED_BYTES = {"quick": 2 << 30, "full": 6 << 30}
"""Room on the tmpfs: targets that are not to be the bottleneck."""

SECTIONS = {
    "waits": (local.measure, 27),
    "endtoend": (endtoend.measure, 42),
    "memory": (memory.measure, 56),
    "drained": (drained.measure, 76),
    "pieces": (local.measure_pieces, 78),
}
"""What measures each section, and by which second of a quick run it should have ended."""


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
        places = Places(bench)
    except Failed as why:
        bench.board.fault("log", str(why))
        return
    try:
        bench.go_through("log", SECTIONS, only, places)
    finally:
        places.remove()
