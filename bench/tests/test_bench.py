"""Tests of the bench itself: that it counts and delays rightly, and that it notices wrong data.

Run with `python3 -m unittest discover -s bench/tests`.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import build, history, report
from lib.measure import Board, Failed, Lane, alternate
from lib.process import Ran, run
from lib.services import Wire
from lib.ways import Session
from lib.workspace import Workspace
from redirect import gmsh

TOOLS_DIR = tempfile.mkdtemp(prefix="bench-tests-")
TOOLS = build.helpers(TOOLS_DIR)


class Echo:
    """A service that answers every 8-byte message with itself."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            link, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(link,), daemon=True).start()

    @staticmethod
    def answer(link):
        while data := link.recv(4096):
            link.sendall(data)


def message(number: int) -> bytes:
    """A frame as 9P has it: its size first."""
    return (8).to_bytes(4, "little") + number.to_bytes(4, "little")


class OverWire(unittest.TestCase):
    DELAY_MS = 20.0

    def setUp(self):
        self.space = Workspace(0)
        self.echo = Echo()
        self.wire = Wire(TOOLS["proxy"], self.space, "tcp", f"tcp:{self.echo.port}", self.DELAY_MS)
        self.link = socket.create_connection(("127.0.0.1", int(self.wire.endpoint.address[4:])))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def tearDown(self):
        self.link.close()
        self.space.remove()

    def take(self, messages: int) -> bytes:
        return self.link.recv(8 * messages, socket.MSG_WAITALL)

    def test_one_wait_per_message_is_one_round_trip_each(self):
        began = time.monotonic()
        for number in range(5):
            self.link.sendall(message(number))
            self.assertEqual(self.take(1), message(number))
        took = time.monotonic() - began
        counts = self.wire.end()
        self.assertEqual(counts["round_trips"], 5)
        self.assertEqual(counts["frames_up"], 5)
        self.assertGreaterEqual(took, 5 * 2 * self.DELAY_MS / 1e3)

    def test_messages_sent_together_share_a_round_trip(self):
        began = time.monotonic()
        for number in range(5):
            self.link.sendall(message(number))
        self.take(5)
        took = time.monotonic() - began
        counts = self.wire.end()
        self.assertEqual(counts["round_trips"], 1)
        self.assertEqual(counts["frames_up"], 5)
        self.assertLess(took, 4 * 2 * self.DELAY_MS / 1e3, "the wire serialises: five in a row would take 200 ms")

    def test_what_nobody_waits_for_costs_nothing(self):
        """A close that is sent, then the next open at once: the shape of small files."""
        for number in range(3):
            self.link.sendall(message(number))
            self.take(1 if number == 0 else 2)
            self.link.sendall(message(100 + number))
        self.take(1)
        self.assertEqual(self.wire.end()["round_trips"], 4)

    def test_all_bytes_arrive_in_order(self):
        sent = b"".join(message(number) for number in range(100_000))
        threading.Thread(target=self.link.sendall, args=(sent,), daemon=True).start()
        self.assertEqual(self.take(100_000), sent)


class Data(unittest.TestCase):
    SIZE = 4 << 20

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "data")
        self.transfer("write")

    def tearDown(self):
        self.folder.cleanup()

    def transfer(self, mode: str, buffer: int = 1 << 20) -> float:
        return run([TOOLS["transfer"], mode, self.file, str(self.SIZE), str(buffer)]).json()["seconds"]

    def test_all_modes_agree_on_the_data(self):
        for writing in ("write", "fwrite", "fputc", "write1"):
            self.transfer(writing, 4096)
            for reading in ("read", "fread", "fgetc", "read1", "check"):
                self.transfer(reading, 8192)

    def test_a_stale_page_is_noticed_while_reading(self):
        with open(self.file, "r+b") as file:
            file.seek(8192)
            page = file.read(4096)
            file.seek(3 * 4096)
            file.write(page)
        for reading in ("read", "fread", "check", "fgetc"):
            with self.assertRaisesRegex(Failed, "wrong data", msg=reading):
                self.transfer(reading)

    def test_a_single_wrong_byte_is_noticed_by_check(self):
        with open(self.file, "r+b") as file:
            file.seek(1_234_567)
            byte = file.read(1)
            file.seek(1_234_567)
            file.write(bytes([byte[0] ^ 1]))
        with self.assertRaisesRegex(Failed, "wrong data"):
            self.transfer("check")

    def test_a_short_file_is_noticed(self):
        os.truncate(self.file, self.SIZE - 4096)
        for reading in ("read", "fread", "fgetc", "read1", "check"):
            with self.assertRaisesRegex(Failed, "moved", msg=reading):
                self.transfer(reading, 4096)


class Measuring(unittest.TestCase):
    def test_lanes_take_turns_and_a_failing_one_falls_out(self):
        order = []

        def lane(name, fails=False):
            def once():
                order.append(name)
                if fails and len(order) > 4:
                    raise Failed("broke")
                return 1.0
            return Lane(once)

        figures, fallen = alternate({"a": lane("a"), "b": lane("b", fails=True)}, 3, warm=1)
        self.assertEqual(order[:4], ["a", "b", "a", "b"])
        self.assertEqual(fallen, {"b": "broke"})
        self.assertEqual(figures, {"a": [1.0] * 3, "b": []})

    def test_the_first_lane_must_not_fail(self):
        def fails():
            raise Failed("broke")
        with self.assertRaises(Failed):
            alternate({"a": Lane(fails)}, 1)

    def test_verdicts(self):
        board = Board()
        board.add("reached", [2.0], "ratio", "lower", 2.0)
        board.add("equal is not faster", [1.0], "ratio", "lower", 1.0, strict=True)
        board.add("missed", [0.5, 0.9, 0.7], "ratio", "higher", 0.8)
        board.add("told", [1.0], "s", "lower")
        self.assertEqual([m.verdict() for m in board.metrics], ["ok", "miss", "miss", ""])
        self.assertEqual(board.metrics[2].value, 0.7)

    def test_ratio_is_the_median_of_pairs_not_of_medians(self):
        board = Board()
        board.add_ratio("r", [1.0, 20.0, 3.0], [1.0, 10.0, 1.0], "lower")
        self.assertEqual(board.metrics[0].value, 2.0)

    def test_results_are_kept(self):
        board = Board()
        board.add("m", [1.0, 2.0], "s", "lower", 3.0)
        board.skip("peer", "not installed")
        result = json.loads(report.as_json(report.as_object("redirect", False, {"cores": 2}, board)))
        self.assertEqual(set(result["metrics"][0]),
                         {"name", "value", "unit", "better", "goal", "samples", "min", "max"})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.sqlite")
            self.assertEqual(history.keep(path, result, "2024-01-01T00:00:00+00:00", 1.0, "abc"), 1)
            self.assertEqual(history.keep(path, result, "2024-01-02T00:00:00+00:00", 1.0, "abc"), 2)


class GmshOutputs(unittest.TestCase):
    """A conversion only counts when its output is that of a local run."""

    def setUp(self):
        self.space = Workspace(0)
        self.matrix = gmsh.Matrix.__new__(gmsh.Matrix)
        self.matrix.bench = types.SimpleNamespace(space=self.space)
        self.conversion = gmsh.CONVERSIONS[0]
        self.matrix.right = {self.conversion.name: hashlib.sha256(b"right").hexdigest()}

    def tearDown(self):
        self.space.remove()

    def convert(self, output):
        """Runs a conversion whose program leaves `output`, or nothing."""
        left = self.space.far(self.matrix.output(self.conversion))

        class Leaves(Session):
            def run(self, argv, **_):
                if output is not None:
                    with open(left, "wb") as file:
                        file.write(output)
                return Ran("", 0.5)

        return self.matrix.in_session(Leaves("/far"), self.conversion, "R2R")

    def test_right_output_counts(self):
        self.assertEqual(self.convert(b"right"), 0.5)

    def test_cut_output_does_not(self):
        with self.assertRaisesRegex(Failed, "differs"):
            self.convert(b"rig")

    def test_no_output_does_not(self):
        with self.assertRaisesRegex(Failed, "no output"):
            self.convert(None)


class Views(unittest.TestCase):
    """The program that reads and writes views, and what is written by hand."""

    POINTS = 70_000 // 16 * 16
    """More than a batch, and no multiple of one."""

    def setUp(self):
        from layout import native
        self.program = native.compiled(TOOLS_DIR, "views", [])
        self.folder = tempfile.TemporaryDirectory()
        self.files = {view: os.path.join(self.folder.name, view) for view in ("aos", "soa", "b")}
        run([self.program, "hand", str(self.POINTS), *self.files.values()])

    def tearDown(self):
        self.folder.cleanup()

    def test_what_is_written_by_hand_is_every_layout(self):
        for view, path in self.files.items():
            run([self.program, "check", path, view, str(self.POINTS)])

    def test_a_wrong_number_is_noticed(self):
        for view, path in self.files.items():
            with open(path, "r+b") as file:
                file.seek(4 * self.POINTS - 4)
                byte = file.read(1)
                file.seek(4 * self.POINTS - 4)
                file.write(bytes([byte[0] ^ 1]))
            with self.assertRaisesRegex(Failed, "wrong data", msg=view):
                run([self.program, "check", path, view, str(self.POINTS)])


class ForLogs(unittest.TestCase):
    """The program that writes results, and the slow way to a far place."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "file")

    def tearDown(self):
        self.folder.cleanup()

    def written(self, *words: str) -> dict:
        return run([TOOLS["logwriter"], *words]).json()

    def check(self, path: str, size: int) -> None:
        run([TOOLS["transfer"], "check", path, str(size), "4096"])

    def test_whole_files_have_the_data_that_is_checked(self):
        self.written("pieces", self.file, str(4 << 20), str(1 << 20), str(2 << 20))
        self.check(self.file, 4 << 20)
        self.written("strided", self.file, "3", "5")
        self.check(self.file, 4 << 20)

    def test_processes_that_take_turns_leave_no_page_out(self):
        self.written("strided", self.file, "3", "5")
        self.check(self.file, 15 * 4096)

    def test_cycles_leave_a_file_after_every_second(self):
        told = self.written("cycles", self.folder.name, "5", "2", str(1 << 20), "1")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["out.1", "out.2"])
        self.check(os.path.join(self.folder.name, "out.2"), 1 << 20)
        self.assertLess(told["seconds"], told["total"])
        self.assertGreater(told["peak_kib"], 1024)

    def test_pieces_with_holes_lie_where_they_should(self):
        self.written("extend", self.file, "3", "4096", "8192")
        with open(self.file, "rb") as file:
            content = file.read()
        self.assertEqual(len(content), 5 * 4096)
        self.assertEqual(content[4096:8192], bytes(4096))
        self.assertNotEqual(content[8192:12288], bytes(4096))

    def test_the_slow_proxy_carries_all_bytes_and_is_slow(self):
        echo = Echo()
        from lib.process import Daemon, free_port
        port = free_port()
        proxy = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "log", "slow.py")
        daemon = Daemon([sys.executable, proxy, str(port), str(echo.port), "2000000"], os.path.join(self.folder.name, "log"))
        daemon.line("listening")
        sent = b"".join(message(number) for number in range(50_000))
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port)) as link:
            threading.Thread(target=link.sendall, args=(sent,), daemon=True).start()
            self.assertEqual(link.recv(len(sent), socket.MSG_WAITALL), sent)
        self.assertGreaterEqual(time.monotonic() - began, 0.08, "0.2 s at its rate, of which a tenth may be saved up")
        daemon.end()


class Processes(unittest.TestCase):
    def test_a_program_that_hangs_is_ended(self):
        began = time.monotonic()
        with self.assertRaisesRegex(Failed, "had not ended"):
            run(["sleep", "30"], timeout=0.2)
        self.assertLess(time.monotonic() - began, 5)

    def test_a_failure_quotes_what_the_program_said(self):
        with self.assertRaisesRegex(Failed, "status 3: oh dear"):
            run(["sh", "-c", "echo oh dear >&2; exit 3"])

    def test_without_sluice_the_run_says_so_and_fails(self):
        bench = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.py")
        ran = subprocess.run([bench, "redirect", "--quick", "--json", "--only", "calls", "--binary",
                              os.path.join(TOOLS_DIR, "release", "sluice")], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 1)
        skipped = {entry["name"]: entry["why"] for entry in json.loads(ran.stdout)["skipped"]}
        self.assertIn("not built", skipped["sluice"])


class Beside(unittest.TestCase):
    """Programs that are asked for strided accesses by `sluice sieve bench --beside`."""

    def ask(self, program: str, path: str, line: str) -> list[str]:
        ran = subprocess.run([program, path], input=line + "\n", capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.split()

    def programs(self) -> list[str]:
        found = [TOOLS["copylimit"]]
        for mpi in ("mpich", "openmpi"):
            try:
                found.append(build.with_mpi(TOOLS_DIR, mpi))
            except Failed as why:
                self.assertIn("not installed", str(why))
        return found

    def test_they_write_the_blocks_and_nothing_else(self):
        for program in self.programs():
            with self.subTest(program), tempfile.NamedTemporaryFile() as file:
                file.write(b"." * 1000)
                file.flush()
                # Ten blocks of 8 bytes behind holes of 92; calls of three blocks, beginning with the second.
                bytes_, seconds, ran = self.ask(program, file.name, "write 8 92 92 80 24 1 0 wall")
                self.assertEqual(bytes_, "24")
                self.assertGreater(float(seconds), 0)
                self.assertGreaterEqual(float(ran), 0)
                with open(file.name, "rb") as read_back:
                    content = read_back.read()
                wanted = {start + at for start in (392, 492, 592) for at in range(8)}
                self.assertEqual({at for at, byte in enumerate(content) if byte == 0xa5}, wanted)
                self.assertEqual(content.count(b"."), 1000 - 24)

    def test_they_go_round_until_the_time_is_over(self):
        for program in self.programs():
            with self.subTest(program), tempfile.NamedTemporaryFile() as file:
                file.write(bytes(100_000))
                file.flush()
                bytes_, seconds, _ = self.ask(program, file.name, "read 100 900 900 10000 3000 2 0.02 wall")
                self.assertGreaterEqual(float(seconds), 0.02)
                # Calls of 3000, and one of the 1000 that are left.
                self.assertEqual(int(bytes_) % 1000, 0)
                self.assertGreater(int(bytes_), 10_000)


def tearDownModule():
    shutil.rmtree(TOOLS_DIR, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
