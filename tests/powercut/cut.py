"""One loop: a machine writes, loses power, recovers, loses power while it does, and is looked at in the end.

Whatever the dice say follows from the seed. What the machine does at a given moment does not.
"""

import dataclasses
import random
import subprocess
import tarfile

from house.checking import Failed, run
from log import points
from log.points import Points
from powercut import names
from powercut.loss import Disk
from powercut.machine import Machine
from powercut.nbd import Power, Server

MIB = 1 << 20
DISK_BYTES = 320 * MIB
EPOCHS, EACH = 120, 30
# (plan, point) of the programs. Where the log is too small for all that is written, plain files are committed as they are when it
# is full, so that only what replaces files as a whole has states to be judged by.
ROOMY = [("whole", "sync"), ("some", "datasync"), ("growing", "sync"), ("mixed", "datasync"), ("growing", "close"),
         ("mixed", "close"), ("whole", "dsync"), ("growing", "dsync"), ("whole", "replace"), ("names", "")]
TIGHT = [("whole", "replace"), ("some", "replace"), ("mixed", "replace"), ("names", ""), ("names", "")]
SILENCE_SECONDS_MAX = 180
MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "xfs": ["mkfs.xfs", "-q"],
          "btrfs": ["mkfs.btrfs", "-q"]}


@dataclasses.dataclass
class Moment:
    """When the power goes: after so many notes of the machine, so many requests of these kinds to these disks later, or so many
    seconds (None: or when it has recovered)."""

    notes: int
    requests: int
    kinds: tuple
    disks: tuple
    seconds: float | None

    @classmethod
    def any(cls, dice, notes_max, requests_max):
        kinds, disks = dice.choice([("flush",), ("write",), ("write", "flush")]), dice.choice([("log",), ("log", "target"), ("target",)])
        # Requests may stay away; then it is the time.
        return cls(dice.randrange(notes_max), dice.randrange(1, requests_max), kinds, disks, dice.choice([0.02, 0.1, 0.3, 1.0]))

    def __str__(self):
        return f"{self.notes} notes, then {self.requests} × {'/'.join(self.kinds)} to {'/'.join(self.disks)} or {self.seconds} s"


class Cut:
    """All boots of one seed."""

    def __init__(self, kit, seed, place, file_systems, syncs=True, writers=None):
        self.kit, self.place, self.syncs = kit, place, syncs
        self.dice = dice = random.Random(seed)
        place.mkdir()
        self.kinds = {name: file_systems[0] if dice.random() < 0.4 else dice.choice(file_systems) for name in ("log", "target")}
        self.tight = dice.random() < 0.35 and syncs
        ways = TIGHT if self.tight else ROOMY
        self.writers = writers or dice.sample(ways, dice.randrange(2, 6))
        self.words = {"LOG_SIZE": 4 * MIB if self.tight else 64 * MIB, "EPOCHS": EPOCHS, "EACH": EACH,
                      "BANDWIDTH": 0 if self.tight else dice.choice([0, MIB // 16, MIB // 4]),
                      "WRITEBACK": dice.choice(["eager", "lazy"]),
                      "WRITERS": ",".join(f"{plan}:{point}" for plan, point in self.writers)}
        # Of the first notes as of all.
        notes_max = dice.choice([8, EPOCHS * len(self.writers)]) if syncs else 40
        self.moment = Moment.any(dice, notes_max, 40)
        # How often the power goes in the middle of the recovery.
        self.again = dice.choice([0, 1, 1, 2])
        self.story = []

    def __str__(self):
        return (f"{self.kinds['log']} to {self.kinds['target']}, {self.words['LOG_SIZE'] // MIB} MiB, {self.words['WRITEBACK']}, {self.words['WRITERS']}")

    def go(self):
        for name in ("log", "target"):
            image = self.image(name)
            with open(image, "wb") as file:
                file.truncate(DISK_BYTES)
            run(*MAKERS[self.kinds[name]], image)
        self.story.append(f"power goes at: {self.moment}")
        wrote = self.boot("write", self.moment, lambda words: words[0] != "@", "up")
        if wrote.status("wrote") not in (None, 0):
            raise Failed(f"the programs failed before the power went\n{wrote.said()}")
        came = {number: Points(0, 0) for number in range(len(self.writers))}
        for number, what, epoch in (words for words in wrote.noted if words[0] != "@" and len(words) == 3):
            now = came[int(number)]
            which = "passed" if what == "pass" else "entered"
            setattr(now, which, max(getattr(now, which), int(epoch)))
        self.story.append(f"passed: {', '.join(str(one.passed) for one in came.values())}")
        if not self.recovered():
            # There is no log yet; nothing can have been told to be durable.
            if passed := {number: one.passed for number, one in came.items() if one.passed}:
                raise Failed(f"lost: there is no log, and epochs had been passed by writers: {passed}")
            return
        self.judge(came, self.look())

    def image(self, name):
        return self.place / f"{name}.img"

    def boot(self, do, moment, counts, begins):
        """A boot that ends with the power. `counts`: whether a line is one of the notes of which the moment tells,
        which come after the note `begins`."""
        disks = {name: Disk(self.image(name)) for name in ("log", "target")}
        ways = None if self.syncs or do != "write" else {"log": "nothing"}
        power = Power(disks, self.dice, ways)
        servers = [Server(power, name, self.place / f"{name}.sock") for name in disks]
        words = self.words | {"DO": do, "LOG_FS": self.kinds["log"], "TARGET_FS": self.kinds["target"],
                              "SYNCS": "with" if self.syncs else "without"}
        machine = Machine(self.kit, self.place, [server.path for server in servers], words)
        try:
            def heard(condition):
                words = machine.wait_for(condition, SILENCE_SECONDS_MAX)
                if words is None:
                    machine.end()
                    raise Failed(f"the machine ({do}) has ended or is silent\n{machine.said()}")
                return words

            last = heard(lambda words: words[:2] in (["@", begins], ["@", "nothing"]))
            left = moment.notes if moment else 0
            while left > 0 and last[:2] not in (["@", "ended"], ["@", "nothing"]):
                last = heard(lambda words: counts(words) or words[:2] == ["@", "ended"])
                left -= 1
            if moment and last[1] != "nothing":
                power.tell = lambda: machine.lines.put(["@", "cut"])
                power.arm(moment.requests, moment.kinds, moment.disks)
                if moment.seconds is None:
                    heard(lambda words: words[:2] in (["@", "cut"], ["@", "recovered"]))
                else:
                    power.cut.wait(moment.seconds)
            power.off()
        finally:
            power.off()
            machine.end()
            for server in servers:
                server.close()
        self.story.append(f"{do}: {power.how}")
        self.mounted(machine)
        return machine

    def recovered(self):
        """Recovers, and loses power meanwhile; returns whether there is a log."""
        for _ in range(self.again):
            moment = Moment(0, self.dice.randrange(1, 60), ("write", "flush"), ("log", "target"), None)
            self.verified(self.boot("recover", moment, lambda _: False, "recovering"))
        # And as soon as it says that everything is in its place.
        machine = self.boot("recover", None, lambda _: False, "recovered")
        self.verified(machine)
        return machine.status("recovered") is not None

    @staticmethod
    def mounted(machine):
        if failed := [words for words in machine.noted if words[:2] == ["@", "mount"]]:
            raise Failed(f"the file system itself has not survived, which is not for the log to answer: {failed}\n{machine.said()}")

    @staticmethod
    def verified(machine):
        for what in ("verify", "recovered"):
            if machine.status(what) not in (None, 0):
                raise Failed(f"sluice log {'recover' if what == 'recovered' else what}: status {machine.status(what)}\n{machine.said()}")

    def look(self):
        """What is in the target after all, in a directory."""
        archive = self.place / "target.tar"
        with open(archive, "wb") as file:
            file.truncate(DISK_BYTES)
        words = self.words | {"DO": "look", "LOG_FS": self.kinds["log"], "TARGET_FS": self.kinds["target"]}
        # It is not written any more, but for the journals' sake.
        with Machine(self.kit, self.place, [self.image("log"), self.image("target"), archive], words) as machine:
            machine.wait_for(lambda words: words == ["@", "end"], SILENCE_SECONDS_MAX)
            try:
                machine.process.wait(30)
            except subprocess.TimeoutExpired:
                pass
        self.mounted(machine)
        for what in ("looked", "verify", "again"):
            if machine.status(what) != 0:
                raise Failed(f"when all was recovered: {what}: status {machine.status(what)}\n{machine.said()}")
        found = self.place / "found"
        with tarfile.open(archive) as tar:
            tar.extractall(found)
        return found

    def judge(self, came, found):
        wrong = []
        for number, (plan, _) in enumerate(self.writers):
            if plan == "names":
                verdict = names.judge(found / f"names.{number}", came[number])
            else:
                file = found / f"{plan}.{number}"
                equal, made_of = points.equal_to(self.kit.checker, file, plan, 1, EACH, EPOCHS, number)
                verdict = points.judge(equal, came[number], made_of)
            if verdict:
                wrong.append(f"{plan}.{number}: {verdict} (passed {came[number].passed}, entered {came[number].entered})")
        if wrong:
            raise Failed("\n".join(wrong))
