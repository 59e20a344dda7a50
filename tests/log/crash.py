#!/usr/bin/python3
"""Does a file always come to a consistency point, whatever is killed at whatever moment?

Ranks write epochs through a host log (`programs/epochs.c`), and programs without MPI write a file in many ways
(`killed.py`). When they have passed some random point, and a random moment later, SIGKILL ends one rank, all of them, the
log's agent, or everything. The log is then recovered and drained, and must verify; the file must be as it was at a
consistency point, no earlier than the last one that all ranks had passed and no later than the last that all had
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
from log.killed import Killed  # noqa: E402
from log.points import Points  # noqa: E402
from log.victims import END_SECONDS_MAX, Scene, kill, processes  # noqa: E402
from mpi.libraries import Failed  # noqa: E402

EPOCHS, EACH = 30, 30
VICTIMS = ("rank", "ranks", "agent", "everything")
WAYS = [("whole", "independent", "sync"), ("some", "strided", "sync"), ("growing", "collective", "close"),
        ("mixed", "nonblocking", "sync"), ("mixed", "posix", "sync"), ("growing", "posix", "datasync"),
        ("mixed", "strided", "close"), ("whole", "posix", "close")]
HANGS = "ROMIO never returns from MPI_Wait for an aio_write that has failed"
# With MPI and without, and both for --full.
QUICK, FULL = {"mpi": 6, "plain": 12}, {"mpi": 400, "plain": 3000}


class Crash(Scene):
    """One run that is ended by force."""

    def __init__(self, sluice, stack, ranks, seed, scratch):
        super().__init__(sluice, "crash", seed, scratch)
        self.stack, self.ranks = stack, ranks
        self.plan, self.calls, self.point = WAYS[seed % len(WAYS)]
        self.victim = VICTIMS[seed // len(WAYS) % len(VICTIMS) if seed >= len(WAYS) else self.dice.randrange(len(VICTIMS))]
        # Of ROMIO, whatever the stack is called.
        self.may_hang = stack.name != "ompio" and self.calls == "nonblocking" and self.victim == "agent"

    def __str__(self):
        return f"{self.stack.name} {self.plan} {self.calls} {self.point} {self.victim}"

    def run(self):
        """Starts the program and kills; returns whether it was still running."""
        program = self.stack.compiled("epochs.c")
        words = [program, self.side, self.target, self.plan, self.calls, self.point, EPOCHS, EACH]
        command = self.stack.launch(self.ranks, words, self.through_the_log())
        launcher = self.start(command, self.stack.library.environment)
        try:
            self.wait_for(launcher, self.dice.randrange(1, 3 * EPOCHS - 6))
            was_running = launcher.poll() is None
            ranks = processes(str(program), str(self.side))
            ranks = [number for number in ranks if number != launcher.pid]
            victims = {"rank": ranks[-1:], "ranks": ranks, "agent": self.agents(),
                       "everything": [launcher.pid, *ranks, *self.agents()]}[self.victim]
            kill(victims)
            try:
                launcher.wait(10 if self.may_hang else END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                if self.may_hang:
                    return HANGS
                raise Failed(f"the program hangs after the end of its {self.victim}") from None
        finally:
            kill(processes(str(self.side)))
            launcher.wait()
        return was_running

    def judge(self):
        """After everything has ended: raises where the file may not be as it is."""
        self.settle()
        checker = self.stack.compiled("points.c", compiler=["gcc"])
        files = [(self.plan, self.ranks, None, range(self.ranks))]
        if self.calls == "posix":
            files = [(f"{self.plan}.{rank}", 1, rank, [rank]) for rank in range(self.ranks)]
        for name, sharers, writer, noted in files:
            # The epoch is made when the last rank has entered it: what one rank has passed and another not entered may be lost.
            each = [Points.noted(self.side, [rank]) for rank in noted]
            came = Points(min(one.passed for one in each), min(one.entered for one in each))
            self.judge_file(checker, name, came, self.plan, sharers, EACH, EPOCHS, writer)


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
    parser.add_argument("--only", choices=["mpi", "plain"], help="programs with MPI, or without")
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
                name, crash = stack.name, Crash(sluice, stack, 1 + seed // 3 % 3, seed, scratch)
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
