#!/usr/bin/python3
"""Does a file always come to a consistency point, whatever is killed at whatever moment?

Ranks write epochs through a host log (`programs/epochs.c`). When they have passed some random point, and a random moment
later, SIGKILL ends one rank, all of them, the log's agent, or everything. The log is then recovered and drained, and must
verify; the file must be as it was at a consistency point, no earlier than the last one that all ranks had passed and no
later than the last that all had entered. Ends with "N passed, N failed, N skipped".
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from log import points, stacks  # noqa: E402
from log.points import Points  # noqa: E402
from mpi.libraries import Failed  # noqa: E402

EPOCHS, EACH = 30, 30
VICTIMS = ("rank", "ranks", "agent", "everything")
WAYS = [("whole", "independent", "sync"), ("some", "strided", "sync"), ("growing", "collective", "close"),
        ("mixed", "nonblocking", "sync"), ("mixed", "posix", "sync"), ("growing", "posix", "datasync"),
        ("mixed", "strided", "close"), ("whole", "posix", "close")]
END_SECONDS_MAX = 60
KNOWN_OF_PLAIN = ("a program that is killed is taken to have closed its files: to the service both are the end of an opening, "
                  "and what was written since the last fsync counts")
QUICK, FULL = 8, 400


def processes(*words):
    """The ids of the processes whose command line has all of these words; ours are none of them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if all(any(word.encode() in argument for argument in command) for word in words):
                found.append(int(entry.name))
    return found


def kill(ids):
    for number in ids:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Crash:
    """One run that is ended by force."""

    def __init__(self, sluice, stack, ranks, seed, scratch):
        self.dice = random.Random(seed)
        self.sluice, self.stack, self.ranks = sluice, stack, ranks
        self.plan, self.calls, self.point = WAYS[seed % len(WAYS)]
        self.victim = VICTIMS[seed // len(WAYS) % len(VICTIMS) if seed >= len(WAYS) else self.dice.randrange(len(VICTIMS))]
        self.place = scratch / f"crash-{seed}"
        self.side, self.target, self.log = (self.place / name for name in ("side", "target", "log"))
        for directory in (self.side, self.target):
            directory.mkdir(parents=True)

    def __str__(self):
        return f"{self.stack.name} {self.plan} {self.calls} {self.point} {self.victim}"

    def run(self):
        """Starts the program and kills; returns whether it was still running."""
        program = self.stack.compiled("epochs.c")
        words = [program, self.side, self.target, self.plan, self.calls, self.point, EPOCHS, EACH]
        around = [self.sluice, "run", "--reconnect-seconds", "1", "--log", self.log, "--to", self.target, "--"]
        command = [str(word) for word in self.stack.launch(self.ranks, words, around)]
        told = self.place / "told"
        with open(told, "w") as out:
            launcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.place,
                                        env=os.environ | self.stack.library.environment, start_new_session=True)
        try:
            self.wait_for(launcher, self.dice.randrange(1, 3 * EPOCHS - 6))
            time.sleep(self.dice.random() * 0.004)
            was_running = launcher.poll() is None
            ranks = processes(str(program), str(self.side))
            ranks = [number for number in ranks if number != launcher.pid]
            victims = {"rank": ranks[-1:], "ranks": ranks, "agent": self.agents(),
                       "everything": [launcher.pid, *ranks, *self.agents()]}[self.victim]
            kill(victims)
            try:
                launcher.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise Failed(f"the program hangs after the end of its {self.victim}") from None
        finally:
            kill(processes(str(self.side)))
            launcher.wait()
        return was_running

    def agents(self):
        return processes("log", "agent", str(self.log))

    def wait_for(self, launcher, lines):
        """Until the first rank has noted so many lines, or the program is over."""
        noted = self.side / "points.0"
        end = time.monotonic() + END_SECONDS_MAX
        while launcher.poll() is None and time.monotonic() < end:
            if noted.exists() and noted.read_bytes().count(b"\n") >= lines:
                return
            time.sleep(0.002)

    def command(self, *words):
        done = subprocess.run([self.sluice, "log", *words, self.log], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(f"sluice log {' '.join(words)}: status {done.returncode}: {(done.stderr or done.stdout)[-600:]}")

    def judge(self):
        """After everything has ended: raises where the file may not be as it is."""
        # An agent that was not killed drains by itself.
        self.command("drain" if self.agents() else "recover")
        self.command("verify")
        checker = self.stack.compiled("points.c", compiler=["gcc"])
        files = [(self.plan, self.ranks, None, range(self.ranks))]
        if self.calls == "posix":
            files = [(f"{self.plan}.{rank}", 1, rank, [rank]) for rank in range(self.ranks)]
        for name, sharers, writer, noted in files:
            # The epoch is made when the last rank has entered it: what one rank has passed and another not entered may be lost.
            each = [Points.noted(self.side, [rank]) for rank in noted]
            came = Points(min(one.passed for one in each), min(one.entered for one in each))
            equal, made_of = points.equal_to(checker, self.target / name, self.plan, sharers, EACH, EPOCHS, writer)
            if wrong := points.judge(equal, came, made_of):
                raise Failed(f"{name}: {wrong} ({[(one.passed, one.entered) for one in each]})")

    def clean(self):
        kill(self.agents())
        shutil.rmtree(self.place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=f"{FULL} crashes instead of {QUICK}")
    parser.add_argument("--seed", type=int, help="the first one (default: a random one, which is told)")
    parser.add_argument("--count", type=int, help="how many")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--keep", action="store_true", help="keep what is found wrong")
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    sluice = places.sluice_binary(options.sluice)
    scratch = places.scratch_directory("log-crash")
    found, missing = stacks.available(scratch)
    results = [report.Result(f"{name} all", "skipped", 0.0, [reason], name) for name, reason in missing]
    first = random.randrange(1 << 32) if options.seed is None else options.seed
    for seed in range(first, first + (options.count or (FULL if options.full else QUICK))):
        stack = found[seed % len(found)]
        crash = Crash(sluice, stack, 1 + seed // 3 % 3, seed, scratch)
        start, verdict, details = time.monotonic(), "ok", []
        try:
            if not crash.run():
                details = ["it was over before"]
            crash.judge()
        except (Failed, subprocess.TimeoutExpired) as failed:
            verdict, details = "failed", [f"--seed {seed} --count 1", *str(failed).splitlines()[:12]]
            if crash.calls == "posix" and "no consistency point" in str(failed):
                verdict, details = "known", [KNOWN_OF_PLAIN]
        if verdict == "ok" or not options.keep:
            crash.clean()
        results.append(report.Result(f"seed {seed}: {crash}", verdict, time.monotonic() - start, details, stack.name))
        report.print_line(results[-1])
    if not options.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
