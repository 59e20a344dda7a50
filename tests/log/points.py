"""What a file that a crash left has to do with the consistency points that its writers had passed.

For the crash matrix: a run of `programs/epochs.c` is killed somewhere, the log is recovered and drained, and then
`judge` says whether the file is one that may be there.
"""

import dataclasses
import pathlib
import subprocess

from mpi.libraries import Failed


@dataclasses.dataclass
class Points:
    """How far the ranks came. A point that one rank has passed must be kept; one that not all ranks have entered
    cannot have been made. Where ranks share no file, ask for each by itself."""

    passed: int
    entered: int

    @classmethod
    def noted(cls, directory, ranks):
        """From the files `points.RANK` of these ranks; a last line without its end is none."""
        told = []
        for rank in ranks:
            path = pathlib.Path(directory) / f"points.{rank}"
            lines = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []
            told.append({what: max((int(line.split()[1]) for line in lines if line.startswith(what)), default=0)
                         for what in ("enter", "pass")})
        return cls(max(rank["pass"] for rank in told), min(rank["enter"] for rank in told))


def equal_to(checker, file, plan, ranks, each, epochs, writer=None):
    """The epochs whose state the file has, and, if there is none, what it is made of instead."""
    words = [checker, file, plan, ranks, each, epochs, *([] if writer is None else [writer])]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise Failed(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    first, _, rest = done.stdout.partition("\n")
    return [int(word) for word in first.split()], rest.strip().splitlines()


def judge(equal, points, made_of=()):
    """None if the file may be as it is, else what is wrong with it."""
    if not equal:
        return "\n".join(["the file is at no consistency point", *list(made_of)[:8]])
    if max(equal) < points.passed:
        return f"lost: the file is as after epoch {max(equal)}, and epoch {points.passed} had been passed"
    if min(equal) > max(points.entered, points.passed):
        return f"too much: the file is as after epoch {min(equal)}, and only epoch {points.entered} had been entered by all"
    return None
