"""The program `sluice`, as `python -m sluice` and as the command that the package installs."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the program that lies in the package, beside the libraries that it loads into others."""
    program = pathlib.Path(__file__).with_name("_bin") / "sluice"
    try:
        os.execv(program, ["sluice", *sys.argv[1:]])
    except FileNotFoundError:
        sys.exit(f"sluice: {program} is missing: this is no wheel but a source tree; ./dev wheel makes one")


if __name__ == "__main__":
    main()
