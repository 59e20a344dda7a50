"""Just enough 9P2000.L to misbehave: frames built by hand, sent and received raw."""

import socket
import struct

NOTAG, NOFID = 0xFFFF, 0xFFFFFFFF
TLERROR, RLERROR = 6, 7
TSTATFS, TLOPEN, TLCREATE, TSYMLINK, TREADLINK, TGETATTR, TREADDIR = 8, 12, 14, 16, 22, 24, 40
TVERSION, TATTACH, TFLUSH, TWALK, TREAD, TWRITE, TCLUNK = 100, 104, 108, 110, 116, 118, 120


def text(value):
    """A 9P string: two bytes of length, then UTF-8."""
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<H", len(raw)) + raw


def frame(kind, tag, body=b"", size=None):
    """A message; `size` overrides the true one for frames that lie."""
    return struct.pack("<IBH", 7 + len(body) if size is None else size, kind, tag) + body


def version(msize=65536, name="9P2000.L"):
    return frame(TVERSION, NOTAG, struct.pack("<I", msize) + text(name))


def attach(fid=0, tag=1, name=""):
    return frame(TATTACH, tag, struct.pack("<II", fid, NOFID) + text("user") + text(name) + struct.pack("<I", 0))


def walk(fid, new_fid, *names, tag=1, count=None):
    body = struct.pack("<IIH", fid, new_fid, len(names) if count is None else count)
    return frame(TWALK, tag, body + b"".join(map(text, names)))


def lopen(fid, flags=0, tag=1):
    return frame(TLOPEN, tag, struct.pack("<II", fid, flags))


def read(fid, offset, count, tag=1):
    return frame(TREAD, tag, struct.pack("<IQI", fid, offset, count))


def write(fid, offset, data, tag=1, count=None):
    return frame(TWRITE, tag, struct.pack("<IQI", fid, offset, len(data) if count is None else count) + data)


def clunk(fid, tag=1):
    return frame(TCLUNK, tag, struct.pack("<I", fid))


class Closed(Exception):
    """The other side closed the connection."""


class Wire:
    """A connection to a service, with a time-out on everything."""

    def __init__(self, uri, seconds_max=10):
        scheme, rest = uri.split("://", 1)
        if scheme.endswith("+uds"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(seconds_max)
            self.socket.connect(rest[:rest.index(".sock") + 5])
        else:
            host, port = rest.split("/")[0].rsplit(":", 1)
            self.socket = socket.create_connection((host, int(port)), seconds_max)

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def receive(self):
        """One message as (kind, tag, body)."""
        size, kind, tag = struct.unpack("<IBH", self._exactly(7))
        return kind, tag, self._exactly(size - 7)

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return data

    def ask(self, message):
        """Sends one message and returns the answer; an Rlerror is returned like any other."""
        self.send(message)
        return self.receive()

    def begin(self, export, msize=65536):
        """Version, attach, and a walk to the export's root as fid 1; returns self."""
        assert self.ask(version(msize))[0] == TVERSION + 1
        kind, _, body = self.ask(attach(0))
        assert kind == TATTACH + 1, (kind, body)
        kind, _, body = self.ask(walk(0, 1, export))
        assert kind == TWALK + 1, (kind, body)
        return self

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def errno_of(answer):
    """The errno of an Rlerror, or None for any other answer."""
    kind, _, body = answer
    return struct.unpack("<I", body[:4])[0] if kind == RLERROR else None
