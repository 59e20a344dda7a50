"""The judge itself: that it sees what it must see. Run by `./dev test` before the matrix."""

import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from house import tree  # noqa: E402
from matrix.run import Bench, numbered_answers  # noqa: E402


def seen(status=0, output=b"", errors=b"", data=None, work=None):
    """What one run left behind."""
    return types.SimpleNamespace(status=status, output=output, errors=errors, data_tree=data or {}, work_tree=work or {},
                                 case=types.SimpleNamespace(name="probe-x"))


class Verdicts(unittest.TestCase):
    def verdict(self, native, routed):
        return Bench.verdict(native, routed)[0]

    def test_equal_is_ok(self):
        self.assertEqual(self.verdict(seen(output=b"a\n"), seen(output=b"a\n")), "ok")

    def test_other_output_without_a_word_is_silent(self):
        self.assertEqual(self.verdict(seen(output=b"a\n"), seen(output=b"b\n")), "silent")

    def test_other_tree_without_a_word_is_silent(self):
        self.assertEqual(self.verdict(seen(data={b"f": {"size": 1}}), seen(data={b"f": {"size": 2}})), "silent")
        self.assertEqual(self.verdict(seen(), seen(work={b"stray": {}})), "silent")

    def test_exit_status_makes_it_an_error(self):
        self.assertEqual(self.verdict(seen(output=b"a\n"), seen(status=1)), "error")

    def test_message_makes_it_an_error(self):
        self.assertEqual(self.verdict(seen(output=b"a\n"), seen(errors=b"cat: no\n")), "error")

    def test_message_that_is_native_too_is_no_excuse(self):
        self.assertEqual(self.verdict(seen(output=b"a\n", errors=b"hm\n"), seen(errors=b"hm\n")), "silent")

    def test_success_where_native_fails_is_silent(self):
        self.assertEqual(self.verdict(seen(status=1), seen(status=0)), "silent")


class VerdictsByLine(unittest.TestCase):
    def verdict(self, native, routed, known=()):
        bench = types.SimpleNamespace(known=dict.fromkeys(known, "a reason"))
        return Bench.verdict_by_line(bench, seen(output=native), seen(output=routed))[0]

    def test_refusal_is_an_error_and_can_be_known(self):
        native, routed = b'read x\t{"result": 5}\n', b'read x\t{"result": -1, "errno": "EIO"}\n'
        self.assertEqual(self.verdict(native, routed), "error")
        self.assertEqual(self.verdict(native, routed, ["probe-x: read x"]), "ok")

    def test_other_value_is_silent_even_beside_an_error(self):
        native = b'a\t{"result": 5}\nb\t{"result": 5}\n'
        self.assertEqual(self.verdict(native, b'a\t{"result": 4}\nb\t{"result": -1}\n'), "silent")

    def test_crash_is_an_error(self):
        self.assertEqual(self.verdict(b'a\t{"result": 5}\n', b"a\tstatus 139\n"), "error")

    def test_repeated_questions_are_kept_apart(self):
        self.assertEqual(len(numbered_answers(b"a\t1\na\t2\n")), 2)


class Trees(unittest.TestCase):
    def snapshot_after(self, change):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "file").write_bytes(b"content")
            (root / "link").symlink_to("file")
            change(root)
            return tree.snapshot(root)

    def test_every_kind_of_change_shows(self):
        before = self.snapshot_after(lambda root: None)
        self.assertEqual(tree.differences(before, self.snapshot_after(lambda root: None)), [])
        for change in (
            lambda root: (root / "file").write_bytes(b"Content"),
            lambda root: (root / "file").write_bytes(b"content "),
            lambda root: (root / "file").chmod(0o600),
            lambda root: (root / "file").unlink(),
            lambda root: (root / "new").touch(),
            lambda root: (root / "new").mkdir(),
            lambda root: (root / "hard").hardlink_to(root / "file"),
            lambda root: ((root / "link").unlink(), (root / "link").symlink_to("elsewhere")),
        ):
            self.assertNotEqual(tree.differences(before, self.snapshot_after(change)), [])

    def test_a_byte_in_a_sparse_giant_shows(self):
        def with_byte(value, offset):
            def change(root):
                with open(root / "giant", "wb") as file:
                    file.truncate(1 << 32)
                    file.seek(offset)
                    file.write(value)
            return self.snapshot_after(change)

        self.assertEqual(tree.differences(with_byte(b"x", 1 << 31), with_byte(b"x", 1 << 31)), [])
        self.assertNotEqual(tree.differences(with_byte(b"x", 1 << 31), with_byte(b"y", 1 << 31)), [])
        self.assertNotEqual(tree.differences(with_byte(b"x", 1 << 31), with_byte(b"x", (1 << 31) + 4096)), [])


if __name__ == "__main__":
    unittest.main()
