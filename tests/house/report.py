"""Results of checks, printed the same way by every suite."""

import dataclasses
import os
import sys

SEVERE = {"silent", "hang", "error", "failed"}


@dataclasses.dataclass
class Result:
    """One check: its verdict, and lines that explain a bad one.

    Verdicts: ok · known (a listed, clean error) · error · silent · hang · failed · skipped.
    """

    name: str
    verdict: str
    seconds: float = 0.0
    details: list = dataclasses.field(default_factory=list)
    group: str = ""


def passed(result):
    return result.verdict in ("ok", "known")


COLOURS = {"ok": "32", "known": "33", "skipped": "36"}


def paint(verdict, width=0):
    """The verdict in colour on a terminal."""
    shown = f"{verdict:<{width}}"
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return shown
    return f"\033[{COLOURS.get(verdict, '31')}m{shown}\033[0m"


def print_line(result):
    """One line for one result, its details below."""
    print(f"  {paint(result.verdict, 8)} {result.name:<44} {result.seconds:6.2f} s", flush=True)
    for line in result.details:
        print(f"           {line}")


def print_table(results):
    """Verdicts counted by group."""
    verdicts = [v for v in ("ok", "known", "error", "silent", "hang", "failed", "skipped")
                if v in {r.verdict for r in results} or v in ("ok", "error", "silent")]
    groups = sorted({r.group for r in results})
    print(f"\n  {'':<14}" + "".join(f"{v:>9}" for v in verdicts))
    for group in groups + ["all"]:
        chosen = [r for r in results if group == "all" or r.group == group]
        print(f"  {group:<14}" + "".join(f"{sum(r.verdict == v for r in chosen):>9}" for v in verdicts))


def conclude(results):
    """Prints the summary line that `./dev test` adds up; returns the exit status."""
    skipped = [r for r in results if r.verdict == "skipped"]
    bad = [r for r in results if not passed(r) and r.verdict != "skipped"]
    good = len(results) - len(skipped) - len(bad)
    print(f"{good} passed, {len(bad)} failed, {len(skipped)} skipped", flush=True)
    return 1 if bad else 0
