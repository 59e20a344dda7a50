#!/usr/bin/python3
"""Programs that hand each other files by PnetCDF, coupled and by the file: what the readers get must be the same, byte by byte.

  alone        with the library and nothing coupled, a program does the same as without, and writes the same file
  unlisted     the same where other files are coupled
  every W+R    a file that is written in every way PnetCDF has, and read in every way, by W and R ranks
  s3d W+R      the pattern of S3D-IO in Fortran, with blocking and nonblocking calls
  dtf W+R      the same with calls of DTF, linked with libdtf.so; and with the configuration given by dtf_init alone
  multiple W+R a cycle that is read by several calls of dtf_transfer
  late W+R     the reader starts first, and asks whether the file exists before it does
  cxx W+R      PnetCDF's interface for C++
  nf90 W+R     its interface for Fortran 90, with records; and with one cycle of DTF for each
  many W+R     a file of 900 variables
  loop W+R     two programs that read what the other one has written, ten times
  follow W+R   a file that stays open: each sync, or each wait, ends a cycle, as the configuration says
  launch W+R   the pattern of S3D-IO again, started by `sluice couple run`, and by a `sluice run --couple` for each component
  handed       mode "file": the reader waits until the writer has closed it
  faults       what is wrong is said, in bounded time: nobody writes, a component that does not exist
  sentences    likewise: a writer that ends early or gives up, a variable that nobody writes

Debian's PnetCDF is Open MPI's. One that is built for MPICH is found by $PNETCDF_MPICH, the prefix that it is installed in; then
programs on both are coupled with each other, too. What is not installed is skipped with a message.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from mpi import libraries  # noqa: E402
from mpi.libraries import Failed, Missing  # noqa: E402

PROGRAMS = HERE / "programs"
SECONDS_MAX = 60
# What the readers of a fault are given to wait, and how long it may take until all have ended.
WAIT_SECONDS, FAULT_SECONDS_MAX = 3, 40
FORTRAN_MODULES = pathlib.Path("/usr/lib/x86_64-linux-gnu/fortran/gfortran-mod-15")

DTF_GRAMMAR = """[INFO]
ncomp=2
comp_name="wrt"
comp_name="rdr"
[FILE]
filename="coupled.nc"
comp1="wrt"
comp2="rdr"
mode="{mode}"
"""


class Job:
    """A launch of one component, in a session of its own."""

    def __init__(self, command, environment, directory, log):
        self.shown, self.log = " ".join(str(word) for word in command), log
        with open(log, "wb") as output:
            self.process = subprocess.Popen([str(word) for word in command], cwd=directory, stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                            env=os.environ | {k: str(v) for k, v in environment.items()})

    def wait(self, seconds):
        """The exit status."""
        try:
            return self.process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.shown}: still running\n{self.said()}") from None

    def said(self):
        return self.log.read_text(errors="replace")[-1500:]

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


class Flavour:
    """An MPI library with a PnetCDF."""

    def __init__(self, library, prefix, scratch):
        self.library, self.prefix = library, prefix
        self.scratch = scratch / library.name
        self.scratch.mkdir()

    def program(self, source, *flags, name=None):
        """The program of a source file, compiled once."""
        target = self.scratch / (name or source.split(".")[0])
        if target.exists():
            return target
        is_fortran = source.endswith(".f90")
        if source.endswith(".cpp"):
            compiler = shutil.which(pathlib.Path(self.library.compilers["c"][0]).name.replace("mpicc", "mpicxx"))
            if not compiler:
                raise Missing("no C++ compiler for it")
            self.library.compilers["cxx"] = [compiler]
        words, link = list(flags), ["-lpnetcdf"]
        if self.prefix:
            link = [f"-L{self.prefix}/lib", "-lpnetcdf", f"-Wl,-rpath,{self.prefix}/lib"]
            words.append(f"-I{self.prefix}/include")
        elif is_fortran:
            words.append(f"-I{FORTRAN_MODULES}")
        if is_fortran:
            words += ["-cpp", f"-J{self.scratch}"]
        before = dict(self.library.link)
        dtf = places.target_directory() / "release"
        if "-DWITH_DTF" in flags:
            words.append(f"-I{places.REPOSITORY}/crates/dtf/include")
            link = [f"-L{dtf}", "-ldtf", f"-Wl,-rpath,{dtf}", *link]
        language = "mpifh" if is_fortran else "cxx" if source.endswith(".cpp") else "c"
        self.library.link = before | {language: link}
        try:
            self.library.compile(language, PROGRAMS / source, target, words)
        finally:
            self.library.link = before
        return target

    def start(self, ranks, program, directory, log, variables=None):
        words = [f"{name}={value}" for name, value in (variables or {}).items()]
        command = [*self.library.launcher, "-n", ranks, "env", *words, *program]
        return Job(command, self.library.environment, directory, log)


class Scene:
    """Where one check has its files."""

    def __init__(self, scratch, release, name):
        self.release = release
        self.directory = scratch / re.sub(r"\W+", "-", name)
        self.directory.mkdir(parents=True)
        self.preload = release / "libsluice_nc.so"

    def place(self, name):
        (self.directory / name).mkdir(exist_ok=True)
        return self.directory / name

    def alone(self, flavour, ranks, program, name, variables=None):
        """Runs a program by itself."""
        job = flavour.start(ranks, program, self.directory, self.directory / f"{name}.log", variables)
        try:
            if job.wait(SECONDS_MAX) != 0:
                raise Failed(f"{job.shown}: failed\n{job.said()}")
        finally:
            job.end()

    def environment(self, component, configuration, **more):
        meet = self.place("meet")
        return {"LD_PRELOAD": self.preload, "SLUICE_COUPLE": configuration, "SLUICE_COUPLE_AS": component,
                "SLUICE_COUPLE_MEET": meet, "SLUICE_COUPLE_WAIT": SECONDS_MAX // 2} | more

    def configuration(self, text, name="couple.ini"):
        path = self.directory / name
        path.write_text(text)
        return path

    def together(self, writer, reader, late=False, pause=0.0):
        """Runs two components; each is a flavour, ranks, a program and variables. Both must succeed."""
        jobs = []
        try:
            for which, (flavour, ranks, program, variables) in sorted(
                    {"writer": writer, "reader": reader}.items(), reverse=not late):
                jobs.append(flavour.start(ranks, program, self.directory, self.directory / f"{which}.log", variables))
                time.sleep(pause)
            until = time.monotonic() + SECONDS_MAX
            statuses = [job.wait(until - time.monotonic()) for job in jobs]
            for job, status in zip(jobs, statuses):
                if status != 0:
                    others = "\n".join(other.said() for other in jobs if other is not job)
                    raise Failed(f"{job.shown}: status {status}\n{job.said()}\n{others}")
            return "\n".join(job.said() for job in jobs)
        finally:
            for job in jobs:
                job.end()


def same(one, other, files):
    """Two directories have files of the same content."""
    for name in files:
        expected, came = (one / name).read_bytes(), (other / name).read_bytes()
        if expected != came:
            at = next((i for i, (a, b) in enumerate(zip(expected, came)) if a != b), min(len(expected), len(came)))
            before = expected[:at].decode("latin1").rsplit("\n", 2)[-2:]
            raise Failed(f"{name} differs at byte {at} of {len(expected)} and {len(came)}, after {before!r}:\n"
                         f"by the file: {expected[at:at + 60]!r}\ncoupled:     {came[at:at + 60]!r}")


def tellings(ranks):
    return [f"told.{rank}" for rank in range(ranks)]


def check_alone(scene, flavour, _other, _ranks, configured=False):
    program = flavour.program("everything.c")
    variables = {"LD_PRELOAD": scene.preload}
    if configured:
        configuration = scene.configuration(DTF_GRAMMAR.format(mode="transfer").replace("coupled.nc", "elsewhere"))
        variables = scene.environment("wrt", configuration)
    for way, used in (("without", {}), ("with", variables)):
        file, told = scene.place(way) / "coupled.nc", scene.place(way)
        for verb in ("write", "read"):
            scene.alone(flavour, 2, [program, verb, file, scene.place(f"{way}/{verb}")], f"{way}-{verb}", used)
        # Told is what is told of the path, too.
        assert told
    for verb in ("write", "read"):
        same(scene.directory / "without" / verb, scene.directory / "with" / verb, tellings(2))
    same(scene.directory / "without", scene.directory / "with", ["coupled.nc"])


def by_file(scene, flavour, other, ranks, writer, reader):
    """The reference. `writer` and `reader` make commands of a file and a directory."""
    writers, readers = ranks
    file = scene.place("file") / "coupled.nc"
    scene.alone(flavour, writers, writer(file, scene.place("file/writer")), "file-writer")
    scene.alone(other, readers, reader(file, scene.place("file/reader")), "file-reader")


def coupled(scene, flavour, other, ranks, writer, reader, mode="transfer", variables=None, late=False, pause=0.0):
    """The same by the exchange, compared."""
    writers, readers = ranks
    configuration = scene.configuration(DTF_GRAMMAR.format(mode=mode))
    file = scene.place("exchange") / "coupled.nc"
    more = variables or {}
    scene.together(
        (flavour, writers, writer(file, scene.place("exchange/writer")), scene.environment("wrt", configuration, **more)),
        (other, readers, reader(file, scene.place("exchange/reader")), scene.environment("rdr", configuration, **more)),
        late, pause)
    for side, number in (("writer", writers), ("reader", readers)):
        names = [name for name in tellings(number) if (scene.directory / "file" / side / name).exists()]
        if side == "reader" and len(names) != number:
            raise Failed(f"{len(names)} readers have told something")
        same(scene.directory / "file" / side, scene.directory / "exchange" / side, names)
    if file.exists() != (mode == "file"):
        raise Failed(f"{file} exists" if file.exists() else f"{file} does not exist")


def everything(flavour, verb):
    program = flavour.program("everything.c")
    return lambda file, told: [program, verb, file, told]


def check_everything(scene, flavour, other, ranks, **how):
    writer, reader = everything(flavour, "write"), everything(other, "read")
    by_file(scene, flavour, other, ranks, writer, reader)
    coupled(scene, flavour, other, ranks, writer, reader, **how)


# Ranks → blocks of the writer and of the reader in each dimension.
BLOCKS = {1: ("1 1 1", "1 1 1"), 2: ("2 1 1", "1 1 2"), 3: ("1 3 1", "1 1 3"), 4: ("2 2 1", "1 2 2")}
GRID = ["22", "14", "10"]


def s3d(flavour, verb, blocks, method, program=None):
    program = program or flavour.program("s3d.f90")
    return lambda file, told: [program, verb, *GRID, *blocks.split(), method, file, told]


def check_s3d(scene, flavour, other, ranks, late=False):
    blocks = BLOCKS[ranks[0]][0], BLOCKS[ranks[1]][1]
    for method in ("0", "1"):
        part = Scene(scene.directory, scene.release, f"method {method}")
        writer, reader = s3d(flavour, "write", blocks[0], method), s3d(other, "read", blocks[1], method)
        by_file(part, flavour, other, ranks, writer, reader)
        coupled(part, flavour, other, ranks, writer, reader, late=late, pause=1.0 if late else 0.0)


def check_dtf(scene, flavour, other, ranks):
    if not (scene.release / "libdtf.so").exists():
        raise Missing("libdtf.so is not built")
    blocks = BLOCKS[ranks[0]][0], BLOCKS[ranks[1]][1]
    programs = [one.program("s3d.f90", "-DWITH_DTF", name="s3d-dtf") for one in (flavour, other)]
    writer, reader = s3d(flavour, "write", blocks[0], "1"), s3d(other, "read", blocks[1], "1")
    by_file(scene, flavour, other, ranks, writer, reader)
    writer = s3d(flavour, "write", blocks[0], "1", programs[0])
    reader = s3d(other, "read", blocks[1], "1", programs[1])
    coupled(scene, flavour, other, ranks, writer, reader, variables={"S3D_DTF": scene.directory / "couple.ini"})
    # The configuration and the component are what dtf_init says.
    said = Scene(scene.directory, scene.release, "said by dtf_init")
    configuration = said.configuration(DTF_GRAMMAR.format(mode="transfer"))
    variables = {"LD_PRELOAD": scene.preload, "DTF_GLOBAL_PATH": said.place("meet"), "S3D_DTF": configuration}
    file = said.place("exchange") / "coupled.nc"
    said.together((flavour, ranks[0], writer(file, said.place("exchange/writer")), variables),
                  (other, ranks[1], reader(file, said.place("exchange/reader")), variables))
    same(scene.directory / "file" / "reader", said.directory / "exchange" / "reader", tellings(ranks[1]))


def check_multiple(scene, flavour, other, ranks):
    configuration, file = scene.configuration(DTF_GRAMMAR.format(mode="transfer")), scene.directory / "coupled.nc"
    sides = []
    for component, one, number, verb in (("wrt", flavour, ranks[0], "write"), ("rdr", other, ranks[1], "read")):
        program = [one.program("multiple.c", "-DWITH_DTF"), verb, file, scene.place(component)]
        sides.append((one, number, program, scene.environment(component, configuration, S3D_DTF=configuration)))
    scene.together(*sides)


def check_handed(scene, flavour, other, ranks):
    check_everything(scene, flavour, other, ranks, mode="file", late=True)
    # Whether the file exists is asked before it does.
    part = Scene(scene.directory, scene.release, "s3d")
    writer = s3d(flavour, "write", BLOCKS[ranks[0]][0], "1")
    reader = s3d(other, "read", BLOCKS[ranks[1]][1], "1")
    by_file(part, flavour, other, ranks, writer, reader)
    coupled(part, flavour, other, ranks, writer, reader, mode="file", late=True, pause=1.0)


def check_many(scene, flavour, other, ranks):
    programs = [one.program("many.c") for one in (flavour, other)]
    writer = lambda file, told: [programs[0], "write", file, told]  # noqa: E731
    reader = lambda file, told: [programs[1], "read", file, told]  # noqa: E731
    by_file(scene, flavour, other, ranks, writer, reader)
    coupled(scene, flavour, other, ranks, writer, reader)


def check_cxx(scene, flavour, other, ranks):
    if flavour.prefix:
        raise Missing("this PnetCDF was built without C++")
    program = flavour.program("cxx.cpp")
    writer = lambda file, told: [program, "write", file, told]  # noqa: E731
    reader = lambda file, told: [program, "read", file, told]  # noqa: E731
    by_file(scene, flavour, other, ranks, writer, reader)
    coupled(scene, flavour, other, ranks, writer, reader)


def check_nf90(scene, flavour, other, ranks):
    def sides(program):
        return [lambda file, told, verb=verb: [program, verb, file, told] for verb in ("write", "read")]

    plain, cycles = sides(flavour.program("nf90.f90")), Scene(scene.directory, scene.release, "cycles")
    by_file(scene, flavour, other, ranks, *plain)
    coupled(scene, flavour, other, ranks, *plain)
    by_file(cycles, flavour, other, ranks, *plain)
    with_dtf = sides(flavour.program("nf90.f90", "-DWITH_DTF", name="nf90-dtf"))
    coupled(cycles, flavour, other, ranks, *with_dtf, variables={"S3D_DTF": cycles.directory / "couple.ini"})


LOOP = """components = ["model", "assimilation"]

[[file]]
name = "forecast.nc"
mode = "transfer"
writers = ["model"]
readers = ["assimilation"]

[[file]]
name = "analysis.nc"
mode = "transfer"
between = ["assimilation", "model"]
"""


def check_loop(scene, flavour, other, ranks):
    configuration = scene.configuration(LOOP, "couple.toml")
    sides = []
    for component, one, number in (("model", flavour, ranks[0]), ("assimilation", other, ranks[1])):
        program = [one.program("loop.c"), component, scene.place(component), "10"]
        sides.append((one, number, program, scene.environment(component, configuration)))
    scene.together(*sides)


LAUNCHED = """[[component]]
name = "wrt"
command = {writer}

[[component]]
name = "rdr"
command = {reader}

[[file]]
name = "coupled.nc"
mode = "transfer"
writers = ["wrt"]
readers = ["rdr"]
lent = {lent}
"""


def check_launch(scene, flavour, other, ranks):
    sluice = places.sluice_binary()
    if sluice is None:
        raise Missing("sluice is not built")
    blocks = BLOCKS[ranks[0]][0], BLOCKS[ranks[1]][1]
    writer, reader = s3d(flavour, "write", blocks[0], "1"), s3d(other, "read", blocks[1], "0")
    by_file(scene, flavour, other, ranks, writer, reader)
    file, environment = scene.place("exchange") / "coupled.nc", flavour.library.environment | other.library.environment

    def commands(way):
        sides = (flavour, ranks[0], writer, "writer"), (other, ranks[1], reader, "reader")
        return [[str(word) for word in (*one.library.launcher, "-n", number,
                                        *program(file, scene.place(f"exchange/{way}-{side}")))]
                for one, number, program, side in sides]

    configurations = []
    for way in ("together", "apart"):
        told = scene.place("exchange") / f"{way}-reader"
        both = commands(way)
        text = LAUNCHED.format(writer=json.dumps(both[0]), reader=json.dumps(both[1]), lent=json.dumps(way == "apart"))
        configurations.append(scene.configuration(text, f"{way}.toml"))
        if way == "together":
            jobs = [Job([sluice, "couple", "run", configurations[-1], "--quiet"], environment, scene.directory,
                        scene.directory / "together.log")]
        else:
            jobs = [Job([sluice, "run", "--couple", configurations[-1], "--as", name, "--couple-meet", scene.place("meet"), "--",
                         *command], environment, scene.directory, scene.directory / f"apart-{name}.log")
                    for name, command in zip(("rdr", "wrt"), reversed(both))]
        try:
            for job in jobs:
                if job.wait(SECONDS_MAX) != 0:
                    raise Failed(f"{job.shown}: failed\n" + "\n".join(one.said() for one in jobs))
        finally:
            for job in jobs:
                job.end()
        same(scene.directory / "file" / "reader", told, tellings(ranks[1]))
        if file.exists():
            raise Failed(f"{file} exists")


FOLLOWED = """components = ["model", "plot"]

[[file]]
name = "series.nc"
mode = "transfer"
cycle = "{cycle}"
writers = ["model"]
readers = ["plot"]
"""


def check_follow(scene, flavour, other, ranks):
    for cycle in ("sync", "wait"):
        part = Scene(scene.directory, scene.release, cycle)
        configuration, file = part.configuration(FOLLOWED.format(cycle=cycle), "couple.toml"), part.directory / "series.nc"
        sides = []
        for component, one, number, verb in (("model", flavour, ranks[0], "write"), ("plot", other, ranks[1], "read")):
            program = [one.program("follow.c"), verb, cycle, file, part.place(component)]
            sides.append((one, number, program, part.environment(component, configuration)))
        part.together(*sides)


def check_faults(scene, flavour, other, _ranks):
    program = flavour.program("everything.c")
    file = scene.place("exchange") / "coupled.nc"
    configuration = scene.configuration(DTF_GRAMMAR.format(mode="transfer"))
    # Nobody writes.
    variables = scene.environment("rdr", configuration) | {"SLUICE_COUPLE_WAIT": WAIT_SECONDS}
    expect_failure(scene, other, [program, "read", file, scene.place("told")], variables, "nobody",
                   r"rdr.*coupled\.nc")
    # The other side's role.
    variables = scene.environment("plot", configuration)
    expect_failure(scene, flavour, [program, "write", file, scene.place("told")], variables, "stranger", r"plot.*wrt, rdr")


# What the writer does → what the reader must tell, in its lines' order.
SENTENCES = {
    "partial": [r"open: 0", r"a: 0", r"more than there is: -57", r"no such variable: -49",
                r"b: -205: rank 0 of rdr cannot read `b` of `.*coupled\.nc`: wrt did not write \[0:1000\]", r"close: "],
    "late": [r"open: 0", r"a: 0", r"more than there is: -57", r"no such variable: -49", r"b: 0", r"close: 0"],
    "die": [r"open: -20[45]: rdr, rank 0: file `.*coupled\.nc`: .*wrt"],
    "abort": [r"open: -20[45]: rdr, rank 0: file `.*coupled\.nc`: .*wrt"],
}


def check_sentences(scene, flavour, other, ranks):
    writer, reader = flavour.program("faults.c"), other.program("faults.c")
    for fault, sentences in SENTENCES.items():
        part = Scene(scene.directory, scene.release, fault)
        configuration = part.configuration(DTF_GRAMMAR.format(mode="transfer"))
        told, file = part.place("reader"), part.place("exchange") / "coupled.nc"
        jobs = []
        try:
            for component, one, number, program in (("wrt", flavour, ranks[0], [writer, fault, file, part.place("writer")]),
                                                    ("rdr", other, ranks[1], [reader, "read", file, told])):
                variables = part.environment(component, configuration) | {"SLUICE_COUPLE_WAIT": 5 * WAIT_SECONDS}
                jobs.append(one.start(number, program, part.directory, part.directory / f"{component}.log", variables))
            for job in reversed(jobs):
                job.wait(FAULT_SECONDS_MAX)
        finally:
            for job in jobs:
                job.end()
        lines = (told / "told.0").read_text().splitlines()
        if len(lines) != len(sentences) or not all(map(re.match, sentences, lines)):
            said = "\n".join(job.said() for job in jobs)
            raise Failed(f"{fault}: the reader has told\n" + "\n".join(lines) + "\n" + said)


def expect_failure(scene, flavour, program, variables, name, words):
    job = flavour.start(1, program, scene.directory, scene.directory / f"{name}.log", variables)
    try:
        if job.wait(FAULT_SECONDS_MAX) == 0:
            raise Failed(f"{job.shown}: has succeeded\n{job.said()}")
        if not re.search(words, job.said()):
            raise Failed(f"{job.shown}: does not say /{words}/\n{job.said()}")
    finally:
        job.end()


CHECKS = {
    "alone": (check_alone, [(2, 2)]),
    "unlisted": (lambda *arguments: check_alone(*arguments, configured=True), [(2, 2)]),
    "every": (check_everything, [(1, 1), (2, 2), (2, 3), (4, 4)]),
    "s3d": (check_s3d, [(1, 1), (2, 2), (4, 4)]),
    "dtf": (check_dtf, [(2, 2)]),
    "multiple": (check_multiple, [(2, 2)]),
    "late": (lambda *arguments: check_s3d(*arguments, late=True), [(1, 2)]),
    "cxx": (check_cxx, [(2, 2)]),
    "nf90": (check_nf90, [(2, 3)]),
    "many": (check_many, [(2, 2)]),
    "loop": (check_loop, [(1, 1), (2, 2)]),
    "follow": (check_follow, [(1, 1), (2, 2)]),
    "launch": (check_launch, [(2, 2)]),
    "handed": (check_handed, [(2, 2)]),
    "faults": (check_faults, [(1, 1)]),
    "sentences": (check_sentences, [(1, 1), (2, 1)]),
}
# What is done with two MPI libraries, one on each side.
MIXED = {"every", "s3d", "loop", "launch"}


def perform(name, function, scratch, release, flavours, ranks):
    start = time.monotonic()
    try:
        function(Scene(scratch, release, name), *flavours, ranks)
        verdict, details = "ok", []
    except Missing as missing:
        verdict, details = "skipped", [str(missing)]
    except Failed as failed:
        verdict, details = "failed", str(failed).splitlines()
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    return report.Result(name, verdict, time.monotonic() - start, details, flavours[0].library.name)


def flavours(scratch):
    """The MPI libraries that have a PnetCDF, and why others do not."""
    found, missing = libraries.distribution()
    usable = []
    for library in found:
        prefix = os.environ.get("PNETCDF_MPICH") if library.abi == "mpich" else None
        if library.abi == "mpich" and not prefix:
            missing.append((library.name, "no PnetCDF for it: $PNETCDF_MPICH may be the prefix of one"))
        elif library.abi != "mpich" and not pathlib.Path("/usr/include/pnetcdf.h").exists():
            missing.append((library.name, "libpnetcdf-dev is not installed"))
        else:
            usable.append(Flavour(library, prefix, scratch))
    return usable, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX", help="checks whose name matches")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory")
    options = parser.parse_args()
    release = places.target_directory() / "release"
    if not (release / "libsluice_nc.so").exists():
        print("couple: libsluice_nc.so is missing; build it with `cargo build --release -p preload-nc -p dtf`")
        return 2
    for variable in ("LD_PRELOAD", "SLUICE_COUPLE", "SLUICE_COUPLE_AS", "SLUICE_COUPLE_MEET"):
        os.environ.pop(variable, None)
    scratch = places.scratch_directory("couple")
    usable, missing = flavours(scratch)
    results = [report.Result(f"{name} all", "skipped", 0.0, [reason], name) for name, reason in missing]
    for result in results:
        report.print_line(result)
    pairs = [(one, one) for one in usable]
    pairs += [(one, other) for one in usable for other in usable if one is not other]
    for pair in pairs:
        mixed = pair[0] is not pair[1]
        for check, (function, all_ranks) in CHECKS.items():
            if mixed and check not in MIXED:
                continue
            for ranks in [all_ranks[min(1, len(all_ranks) - 1)]] if mixed else all_ranks:
                who = " → ".join(dict.fromkeys(one.library.name for one in pair))
                name = f"{who} {check} {ranks[0]}+{ranks[1]}"
                if options.only and not any(re.search(pattern, name) for pattern in options.only):
                    continue
                results.append(perform(name, function, scratch, release, pair, ranks))
                report.print_line(results[-1])
    if options.keep:
        print(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
