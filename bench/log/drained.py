"""From the log to the target: the drain and the recovery after a crash, beside dd. And the paper's Figure 11."""

import signal

from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import run
from lib.workspace import forget

from .places import Far, Log, Places, far_place

DD_MIN = 0.9
"""Of what dd reaches to the same target."""
MIB = 1 << 20
HOLD = ["--log-bandwidth", "1"]
"""So that everything stays in the log until it is asked for."""


class Case:
    """So many bytes that are to get to a target; `far` is None for a directory on the disk."""

    def __init__(self, bench: Bench, places: Places, far, size: int):
        self.bench, self.places, self.far, self.size = bench, places, far, size
        self.source = places.disk("source")
        folder = places.disk("target")
        run(["mkdir", "-p", folder])
        self.target = far.uri if far else folder
        self.file = f"{self.target}/drained"
        self.lies_at = bench.space.far("drained") if far else f"{folder}/drained"

    def prepare(self) -> None:
        run([self.places.writer, "pieces", self.source, str(self.size), str(MIB), str(self.size)])

    def dd(self) -> float:
        forget(self.lies_at)
        to = "/far/drained" if self.far else self.lies_at
        argv = ["dd", f"if={self.source}", f"of={to}", "bs=4M", "conv=fsync", "status=none"]
        return run(self.far.direct(self.bench.binary, argv) if self.far else argv).seconds

    def left(self) -> Log:
        """A log that holds all of it."""
        forget(self.lies_at)
        log = self.places.log(self.target, self.far.prefix if self.far else ())
        log.run([self.places.writer, "pieces", self.file, str(self.size), str(MIB), str(self.size)], HOLD)
        return log

    def by(self, command: str, how: int) -> float:
        """The seconds of `sluice log COMMAND`, the agent having been ended before."""
        log = self.left()
        log.end(how)
        took = log.do(command).seconds
        self.check()
        log.remove()
        return took

    def check(self) -> None:
        run([self.bench.tools["transfer"], "check", self.lies_at, str(self.size), str(MIB)])

    def lanes(self) -> dict[str, Lane]:
        return {"dd": Lane(self.dd), "drain": Lane(lambda: self.by("drain", signal.SIGTERM)),
                "recover": Lane(lambda: self.by("recover", signal.SIGKILL))}

    def end(self) -> None:
        forget(self.source)
        forget(self.lies_at)


def compare(bench: Bench, places: Places, name: str, far) -> None:
    """One target: dd, drain and recovery of the same bytes."""
    case = Case(bench, places, far, bench.pick(160, 512) * MIB)
    try:
        case.prepare()
        figures, _ = bench.alternate(case.lanes(), quick=3, full=3, budget=5, at_least=1, warm=0)
    except Failed as why:
        bench.board.fault(f"drain.{name}", str(why))
        return
    finally:
        case.end()
    for lane in ("drain", "recover"):
        bench.board.add_ratio(f"{lane}.{name}.vs_dd", figures["dd"], figures[lane], "higher", DD_MIN)
    for lane in ("dd", "drain", "recover"):
        bench.board.add(f"{lane}.{name}.bandwidth", [case.size / s / 1e6 for s in figures[lane]], "MB/s", "higher")


def by_size(bench: Bench, places: Places, far: Far) -> None:
    """The paper's Figure 11."""
    sizes = [16, 64, 256, 1024]
    groups = [f"{size} MiB" for size in sizes]
    time = Figure("Figure 11. Time of a recovery", "`sluice log recover` after the agent was killed, to a service that takes "
                  "100 MB/s, and dd of the same bytes to it.", "s", "lower", groups, log_scale=True)
    rate = Figure("Figure 11. Bandwidth of a recovery", "The same runs.", "MB/s", "higher", groups)
    for size, group in zip(sizes, groups):
        case = Case(bench, places, far, size * MIB)
        try:
            case.prepare()
            lanes = case.lanes()
            del lanes["drain"]
            figures, _ = bench.alternate(lanes, quick=1, full=3, warm=0)
        except Failed as why:
            bench.board.fault(f"recover.{size}MiB", str(why))
            continue
        finally:
            case.end()
        for lane, label in (("dd", "dd"), ("recover", "Sluice log")):
            time.put(label, group, figures[lane])
            rate.put(label, group, [case.size / s / 1e6 for s in figures[lane]])
    bench.figures["log11-time"], bench.figures["log11-bandwidth"] = time, rate


def measure(bench: Bench, places: Places) -> None:
    if bench.rushed(10, "drained"):
        return
    bench.say("drain and recovery beside dd")
    with far_place(bench) as far:
        compare(bench, places, "far", far)
        if not bench.quick:
            by_size(bench, places, far)
    if not bench.rushed(6, "drained.disk"):
        compare(bench, places, "disk", None)
