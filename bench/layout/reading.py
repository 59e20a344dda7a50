"""Views read through a service on a Unix socket, beside a plain file of the same service."""

from dataclasses import dataclass

from lib import services
from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import Daemon, run
from lib.ways import FAR_PREFIX, Session
from lib.workspace import forget

from . import definitions
from .native import Tools

UNMATERIALISED_MIN = 0.8
MATERIALISED_MIN = 0.95
PLAIN = "plain.dat"
MAKING_SECONDS_MAX = 300.0


class Served:
    """A service for the far directory and for datasets in it."""

    def __init__(self, bench: Bench, tools: Tools, name: str, datasets: dict[str, str]):
        self.bench, self.tools = bench, tools
        stores = []
        for dataset, text in datasets.items():
            path = bench.space.far(f"{dataset}.drepl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            stores.append(f"{dataset}={path}")
        address = services.new_address(bench.space, "uds", name)
        self.daemon = Daemon([bench.binary, "serve", f"{services.STORE}={bench.space.far()}", *stores, "--listen", address],
                             bench.space.run(name + ".log"))
        # It first makes the replicas that are missing, of some GB in a full run.
        self.daemon.line("listening", MAKING_SECONDS_MAX)
        root = services.sluice_uri(address).rsplit("/", 1)[0]
        self.session = Session(FAR_PREFIX, [bench.binary, "run", "--map", f"{FAR_PREFIX}={root}", "--"])

    def plain(self, name: str = PLAIN) -> str:
        """A plain file of the service, as programs name it."""
        return self.session.path(f"{services.STORE}/{name}")

    def view(self, dataset: str, view: str) -> str:
        return self.session.path(f"{dataset}/{view}")

    def timed(self, *argv: object) -> float:
        """Runs the program that reads and writes views; returns the seconds that it tells."""
        return self.session.timed([self.tools.views, *map(str, argv)])

    def end(self) -> None:
        self.daemon.end()


def sizes(bench: Bench) -> tuple[int, int]:
    """Structures, and the lines and columns of the matrix of as many bytes."""
    n = bench.pick(96 << 20, 168_000_000 * 12) // 12 // 4096 * 4096 + 336
    edge = int((12 * n / 8) ** 0.5) // 64 * 64 + 8
    return n, edge


@dataclass
class Case:
    """A view that is read."""

    name: str
    dataset: str
    view: str
    size: int
    check: list[object]
    goal: float
    source: str = ""
    """The file that a view is made of; none for one that is stored."""
    length: int = 0
    """How `limit` is told the size."""


def cases(n: int, edge: int) -> list[Case]:
    fifths = 3 * n // 5
    points = lambda view: ["check", view, n]
    return [
        Case("materialised", "aos", "aos", 12 * n, points("aos"), MATERIALISED_MIN),
        Case("soa_from_aos", "aos", "soa", 12 * n, points("soa"), UNMATERIALISED_MIN, "aos.raw", n),
        Case("aos_from_soa", "soa", "aos", 12 * n, points("aos"), UNMATERIALISED_MIN, "soa.raw", n),
        Case("b_from_aos", "aos", "b", 4 * n, points("b"), UNMATERIALISED_MIN, "aos.raw", n),
        Case("every5", "line", "every5", 4 * fifths, ["check", "every5", fifths], UNMATERIALISED_MIN, "line.raw", fifths),
        Case("transpose", "matrix", "t", 8 * edge * edge, ["checkt", edge, edge], UNMATERIALISED_MIN, "matrix.raw", edge),
    ]


def datasets(n: int, edge: int) -> dict[str, str]:
    return {
        "aos": definitions.points(n) + definitions.replica("aos.raw", "aos"),
        "soa": definitions.points(n) + definitions.replica("soa.raw", "soa"),
        "line": definitions.line(3 * n // 5 * 5) + definitions.replica("line.raw", "x"),
        "matrix": definitions.matrix(edge, edge) + definitions.replica("matrix.raw", "m"),
    }


def fill(served: Served, n: int, edge: int) -> None:
    """Writes the data, each dataset through the view that its replica has, and a plain file."""
    for dataset, view, size in (("aos", "aos", 12 * n), ("soa", "aos", 12 * n), ("line", "x", 3 * n // 5 * 20),
                                ("matrix", "m", 8 * edge * edge)):
        served.timed("write", served.view(dataset, view), size)
    # By the same way: how a file was written decides how large the pieces of memory are that hold it.
    # As long as the longest view: the matrix, in a full run.
    served.timed("write", served.plain(), max(12 * n, 8 * edge * edge))


def check(served: Served, case: Case) -> None:
    """Every byte of a view, once."""
    mode, *rest = case.check
    served.timed(mode, served.view(case.dataset, case.view), *rest)


def measure(bench: Bench, tools: Tools) -> None:
    n, edge = sizes(bench)
    bench.say(f"views of {12 * n >> 20} MiB read through a service")
    served = Served(bench, tools, "reading", datasets(n, edge))
    fill(served, n, edge)
    all_cases = cases(n, edge)
    figure = Figure(
        "Figure 5. Bandwidth of reading views",
        f"Views of up to {12 * n >> 20} MiB, 1 MiB at a time, through a service on a Unix socket, and as many bytes of a "
        "plain file of the same service. All but the first are made when they are read (the paper: 15 times slower); "
        "beside them what one process makes by loops written by hand and another receives, without a service.",
        "MB/s", "higher", [case.name for case in all_cases])
    bench.figures["5"] = figure
    share = max(0.4, (bench.due - bench.clock.elapsed()) / len(all_cases) - 0.7)
    for case in all_cases:
        prefix = f"read.{case.name}"
        limit = [tools.limit, case.name, bench.space.far(case.source), str(case.length)]
        try:
            check(served, case)
            if case.source:
                run([*limit, "check"])
            # A stored view beside the very file that stores it: the same pages of memory.
            plain = "aos.raw" if case.name == "materialised" else PLAIN
            lanes = {"plain": Lane(lambda: served.timed("read", served.plain(plain), case.size)),
                     "view": Lane(lambda: served.timed("read", served.view(case.dataset, case.view), case.size))}
            if case.source:
                lanes["limit"] = Lane(lambda: float(run(limit).json()["seconds"]))
            figures, _ = bench.alternate(lanes, quick=9, full=9, budget=share, at_least=3)
        except Failed as why:
            bench.board.fault(prefix, str(why))
            continue
        bench.board.add_ratio(f"{prefix}.vs_plain", figures["plain"], figures["view"], "higher", case.goal)
        figure.put("Sluice uds", case.name, [case.size / s / 1e6 for s in figures["view"]])
        figure.put("plain files", case.name, [case.size / s / 1e6 for s in figures["plain"]])
        if case.source:
            bench.board.add_ratio(f"{prefix}.vs_limit", figures["limit"], figures["view"], "higher")
            bench.board.add_ratio(f"{prefix}.limit.vs_plain", figures["plain"], figures["limit"], "higher")
            figure.put("by hand, over a bare socket", case.name, [case.size / s / 1e6 for s in figures["limit"]])
        for name in lanes:
            bench.board.add(f"{prefix}.{name}.bandwidth", [case.size / s / 1e6 for s in figures[name]], "MB/s", "higher")
    served.end()
    for name in ("aos.raw", "soa.raw", "line.raw", "matrix.raw", PLAIN):
        forget(bench.space.far(name))
