"""Many small files: round trips counted, and the time over a long wire."""

import os
import shutil

from lib.context import Bench
from lib.measure import Failed, Lane
from lib.peers import Sshfs
from lib.process import run
from lib.services import Wire, sluice_uri
from lib.ways import Sluice, Way

ROUND_TRIPS_MAX = 2.0
FOLDER = "small"
COUNT = 1000

COUNT_DELAY_MS = 0.5
"""Each way, while round trips are counted: well above what the program thinks between two files."""

DELAY_MS = 5.0


def read_files(bench: Bench, way: Way, count: int) -> float:
    """Seconds to open, read and close the files one after the other."""
    with way.session() as session:
        return session.timed([bench.tools["smallfiles"], "read", session.path(FOLDER), str(count)], reads=[FOLDER])


def over_wire(bench: Bench, kind: str, count: int, delay_ms: float) -> tuple[float, dict]:
    """Ours over a delayed connection: the seconds, and what the wire counted."""
    assert bench.binary
    wire = Wire(bench.tools["proxy"], bench.space, kind, bench.addresses[kind], delay_ms)
    try:
        way = Sluice(kind, kind, bench.binary, sluice_uri(wire.endpoint.address))
        seconds = read_files(bench, way, count)
    finally:
        counts = wire.end()
    return seconds, counts


def count_round_trips(bench: Bench, kind: str) -> None:
    """Round trips and requests per file; those of a run over one file, which meets the service, are taken off."""
    count = COUNT if kind == "tcp" else bench.pick(200, COUNT)
    trips, frames = [], []
    for _ in range(bench.pick(1, 5)):
        _, first = over_wire(bench, kind, 1, COUNT_DELAY_MS)
        _, all_files = over_wire(bench, kind, count, COUNT_DELAY_MS)
        trips.append((all_files["round_trips"] - first["round_trips"]) / (count - 1))
        frames.append((all_files["frames_up"] - first["frames_up"]) / (count - 1))
    bench.board.add(f"small.round_trips.{kind}", trips, "round trips/file", "lower", ROUND_TRIPS_MAX)
    bench.board.add(f"small.requests.{kind}", frames, "requests/file", "lower")


def sshfs_over_wire(bench: Bench, sshfs: Sshfs, count: int) -> tuple[float, float]:
    """sshfs over the same wire: milliseconds and round trips per file, those of the mount taken off."""
    trips = []
    for files in (1, count):
        wire = Wire(bench.tools["proxy"], bench.space, "tcp", f"tcp:{sshfs.sshd.port}", DELAY_MS)
        try:
            port = int(wire.endpoint.address.removeprefix("tcp:"))
            seconds = read_files(bench, Sshfs(bench.space, sshfs.sshd, port), files)
        finally:
            trips.append(wire.end()["round_trips"])
    return seconds / count * 1e3, (trips[1] - trips[0]) / (count - 1)


def timed_over_wire(bench: Bench, kind: str) -> None:
    """Milliseconds per file where each way takes 5 ms."""
    count = bench.pick(60, COUNT)
    figures = [over_wire(bench, kind, count, DELAY_MS)[0] / count * 1e3 for _ in range(bench.pick(1, 2))]
    bench.board.add(f"small.delay_{DELAY_MS:.0f}ms.{kind}", figures, "ms/file", "lower")


def sshfs_beside_ours(bench: Bench, sshfs: Sshfs) -> None:
    """The same wire and files for sshfs, alternately with ours."""
    name, count = f"small.delay_{DELAY_MS:.0f}ms", bench.pick(30, 200)
    ours, theirs, trips = [], [], []
    for _ in range(bench.pick(1, 3)):
        if "tcp" in bench.addresses:
            ours.append(over_wire(bench, "tcp", count, DELAY_MS)[0] / count * 1e3)
        per_file, round_trips = sshfs_over_wire(bench, sshfs, count)
        theirs.append(per_file)
        trips.append(round_trips)
    bench.board.add(f"{name}.sshfs", theirs, "ms/file", "lower")
    bench.board.add("small.round_trips.sshfs", trips, "round trips/file", "lower")
    bench.board.add_ratio(f"{name}.tcp.vs_sshfs", ours, theirs, "lower")


def on_loopback(bench: Bench) -> None:
    """Microseconds per file without any delay, all ways."""
    lanes = {"local": Lane(lambda: read_files(bench, bench.local, COUNT))}
    for way in [*bench.ours.values(), *bench.peers]:
        if bench.quick and way.name in ("direct", "scp"):
            continue
        lanes[way.name] = Lane(lambda way=way: read_files(bench, way, COUNT))
    figures, fallen = bench.alternate(lanes, quick=1, full=5, warm=bench.pick(0, 1))
    bench.fell("small.loopback", fallen)
    for name, seconds in figures.items():
        bench.board.add(f"small.loopback.{name}", [s / COUNT * 1e6 for s in seconds], "us/file", "lower")


def make(bench: Bench) -> None:
    os.makedirs(bench.space.far(FOLDER), exist_ok=True)
    run([bench.tools["smallfiles"], "make", bench.space.far(FOLDER), str(COUNT)])


def measure(bench: Bench) -> None:
    bench.say(f"{COUNT} files of 4 KiB, round trips counted")
    make(bench)
    for kind in bench.addresses:
        try:
            count_round_trips(bench, kind)
            if kind == "tcp" or not bench.quick:
                timed_over_wire(bench, kind)
        except Failed as why:
            bench.board.fault(f"small.{kind}", str(why))


def measure_peers(bench: Bench) -> None:
    make(bench)
    sshfs = next((way for way in bench.peers if isinstance(way, Sshfs)), None)
    if sshfs and not bench.rushed(4, "small.delay.sshfs"):
        bench.say(f"small files over a wire of {DELAY_MS:.0f} ms each way, beside sshfs")
        try:
            sshfs_beside_ours(bench, sshfs)
        except Failed as why:
            bench.board.skip("small.delay.sshfs", str(why))
    if not bench.rushed(3, "small.loopback"):
        bench.say("small files on loopback, all ways")
        on_loopback(bench)
    shutil.rmtree(bench.space.far(FOLDER), ignore_errors=True)
