"""A disk that has a volatile write cache, and what is left on it when the power goes.

What was written before a flush that has been answered is there. Of what was written since, anything may be there: in any
order, whole or torn, the smallest part being a sector.
"""

import os
import subprocess

SECTOR = 512
# But for the blocks of 4096 bytes with the superblocks of ext4 and btrfs, which neither mounts when they are torn: they are larger
# than a sector, have one checksum, and are read before the journal.
BLOCK, WHOLE = 4096, (0, 16)
# What becomes of the writes that no flush followed.
WAYS = ("nothing", "everything", "writes", "sectors", "one lost", "one kept", "first ones")


class Disk:
    """An image, and beside it what the machine believes to have written."""

    def __init__(self, image):
        self.image = image
        self.believed = image.with_suffix(".believed")
        subprocess.run(["cp", "--sparse=always", image, self.believed], check=True)
        self.stable = os.open(image, os.O_RDWR)
        self.seen = os.open(self.believed, os.O_RDWR)
        self.size = os.fstat(self.stable).st_size
        # (offset, bytes), oldest first.
        self.unflushed = []

    def read(self, offset, length):
        return os.pread(self.seen, length, offset)

    def write(self, offset, data, is_durable=False):
        """`is_durable`: by itself (force unit access), whatever was written before."""
        _write(self.seen, offset, data)
        if not is_durable:
            self.unflushed.append((offset, data))
            return
        _write(self.stable, offset, data)
        # Nothing older can come to where this is any more.
        end, rest = offset + len(data), []
        for start, old in self.unflushed:
            if start < offset:
                rest.append((start, old[:offset - start]))
            if start + len(old) > end:
                rest.append((max(start, end), old[max(0, end - start):]))
        self.unflushed = [(start, old) for start, old in rest if old]

    def flush(self):
        for offset, data in self.unflushed:
            _write(self.stable, offset, data)
        self.unflushed.clear()

    def lose_power(self, dice, way=None):
        """Decides what survives of what was not flushed; returns how, for people."""
        way = way or dice.choice(WAYS)
        writes, count = self.unflushed, len(self.unflushed)
        kept = writes
        if way == "nothing":
            kept = []
        elif way == "writes":
            share = dice.choice((0.1, 0.5, 0.9))
            kept = [write for write in writes if dice.random() < share]
        elif way == "sectors":
            share = dice.choice((0.1, 0.5, 0.9))
            kept = [part for write in writes for part in _sectors(write) if dice.random() < share]
        elif way == "first ones":
            kept = writes[:dice.randrange(count + 1)]
            if kept and dice.random() < 0.5:
                last = list(_sectors(kept[-1]))
                kept = kept[:-1] + last[:dice.randrange(len(last) + 1)]
        elif way != "everything" and count:
            chosen = dice.randrange(count)
            kept = [write for number, write in enumerate(writes) if (number == chosen) == (way == "one kept")]
        for offset, data in kept:
            _write(self.stable, offset, data)
        self.unflushed = []
        self.close()
        return f"{way} of {count} writes"

    def close(self):
        os.close(self.stable)
        os.close(self.seen)
        self.believed.unlink()


def _sectors(write):
    offset, data = write
    at = 0
    while at < len(data):
        block, within = divmod(offset + at, BLOCK)
        length = BLOCK - within if block in WHOLE else SECTOR
        yield offset + at, data[at:at + length]
        at += length


def _write(file, offset, data):
    while data:
        done = os.pwrite(file, data, offset)
        data, offset = data[done:], offset + done
