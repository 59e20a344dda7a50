#!/usr/bin/python3
"""The bench: `bench/run.py AREA [--quick] [--json]`, usually called as `./dev bench AREA …`.

Measures Sluice beside what a user would pick instead, in one run and on the same data. Progress
goes to stderr. `--json` prints one JSON object and nothing else on stdout; without it a table is
printed. A full run also keeps its results in bench-results/results.sqlite and writes a report with
plots to bench-results/AREA.html. The exit status is 1 when Sluice failed or gave wrong data, not
when a goal is missed.
"""

import argparse
import datetime
import importlib
import os
import signal
import subprocess
import sys

from lib import build, report
from lib.context import Bench
from lib.measure import Board, Clock, Failed
from lib.process import end_all_daemons
from lib.services import machine
from lib.ways import Local
from lib.workspace import Workspace

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(HERE)
AREAS = ["redirect", "sieve", "layout", "log", "objects", "couple", "capi"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Sluice beside its alternatives.")
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--quick", action="store_true", help="less data and fewer rounds: about a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--only", action="append", default=[], metavar="SECTION",
                        help="measure only this section (may be given again)")
    parser.add_argument("--binary", metavar="FILE", help="the sluice binary; libsluice.so lies beside it",
                        default=os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(PROJECT, "target")),
                                             "release", "sluice"))
    parser.add_argument("--results", metavar="DIR", default=os.path.join(PROJECT, "bench-results"),
                        help="where a full run leaves its report and results")
    return parser.parse_args()


def revision() -> str:
    """The commit that is measured, with a mark when files differ from it."""
    try:
        return subprocess.run(["git", "-C", PROJECT, "describe", "--always", "--dirty"], capture_output=True,
                              text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def leave_report(bench: Bench, result: dict, started: str, folder: str) -> str:
    """Keeps a full run and writes its report; returns the path of the report."""
    from lib import history, page  # matplotlib is needed only here

    os.makedirs(folder, exist_ok=True)
    history.keep(os.path.join(folder, "results.sqlite"), result, started, bench.clock.elapsed(), revision())
    path = os.path.join(folder, f"{result['area']}.html")
    page.write(path, bench, result, started, revision(), folder)
    return path


def main() -> int:
    wanted = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    area = importlib.import_module(wanted.area)
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    clock = Clock(area.QUICK_SECONDS if wanted.quick else None)
    info = machine()
    try:
        tools = build.helpers(os.path.join(os.path.dirname(os.path.dirname(wanted.binary)), "bench-programs"))
    except Failed as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    space = Workspace(area.NEED_BYTES["quick" if wanted.quick else "full"])
    info["tmpfs"] = space.on_tmpfs
    bench = Bench(wanted.quick, Board(), clock, space, tools, Local(space), wanted.binary, results=wanted.results)
    try:
        area.measure(bench, wanted.only)
    finally:
        end_all_daemons()
        space.remove()
    result = report.as_object(wanted.area, wanted.quick, info, bench.board)
    bench.say("done")
    if wanted.json:
        print(report.as_json(result))
    else:
        print(report.as_table(bench.board))
    if not wanted.quick:
        try:
            print(f"report: {leave_report(bench, result, started, wanted.results)}",
                  file=sys.stderr if wanted.json else sys.stdout)
        except ImportError:
            print("bench: no report without matplotlib (package python3-matplotlib)", file=sys.stderr)
            return 1
    for name, why in bench.board.faults:
        print(f"bench: {name}: {why}", file=sys.stderr)
    return 1 if bench.board.faults else 0


if __name__ == "__main__":
    sys.exit(main())
