"""Gmsh converting a mesh between formats, input and output near or far: the paper's Figure 6.

The mesh is a torus of 75,272 vertices and 150,544 triangles, the size of the paper's. L2L is the
unmodified program on local files without Sluice; R2L, L2R and R2R have the input, the output or
both on the far side. Every output is compared with that of a local run.
"""

import functools
import math
import os
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.ways import Session, Way
from lib.workspace import digest, forget

from .calls import whole_program

R2R_RATIO_MAX = 1.15
RINGS, SEGMENTS = 388, 194
PLACEMENTS = ("R2L", "L2R", "R2R")


@dataclass(frozen=True)
class Conversion:
    """One conversion; the names are those of metrics and plots."""

    name: str
    label: str
    source: str
    target: str
    options: tuple[str, ...]


CONVERSIONS = [
    Conversion("bin_msh_stl", "MSH→STL, binary", "bin.msh", "bin.stl", ("-bin", "-format", "stl")),
    Conversion("bin_stl_msh", "STL→MSH, binary", "bin.stl", "bin.msh", ("-bin", "-format", "msh")),
    Conversion("txt_msh_stl", "MSH→STL, text", "txt.msh", "txt.stl", ("-format", "stl")),
    Conversion("txt_stl_msh", "STL→MSH, text", "txt.stl", "txt.msh", ("-format", "msh")),
]


def torus(path: str) -> None:
    """Writes the mesh as binary STL."""
    points = []
    for i in range(RINGS):
        for j in range(SEGMENTS):
            a, b = 2 * math.pi * i / RINGS, 2 * math.pi * j / SEGMENTS
            r = 1 + 0.35 * math.cos(b)
            points.append((r * math.cos(a), r * math.sin(a), 0.35 * math.sin(b)))
    facet = struct.Struct("<12fH").pack
    with open(path, "wb") as file:
        file.write(b"torus".ljust(80) + struct.pack("<I", 2 * RINGS * SEGMENTS))
        for i in range(RINGS):
            for j in range(SEGMENTS):
                a, b = i * SEGMENTS + j, (i + 1) % RINGS * SEGMENTS + j
                c, d = (i + 1) % RINGS * SEGMENTS + (j + 1) % SEGMENTS, i * SEGMENTS + (j + 1) % SEGMENTS
                file.write(facet(0, 0, 0, *points[a], *points[b], *points[c], 0))
                file.write(facet(0, 0, 0, *points[a], *points[c], *points[d], 0))


def command(conversion: Conversion, source: str, target: str) -> list[str]:
    return ["gmsh", source, "-save", "-v", "1", *conversion.options, "-o", target]


class Matrix:
    """The meshes on both sides, and the right output of each conversion."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.given_up: set[str] = set()
        """Alternatives by which Gmsh does not work at all."""
        near = bench.space.near
        torus(near("bin.stl"))
        others = {"bin.msh": ["-bin", "-format", "msh"], "txt.msh": ["-format", "msh"], "txt.stl": ["-format", "stl"]}
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda name: run(["gmsh", near("bin.stl"), "-save", "-v", "1", *others[name],
                                            "-o", near(name)]), others))
        for name in ("bin.msh", "bin.stl", "txt.msh", "txt.stl"):
            shutil.copy(near(name), bench.space.far(name))
        self.right: dict[str, str] = {}
        """What the first local run of each conversion left."""

    @staticmethod
    def output(conversion: Conversion) -> str:
        return f"out-{conversion.target}"

    def local(self, conversion: Conversion) -> float:
        """L2L: seconds of the whole program."""
        near = self.bench.space.near
        forget(near(self.output(conversion)))
        seconds = run(command(conversion, near(conversion.source), near(self.output(conversion)))).seconds
        if conversion.name not in self.right:
            self.right[conversion.name] = digest(near(self.output(conversion)))
        return seconds

    def remote(self, way: Way, conversion: Conversion, placement: str) -> float:
        """Seconds of the whole program with input or output far, once the output has been compared."""
        with way.session() as session:
            return self.in_session(session, conversion, placement)

    def in_session(self, session: Session, conversion: Conversion, placement: str) -> float:
        space, output = self.bench.space, self.output(conversion)
        forget(space.near(output))
        forget(space.far(output))
        far_in, far_out = placement[0] == "R", placement[2] == "R"
        source = session.path(conversion.source) if far_in else space.near(conversion.source)
        target = session.path(output) if far_out else space.near(output)
        seconds = session.run(command(conversion, source, target),
                              reads=[conversion.source] if far_in else [],
                              writes=[output] if far_out else []).seconds
        left = space.far(output) if far_out else space.near(output)
        if not os.path.exists(left):
            raise Failed("gmsh ended with status 0 and left no output")
        if digest(left) != self.right[conversion.name]:
            raise Failed("gmsh ended with status 0 and the output differs from that of a local run")
        return seconds


@functools.cache
def matrix_of(bench: Bench) -> Matrix:
    """The meshes of a run, made once."""
    return Matrix(bench)


def lanes_of(bench: Bench, matrix: Matrix, conversion: Conversion) -> dict[str, tuple[Way, str]]:
    """What is measured beside L2L in the main rounds: the ways and placements, by the name of the lane."""
    chosen = {}
    for way in [*bench.ours.values(), *bench.peers]:
        if way.name in matrix.given_up:
            continue
        for placement in PLACEMENTS:
            if bench.quick and not (placement == "R2R" and (
                    way.name == "tcp" or way.name == "uds" and conversion.name.startswith("bin"))):
                continue
            chosen[f"{placement}.{way.name}"] = (way, placement)
    return chosen


def note_fallen(matrix: Matrix, conversion: Conversion, chosen: dict[str, tuple[Way, str]],
                fallen: dict[str, str]) -> None:
    """Notes what fell out; an alternative that failed in every placement is noted once and not tried again."""
    board, ours = matrix.bench.board, matrix.bench.ours
    for lane, why in fallen.items():
        way = chosen[lane][0]
        if way.name in ours:
            board.fault(f"gmsh.{conversion.name}.{lane}", why)
        elif all(other in fallen for other, (its_way, _) in chosen.items() if its_way is way):
            if way.name not in matrix.given_up:
                board.skip(f"gmsh.{way.name}", why)
            matrix.given_up.add(way.name)
        else:
            board.skip(f"gmsh.{conversion.name}.{lane}", why)


def main_rounds(bench: Bench, matrix: Matrix, conversion: Conversion, figure: Figure) -> None:
    """One conversion: ours against L2L with its goal, and in a full run every way and placement."""
    chosen = lanes_of(bench, matrix, conversion)
    lanes = {"L2L": Lane(lambda: matrix.local(conversion))}
    for lane, (way, placement) in chosen.items():
        gated = way.name in bench.ours and placement == "R2R"
        lanes[lane] = Lane(lambda way=way, placement=placement: matrix.remote(way, conversion, placement),
                           at_most=None if gated else 2)
    figures, fallen = bench.alternate(lanes, quick=5, full=7, warm=bench.pick(0, 1),
                                      budget=1.6 if conversion.name.startswith("bin") else 2.6)
    note_fallen(matrix, conversion, chosen, fallen)
    bench.board.add(f"gmsh.{conversion.name}.L2L", figures["L2L"], "s", "lower")
    figure.put("local", f"{conversion.name} L2L", figures["L2L"])
    for lane, (way, placement) in chosen.items():
        goal = R2R_RATIO_MAX if way.name in bench.ours and placement == "R2R" else None
        bench.board.add_ratio(f"gmsh.{conversion.name}.{lane}.vs_L2L", figures[lane], figures["L2L"], "lower", goal)
        figure.put(way.label, f"{conversion.name} {placement}", figures[lane])


def quick_peers(bench: Bench, matrix: Matrix) -> None:
    """A pair for each alternative, R2R, sshfs in every conversion; R2L and L2R of ours in one."""
    for conversion in CONVERSIONS:
        first = conversion is CONVERSIONS[0]
        chosen = {f"R2R.{way.name}": (way, "R2R") for way in bench.peers if first or way.name == "sshfs"}
        if first and "tcp" in bench.ours:
            chosen |= {f"{placement}.tcp": (bench.ours["tcp"], placement) for placement in ("R2L", "L2R")}
        if bench.rushed(3, f"peers.gmsh.{conversion.name}"):
            continue
        lanes = {"L2L": Lane(lambda: matrix.local(conversion))}
        for lane, (way, placement) in chosen.items():
            lanes[lane] = Lane(lambda way=way, placement=placement: matrix.remote(way, conversion, placement))
        figures, fallen = bench.alternate(lanes, quick=1, full=1, warm=0)
        note_fallen(matrix, conversion, chosen, fallen)
        for lane in chosen:
            bench.board.add_ratio(f"gmsh.{conversion.name}.{lane}.vs_L2L", figures[lane], figures["L2L"], "lower")


def program_overhead(bench: Bench, matrix: Matrix) -> None:
    """Gmsh on local files under `sluice run`: what a program pays that redirects nothing."""
    way = bench.ours.get("uds") or bench.ours.get("tcp")
    if not way:
        return
    conversion = CONVERSIONS[1]
    near = bench.space.near
    argv = command(conversion, near(conversion.source), near(matrix.output(conversion)))
    whole_program(bench, way, "gmsh", argv, quick=5, full=15, budget=2.6)


def measure(bench: Bench) -> None:
    if not shutil.which("gmsh"):
        bench.board.fault("gmsh", "gmsh is not installed (package gmsh)")
        return
    bench.say("Gmsh: making the meshes")
    matrix = matrix_of(bench)
    bench.say("Gmsh: conversions")
    program_overhead(bench, matrix)
    figure = Figure(
        "Figure 6. Gmsh converting meshes, near and far",
        f"{RINGS * SEGMENTS:,} vertices, {2 * RINGS * SEGMENTS:,} triangles; L2L both files local, R2L input far, "
        "L2R output far, R2R both far; service and program on one machine (the paper: three machines).",
        "seconds", "lower", [f"{c.name} {p}" for c in CONVERSIONS for p in ("L2L", *PLACEMENTS)],
        panels=[(c.label, [f"{c.name} {p}" for p in ("L2L", *PLACEMENTS)], ["L2L", *PLACEMENTS])
                for c in CONVERSIONS])
    for conversion in CONVERSIONS:
        main_rounds(bench, matrix, conversion, figure)
    if not bench.quick:
        bench.figures["6"] = figure


def measure_peers(bench: Bench) -> None:
    """In a full run the alternatives are part of the main rounds."""
    if bench.quick and shutil.which("gmsh"):
        bench.say("Gmsh: alternatives")
        quick_peers(bench, matrix_of(bench))
