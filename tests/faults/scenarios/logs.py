"""The host log on a disk that fails, is full, or cannot be written; and an agent that is killed in the middle of something."""

import errno
import os
import re
import shutil
import subprocess
import time

from house import places
from log import points
from log.points import Points
from powercut import names
from faults.scenario import Skip, clear_sentence, finish, hold, scenario

PROGRAMS = places.REPOSITORY / "tests" / "log" / "programs"
WRITERS = [("growing", "sync"), ("mixed", "datasync"), ("names", "")]
EPOCHS, EACH = 40, 6


class Logged:
    """Writers on a log, and what may be in the target afterwards."""

    def __init__(self, house, name, log=None):
        self.house = house
        self.place = house.scratch / name
        self.target, self.notes, self.log = self.place / "target", self.place / "notes", log or self.place / "log"
        self.target.mkdir(parents=True)
        for source in ("lone", "points"):
            program = house.scratch / source
            if not program.exists():
                done = finish(["gcc", "-O1", "-o", program, PROGRAMS / f"{source}.c"], house.scratch, 60)
                hold(done.returncode == 0, done.stderr)

    def write(self, *inject, options=(), seconds_max=60):
        """Runs the writers, under strace where calls are to fail; that ends with the agent."""
        traced = []
        if inject:
            if not shutil.which("strace"):
                raise Skip("strace is not installed")
            calls = ",".join(sorted({word.split(":")[0] for word in inject}))
            traced = ["strace", "-f", "-qq", "-o", self.place / "calls", "-e", f"trace={calls}",
                      *(word for one in inject for word in ("-e", f"inject={one}"))]
        writers = [f"{plan}:{point}" for plan, point in WRITERS]
        return finish([*traced, self.house.sluice, "run", "--reconnect-seconds", "1", "--log", self.log, "--to", self.target, *options,
                       "--", self.house.scratch / "lone", self.notes, self.target, EPOCHS, EACH, *writers], self.place, seconds_max)

    def command(self, *words):
        return self.house.cli("log", *words, self.log)

    def recovered(self, what):
        """Nothing is lost that was told to be durable."""
        if not (self.log / "log.toml").exists():
            hold(" pass " not in self.told(), what, "there is no log, and something was told to be durable")
            return
        for word in ("verify", "recover"):
            done = self.command(word)
            hold(done.returncode == 0, what, word, done.stderr or done.stdout)
        for number, (plan, _) in enumerate(WRITERS):
            came = {word: max(map(int, re.findall(rf"^{number} {word} (\d+)$", self.told(), re.M)), default=0) for word in ("pass", "enter")}
            if plan == "names":
                wrong = names.judge(self.target / f"names.{number}", Points(came["pass"], came["enter"]))
            else:
                # What was written since the last point counts if the program ended in peace, which closes its files.
                equal, made_of = points.equal_to(self.house.scratch / "points", self.target / f"{plan}.{number}", plan, 1, EACH, EPOCHS, number)
                wrong = points.judge(equal, Points(came["pass"], came["enter"]), made_of)
            hold(not wrong, what, plan, wrong)

    def told(self):
        return self.notes.read_text() if self.notes.exists() else ""


@scenario
def a_log_whose_agent_is_killed_at_a_call(house):
    """What fsync had acknowledged is there after a recovery, whichever call of the agent was its last."""
    for call, at in (("fdatasync", 5), ("fdatasync", 13), ("pwritev", 2), ("pwritev", 8), ("rename,renameat2", 3)):
        logged = Logged(house, f"{call}-{at}")
        logged.write(f"{call}:signal=KILL:when={at}")
        logged.recovered(f"killed at {call} {at}:")


@scenario
def a_log_whose_disk_fails(house):
    """EIO reaches the program and `sluice log status`, stays, and nothing is lost that was acknowledged before."""
    for at in (12, 16):
        logged = Logged(house, f"failing-{at}")
        done = logged.write(f"fdatasync:error=EIO:when={at}")
        clear_sentence(done, "Input/output error")
        last = {line.split()[0]: line.split()[1:] for line in logged.told().splitlines()}
        stays = all(what == "enter" or epoch == str(EPOCHS) for what, epoch in last.values())
        hold(stays, "a writer that could have gone on has ended behind a point:", last)
        status = logged.command("status")
        hold("failed" in status.stdout, "status says:", status.stdout, status.stderr)
        trouble = (logged.log / "agent.log").read_text()
        hold("Input/output error" in trouble and trouble.count("\n") < 30, "agent.log:", trouble[:2000])
        logged.recovered(f"EIO at {at}:")


def small_disk(house, options):
    """A tmpfs, which only root can mount."""
    if os.geteuid() != 0:
        raise Skip("mounting a tmpfs needs root")
    place = house.scratch / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"mounting a tmpfs is not allowed here: {done.stderr.strip()}")
    house.closing.append(lambda: subprocess.run(["umount", "--lazy", place], check=False))
    return place


@scenario
def a_log_on_a_disk_that_is_too_small(house):
    """The first segment does not fit: the program is not started, and it is said why."""
    logged = Logged(house, "small", small_disk(house, "size=900k") / "log")
    clear_sentence(logged.write(), "No space left on device", "segments")
    hold(not logged.told(), "the program was started")


@scenario
def a_log_on_a_read_only_disk(house):
    """The program is not started, and it is said which directory cannot be made."""
    logged = Logged(house, "read-only", small_disk(house, "size=900k,ro") / "log")
    clear_sentence(logged.write(), "Read-only file system", "log's directory")
    hold(not logged.told(), "the program was started")


# Makes files one after the other, each under its name when it is whole, and tries again where there is no space. After some it
# waits to be told to go on.
FILES, FILE_BYTES = 40, 700_000
PATIENT = """
import errno, os, sys, time
target, notes, files, size = sys.argv[1], open(sys.argv[2], "a", buffering=1), int(sys.argv[3]), int(sys.argv[4])
for number in range(files):
    while number == 5 and not os.path.exists(sys.argv[5]):
        time.sleep(0.05)
    while True:
        try:
            with open(f"{target}/new{number}", "wb", buffering=0) as file:
                rest = memoryview(bytes([number + 1]) * size)
                while rest:
                    rest = rest[file.write(rest):]
                os.fsync(file)
            os.rename(f"{target}/new{number}", f"{target}/file{number}")
            break
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            notes.write(f"refused {number}\\n")
            time.sleep(0.1)
    notes.write(f"done {number}\\n")
"""


def wait_until(what, seconds_max, *explanation):
    """Waits for something that takes as long as the machine needs."""
    until = time.monotonic() + seconds_max
    while not what():
        hold(time.monotonic() < until, f"not after {seconds_max} s:", *explanation)
        time.sleep(0.05)


def fill(path):
    """Takes all space that a file system has."""
    with open(path, "wb", buffering=0) as other:
        try:
            while True:
                other.write(bytes(4096))
        except OSError as error:
            hold(error.errno == errno.ENOSPC, "filling the disk:", error)


@scenario
def a_log_whose_disk_another_program_fills(house):
    """Programs wait or get ENOSPC, `sluice log status` says why, the drain goes on, and once there is space, all does; nothing is lost."""
    disk, go = small_disk(house, "size=60m"), house.scratch / "go"
    logged = Logged(house, "filled", disk / "log")
    program = house.start([house.sluice, "run", "--log", logged.log, "--to", logged.target, "--log-size", "64MiB", "--log-bandwidth", "4MiB", "--",
                           "/usr/bin/python3", "-c", PATIENT, logged.target, logged.notes, FILES, FILE_BYTES, go], stderr=subprocess.PIPE, text=True)

    def done():
        return logged.told().count("done")

    # The agent replaces its small files by others; both have a place by then.
    small = [logged.log / f"{name}.new" for name in ("status.json", "drain", "drain.intent")]
    wait_until(lambda: done() == 5 and all(path.exists() for path in small), 60, logged.told())
    fill(disk / "other")
    go.touch()
    said = []

    def is_told():
        said.append(logged.command("status").stdout)
        return "disk is full" in said[-1]

    wait_until(is_told, 30, "status says:", *said[-1:])
    # More than there is room for in the log: space comes of the drain alone.
    wait_until(lambda: program.poll() is not None or done() > 30, 60, logged.told(), *said[-1:])
    (disk / "other").unlink()
    _, trouble = program.communicate(timeout=60)
    hold(program.returncode == 0, "the program has ended with", program.returncode, trouble)
    drained = logged.command("drain")
    hold(drained.returncode == 0, drained.stderr)
    for number in range(FILES):
        found = (logged.target / f"file{number}").read_bytes()
        hold(found == bytes([number + 1]) * FILE_BYTES, "file", number, "holds", len(found), "bytes and not what was written")
    verified = logged.command("verify")
    hold(verified.returncode == 0, verified.stderr)
