"""Results as one JSON object for programs, and as a table for people."""

import json

from .measure import Board, Metric


def as_object(area: str, quick: bool, machine: dict, board: Board) -> dict:
    """The object that `--json` prints."""
    return {
        "area": area, "quick": quick, "machine": machine,
        "metrics": [{"name": m.name, "value": rounded(m.value), "unit": m.unit, "better": m.better, "goal": m.goal,
                     "samples": m.samples, "min": rounded(m.min), "max": rounded(m.max)} for m in board.metrics],
        "skipped": [{"name": name, "why": why} for name, why in board.skipped],
    }


def as_json(result: dict) -> str:
    return json.dumps(result, indent=1)


def rounded(value: float) -> float:
    """Five significant digits: more would pretend."""
    return float(f"{value:.5g}")


def number(value: float) -> str:
    """A figure for people."""
    magnitude = abs(value)
    if magnitude >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{1 if magnitude >= 100 else 2 if magnitude >= 10 else 3}f}"


def goal_text(metric: Metric) -> str:
    if metric.goal is None:
        return ""
    sign = {"higher": ">", "lower": "<"}[metric.better] if metric.strict else {"higher": "≥", "lower": "≤"}[metric.better]
    return f"{sign} {metric.goal:g}"


def rows(board: Board) -> list[tuple[str, str, str, str, str, str]]:
    """(name, value, unit, goal, verdict, spread) of each metric; those with a goal come first."""
    ordered = sorted(board.metrics, key=lambda m: m.goal is None)
    return [(m.name, number(m.value), m.unit, goal_text(m), m.verdict(),
             f"{number(m.min)} … {number(m.max)} ({m.samples})" if m.samples > 1 else "(1)") for m in ordered]


def as_table(board: Board) -> str:
    """A table for the terminal."""
    head = ("metric", "value", "unit", "goal", "", "spread (samples)")
    body = rows(board)
    widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
    def line(row):
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2]),
                 row[3].rjust(widths[3]), row[4].ljust(widths[4]), row[5]]
        return "  ".join(cells).rstrip()
    out = [line(head), "  ".join("-" * width for width in widths), *map(line, body)]
    judged = [m for m in board.metrics if m.goal is not None]
    missed = [m for m in judged if m.verdict() == "miss"]
    if board.skipped:
        out += ["", "skipped:", *(f"  {name}: {why}" for name, why in board.skipped)]
    out += ["", f"{len(judged) - len(missed)} of {len(judged)} goals reached"
            + (f"; missed: {', '.join(m.name for m in missed)}" if missed else "")]
    return "\n".join(out)
