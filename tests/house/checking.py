"""What checks of real programs share: failing, skipping, running a command."""

import shutil
import subprocess

from house import places

# Nothing here takes longer than seconds; a hang is a failure.
SECONDS_MAX = 60


class Skip(Exception):
    """Something is missing; the text says what."""


class Failed(Exception):
    """What was expected and what came."""


def want(condition, text):
    if not condition:
        raise Failed(text)


def tool(name):
    path = shutil.which(name, path=places.CASE_PATH)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


def run(*command, expect=0, seconds_max=SECONDS_MAX, **options):
    """Runs a command and returns what it did; another exit status than the expected is a failure."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds_max, **options)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)[:200]}: still running after {seconds_max} s") from None
    if expect is not None and done.returncode != expect:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failed(f"{' '.join(command)[:200]}: status {done.returncode}, {words[-500:]}")
    return done
