#!/usr/bin/python3
"""Programs on `sluice mount`: what they see is what the store has, and nothing hangs.

The kernel's calls come here by FUSE, so any program can be used as it is: Python's own calls, sqlite, git.
`tests/matrix/run.py --transport mount` compares the cases of the matrix. Where nothing can be mounted
everything is skipped, and it is said why.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import mounts, suite  # noqa: E402
from mount.scene import CHECKS, Scene  # noqa: E402

if __name__ == "__main__":
    sys.exit(suite.conduct("mount", __doc__, HERE, CHECKS, Scene, mounts.unusable))
