#!/usr/bin/python3
"""Is what the test of power cuts stands on right: the disk that loses writes, and the states of a directory?"""

import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from log.points import Points  # noqa: E402
from powercut import names  # noqa: E402
from powercut.loss import SECTOR, WAYS, Disk  # noqa: E402


class Losses(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.image = pathlib.Path(directory.name) / "disk.img"
        self.image.write_bytes(bytes(16 * SECTOR))

    def test_every_sector_is_one_that_may_be_there(self):
        dice = random.Random(15)
        torn = 0
        for turn in range(400):
            self.image.write_bytes(bytes(16 * SECTOR))
            disk = Disk(self.image)
            # Of each sector the contents that may be found.
            may = [{0} for _ in range(16)]
            for value in range(1, 12):
                at = dice.randrange(16)
                count = dice.randrange(1, 17 - at)
                durable = dice.random() < 0.1
                disk.write(at * SECTOR, bytes([value]) * count * SECTOR, durable)
                for sector in range(at, at + count):
                    may[sector] = {value} if durable else may[sector] | {value}
                    self.assertEqual(disk.read(sector * SECTOR, 1)[0], value)
                if dice.random() < 0.1:
                    disk.flush()
                    may = [{disk.read(sector * SECTOR, 1)[0]} for sector in range(16)]
            believed = disk.read(0, 16 * SECTOR)
            way = WAYS[turn % len(WAYS)]
            disk.lose_power(dice, way)
            found = self.image.read_bytes()
            for sector in range(16):
                part = found[sector * SECTOR:][:SECTOR]
                self.assertEqual(part, part[:1] * SECTOR)
                self.assertIn(part[0], may[sector], way)
            if way == "everything":
                self.assertEqual(found, believed)
            torn += found != believed
        self.assertGreater(torn, 100)

    def test_a_superblock_is_not_torn(self):
        for seed in range(50):
            self.image.write_bytes(bytes(16 * SECTOR))
            disk = Disk(self.image)
            disk.write(2 * SECTOR, b"x" * 10 * SECTOR)
            disk.lose_power(random.Random(seed), "sectors")
            found = self.image.read_bytes()
            self.assertIn(found[2 * SECTOR:8 * SECTOR], (b"x" * 6 * SECTOR, bytes(6 * SECTOR)))

    def test_nothing_survives_without_a_flush(self):
        disk = Disk(self.image)
        disk.write(0, b"x" * SECTOR)
        disk.lose_power(random.Random(1), "nothing")
        self.assertEqual(self.image.read_bytes(), bytes(16 * SECTOR))


class Names(unittest.TestCase):
    def made(self, found):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        place = pathlib.Path(directory.name)
        for name in found:
            kind, epoch = name.split(".")
            epoch = epoch.rstrip("+")
            is_changed = name.endswith("+")
            name = name.rstrip("+")
            if kind == "dir":
                (place / name).mkdir()
                (place / name).chmod(0o700 if is_changed else 0o755)
            elif kind == "link" and (place / f"file.{epoch}").exists():
                (place / name).hardlink_to(place / f"file.{epoch}")
            else:
                (place / name).write_text(f"{epoch}\n")
                (place / name).chmod(0o744 if is_changed else 0o644)
        return place

    def test_the_state_of_the_last_point_and_later_ones_are_right(self):
        after = sorted(list(names.states(5))[-1][1])
        self.assertIsNone(names.judge(self.made(after), Points(5, 5)))
        self.assertIsNone(names.judge(self.made([*after, "dir.6", "new.6"]), Points(5, 6)))

    def test_what_is_missing_early_or_out_of_order_is_wrong(self):
        after = sorted(list(names.states(5))[-1][1])
        before = sorted(list(names.states(4))[-1][1])
        self.assertIn("earlier", names.judge(self.made(before), Points(5, 6)))
        self.assertIn("never", names.judge(self.made([*after, "new.6"]), Points(5, 6)))
        self.assertIn("never", names.judge(self.made([*after, "dir.6"]), Points(5, 5)))
        self.assertIn("earlier", names.judge(self.made([name.replace("file.5+", "file.5") for name in after]), Points(5, 5)))
        self.assertIn("earlier", names.judge(self.made([]), Points(5, 5)))


if __name__ == "__main__":
    unittest.main()
