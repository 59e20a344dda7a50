#!/usr/bin/python3
"""Programs on `sluice mount`: what they see is what the store has, and nothing hangs.

The kernel's calls come here by FUSE, so any program can be used as it is: Python's own calls, sqlite, git.
`tests/matrix/run.py --transport mount` compares the cases of the matrix. Where nothing can be mounted
everything is skipped, and it is said why.
"""

import argparse
import importlib
import os
import pathlib
import pkgutil
import re
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import mounts, places, report  # noqa: E402
from house.services import ServiceFailed  # noqa: E402
from house.checking import Failed, Skip  # noqa: E402
from mount.scene import CHECKS, Scene  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--keep", action="store_true", help="keep scratch directories")
    options = parser.parse_args()
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print("mount: no sluice binary; build it with `cargo build --release`")
        return 2
    os.environ.pop("LD_PRELOAD", None)
    for module in sorted(m.name for m in pkgutil.iter_modules([str(HERE / "checks")])):
        importlib.import_module(f"mount.checks.{module}")
    results = []
    for function in CHECKS:
        if not options.only or any(re.search(o, function.__name__) for o in options.only):
            results.append(perform(function, sluice, options.keep))
            report.print_line(results[-1])
    return report.conclude(results)


def perform(function, sluice, keep):
    scratch = places.scratch_directory("mount")
    start = time.monotonic()
    scene = Scene(sluice, scratch)
    details = []
    try:
        reason = mounts.unusable()
        if reason:
            raise Skip(reason)
        try:
            function(scene)
        finally:
            scene.close()
        verdict = "ok"
    except Skip as skip:
        verdict, details = "skipped", [str(skip)]
    except (Failed, ServiceFailed, mounts.MountFailed) as failed:
        verdict, details = "failed", str(failed).splitlines()
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    if keep:
        details.append(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.Result(function.__name__.replace("_", " "), verdict, time.monotonic() - start, details, "mount")


if __name__ == "__main__":
    sys.exit(main())
