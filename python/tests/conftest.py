"""What the tests share: services in this process and beside it."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import sluice


@pytest.fixture
def far(tmp_path):
    """A directory that a service of this process offers: (its path, its address)."""
    directory = tmp_path / "far"
    directory.mkdir()
    with sluice.Service({"data": directory, "memory": "mem:"}) as service:
        yield directory, f"{service.uri}/data"


@pytest.fixture
def uri(far):
    return far[1]


@pytest.fixture(scope="session")
def program():
    """The `sluice` program: that of the package, else the one that is named or found."""
    bundled = pathlib.Path(sluice.__file__).parent / "_bin" / "sluice"
    found = str(bundled) if bundled.exists() else os.environ.get("SLUICE_BIN") or shutil.which("sluice")
    if not found:
        pytest.skip("there is no sluice program; install the wheel, or set SLUICE_BIN")
    return found


@pytest.fixture
def python(tmp_path):
    """Runs a program of Python, which must succeed, and returns what it printed."""

    def run(text, **variables):
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, cwd=tmp_path,
            env=os.environ | variables)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    return run


class Served:
    """A `sluice serve` that can be stopped, continued and killed."""

    def __init__(self, program, socket, *stores):
        self.process = subprocess.Popen(
            [program, "serve", *stores, "--listen", f"unix:{socket}"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        said = re.search(r"listening on (\S+)/", line)
        assert said, line
        self.uri = said.group(1)

    def stop(self):
        """Lets it answer no more. It is over when all of its threads stand still."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        while any(task.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "T" for task in tasks.iterdir()):
            time.sleep(0.001)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def served(program, tmp_path):
    """Starts `sluice serve`: `served("data=/dir")`."""
    running = []

    def start(*stores):
        running.append(Served(program, tmp_path / f"s{len(running)}.sock", *stores))
        return running[-1]

    yield start
    for one in running:
        one.end()
