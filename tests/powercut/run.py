#!/usr/bin/python3
"""Does the host log keep its promises when the power goes?

Programs write through a log in a virtual machine (QEMU, Debian's kernel) whose disks have a write cache: what the machine did not
flush is lost at the cut, whole or in part, in any order, down to sectors of 512 bytes (loss.py, nbd.py). The moment follows from a
seed. The machine then boots again, verifies the log and recovers it, losing power in the middle of that as well, and once more as
soon as it says that all is in its place. In the end each file must be as at one of its consistency points, and not before the last
one that a program was told of.

Before that some loops are done without the agent's syncs: there losses must be seen, or the test sees nothing.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from house.checking import Failed, Skip  # noqa: E402
from powercut.cut import MAKERS, Cut  # noqa: E402
from powercut.machine import Kit  # noqa: E402

LOOPS, LOOPS_WITHOUT = 12, 3


def loop(kit, seed, scratch, file_systems, syncs, keep=False, writers=None):
    """One loop; returns what is wrong, if anything, and tells the story of it."""
    place = scratch / f"seed-{seed}"
    cut = Cut(kit, seed, place, file_systems, syncs, writers)
    wrong = None
    try:
        cut.go()
    except Failed as failed:
        wrong = str(failed)
    if keep and wrong and syncs:
        cut.story.append(f"kept: {place}")
    else:
        shutil.rmtree(place)
    return cut, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=LOOPS, help=f"how many (default: {LOOPS}, about ten minutes without KVM)")
    parser.add_argument("--seed", type=int, help="of the first one (default: a random one, which is told)")
    parser.add_argument("--without-syncs", action="store_true", help="only the test of the test")
    parser.add_argument("--no-test-of-the-test", action="store_true", help="only the loops")
    parser.add_argument("--file-systems", default="ext4,xfs,btrfs", help="of log and target, by commas; the first more often")
    parser.add_argument("--writers", help="PLAN:POINT,… of programs/lone.c, instead of what the dice say")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--keep", action="store_true", help="keep the disks of what is found wrong")
    parser.add_argument("--verbose", action="store_true", help="tell each loop's story")
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print("powercut: no sluice binary; build it with `cargo build --release`")
        return 2
    scratch, results = places.scratch_directory("power"), []
    try:
        kit = Kit(sluice, scratch)
    except Skip as reason:
        shutil.rmtree(scratch, ignore_errors=True)
        results.append(report.Result("power cuts", "skipped", 0.0, [str(reason)]))
        report.print_line(results[-1])
        return report.conclude(results)
    file_systems = [name for name in options.file_systems.split(",") if shutil.which(MAKERS[name][0])]
    writers = [tuple(writer.split(":")) for writer in options.writers.split(",")] if options.writers else None
    first = random.randrange(1 << 32) if options.seed is None else options.seed
    print(f"  {kit.kernel.name} by {kit.accelerator}, {', '.join(file_systems)}, --seed {first}", flush=True)
    if not options.no_test_of_the_test:
        results.append(sees_losses(kit, first, scratch, file_systems))
        report.print_line(results[-1])
    for seed in range(first, first + (0 if options.without_syncs else options.loops)):
        start = time.monotonic()
        cut, wrong = loop(kit, seed, scratch, file_systems, True, options.keep, writers)
        details = cut.story if wrong or options.verbose else []
        if wrong:
            details = [f"--seed {seed} --loops 1", *wrong.splitlines()[:16], *details]
        results.append(report.Result(f"seed {seed}: {cut}", "failed" if wrong else "ok", time.monotonic() - start, details))
        report.print_line(results[-1])
    if not options.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


def sees_losses(kit, seed, scratch, file_systems):
    """Without syncs of the log, what a program was told of is lost: is that seen?"""
    start, seen = time.monotonic(), []
    for number in range(seed, seed + LOOPS_WITHOUT):
        _, wrong = loop(kit, number, scratch, file_systems[:1], False)
        seen.append((wrong or "nothing wrong").splitlines()[0])
        if wrong and "lost: " in wrong:
            return report.Result("without the log's syncs losses are seen", "ok", time.monotonic() - start, seen[-1:])
    return report.Result("without the log's syncs losses are seen", "failed", time.monotonic() - start, seen)


if __name__ == "__main__":
    sys.exit(main())
