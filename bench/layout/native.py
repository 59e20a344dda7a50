"""What runs in the bench's own process: the loops written by hand, and the engine.

All work on the same memory, so that they can take turns.
"""

import ctypes
import mmap
import os
import subprocess
from dataclasses import dataclass

import numpy as np

from lib.context import Bench
from lib.measure import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-O3", "-march=native", "-Wall", "-Wextra"]


@dataclass
class Tools:
    """Both libraries, the program that reads and writes views, and the one that sends them made by hand."""

    hand: ctypes.CDLL
    engine: ctypes.CDLL
    views: str
    limit: str


def compiled(into: str, name: str, extra: list[str]) -> str:
    """Compiles a source of this directory for this processor; returns the path of what was made."""
    source, target = os.path.join(HERE, name + ".c"), os.path.join(into, name + (".so" if extra else ""))
    beside = [source, os.path.join(HERE, "kernels.c"), os.path.join(HERE, "points.h")]
    if os.path.exists(target) and os.path.getmtime(target) > max(map(os.path.getmtime, beside)):
        return target
    argv = ["cc", *FLAGS, *extra, "-o", target, source]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode:
        raise Failed(f"cc cannot compile {name}.c: {done.stdout.strip()}")
    return target


def load(bench: Bench) -> Tools:
    """Compiles and loads everything."""
    into = os.path.dirname(bench.tools["transfer"])
    engine = os.path.join(os.path.dirname(bench.binary), "examples", "libengine.so")
    if not os.path.exists(engine):
        raise Failed("libengine.so is not built: cargo build --release -p dataset --example engine")
    hand = ctypes.CDLL(compiled(into, "kernels", ["-shared", "-fPIC"]))
    library = ctypes.CDLL(engine)
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    for name, result, arguments in (
            ("engine_map", pointer, [text, text, text]),
            ("engine_map_in_use", size, [pointer]),
            ("engine_map_free", None, [pointer]),
            ("engine_read", None, [pointer, pointer, pointer]),
            ("engine_clip_random", ctypes.c_double, [pointer, size]),
            ("engine_open", pointer, [text]),
            ("engine_close", None, [pointer]),
            ("engine_view", ctypes.c_ssize_t, [pointer, text]),
            ("engine_write", size, [pointer, size, pointer, size, size]),
            ("engine_read_random", ctypes.c_double, [pointer, size, size, ctypes.POINTER(ctypes.c_uint64)])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return Tools(hand, library, compiled(into, "views", []), compiled(into, "limit", []))


def buffer(count: int) -> np.ndarray:
    """Memory that begins at a page, in large pages where there are some: the same for whoever uses it."""
    memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, dtype=np.uint8)
    array[:] = 1
    return array


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Map:
    """How the engine makes one view from another, in memory."""

    def __init__(self, engine: ctypes.CDLL, definition: str, near: str, far: str):
        self.engine = engine
        self.handle = engine.engine_map(definition.encode(), near.encode(), far.encode())
        if not self.handle:
            raise Failed("the engine refuses a definition; its message is above")

    def read(self, near: np.ndarray, far: np.ndarray) -> None:
        self.engine.engine_read(self.handle, address(near), address(far))

    def in_use(self) -> int:
        return self.engine.engine_map_in_use(self.handle)

    def clip_random(self, count: int) -> float:
        return self.engine.engine_clip_random(self.handle, count)

    def free(self) -> None:
        self.engine.engine_map_free(self.handle)
