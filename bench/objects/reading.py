"""Reading an object through the preload library, in order and anywhere."""

import os
import sys

from lib.context import Bench
from lib.measure import Failed, Lane
from lib.process import run
from lib.workspace import digest, forget

from .server import Server

RCLONE_MIN = 0.9
"""Of what rclone reaches."""
REQUESTS_MAX = 0.25
"""For each of the clustered reads."""
MIB = 1 << 20
READS, TOGETHER, CLUSTERS = 1000, 16, 50

RANDOM = f"""
import concurrent.futures, os, random, sys
dice, size = random.Random(1), int(sys.argv[2])
starts = [dice.randrange(0, size - (1 << 20)) for _ in range({CLUSTERS})]
offsets = [start + dice.randrange(0, (1 << 20) - 4096) for start in starts for _ in range({READS // CLUSTERS})]
file = os.open(sys.argv[1], os.O_RDONLY)
with concurrent.futures.ThreadPoolExecutor({TOGETHER}) as pool:
    pieces = list(pool.map(lambda offset: os.pread(file, 4096, offset), offsets))
import hashlib
print(hashlib.sha256(b"".join(pieces)).hexdigest())
"""
"""Reads of 4 KiB, some at a time, in groups of which each lies within a MiB."""


def made(bench: Bench, server: Server, size: int) -> str:
    """An object of random bytes; returns the file that it is."""
    held = os.path.join(server.bucket, "read")
    if not os.path.exists(held) or os.path.getsize(held) != size:
        with open(held, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
    return held


def measure(bench: Bench, server: Server) -> None:
    if bench.rushed(15, "read"):
        return
    size = 1024 * MIB
    bench.say("1 GiB in order through the preload library beside rclone cat")
    held = made(bench, server, size)
    copy = os.path.join(server.disk, "copy")
    count: dict[str, int] = {}

    def counted(name: str, work) -> float:
        before = server.requests()
        seconds = work().seconds
        count[name] = server.requests() - before
        return seconds

    # That they are the right bytes is looked at once: it takes longer than the reading.
    server.sluice("run", "--", "cp", "s3://bucket/read", copy)
    if digest(copy) != digest(held):
        raise Failed("what was read is not what the bucket has")
    forget(copy)
    shell = 'cat "$1" > /dev/null'
    # Nobody looks at the bytes of either.
    lanes = {"rclone": Lane(lambda: counted("rclone", lambda: server.rclone("cat", "--discard", "s3:bucket/read"))),
             "preload": Lane(lambda: counted("preload", lambda: server.sluice(
                 "run", "--", "bash", "-c", shell, "bash", "s3://bucket/read")))}
    figures, fallen = bench.alternate(lanes, quick=2, full=5, budget=14, at_least=1, warm=0)
    if "preload" in fallen:
        raise Failed(fallen["preload"])
    bench.board.add_ratio("read.preload.vs_rclone", figures["rclone"], figures["preload"], "higher", RCLONE_MIN)
    for name in lanes:
        bench.board.add(f"read.{name}.bandwidth", [size / s / 1e6 for s in figures[name]], "MB/s", "higher")
        bench.board.add(f"read.{name}.requests", [count[name]], "requests", "lower")


def measure_random(bench: Bench, server: Server) -> None:
    if bench.rushed(8, "random"):
        return
    size = 1024 * MIB
    bench.say(f"{READS:,} reads of 4 KiB in {CLUSTERS} groups, {TOGETHER} at a time")
    held = made(bench, server, size)
    words = [sys.executable, "-c", RANDOM]
    should = run([*words, held, str(size)]).stdout
    requests, seconds = [], []
    for _ in range(bench.pick(2, 5)):
        before = server.requests()
        ran = server.sluice("run", "--", *words, "s3://bucket/read", str(size))
        if ran.stdout != should:
            raise Failed("what was read is not what the bucket has")
        requests.append((server.requests() - before) / READS)
        seconds.append(ran.seconds)
    bench.board.add("random.requests_per_read", requests, "requests", "lower", REQUESTS_MAX)
    bench.board.add("random.reads_per_second", [READS / s for s in seconds], "1/s", "higher")
