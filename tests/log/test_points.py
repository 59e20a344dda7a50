#!/usr/bin/python3
"""Does the judge of consistency points notice what it is for? Files are made, spoiled, and judged."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from log import points  # noqa: E402
from log.points import Points  # noqa: E402

RANKS, EACH, EPOCHS = 3, 7, 5
BLOCK = 1003


class Judge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.scratch.name)
        cls.checker = cls.place / "points"
        subprocess.run(["gcc", "-O1", "-o", cls.checker, HERE / "programs" / "points.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def state(self, plan, epoch):
        file = self.place / "state"
        subprocess.run([self.checker, "--make", file, plan, str(RANKS), str(EACH), str(epoch)], check=True)
        return file.read_bytes()

    def equal(self, content, plan):
        file = self.place / "found"
        file.write_bytes(content)
        return points.equal_to(self.checker, file, plan, RANKS, EACH, EPOCHS)

    def test_each_state_is_its_own_epoch(self):
        for plan in ("whole", "some", "growing", "mixed"):
            for epoch in range(EPOCHS + 1):
                self.assertEqual(self.equal(self.state(plan, epoch), plan), ([epoch], []), plan)

    def test_no_file_is_the_beginning(self):
        self.assertEqual(points.equal_to(self.checker, self.place / "none", "whole", RANKS, EACH, EPOCHS)[0], [0])

    def test_a_mixture_of_two_epochs_is_none_and_is_described(self):
        old, new = self.state("whole", 2), self.state("whole", 3)
        equal, made_of = self.equal(new[:4 * BLOCK] + old[4 * BLOCK:], "whole")
        self.assertEqual(equal, [])
        self.assertEqual(made_of[1:], ["blocks 0 to 4 are as after 3", "blocks 4 to 21 are as after 2"])
        self.assertIn("no consistency point", points.judge(equal, Points(2, 3), made_of))

    def test_one_byte_and_one_byte_more_or_less(self):
        good = self.state("mixed", 4)
        bad = bytearray(good)
        bad[5000] ^= 1
        for content in (bytes(bad), good + b"\0", good[:-1]):
            equal, made_of = self.equal(content, "mixed")
            self.assertEqual(equal, [])
            self.assertTrue(made_of)

    def test_bytes_of_another_rank_or_place_are_named(self):
        good = self.state("whole", 4)
        moved = good[:2 * BLOCK] + good[5 * BLOCK:6 * BLOCK] + good[3 * BLOCK:]
        _, made_of = self.equal(moved, "whole")
        self.assertIn("blocks 2 to 3 are as after none", "\n".join(made_of))
        # A word boundary of the file is one of the moved bytes only if the distance is a multiple of a word.
        words = good[:8 * BLOCK] + good[16 * BLOCK:17 * BLOCK] + good[9 * BLOCK:]
        _, made_of = self.equal(words, "whole")
        self.assertIn("what rank 1 wrote in epoch 4 for offset 16048", "\n".join(made_of))

    def test_what_was_passed_must_be_there_and_what_was_not_entered_by_all_must_not(self):
        self.assertIsNone(points.judge([3], Points(3, 4)))
        self.assertIsNone(points.judge([4], Points(3, 4)))
        self.assertIn("lost", points.judge([2], Points(3, 4)))
        self.assertIn("too much", points.judge([5], Points(3, 4)))

    def test_points_are_the_most_passed_and_the_least_entered(self):
        for rank, text in enumerate(["begin 1\nenter 1\npass 1\nbegin 2\nenter 2\npa", "begin 1\nenter 1\npass 1\nbegin 2\nenter 2\npass 2\n",
                                     "begin 1\nenter 1\npass 1\nbegin 2\nenter 2\n"]):
            (self.place / f"points.{rank}").write_text(text)
        self.assertEqual(Points.noted(self.place, range(3)), Points(2, 2))
        self.assertEqual(Points.noted(self.place, [0]), Points(1, 2))
        self.assertEqual(Points.noted(self.place, [0, 7]), Points(1, 0))


if __name__ == "__main__":
    unittest.main()
