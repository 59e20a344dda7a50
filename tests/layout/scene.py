"""What the checks of datasets share: a dataset that is served, and programs that are carried to it."""

import contextlib
import os
import pathlib
import shutil
import subprocess

from house.checking import Skip, run, tool, want
from house.services import Service

PYTHON = "/usr/bin/python3"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# What is done with gigabytes takes its time.
SECONDS_MAX = 300

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Scene:
    """A dataset in `dataset/`, and a directory for programs to work in."""

    def __init__(self, sluice, scratch: pathlib.Path, full=False):
        self.sluice, self.scratch, self.full = sluice, scratch, full
        self.directory, self.local = scratch / "dataset", scratch / "local"
        self.directory.mkdir()
        self.local.mkdir()
        self.stack = contextlib.ExitStack()

    def compile(self, source, *flags):
        """A program of `programs/`, built; its path."""
        compiler = tool({".c": "gcc", ".f90": "gfortran"}[pathlib.Path(source).suffix])
        program = self.scratch / f"{source}.program{len(flags)}"
        run(compiler, "-O2", *flags, "-o", program, PROGRAMS / source, cwd=self.scratch)
        return program

    @contextlib.contextmanager
    def dataset(self, text, *replicas):
        """Serves a dataset of this definition; its views are below the URI that this gives."""
        path = self.directory / "data.drepl"
        path.write_text(text + "\n".join(replicas) + "\n")
        with Service(self.sluice, [f"p={path}"], f"unix:{self.scratch}/s.sock") as service:
            yield f"{service.uri}/p"
            want(service.stop(), "the service had to be killed")
        done = run(self.sluice, "layout", "status", path, expect=None)
        want(done.returncode == 0, f"status afterwards: {done.stdout.decode()}{done.stderr.decode()}")

    def forget(self):
        """The dataset is as if it had never been."""
        shutil.rmtree(self.directory)
        self.directory.mkdir()

    def carry(self, uri, *command, **options):
        """Runs a program that sees the views as files of /far; what it printed."""
        command = [self.sluice, "run", "--map", f"/far={uri}", "--", *command]
        return run(*command, cwd=self.local, seconds_max=SECONDS_MAX, **options).stdout.decode()

    def python(self, script, *arguments, uri=None, python=PYTHON):
        """Runs a Python script, carried if there is a URI; it must not fail."""
        command = [python, "-c", script, *arguments]
        if uri:
            return self.carry(uri, *command)
        return run(*command, cwd=self.local, seconds_max=SECONDS_MAX).stdout.decode()

    def cat(self, uri, view):
        return run(self.sluice, "cat", f"{uri}/{view}", seconds_max=SECONDS_MAX).stdout

    def close(self):
        self.stack.close()


def needs(*modules, python=PYTHON):
    """Skips unless Python has these modules."""
    for module in modules:
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
            raise Skip(f"{python} has no {module}")


os.umask(0o022)
