"""`open` and the raw file beneath it, as Python's `io` has them."""

from __future__ import annotations

import contextlib
import io
import os
import weakref
from typing import Any

from sluice import _sluice

# Files of services are read ahead by the client below; this is what Python copies from there at a time.
BUFFER_BYTES = 128 * 1024


# Buffers of Python over files that are open. They are written back before the interpreter ends its services.
OPEN: "weakref.WeakSet[Any]" = weakref.WeakSet()


def flush_all() -> None:
    """Before the interpreter ends. What cannot be written is said when the files are closed."""
    for file in list(OPEN):
        with contextlib.suppress(OSError, ValueError):
            file.flush()


class RawFile(io.RawIOBase):
    """An unbuffered file of a service.

    `sluice.open` puts Python's buffers over it. What Python's raw files have not are `pread`, `preadinto`, `pwrite`,
    `sync` and `stat`, which neither use nor move the offset.
    """

    def __init__(self, uri: Any, flags: int) -> None:
        self._file: Any = None
        self.name = uri
        self._file = _sluice.File(uri, flags)
        self._appends = bool(flags & os.O_APPEND)
        if self._appends:
            self._file.seek(0, os.SEEK_END)

    @property
    def uri(self) -> str:
        """The address of the file."""
        return self._file.name

    @property
    def mode(self) -> str:
        """The mode in which it is open, as that of `io.FileIO`."""
        reads = self._file.readable
        if self._appends:
            return "ab+" if reads else "ab"
        return "rb" if not self._file.writable else ("rb+" if reads else "wb")

    def __repr__(self) -> str:
        state = "closed" if self._file is None or self.closed else f"mode={self.mode!r}"
        return f"<sluice.RawFile name={self.name!r} {state}>"

    def __getstate__(self) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def _wants(self, reading: bool) -> None:
        self._checkClosed()
        if reading and not self._file.readable:
            raise io.UnsupportedOperation("File not open for reading")
        if not reading and not self._file.writable:
            raise io.UnsupportedOperation("File not open for writing")

    def readable(self) -> bool:
        self._checkClosed()
        return self._file.readable

    def writable(self) -> bool:
        self._checkClosed()
        return self._file.writable

    def seekable(self) -> bool:
        self._checkClosed()
        return True

    def isatty(self) -> bool:
        self._checkClosed()
        return False

    def fileno(self) -> int:
        """Files of services have no descriptor."""
        self._checkClosed()
        raise io.UnsupportedOperation("fileno: a file of a service has no descriptor in this process")

    def readinto(self, buffer: Any) -> int:
        self._wants(reading=True)
        return self._file.readinto(buffer)

    def read(self, size: int | None = -1) -> bytes:
        self._wants(reading=True)
        if size is None or size < 0:
            return self.readall()
        return self._file.read(size)

    def readall(self) -> bytes:
        self._wants(reading=True)
        parts: list[bytes] = []
        # What is appended meanwhile belongs to it, too.
        while True:
            left = max(self._file.size() - self._file.tell(), 0)
            part = self._file.read(left if left else 1)
            if not part:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            parts.append(part)

    def write(self, buffer: Any) -> int:
        self._wants(reading=False)
        return self._file.write(buffer)

    def pread(self, size: int, offset: int) -> bytes:
        """Up to so many bytes from an offset on; fewer at the end of the file."""
        self._wants(reading=True)
        return self._file.pread(size, offset)

    def preadinto(self, buffer: Any, offset: int) -> int:
        """Fills a buffer from an offset on; returns how many bytes there were."""
        self._wants(reading=True)
        return self._file.preadinto(buffer, offset)

    def pwrite(self, buffer: Any, offset: int) -> int:
        """Writes all of a buffer at an offset (at the end, if the file is open for appending)."""
        self._wants(reading=False)
        return self._file.pwrite(buffer, offset)

    def read_ranges(self, ranges: list[tuple[int, int]], buffer: Any) -> int:
        """Reads ranges, each (offset, length), one after the other into a buffer.

        They rise and do not overlap. What is read together is planned by the sieve, and requests are under way
        together.
        """
        self._wants(reading=True)
        return self._file.read_ranges(ranges, buffer)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._checkClosed()
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        self._checkClosed()
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        self._wants(reading=False)
        return self._file.truncate(self._file.tell() if size is None else size)

    def sync(self, data_only: bool = False) -> None:
        """Waits until what was written is durable at the service, as `os.fsync` does; flush buffers before."""
        self._checkClosed()
        self._file.sync(data_only)

    def stat(self) -> os.stat_result:
        """What `os.fstat` tells of local files."""
        from sluice._names import as_stat_result

        self._checkClosed()
        return as_stat_result(self._file.stat())

    def flush(self) -> None:
        """Waits until the service has what was written; then errors of it are told here, and not by `close`."""
        self._checkClosed()
        # IOBase's close flushes once more, when there is nothing left to flush; of a file that was not opened, too.
        if self._file is not None and self._file.writable and not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._file is not None:
                self._file.close()
        finally:
            super().close()


def flags_of(mode: str) -> int:
    """The flags of open(2) that a mode means; anything but one of r, w, a, x with + and b is refused."""
    letters = set(mode)
    kinds = letters & set("rwax")
    if len(letters) != len(mode) or letters - set("rwax+b"):
        raise ValueError(f"invalid mode: {mode!r}")
    if len(kinds) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    flags = {"r": 0, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND, "x": os.O_CREAT | os.O_EXCL}
    access = os.O_RDWR if "+" in letters else (os.O_RDONLY if "r" in letters else os.O_WRONLY)
    return access | flags[kinds.pop()]


def open(  # noqa: A001: it stands where Python's stands
    uri: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> Any:
    """Opens a file of a service as Python's own `open` does a local one, and gives the same kinds of objects.

    `uri` is an address (`scdc+uds://…`, `scdc+tcp://…`) or a path below a mapped prefix of `sluice run --map` or
    `sluice.toml`. Text files are `io.TextIOWrapper`, binary ones `io.BufferedReader`, `io.BufferedWriter` or
    `io.BufferedRandom`, and with `buffering=0` a `RawFile`.

    What fails is an `OSError` with errno and file name; wrong addresses and modes are `ValueError`.
    """
    if not isinstance(mode, str):
        raise TypeError(f"invalid mode: {mode!r}")
    text = "b" not in mode
    if "t" in mode:
        if not text:
            raise ValueError("can't have text and binary mode at once")
        mode = mode.replace("t", "", 1)
    flags = flags_of(mode)
    if not text and (encoding, errors, newline) != (None, None, None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    if text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    raw = RawFile(uri, flags)
    try:
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else BUFFER_BYTES
        kind = io.BufferedRandom if flags & os.O_RDWR else (
            io.BufferedWriter if flags & os.O_WRONLY else io.BufferedReader)
        buffered = kind(raw, size)
        if not text:
            OPEN.add(buffered)
            return buffered
        wrapped = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        wrapped.mode = mode  # type: ignore[misc]
        OPEN.add(wrapped)
        return wrapped
    except BaseException:
        raw.close()
        raise
