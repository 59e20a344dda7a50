"""The area `sieve`: non-contiguous access, beside the MPI-IO libraries and beside the limit of a copy.

`sluice sieve bench` goes through the grid, in one run with the programs that are compared: ROMIO (of
MPICH) and OMPIO (of Open MPI) through a file view, and a program that maps the file and copies. This
area says which grid, and makes metrics of what it prints. The patterns follow Zickler 2015, Table 5.1.
"""

import os

from lib import build
from lib.context import Bench
from lib.measure import Failed
from lib.ways import check_binary

from . import grid, planning

QUICK_SECONDS = 42.0
"""What a quick run plans with, of the 50 s that it may take."""

NEED_BYTES = {"quick": 1 << 30, "full": 2 << 30}
"""Room for the file to measure on."""

BESIDE = {"mpich_romio": "mpich", "openmpi_ompio": "openmpi"}
"""MPI-IO libraries by the name of their metrics, and whose compiler links them."""


def programs(bench: Bench) -> dict[str, str]:
    """The programs that do the same accesses, by the name of their metrics."""
    found = {"copy": bench.tools["copylimit"]}
    for name, mpi in BESIDE.items():
        try:
            found[name] = build.with_mpi(os.path.dirname(bench.tools["copylimit"]), mpi)
        except Failed as why:
            bench.board.skip(name, str(why))
    return found


def measure(bench: Bench, only: list[str]) -> None:
    """Runs all sections, or those named."""
    assert bench.binary
    try:
        check_binary(bench.binary)
    except Failed as why:
        bench.board.fault("sluice", str(why))
        return
    sections = {"planning": planning.measure, "warm": lambda bench: grid.warm(bench, programs(bench))}
    if not bench.quick:
        sections |= {"cold": grid.cold, "simulated": grid.simulated}
    for name, section in sections.items():
        if only and name not in only:
            continue
        try:
            section(bench)
        except Failed as why:
            bench.board.fault(name, str(why))
