"""What planning costs, without any access: time for each block, memory for each tuple."""

import json
import os
import subprocess

from lib.context import Bench
from lib.measure import Failed
from lib.process import run

BLOCKS = 1_000_000

TUPLES = 10_000_000

PATTERNS = {
    # Name: pattern, bytes of data that hold BLOCKS blocks (on average), goal in nanoseconds a block.
    "regular": ("8,24", 8 * BLOCKS, 3.0),
    "irregular": (f"1..200:1..6000*{BLOCKS}", 100 * BLOCKS, 20.0),
}


def explain(bench: Bench, pattern: str, *arguments: str) -> dict:
    """What `sluice sieve explain --json` says of a pattern, with built-in parameters."""
    argv = [bench.binary, "sieve", "explain", pattern, "--profile", "default", "--json", "--groups", "0", *arguments]
    return run(argv).json()


def measure(bench: Bench) -> None:
    bench.say("planning")
    for name, (pattern, length, goal) in PATTERNS.items():
        for access, flags in (("read", []), ("write", ["--write"])):
            samples = [explain(bench, pattern, "--length", str(length), *flags)["planning_ns_per_block"]
                       for _ in range(bench.pick(2, 5))]
            bench.board.add(f"sieve.planning.{name}.{access}", samples, "ns/block", "lower", goal, strict=True)
    pattern = f"1..200:1..6000*{TUPLES}"
    view = explain(bench, pattern, "--length", "1")["view"]
    bench.board.add("sieve.view.list", [view["memory_bytes"] / TUPLES], "bytes/tuple", "lower", 32.0)
    bench.board.add("sieve.view.peak", [most_memory(bench, pattern) / TUPLES], "bytes/tuple", "lower", 32.0)


def most_memory(bench: Bench, pattern: str) -> int:
    """The most memory that making the view of a pattern takes, of the whole process, in bytes."""
    argv = [bench.binary, "sieve", "explain", pattern, "--profile", "default", "--json", "--length", "1"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    json.load(child.stdout)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed(f"sluice sieve explain {pattern} ended with status {child.returncode}")
    return used.ru_maxrss * 1024
