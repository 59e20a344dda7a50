"""Ranks on two nodes, which are played by two logs, and what is left of them after a crash."""

import pathlib
import subprocess
import time

from log.carriers import through_nodes
from log.ranks import Crash
from log.victims import END_SECONDS_MAX, processes
from mpi.libraries import Failed

NODES = 2
# A drain that waits for another node's bytes looks for them after half a minute at the latest.
SETTLE_SECONDS_MAX = 180
# Sluice asks the logs of all ranks before it lets them open a file; an agent can still end while they do.
OMPIO_HANGS = "OMPIO never returns from MPI_File_open where it fails on one rank alone"


def rank_of(process):
    """The rank that a process is, by what its launcher told it."""
    try:
        variables = dict(word.split(b"=", 1) for word in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
                         if b"=" in word)
    except OSError:
        return None
    text = variables.get(b"PMI_RANK") or variables.get(b"OMPI_COMM_WORLD_RANK")
    return int(text) if text else None


class Apart(Crash):
    """One run on two nodes; what ends is a node with all that it has, its agent, or everything."""

    VICTIMS = ("node", "agent", "everything", "ranks")

    def __init__(self, sluice, stack, ranks, seed, scratch):
        super().__init__(sluice, stack, max(ranks, NODES), seed, scratch)
        self.node = self.dice.randrange(NODES)
        if stack.name == "ompio" and self.point == "close" and self.calls != "posix" and self.victim == "agent":
            self.may_hang = OMPIO_HANGS
        self.logs = [self.place / f"log{node}" for node in range(NODES)]

    def __str__(self):
        return f"apart {super().__str__()} {self.node if self.victim in ('node', 'agent') else ''}".rstrip()

    def launch(self, words):
        flags = ("--reconnect-seconds", "1")
        within = through_nodes(self.sluice, self.logs, self.place / "meeting", self.target, flags=flags)
        return self.stack.launch(self.ranks, words, (), within)

    def agents(self, node=None):
        logs = self.logs if node is None else [self.logs[node]]
        return [number for log in logs for number in processes("log", "agent", str(log))]

    def chosen(self, launcher, ranks):
        own = [number for number in ranks if rank_of(number) in range(self.node, self.ranks, NODES)]
        return {"node": [*own, *self.agents(self.node)], "agent": self.agents(self.node), "ranks": ranks,
                "everything": [launcher, *ranks, *self.agents()]}[self.victim]

    def settle(self):
        """On all nodes at once, as after a crash of the real ones."""
        logs = [log for log in self.logs if (log / "log.toml").exists()]
        working = []
        for node, log in enumerate(self.logs):
            if log in logs:
                word = "drain" if self.agents(node) else "recover"
                with open(self.place / f"settled{node}", "w") as told:
                    working.append((log, word, subprocess.Popen([self.sluice, "log", word, log], stdout=told, stderr=told)))
        try:
            for log, word, work in working:
                if work.wait(SETTLE_SECONDS_MAX) != 0:
                    told = (self.place / f"settled{self.logs.index(log)}").read_text()
                    raise Failed(f"sluice log {word} {log}: status {work.returncode}: {told[-600:]}")
        finally:
            for _, _, work in working:
                work.kill()
                work.wait()
        for self.log in logs:
            # A member's log is gone when nobody needs it any more.
            if (self.log / "log.toml").exists():
                self.command("verify")
        # Those that live end by themselves, a little later.
        end = time.monotonic() + END_SECONDS_MAX
        while self.agents() and time.monotonic() < end:
            time.sleep(0.1)
        if left := [path.name for path in (self.place / "meeting").iterdir()]:
            raise Failed(f"the nodes still think that they need each other: {left}")
