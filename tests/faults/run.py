#!/usr/bin/python3
"""Bad input and faults: wrong addresses, hostile frames, full disks, dead servers.

Every scenario asks for a clear errno in the program, a clear sentence from the command line, no hang,
nothing lost that fsync or close had acknowledged, and no harm to anybody else.
"""

import argparse
import concurrent.futures
import importlib
import json
import multiprocessing
import pathlib
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
# Most of the time a scenario waits for somebody to give up.
JOBS = 4
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from house.services import ServiceFailed  # noqa: E402
from faults.scenario import SCENARIOS, Broken, House, Skip  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=f"scenarios at once (default: {JOBS})")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print("faults: no sluice binary; build it with `cargo build --release`")
        return 2
    for module in sorted(m.name for m in pkgutil.iter_modules([str(HERE / "scenarios")])):
        importlib.import_module(f"faults.scenarios.{module}")
    known = tomllib.loads((HERE / "known.toml").read_text())
    chosen = [index for index, function in enumerate(SCENARIOS)
              if not options.only or any(re.search(o, function.__name__) for o in options.only)]
    # Each in a process of its own: what it says of itself (its descriptors, its children) is said of it alone.
    results, processes = [], multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, processes) as workers:
        under_way = [workers.submit(perform, index, sluice, options.keep, known) for index in chosen]
        for done in concurrent.futures.as_completed(under_way):
            results.append(done.result())
            report.print_line(results[-1])
    if options.json:
        print(json.dumps([vars(r) for r in results], indent=1))
    return report.conclude(results)


def perform(index, sluice, keep, known):
    """One scenario in a corner of its own; whatever it started is ended."""
    function = SCENARIOS[index]
    name, group = function.__name__.replace("_", "-"), function.__module__.rsplit(".", 1)[-1]
    scratch = places.scratch_directory("faults")
    # Whoever runs this in the background may have them ignored, and what is ignored no shell can trap.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    start = time.monotonic()
    house = House(sluice, scratch)
    try:
        function(house)
        verdict, details = "ok", []
    except Skip as reason:
        verdict, details = "skipped", [str(reason)]
    except (Broken, ServiceFailed, subprocess.TimeoutExpired) as broken:
        verdict = "known" if name in known else "failed"
        details = [known[name]] if name in known else [(function.__doc__ or "").splitlines()[0], *str(broken).splitlines()[:6]]
    finally:
        house.close()
        if keep:
            print(f"  kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    return report.Result(name, verdict, time.monotonic() - start, details, group)


if __name__ == "__main__":
    sys.exit(main())
