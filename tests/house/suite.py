"""How a suite of checks is run: functions, each on a scene of its own, one line for each.

A scene has a stack of what it has started; `close()` ends it. What is missing on this machine is skipped, and it is
said why.
"""

import argparse
import importlib
import os
import pkgutil
import re
import shutil
import time

from house import mounts, places, report
from house.checking import Failed, Skip
from house.installed import NotInstalled
from house.services import ServiceFailed


def only_full(function):
    """Marks a check that takes long or installs something: it is done with --full."""
    function.only_full = True
    return function


def conduct(name, says, here, checks, scene, why_not=lambda: None):
    """Runs the functions that the modules in `checks/` have put into `checks`; returns the exit status.

    `scene(sluice, scratch, full)` is what a check works on; `why_not()` says why none can be done here.
    """
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--full", action="store_true", help="with what takes long, and what must be installed first")
    parser.add_argument("--keep", action="store_true", help="keep scratch directories")
    options = parser.parse_args()
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print(f"{name}: no sluice binary; build it with `cargo build --release`")
        return 2
    os.environ.pop("LD_PRELOAD", None)
    for module in sorted(m.name for m in pkgutil.iter_modules([str(here / "checks")])):
        importlib.import_module(f"{here.name}.checks.{module}")
    results, left_out = [], 0
    for function in checks:
        if getattr(function, "only_full", False) and not options.full:
            left_out += 1
            continue
        if options.only and not any(re.search(o, function.__name__) for o in options.only):
            continue
        scratch = places.scratch_directory(here.name)
        results.append(perform(function, scene(sluice, scratch, options.full), why_not))
        results[-1].group = name
        if options.keep:
            results[-1].details.append(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
        report.print_line(results[-1])
    if left_out:
        print(f"  {left_out} more with --full")
    return report.conclude(results)


def perform(function, scene, why_not):
    """One check, and whatever it started is ended."""
    start = time.monotonic()
    verdict, details = "ok", []
    try:
        reason = why_not()
        if reason:
            raise Skip(reason)
        try:
            function(scene)
        finally:
            scene.close()
    except (Skip, NotInstalled) as skip:
        verdict, details = "skipped", [str(skip)]
    except (Failed, ServiceFailed, mounts.MountFailed) as failed:
        verdict, details = "failed", str(failed).splitlines()
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    return report.Result(function.__name__.replace("_", " "), verdict, time.monotonic() - start, details)
