"""What the bench starts itself: Sluice's services, plain sockets, and the long wire between two ends."""

import json
import os
from dataclasses import dataclass
from typing import Optional

from .measure import Failed
from .process import Daemon, free_port, run
from .workspace import Workspace

STORE = "bench"
"""The name under which the far directory is served."""


@dataclass
class Endpoint:
    """Where something listens. `address` is unix:PATH or tcp:PORT, as the helper programs take it."""

    daemon: Daemon
    address: str

    def uri(self) -> str:
        """The far directory behind it, if it leads to Sluice."""
        return sluice_uri(self.address)


def sluice_uri(address: str) -> str:
    kind, rest = address.split(":", 1)
    return f"scdc+uds://{rest}/{STORE}" if kind == "unix" else f"scdc+tcp://127.0.0.1:{rest}/{STORE}"


def new_address(space: Workspace, kind: str, name: str) -> str:
    """A free address of a kind, 'uds' or 'tcp'."""
    return f"unix:{space.run(name + '.sock')}" if kind == "uds" else f"tcp:{free_port()}"


def serve(binary: str, space: Workspace, kind: str) -> Endpoint:
    """Starts `sluice serve` for the far directory."""
    address = new_address(space, kind, f"serve-{kind}")
    listen = address if kind == "uds" else f"tcp:127.0.0.1:{address.removeprefix('tcp:')}"
    daemon = Daemon([binary, "serve", f"{STORE}={space.far()}", "--listen", listen],
                    space.run(f"serve-{kind}.log"))
    daemon.line("listening")
    return Endpoint(daemon, address)


def far_socket(rawsock: str, space: Workspace, role: str, kind: str, buffer: int,
               file: Optional[str] = None) -> Endpoint:
    """Starts the far end of a plain socket pair; role is 'source' or 'sink'."""
    name = f"{role}-{kind}-{'file' if file else 'memory'}"
    address = new_address(space, kind, name)
    daemon = Daemon([rawsock, role, address, str(buffer), *([file] if file else [])],
                    space.run(name + ".log"))
    daemon.line("listening")
    return Endpoint(daemon, address)


def near_socket(rawsock: str, direction: str, far: Endpoint, buffer: int, size: int) -> float:
    """Moves `size` bytes through a plain socket ('get' or 'put'); returns the seconds."""
    ran = run([rawsock, direction, far.address, str(buffer), str(size)])
    return float(ran.json()["seconds"])


class Wire:
    """A proxy that delays each direction, without serialising, and counts round trips."""

    _count = 0

    def __init__(self, proxy: str, space: Workspace, kind: str, target: str, delay_ms: float):
        Wire._count += 1
        name = f"wire-{Wire._count}"
        address = new_address(space, kind, name)
        daemon = Daemon([proxy, address, target, str(int(delay_ms * 1000))], space.run(name + ".log"))
        daemon.line("listening")
        self.endpoint = Endpoint(daemon, address)

    def end(self) -> dict:
        """Ends it; returns its counts: round_trips, frames_up, bytes_up, bytes_down."""
        told = self.endpoint.daemon.end().strip().splitlines()
        if not told:
            raise Failed("proxy ended without telling its counts")
        return json.loads(told[-1])


def machine() -> dict:
    """What figures depend on: processor, cores, memory, kernel."""
    model = "unknown"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": model, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1),
            "kernel": os.uname().release, "load_before": round(os.getloadavg()[0], 2)}
