"""Functions on names, after those of `os`."""

from __future__ import annotations

import os
import stat as modes
from typing import Any, Iterator, NamedTuple

from sluice import _sluice


def as_stat_result(found: tuple[int, ...]) -> os.stat_result:
    mode, inode, links, uid, gid, size, *times = found
    seconds = [ns // 10**9 for ns in times]
    more = {}
    for name, ns in zip(("atime", "mtime", "ctime"), times):
        more[f"st_{name}"] = ns / 1e9
        more[f"st_{name}_ns"] = ns
    return os.stat_result((mode, inode, 0, links, uid, gid, size, *seconds), more)


class Entry(NamedTuple):
    """A file in a directory: its name, and what is known of it (of a symbolic link, of the link itself)."""

    name: str
    stat: os.stat_result

    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return modes.S_ISDIR(self.stat.st_mode)

    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return modes.S_ISREG(self.stat.st_mode)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return modes.S_ISLNK(self.stat.st_mode)


def stat(uri: Any, *, follow_symlinks: bool = True) -> os.stat_result:
    """What `os.stat` tells of local files."""
    return as_stat_result(_sluice.stat(uri, follow_symlinks))


def exists(uri: Any) -> bool:
    """Whether there is such a file or directory. A service that is not heard is an error, and not False."""
    try:
        _sluice.stat(uri, True)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def listdir(uri: Any) -> list[str]:
    """The names in a directory, sorted."""
    return [os.fsdecode(name) for name in _sluice.list_names(uri)]


def scandir(uri: Any) -> Iterator[Entry]:
    """The files in a directory, each with what is known of it: several round trips at a time."""
    for name, found in _sluice.list_with_stats(uri):
        yield Entry(os.fsdecode(name), as_stat_result(found))


def mkdir(uri: Any, mode: int = 0o777) -> None:
    """Makes a directory."""
    _sluice.mkdir(uri, mode)


def makedirs(uri: Any, mode: int = 0o777, exist_ok: bool = False) -> None:
    """Makes a directory and those above it that are missing. The store itself is there already."""
    service, path = _sluice.split(uri)
    names = [name for name in path.split("/") if name]
    for depth in range(1, len(names) + 1):
        last = depth == len(names)
        place = f"{service}/{'/'.join(names[:depth])}"
        try:
            _sluice.mkdir(place, mode)
        except OSError:
            # It is there, or cannot be made because it is a store.
            if not modes.S_ISDIR(_mode_of(place)) or (last and not exist_ok):
                raise


def _mode_of(uri: str) -> int:
    try:
        return _sluice.stat(uri, True)[0]
    except OSError:
        return 0


def remove(uri: Any) -> None:
    """Removes a file."""
    _sluice.unlink(uri)


def rmdir(uri: Any) -> None:
    """Removes an empty directory."""
    _sluice.rmdir(uri)


def rename(source: Any, target: Any) -> None:
    """Gives a file or directory another name within its service, replacing a file that is there."""
    _sluice.rename(source, target)


def readlink(uri: Any) -> str:
    """The target of a symbolic link."""
    return os.fsdecode(_sluice.readlink(uri))
