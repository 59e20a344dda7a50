"""What a log holds to a bucket, beside rclone with a file."""

import filecmp
import json
import os
import shutil
import signal
import time

from lib.context import Bench
from lib.measure import Failed, Lane
from lib.workspace import forget

from .server import Server

RCLONE_MIN = 0.9
"""Of what rclone reaches."""
MIB = 1 << 20


def measure(bench: Bench, server: Server) -> None:
    if bench.rushed(15, "upload"):
        return
    size = bench.pick(256, 1024) * MIB
    bench.say(f"upload of {size // MIB} MiB beside rclone")
    source, held = os.path.join(server.disk, "source"), os.path.join(server.bucket, "uploaded")
    with open(source, "wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
    count = {"rclone": 0, "drain": 0}

    def counted(name: str, work) -> float:
        before = server.requests()
        seconds = work()
        count[name] = server.requests() - before
        if not filecmp.cmp(source, held, shallow=False):
            raise Failed(f"{name}: the object is not what was written")
        forget(held)
        return seconds

    def drain() -> float:
        log = os.path.join(server.disk, "log")
        shutil.rmtree(log, ignore_errors=True)
        # All of it stays in the log until it is asked for.
        server.sluice("run", "--log", log, "--to", "s3://bucket", "--log-bandwidth", "1", "--",
                      "cp", source, "s3://bucket/uploaded")
        end_agent(log)
        seconds = server.sluice("log", "drain", log).seconds
        shutil.rmtree(log, ignore_errors=True)
        return seconds

    lanes = {"rclone": Lane(lambda: counted("rclone", lambda: server.rclone("copyto", source, "s3:bucket/uploaded").seconds)),
             "drain": Lane(lambda: counted("drain", drain))}
    figures, fallen = bench.alternate(lanes, quick=3, full=5, budget=20, at_least=1, warm=0)
    if "drain" in fallen:
        raise Failed(fallen["drain"])
    bench.board.add_ratio("upload.drain.vs_rclone", figures["rclone"], figures["drain"], "higher", RCLONE_MIN)
    for name in lanes:
        bench.board.add(f"upload.{name}.bandwidth", [size / s / 1e6 for s in figures[name]], "MB/s", "higher")
        bench.board.add(f"upload.{name}.requests", [count[name]], "requests", "lower")
    forget(source)


def end_agent(log: str) -> None:
    """Ends the agent of a log, which keeps what it has not drained."""
    try:
        with open(os.path.join(log, "agent.json"), encoding="utf-8") as file:
            pid = int(json.load(file)["pid"])
        os.kill(pid, signal.SIGTERM)
        for _ in range(600):
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
            time.sleep(0.05)
    except (FileNotFoundError, ProcessLookupError):
        return
    raise Failed("the log's agent had not ended after 30 s")
