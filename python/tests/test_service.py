"""`sluice.Service`: stores of this process for other programs, and what becomes of them when processes end."""

import errno
import os
import pathlib
import subprocess
import threading

import pytest
import sluice


def test_other_programs_use_the_stores(far, program, tmp_path):
    directory, uri = far
    (tmp_path / "f").write_text("from outside")
    subprocess.run([program, "cp", tmp_path / "f", f"{uri}/g"], check=True)
    assert (directory / "g").read_text() == "from outside"
    read = subprocess.run([program, "run", "--", "cat", f"{uri}/g"], check=True, capture_output=True)
    assert read.stdout == b"from outside"


def test_tcp_and_relays_and_read_only(far):
    _, uri = far
    with sluice.open(f"{uri}/f", "w") as file:
        file.write("x")
    with sluice.Service({"relay": uri}, listen="tcp:127.0.0.1:0", read_only=True) as service:
        assert service.uri.startswith("scdc+tcp://127.0.0.1:")
        assert sluice.open(f"{service.uri}/relay/f").read() == "x"
        with pytest.raises(OSError) as wrong:
            sluice.open(f"{service.uri}/relay/f", "w")
        assert wrong.value.errno == errno.EROFS
        assert service.counters.accepted == 1 and service.counters.requests > 3


def test_what_cannot_be_served_is_said(tmp_path):
    for stores, listen, kind, number in [
        ({"a": tmp_path / "missing"}, None, FileNotFoundError, errno.ENOENT),
        ({"a": "mem:"}, "tcp:0.0.0.0:0", PermissionError, errno.EPERM),
        ({"a": "s3://bucket"}, None, OSError, errno.EOPNOTSUPP),
        ({"a": tmp_path / "x.drepl"}, None, OSError, errno.EOPNOTSUPP),
    ]:
        with pytest.raises(kind) as wrong:
            sluice.Service(stores, listen).start()
        assert wrong.value.errno == number
    for stores, listen in [({}, None), ({"a/b": "mem:"}, None), ({"a": "mem:"}, "nowhere:1"), ({"a": "mem:"}, [])]:
        with pytest.raises(ValueError):
            sluice.Service(stores, listen).start()
    with pytest.raises(RuntimeError, match="not been started"):
        sluice.Service({"a": "mem:"}).uri


def test_a_socket_in_use_is_refused_and_a_service_starts_once(tmp_path):
    listen = f"unix:{tmp_path}/s.sock"
    with sluice.Service({"a": "mem:"}, listen) as service:
        with pytest.raises(OSError) as wrong:
            sluice.Service({"a": "mem:"}, listen).start()
        assert wrong.value.errno == errno.EADDRINUSE
        with pytest.raises(RuntimeError, match="already"):
            service.start()
    assert not service.running and service.stop()
    assert not (tmp_path / "s.sock").exists()


def test_the_directory_of_the_socket_goes_with_the_service():
    with sluice.Service({"a": "mem:"}) as service:
        directory = pathlib.Path(service.uri.removeprefix("scdc+uds://")).parent
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()


def test_an_interpreter_that_ends_with_open_services_and_files_ends_well(python):
    told = python("""
import sluice
kept = []
for _ in range(20):
    service = sluice.Service({"a": "mem:"}).start()
    file = sluice.open(service.uri + "/a/f", "w")
    file.write("unfinished")
    kept += [service, file, sluice.open(service.uri + "/a/g", "w+b")]
print("ended")
""")
    assert told == "ended\n"


def test_a_child_of_a_fork_leaves_service_and_files_to_its_parent(far):
    directory, uri = far
    with sluice.Service({"a": "mem:"}) as service:
        with sluice.open(f"{uri}/f", "w+b", 0) as file, sluice.open(f"{service.uri}/a/g", "wb") as other:
            file.write(b"parent")
            other.write(b"buffered")
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    # Over a connection of its own; and the parent's service is not ended.
                    assert file.pread(100, 0) == b"parent"
                    file.pwrite(b"child", 6)
                    file.close()
                    assert not service.running
                    service.stop()
                    assert sluice.listdir(service.uri) == ["a"]
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert file.pread(100, 0) == b"parentchild"
        assert sluice.open(f"{service.uri}/a/g").read() == "buffered"
    assert (directory / "f").read_bytes() == b"parentchild"


def test_multiprocessing_pools_read_what_the_parent_has_open(far):
    import multiprocessing

    directory, uri = far
    (directory / "f").write_bytes(bytes(range(256)) * 4096)
    assert sluice.stat(f"{uri}/f").st_size == 1 << 20
    with multiprocessing.get_context("fork").Pool(3) as pool:
        parts = pool.starmap(read_part, [(f"{uri}/f", at) for at in range(0, 1 << 20, 1 << 16)])
    assert b"".join(parts) == (directory / "f").read_bytes()


def read_part(uri, at):
    with sluice.open(uri, "rb", 0) as file:
        return file.pread(1 << 16, at)


def test_threads_share_a_file(far):
    directory, uri = far
    data = os.urandom(4 << 20)
    (directory / "f").write_bytes(data)
    wrong = []
    with sluice.open(f"{uri}/f", "rb", 0) as file:
        def read(seed):
            for turn in range(60):
                at = (seed * 7919 + turn * 104729) % len(data)
                if file.pread(5000, at) != data[at:at + 5000]:
                    wrong.append(at)
        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
