"""What a case is, and the registry that the modules in `cases/` fill."""

import dataclasses
import importlib
import pathlib
import pkgutil

CASES_DIRECTORY = pathlib.Path(__file__).parent / "cases"
SECONDS_MAX = 60


@dataclasses.dataclass(frozen=True)
class Case:
    """A bash script that is run twice on the same inputs: natively and through Sluice.

    The script sees
      $D  the directory with the inputs (see house/seed.py): local, or routed;
      $U  the same directory written as an address: a URI when routed, $D itself when native;
      $W  the working directory, always local and at first empty;
      $P  the directory of the built test programs.
    It runs under `set -eu`; `rc COMMAND…` runs what may fail and prints its status.
    """

    name: str
    script: str
    group: str
    needs: tuple = ()
    seconds_max: int = SECONDS_MAX
    # Part of the small set that is run over the transports that are not the default.
    core: bool = False
    # Standard output is judged line by line: `what TAB outcome as JSON`.
    by_line: bool = False
    # Python modules that must be importable.
    modules: tuple = ()


class Registry:
    """Collects the cases of one module under a group name."""

    def __init__(self, group):
        self.group = group
        self.cases = []

    def __call__(self, name, script, needs="", **options):
        """Adds a case; `needs` names the commands it cannot do without."""
        self.cases.append(Case(name=name, script=script, group=self.group, needs=tuple(needs.split()), **options))


def load_cases():
    """Every case of every module in `cases/`, in a stable order."""
    cases = []
    for module in sorted(m.name for m in pkgutil.iter_modules([str(CASES_DIRECTORY)])):
        cases += importlib.import_module(f"matrix.cases.{module}").case.cases
    names = [c.name for c in cases]
    doubled = {n for n in names if names.count(n) > 1}
    if doubled:
        raise ValueError(f"cases with the same name: {sorted(doubled)}")
    return cases
