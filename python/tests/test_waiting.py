"""While a service is waited for: other threads run, signals are handled, and a service that is gone is an error."""

import errno
import os
import signal
import threading
import time

import pytest
import sluice


@pytest.fixture
def stopped(served, tmp_path):
    """A service with a large file that is read half, and does not answer any more."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "f").write_bytes(os.urandom(64 << 20))
    service = served(f"data={tmp_path / 'far'}")
    uri = f"{service.uri}/data"
    assert sluice.listdir(uri) == ["f"]
    service.stop()
    yield service, uri
    service.go_on()


@pytest.fixture
def interrupt():
    """Sends SIGINT to this process when it waits, again and again until it is stopped."""
    timers = []
    # Whoever started the tests in the background may have had it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def soon(seconds=0.4):
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield soon
    for timer in timers:
        timer.cancel()
    signal.signal(signal.SIGINT, before)


def test_control_c_interrupts_a_wait(stopped, interrupt):
    service, uri = stopped
    for call in (lambda: sluice.listdir(uri), lambda: sluice.open(f"{uri}/f"), lambda: sluice.stat(f"{uri}/f")):
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            call()
    # What was given up is no harm to what comes afterwards.
    service.go_on()
    assert sluice.listdir(uri) == ["f"]


def test_control_c_interrupts_reading_and_writing(served, tmp_path, interrupt):
    (tmp_path / "far").mkdir()
    data = os.urandom(64 << 20)
    (tmp_path / "far" / "f").write_bytes(data)
    service = served(f"data={tmp_path / 'far'}")
    with sluice.open(f"{service.uri}/data/f", "rb") as file, sluice.open(f"{service.uri}/data/g", "wb", 0) as out:
        assert file.read(1 << 20) == data[:1 << 20]
        out.write(b"begun")
        service.stop()
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            file.read()
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            while True:
                out.write(data[: 8 << 20])
        service.go_on()
        file.seek(5)
        assert file.read(100) == data[5:105]
        try:
            out.close()
        except OSError as error:
            # What was on its way may be lost, and then it is said.
            assert error.errno == errno.EIO


def test_a_handler_that_raises_nothing_does_not_end_the_wait(stopped):
    service, uri = stopped
    called = []

    def handler(*_):
        called.append(threading.current_thread() is threading.main_thread())
        if len(called) == 3:
            service.go_on()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        assert sluice.listdir(uri) == ["f"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert called[:3] == [True] * 3


def test_a_handler_that_uses_sluice_is_refused_instead_of_waiting_for_itself(stopped):
    service, uri = stopped
    said = []

    def handler(*_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            sluice.listdir(uri)
        except RuntimeError as error:
            said.append(str(error))
        service.go_on()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        assert sluice.listdir(uri) == ["f"]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(said) == 1 and "signal" in said[0]


def test_a_handler_that_raises_its_own_error_raises_it(stopped):
    _, uri = stopped

    class Raised(Exception):
        pass

    def handler(*_):
        raise Raised

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Raised):
            sluice.listdir(uri)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_while_a_service_is_waited_for(stopped):
    service, uri = stopped
    found = []
    waiting = threading.Thread(target=lambda: found.append(sluice.listdir(uri)))
    waiting.start()
    count = 0
    for _ in range(50):
        count += 1
        time.sleep(0.002)
    assert count == 50 and not found
    service.go_on()
    waiting.join(30)
    assert found == [["f"]]


def test_a_service_that_vanishes_is_an_error_with_its_name(served, tmp_path, python):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "f").write_bytes(b"x" * (40 << 20))
    service = served(f"data={tmp_path / 'far'}")
    (tmp_path / "sluice.toml").write_text("[client]\nreconnect_seconds = 1\n")
    told = python(f"""
import os, signal, sluice
with sluice.open("{service.uri}/data/f", "rb") as file:
    file.read(1 << 20)
    os.kill({service.process.pid}, signal.SIGKILL)
    try:
        file.read()
    except OSError as error:
        print(type(error).__name__, error.errno, "broke" in str(error), error.filename)
try:
    sluice.listdir("{service.uri}/data")
except OSError as error:
    print(type(error).__name__, error.errno)
""", SLUICE_CONFIG=str(tmp_path / "sluice.toml"))
    assert told.splitlines() == [f"OSError {errno.EIO} True {service.uri}/data/f", f"OSError {errno.EIO}"]


def test_where_nobody_listens_it_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionRefusedError) as wrong:
        sluice.listdir(f"scdc+uds://{tmp_path}/none.sock/data")
    assert "sluice serve" in str(wrong.value)
