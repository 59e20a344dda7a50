"""Child processes: programs that are timed, and daemons that are ended with the run."""

import atexit
import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Optional

from .measure import Failed

PROGRAM_SECONDS_MAX = 120.0


@dataclass
class Ran:
    """What a program left: its output, and how long it took from start to end."""

    stdout: str
    seconds: float
    cpu_seconds: float = 0.0
    """User and system time, which other load on the machine disturbs less than the time by the clock."""

    def json(self):
        return json.loads(self.stdout)


def run(argv: list[str], *, env: Optional[dict[str, str]] = None, cwd: Optional[str] = None,
        timeout: float = PROGRAM_SECONDS_MAX, cpu: Optional[int] = None) -> Ran:
    """Runs a program to its end. A status other than 0, or no end in time, is a failure that quotes stderr."""
    pin = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
    full_env = {**os.environ, **env} if env else None
    cpu_before = cpu_of_children()
    began = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=full_env, cwd=cwd, text=True,
                             errors="replace", start_new_session=True, preexec_fn=pin)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_group(child)
        raise Failed(f"{os.path.basename(argv[0])} had not ended after {timeout:.0f} s") from None
    except BaseException:
        end_group(child)
        raise
    seconds = time.monotonic() - began
    if child.returncode != 0:
        last = [line for line in err.strip().splitlines() if line.strip()][-2:]
        raise Failed(f"{os.path.basename(argv[0])} ended with status {child.returncode}: "
                     f"{' / '.join(last) or 'no message'}")
    return Ran(out, seconds, cpu_of_children() - cpu_before)


class Answering:
    """A program that answers each line with a line, and ends when there are no more."""

    def __init__(self, argv: list[str], *, cpu: int):
        self.name = os.path.basename(argv[0])
        try:
            self.child = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        except OSError as why:
            raise Failed(f"{self.name} does not start: {why.strerror}") from None

    def ask(self) -> str:
        """Its next answer."""
        try:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # why it ended is said below
        ready, _, _ = select.select([self.child.stdout], [], [], PROGRAM_SECONDS_MAX)
        if not ready:
            raise Failed(f"{self.name} did not answer within {PROGRAM_SECONDS_MAX:.0f} s")
        answer = self.child.stdout.readline()
        if not answer:
            said = self.child.stderr.read().strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"{self.name} gave up: {said[0]}")
        return answer

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_: object) -> None:
        end_group(self.child)


def cpu_of_children() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end_group(child: subprocess.Popen) -> None:
    """Ends a child that leads its own session, and what it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.communicate()


def free_port() -> int:
    """A port of the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_running: list["Daemon"] = []


def _die_with_parent() -> None:
    """In a new child: so that no daemon is left behind, even when the bench itself is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Daemon:
    """A process that serves until it is ended, at the latest when the run ends."""

    def __init__(self, argv: list[str], log: str, *, env: Optional[dict[str, str]] = None):
        self.argv = argv
        self.log = log
        with open(log, "wb") as errors:
            try:
                self.child = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                    env={**os.environ, **env} if env else None, start_new_session=True,
                    preexec_fn=_die_with_parent)
            except OSError as why:
                raise Failed(f"{argv[0]} does not start: {why.strerror}") from None
        _running.append(self)

    def _died(self, waited_for: str) -> Failed:
        with open(self.log, errors="replace") as log:
            last = log.read().strip().splitlines()[-2:]
        return Failed(f"{os.path.basename(self.argv[0])}: {waited_for}: {' / '.join(last) or 'no message'}")

    def line(self, containing: str, seconds: float = 10.0) -> str:
        """Waits for a line of its output that contains some text."""
        end = time.monotonic() + seconds
        seen = b""
        out = self.child.stdout
        assert out is not None
        while time.monotonic() < end:
            ready, _, _ = select.select([out], [], [], 0.1)
            if not ready:
                continue
            got = os.read(out.fileno(), 4096)
            if not got:
                raise self._died("ended early")
            seen += got
            for text in seen.decode(errors="replace").splitlines():
                if containing in text:
                    return text
        raise self._died(f"did not say '{containing}' within {seconds:.0f} s")

    def port(self, number: int, seconds: float = 10.0) -> None:
        """Waits until it answers on a port of the loopback interface."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.child.poll() is not None:
                raise self._died("ended early")
            try:
                socket.create_connection(("127.0.0.1", number), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise self._died(f"did not answer on port {number}")

    def end(self) -> str:
        """Ends it and returns what it still had to say on its output."""
        if self in _running:
            _running.remove(self)
        self.child.terminate()
        try:
            out, _ = self.child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            end_group(self.child)
            out = b""
        return out.decode(errors="replace")


def end_all_daemons() -> None:
    for daemon in list(reversed(_running)):
        daemon.end()


atexit.register(end_all_daemons)
