#!/usr/bin/python3
"""Does a file always come to a consistency point, whatever is killed at whatever moment?

Ranks write epochs through a host log (`programs/epochs.c`), and programs without MPI write a file in many ways
(`killed.py`). When they have passed some random point, and a random moment later, SIGKILL ends one rank, all of them, the
log's agent, or everything; where the ranks are on two nodes, played by two logs (`apart.py`), also one of the nodes. The logs
are then recovered and drained, and must verify; the file must be as it was at a consistency point, no earlier than the last one that all ranks had passed and no later than the last that all had
entered. Ends with "N passed, N failed, N skipped".
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from log import stacks  # noqa: E402
from log.apart import Apart  # noqa: E402
from log.killed import Killed  # noqa: E402
from log.ranks import Crash  # noqa: E402
from mpi.libraries import Failed  # noqa: E402

# With MPI and without, on two nodes, and all for --full.
QUICK, FULL = {"mpi": 6, "plain": 12, "apart": 4}, {"mpi": 400, "plain": 3000, "apart": 200}


class Programs:
    """What needs no MPI to be compiled."""

    def __init__(self, place):
        self.place = place
        self.place.mkdir(parents=True)

    def compiled(self, name):
        target = self.place / pathlib.Path(name).stem
        if not target.exists():
            subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-o", target, HERE / "programs" / name], check=True)
        return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=f"{sum(FULL.values())} crashes instead of {sum(QUICK.values())}")
    parser.add_argument("--only", choices=list(QUICK), help="programs with MPI, without, or with ranks on two nodes")
    parser.add_argument("--seed", type=int, help="the first one (default: a random one, which is told)")
    parser.add_argument("--count", type=int, help="how many of each")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--keep", action="store_true", help="keep what is found wrong")
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    sluice = places.sluice_binary(options.sluice)
    scratch = places.scratch_directory("log-crash")
    found, missing = stacks.available(scratch)
    results = [report.Result(f"{name} all", "skipped", 0.0, [reason], name) for name, reason in missing]
    first = random.randrange(1 << 32) if options.seed is None else options.seed
    counts = FULL if options.full else QUICK
    programs = Programs(scratch / "programs" / "plain")
    for kind in [options.only] if options.only else list(counts):
        for seed in range(first, first + (options.count or counts[kind])):
            if kind == "plain":
                name, crash = kind, Killed(sluice, programs.compiled, seed, scratch)
            elif found:
                stack = found[seed % len(found)]
                of = Apart if kind == "apart" else Crash
                name, crash = stack.name, of(sluice, stack, 1 + seed // 3 % 3, seed, scratch)
            else:
                break
            start, verdict, details = time.monotonic(), "ok", []
            try:
                ran = crash.run()
                details = [] if ran is True else [ran or "it was over before"]
                crash.judge()
            except (Failed, subprocess.TimeoutExpired) as failed:
                verdict, details = "failed", [f"--only {kind} --seed {seed} --count 1", *str(failed).splitlines()[:12]]
            if verdict == "ok" or not options.keep:
                crash.clean()
            results.append(report.Result(f"seed {seed}: {crash}", verdict, time.monotonic() - start, details, name))
            report.print_line(results[-1])
    if not options.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
