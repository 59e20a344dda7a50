"""The inputs every case starts from: the same bytes, names, modes and times in every directory."""

import os
import pathlib
import random
import shutil

# Files made by a case are younger than this, seeded ones are older: snapshots tell them apart by it.
SEED_TIME = 1_600_000_000

WORDS = (
    "mesh node edge face cell flux grid solver matrix vector tensor stress strain load field "
    "probe rank epoch segment extent view replica lattice orbit"
).split()


def make_seed(directory: pathlib.Path):
    """Fills `directory` (which must not exist) with the inputs."""
    chance = random.Random(20_15)
    directory.mkdir(parents=True)

    def text(name, lines):
        (directory / name).write_text("".join(line + "\n" for line in lines))

    text("text.txt", (f"{n:05d} " + " ".join(chance.choices(WORDS, k=7)) for n in range(2_000)))
    text("numbers.txt", (str(chance.randrange(1_000_000)) for _ in range(5_000)))
    text("table.csv", ["name,count,share"] + [f"{w},{i},{i / 7:.4f}" for i, w in enumerate(WORDS)])
    text("notes.json", ['{"name": "probe", "values": [1, 2, 3], "nested": {"deep": true}}'])
    text("sum.bc", ["a = 0", "for (i = 1; i <= 100; i++) a += i", "a"])
    (directory / "empty").touch()
    (directory / "no-newline").write_text("the last line has no end")
    (directory / "data.bin").write_bytes(chance.randbytes((1 << 20) + 77))
    (directory / "big.bin").write_bytes(chance.randbytes((4 << 20) + 5))
    for relative in ("tree/a/one.txt", "tree/a/two.txt", "tree/b/deep/er/three.txt", "tree/b/four.dat",
                     "tree/with space.txt", "tree/ünïcode-文件.txt", "tree/.hidden", "tree/c/five.txt"):
        path = directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{relative}\n" * chance.randrange(1, 40))
    (directory / "run.sh").write_text("#!/bin/sh\necho ran with \"$@\"\n")
    (directory / "run.sh").chmod(0o755)
    (directory / "secret").write_text("for the owner\n")
    (directory / "secret").chmod(0o600)
    os.symlink("text.txt", directory / "link")
    os.symlink("nowhere", directory / "dangling")
    os.symlink("tree", directory / "dirlink")

    everything = sorted(directory.rglob("*"), key=lambda path: (-len(path.parts), str(path)))
    for age, path in enumerate(everything):
        moment = SEED_TIME + 60 * age
        os.utime(path, (moment, moment), follow_symlinks=False)
    os.utime(directory, (SEED_TIME, SEED_TIME))


def plant(seed: pathlib.Path, directory: pathlib.Path):
    """Copies the seed to `directory`, times included."""
    shutil.copytree(seed, directory, symlinks=True)
