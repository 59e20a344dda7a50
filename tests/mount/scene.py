"""What the checks of a mount share: how they are named, and what they work on."""

import contextlib
import os
import pathlib

from house.checking import run
from house.mounts import Mount
from house.services import Service

PYTHON = "/usr/bin/python3"

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def python(script, *arguments, **options):
    """Runs a Python script in a process of its own and returns what it printed."""
    return run(PYTHON, "-c", script, *arguments, **options).stdout.decode()


class Scene:
    """A service on a Unix socket over a directory, and mounts of it."""

    def __init__(self, sluice, scratch: pathlib.Path, full=False):
        self.sluice, self.scratch, self.full = sluice, scratch, full
        self.served = scratch / "served"
        self.served.mkdir()
        self.stack = contextlib.ExitStack()
        self.service = None
        self.count = 0

    def uri(self, *options):
        """Starts the service, if it does not run; the address of its store."""
        if self.service is None:
            service = Service(self.sluice, [f"x={self.served}"], f"unix:{self.scratch}/s.sock", options)
            self.service = self.stack.enter_context(service)
        return f"{self.service.uri}/x"

    def mount(self, *options, place=None, prefix=()):
        """A new mount of the service, or of another place; its directory."""
        self.count += 1
        directory = self.scratch / f"mnt{self.count}"
        mounted = Mount(self.sluice, place or self.uri(), directory, options, prefix)
        self.mounted = self.stack.enter_context(mounted)
        return directory

    def close(self):
        """Mounts before services: what is closed in the end must still be answered."""
        self.stack.close()


def bytes_of(count, seed=1):
    """So many bytes that no mistake reproduces."""
    import random
    return random.Random(seed).randbytes(count)


def mib(number):
    return number << 20


def on_disk(path):
    return pathlib.Path(path).read_bytes()


os.umask(0o022)
