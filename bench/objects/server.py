"""An S3 server with a bucket, and what programs need to know of it."""

import os
import shutil
import tempfile

from lib.context import Bench
from lib.measure import Failed
from lib.process import Daemon, Ran, free_port, run

KEY, SECRET = "AKEXAMPLE", "secret-of-the-example"
DISK = os.environ.get("SLUICE_BENCH_DISK", "/var/tmp")
"""A directory on a local disk, for logs."""


def program(binary: str) -> str:
    """Where versitygw is."""
    target = os.path.dirname(os.path.dirname(binary))
    places = [os.environ.get("SLUICE_VERSITYGW"), os.path.join(target, "test-servers/versitygw/bin/versitygw"),
              shutil.which("versitygw")]
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    raise Failed("versitygw is not installed: `./dev test --full --only objects` builds it, or SLUICE_VERSITYGW names it")


class Server:
    """The server, a bucket named `bucket`, and a directory on a disk."""

    def __init__(self, bench: Bench):
        self.bench, self.port = bench, free_port()
        self.bucket = bench.space.far("bucket")
        self.requests_log = bench.space.run("requests.log")
        self.disk = tempfile.mkdtemp(prefix="sluice-bench-objects-", dir=DISK)
        self._fresh = 0
        os.makedirs(self.bucket)
        side = bench.space.run("sidecar")
        os.mkdir(side)
        self.daemon = Daemon(
            [program(bench.binary), "--port", f"127.0.0.1:{self.port}", "--quiet", "--access-log", self.requests_log,
             "posix", "--sidecar", side, bench.space.far()], bench.space.run("versitygw.log"),
            env={"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET})
        self.daemon.port(self.port)

    def environment(self) -> dict[str, str]:
        """For sluice, with an agent that has read nothing yet."""
        self._fresh += 1
        runtime = os.path.join(self.disk, f"runtime-{self._fresh}")
        os.mkdir(runtime, 0o700)
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ALLOW_HTTP": "true",
                "XDG_RUNTIME_DIR": runtime, "SLUICE_OBJECTS_LINGER": "0.2"}

    def sluice(self, *words: str) -> Ran:
        return run([self.bench.binary, *words], env=self.environment())

    def rclone(self, *words: str) -> Ran:
        """rclone with the bucket as `s3:bucket`."""
        said = {"TYPE": "s3", "PROVIDER": "Other", "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1",
                "ENDPOINT": f"http://127.0.0.1:{self.port}", "FORCE_PATH_STYLE": "true", "NO_CHECK_BUCKET": "true"}
        if shutil.which("rclone") is None:
            raise Failed("rclone is not installed (package rclone)")
        known = {f"RCLONE_CONFIG_S3_{name}": value for name, value in said.items()}
        # It asks whether it may send each part, and versitygw does not answer that: by itself rclone waits a second for
        # the answer, before each part. A digest of the whole file, besides those of its parts, nobody else makes.
        quick = ["--expect-continue-timeout", "0", "--s3-disable-checksum"]
        # What stands in AWS_CA_BUNDLE is for services with TLS; rclone refuses to start with it.
        return run(["rclone", "--config", "", *quick, *words], env={**known, "AWS_CA_BUNDLE": ""})

    def requests(self) -> int:
        """How many the server has answered."""
        try:
            with open(self.requests_log, "rb") as log:
                return log.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def end(self) -> None:
        self.daemon.end()
        shutil.rmtree(self.disk, ignore_errors=True)
