"""A program that computes and writes results in turn, to a far place of 100 MB/s: the paper's Figures 4, 7 and 8."""

import contextlib
import os
import shutil

from lib import peers
from lib.context import Bench, Figure
from lib.measure import Failed, Lane
from lib.process import Ran, run

from .places import BYTES_PER_SECOND, Far, Places, far_place

HIDDEN_MIN = 0.9
"""Of the time of the transfer, where there is time enough to compute meanwhile."""
CYCLES = 16
RCLONE_RATE = f"{BYTES_PER_SECOND / 1024:.0f}k"
"""As rclone takes it: KiB a second."""


class Simulation:
    """So many cycles that compute, with a file of `size` bytes after every `every`-th."""

    def __init__(self, bench: Bench, places: Places, far: Far, every: int, size: int, ms: int):
        self.bench, self.places, self.far = bench, places, far
        self.every, self.size, self.ms = every, size, ms
        self.log = places.log(far.uri, far.prefix)
        # As the program names it: through the log by its own URI.
        self.folder = "results"
        self.waited: dict[str, list[float]] = {}

    def argv(self, folder: str, size: int) -> list[str]:
        return [self.places.writer, "cycles", folder, str(CYCLES), str(self.every), str(size), str(self.ms)]

    def empty(self) -> str:
        """The directory of the results, new, as the far side sees it."""
        path = self.bench.space.far(self.folder)
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return path

    def noted(self, name: str, ran: Ran) -> float:
        """Its time from start to end; what of it the program spent in open, write, sync and close is kept beside."""
        told = ran.json()
        self.waited.setdefault(name, []).append(float(told["seconds"]))
        return float(told["total"])

    def none(self) -> float:
        """Computing alone."""
        return run(self.argv("/nowhere", 0)).json()["total"]

    def local(self) -> float:
        path = self.places.disk("results")
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return self.noted("local", run(self.argv(path, self.size)))

    def direct(self) -> float:
        self.empty()
        argv = self.argv(f"/far/{self.folder}", self.size)
        return self.noted("direct", run(self.far.direct(self.bench.binary, argv)))

    def logged(self) -> float:
        self.empty()
        took = self.noted("log", self.log.run(self.argv(f"{self.far.uri}/{self.folder}", self.size)))
        self.log.do("drain")
        return took

    def check(self) -> None:
        """Every byte of what came through the log last."""
        for name in sorted(os.listdir(self.bench.space.far(self.folder))):
            run([self.bench.tools["transfer"], "check", self.bench.space.far(self.folder, name), str(self.size), str(1 << 20)])
        if len(os.listdir(self.bench.space.far(self.folder))) != CYCLES // self.every:
            raise Failed("not all results are in the target")


@contextlib.contextmanager
def rclone(bench: Bench):
    """A mount with a write-back cache over SFTP, limited to the same bandwidth: in place of the paper's SymphonyFS."""
    peers.need("rclone", package="rclone")
    peers.need_fuse()
    sshd = peers.Sshd(bench.space)
    cache = bench.space.run("rclone-log")
    mount = peers.Mount(bench.space, [
        "rclone", "mount", f":sftp:{bench.space.far()}", "MOUNT", "--config", os.devnull, "--cache-dir", cache,
        "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--log-level", "ERROR", "--bwlimit", RCLONE_RATE,
        "--sftp-host", "127.0.0.1", "--sftp-port", str(sshd.port), "--sftp-user", peers.getpass.getuser(),
        "--sftp-key-file", sshd.key, "--sftp-disable-hashcheck"])
    try:
        yield mount.point
    finally:
        mount.close()
        sshd.daemon.end()
        shutil.rmtree(cache, ignore_errors=True)


def frequencies(bench: Bench) -> list[int]:
    """After how many cycles results are written."""
    return bench.pick([4], [16, 8, 4, 2, 1])


def measure(bench: Bench, places: Places) -> None:
    if bench.rushed(12, "endtoend"):
        return
    size = bench.pick(24 << 20, 64 << 20)
    # Every fourth cycle leaves a third more time than its results take to be transferred.
    ms = int(size / BYTES_PER_SECOND * 1000 / 3)
    figure = Figure(
        "Figures 4, 7 and 8. End-to-end time at several output frequencies",
        f"{CYCLES} cycles of {ms} ms that compute, and {size >> 20} MiB written and synced after every so many, to a "
        f"service that takes {BYTES_PER_SECOND // 1_000_000} MB/s. The rclone mount takes an fsync for none and uploads "
        "after the close; it stands in place of SymphonyFS (Figure 10).",
        "s", "lower", [f"every {every}" for every in frequencies(bench)])
    with contextlib.ExitStack() as stack:
        far = stack.enter_context(far_place(bench))
        bench.say(f"a program that writes {size >> 20} MiB now and then, to a far place of 100 MB/s ({far.how})")
        mounted = None
        if not bench.quick:
            try:
                mounted = stack.enter_context(rclone(bench))
            except Failed as why:
                bench.board.skip("endtoend.rclone", str(why))
        else:
            bench.board.skip("endtoend.rclone", "measured by full runs only")
        for every in frequencies(bench):
            frequency(bench, Simulation(bench, places, far, every, size, ms), mounted, figure)
    bench.figures["log4"] = figure


def frequency(bench: Bench, one: Simulation, mounted, figure: Figure) -> None:
    prefix, group = f"endtoend.every{one.every}", f"every {one.every}"
    lanes = {"direct": Lane(one.direct), "log": Lane(one.logged), "local": Lane(one.local)}
    if not bench.quick:
        lanes["none"] = Lane(one.none)

    def by_rclone() -> float:
        one.empty()
        took = run(one.argv(os.path.join(mounted, one.folder), one.size)).json()["total"]
        peers.RcloneSession(mounted, bench.space).settle(
            [f"{one.folder}/out.{number}" for number in range(1, CYCLES // one.every + 1)])
        return took

    if mounted:
        lanes["rclone"] = Lane(by_rclone)
        # The check below wants what came through the log.
        lanes["log"] = lanes.pop("log")
    try:
        figures, fallen = bench.alternate(lanes, quick=3, full=3, budget=8, at_least=1, warm=0)
        for lane, why in fallen.items():
            (bench.board.skip if lane == "rclone" else bench.board.fault)(f"{prefix}.{lane}", why)
        if "log" not in fallen:
            one.check()
    except Failed as why:
        bench.board.fault(prefix, str(why))
        return
    finally:
        one.log.remove()
    # What the program waits for, by its own clock: how long it computes depends on who else uses the machine.
    waited = one.waited
    hidden = [direct - log for direct, log in zip(waited["direct"], waited["log"])]
    saved = [direct - log for direct, log in zip(figures["direct"], figures["log"])]
    allows = one.every >= 4
    bench.board.add_ratio(f"{prefix}.hidden", hidden, waited["direct"], "higher", HIDDEN_MIN if allows else None)
    bench.board.add_ratio(f"{prefix}.saved", saved, figures["direct"], "higher")
    for lane in ("local", "log", "direct"):
        bench.board.add(f"{prefix}.waited.{lane}", waited[lane], "s", "lower")
    for lane, label in (("none", "computing alone"), ("local", "local disk"), ("log", "Sluice log"),
                        ("direct", "far, directly"), ("rclone", "rclone mount")):
        figure.put(label, group, figures.get(lane, []))
        bench.board.add(f"{prefix}.{lane}", figures.get(lane, []), "s", "lower")
