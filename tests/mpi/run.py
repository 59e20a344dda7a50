#!/usr/bin/python3
"""MPI programs with and without `libsluice_mpi.so`, under every MPI library that can be had.

For each library:

  constants  our table of constants is that of the installed header
  datatypes  the bytes that we find in thousands of derived datatypes are those that MPI_Pack gathers
  LANGUAGE   a program does the same with our library as without, on one rank and on two, and every
             call that it makes was seen; the Fortran programs' calls under both of their names; and
             again with the sieve
  sieve      the C program does the same when its strided calls are carried out by the sieve, by
             several methods; nothing is lost where ranks write into each other's gaps
  calls      a second C program, whose calls are of every other kind that MPI-IO has, does the same with
             our library and with the sieve
  tool       a profiling tool, preloaded behind our library, sees what it would see without
  routed     all programs do the same on files of a service, started by `sluice run`, whether they name
             them by mapped paths or by addresses, and with the sieve on the way there
  job-…      services on some ranks and clients on others: see job.py

What is not installed is skipped with a message; the wheels are installed into the target directory.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from house.services import Service  # noqa: E402
from mpi import job, libraries  # noqa: E402
from mpi.libraries import Failed, Missing  # noqa: E402

PROGRAMS = HERE / "programs"
# A run takes a second; a job that waits for a rank that is gone never ends.
JOB_SECONDS_MAX = 120

# What each small program calls: once, but for the opening that must fail.
SMALL_CALLS = {"File_open": 1, "File_set_view": 1, "File_read": 1, "File_write": 1, "File_read_at": 1,
               "File_write_at": 1, "File_sync": 1, "File_close": 1, "Finalize": 1}


def run(command, environment, directory, seconds_max=JOB_SECONDS_MAX):
    """Runs a job in a session of its own, so that it can be ended with all its ranks."""
    with tempfile.TemporaryFile() as output:
        job = subprocess.Popen([str(word) for word in command], cwd=directory, stdin=subprocess.DEVNULL,
                               stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                               env=os.environ | {k: str(v) for k, v in environment.items()})
        try:
            status = job.wait(seconds_max)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_session(job)
        output.seek(0)
        text = output.read().decode(errors="replace")
    shown = " ".join(str(word) for word in command)
    if status is None:
        raise Failed(f"{shown}: still running after {seconds_max} s\n{text[-800:]}")
    if status != 0:
        raise Failed(f"{shown}: status {status}\n{text[-1200:]}")
    return text


def end_session(job):
    """Ends what is left of a job, by the process group that only it has."""
    if job.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(job.pid, number)
        except ProcessLookupError:
            break
        try:
            job.wait(5)
            break
        except subprocess.TimeoutExpired:
            continue


def launch(library, ranks, program, directory, variables=None):
    """Starts a program on some ranks; our variables reach the program and not the launcher."""
    words = [f"{name}={value}" for name, value in (variables or {}).items()]
    command = [*library.launcher, "-n", ranks, "env", *words, *program]
    return run(command, library.environment, directory)


class Scene:
    """One library, and a scratch directory for it."""

    def __init__(self, library, ours, judge, scratch, is_full):
        self.library, self.ours, self.judge = library, ours, judge
        # The distribution's libraries are in every run put through everything.
        self.is_thorough = is_full or not library.name.startswith("wheel-")
        self.scratch = scratch / library.name
        self.scratch.mkdir()
        self.native = {}

    def program(self, language):
        """The command that starts the program of a language."""
        if language == "python":
            if not self.library.python:
                raise Missing(self.library.lacks["python"])
            return [self.library.python, PROGRAMS / "python.py"]
        source = PROGRAMS / {"c": "probe.c", "calls": "calls.c", "mpifh": "mpifh.f90", "f08": "f08.f90"}[language]
        target = self.scratch / language
        if not target.exists():
            self.library.compile("c" if language == "calls" else language, source, target)
        return [target]

    def without(self):
        """What the programs leave out, because the library cannot do it."""
        return {"PROBE_WITHOUT": self.library.without}

    def told(self, language, ranks, name, variables=None, hints=()):
        """Runs a program and returns what each rank told."""
        directory = self.scratch / f"{language}-{ranks}-{name}"
        directory.mkdir()
        variables = self.without() | (variables or {})
        launch(self.library, ranks, [*self.program(language), directory, *hints], directory, variables)
        return [(directory / f"told.{rank}").read_text().splitlines() for rank in range(ranks)]

    def traced(self, language, ranks, name, hints=(), variables=None):
        """The same with our library: what was told, and the lines of the trace in the order of ranks."""
        trace = self.scratch / f"{language}-{ranks}-{name}.trace"
        variables = {"LD_PRELOAD": self.ours, "SLUICE_MPI_TRACE": trace} | (variables or {})
        told = self.told(language, ranks, name, variables, hints)
        lines = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
        if sorted(line["rank"] for line in lines) != list(range(ranks)):
            raise Failed(f"{ranks} ranks, and the trace has {len(lines)} lines")
        for line in lines:
            if line["abi"] != self.library.abi or line["size"] != ranks:
                raise Failed(f"wrong interface or size: {line}")
        return told, sorted(lines, key=lambda line: line["rank"])


def same(native, ours):
    """Two programs' words, rank by rank."""
    for rank, (expected, came) in enumerate(zip(native, ours, strict=True)):
        section = ""
        for old, new in zip(expected, came):
            section = old if not old.startswith(" ") else section
            if old != new:
                raise Failed(f"rank {rank}, {section}:\nnatively: {old}\nwith us:  {new}")
        if len(expected) != len(came):
            raise Failed(f"rank {rank}: {len(expected)} lines natively, {len(came)} with us")


def check_constants(scene):
    program = scene.scratch / "constants"
    scene.library.compile("c", PROGRAMS / "constants.c", program)
    header = run([program], {}, scene.scratch).split("\n")
    printed = judged(scene).split("\n")
    ours = [line for line in printed if not line.startswith(("abi ", "version ", "compared "))]
    # The wheels' headers agree on what is printed in two ways: `0` and `0x0`, and the order of combiners.
    differ = collections.Counter(header) - collections.Counter(ours)
    excess = collections.Counter(ours) - collections.Counter(header)
    if differ or excess:
        raise Failed(f"the header: {sorted(differ)}\nour table: {sorted(excess)}")


def judged(scene, scope=()):
    """The judge loads the library itself; Open MPI 5 starts no process without its launcher."""
    return launch(scene.library, 1, [scene.judge, scene.library.shared_object, *scope], scene.scratch)


def check_datatypes(scene):
    for scope in ([], ["global"]):
        text = judged(scene, scope)
        if f"abi {scene.library.abi}\n" not in text:
            raise Failed(f"wrong interface: {text[:200]}")
        kinds = re.findall(r'"(\w+)": (\d+)', text.rpartition("compared ")[2])
        few = [f"{kind} {number}" for kind, number in kinds if int(number) < 100]
        # Open MPI has no large-count calls.
        if len(kinds) != (12 if scene.library.abi == "open-mpi" else 18) or few:
            raise Failed(f"compared too few: {kinds}")


def check_c(scene):
    for ranks in (1, 2):
        native = native_c(scene, ranks)
        told, trace = scene.traced("c", ranks, "ours")
        same(native, told)
        for line in trace:
            expect_c_calls(line, native[line["rank"]])
            if any(line["sieved"].values()):
                raise Failed(f"the sieve worked unasked: {line['sieved']}")


def check_sieve(scene):
    for ranks in (1, 2):
        native = [truthful(told) for told in native_c(scene, ranks)]
        for name, hints, variables in [
            ("hint", ["sluice_sieve=enable"], {}),
            ("naive", ["sluice_sieve=naive"], {}),
            ("variable", [], {"SLUICE_SIEVE": "romio"}),
        ]:
            told, trace = scene.traced("c", ranks, name, hints, variables)
            same(native, told)
            for line in trace:
                expect_c_calls(line, native[line["rank"]])
                # All but what has no holes, asks for nothing, is atomic or is wrong. On one rank half of
                # the views have no holes.
                sieved, calls = line["sieved"], line["calls"]
                reads = calls["MPI_File_read"] + calls["MPI_File_read_at"]
                writes = calls["MPI_File_write"] + calls["MPI_File_write_at"]
                if sieved["reads"] < reads * (0.4 if ranks == 1 else 0.7) or sieved["writes"] < writes * 0.7:
                    raise Failed(f"the sieve had little to do: {sieved} of {reads} reads, {writes} writes")
        hint = ["sluice_sieve=enable"]
        for told in scene.told("c", ranks, "neighbours", {"LD_PRELOAD": scene.ours, "PROBE_NEIGHBOURS": 1}, hint):
            if told[-3:-1] != ["  open: class 0", "  lost: 0"]:
                raise Failed(f"beside a neighbour without holes: {told[-4:]}")
        told = scene.told("c", ranks, "disabled", {"LD_PRELOAD": scene.ours, "SLUICE_SIEVE": "enable"},
                          ["sluice_sieve=disable"])
        same([truthful(told) for told in told], native)


def check_calls(scene):
    for ranks in (1, 2):
        native = native_of(scene, "calls", ranks)
        told, trace = scene.traced("calls", ranks, "ours")
        same(native, told)
        if any(any(line["sieved"].values()) for line in trace):
            raise Failed("the sieve worked unasked")
        for method in ("enable", "romio"):
            told, trace = scene.traced("calls", ranks, f"sieve-{method}", [f"sluice_sieve={method}"])
            same(native, told)
            if any(line["sieved"]["reads"] < 3 or line["sieved"]["writes"] < 5 for line in trace):
                raise Failed(f"the sieve had little to do: {[line['sieved'] for line in trace]}")


def check_tool(scene):
    """A profiling tool behind us gets the program's calls; what it calls in its turn is not the program's."""
    tool, saw = scene.scratch / "tool.so", scene.scratch / "saw"
    scene.library.compile("c", PROGRAMS / "tool.c", tool, ["-shared", "-fPIC"])
    told, trace = scene.traced("c", 1, "tool", (), {"LD_PRELOAD": f"{scene.ours}:{tool}", "TOOL_SAW": saw})
    same(native_c(scene, 1), told)
    expect_c_calls(trace[0], told[0])
    reads = trace[0]["calls"]["MPI_File_read"] + trace[0]["calls"]["MPI_File_read_at"]
    if int(saw.read_text()) != reads:
        raise Failed(f"the tool saw {saw.read_text().strip()} of {reads} reads")


# Which programs are run on how many ranks, by which kind of name, and with a sieve or without.
ROUTED = [("c", 1, "mapped", False), ("c", 2, "mapped", True), ("c", 2, "address", False), ("c", 1, "address", True),
          ("c", 2, "address", True), ("calls", 2, "mapped", False), ("calls", 2, "address", True),
          ("mpifh", 2, "address", True), ("f08", 2, "mapped", True), ("f08", 2, "address", True),
          ("python", 2, "address", True)]


# Those that a library of a wheel is put through without --full: each program, each kind of name, with and without.
ROUTED_QUICK = [("c", 2, "mapped", True), ("calls", 2, "address", True), ("calls", 2, "mapped", False),
                ("mpifh", 2, "address", True), ("python", 2, "address", True)]


def check_routed(scene):
    """`sluice run` preloads both libraries."""
    sluice = places.sluice_binary()
    if sluice is None or sluice.parent != scene.ours.parent:
        raise Missing("no sluice binary beside the library")
    served = scene.scratch / "served"
    served.mkdir()
    with Service(sluice, [f"x={served}"], f"unix:{scene.scratch}/socket") as service:
        for program, ranks, way, sieve in ROUTED if scene.is_thorough else ROUTED_QUICK:
            name = f"{program}-{ranks}-{way}-{'sieve' if sieve else 'plain'}"
            try:
                command = scene.program(program)
                native = native_of(scene, program, ranks)
            except Missing:
                continue
            (served / name).mkdir()
            far = f"{service.uri}/x/{name}"
            trace = scene.scratch / f"routed-{name}.trace"
            variables = {"SLUICE_MPI_TRACE": trace} | scene.without()
            if program == "python":
                # Python is linked with no MPI: `sluice run` does not see what it will load.
                variables["LD_PRELOAD"] = scene.ours
            words = [sluice, "run", *(["--map", f"/far={far}"] if way == "mapped" else []),
                     *(["--sieve", "adaptive"] if sieve and program != "python" else []), "--", *command,
                     "/far" if way == "mapped" else far]
            if sieve and program == "python":
                variables["SLUICE_SIEVE"] = "adaptive"
            launch(scene.library, ranks, words, scene.scratch, variables)
            told = [(served / name / f"told.{rank}").read_text().splitlines() for rank in range(ranks)]
            try:
                same([truthful(lines) for lines in native] if sieve else native,
                     [truthful(lines) for lines in told] if sieve else told)
                lines = [json.loads(line) for line in trace.read_text().splitlines()]
                if len(lines) != ranks:
                    raise Failed(f"{ranks} ranks, and the trace has {len(lines)} lines")
                for line in lines:
                    sieved = line["sieved"]
                    far_calls = sieved["far_reads"], sieved["far_writes"]
                    if not sieve and any(sieved.values()):
                        raise Failed(f"the sieve worked unasked: {sieved}")
                    if sieve and (0 in far_calls or far_calls != (sieved["reads"], sieved["writes"])):
                        raise Failed(f"the sieve had nothing to do on the way to the service: {sieved}")
            except Failed as failed:
                raise Failed(f"{name}: {failed}") from None


def native_c(scene, ranks):
    """The program without us; the same for all who ask."""
    native = native_of(scene, "c", ranks)
    if any(told[-1:] != ["done"] for told in native):
        raise Failed("the program did not reach its end natively")
    return native


def native_of(scene, program, ranks):
    """Any program without us, run once."""
    if (program, ranks) not in scene.native:
        scene.native[program, ranks] = scene.told(program, ranks, "native-alone")
    return scene.native[program, ranks]


def truthful(told):
    """What was told, with the counts of reads at the end of a file as they should be: what the file has."""
    return [re.sub(r"bytes \d+, sum of (\d+) ints", lambda m: f"bytes {4 * int(m[1])}, sum of {m[1]} ints", line)
            for line in told]


def expect_c_calls(line, told):
    """Every call of the C program was seen, under the name by which it called, and no other."""
    calls = line["calls"]
    if any(name.startswith("PMPI_") for name in calls) or line["fortran"]:
        raise Failed(f"calls that the program did not make: {line}")
    opened = sum(text.startswith("  open: ") for text in told)
    # Every file that was opened got at least one view; all calls of a kind with a count were told.
    expected = {"MPI_File_open": opened, "MPI_Finalize": 1, "MPI_File_close": opened - 1}
    seen = {name: calls.get(name) for name in expected}
    if seen != expected:
        raise Failed(f"seen {seen}, expected {expected}")
    for function in ("read_at", "write_at", "read", "write"):
        counted = sum(text.startswith(f"  {function}: ") for text in told)
        if calls.get(f"MPI_File_{function}", 0) < max(counted, 1):
            raise Failed(f"MPI_File_{function}: told {counted} times, seen {calls.get(f'MPI_File_{function}')}")


def check_small(scene, language):
    for ranks in (1, 2):
        native = scene.told(language, ranks, "native")
        expected = dict(SMALL_CALLS)
        if language == "python":
            expected["File_open"] = 2
        sieved, sieved_trace = scene.traced(language, ranks, "sieve", variables={"SLUICE_SIEVE": "enable"})
        same(native, sieved)
        told, trace = scene.traced(language, ranks, "ours")
        same(native, told)
        for line in sieved_trace:
            # On one rank the view has no holes: then only writes are ours, for the sake of locks.
            wanted = {"reads": 2 if ranks > 1 else 0, "writes": 2}
            if {kind: line["sieved"][kind] for kind in wanted} != wanted:
                raise Failed(f"sieved: {line['sieved']}, expected {wanted}")
        for line in trace:
            if any(line["sieved"].values()):
                raise Failed(f"the sieve worked unasked: {line['sieved']}")
            seen = collections.Counter()
            for name, number in line["calls"].items():
                # mpi4py calls the large-count forms, by their names or by ours.
                seen[re.sub(r"^P?MPI_(\w+?)(_c)?$", r"\1", name)] += number
            if seen != expected:
                raise Failed(f"seen {dict(seen)}, expected {expected}")
            fortran = collections.Counter()
            for name, number in line["fortran"].items():
                fortran[re.sub(r"^p?mpir?_(\w+?)(_c)?(_f08|_f08ts)?_*$", r"\1", name.lower())] += number
            called = {name.lower(): number for name, number in expected.items() if name != "Finalize"}
            if fortran != (called if language != "python" else {}):
                raise Failed(f"Fortran names seen: {dict(fortran)}")


CHECKS = {
    "constants": check_constants,
    "datatypes": check_datatypes,
    "c": check_c,
    "sieve": check_sieve,
    "calls": check_calls,
    "tool": check_tool,
    "routed": check_routed,
    "mpifh": lambda scene: check_small(scene, "mpifh"),
    "f08": lambda scene: check_small(scene, "f08"),
    "python": lambda scene: check_small(scene, "python"),
} | job.CHECKS

# Checks of jobs that the distribution's libraries pass in every run, and the wheels' only where there is time.
LONG = {"job-commands", "job-programs", "job-c", "job-mpifh", "job-f08"}
# These mostly wait for somebody to give up: beside the others.
WAITING = {"job-end"}


def perform(name, function, scene):
    start = time.monotonic()
    try:
        function(scene)
        verdict, details = "ok", []
    except Missing as missing:
        verdict, details = "skipped", [str(missing)]
    except Failed as failed:
        verdict, details = "failed", str(failed).splitlines()
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    return report.Result(name, verdict, time.monotonic() - start, details, scene.library.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX",
                        help="checks whose name `LIBRARY CHECK` matches")
    parser.add_argument("--no-wheels", action="store_true", help="the distribution's libraries only")
    parser.add_argument("--full", action="store_true", help="also the long checks of jobs with the wheels' libraries")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory")
    options = parser.parse_args()

    release = places.target_directory() / "release"
    ours, judge = release / "libsluice_mpi.so", release / "examples" / "judge"
    for needed in (ours, judge):
        if not needed.exists():
            print(f"mpi: {needed} is missing; build it with "
                  "`cargo build --release -p preload-mpi && cargo build --release -p mpi --examples`")
            return 2
    os.environ.pop("LD_PRELOAD", None)
    scratch = places.scratch_directory("mpi")
    found, missing = libraries.distribution()
    if not options.no_wheels:
        more, absent = libraries.wheels(scratch)
        found, missing = found + more, missing + absent

    results = [report.Result(f"{name} all", "skipped", 0.0, [reason], name) for name, reason in missing]
    for result in results:
        report.print_line(result)
    waiters, waiting = concurrent.futures.ThreadPoolExecutor(1), []
    for library in found:
        scene = Scene(library, ours, judge, scratch, options.full or bool(options.only))
        for check, function in CHECKS.items():
            name = f"{library.name} {check}"
            if options.only and not any(re.search(pattern, name) for pattern in options.only):
                continue
            if check in LONG and not scene.is_thorough:
                results.append(report.Result(name, "skipped", 0.0, ["long: with --full"], library.name))
            elif check in WAITING:
                waiting.append(waiters.submit(perform, name, function, scene))
                continue
            else:
                results.append(perform(name, function, scene))
            report.print_line(results[-1])
    for under_way in waiting:
        results.append(under_way.result())
        report.print_line(results[-1])
    if options.keep:
        print(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
