"""Frames that are truncated, that lie, or that nobody collects; servers that lie to clients."""

import os
import socket
import struct
import threading
import time

from faults.scenario import clear_sentence, hold, resident_mib, scenario
from house import ninep

CHUNK = 60_000


def frames_before_version():
    """Things that are wrong as the first bytes of a connection."""
    v = ninep.version()
    return {
        "size zero": struct.pack("<I", 0) + b"\0" * 50,
        "size three": struct.pack("<I", 3) + b"\0" * 50,
        "size seven, type zero": ninep.frame(0, 0),
        "size four gigabytes": ninep.frame(ninep.TVERSION, ninep.NOTAG, b"x" * 100, size=0xFFFFFFFF),
        "version with a long string": ninep.frame(ninep.TVERSION, ninep.NOTAG, struct.pack("<IH", 8192, 60000) + b"9P"),
        "version without a body": ninep.frame(ninep.TVERSION, ninep.NOTAG),
        "version with a tail": ninep.frame(ninep.TVERSION, ninep.NOTAG, struct.pack("<I", 8192) + ninep.text("9P2000.L") + b"tail"),
        "msize zero": ninep.version(0),
        "msize ten": ninep.version(10),
        "unknown version": ninep.version(8192, "9P3000.X"),
        "version not in UTF-8": ninep.frame(ninep.TVERSION, ninep.NOTAG, struct.pack("<I", 8192) + ninep.text(b"\xff\xfe")),
        "attach before version": ninep.attach(),
        "noise": os.urandom(65536),
        "text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "half a version": v[:9],
        "zeros": bytes(100_000),
    }


def frames_after_attach():
    """Things that are wrong on a good connection: fid 0 attached, fid 1 the export's root."""
    return {
        "read of an unknown fid": ninep.read(77, 0, 10),
        "read of a fid that is not open": ninep.read(1, 0, 10),
        "write to a fid that is not open": ninep.write(1, 0, b"x"),
        "clunk of an unknown fid": ninep.clunk(99),
        "walk from an unknown fid": ninep.walk(99, 3, "x"),
        "walk to a fid in use": ninep.walk(0, 1, "far"),
        "walk with a slash": ninep.walk(1, 3, "dir/inner.txt"),
        "walk with an empty name": ninep.walk(1, 3, ""),
        "walk with a zero byte": ninep.walk(1, 3, b"fi\0le.txt"),
        "walk of a million bytes": ninep.walk(1, 3, "n" * 65000),
        "walk with a lying count": ninep.walk(1, 3, "dir", count=65535),
        "walk of 17 names": ninep.walk(1, 3, *["."] * 17),
        "attach to a fid in use": ninep.attach(0),
        "read of everything": ninep.read(1, 0, 0xFFFFFFFF),
        "read at the end of numbers": ninep.read(1, 0xFFFFFFFFFFFFFFFF, 4096),
        "write that lies": ninep.write(1, 0, b"abc", count=0x7FFFFFFF),
        "unknown type": ninep.frame(250, 5, b"whatever"),
        "an answer instead of a question": ninep.frame(ninep.TREAD + 1, 5, b"\4\0\0\0abcd"),
        "getattr without a body": ninep.frame(ninep.TGETATTR, 5),
        "readdir of something unopened": ninep.frame(ninep.TREADDIR, 5, struct.pack("<IQI", 1, 0, 100)),
        "flush of nothing": ninep.frame(ninep.TFLUSH, 5, struct.pack("<H", 4242)),
        "larger than msize": ninep.write(1, 0, b"y" * 200_000),
        "version again": ninep.version(),
        "tag used twice": ninep.walk(0, 5, "far", tag=9) + ninep.walk(0, 6, "far", tag=9),
    }


class Bystander:
    """An innocent client with a connection of its own, reading all the time."""

    def __init__(self, uri):
        self.wire = ninep.Wire(uri).begin("far")
        assert self.wire.ask(ninep.walk(1, 2, "file.txt"))[0] == ninep.TWALK + 1
        assert self.wire.ask(ninep.lopen(2))[0] == ninep.TLOPEN + 1

    def is_well(self):
        kind, _, body = self.wire.ask(ninep.read(2, 0, 9))
        return kind == ninep.TREAD + 1 and body[4:] == b"the first"


def answered_or_closed(wire):
    """The service answered something well-formed or hung up; a silent open connection is neither."""
    try:
        kind, _, _ = wire.receive()
        return kind % 2 == 1
    except (ninep.Closed, ConnectionError):
        return True


@scenario
def bad_first_frames(house):
    """Whatever comes first on a connection: an error or a hang-up, and nobody else is disturbed."""
    service = house.serve()
    bystander = Bystander(service.uri)
    for name, data in frames_before_version().items():
        with ninep.Wire(service.uri, seconds_max=5) as wire:
            try:
                wire.send(data)
                wire.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it hung up before it had everything: right
            try:
                hold(answered_or_closed(wire), name, "was answered by nonsense")
            except TimeoutError:
                hold(False, name, "was neither answered nor hung up on")
        hold(service.alive(), "the service died of:", name)
        hold(bystander.is_well(), "another connection was disturbed by:", name)
    hold(resident_mib(service.pid) < 300, resident_mib(service.pid), "MiB resident")


@scenario
def bad_later_frames(house):
    """On a good connection: an Rlerror or a hang-up, and nobody else is disturbed."""
    service = house.serve()
    bystander = Bystander(service.uri)
    for name, data in frames_after_attach().items():
        with ninep.Wire(service.uri, seconds_max=5) as wire:
            wire.begin("far")
            try:
                wire.send(data)
            except ConnectionError:
                pass
            try:
                hold(answered_or_closed(wire), name, "was answered by nonsense")
            except TimeoutError:
                hold(False, name, "was not answered")
        hold(service.alive(), "the service died of:", name)
        hold(bystander.is_well(), "another connection was disturbed by:", name)


@scenario
def frame_that_never_ends(house):
    """Half a frame, then silence: others are served meanwhile."""
    service = house.serve()
    with ninep.Wire(service.uri) as wire:
        wire.begin("far")
        wire.send(ninep.write(1, 0, bytes(1000))[:200])
        for _ in range(20):
            hold(Bystander(service.uri).is_well())
    hold(service.alive())


@scenario
def noise_for_a_while(house):
    """Three hundred connections of noise leave neither descriptors nor memory behind."""
    service = house.serve()
    Bystander(service.uri).is_well()
    before = len(os.listdir(f"/proc/{service.pid}/fd"))
    for _ in range(300):
        with ninep.Wire(service.uri, seconds_max=5) as wire:
            try:
                wire.send(ninep.version() + os.urandom(3000))
            except ConnectionError:
                pass
    time.sleep(1)
    after = len(os.listdir(f"/proc/{service.pid}/fd"))
    hold(after <= before + 5, "descriptors grew from", before, "to", after)
    hold(Bystander(service.uri).is_well())


@scenario
def client_that_never_reads(house):
    """Answers that nobody collects cost the service bounded memory, and others nothing."""
    (house.served / "large").write_bytes(os.urandom(1 << 20) * 40)
    service = house.serve()
    bystander = Bystander(service.uri)
    with ninep.Wire(service.uri, seconds_max=3) as wire:
        wire.begin("far", msize=1 << 20)
        assert wire.ask(ninep.walk(1, 2, "large"))[0] == ninep.TWALK + 1
        assert wire.ask(ninep.lopen(2))[0] == ninep.TLOPEN + 1
        try:
            for n in range(4000):
                wire.send(ninep.read(2, (n % 40) << 20, (1 << 20) - 24, tag=n % 60000))
        except TimeoutError:
            pass  # it stopped taking requests: back-pressure, as it should be
        for _ in range(10):
            hold(bystander.is_well(), "another client has to wait")
        done = house.run(f"{service.uri}/far", "sha256sum < /far/large", seconds_max=30)
        hold(done.returncode == 0, done.stderr)
        hold(resident_mib(service.pid) < 500, resident_mib(service.pid), "MiB resident")
    hold(bystander.is_well() and service.alive())


@scenario
def many_fids_on_one_connection(house):
    """Ten thousand open fids work, or the last ones are refused; the service stays."""
    service = house.serve()
    with ninep.Wire(service.uri) as wire:
        wire.begin("far")
        refused = 0
        for fid in range(10, 10_010):
            if wire.ask(ninep.walk(1, fid, "file.txt"))[0] == ninep.RLERROR:
                refused += 1
                continue
            if wire.ask(ninep.lopen(fid))[0] == ninep.RLERROR:
                refused += 1
        hold(service.alive())
        hold(wire.ask(ninep.read(10, 0, 9))[2][4:] == b"the first", "the first fid is of no use any more")
    hold(Bystander(service.uri).is_well(), "nobody else gets in after", refused, "refusals")


def lying_servers():
    """What a server may send instead of a truthful answer: a function of the connection each."""
    def hang_up(connection):
        connection.recv(100)

    def silence_then_hang_up(connection):
        connection.recv(100)
        time.sleep(2)

    def huge_size(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, b"x" * 50, size=0xFFFFFFF0))
        time.sleep(1)

    def tiny_size(connection):
        connection.recv(100)
        connection.sendall(struct.pack("<I", 2) + bytes(50))

    def noise(connection):
        connection.recv(100)
        connection.sendall(os.urandom(10_000))

    def truncated_string(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, struct.pack("<IH", 8192, 500) + b"9P2000.L"))

    def larger_msize(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, struct.pack("<I", 0xFFFFFFFF) + ninep.text("9P2000.L")))
        hang_up(connection)

    def msize_of_one(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, struct.pack("<I", 1) + ninep.text("9P2000.L")))
        hang_up(connection)

    def unknown_version(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, struct.pack("<I", 8192) + ninep.text("unknown")))

    def wrong_answers(connection):
        truthful_version(connection)
        while True:
            data = connection.recv(65536)
            if not data:
                return
            tag = struct.unpack("<H", data[5:7])[0]
            connection.sendall(ninep.frame(ninep.TREAD + 1, tag, struct.pack("<I", 0x7FFFFFFF) + b"short"))

    def wrong_tags(connection):
        truthful_version(connection)
        while connection.recv(65536):
            connection.sendall(ninep.frame(105, 4711, bytes(13)))

    def error_zero(connection):
        truthful_version(connection)
        while data := connection.recv(65536):
            connection.sendall(ninep.frame(ninep.RLERROR, struct.unpack("<H", data[5:7])[0], struct.pack("<I", 0)))

    def error_absurd(connection):
        truthful_version(connection)
        while data := connection.recv(65536):
            connection.sendall(ninep.frame(ninep.RLERROR, struct.unpack("<H", data[5:7])[0], struct.pack("<I", 0xFFFFFFFF)))

    def truthful_version(connection):
        connection.recv(100)
        connection.sendall(ninep.frame(101, ninep.NOTAG, struct.pack("<I", 8192) + ninep.text("9P2000.L")))

    return [f for f in locals().values() if callable(f) and f.__name__ != "truthful_version"]


@scenario
def servers_that_lie(house):
    """A client of a lying server ends with an error: no hang, no crash, no data."""
    for lie in lying_servers():
        listener = socket.create_server(("127.0.0.1", 0))

        def answer(listener=listener, lie=lie):
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        lie(connection)
                    except OSError:
                        pass

        threading.Thread(target=answer, daemon=True).start()
        uri = f"scdc+tcp://127.0.0.1:{listener.getsockname()[1]}/far"
        try:
            done = house.cli("cat", f"{uri}/file.txt", seconds_max=45)
            hold(done.stdout == "", lie.__name__, "produced data:", done.stdout[:50])
            clear_sentence(done)
            done = house.run(uri, "cat /far/file.txt", seconds_max=45)
            hold(done.returncode == 1 and done.stdout == "" and "file.txt" in done.stderr, lie.__name__, done.returncode, done.stderr)
        finally:
            listener.close()


@scenario
def server_that_never_answers(house):
    """A server that accepts and keeps silent: an error within a minute, not a hang."""
    listener = socket.create_server(("127.0.0.1", 0))
    house.closing.append(listener.close)
    uri = f"scdc+tcp://127.0.0.1:{listener.getsockname()[1]}/far"
    clear_sentence(house.cli("cat", f"{uri}/file.txt", seconds_max=60))
    clear_sentence(house.run(uri, "cat /far/file.txt", seconds_max=60), "file.txt")
