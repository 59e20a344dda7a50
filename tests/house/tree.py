"""Snapshots of directory trees, and what differs between two of them."""

import hashlib
import os
import pathlib
import stat

from .seed import SEED_TIME

# Times up to then were set on purpose (by the seed or by a case); later ones are the moment of the run.
SET_ON_PURPOSE_BEFORE = SEED_TIME + 5 * 365 * 86_400


def snapshot(root: pathlib.Path):
    """Maps each name below `root` to what can be seen of it: type, mode, size, content, target."""
    found = {}
    for folder, directories, files in os.walk(os.fsencode(root)):
        for name in directories + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, os.fsencode(root))] = describe(path)
    return found


def describe(path: bytes):
    """One entry as a dictionary; inode numbers, owners and the times of the run are left out."""
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    entry = {"mode": oct(status.st_mode)}
    if kind == stat.S_IFLNK:
        entry["target"] = os.readlink(path)
    elif kind == stat.S_IFREG:
        entry["size"] = status.st_size
        entry["links"] = status.st_nlink
        entry["content"] = digest(path, status)
        if status.st_mtime < SET_ON_PURPOSE_BEFORE:
            entry["mtime"] = status.st_mtime_ns
    return entry


def digest(path: bytes, status):
    """SHA-256 of the content; of a sparse giant only the parts that hold data are read."""
    total = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        if status.st_size < (64 << 20):
            total.update(file.read() if status.st_size else b"")
            return total.hexdigest()
        offset = 0
        while True:
            try:
                start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError:
                return total.hexdigest()
            offset = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            data = os.pread(file.fileno(), offset - start, start)
            # Zeros that happen to be stored are no difference.
            if data.strip(b"\0"):
                total.update(f"{start}:".encode() + data.rstrip(b"\0"))


def differences(native, routed, limit=12):
    """Readable lines saying how the routed tree differs from the native one; empty if equal."""
    lines = []
    for name in sorted(native.keys() | routed.keys()):
        shown = os.fsdecode(name)
        if name not in routed:
            lines.append(f"missing: {shown}")
        elif name not in native:
            lines.append(f"extra: {shown} {routed[name]}")
        else:
            for key in native[name].keys() | routed[name].keys():
                want, got = native[name].get(key), routed[name].get(key)
                if want != got:
                    lines.append(f"{shown}: {key} is {got}, should be {want}")
    if len(lines) > limit:
        lines[limit:] = [f"… and {len(lines) - limit} more"]
    return lines
