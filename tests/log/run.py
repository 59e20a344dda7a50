#!/usr/bin/python3
"""Programs whose files take another way: are their bytes those of a run without Sluice?

For each MPI library and what does its I/O (see stacks.py), on 1 to 4 ranks, each case (see cases.py) is run on a
local directory, and once for each carrier (see carriers.py). Its own checks must hold both times, so that a library
that corrupts its files by itself is noticed, and what it told and the files must be equal.

Without --full only a selection, on few ranks.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report, tree  # noqa: E402
from house.services import ServiceFailed  # noqa: E402
from mpi.libraries import Failed, Missing  # noqa: E402
from mpi.run import run  # noqa: E402
from log import carriers, stacks  # noqa: E402
from log.cases import CASES, Alone  # noqa: E402


# So often something is tried that a library is known to do wrong sometimes; it never does it if the first tries all fail.
TRIES, NEVER = 20, 5
# It may as well never return.
DOUBTFUL_SECONDS_MAX = 20
# Parts of which it is asked without --full, too: one that never returns is not.
QUICK_ALONE = ("sizes", "nonblocking-collective")


class House:
    """What the runs share: where the libraries are, and what was seen without Sluice."""

    def __init__(self, sluice, scratch):
        self.sluice, self.scratch = sluice, scratch
        self.native = carriers.Carrier(sluice, scratch / "reference")
        self.references = {}
        # What a library did not do by itself in this run.
        self.never = set()

    def preloaded(self):
        return self.sluice.parent / "libsluice_mpi.so" if self.sluice else None

    def perform(self, case, stack, ranks, carrier):
        """Runs a case; returns the directory of its files and what its ranks told."""
        name = f"{case.name.replace(' ', '-')}-{stack.name}-{ranks}"
        sides, first = self.scratch / f"side-{carrier.name}", name
        # For the reference and as a carrier, and as often as it is tried.
        for number in range(2, 3 * TRIES):
            if not (sides / name).exists():
                break
            name = f"{first}-{number}"
        side = sides / name
        side.mkdir(parents=True)
        way = carrier.start(name, self.preloaded() if case.hidden else None)
        outputs = []
        for step in case.steps(stack, ranks, side, way.directory):
            alone = isinstance(step, Alone)
            words = [*way.around, *way.within, *step] if alone else stack.launch(ranks, step, way.around, way.within)
            outputs.append(run(words, stack.library.environment, side, case.seconds_max))
        if case.after:
            case.after(side, outputs)
        carrier.finish()
        if case.final:
            case.final(stack, ranks, side, carrier.target)
        told = {path.name: path.read_text() for path in sorted(side.glob("told.*"))}
        wrong = [line for text in told.values() for line in text.splitlines() if "WRONG" in line]
        if wrong:
            raise Failed("\n".join(wrong))
        return carrier.target, told

    def reference(self, case, stack, ranks):
        """The run without Sluice, made once; a failure of it is everybody's."""
        key = case.name, stack.name, ranks
        if key not in self.references:
            try:
                self.references[key] = self.perform(case, stack, ranks, self.native)
            except Failed as failed:
                self.references[key] = Failed(f"without Sluice: {failed}")
        if isinstance(self.references[key], Failed):
            raise self.references[key]
        return self.references[key]

    def check(self, case, stack, ranks, carrier):
        if case.part not in stack.without:
            return self.compare(case, stack, ranks, carrier)
        # What the library does not do well each time by itself must go well with Sluice some time, too; it is left out if
        # the library never does it.
        alone, failure = [], None
        key, case = (case.name, stack.name, ranks), dataclasses.replace(case, seconds_max=DOUBTFUL_SECONDS_MAX)
        for _ in range(TRIES):
            if key in self.never:
                break
            self.references.pop(key, None)
            try:
                self.reference(case, stack, ranks)
            except Failed:
                alone.append(False)
                if alone == [False] * NEVER:
                    self.never.add(key)
                continue
            alone.append(True)
            try:
                return self.compare(case, stack, ranks, carrier)
            except Failed as failed:
                failure = failed
        if failure is None:
            raise Missing(f"without Sluice it failed {NEVER} times of {NEVER}: {stack.without[case.part]}")
        raise Failed(f"well {alone.count(True)} times of {len(alone)} without Sluice, never with it: {failure}")

    def compare(self, case, stack, ranks, carrier):
        """Runs a case on a carrier and compares."""
        reference, expected = self.reference(case, stack, ranks)
        _, told = self.perform(case, stack, ranks, carrier)
        if told != expected:
            lines = [f"{name}: told {got!r}, should be {want!r}" for name in expected
                     for want, got in zip(expected[name].splitlines(), told.get(name, "").splitlines()) if want != got]
            raise Failed("\n".join(lines[:8] or ["told another number of lines"]))
        if not any(reference.iterdir()):
            raise Failed("no file was written")
        if lines := carrier.compare(reference):
            raise Failed("\n".join(lines))


def judged(name, group, known, function, *arguments):
    """A check's verdict."""
    start = time.monotonic()
    try:
        function(*arguments)
        verdict, details = "ok", []
    except Missing as missing:
        verdict, details = "skipped", [str(missing)]
    except (Failed, ServiceFailed) as failed:
        verdict, details = "failed", str(failed).splitlines()[:12]
        for pattern, reason in known.items():
            if re.fullmatch(pattern, name):
                verdict, details = "known", [reason]
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    return report.Result(name, verdict, time.monotonic() - start, details, group)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carrier", action="append", default=[], choices=list(carriers.CARRIERS),
                        help="only this way; may be repeated (default: far, log and nodes; with --full also careful)")
    parser.add_argument("--stack", action="append", default=[], metavar="NAME", help="only on mpich, ompio or romio")
    parser.add_argument("--ranks", action="append", type=int, default=[], help="only on so many")
    parser.add_argument("--only", action="append", default=[], metavar="REGEX",
                        help="checks whose name `CARRIER STACK CASE RANKS` matches")
    parser.add_argument("--full", action="store_true", help="every case on 1 to 4 ranks")
    parser.add_argument("--list", action="store_true", help="the names of the checks")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory")
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    scratch = places.scratch_directory("log")
    known = tomllib.loads((HERE / "known.toml").read_text())
    house, results = House(places.sluice_binary(options.sluice), scratch), []
    found, missing = stacks.available(scratch)
    results += [report.Result(f"{name} all", "skipped", 0.0, [reason], name) for name, reason in missing]
    for name in options.carrier or ["far", *(["careful"] if options.full else []), "log", "nodes"]:
        try:
            carrier = carriers.made(name, house.sluice, scratch)
        except Missing as reason:
            results.append(report.Result(f"{name} all", "skipped", 0.0, [str(reason)], name))
            report.print_line(results[-1])
            continue
        try:
            results += go_through(options, house, carrier, found, known.get(name, {}))
        finally:
            carrier.close()
    if options.keep:
        print(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


def go_through(options, house, carrier, found, known):
    """All checks of a carrier that are asked for."""
    results = []
    # Open MPI's ROMIO is MPICH's: on several nodes the short run does without.
    spared = ["romio"] if carrier.name == "nodes" and not (options.full or options.stack or options.only) else []
    for stack in found:
        for case in CASES:
            if stack.name not in case.stacks or stack.name in spared or options.stack and stack.name not in options.stack:
                continue
            apart = case.part in QUICK_ALONE and case.part in stack.without
            chosen = case.ranks if options.full else (2,) if apart else case.quick
            # Asked for by name, or by number, it need not be in the selection.
            if options.ranks or options.only:
                chosen = options.ranks or chosen or case.ranks
            for ranks in chosen:
                name = f"{carrier.name} {stack.name} {case.name} {ranks}"
                if ranks not in case.quick + case.ranks or options.only and not any(re.search(o, name) for o in options.only):
                    continue
                if options.list:
                    print(name)
                    continue
                results.append(judged(name, stack.name, known, house.check, case, stack, ranks, carrier))
                report.print_line(results[-1])
    return results


if __name__ == "__main__":
    sys.exit(main())
