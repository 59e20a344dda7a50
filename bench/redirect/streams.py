"""Streaming through uds and tcp against plain sockets, and the paper's Figure 4."""

from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.services import far_socket, near_socket
from lib.ways import Way
from lib.workspace import forget

BUFFER = 1 << 20
VS_RAW_MIN = 0.8
READ, WRITTEN = "stream.dat", "written.dat"


def moved(bench: Bench, way: Way, mode: str, size: int) -> float:
    """Seconds to move `size` bytes by a mode of the transfer program, open and close included."""
    reading = mode in ("read", "fread")
    name = READ if reading else WRITTEN
    if not reading:
        forget(bench.space.far(name))
    with way.session() as session:
        argv = [bench.tools["transfer"], mode, session.path(name), str(size), str(BUFFER)]
        return session.timed(argv, reads=[name] if reading else [], writes=[] if reading else [name])


def verify_written(bench: Bench, size: int) -> None:
    """Compares every byte that the last write left on the far side."""
    run([bench.tools["transfer"], "check", bench.space.far(WRITTEN), str(size), str(BUFFER)])


def against_sockets(bench: Bench, kind: str, direction: str, size: int) -> None:
    """One transport and direction: ours, memory to memory over a plain socket, and with the file at the far end.

    Beside them the far file without any transport: no way through a socket can be expected to be faster.
    """
    rawsock = bench.tools["rawsock"]
    way = bench.ours.get(kind)
    role, verb = ("source", "get") if direction == "read" else ("sink", "put")
    far_file = bench.space.far(READ if direction == "read" else "raw-written.dat")
    memory = far_socket(rawsock, bench.space, role, kind, BUFFER)
    file = far_socket(rawsock, bench.space, role, kind, BUFFER, far_file)

    def file_and_socket() -> float:
        if direction == "write":
            forget(far_file)
        return near_socket(rawsock, verb, file, BUFFER, size)

    lanes = {"raw": Lane(lambda: near_socket(rawsock, verb, memory, BUFFER, size))}
    if way:
        lanes[kind] = Lane(lambda: moved(bench, way, direction, size))
    lanes["file_and_socket"] = Lane(file_and_socket)
    lanes["local"] = Lane(lambda: moved(bench, bench.local, direction, size))
    figures, fallen = bench.alternate(lanes, quick=7, full=9, budget=1.4, at_least=3)
    bench.fell(f"stream.{direction}", fallen)
    memory.daemon.end()
    file.daemon.end()
    prefix = f"stream.{direction}.{kind}"
    if direction == "write":
        forget(far_file)
        if figures.get(kind):
            try:
                verify_written(bench, size)
            except Failed as why:
                bench.board.fault(prefix, str(why))
                return
    # Bandwidths, so that higher is better: the ratio of two is that of the times turned round.
    if figures.get(kind):
        bench.board.add_ratio(f"{prefix}.vs_raw", figures["raw"], figures[kind], "higher", VS_RAW_MIN)
        bench.board.add_ratio(f"{prefix}.vs_file_and_socket", figures["file_and_socket"], figures[kind], "higher")
        bench.board.add(f"{prefix}.bandwidth", [size / s / 1e6 for s in figures[kind]], "MB/s", "higher")
    bench.board.add_ratio(f"{prefix}.local_vs_raw", figures["raw"], figures["local"], "higher")
    bench.board.add(f"stream.{direction}.raw_{kind}.bandwidth", [size / s / 1e6 for s in figures["raw"]], "MB/s",
                    "higher")


def against_peers(bench: Bench, size: int) -> None:
    """Streaming reads through the alternatives, beside ours in the same rounds."""
    lanes = {"local": Lane(lambda: moved(bench, bench.local, "read", size))}
    for way in [*bench.ours.values(), *bench.peers]:
        if bench.quick and way.name in ("direct", "scp"):
            continue
        lanes[way.name] = Lane(lambda way=way: moved(bench, way, "read", size))
    figures, fallen = bench.alternate(lanes, quick=1, full=3, warm=0)
    bench.fell("peers.stream.read", fallen)
    best = [min(values) for values in zip(*(figures[way.name] for way in bench.peers if figures.get(way.name)))]
    for kind in ("uds", "tcp"):
        if figures.get(kind) and best:
            bench.board.add_ratio(f"peers.stream.read.{kind}.vs_best_peer", best, figures[kind], "higher")
    for name, seconds in figures.items():
        bench.board.add(f"peers.stream.read.{name}.bandwidth", [size / s / 1e6 for s in seconds], "MB/s", "higher")


def figure4(bench: Bench, size: int) -> None:
    """Bandwidth of fread and fwrite for every way."""
    figure = Figure(
        "Figure 4. Bandwidth of fread and fwrite",
        f"One file of {size >> 20} MiB, 1 MiB at a time, near and far side in memory on one machine "
        "(the paper: 24 GB read and 12 GB written, on hard disks).",
        "MB/s", "higher", ["fread", "fwrite"], log_scale=True)
    ways = [bench.local, *bench.ours.values(), *bench.mpi, *bench.peers]
    for mode in figure.groups:
        lanes = {way.name: Lane(lambda way=way: moved(bench, way, mode, size)) for way in ways}
        figures, fallen = bench.alternate(lanes, quick=0, full=3, warm=0)
        bench.fell(f"figure4.{mode}", fallen)
        for way in ways:
            figure.put(way.label, mode, [size / s / 1e6 for s in figures[way.name]])
            bench.board.add(f"figure4.{mode}.{way.name}", [size / s / 1e6 for s in figures[way.name]], "MB/s", "higher")
    bench.figures["4"] = figure


def measure(bench: Bench) -> None:
    size = bench.pick(256 << 20, 1 << 30)
    bench.say(f"streaming {size >> 20} MiB")
    run([bench.tools["transfer"], "write", bench.space.far(READ), str(size), str(BUFFER)])
    for kind in ("uds", "tcp"):
        for direction in ("read", "write"):
            against_sockets(bench, kind, direction, size)
    forget(bench.space.far(WRITTEN))


def measure_peers(bench: Bench) -> None:
    size = bench.pick(64 << 20, 1 << 30)
    if bench.rushed(4, "peers.stream"):
        return
    bench.say(f"streaming {size >> 20} MiB through the alternatives")
    run([bench.tools["transfer"], "write", bench.space.far(READ), str(size), str(BUFFER)])
    against_peers(bench, size)
    if not bench.quick:
        bench.say("figure 4")
        figure4(bench, size)
    for name in (READ, WRITTEN):
        forget(bench.space.far(name))
