"""Services as an fsspec file system: for numpy, pandas, xarray, zarr, h5py, dask and whatever else takes fsspec's URLs.

    >>> import fsspec
    >>> with fsspec.open("scdc+uds://default/store/table.csv") as file:      # doctest: +SKIP
    ...     file.readline()

One file system stands for one service. Paths in it begin with the name of a store: `/store/dir/file`.
"""

from __future__ import annotations

import os
import stat as modes
from typing import Any

from fsspec.spec import AbstractFileSystem
from fsspec.utils import stringify_path

import sluice
from sluice import _sluice

# `scdc:///` has no store in a Python process; it is registered so that it says so.
PROTOCOLS = (
    "scdc+uds",
    "scdc+tcp",
    "scdc+mpi",
    "scdc",
    "sluice+uds",
    "sluice+tcp",
    "sluice+mpi",
    "sluice",
)


class SluiceFileSystem(AbstractFileSystem):
    """The stores of one service.

    `service` is its address without a path, such as `scdc+uds://default` or `scdc+tcp://host:5640`; fsspec takes it from
    the URL where one is given: `fsspec.open("scdc+tcp://host/store/file")`. Writing a file makes the directories above
    it, which zarr and others rely on, unless `auto_mkdir` is false.
    """

    protocol = PROTOCOLS
    root_marker = "/"
    # Others change files, too: what a service said is not kept.
    cachable = True

    def __init__(self, service: str | None = None, auto_mkdir: bool = True, **options: Any) -> None:
        super().__init__(**options)
        if service is None:
            raise ValueError(
                "which service? Name it: fsspec.filesystem('scdc+uds', service='scdc+uds://default'), or open a URL"
            )
        self.service, _ = _sluice.split(service)
        self.auto_mkdir = auto_mkdir

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = stringify_path(path)
        if "://" in path and path.split("://", 1)[0] in PROTOCOLS:
            path = _sluice.split(path)[1]
        return "/" + path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        path = stringify_path(path)
        return {"service": _sluice.split(path)[0]} if "://" in path else {}

    @property
    def fsid(self) -> str:
        return self.service

    def unstrip_protocol(self, name: str) -> str:
        name = stringify_path(name)
        return name if name.startswith(self.service + "/") else self._uri(name)

    def _uri(self, path: str) -> str:
        return self.service + self._strip_protocol(path)

    # ---- what is there ----------------------------------------------------------------------------

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._info(path, sluice.stat(self._uri(path), follow_symlinks=False))

    def _info(self, path: str, found: os.stat_result) -> dict[str, Any]:
        info: dict[str, Any] = {"islink": modes.S_ISLNK(found.st_mode)}
        if info["islink"]:
            try:
                info["destination"] = sluice.readlink(self._uri(path))
                found = sluice.stat(self._uri(path))
            except OSError:
                # It leads nowhere.
                pass
        directory = modes.S_ISDIR(found.st_mode)
        kind = "directory" if directory else ("file" if modes.S_ISREG(found.st_mode) else "other")
        return info | {
            "name": path,
            "type": kind,
            "size": 0 if directory else found.st_size,
            "mode": found.st_mode,
            "uid": found.st_uid,
            "gid": found.st_gid,
            "mtime": found.st_mtime,
            "created": found.st_ctime,
            "ino": found.st_ino,
            "nlink": found.st_nlink,
        }

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        info = self.info(path)
        if info["type"] != "directory":
            return [info] if detail else [path]
        above = path.rstrip("/")
        if not detail:
            return [f"{above}/{name}" for name in sluice.listdir(self._uri(path))]
        return [self._info(f"{above}/{entry.name}", entry.stat) for entry in sluice.scandir(self._uri(path))]

    def exists(self, path: str, **_: Any) -> bool:
        return sluice.exists(self._uri(path))

    def created(self, path: str) -> Any:
        return self._time(path, "created")

    def modified(self, path: str) -> Any:
        return self._time(path, "mtime")

    def _time(self, path: str, which: str) -> Any:
        import datetime

        return datetime.datetime.fromtimestamp(self.info(path)[which], tz=datetime.timezone.utc)

    # ---- names ------------------------------------------------------------------------------------

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        if self.exists(path):
            raise FileExistsError(17, os.strerror(17), self._uri(path))
        if create_parents:
            sluice.makedirs(self._uri(path), exist_ok=True)
        else:
            sluice.mkdir(self._uri(path))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        sluice.makedirs(self._uri(path), exist_ok=exist_ok)

    def rmdir(self, path: str) -> None:
        sluice.rmdir(self._uri(path))

    def rm_file(self, path: str) -> None:
        sluice.remove(self._uri(path))

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for one in path if isinstance(path, list) else [path]:
            one = self._strip_protocol(one)
            if self.info(one)["islink"] or not self.isdir(one):
                self.rm_file(one)
                continue
            if not recursive:
                raise IsADirectoryError(21, os.strerror(21), self._uri(one))
            if one.count("/") < 2:
                raise ValueError(f"{self._uri(one)}: a whole store is not removed; remove what is in it")
            inner = None if maxdepth is None else maxdepth - 1
            if inner is None or inner > 0:
                self.rm([info["name"] for info in self.ls(one)], recursive=True, maxdepth=inner)
            if inner is None or not self.ls(one, detail=False):
                self.rmdir(one)

    def mv_file(self, path1: str, path2: str, **_: Any) -> None:
        sluice.rename(self._uri(path1), self._uri(path2))

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        block = memoryview(bytearray(1 << 20))
        with sluice.open(self._uri(path1), "rb", 0) as source, self._opened(path2, "wb", 0) as target:
            while count := source.readinto(block):
                target.write(block[:count])

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        if not truncate and self.exists(path):
            raise NotImplementedError("touch changes no times of a file that is there")
        with self._opened(path, "wb" if truncate else "ab"):
            pass

    # ---- contents ---------------------------------------------------------------------------------

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        if not autocommit:
            raise NotImplementedError("files of a service are written in place: there are no transactions of many")
        return self._opened(path, mode)

    def _opened(self, path: str, mode: str, buffering: int = -1) -> Any:
        try:
            return sluice.open(self._uri(path), mode, buffering)
        except FileNotFoundError:
            if not self.auto_mkdir or "r" in mode:
                raise
        self.makedirs(self._parent(path), exist_ok=True)
        return sluice.open(self._uri(path), mode, buffering)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        with sluice.open(self._uri(path), "rb", 0) as file:
            if start is None and end is None:
                return file.readall()
            size = file.seek(0, os.SEEK_END)
            first, last, _step = slice(start, end).indices(size)
            return file.pread(max(last - first, 0), first)

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        with self._opened(path, "xb" if mode == "create" else "wb", 0) as file:
            file.write(value)

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[Any]:
        """Reads ranges of files. All of one file are read in one go: the sieve plans what is read together, so that
        `max_gap` is not needed."""
        if not isinstance(paths, list):
            raise TypeError("paths must be a list")
        if not isinstance(starts, (list, tuple)):
            starts = [starts] * len(paths)
        if not isinstance(ends, (list, tuple)):
            ends = [ends] * len(paths)
        if len(starts) != len(paths) or len(ends) != len(paths):
            raise ValueError("as many starts and ends as paths are needed")
        wanted: dict[str, list[int]] = {}
        for number, path in enumerate(paths):
            wanted.setdefault(self._strip_protocol(path), []).append(number)
        results: list[Any] = [None] * len(paths)
        found: list[Any]
        for path, numbers in wanted.items():
            try:
                found = self._ranges(path, [(starts[number], ends[number]) for number in numbers])
            except OSError as error:
                if on_error == "raise":
                    raise
                found = [error] * len(numbers)
            for number, data in zip(numbers, found):
                results[number] = data
        return results

    def _ranges(self, path: str, ranges: list[tuple[int | None, int | None]]) -> list[bytes]:
        with sluice.open(self._uri(path), "rb", 0) as file:
            size = file.seek(0, os.SEEK_END)
            cut = [slice(start, end).indices(size)[:2] for start, end in ranges]
            # What overlaps is read once.
            merged: list[list[int]] = []
            for start, end in sorted(one for one in cut if one[1] > one[0]):
                if merged and start <= merged[-1][1]:
                    merged[-1][1] = max(merged[-1][1], end)
                else:
                    merged.append([start, end])
            data = bytearray(sum(end - start for start, end in merged))
            if merged:
                read = file.read_ranges([(start, end - start) for start, end in merged], data)
                if read != len(data):
                    raise OSError(5, "the file became shorter while it was read", self._uri(path))
        begins, at = [], 0
        for start, end in merged:
            begins.append((start, at))
            at += end - start
        view = memoryview(data)
        return [bytes(_part(view, begins, start, end)) for start, end in cut]


def _part(data: memoryview, begins: list[tuple[int, int]], start: int, end: int) -> memoryview:
    """A range out of merged ones, of which is known where they begin in the file and in the data."""
    if end <= start:
        return data[:0]
    from bisect import bisect_right

    first, at = begins[bisect_right(begins, (start, len(data))) - 1]
    return data[at + start - first : at + end - first]


def register() -> None:
    """Registers the protocols, where the package's entry points are not seen, as when it was not installed."""
    import fsspec

    for protocol in PROTOCOLS:
        fsspec.register_implementation(protocol, SluiceFileSystem, clobber=True)
