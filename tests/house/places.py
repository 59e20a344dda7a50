"""Where things are: the repository, the built binaries, a scratch directory."""

import os
import pathlib
import shutil
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def target_directory():
    """Cargo's target directory: `CARGO_TARGET_DIR`, or `target` in the repository."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def sluice_binary(chosen=None):
    """The `sluice` binary to test: the chosen one, `$SLUICE_BIN`, or the release build.

    Returns None where there is none yet.
    """
    candidate = chosen or os.environ.get("SLUICE_BIN") or target_directory() / "release" / "sluice"
    candidate = pathlib.Path(candidate).absolute()
    return candidate if os.access(candidate, os.X_OK) else None


def programs_directory():
    """Where `make -C tests/programs` puts the test programs."""
    return target_directory() / "test-programs"


def scratch_directory(name):
    """A fresh directory for one run; its name is short because socket paths hold 107 bytes."""
    return pathlib.Path(tempfile.mkdtemp(prefix=f"sluice-{name}-"))


def has_tool(name):
    """Whether a command of this name is found where the cases look for it."""
    return shutil.which(name, path=CASE_PATH) is not None


# The cases run the distribution's programs, not a version manager's.
CASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
