"""Where things are: a local disk, logs on it, and a far place that a network of limited bandwidth leads to."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Optional

from lib import services
from lib.context import Bench
from lib.measure import Failed
from lib.process import Daemon, Ran, free_port, run

BYTES_PER_SECOND = 100_000_000
"""What the far place takes."""

DISK = os.environ.get("SLUICE_BENCH_DISK", "/var/tmp")
"""A directory on a local disk. Logs on a tmpfs would not show what a sync costs."""

HERE = os.path.dirname(os.path.abspath(__file__))


class Log:
    """A log in a directory, over a target; `prefix` stands before every command."""

    def __init__(self, binary: str, folder: str, target: str, prefix: Sequence[str] = ()):
        self.binary, self.folder, self.target, self.prefix = binary, folder, target, list(prefix)

    def command(self, argv: Sequence[str], options: Sequence[str] = ()) -> list[str]:
        """What runs a program so that the target's files are written through the log."""
        return [*self.prefix, self.binary, "run", "--log", self.folder, "--to", self.target, *options, "--", *argv]

    def run(self, argv: Sequence[str], options: Sequence[str] = ()) -> Ran:
        return run(self.command(argv, options))

    def do(self, *words: str) -> Ran:
        """`sluice log WORDS DIR`."""
        return run([*self.prefix, self.binary, "log", *words, self.folder])

    def agent(self) -> Optional[int]:
        """The process that has the log."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            with open(os.path.join(self.folder, "agent.json"), encoding="utf-8") as file:
                return int(json.load(file)["pid"])
        return None

    def end(self, how: int = signal.SIGTERM) -> None:
        """Ends the agent, if there is one; what it has not drained stays in the log."""
        pid = self.agent()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
            for _ in range(600):
                os.kill(pid, 0)
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        return
                time.sleep(0.05)
            raise Failed(f"the agent of {self.folder} had not ended after 30 s")

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Places:
    """The places of one run."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.writer = bench.tools["logwriter"]
        need = bench.pick(3 << 30, 12 << 30)
        if not os.access(DISK, os.W_OK) or shutil.disk_usage(DISK).free < need:
            raise Failed(f"{DISK} has no {need >> 30} GiB for logs: SLUICE_BENCH_DISK names another directory")
        self.root = tempfile.mkdtemp(prefix="sluice-bench-log-", dir=DISK)
        self._made: list[Log] = []

    def disk(self, *parts: str) -> str:
        """A path on the local disk."""
        return os.path.join(self.root, *parts)

    def log(self, target: Optional[str] = None, prefix: Sequence[str] = (), on: Optional[str] = None) -> Log:
        """A new log, on the disk unless told, over the far directory unless told."""
        folder = os.path.join(on or self.root, f"log-{len(self._made)}")
        made = Log(self.bench.binary, folder, target or self.bench.space.far(), prefix)
        self._made.append(made)
        return made

    def remove(self) -> None:
        for log in self._made:
            log.remove()
        shutil.rmtree(self.root, ignore_errors=True)


class Far:
    """A service that is reached at `BYTES_PER_SECOND`: `prefix` stands before programs that are to reach it."""

    def __init__(self, uri: str, prefix: Sequence[str], how: str):
        self.uri, self.prefix, self.how = uri, list(prefix), how

    def direct(self, binary: str, argv: Sequence[str]) -> list[str]:
        """Runs a program that writes there itself; it names files by `path`."""
        return [*self.prefix, binary, "run", "--map", f"/far={self.uri}", "--", *argv]


def _in_namespace(name: str) -> list[str]:
    return ["ip", "netns", "exec", name]


def _ip(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def far_place(bench: Bench) -> Iterator[Far]:
    """The service, in a network namespace whose loopback is slowed by tc, or behind a proxy where that cannot be made."""
    port = free_port()
    name = f"sluice-bench-{os.getpid()}"
    try:
        _ip("ip", "netns", "add", name)
    except (Failed, OSError):
        name = ""
    try:
        prefix = _in_namespace(name) if name else []
        how = "behind a proxy"
        if name:
            try:
                _ip("ip", "-n", name, "link", "set", "lo", "up")
                _ip(*prefix, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", f"{BYTES_PER_SECOND * 8}bit",
                    "burst", "512kb", "latency", "100ms")
                how = "by tc"
            except Failed:
                _ip("ip", "netns", "del", name)
                name, prefix = "", []
        # Its files are in memory, so that the network is what limits.
        serve = [*prefix, bench.binary, "serve", f"{services.STORE}={bench.space.far()}", "--listen", f"tcp:127.0.0.1:{port}"]
        daemon = Daemon(serve, bench.space.run("far.log"))
        daemon.line("listening")
        daemons = [daemon]
        if not name:
            behind, port = port, free_port()
            daemons.append(Daemon([sys.executable, os.path.join(HERE, "slow.py"), str(port), str(behind),
                                   str(BYTES_PER_SECOND)], bench.space.run("slow.log")))
            daemons[-1].line("listening")
        try:
            yield Far(f"scdc+tcp://127.0.0.1:{port}/{services.STORE}", prefix, how)
        finally:
            for daemon in daemons:
                daemon.end()
    finally:
        if name:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
