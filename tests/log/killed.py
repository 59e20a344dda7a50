"""Programs without MPI: `programs/steps.c` writes a file in one of many ways, and SIGKILL ends it, a child of it, the
log's agent, or all of them."""

from log.points import Points
from log.victims import END_SECONDS_MAX, Scene, kill, processes

EPOCHS, EACH = 30, 20
WAYS = ("sync", "datasync", "close", "rewrite", "stdio", "mapped", "child", "exec")
PLANS = ("whole", "some", "growing", "mixed")
VICTIMS = ("program", "program", "family", "agent", "everything")


class Killed(Scene):
    """One run that is ended by force."""

    def __init__(self, sluice, compiled, seed, scratch):
        super().__init__(sluice, "killed", seed, scratch)
        self.compiled = compiled
        self.way = WAYS[seed % len(WAYS)]
        # Nobody is told where a close at the end of a process cannot be made safe, because the agent has gone.
        victims = VICTIMS[:3] if self.way == "child" else VICTIMS
        self.plan, self.victim = self.dice.choice(PLANS), self.dice.choice(victims)

    def __str__(self):
        return f"plain {self.plan} {self.way} {self.victim}"

    def run(self):
        """Starts the program and kills; returns whether it was still running."""
        words = [self.compiled("steps.c"), self.side, self.target, self.plan, self.way, EPOCHS, EACH]
        program = self.start([*self.through_the_log(), *words], {})
        try:
            self.wait_for(program, self.dice.randrange(1, 3 * EPOCHS - 6))
            was_running = program.poll() is None
            # The program that was started, and a child that it may have at the moment.
            family = processes("steps", str(self.side))
            kill({"program": [program.pid], "family": family, "agent": self.agents(),
                  "everything": [*family, *self.agents()]}[self.victim])
            program.wait(END_SECONDS_MAX)
        finally:
            kill(processes("steps", str(self.side)))
            program.wait()
        return was_running

    def judge(self):
        """After everything has ended: raises where the file may not be as it is."""
        self.settle()
        self.judge_file(self.compiled("points.c"), f"{self.plan}.0", Points.noted(self.side, [0]), self.plan, 1, EACH, EPOCHS)
