"""One byte at a time: fgetc and fputc, read(2) and write(2), and the paper's Figure 5."""

from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.ways import Way
from lib.workspace import forget

PEER_SINGLE_BYTES = 64 << 10
"""What alternatives move by single system calls: some make a request of each."""

STDIO_RATIO_MAX = 1.1
SYSCALL_RATIO_MAX = 1.0
READ, WRITTEN = "characters.dat", "characters-written.dat"
READING = ("fgetc", "read1")


def moved(bench: Bench, way: Way, mode: str, size: int) -> float:
    """Seconds to move `size` bytes one by one, open and close included."""
    reading = mode in READING
    name = f"{size}-{READ}" if reading else WRITTEN
    if not reading:
        forget(bench.space.far(name))
    with way.session() as session:
        argv = [bench.tools["transfer"], mode, session.path(name), str(size), "4096"]
        seconds = session.timed(argv, reads=[name] if reading else [], writes=[] if reading else [name])
    if not reading:
        run([bench.tools["transfer"], "check", bench.space.far(name), str(size), "4096"])
    return seconds


def make(bench: Bench, size: int) -> None:
    run([bench.tools["transfer"], "write", bench.space.far(f"{size}-{READ}"), str(size), str(1 << 20)])


def against_local(bench: Bench, mode: str, size: int) -> None:
    """Ours against the same program on a local file."""
    lanes = {"local": Lane(lambda: moved(bench, bench.local, mode, size))}
    for kind, way in bench.ours.items():
        if kind != "direct" or not bench.quick:
            lanes[kind] = Lane(lambda way=way: moved(bench, way, mode, size))
    figures, fallen = bench.alternate(lanes, quick=5, full=9, budget=0.8, at_least=3)
    bench.fell(f"byte.{mode}", fallen)
    stdio = mode in ("fgetc", "fputc")
    for name, seconds in figures.items():
        bench.board.add(f"byte.{mode}.{name}.time", [s / size * 1e9 for s in seconds], "ns/byte", "lower")
        if name != "local":
            bench.board.add_ratio(f"byte.{mode}.{name}.vs_local", seconds, figures["local"], "lower",
                                  STDIO_RATIO_MAX if stdio else SYSCALL_RATIO_MAX, strict=not stdio)


def figure5(bench: Bench, sizes: dict[str, int]) -> None:
    """Time per byte of fgetc and fputc for every way; read(2) and write(2) of one byte beside it."""
    figure = Figure(
        "Figure 5. Latency of single characters",
        f"fgetc and fputc of {sizes['fgetc'] >> 20} MiB, read(2) and write(2) of one byte of {sizes['read1'] >> 20} MiB "
        f"(alternatives {PEER_SINGLE_BYTES >> 10} KiB); the paper: fgetc and fputc of 1 GB.",
        "ns per byte", "lower", ["fgetc", "fputc", "read(2)", "write(2)"], log_scale=True)
    ways = [bench.local, *bench.ours.values(), *bench.mpi, *(way for way in bench.peers if way.name != "scp")]
    make(bench, PEER_SINGLE_BYTES)
    for group, mode in zip(figure.groups, ("fgetc", "fputc", "read1", "write1")):
        size_of = {way.name: PEER_SINGLE_BYTES if way in bench.peers and mode in ("read1", "write1") else sizes[mode]
                   for way in ways}
        lanes = {way.name: Lane(lambda way=way: moved(bench, way, mode, size_of[way.name])) for way in ways}
        figures, fallen = bench.alternate(lanes, quick=0, full=3, warm=0)
        bench.fell(f"figure5.{mode}", fallen)
        for way in ways:
            per_byte = [s / size_of[way.name] * 1e9 for s in figures[way.name]]
            figure.put(way.label, group, per_byte)
            bench.board.add(f"figure5.{mode}.{way.name}", per_byte, "ns/byte", "lower")
    bench.figures["5"] = figure


def sizes_of(bench: Bench) -> dict[str, int]:
    """Bytes to move by each mode."""
    stdio, single = bench.pick(16 << 20, 64 << 20), bench.pick(512 << 10, 2 << 20)
    return {"fgetc": stdio, "fputc": stdio, "read1": single, "write1": single}


def measure(bench: Bench) -> None:
    sizes = sizes_of(bench)
    bench.say("one byte at a time")
    for size in set(sizes.values()):
        make(bench, size)
    for mode, size in sizes.items():
        try:
            against_local(bench, mode, size)
        except Failed as why:
            bench.board.fault(f"byte.{mode}", str(why))


def measure_peers(bench: Bench) -> None:
    if bench.quick:
        return
    bench.say("figure 5")
    sizes = sizes_of(bench)
    figure5(bench, sizes)
    for size in {*sizes.values(), PEER_SINGLE_BYTES}:
        forget(bench.space.far(f"{size}-{READ}"))
    forget(bench.space.far(WRITTEN))
