"""Starting and ending `sluice serve` processes."""

import pathlib
import re
import subprocess
import threading
import time

READY_SECONDS_MAX = 15


class ServiceFailed(Exception):
    """A service did not come up, or went away."""


class Service:
    """One running `sluice serve`.

    `uri` is what it said it listens on; `prefix` goes before the command (for instance
    `ip netns exec NAME`).
    """

    def __init__(self, sluice, exports, listen, options=(), prefix=(), log: pathlib.Path | None = None):
        self.command = [*prefix, str(sluice), "serve", *exports, *options, "--listen", listen]
        self.log = log
        self.uri = None
        self.lines = []
        self._start()

    def _start(self):
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        threading.Thread(target=self._follow, args=(self.process.stdout, self._ready), daemon=True).start()
        if not self._ready.wait(READY_SECONDS_MAX) or self.uri is None:
            self.stop()
            raise ServiceFailed(f"{' '.join(self.command)} did not say where it listens: {self.lines[-5:]}")

    def _follow(self, pipe, ready):
        for raw in pipe:
            line = raw.decode(errors="replace").rstrip()
            self.lines.append(line)
            if self.log:
                with open(self.log, "a") as log:
                    log.write(line + "\n")
            said = re.search(r"listening on (scdc\+\S+)", line)
            if said:
                self.uri = said.group(1).rstrip("/")
                ready.set()
        ready.set()

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL, as a crash would."""
        self.process.kill()
        self.process.wait()

    def restart(self):
        """Starts it again on the same address; a socket file that the dead one left is its own problem."""
        port = re.match(r"scdc\+tcp://(.*:\d+)", self.uri or "")
        if port:
            self.command[-1] = f"tcp:{port.group(1)}"
        self.uri = None
        self._start()

    def stop(self):
        """SIGTERM, then SIGKILL for one that does not listen to it. True if SIGTERM was enough."""
        if not self.alive():
            return True
        self.process.terminate()
        try:
            self.process.wait(5)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def wait_until(condition, seconds_max, every_seconds=0.02):
    """Polls until `condition()` is true; False when it did not become true in time."""
    end = time.monotonic() + seconds_max
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(every_seconds)
    return bool(condition())
