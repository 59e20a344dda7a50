"""S3 servers that are not ours, from their own registries; each serves directories as buckets, on loopback."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

from house import installed, places
from house.checking import Failed, Skip

VERSITYGW = "v1.8.0"
# What a service calls itself, and what its users know.
KEYS = {"AWS_ACCESS_KEY_ID": "AKEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-example"}
START_SECONDS_MAX = 20


def versitygw(may_install):
    """The program, built from its source by Go's module proxy: some minutes."""
    directory = places.target_directory() / "test-servers" / "versitygw"
    binary = directory / "bin" / "versitygw"
    if not may_install and not binary.exists():
        raise Skip("versitygw is not installed yet; --full does so")
    go = shutil.which("go")
    if go is None and not binary.exists():
        raise Skip("golang-go is not installed, which builds versitygw")

    def install():
        environment = os.environ | {"GOBIN": str(directory / "bin"), "GOFLAGS": "-p=2"}
        directory.mkdir(parents=True)
        installed.run(go, "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}", env=environment)

    return installed.once(directory, VERSITYGW, install) / "bin" / "versitygw"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Versity:
    """versitygw over directories: what is in them are the objects."""

    def __init__(self, scratch: pathlib.Path, may_install, port=0):
        self.binary = versitygw(may_install)
        self.scratch, self.port = scratch, port or free_port()
        self.process = None

    def start(self):
        side, data = self.scratch / "sidecar", self.scratch / "buckets"
        side.mkdir(exist_ok=True)
        environment = os.environ | {
            "ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
        with open(self.scratch / "versitygw.log", "ab") as out:
            self.process = subprocess.Popen(
                [self.binary, "--port", f"127.0.0.1:{self.port}", "posix", "--sidecar", side, data],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        end = time.monotonic() + START_SECONDS_MAX
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"versitygw does not start: {(self.scratch / 'versitygw.log').read_text()[-500:]}")
            time.sleep(0.05)
        return KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ALLOW_HTTP": "true",
                       "AWS_REGION": "us-east-1"}

    def unfinished(self):
        """How many uploads it keeps that nobody has completed or aborted."""
        return sum(1 for _ in (self.scratch / "buckets").glob("*/.sgwtmp/multipart/*/*"))

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
