"""Something that writes through a host log and is ended by force: what the crash matrices share."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

from log import points
from mpi.libraries import Failed

END_SECONDS_MAX = 60


def processes(*words):
    """The ids of the processes whose command line has all of these words; ours are none of them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if all(any(word.encode() in argument for argument in command) for word in words):
                found.append(int(entry.name))
    return found


def kill(ids):
    for number in ids:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Scene:
    """A directory for one run: its log, its target, and where its processes note how far they are."""

    def __init__(self, sluice, name, seed, scratch):
        self.dice = random.Random(seed)
        self.sluice = sluice
        self.place = scratch / f"{name}-{seed}"
        self.side, self.target, self.log = (self.place / name for name in ("side", "target", "log"))
        for directory in (self.side, self.target):
            directory.mkdir(parents=True)

    def start(self, command, environment):
        with open(self.place / "told", "w") as out:
            return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    cwd=self.place, env=os.environ | environment, start_new_session=True)

    def through_the_log(self):
        return [self.sluice, "run", "--reconnect-seconds", "1", "--log", self.log, "--to", self.target, "--"]

    def agents(self):
        return processes("log", "agent", str(self.log))

    def wait_for(self, program, lines):
        """Until the first rank has noted so many lines, or the program is over; and a random moment longer."""
        noted = self.side / "points.0"
        end = time.monotonic() + END_SECONDS_MAX
        while program.poll() is None and time.monotonic() < end:
            if noted.exists() and noted.read_bytes().count(b"\n") >= lines:
                break
            time.sleep(0.002)
        time.sleep(self.dice.random() * 0.004)

    def settle(self):
        """Brings to the target what counts."""
        # An agent that was not killed drains by itself.
        self.command("drain" if self.agents() else "recover")
        self.command("verify")

    def command(self, *words):
        done = subprocess.run([self.sluice, "log", *words, self.log], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(f"sluice log {' '.join(words)}: status {done.returncode}: {(done.stderr or done.stdout)[-600:]}")

    def judge_file(self, checker, name, came, *recognised):
        """Raises where a file may not be as it is; `recognised` is what its checker has to know."""
        equal, made_of = points.equal_to(checker, self.target / name, *recognised)
        if wrong := points.judge(equal, came, made_of):
            raise Failed(f"{name}: {wrong}")

    def clean(self):
        kill(self.agents())
        shutil.rmtree(self.place, ignore_errors=True)
