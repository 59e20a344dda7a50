"""All methods on a grid of strided patterns, by `sluice sieve bench`."""

import json
import os
import shutil
import tempfile

from lib.context import Bench
from lib.measure import Failed
from lib.process import run

QUICK_DATA = "8,100,1000,4096,32768,1000000"
QUICK_HOLES = "0,64,1000,4096,32768,1000000"
"""Six of the sizes of Table 5.1 each, from end to end; the full run has all of them."""

QUICK_GRID_SECONDS = 33.0

SPEED_UPS = {"read": 1.8, "write": 1.5}
"""How many times as fast as an MPI-IO library, in geometric mean."""


def arguments(bench: Bench, directory: str, *extra: str) -> list[str]:
    """A bench of real files. All of them have the parameters that were measured there just before."""
    profile = bench.space.run("profile.toml")
    run([bench.binary, "sieve", "tune", directory, "--file-size", "128MiB", "--output", profile])
    return [bench.binary, "sieve", "bench", directory, "--profile", profile, "--json", *extra]


def result(bench: Bench, argv: list[str], name: str, seconds: float) -> list[dict]:
    """Runs a bench; its page and results stay after a full run. Returns the groups of cells."""
    folder = bench.space.run()
    if not bench.quick:
        folder = bench.results
        os.makedirs(folder, exist_ok=True)
    kept = os.path.join(folder, f"sieve-{name}.sqlite")
    if not bench.quick and os.path.exists(kept):
        os.unlink(kept)
    page = ["--no-page"] if bench.quick else []
    answer = run([*argv, "--results", kept, *page], timeout=seconds).json()
    for group in answer["groups"]:
        for cell in group["cells"]:
            for method, why in cell["skipped"]:
                note = bench.board.fault if "wrong data" in why else bench.board.skip
                note(f"sieve.{group['access']}.{cell['data']},{cell['hole']}.{method}", why)
    return answer["groups"]


def spread(spreads: list[dict], method: str) -> dict | None:
    return next((entry for entry in spreads if entry["method"] == method), None)


def add(bench: Bench, name: str, value: float, group: dict, better: str, goal: float | None) -> None:
    """One figure over all cells of a group. What it is made of are medians of the turns of each cell."""
    bench.board.add(name, [value], "ratio", better, goal)
    bench.board.metrics[-1].samples = len(group["cells"])


def warm(bench: Bench, beside: dict[str, str]) -> None:
    """The grid with all data in the page cache, on tmpfs where there is one."""
    bench.say("the grid, warm")
    argv = arguments(bench, bench.space.far(), "--file-size", "256MiB", "--call", "1MiB",
                     "--call-blocks", "8192", "--turn-seconds", "0.003")
    for name, program in beside.items():
        argv += ["--beside", f"{name}={program}"]
    if bench.quick:
        left = min(QUICK_GRID_SECONDS, bench.clock.left() - 4.0)
        if left < 5.0:
            bench.board.skip("sieve.warm", "the time of a --quick run was used up by measuring the place")
            return
        argv += ["--data", QUICK_DATA, "--hole", QUICK_HOLES, "--rounds", "9", "--seconds", f"{left:.1f}"]
    else:
        argv += ["--rounds", "11", "--cell-seconds", "3"]
    for group in result(bench, argv, "warm", seconds=3600.0):
        access = group["access"]
        regret = spread(group["regrets"], "adaptive")
        if regret is None:
            raise Failed(f"no {access} of adaptive could be measured")
        add(bench, f"sieve.{access}.regret", regret["geomean"], group, "lower", 1.05)
        add(bench, f"sieve.{access}.regret.worst", regret["max"], group, "lower", 1.25)
        for name in beside:
            faster = spread(group["speed_ups"], name)
            if faster is None:
                continue
            has_goal = name != "copy"
            add(bench, f"sieve.{access}.over_{name}", faster["geomean"], group, "higher",
                SPEED_UPS[access] if has_goal else None)
            add(bench, f"sieve.{access}.over_{name}.least", faster["min"], group, "higher", 0.95 if has_goal else None)
    learned(bench, "warm")


def learned(bench: Bench, name: str) -> None:
    """How good a model is that is learned from all other cells, beside the analytic one."""
    folder = bench.space.run() if bench.quick else bench.results
    argv = [bench.binary, "sieve", "learn", os.path.join(folder, f"sieve-{name}.sqlite"), "--json"]
    found = run(argv).json()
    for model in ("learned", "analytic"):
        if found.get(model):
            bench.board.add(f"sieve.{name}.regret_{model}", [found[model]["geomean"]], "ratio", "lower")


def cold(bench: Bench) -> None:
    """The grid after the cache was dropped, on the disk that holds temporary files."""
    bench.say("the grid, cold")
    directory = tempfile.mkdtemp(prefix="sluice-bench-", dir="/var/tmp")
    try:
        argv = arguments(bench, directory, "--cache", "cold", "--rounds", "3", "--turn-seconds", "0.1",
                         "--cell-seconds", "6")
        for group in result(bench, argv, "cold", seconds=7200.0):
            ours = spread(group["regrets"], "adaptive")
            others = [entry["geomean"] for entry in group["regrets"] if entry["method"] != "adaptive"]
            if ours is None or not others:
                bench.board.skip(f"sieve.cold.{group['access']}", "nothing there is cold")
                continue
            add(bench, f"sieve.cold.{group['access']}.over_best_single", min(others) / ours["geomean"], group,
                "higher", 1.0)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def simulated(bench: Bench) -> None:
    """Both tables on the simulated clusters: nothing but the planner is ours there."""
    for cluster in ("wr", "dkrz"):
        for name, extra in (("", []), ("-aligned", ["--aligned", "--unaligned"])):
            bench.say(f"simulated {cluster}{name}")
            argv = [bench.binary, "sieve", "bench", "--simulate", cluster, "--servers", "1,2,5,10",
                    "--stripe-size", "128KiB,2MiB", "--json", *extra]
            groups = result(bench, argv, f"{cluster}{name}", seconds=7200.0)
            for access in ("read", "write"):
                means = [spread(group["regrets"], "adaptive")["geomean"] for group in groups
                         if group["access"] == access]
                bench.board.add(f"sieve.{cluster}{name}.{access}.regret", means, "ratio", "lower")
