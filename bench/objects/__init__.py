"""The area `objects`: buckets of an S3 server on loopback, beside rclone on the same server.

What a log drains to a bucket, what a program reads from one in order, and reads anywhere, with the requests that they take. The
server is versitygw, whose objects are files on a tmpfs; `SLUICE_VERSITYGW` names the program where it is not where the tests
put it.
"""

from lib.context import Bench
from lib.measure import Failed
from lib.ways import check_binary

from . import reading, upload
from .server import Server

QUICK_SECONDS = 80.0
"""What a quick run plans with, of the 90 s that it may take."""

NEED_BYTES = {"quick": 3 << 30, "full": 5 << 30}
"""Room on the tmpfs: the bucket."""

SECTIONS = {"upload": (upload.measure, 40), "read": (reading.measure, 65), "random": (reading.measure_random, 80)}
"""What measures each section, and by which second of a quick run it should have ended."""


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
    except Failed as why:
        bench.board.fault("objects", str(why))
        return
    try:
        server = Server(bench)
    except Failed as why:
        bench.board.skip("objects", str(why))
        return
    try:
        bench.go_through("objects", SECTIONS, only, server)
    finally:
        server.end()
