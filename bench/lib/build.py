"""The helper programs in C, compiled when the bench runs, and only when their source is newer."""

import os
import subprocess

from .measure import Failed

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
PROGRAMS = ["transfer", "rawsock", "calls", "smallfiles", "proxy", "copylimit", "logwriter"]
LIBRARIES = ["loopback"]


HEADERS = ["common.h", "beside.h"]


def is_current(target: str, source: str) -> bool:
    """Whether a program is newer than everything it is made of."""
    made_of = [source, *(os.path.join(SOURCES, header) for header in HEADERS)]
    return os.path.exists(target) and os.path.getmtime(target) > max(map(os.path.getmtime, made_of))


def with_mpi(into: str, mpi: str, program: str = "mpiview") -> str:
    """Compiles a program for an MPI library, `mpich` or `openmpi`; returns its path."""
    source, target = os.path.join(SOURCES, f"{program}.c"), os.path.join(into, f"{program}-{mpi}")
    if is_current(target, source):
        return target
    argv = [f"mpicc.{mpi}", "-O2", "-Wall", "-Wextra", "-o", target, source]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    except FileNotFoundError:
        raise Failed(f"mpicc.{mpi} is not installed (package lib{mpi}-dev)") from None
    if done.returncode:
        raise Failed(f"mpicc.{mpi} cannot compile {program}.c: {done.stdout.strip()}")
    return target


def helpers(into: str) -> dict[str, str]:
    """Compiles all helpers with `cc -O2`; returns the path of each by name."""
    os.makedirs(into, exist_ok=True)
    built = {}
    jobs = []
    for name in PROGRAMS + LIBRARIES:
        source = os.path.join(SOURCES, name + ".c")
        target = os.path.join(into, name + (".so" if name in LIBRARIES else ""))
        built[name] = target
        if is_current(target, source):
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
