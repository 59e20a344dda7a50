"""What a fault scenario has at hand, and the registry that the modules in `scenarios/` fill."""

import os
import pathlib
import subprocess

from house import places
from house.services import Service

SECONDS_MAX = 60
SCENARIOS = []


class Skip(Exception):
    """This machine cannot do it."""


class Broken(AssertionError):
    """What must hold does not."""


def scenario(function):
    """Registers a scenario; its name is the function's, its first docstring line says what must hold."""
    SCENARIOS.append(function)
    return function


def hold(condition, *explanation):
    """Fails the scenario unless `condition` is true."""
    if not condition:
        raise Broken(" ".join(str(e) for e in explanation) or "it does not hold")


class House:
    """One scenario's corner: a served directory, and ways to run things against it."""

    def __init__(self, sluice, scratch):
        self.sluice, self.scratch = str(sluice), scratch
        self.served = scratch / "served"
        self.local = scratch / "local"
        self.served.mkdir(parents=True)
        self.local.mkdir()
        (self.served / "file.txt").write_text("the first line\nthe second line\n")
        (self.served / "dir").mkdir()
        (self.served / "dir" / "inner.txt").write_text("inside\n")
        self.closing = []

    def serve(self, *options, export=None, listen=None, served=None):
        """Starts a service of `served` as `far`; over a Unix socket unless told otherwise."""
        service = Service(self.sluice, [export or f"far={served or self.served}"],
                          listen or f"unix:{self.scratch}/far{len(self.closing)}.sock", options)
        self.closing.append(service.stop)
        return service

    def start(self, command, **options):
        """Starts a process that is ended with the scenario."""
        process = subprocess.Popen(list(map(str, command)), stdin=options.pop("stdin", subprocess.DEVNULL),
                                   cwd=options.pop("cwd", self.local), env=environment(), **options)
        self.closing.append(lambda: process.poll() is None and process.kill())
        return process

    def cli(self, *arguments, seconds_max=SECONDS_MAX):
        """Runs `sluice ARGUMENTS`; a hang fails the scenario."""
        return finish([self.sluice, *arguments], self.local, seconds_max)

    def run(self, uri, script, seconds_max=SECONDS_MAX, options=()):
        """Runs a shell script with /far mapped to `uri`."""
        return finish([self.sluice, "run", *options, "--map", f"/far={uri}", "--", "/bin/bash", "-c", script],
                      self.local, seconds_max)

    def python(self, uri, program, **options):
        """The command that runs a Python program with /far mapped to `uri`."""
        return [self.sluice, "run", "--map", f"/far={uri}", "--", "/usr/bin/python3", "-u", "-c", program]

    def close(self):
        for end in reversed(self.closing):
            end()


def environment():
    kept = {k: v for k, v in os.environ.items() if k.startswith("SLUICE_")}
    return {"PATH": places.CASE_PATH, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", **kept}


def finish(command, cwd, seconds_max):
    """Runs to the end, or fails because there is none."""
    try:
        return subprocess.run(list(map(str, command)), cwd=cwd, env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=seconds_max)
    except subprocess.TimeoutExpired:
        raise Broken(f"no end after {seconds_max} s: {' '.join(map(str, command))}") from None


def clear_sentence(done, *mentions):
    """A command failed with a message for people: one that names things, without traces or panics."""
    said = done.stderr.strip()
    hold(done.returncode not in (0, None) and done.returncode > 0, "exit status", done.returncode, "of a failure:", said)
    hold(said, "it failed without a word")
    hold("panicked" not in said and "RUST_BACKTRACE" not in said, "a panic instead of a sentence:", said)
    for mention in mentions:
        alternatives = mention if isinstance(mention, tuple) else (mention,)
        hold(any(a.lower() in said.lower() for a in alternatives), "says nothing of", alternatives, "but:", said)


def resident_mib(pid):
    """Resident memory of a process in MiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))
