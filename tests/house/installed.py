"""Programs of others from the registries of Python and Rust, in the target directory, installed once."""

import os
import shutil
import subprocess

from house import places

INSTALL_SECONDS_MAX = 600


class NotInstalled(Exception):
    """It cannot be had here; the text says why."""


def wheels(name, *requirements):
    """A directory with a Python environment of its own that has these packages."""
    directory = places.target_directory() / name

    def install():
        run("/usr/bin/python3", "-m", "venv", directory)
        run(directory / "bin" / "pip", "install", "--quiet", *requirements)

    return once(directory, " ".join(requirements), install)


def crate(name, version):
    """The program of a crate."""
    directory = places.target_directory() / "test-crates" / name
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CARGO_TARGET")}

    def install():
        run("cargo", "install", "--quiet", "--locked", "--root", directory, f"{name}@{version}", env=environment)

    return once(directory, version, install) / "bin" / name


def once(directory, wanted, install):
    """Installs into a directory unless what is wanted is there."""
    stamp = directory / "installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    try:
        install()
    except (OSError, subprocess.SubprocessError) as error:
        words = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        raise NotInstalled(f"{wanted} cannot be installed: {words[-1] if words else error}") from None
    stamp.write_text(wanted)
    return directory


def run(*command, **options):
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX, **options)
