"""The area `capi`: what programs get that use the C library, beside programs that are preloaded and plain sockets."""

import os
import subprocess

from lib.context import Bench
from lib.build import SOURCES, is_current
from lib.measure import Failed, Lane
from lib.process import Daemon, run
from lib.services import serve, sluice_uri
from lib.ways import Sluice, check_binary
from lib.workspace import forget

QUICK_SECONDS = 25.0
"""What a quick run plans with."""

NEED_BYTES = {"quick": 1 << 30, "full": 2 << 30}
"""Room that the far file takes, with some to spare."""

BUFFER = 1 << 20
FILE = "get.dat"
GET_MIN, TRIP_MAX = 0.9, 2.0


def program(bench: Bench) -> str:
    """Compiles the program against the library beside the binary; returns its path."""
    library = os.path.dirname(os.path.abspath(bench.binary))
    source = os.path.join(SOURCES, "commands.c")
    target = os.path.join(os.path.dirname(bench.tools["transfer"]), "commands")
    if not os.path.exists(os.path.join(library, "libsluice_c.so")):
        raise Failed(f"{library} has no libsluice_c.so: cargo build --release -p capi")
    if not is_current(target, source):
        include = os.path.join(os.path.dirname(SOURCES), "..", "crates", "capi", "include")
        argv = ["cc", "-O2", "-Wall", "-Wextra", "-I", include, "-o", target, source, "-L", library, "-lsluice_c",
                f"-Wl,-rpath,{library}"]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failed(f"cc cannot compile commands.c: {done.stdout.strip()}")
    return target


def get(bench: Bench, commands: str) -> None:
    """A large `get` through next functions, beside read(2) of a preloaded program: the same service, file and buffer."""
    size = bench.pick(256 << 20, 1 << 30)
    bench.say(f"getting {size >> 20} MiB")
    run([bench.tools["transfer"], "write", bench.space.far(FILE), str(size), str(BUFFER)])
    served = serve(bench.binary, bench.space, "uds")
    preloaded = Sluice("uds", "preloaded", bench.binary, sluice_uri(served.address))

    def stream() -> float:
        with preloaded.session() as session:
            return session.timed([bench.tools["transfer"], "read", session.path(FILE), str(size), str(BUFFER)],
                                 reads=[FILE])

    argv = [commands, "get", sluice_uri(served.address), FILE, str(size), str(BUFFER)]
    lanes = {"get": Lane(lambda: float(run(argv).json()["seconds"])), "preloaded": Lane(stream)}
    figures, fallen = bench.alternate(lanes, quick=7, full=9, budget=6.0, at_least=3)
    bench.fell("capi.get", fallen)
    served.daemon.end()
    forget(bench.space.far(FILE))
    if figures.get("get"):
        bench.board.add_ratio("capi.get.vs_preloaded", figures["preloaded"], figures["get"], "higher", GET_MIN)
        bench.board.add("capi.get.bandwidth", [size / s / 1e6 for s in figures["get"]], "MB/s", "higher")
    else:
        bench.board.fault("capi.get", fallen.get("get", "nothing was measured"))


def trips(bench: Bench, commands: str) -> None:
    """A command that a hook answers, over a Unix socket, beside 64 bytes there and back between two processes."""
    bench.say("round trips of commands")
    count = str(bench.pick(5000, 30000))
    sockets = {role: bench.space.run(f"{role}.sock") for role in ("serve", "echo")}
    for role, socket in sockets.items():
        Daemon([commands, role, socket], bench.space.run(f"{role}.log")).line("listening")
    uri = f"scdc+uds://{sockets['serve']}/hook"
    lanes = {"command": Lane(lambda: float(run([commands, "trips", uri, count]).json()["seconds"])),
             "raw": Lane(lambda: float(run([commands, "raw", sockets["echo"], count]).json()["seconds"]))}
    figures, fallen = bench.alternate(lanes, quick=7, full=9, budget=6.0, at_least=3)
    bench.fell("capi.command", fallen)
    if figures.get("command"):
        bench.board.add_ratio("capi.command.vs_raw", figures["command"], figures["raw"], "lower", TRIP_MAX)
        bench.board.add("capi.command.round_trip", [s * 1e6 for s in figures["command"]], "µs", "lower")
        bench.board.add("capi.raw.round_trip", [s * 1e6 for s in figures["raw"]], "µs", "lower")
    else:
        bench.board.fault("capi.command", fallen.get("command", "nothing was measured"))


SECTIONS = {"get": (get, 12), "trips": (trips, 24)}
"""What measures each section, and by which second of a quick run it should have ended."""


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
        commands = program(bench)
    except Failed as why:
        bench.board.fault("capi", str(why))
        return
    bench.go_through("capi", SECTIONS, only, commands)
