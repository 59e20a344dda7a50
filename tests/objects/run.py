#!/usr/bin/python3
"""Unmodified programs on s3:// addresses, and the commands: what they read and write is what the bucket holds.

The server is the example `s3_server` of the crate `object`, on loopback. Each check has a server, buckets and, because
credentials tell agents apart, an agent of its own.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import suite  # noqa: E402
from objects.scene import CHECKS, Scene, unusable  # noqa: E402

if __name__ == "__main__":
    sys.exit(suite.conduct("objects", __doc__, HERE, CHECKS, Scene, unusable))
