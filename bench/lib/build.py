"""The helper programs in C, compiled when the bench runs, and only when their source is newer."""

import os
import subprocess

from .measure import Failed

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
PROGRAMS = ["transfer", "rawsock", "calls", "smallfiles", "proxy"]
LIBRARIES = ["loopback"]


def helpers(into: str) -> dict[str, str]:
    """Compiles all helpers with `cc -O2`; returns the path of each by name."""
    os.makedirs(into, exist_ok=True)
    header = os.path.join(SOURCES, "common.h")
    built = {}
    jobs = []
    for name in PROGRAMS + LIBRARIES:
        source = os.path.join(SOURCES, name + ".c")
        target = os.path.join(into, name + (".so" if name in LIBRARIES else ""))
        built[name] = target
        newest = max(os.path.getmtime(source), os.path.getmtime(header))
        if os.path.exists(target) and os.path.getmtime(target) > newest:
            continue
        shared = ["-shared", "-fPIC"] if name in LIBRARIES else []
        argv = ["cc", "-O2", "-Wall", "-Wextra", *shared, "-o", target, source, "-ldl"]
        try:
            jobs.append((name, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        except FileNotFoundError:
            raise Failed("cc is not installed: the bench compiles its helper programs with it (package gcc)") from None
    for name, job in jobs:
        out, _ = job.communicate()
        if job.returncode:
            raise Failed(f"cc cannot compile {name}.c: {out.strip()}")
    return built
