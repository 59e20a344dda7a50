"""Ranks that write epochs through a host log, and are ended by force."""

import subprocess

from log.points import Points
from log.victims import END_SECONDS_MAX, Scene, kill, processes
from mpi.libraries import Failed

EPOCHS, EACH = 30, 30
WAYS = [("whole", "independent", "sync"), ("some", "strided", "sync"), ("growing", "collective", "close"),
        ("mixed", "nonblocking", "sync"), ("mixed", "posix", "sync"), ("growing", "posix", "datasync"),
        ("mixed", "strided", "close"), ("whole", "posix", "close")]
ROMIO_HANGS = "ROMIO never returns from MPI_Wait for an aio_write that has failed"


class Crash(Scene):
    """One run that is ended by force."""

    VICTIMS = ("rank", "ranks", "agent", "everything")

    def __init__(self, sluice, stack, ranks, seed, scratch):
        super().__init__(sluice, "crash", seed, scratch)
        self.stack, self.ranks = stack, ranks
        self.plan, self.calls, self.point = WAYS[seed % len(WAYS)]
        victims = self.VICTIMS
        self.victim = victims[seed // len(WAYS) % len(victims) if seed >= len(WAYS) else self.dice.randrange(len(victims))]
        # Why the program may be ended by nothing but a signal, through no fault of the log. Of ROMIO, whatever the stack is called.
        romio = stack.name != "ompio" and self.calls == "nonblocking" and self.victim == "agent"
        self.may_hang = ROMIO_HANGS if romio else None

    def __str__(self):
        return f"{self.stack.name} {self.plan} {self.calls} {self.point} {self.victim}"

    def launch(self, words):
        return self.stack.launch(self.ranks, words, self.through_the_log())

    def chosen(self, launcher, ranks):
        """The processes that are ended."""
        return {"rank": ranks[-1:], "ranks": ranks, "agent": self.agents(),
                "everything": [launcher, *ranks, *self.agents()]}[self.victim]

    def run(self):
        """Starts the program and kills; returns whether it was still running."""
        program = self.stack.compiled("epochs.c")
        words = [program, self.side, self.target, self.plan, self.calls, self.point, EPOCHS, EACH]
        launcher = self.start(self.launch(words), self.stack.library.environment)
        try:
            self.wait_for(launcher, self.dice.randrange(1, 3 * EPOCHS - 6))
            was_running = launcher.poll() is None
            ranks = processes(str(program), str(self.side))
            ranks = [number for number in ranks if number != launcher.pid]
            kill(self.chosen(launcher.pid, ranks))
            try:
                launcher.wait(10 if self.may_hang else END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                if self.may_hang:
                    return self.may_hang
                raise Failed(f"the program hangs after the end of its {self.victim}") from None
        finally:
            kill(processes(str(self.side)))
            launcher.wait()
        return was_running

    def judge(self):
        """After everything has ended: raises where the file may not be as it is."""
        self.settle()
        checker = self.stack.compiled("points.c", compiler=["gcc"])
        files = [(self.plan, self.ranks, None, range(self.ranks))]
        if self.calls == "posix":
            files = [(f"{self.plan}.{rank}", 1, rank, [rank]) for rank in range(self.ranks)]
        for name, sharers, writer, noted in files:
            # The epoch is made when the last rank has entered it: what one rank has passed and another not entered may be lost.
            each = [Points.noted(self.side, [rank]) for rank in noted]
            came = Points(min(one.passed for one in each), min(one.entered for one in each))
            self.judge_file(checker, name, came, self.plan, sharers, EACH, EPOCHS, writer)
