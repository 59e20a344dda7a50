"""What the checks share: a server with a bucket, and programs and commands that know its credentials."""

import os
import pathlib
import random
import signal
import subprocess
import time

from house.checking import Skip, run
from objects import cutter, servers

PYTHON = "/usr/bin/python3"
ROOT = pathlib.Path(__file__).resolve().parents[2]

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def server_binary():
    given = os.environ.get("SLUICE_S3_SERVER")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [pathlib.Path(given)] if given else [target / kind / "examples/s3_server" for kind in ("debug", "release")]
    return next((place for place in places if place.exists()), None)


def unusable():
    return None if server_binary() else "no server; build it with `cargo build -p object --example s3_server`"


def bytes_of(count, seed=1):
    """So many bytes that no mistake reproduces."""
    return random.Random(seed).randbytes(count)


class Scene:
    """A server whose buckets are directories; `bucket` is one of them."""

    def __init__(self, sluice, scratch: pathlib.Path, full=False):
        self.sluice, self.scratch, self.full = sluice, scratch, full
        self.buckets = scratch / "buckets"
        self.bucket = self.buckets / "bucket"
        self.bucket.mkdir(parents=True)
        self.runtime = scratch / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.mounts = []
        self.server = None
        self.other = None
        self.cutter = None

    def use_versitygw(self):
        """Another server from here on, over the same directories."""
        self.other = servers.Versity(self.scratch, self.full)
        self.know(self.other.start())

    def use_s3proxy(self):
        self.other = servers.S3Proxy(self.scratch)
        self.know(self.other.start())

    def use_best_server(self):
        """versitygw, or where that is not installed and may not be, the one that is built in: it does not keep to itself
        what is not complete. Says whether it is the better one."""
        try:
            self.use_versitygw()
        except Skip:
            self.start()
        return self.other is not None

    def unfinished(self):
        """How many uploads the server keeps that nobody has completed or aborted; it must be versitygw to tell."""
        return self.other.unfinished() if self.other is not None else 0

    def spoil(self, judge):
        """A proxy before the server from here on."""
        port = int(self.environment["AWS_ENDPOINT_URL"].rpartition(":")[2])
        self.cutter = cutter.Cutter(port, judge)
        self.environment["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{self.cutter.port}"
        return self.cutter

    def start(self, port=0):
        self.server = subprocess.Popen(
            [server_binary(), self.buckets, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = {}
        for line in self.server.stdout:
            if not line.strip():
                break
            name, _, value = line.decode().strip().partition("=")
            said[name] = value
        self.know(said)
        return said

    def know(self, said):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.environment = {**kept, **said, "XDG_RUNTIME_DIR": str(self.runtime), "SLUICE_OBJECTS_LINGER": "1"}

    def be_served(self):
        if self.server is None and self.other is None:
            self.start()

    def sluice_run(self, *command, options=(), **more):
        """Runs a program under `sluice run`."""
        self.be_served()
        return run(self.sluice, "run", *options, "--", *command, env=self.environment, **more)

    def command(self, *words, **more):
        """One of sluice's own commands."""
        self.be_served()
        return run(self.sluice, *words, env=self.environment, **more)

    def put(self, key, content):
        path = self.bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def held(self, key):
        path = self.bucket / key
        return path.read_bytes() if path.exists() else None

    def agent_log(self):
        logs = list(self.runtime.glob("sluice/objects-*.log"))
        return "".join(log.read_text() for log in logs)

    def log_agents(self):
        """The agents of this scene's logs."""
        return self.processes(b"log", b"agent")

    def agents(self):
        """Processes of agents that listen in this scene's directory."""
        return self.processes(b"objects-agent")

    def processes(self, *kind):
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if all(word in words for word in kind) and any(str(self.scratch).encode() in word for word in words):
                found.append(int(process.name))
        return found

    def end_server(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        if self.other is not None:
            self.other.end()

    def close(self):
        for mounted in self.mounts:
            subprocess.run([self.sluice, "umount", "--lazy", mounted], capture_output=True)
        for agent in self.log_agents():
            os.kill(agent, signal.SIGKILL)
        if self.cutter is not None:
            self.cutter.end()
        for agent in self.agents():
            try:
                os.kill(agent, signal.SIGTERM)
            except ProcessLookupError:
                pass
        self.end_server()
        end = time.monotonic() + 5
        while self.agents() and time.monotonic() < end:
            time.sleep(0.05)


os.umask(0o022)
