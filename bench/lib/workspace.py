"""The directories of a run: on tmpfs where there is one, so that it is not the disk that is measured."""

import hashlib
import os
import shutil
import tempfile


class Workspace:
    """`far` is the side that is exported, `near` the side of the program, `run` holds sockets, logs and mounts."""

    def __init__(self, need_bytes: int):
        base = "/dev/shm"
        self.on_tmpfs = os.path.isdir(base) and os.access(base, os.W_OK) \
            and shutil.disk_usage(base).free > need_bytes
        self.root = tempfile.mkdtemp(prefix="sluice-bench-", dir=base if self.on_tmpfs else None)
        os.chmod(self.root, 0o755)
        for side in ("far", "near", "run"):
            os.mkdir(os.path.join(self.root, side))

    def far(self, *parts: str) -> str:
        return os.path.join(self.root, "far", *parts)

    def near(self, *parts: str) -> str:
        return os.path.join(self.root, "near", *parts)

    def run(self, *parts: str) -> str:
        return os.path.join(self.root, "run", *parts)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def forget(path: str) -> None:
    """Removes a file that may not be there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def digest(path: str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
