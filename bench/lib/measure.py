"""Metrics, and how pairs are measured: alternately, so that a slow minute of the machine hits both sides."""

import statistics
import time
from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass
class Metric:
    """One figure of the report. `goal` is what the issue asks for; None marks a figure that is only told."""

    name: str
    value: float
    unit: str
    better: str
    goal: Optional[float]
    samples: int
    min: float
    max: float
    strict: bool = False
    """Whether the goal itself is not good enough ("faster than local")."""

    def verdict(self) -> str:
        """'ok', 'miss', or '' where there is no goal."""
        if self.goal is None:
            return ""
        if self.value == self.goal:
            return "miss" if self.strict else "ok"
        return "ok" if (self.value > self.goal) == (self.better == "higher") else "miss"


@dataclass
class Board:
    """Where the areas put what they measured and what they could not."""

    metrics: list[Metric] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    """Ours, where it failed or gave wrong data: these make the run fail."""

    def add(self, name: str, samples: list[float], unit: str, better: str,
            goal: Optional[float] = None, strict: bool = False) -> None:
        """Adds the median of the samples; does nothing where there is none."""
        if not samples:
            return
        self.metrics.append(Metric(name, statistics.median(samples), unit, better, goal,
                                   len(samples), min(samples), max(samples), strict))

    def add_ratio(self, name: str, above: list[float], below: list[float], better: str,
                  goal: Optional[float] = None, strict: bool = False) -> None:
        """Adds the median of the ratios of pairs. `above[i]` and `below[i]` were measured side by side."""
        self.add(name, [a / b for a, b in zip(above, below)], "ratio", better, goal, strict)

    def skip(self, name: str, why: str) -> None:
        self.skipped.append((name, why))

    def fault(self, name: str, why: str) -> None:
        self.faults.append((name, why))
        self.skipped.append((name, why))


class Clock:
    """The time that a run may take. A full run has no end."""

    def __init__(self, seconds: Optional[float]):
        self.began = time.monotonic()
        self.seconds = seconds

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def left(self) -> float:
        return float("inf") if self.seconds is None else self.seconds - self.elapsed()


class Failed(Exception):
    """Something that was to be measured did not work. The text says what, for the list of what was skipped."""


@dataclass
class Lane:
    """One of the things measured side by side: `run` does it once and returns the figure."""

    run: Callable[[], float]
    at_most: Optional[int] = None
    """Fewer rounds than the others, for what is slow and has no goal."""


def alternate(lanes: dict[str, Lane], rounds: int, *, warm: int = 1, budget: float = float("inf"),
              at_least: int = 1) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Measures A B C A B C …: returns the figures of each lane by round, and why lanes fell out.

    `warm` rounds come first and are thrown away. After `at_least` rounds the measuring stops
    when it has taken `budget` seconds. The first lane is the one others are compared with: when
    it fails, everything does.
    """
    figures: dict[str, list[float]] = {name: [] for name in lanes}
    fallen: dict[str, str] = {}
    base = next(iter(lanes))
    began = time.monotonic()
    for round_number in range(-warm, rounds):
        if round_number >= at_least and time.monotonic() - began > budget:
            break
        for name, lane in lanes.items():
            if name in fallen:
                continue
            if lane.at_most is not None and (round_number < 0 or round_number >= lane.at_most):
                continue
            try:
                figure = lane.run()
            except Failed as why:
                if name == base:
                    raise
                fallen[name] = str(why)
                figures[name] = []
                continue
            if round_number >= 0:
                figures[name].append(figure)
    return figures, fallen
