"""The area `redirect`: what redirection costs, beside what a user would pick instead.

Follows Hofmann and Rünger's evaluation of SCDC redirection (their §VI, Figures 4 to 6) and adds
what they did not measure: calls that are not redirected, round trips, plain sockets as the bound.
"""

from lib import peers
from lib.context import Bench
from lib.measure import Failed
from lib.services import STORE, serve, sluice_uri
from lib.ways import Sluice, SluiceMpi, check_binary, mpi_launcher

from . import calls, characters, gmsh, python, smallfiles, streams

QUICK_SECONDS = 42.0
"""What a quick run plans with, of the 50 s that it may take."""

NEED_BYTES = {"quick": 2 << 30, "full": 8 << 30}
"""Room that the far and near side take, with what alternatives stage and cache."""

SECTIONS = {
    "calls": (calls.measure, 8),
    "streams": (streams.measure, 15),
    "python": (python.measure, 18),
    "characters": (characters.measure, 20),
    "smallfiles": (smallfiles.measure, 23),
    "gmsh": (gmsh.measure, 36),
}
"""What measures each section, and by which second of a quick run it should have ended."""

BESIDE = {"gmsh": gmsh.measure_peers, "streams": streams.measure_peers, "smallfiles": smallfiles.measure_peers,
          "characters": characters.measure_peers}
"""What measures the alternatives: after everything that has a goal, a quick run in what time is left."""


def start_ours(bench: Bench) -> None:
    """Starts a service for each transport; where that fails, the metrics of ours are missing and say why."""
    assert bench.binary
    try:
        check_binary(bench.binary)
    except Failed as why:
        bench.binary = None
        bench.board.fault("sluice", str(why))
        return
    bench.ours["direct"] = Sluice("direct", "Sluice direct", bench.binary, f"scdc:///{STORE}",
                                  ["--store", f"{STORE}={bench.space.far()}"])
    for kind in ("uds", "tcp"):
        try:
            bench.addresses[kind] = serve(bench.binary, bench.space, kind).address
        except Failed as why:
            bench.board.fault(f"sluice.{kind}", str(why))
            continue
        bench.ours[kind] = Sluice(kind, f"Sluice {kind}", bench.binary, sluice_uri(bench.addresses[kind]))
    if launcher := mpi_launcher():
        bench.mpi.append(SluiceMpi(launcher, bench.binary, bench.space, STORE))
    else:
        bench.board.skip("mpi", "neither mpirun.mpich nor mpirun.openmpi is installed")


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    bench.say("starting services and alternatives")
    start_ours(bench)
    bench.peers, missing = peers.all_ways(bench.space, bench.tools["loopback"])
    for name, why in missing:
        bench.board.skip(name, why)
    work = [(name, stage, due) for name, (stage, due) in SECTIONS.items()]
    work += [(name, stage, QUICK_SECONDS) for name, stage in BESIDE.items()]
    for name, stage, due in work:
        if only and name not in only:
            continue
        bench.due = due
        try:
            stage(bench)
        except Failed as why:
            bench.board.fault(name, str(why))
