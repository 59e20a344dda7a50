"""`sluice.open`: what Python's own files do, ours do, and what is wrong is said."""

import errno
import gc
import io
import os
import pickle
import random
import sys
from array import array

import pytest
import sluice


def test_modes_make_the_same_kinds_of_objects_as_for_local_files(uri, tmp_path):
    local = tmp_path / "local"
    local.write_bytes(b"x")
    with sluice.open(f"{uri}/f", "wb") as file:
        file.write(b"x")
    for mode, buffering in [("r", -1), ("rb", -1), ("r+b", -1), ("rb", 0), ("w", -1), ("wb", -1), ("ab", -1), ("a+", 1)]:
        with open(local, mode, buffering) as theirs, sluice.open(f"{uri}/f", mode, buffering) as ours:
            if buffering:
                assert type(ours) is type(theirs), mode
            assert ours.mode == theirs.mode
            for asks in ("readable", "writable", "seekable", "isatty", "tell"):
                assert getattr(ours, asks)() == getattr(theirs, asks)(), (mode, asks)


@pytest.mark.parametrize("mode", ["", "q", "rw", "rr", "r+w", "rbt", "b"])
def test_wrong_modes_are_refused_as_for_local_files(uri, tmp_path, mode):
    with pytest.raises(ValueError):
        open(tmp_path / "f", mode)
    with pytest.raises(ValueError):
        sluice.open(f"{uri}/f", mode)
    with pytest.raises(ValueError, match="unbuffered"):
        sluice.open(f"{uri}/f", "r", 0)
    with pytest.raises(ValueError, match="binary mode"):
        sluice.open(f"{uri}/f", "rb", encoding="utf-8")
    assert sluice.listdir(uri) == []


def test_random_access_does_what_a_local_file_does(uri, tmp_path):
    chance = random.Random(7)
    # Longer than the buffers.
    start = chance.randbytes(700_000)
    (tmp_path / "local").write_bytes(start)
    with sluice.open(f"{uri}/f", "wb") as file:
        file.write(start)
    with open(tmp_path / "local", "r+b") as theirs, sluice.open(f"{uri}/f", "r+b") as ours:
        for _ in range(400):
            kind, at, count = chance.randrange(7), chance.randrange(900_000), chance.choice([1, 100, 9000, 300_000])
            data = chance.randbytes(count)
            answers = []
            for file in (theirs, ours):
                if kind < 2:
                    file.seek(at)
                    answers.append(file.read(count))
                elif kind < 4:
                    file.seek(at)
                    answers.append(file.write(data))
                elif kind == 4:
                    file.seek(-min(count, file.seek(0, os.SEEK_END)), os.SEEK_END)
                    answers.append((file.tell(), file.readline()))
                elif kind == 5:
                    buffer = bytearray(count)
                    answers.append((file.readinto(buffer), buffer, file.tell()))
                else:
                    answers.append(file.truncate(at))
            assert answers[0] == answers[1], (kind, at, count)
    assert sluice.open(f"{uri}/f", "rb").read() == (tmp_path / "local").read_bytes()


@pytest.mark.parametrize("make", [bytearray, lambda n: memoryview(bytearray(n)), lambda n: array("d", [0.0] * (n // 8))])
def test_readinto_fills_any_writable_buffer(far, make):
    directory, uri = far
    data = os.urandom(1 << 16)
    (directory / "f").write_bytes(data)
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        buffer = make(len(data))
        assert file.readinto(buffer) == len(data)
        assert bytes(buffer) == data
        # The offset is at the end.
        assert file.readinto(buffer) == 0
        assert file.preadinto(buffer, 8) == len(data) - 8
        assert bytes(buffer)[:-8] == data[8:]


def test_buffers_that_cannot_be_written_are_refused(far):
    directory, uri = far
    (directory / "f").write_bytes(b"abc")
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        for buffer in (b"abc", memoryview(b"abc"), "abc", 3, memoryview(bytearray(8))[::2]):
            with pytest.raises((TypeError, BufferError)):
                file.readinto(buffer)
        assert file.tell() == 0
        assert file.readinto(bytearray()) == 0


def test_pread_and_pwrite_leave_the_offset_alone(uri):
    with sluice.open(f"{uri}/f", "w+b", 0) as file:
        assert file.write(b"0123456789") == 10
        assert file.pwrite(b"ab", 3) == 2
        assert (file.pread(4, 2), file.pread(100, 8), file.tell()) == (b"2ab5", b"89", 10)
        with pytest.raises(OSError) as wrong:
            file.pread(1, -1)
        assert wrong.value.errno == errno.EINVAL


def test_appending_appends_wherever_the_offset_is(far):
    directory, uri = far
    (directory / "f").write_bytes(b"one")
    with sluice.open(f"{uri}/f", "ab") as file:
        assert file.tell() == 3
        file.seek(0)
        file.write(b"two")
    assert (directory / "f").read_bytes() == b"onetwo"


def test_exclusive_creation(uri):
    sluice.open(f"{uri}/f", "x").close()
    with pytest.raises(FileExistsError) as wrong:
        sluice.open(f"{uri}/f", "x")
    assert (wrong.value.errno, wrong.value.filename) == (errno.EEXIST, f"{uri}/f")


def test_errors_are_oserrors_with_errno_and_filename(uri):
    sluice.mkdir(f"{uri}/dir")
    for name, mode, kind, number in [
        ("missing", "r", FileNotFoundError, errno.ENOENT),
        ("dir", "r", IsADirectoryError, errno.EISDIR),
        ("dir", "w", IsADirectoryError, errno.EISDIR),
        ("no/such", "w", FileNotFoundError, errno.ENOENT),
    ]:
        with pytest.raises(kind) as wrong:
            sluice.open(f"{uri}/{name}", mode)
        assert (wrong.value.errno, wrong.value.filename) == (number, f"{uri}/{name}")


def test_what_could_not_be_opened_leaves_nothing_to_complain_about(uri):
    # Python 3.13 tells what goes wrong when a file is forgotten; older ones hide it.
    complaints = []
    before, sys.unraisablehook = sys.unraisablehook, complaints.append
    try:
        for mode in ("r", "rb", "r+b"):
            with pytest.raises(FileNotFoundError):
                sluice.open(f"{uri}/none", mode)
        raw = sluice.RawFile.__new__(sluice.RawFile)
        with pytest.raises(FileNotFoundError):
            raw.__init__(f"{uri}/none", 0)
        raw.close()
        del raw
        gc.collect()
    finally:
        sys.unraisablehook = before
    assert not complaints


def test_names_that_are_no_addresses_are_refused(tmp_path):
    for name in [str(tmp_path / "f"), "relative", "scdc+tpc://host/x", "scdc+uds://", "a\0b"]:
        with pytest.raises(ValueError):
            sluice.open(name)
    for name in [3, None, 1.5]:
        with pytest.raises(TypeError):
            sluice.open(name)
    with pytest.raises(OSError) as wrong:
        sluice.open("scdc+ssh://host/store/f")
    assert wrong.value.errno == errno.EOPNOTSUPP


def test_closed_files_say_so(uri):
    raw = sluice.open(f"{uri}/f", "w+b", 0)
    raw.close()
    raw.close()
    for call in (raw.read, raw.tell, raw.fileno, raw.flush, raw.truncate, raw.readable, raw.stat, raw.sync,
                 lambda: raw.write(b"x"), lambda: raw.seek(0), lambda: raw.pread(1, 0), lambda: raw.readinto(bytearray(1))):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert raw.closed and "closed" in repr(raw)


def test_what_a_file_cannot_do_it_says(uri):
    with sluice.open(f"{uri}/f", "wb", 0) as file:
        with pytest.raises(io.UnsupportedOperation):
            file.read()
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
        with pytest.raises(TypeError):
            pickle.dumps(file)
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(io.UnsupportedOperation):
            file.truncate(0)


def test_a_file_that_is_forgotten_keeps_what_was_written(far):
    directory, uri = far
    file = sluice.open(f"{uri}/f", "w")
    file.write("kept")
    del file
    gc.collect()
    assert (directory / "f").read_text() == "kept"


def test_text_with_newlines_and_encodings(far):
    directory, uri = far
    with sluice.open(f"{uri}/f", "w", encoding="utf-16", newline="\r\n") as file:
        file.write("Grüße\n1\n")
    assert (directory / "f").read_bytes() == "Grüße\r\n1\r\n".encode("utf-16")
    with sluice.open(f"{uri}/f", encoding="utf-16") as file:
        assert file.readlines() == ["Grüße\n", "1\n"]


def test_ranges_are_read_one_after_the_other(far):
    directory, uri = far
    data = os.urandom(3 << 20)
    (directory / "f").write_bytes(data)
    ranges = [(at, 1 + at % 977) for at in range(5, len(data) - 4096, 4096)]
    buffer = bytearray(sum(length for _, length in ranges))
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        assert file.read_ranges(ranges, buffer) == len(buffer)
        assert bytes(buffer) == b"".join(data[at:at + length] for at, length in ranges)
        with pytest.raises(ValueError, match="overlap|before"):
            file.read_ranges([(10, 5), (12, 3)], bytearray(8))
        # Only what there is.
        assert file.read_ranges([(len(data) - 4, 8)], bytearray(8)) == 4
