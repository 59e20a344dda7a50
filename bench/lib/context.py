"""What one run of the bench has at hand: its ways, its places, its helpers, and where results go."""

import sys
from dataclasses import dataclass, field
from typing import Optional

from .measure import Board, Clock, Failed, Lane, alternate
from .ways import Local, Way
from .workspace import Workspace


@dataclass
class Figure:
    """The data of one plot: a bar for each way in each group."""

    title: str
    caption: str
    axis: str
    better: str
    groups: list[str]
    bars: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Label of the way → group → samples, in the unit of the axis."""
    log_scale: bool = False
    panels: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    """A plot of several panels: title, groups, and the names shown under the groups."""

    def put(self, label: str, group: str, samples: list[float]) -> None:
        if samples:
            self.bars.setdefault(label, {})[group] = samples


@dataclass(eq=False)
class Bench:
    """Handed to every section of an area."""

    quick: bool
    board: Board
    clock: Clock
    space: Workspace
    tools: dict[str, str]
    local: Local
    binary: Optional[str] = None
    """The `sluice` binary; None where it cannot be used, and then `ours` is empty."""
    ours: dict[str, Way] = field(default_factory=dict)
    """By transport: direct, uds, tcp."""
    mpi: list[Way] = field(default_factory=list)
    """Through an MPI job, where there is a launcher: for Figures 4 and 5."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Where the services of uds and tcp listen."""
    due: float = float("inf")
    """By when, in seconds since the start, the section at work should have ended."""
    peers: list[Way] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    results: str = "bench-results"
    """Where a full run leaves what it found."""

    def say(self, text: str) -> None:
        """Progress, for people: never on stdout."""
        print(f"[{self.clock.elapsed():5.1f} s] {text}", file=sys.stderr, flush=True)

    def go_through(self, area: str, sections: dict, only: list[str], *given) -> None:
        """Runs the sections of an area, or those named: each has a function and the second by which a quick run should have ended it."""
        for name, (section, due) in sections.items():
            if only and name not in only:
                continue
            self.due = due
            try:
                section(self, *given)
            except Failed as why:
                self.board.fault(f"{area}.{name}", str(why))

    def pick(self, quick, full):
        """One of two values, by the kind of run."""
        return quick if self.quick else full

    def alternate(self, lanes: dict[str, Lane], *, quick: int, full: int, budget: float = 60.0,
                  at_least: int = 2, warm: int = 1) -> tuple[dict[str, list[float]], dict[str, str]]:
        """Measures lanes alternately, see `measure.alternate`; `quick` and `full` are the rounds.

        A quick run stops after `budget` seconds, but not before `at_least` rounds. When it is late,
        because the machine is busy, one round must do, so that it still ends in time.
        """
        if not self.quick:
            return alternate(lanes, full, warm=warm)
        if self.clock.elapsed() > self.due:
            return alternate(lanes, 1, warm=0)
        return alternate(lanes, quick, warm=warm, budget=budget, at_least=at_least)

    def fell(self, prefix: str, fallen: dict[str, str]) -> None:
        """Notes the lanes that fell out of a measurement: ours are faults, the others are skipped."""
        for name, why in fallen.items():
            note = self.board.fault if name in self.ours else self.board.skip
            note(f"{prefix}.{name}", why)

    def rushed(self, seconds: float, name: str) -> bool:
        """Whether a quick run has no time left for something that takes so long; notes that it is skipped."""
        if self.clock.left() >= seconds:
            return False
        self.board.skip(name, "the time of a --quick run was used up")
        return True
