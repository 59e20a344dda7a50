#!/usr/bin/python3
"""Reading and writing one large file in order through mounts: `sluice mount`, sshfs, rclone, and without any.

    bench/mount.py [--mib 1024] [--rounds 3] [--binary target/release/sluice]

All ways take turns in each round, on a mount of their own that nothing has used before; the far side is tmpfs where
there is one. Printed are MiB/s, and what Sluice reaches of each alternative.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

from lib.measure import Failed
from lib.peers import Mount, Rclone, Sshd, Sshfs
from lib.process import end_all_daemons
from lib.workspace import Workspace, forget

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCK_BYTES = 1 << 20


@contextlib.contextmanager
def sluice(binary, space):
    """A service on a Unix socket, and a mount of it."""
    socket = space.run("far.sock")
    forget(socket)
    service = subprocess.Popen([binary, "serve", f"x={space.far()}", "--listen", f"unix:{socket}"],
                               stdout=subprocess.PIPE)
    mount = None
    try:
        service.stdout.readline()
        mount = Mount(space, [binary, "mount", f"scdc+uds://{socket}/x", "MOUNT"])
        yield mount.point
    finally:
        if mount:
            mount.close()
        service.terminate()
        service.wait()


@contextlib.contextmanager
def peer(way):
    with way.session() as session:
        yield session.root


def mib_per_second(path, mib, writes, settled):
    """Time of one pass with read(2) or write(2) of 1 MiB; writing includes close, and arriving at the far side."""
    block = memoryview(os.urandom(BLOCK_BYTES))
    began = time.monotonic()
    if writes:
        with open(path, "wb", buffering=0) as file:
            for _ in range(mib):
                if file.write(block) != BLOCK_BYTES:
                    raise Failed("a short write")
        while not os.path.exists(settled) or os.path.getsize(settled) != mib << 20:
            time.sleep(0.002)
    else:
        buffer, total = bytearray(BLOCK_BYTES), 0
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
        if total != mib << 20:
            raise Failed(f"{total} bytes were read")
    return mib / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target"))
    parser.add_argument("--binary", default=os.path.join(target, "release", "sluice"))
    options = parser.parse_args()
    space = Workspace((options.mib + 256) << 20)
    try:
        ways = {"without a mount": lambda: contextlib.nullcontext(space.far()),
                "sluice mount": lambda: sluice(options.binary, space)}
        with contextlib.suppress(Failed):
            sshd = Sshd(space)
            for label, kind in (("sshfs", Sshfs), ("rclone mount", Rclone)):
                try:
                    way = kind(space, sshd)
                    ways[label] = lambda way=way: peer(way)
                except Failed as why:
                    print(f"{label}: {why}", file=sys.stderr)
        found = {(label, act): [] for label in ways for act in ("write", "read")}
        for _ in range(options.rounds):
            for label, way in ways.items():
                for act in ("write", "read"):
                    if act == "write":
                        forget(space.far("file"))
                    with way() as root:
                        speed = mib_per_second(os.path.join(root, "file"), options.mib, act == "write",
                                               space.far("file"))
                    found[label, act].append(speed)
        print(f"{options.mib} MiB, {options.rounds} rounds, far side on {'tmpfs' if space.on_tmpfs else 'disk'}")
        for act in ("write", "read"):
            ours = found["sluice mount", act]
            for label in ways:
                speeds = found[label, act]
                ratio = statistics.median(a / b for a, b in zip(ours, speeds))
                print(f"{act:<6} {label:<16} {statistics.median(speeds):8.0f} MiB/s   sluice mount / it {ratio:6.2f}")
    finally:
        end_all_daemons()
        space.remove()


if __name__ == "__main__":
    main()
