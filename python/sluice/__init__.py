"""Files of Sluice's services, for Python.

    >>> import sluice
    >>> with sluice.Service({"data": "mem:"}) as service:
    ...     with sluice.open(f"{service.uri}/data/hello", "w") as file:
    ...         _ = file.write("hello")
    ...     sluice.listdir(f"{service.uri}/data")
    ['hello']

`open` gives what Python's own `open` gives. `listdir`, `scandir`, `stat`, `exists`, `mkdir`, `makedirs`, `remove`, `rmdir`,
`rename` and `readlink` stand for those of `os`. `Service` offers directories and memory to others, `View` is
what a dataset's view holds as numpy arrays that are read when they are indexed, `Array` the same of any file, and with fsspec installed, `fsspec.open("scdc+uds://…")` works, as does whatever is built on it.
"""

import atexit as _atexit
import os as _os

from sluice import _sluice
from sluice._io import RawFile, flush_all as _flush_all, open  # noqa: A004
from sluice._names import (
    Entry,
    exists,
    listdir,
    makedirs,
    mkdir,
    readlink,
    remove,
    rename,
    rmdir,
    scandir,
    stat,
)
from sluice._service import Counters, Service, stop_all as _stop_all
from sluice._view import Array, View

__version__ = _sluice.__version__

__all__ = [
    "Array",
    "Counters",
    "Entry",
    "RawFile",
    "Service",
    "View",
    "exists",
    "listdir",
    "makedirs",
    "mkdir",
    "open",
    "readlink",
    "remove",
    "rename",
    "rmdir",
    "scandir",
    "stat",
]

_os.register_at_fork(before=_sluice.before_fork, after_in_child=_sluice.after_fork_in_child)
# The last is called first: services end when nothing of this process's files is left to be written to them.
_atexit.register(_stop_all)
_atexit.register(_sluice.finish)
_atexit.register(_flush_all)
