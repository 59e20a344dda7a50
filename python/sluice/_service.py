"""Services in this process."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any, Mapping, NamedTuple, Sequence

from sluice import _sluice

# What must not outlive the interpreter.
RUNNING: "weakref.WeakSet[Service]" = weakref.WeakSet()


class Counters(NamedTuple):
    """What a service has done."""

    accepted: int
    """Connections so far."""
    refused: int
    """Connections turned away: another user, or too many."""
    connections: int
    """Connections now."""
    requests: int
    """Requests so far."""


class Service:
    """Offers stores to other programs, as `sluice serve` does, for as long as a `with` block lasts.

        with sluice.Service({"data": "/srv/data", "scratch": "mem:"}) as service:
            subprocess.run(["sluice", "run", "--", "program", f"{service.uri}/data/in.h5"])

    `stores` are names with what they stand for: a directory, `mem:` (memory, empty at first, gone at the end), or the
    address of another service, to which requests are relayed. `listen` is an address or several: `unix:PATH`,
    `tcp:HOST:PORT` (port 0: a free one); without it, a Unix socket in a directory of its own. `read_only` refuses all
    changes; `insecure` allows TCP addresses that other machines can reach, although nothing is encrypted.

    Threads that are none of Python's answer, so that the interpreter's lock is not needed. In a fork's child the service
    is not there; it is the parent's.
    """

    def __init__(
        self,
        stores: Mapping[str, Any],
        listen: str | Sequence[str] | None = None,
        *,
        read_only: bool = False,
        insecure: bool = False,
    ) -> None:
        if not stores:
            raise ValueError("nothing to serve: name a store, as in Service({'data': '/srv/data'})")
        self._stores = [(name, os.fspath(place)) for name, place in stores.items()]
        self._listen = [listen] if isinstance(listen, str) else (list(listen) if listen is not None else None)
        if self._listen == []:
            raise ValueError("a service without an address cannot be reached")
        self._options = (read_only, insecure)
        self._serving: _sluice.Serving | None = None
        self._directory: str | None = None

    def start(self) -> Service:
        """Begins to serve; `with` does it."""
        if self._serving is not None:
            raise RuntimeError("the service has been started already")
        listen = self._listen
        if listen is None:
            # For this user alone.
            self._directory = tempfile.mkdtemp(prefix="sluice-")
            listen = [f"unix:{self._directory}/service.sock"]
        try:
            self._serving = _sluice.Serving(self._stores, listen, *self._options)
        except BaseException:
            self._remove_directory()
            raise
        RUNNING.add(self)
        return self

    def stop(self) -> bool:
        """Ends it; what is being answered has some seconds. True when every connection has ended by itself."""
        if self._serving is None:
            return True
        try:
            return self._serving.stop()
        finally:
            self._remove_directory()
            RUNNING.discard(self)

    def _remove_directory(self) -> None:
        directory, self._directory = self._directory, None
        # In a fork's child it is the parent's.
        if directory is not None and (self._serving is None or self._serving.pid == os.getpid()):
            shutil.rmtree(directory, ignore_errors=True)

    def __enter__(self) -> Service:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = self.uri if self.running else "not running"
        return f"<sluice.Service {', '.join(name for name, _ in self._stores)}: {where}>"

    @property
    def running(self) -> bool:
        """Whether it serves, in this process."""
        return self._serving is not None and self._serving.running

    @property
    def uris(self) -> list[str]:
        """The addresses of the service, without a slash at the end; `URI/STORE/path` is a file."""
        if self._serving is None:
            raise RuntimeError("the service has not been started; use it as `with sluice.Service(…) as service:`")
        return self._serving.uris

    @property
    def uri(self) -> str:
        """The first of them."""
        return self.uris[0]

    @property
    def counters(self) -> Counters:
        """What it has done so far; zeros when it is stopped."""
        return Counters(*(self._serving.counters() if self._serving is not None else (0, 0, 0, 0)))


def stop_all() -> None:
    """Before the interpreter ends."""
    for service in list(RUNNING):
        if service.running:
            service.stop()
