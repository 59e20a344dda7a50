#!/usr/bin/python3
"""Gmsh, unmodified, converts a mesh whose input and output are local or remote.

Figure 6 of Hofmann, Rünger and Seifert's paper: four formats, four placements (L2L, R2L, L2R, R2R: L local,
R remote, input before output), reached in-process (direct), over a Unix socket (uds), TCP (tcp), and
through a relay between two network namespaces that see only the middle one (relay). Every output must
be byte-identical to the one of a local run without Sluice.
"""

import argparse
import filecmp
import itertools
import json
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import namespaces, places, report  # noqa: E402
from house.services import Service, ServiceFailed  # noqa: E402

VERTICES_MIN, ELEMENTS_MIN = 75_000, 150_000
SECONDS_MAX = 120

# Format → (file name, the option that makes Gmsh write it so).
FORMATS = {
    "bin-msh": ("ball-bin.msh", ["-bin"]),
    "txt-msh": ("ball-txt.msh", []),
    "bin-stl": ("ball-bin.stl", ["-bin"]),
    "txt-stl": ("ball-txt.stl", []),
}
FIGURE_6 = [("bin-msh", "bin-stl"), ("bin-stl", "bin-msh"), ("txt-msh", "txt-stl"), ("txt-stl", "txt-msh")]
PLACEMENTS = ["L2L", "R2L", "L2R", "R2R"]
TRANSPORTS = ["direct", "uds", "tcp", "relay"]


def main():
    options = parse_arguments()
    if not places.has_tool("gmsh"):
        return report.conclude([report.Result("gmsh", "skipped", details=["gmsh is not installed"])])
    sluice = None
    if not options.self_check:
        sluice = places.sluice_binary(options.sluice)
        if sluice is None:
            print("gmsh: no sluice binary; build it with `cargo build --release`")
            return 2
    scratch = places.scratch_directory("gmsh")
    try:
        results = convert_all(options, sluice, scratch)
    finally:
        if options.keep:
            print(f"  kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps([vars(r) for r in results], indent=1))
    print_times(results)
    return report.conclude(results)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="every pair of formats in every placement")
    parser.add_argument("--transport", action="append", choices=TRANSPORTS, help="only these")
    parser.add_argument("--self-check", action="store_true", help="without Sluice: is Gmsh's output the same every time?")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def plan(full, transport):
    """The (input, output, placement) triples of one transport."""
    if full:
        pairs = [p for p in itertools.product(FORMATS, FORMATS) if p[0] != p[1]]
        return [(*pair, placement) for pair in pairs for placement in PLACEMENTS]
    chosen = [(*pair, "R2R") for pair in FIGURE_6]
    if transport == "uds":
        chosen += [("bin-msh", "txt-stl", p) for p in PLACEMENTS] + [("txt-stl", "bin-msh", p) for p in ("R2L", "L2R")]
    return chosen


def convert_all(options, sluice, scratch):
    inputs, expected = prepare(scratch, options.full)
    if options.self_check:
        return [convert(Where("self", [], "", scratch, inputs, expected), *triple) for triple in plan(options.full, "uds")]
    results = []
    for transport in options.transport or TRANSPORTS:
        try:
            with opened(transport, sluice, scratch, inputs, expected) as where:
                for triple in plan(options.full, transport):
                    results.append(convert(where, *triple))
                    report.print_line(results[-1])
        except Unavailable as reason:
            results.append(report.Result(f"gmsh over {transport}", "skipped", details=[str(reason)], group=transport))
            report.print_line(results[-1])
        except ServiceFailed as reason:
            results.append(report.Result(f"gmsh over {transport}", "failed", details=[str(reason)], group=transport))
            report.print_line(results[-1])
    return results


def prepare(scratch, full):
    """Makes the mesh and, natively, every output that will be compared with."""
    inputs, expected = scratch / "inputs", scratch / "expected"
    inputs.mkdir()
    expected.mkdir()
    first = inputs / FORMATS["bin-msh"][0]
    gmsh([HERE / "ball.geo", "-2", "-bin", "-o", first])
    for name, (file, option) in FORMATS.items():
        if name != "bin-msh":
            gmsh([first, "-save", *option, "-o", inputs / file])
    vertices, elements = count(inputs / FORMATS["txt-msh"][0])
    print(f"  mesh: {vertices} vertices, {elements} elements")
    if vertices < VERTICES_MIN or elements < ELEMENTS_MIN:
        raise SystemExit(f"gmsh: the mesh is smaller than {VERTICES_MIN} vertices and {ELEMENTS_MIN} elements")
    pairs = {t[:2] for transport in TRANSPORTS for t in plan(full, transport)}
    for source, result in sorted(pairs):
        file, option = FORMATS[result]
        gmsh([inputs / FORMATS[source][0], "-save", *option, "-o", expected / f"{source}-{file}"])
    return inputs, expected


def gmsh(arguments, prefix=(), cwd=None):
    """Runs Gmsh; returns the finished process."""
    done = subprocess.run([*map(str, prefix), "gmsh", *map(str, arguments), "-v", "2"], cwd=cwd, timeout=SECONDS_MAX,
                          capture_output=True, text=True)
    if not prefix and done.returncode != 0:
        raise SystemExit(f"gmsh itself failed: {done.stderr}")
    return done


def count(msh):
    """Vertices and elements of a text MSH 4.1 file, from its section headers."""
    vertices = elements = 0
    with open(msh) as lines:
        for line in lines:
            if line == "$Nodes\n":
                vertices = int(next(lines).split()[1])
            elif line == "$Elements\n":
                elements = int(next(lines).split()[1])
    return vertices, elements


class Unavailable(Exception):
    """This machine cannot do it."""


class Where:
    """One transport, opened: how to start Gmsh and what the remote directory is called."""

    def __init__(self, name, prefix, uri, scratch, inputs, expected, closing=()):
        self.name, self.prefix, self.uri, self.closing = name, prefix, uri, closing
        self.inputs, self.expected = inputs, expected
        self.local, self.served = scratch / f"{name}-local", scratch / f"{name}-served"
        for directory in (self.local, self.served):
            directory.mkdir(exist_ok=True)
        for file, _ in FORMATS.values():
            shutil.copy(inputs / file, self.served)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for thing in self.closing:
            thing.__exit__()


def opened(transport, sluice, scratch, inputs, expected):
    """Starts what the transport needs."""
    served = scratch / f"{transport}-served"
    served.mkdir(exist_ok=True)
    export = f"far={served}"
    run = [sluice, "run"]
    if transport == "direct":
        return Where("direct", [*run, "--store", export, "--"], "scdc:///far", scratch, inputs, expected)
    if transport == "uds":
        service = Service(sluice, [export], f"unix:{scratch}/far.sock")
    elif transport == "tcp":
        service = Service(sluice, [export], "tcp:127.0.0.1:0")
    else:
        return opened_relay(sluice, scratch, inputs, expected, export)
    return Where(transport, [*run, "--"], f"{service.uri}/far", scratch, inputs, expected, [service])


def opened_relay(sluice, scratch, inputs, expected, export):
    reason = namespaces.why_not()
    if reason:
        raise Unavailable(reason)
    row = namespaces.Row().__enter__()
    opened_so_far = [row]
    try:
        if not row.ends_are_apart():
            raise ServiceFailed("the two ends see each other: the namespaces are not what the test needs")
        far = Service(sluice, [export], f"tcp:{row.FAR}:0", ["--insecure"], row.prefix(row.far))
        opened_so_far.insert(0, far)
        relay = Service(sluice, [f"far={far.uri}/far"], f"tcp:{row.MIDDLE_NEAR}:0", ["--insecure"], row.prefix(row.middle))
        opened_so_far.insert(0, relay)
    except BaseException:
        for thing in opened_so_far:
            thing.__exit__()
        raise
    return Where("relay", [*row.prefix(row.near), sluice, "run", "--"], f"{relay.uri}/far", scratch, inputs, expected, opened_so_far)


def convert(where, source, result, placement):
    """One conversion; compares its output with the native one."""
    name = f"{where.name} {source} → {result} {placement}"
    input_file, (output_file, option) = FORMATS[source][0], FORMATS[result]
    from_remote, to_remote = placement[0] == "R" and where.uri, placement[2] == "R" and where.uri
    output_name = f"out-{source}-{placement}-{output_file}"
    read_from = f"{where.uri}/{input_file}" if from_remote else where.inputs / input_file
    write_to = f"{where.uri}/{output_name}" if to_remote else where.local / output_name
    output = (where.served if to_remote else where.local) / output_name
    start = time.monotonic()
    try:
        done = gmsh([read_from, "-save", *option, "-o", write_to], where.prefix, cwd=where.local)
    except subprocess.TimeoutExpired:
        return report.Result(name, "hang", SECONDS_MAX, group=where.name)
    seconds = time.monotonic() - start
    said = done.stderr.strip().splitlines()[-4:]
    expected = where.expected / f"{source}-{output_file}"
    stray = [p for p in where.local.iterdir() if "scdc" in p.name]
    if output.exists() and filecmp.cmp(output, expected, shallow=False) and done.returncode == 0 and not stray:
        verdict, details = "ok", []
    else:
        size = output.stat().st_size if output.exists() else "no"
        details = [f"exit status {done.returncode}; {size} bytes, should be {expected.stat().st_size}", *said]
        details += [f"written locally: {p.name}" for p in stray]
        verdict = "error" if done.returncode != 0 or "Error" in done.stderr else "silent"
    output.unlink(missing_ok=True)
    return report.Result(name, verdict, seconds, details, where.name)


def print_times(results):
    """Seconds by conversion and placement, one table per transport."""
    for transport in dict.fromkeys(r.group for r in results if r.verdict != "skipped"):
        rows = {}
        for r in results:
            if r.group == transport and " → " in r.name:
                conversion, placement = r.name.removeprefix(transport + " ").rsplit(" ", 1)
                rows.setdefault(conversion, {})[placement] = f"{r.seconds:.2f} s" if r.verdict == "ok" else r.verdict
        print(f"\n  {transport:<20}" + "".join(f"{p:>10}" for p in PLACEMENTS))
        for conversion, times in rows.items():
            print(f"  {conversion:<20}" + "".join(f"{times.get(p, ''):>10}" for p in PLACEMENTS))


if __name__ == "__main__":
    sys.exit(main())
