"""A disk for QEMU: a server of the NBD protocol, whose disks lose power together.

# Source
The NBD protocol, https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md: fixed newstyle negotiation,
simple replies.
"""

import contextlib
import socket
import struct
import threading

GREETING, OPTION = b"NBDMAGIC", b"IHAVEOPT"
OPTION_REPLY, REQUEST, REPLY = 0x3E889045565A9, 0x25609513, 0x67446698
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPT_EXPORT_NAME, OPT_ABORT, OPT_INFO, OPT_GO = 1, 2, 6, 7
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, (1 << 31) + 1
INFO_EXPORT, INFO_BLOCK_SIZE = 0, 3
# Has flags, flush, force unit access, trim, write zeroes.
EXPORT = 1 | 4 | 8 | 32 | 64
READ, WRITE, DISCONNECT, FLUSH, TRIM, ZERO = 0, 1, 2, 3, 4, 6
FORCE_UNIT_ACCESS = 1
KINDS = {WRITE: "write", ZERO: "write", TRIM: "write", FLUSH: "flush"}
ZEROS_AT_ONCE = 1 << 20


class Power:
    """What all disks of a machine hang on."""

    def __init__(self, disks, dice, ways=None):
        """`disks`: by name. `ways`: how the un-flushed is lost, by name of the disk, where that is not for the dice."""
        self.disks, self.dice, self.ways = disks, dice, ways or {}
        self.lock = threading.Lock()
        self.cut = threading.Event()
        self.left, self.matches, self.how = None, None, None
        # Called when it is cut.
        self.tell = lambda: None

    def arm(self, requests, kinds, names):
        """Cuts at the so-manieth request from now on of these kinds to these disks."""
        with self.lock:
            self.left, self.matches = requests, (kinds, names)

    def off(self):
        """Cuts now; what was cut before stays as it was."""
        with self.lock:
            self._off()

    def _off(self):
        if not self.cut.is_set():
            self.how = ", ".join(f"{name}: {disk.lose_power(self.dice, self.ways.get(name))}" for name, disk in self.disks.items())
            self.cut.set()
            self.tell()

    def _count(self, kind, name):
        if self.left is not None and kind in self.matches[0] and name in self.matches[1]:
            self.left -= 1
            if self.left == 0:
                self._off()
        return not self.cut.is_set()

    def handle(self, name, kind, flags, offset, length, data):
        """What the disk answers; None once there is no power."""
        disk = self.disks[name]
        with self.lock:
            if self.cut.is_set():
                return None
            what = KINDS.get(kind)
            # A flush in the middle of which the power goes has not happened; of a write, parts have.
            if what == "flush" and not self._count(what, name):
                return None
            answer = b""
            if kind == READ:
                answer = disk.read(offset, length)
            elif kind == FLUSH:
                disk.flush()
            else:
                is_durable = bool(flags & FORCE_UNIT_ACCESS)
                for at in range(0, length, ZEROS_AT_ONCE):
                    part = data[at:at + ZEROS_AT_ONCE] if kind == WRITE else bytes(min(ZEROS_AT_ONCE, length - at))
                    disk.write(offset + at, part, is_durable)
            if what == "write" and not self._count(what, name):
                return None
            return answer


class Server:
    """One disk on a Unix socket, for one connection."""

    def __init__(self, power, name, path):
        self.power, self.name, self.path = power, name, path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.path.unlink(missing_ok=True)

    def _serve(self):
        with contextlib.suppress(OSError, EOFError):
            connection, _ = self.listener.accept()
            with connection:
                if self._negotiate(connection):
                    self._transmit(connection)

    def _negotiate(self, connection):
        connection.sendall(GREETING + OPTION + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
        take(connection, 4)
        size = self.power.disks[self.name].size

        def reply(option, kind, data=b""):
            connection.sendall(struct.pack(">QIII", OPTION_REPLY, option, kind, len(data)) + data)

        while True:
            magic, option, length = struct.unpack(">8sII", take(connection, 16))
            take(connection, length)
            if magic != OPTION or option == OPT_ABORT:
                return False
            if option == OPT_EXPORT_NAME:
                connection.sendall(struct.pack(">QH", size, EXPORT))
                return True
            if option not in (OPT_INFO, OPT_GO):
                reply(option, REP_UNSUPPORTED)
                continue
            reply(option, REP_INFO, struct.pack(">HQH", INFO_EXPORT, size, EXPORT))
            reply(option, REP_INFO, struct.pack(">HIII", INFO_BLOCK_SIZE, 512, 4096, 32 << 20))
            reply(option, REP_ACK)
            if option == OPT_GO:
                return True

    def _transmit(self, connection):
        while True:
            magic, flags, kind, handle, offset, length = struct.unpack(">IHHQQI", take(connection, 28))
            if magic != REQUEST or kind == DISCONNECT:
                return
            data = take(connection, length) if kind == WRITE else b""
            answer = self.power.handle(self.name, kind, flags, offset, length, data)
            if answer is None:
                return
            connection.sendall(struct.pack(">IIQ", REPLY, 0, handle) + answer)


def take(connection, length):
    """So many bytes of a connection."""
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
