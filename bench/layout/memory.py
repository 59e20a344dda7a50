"""Conversions in memory: the engine beside the best loop written by hand, numpy and memcpy."""

import ctypes
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np

from lib.context import Bench
from lib.measure import Failed, Lane

from . import definitions
from .native import Map, Tools, address, buffer

HAND_MIN = 0.9
NUMPY_MIN = 1.0


@dataclass
class Case:
    """One conversion."""

    name: str
    definition: str
    near: str
    far: str
    kernel: str
    """What the loops by hand are called, without the variant."""
    counts: tuple[int, ...]
    """What they are told behind destination and source."""
    near_bytes: int
    far_bytes: int
    numpy: Callable[[np.ndarray, np.ndarray], None]


def with_numpy(dtype, convert: Callable[[np.ndarray, np.ndarray], None]):
    """What numpy does, of memory as numbers."""
    return lambda near, far: convert(near.view(dtype), far.view(dtype))


def cases(data_bytes: int) -> list[Case]:
    """All conversions, of so many bytes."""
    # No multiple of a page: the arrays of real data seldom begin at the same place of one.
    n = data_bytes // 12 // 4096 * 4096 + 336
    edge = int((data_bytes / 8) ** 0.5) // 64 * 64 + 8
    structs = definitions.points(n)

    def soa(near, far):
        for k in range(3):
            np.copyto(near[k * n:(k + 1) * n], far[k::3])

    def aos(near, far):
        for k in range(3):
            np.copyto(near[k::3], far[k * n:(k + 1) * n])

    fifths = data_bytes // 20 // 16 * 16
    return [
        Case("soa_from_aos", structs, "soa", "aos", "soa_from_aos", (n,), 12 * n, 12 * n,
             with_numpy(np.uint32, soa)),
        Case("aos_from_soa", structs, "aos", "soa", "aos_from_soa", (n,), 12 * n, 12 * n,
             with_numpy(np.uint32, aos)),
        Case("b_from_aos", structs, "b", "aos", "every3", (n,), 4 * n, 12 * n,
             with_numpy(np.uint32, lambda near, far: np.copyto(near, far[1::3]))),
        Case("every5", definitions.line(5 * fifths), "every5", "x", "every5", (fifths,), 4 * fifths, 20 * fifths,
             with_numpy(np.uint32, lambda near, far: np.copyto(near, far[::5]))),
        Case("transpose", definitions.matrix(edge, edge), "t", "m", "transpose", (edge, edge), 8 * edge * edge,
             8 * edge * edge,
             with_numpy(np.uint64, lambda near, far: np.copyto(near.reshape(edge, edge), far.reshape(edge, edge).T))),
    ]


def seconds(work: Callable[[], None]) -> float:
    """Time that this thread was given: all of this is done by one, and the machine may be busy."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def by_hand(tools: Tools, case: Case, near: np.ndarray, far: np.ndarray) -> dict[str, Callable[[], None]]:
    """The variants that this processor has."""
    # b is the second number of a structure.
    begin = address(far) if case.name != "b_from_aos" else ctypes.c_void_p(far.ctypes.data + 4)
    counts = [ctypes.c_size_t(count) for count in case.counts]
    found = {}
    for variant in ("scalar", "wide", "wide256", "stream", "stream256"):
        function = getattr(tools.hand, f"{case.kernel}_{variant}", None)
        if function:
            found[variant] = lambda function=function: function(address(near), begin, *counts)
    return found


def one(bench: Bench, tools: Tools, case: Case, near_all: np.ndarray, far_all: np.ndarray) -> None:
    """Measures one conversion, and compares what everybody made."""
    near, far = near_all[:case.near_bytes], far_all[:case.far_bytes]
    mapped = Map(tools.engine, case.definition, case.near, case.far)
    variants = by_hand(tools, case, near, far)
    lanes = {
        "engine": lambda: mapped.read(near, far),
        "numpy": lambda: case.numpy(near, far),
        "memcpy": lambda: tools.hand.copy_plain(address(near), address(far), ctypes.c_size_t(case.near_bytes)),
    }
    case.numpy(near, far)
    wanted = near.copy()
    for name, work in {"engine": lanes["engine"], **variants}.items():
        near[:] = 0
        work()
        if not np.array_equal(near, wanted):
            raise Failed(f"{case.name} by {name} is wrong")
    del wanted
    # The best loop is another one for other sizes and other processors.
    tried = {name: min(seconds(work) for _ in range(2)) for name, work in variants.items()}
    best = min(tried, key=tried.__getitem__)
    lanes = {"hand": variants[best], **lanes}
    figures, _ = bench.alternate({name: Lane(lambda work=work: seconds(work)) for name, work in lanes.items()},
                                 quick=9, full=9, budget=1.3, at_least=3)
    mapped.free()
    prefix = f"memory.{case.name}"
    bench.board.add_ratio(f"{prefix}.vs_hand", figures["hand"], figures["engine"], "higher", HAND_MIN)
    bench.board.add_ratio(f"{prefix}.vs_numpy", figures["numpy"], figures["engine"], "higher", NUMPY_MIN)
    bench.board.add_ratio(f"{prefix}.vs_memcpy", figures["memcpy"], figures["engine"], "higher")
    for name in ("engine", "hand", "numpy"):
        shown = f"{name}_{best}" if name == "hand" else name
        bench.board.add(f"{prefix}.{shown}.bandwidth", [case.near_bytes / s / 1e9 for s in figures[name]], "GB/s",
                        "higher")


def measure(bench: Bench, tools: Tools) -> None:
    # Both more than what caches hold.
    data_bytes = bench.pick(96 << 20, 168_000_000 * 12)
    bench.say(f"conversions of {data_bytes >> 20} MiB in memory")
    all_cases = cases(data_bytes)
    near = buffer(max(case.near_bytes for case in all_cases))
    far = buffer(max(case.far_bytes for case in all_cases))
    words = far[:far.size // 4 * 4].view(np.uint32)
    words[:] = np.arange(words.size, dtype=np.uint32)
    words *= np.uint32(2654435761)
    for case in all_cases:
        one(bench, tools, case, near, far)
