"""Services on some ranks of an MPI job, clients on others: `scdc+mpi://`.

  job-table      our table of functions that take a communicator is that of the installed header
  job-commands   ls, cat and cp, alone and between two services; what is wrong is said
  job-programs   programs that know nothing of MPI, as ranks: a shell, and Gmsh where it is installed
  job-world      an MPI program whose MPI_COMM_WORLD is without the services; files before MPI_Init, after
                 MPI_Finalize and in a child
  job-LANGUAGE   the programs of the other checks do the same in a job with a service as natively
  job-end        a service that ends, or is killed: an error, and no hang
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from house import places
from mpi.libraries import Failed, Missing

JOB_SECONDS_MAX = 60
# A service that is silent is given up after 25 s.
SILENT_SECONDS_MAX = 90
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
GEOMETRY = PROGRAMS.parent.parent / "gmsh" / "ball.geo"


def sluice_of(scene):
    """The program beside the library under test."""
    sluice = places.sluice_binary()
    if sluice is None or sluice.parent != scene.ours.parent:
        raise Missing("no sluice binary beside the library")
    return sluice


def parts(scene, *each):
    """The command of one launch: `each` is a pair of ranks and command."""
    words = list(scene.library.launcher)
    for index, (ranks, command) in enumerate(each):
        words += [":"] * bool(index) + ["-n", ranks, *command]
    return [str(word) for word in words]


def perform(scene, command, status=0, seconds_max=JOB_SECONDS_MAX, directory=None, inputs=None):
    """Runs a job; returns what it wrote to standard output and error. `status` None: whichever but 0."""
    job = subprocess.Popen(command, cwd=directory or scene.scratch, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                           env=os.environ | {k: str(v) for k, v in scene.library.environment.items()} | (inputs or {}))
    shown = " ".join(command)
    try:
        out, said = (text.decode(errors="replace") for text in job.communicate(timeout=seconds_max))
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        out, said = (text.decode(errors="replace") for text in job.communicate())
        raise Failed(f"{shown}: still running after {seconds_max} s\n{out[-400:]}{said[-800:]}") from None
    if (job.returncode != status) if status is not None else job.returncode == 0:
        raise Failed(f"{shown}: status {job.returncode}\n{out[-400:]}{said[-1200:]}")
    return out, said


def serve(sluice, name, directory):
    return 1, [sluice, "serve", "--listen", f"mpi:{name}", f"d={directory}"]


def expect(what, condition, shown=""):
    if not condition:
        raise Failed(f"{what}: {str(shown)[-800:]}")


def fresh(scene, name):
    directory = scene.scratch / name
    directory.mkdir()
    return directory


# What is left as it is, or done by hand, though it takes a communicator.
BY_HAND = {"Abort", "Comm_c2f", "Comm_toint", "DUP_FN", "Comm_get_attr", "Attr_get", "Comm_set_errhandler",
           "Errhandler_set"}


def our_table():
    """Name → which of its arguments are communicators, out of how many."""
    crates, table = places.REPOSITORY / "crates", {}
    for source in ("preload-world/src/communicators.rs", "preload-world-large/src/lib.rs"):
        text = (crates / source).read_text().partition("communicators! {")[2]
        for arguments, names in re.findall(r"\(([^()]*)\)([^;]*);", text):
            shape = tuple(argument.strip().startswith("[") for argument in arguments.split(","))
            table |= {name: shape for name in re.findall(r'"(\w+)"', names)}
    return table


def check_table(scene):
    """Every function of the installed header that takes a communicator is in our table, with its arguments."""
    source = scene.scratch / "header.c"
    source.write_text("#include <mpi.h>\n")
    done = subprocess.run([*scene.library.compilers["c"], "-E", "-P", source], capture_output=True, text=True, timeout=60)
    text = re.sub(r"__attribute__\s*\(\(([^()]|\([^()]*\))*\)\)", "", done.stdout)
    table, seen = our_table(), 0
    for name, arguments in re.findall(r"\b(?:int|double)\s+MPI_(\w+)\s*\(([^;{}]*)\)\s*;", text):
        # A pointer to a function is one argument.
        arguments = re.sub(r"\([^()]*\*[^()]*\)\s*\([^()]*\)", "", arguments)
        shape = tuple(bool(re.match(r"\s*MPI_Comm(\s+\w+)?\s*$", argument)) for argument in arguments.split(","))
        if not any(shape) or name in BY_HAND or "function" in name:
            continue
        expect(f"MPI_{name} takes {shape}", table.get(name) == shape, table.get(name))
        seen += 1
    expect("functions in the header", seen > 100, f"{seen} {done.stderr}")


def check_commands(scene):
    sluice, data, second = sluice_of(scene), fresh(scene, "commands-one"), fresh(scene, "commands-two")
    content = os.urandom(5_000_000)
    (data / "big").write_bytes(content)
    (data / "small").write_text("one line\n")
    one, two = serve(sluice, "one", data), serve(sluice, "two.x", second)
    out, _ = perform(scene, parts(scene, one, (1, [sluice, "ls", "scdc+mpi://one/d"])))
    expect("ls", out.split() == ["big", "small"], out)
    out, _ = perform(scene, parts(scene, one, (2, [sluice, "cat", "sluice+mpi://0/d/small"])))
    expect("cat by rank, twice", out == "one line\n" * 2, out)
    local = scene.scratch / "copy"
    perform(scene, parts(scene, one, (1, [sluice, "cp", "-q", "scdc+mpi://one/d/big", local])))
    expect("cp from a service", local.read_bytes() == content)
    perform(scene, parts(scene, one, two, (1, [sluice, "cp", "-q", "-r", "scdc+mpi://one/d", "scdc+mpi://two.x/d/all"])))
    expect("cp between two services", (second / "all" / "big").read_bytes() == content)
    perform(scene, parts(scene, (1, [sluice, "cp", "-q", local, "scdc+mpi://two.x/d/back"]), two))
    expect("cp to a service that is not the first rank", (second / "back").read_bytes() == content)
    _, said = perform(scene, parts(scene, one, (1, [sluice, "ls", "scdc+mpi://other/d"])), status=None)
    expect("a name that is wrong", "no rank of this MPI job serves as `other`" in said, said)
    _, said = perform(scene, parts(scene, one, one, (1, [sluice, "ls", "scdc+mpi://one/d"])), status=None)
    expect("one name for two", "both serve as `one`" in said, said)
    _, said = perform(scene, parts(scene, (1, [sluice, "ls", "scdc+mpi://one/d"])), status=None)
    expect("no service", "no rank of this MPI job serves" in said, said)
    _, said = perform(scene, [str(sluice), "ls", "scdc+mpi://one/d"], status=1)
    expect("no job", "is no rank of an MPI job" in said, said)
    _, said = perform(scene, [str(sluice), "serve", "--listen", "mpi:one", f"d={data}"], status=1)
    expect("no job to serve", "is no rank of an MPI job" in said, said)


def check_programs(scene):
    sluice, data = sluice_of(scene), fresh(scene, "programs")
    (data / "in").write_bytes(os.urandom(300_000))
    script = "cmp /far/in /far/in && sort /far/in > /far/out && head -c 1000 /far/in | sha256sum > /far/sum"
    run = [sluice, "run", "--map", "/far=scdc+mpi://io/d", "--"]
    perform(scene, parts(scene, serve(sluice, "io", data), (1, [*run, "sh", "-c", script])))
    expected = subprocess.run(["sort", data / "in"], capture_output=True, check=True).stdout
    expect("sort", (data / "out").read_bytes() == expected)
    # A status that is not 0 is the program's.
    out, _ = perform(scene, parts(scene, serve(sluice, "io", data), (1, [*run, "sh", "-c", "echo $0; exit 7"])), status=7)
    if not places.has_tool("gmsh"):
        return
    local = fresh(scene, "gmsh")
    made = subprocess.run(["gmsh", "-v", "0", "-3", "-clscale", "3", "-bin", "-o", local / "ball.msh", GEOMETRY],
                          capture_output=True, timeout=120)
    expect("gmsh", made.returncode == 0, made.stderr)
    shutil.copy(local / "ball.msh", data / "ball.msh")
    convert = ["gmsh", "-v", "0", "-bin", "-save", "-o"]
    subprocess.run([*convert, local / "ball.stl", local / "ball.msh"], check=True, timeout=120, capture_output=True)
    far = [*convert, "scdc+mpi://io/d/ball.stl", "scdc+mpi://io/d/ball.msh"]
    perform(scene, parts(scene, serve(sluice, "io", data), (1, [sluice, "run", "--", *far])))
    expect("gmsh converts otherwise", (data / "ball.stl").read_bytes() == (local / "ball.stl").read_bytes())


LATE = ["write EIO", "open EIO"]


def check_world(scene):
    if scene.library.name == "wheel-impi-abi":
        raise Missing("natively, MPI_Comm_set_errhandler does nothing (2021.18.1)")
    sluice, program = sluice_of(scene), scene.scratch / "job"
    scene.library.compile("c", PROGRAMS / "job.c", program)
    for what in ("files", "early", "late", "child", "threads"):
        here, there = fresh(scene, f"here-{what}"), fresh(scene, f"there-{what}")
        try:
            native, _ = perform(scene, parts(scene, (2, [program, what, here])))
        except Failed as failed:
            if scene.library.name == "wheel-impi" and "MPI_Init" in str(failed):
                raise Missing("natively, MPI_Init fails on this machine (2021.18.1)") from None
            raise
        run = [sluice, "run", "--map", "/far=scdc+mpi://io/d", "--", program, what, "/far"]
        out, said = perform(scene, parts(scene, serve(sluice, "io", there), (2, run)))
        lines = sorted(out.splitlines())
        if what == "late":
            after = [line for line in lines if "after MPI_Finalize" in line]
            lines = [line for line in lines if line not in after]
            native = "\n".join(line for line in native.splitlines() if "after MPI_Finalize" not in line)
            expect("after MPI_Finalize", all(sum(word in line for line in after) == 2 for word in LATE), after)
        if what == "early":
            early = [line for line in lines if "before MPI_Init" in line]
            expect("before MPI_Init", len(early) == 2 and all("ECONNREFUSED" in line for line in early), early)
            lines = [line for line in lines if line not in early]
            native = "\n".join(line for line in native.splitlines() if "before MPI_Init" not in line)
        expect(f"{what} natively\n{native}\nin a job", lines == sorted(native.splitlines()), out + said)
        names = {path.name for path in here.iterdir()}
        expect("files", names == {path.name for path in there.iterdir()} and "all" in names, names)
        for name in names:
            native, came = (here / name).read_bytes(), (there / name).read_bytes()
            # What natively is written after MPI_Finalize has been refused here.
            expected = native.removesuffix(b"x") if name.startswith("late") else native
            expect(f"{what} {name}", came == expected, came[:100])
    # Two components, each with a world of its own, and one service for both.
    data = fresh(scene, "components")
    each = [(ranks, [sluice, "run", "--mpi", "program", "--mpi-world", name, "--", program, "world"])
            for ranks, name in ((1, "ocean"), (2, "air"))]
    out, _ = perform(scene, parts(scene, each[0], serve(sluice, "io", data), each[1]))
    counts = sorted(line.split(":")[0] for line in out.splitlines())
    expect("components", counts == ["rank 0 of 1", "rank 0 of 2", "rank 1 of 2"], out)


def check_language(scene, language):
    """The programs of the other checks: what they tell is the same, and all files are a service's."""
    sluice = sluice_of(scene)
    variables = {"PROBE_WITHOUT": scene.library.without}
    for ranks in (1, 2):
        native = scene.told(language, ranks, "before-job", variables)
        served = fresh(scene, f"job-{language}-{ranks}")
        run = [sluice, "run", "--mpi", "program", "--map", "/far=scdc+mpi://io/d", "--", *scene.program(language), "/far"]
        perform(scene, parts(scene, serve(sluice, "io", served), (ranks, run)), inputs=variables)
        told = [(served / f"told.{rank}").read_text().splitlines() for rank in range(ranks)]
        for rank, (expected, came) in enumerate(zip(native, told, strict=True)):
            differ = [(old, new) for old, new in zip(expected, came) if old != new]
            expect(f"rank {rank} of {ranks}", not differ and len(expected) == len(came), differ[:3])


def check_end(scene):
    sluice, data = sluice_of(scene), fresh(scene, "ending")
    (data / "in").write_text("here\n")
    service = ["sh", "-c", f"echo $$ > {scene.scratch}/pid; exec \"$0\" \"$@\"", *serve(sluice, "io", data)[1]]
    run = [sluice, "run", "--map", "/far=scdc+mpi://io/d", "--", "sh", "-c"]

    def end(how, seconds):
        return [*run, f"cat /far/in; kill -{how} $(cat {scene.scratch}/pid); sleep {seconds}; cat /far/in && echo again; "
                      "echo more > /far/out || echo refused; exit 0"]

    out, said = perform(scene, parts(scene, (1, service), (1, end("TERM", 1))))
    expect("a service that ended", out == "here\nrefused\n" and not (data / "out").exists(), out + said)
    expect("errno", "Input/output error" in said or "Connection refused" in said, said)
    # Launchers end a job of which a rank was killed.
    start = time.monotonic()
    out, said = perform(scene, parts(scene, (1, service), (1, end("KILL", 30))), status=None)
    expect("a job whose service was killed", "again" not in out and time.monotonic() - start < 29, out + said)
    if not scene.library.name.startswith("debian-"):
        return
    # One that is alive and silent.
    out, said = perform(scene, parts(scene, (1, service), (1, end("STOP", 0))), status=None, seconds_max=SILENT_SECONDS_MAX)
    # The launcher may add to it that a rank ended by SIGHUP: what is stopped gets that when its session ends.
    expect("a service that is silent", out.startswith("here\nrefused\n") and "again" not in out, out + said)
    expect("what is said", "Input/output error" in said and "does not answer any more" in said, said)


CHECKS = {
    "job-table": check_table,
    "job-commands": check_commands,
    "job-programs": check_programs,
    "job-world": check_world,
    "job-c": lambda scene: check_language(scene, "c"),
    "job-mpifh": lambda scene: check_language(scene, "mpifh"),
    "job-f08": lambda scene: check_language(scene, "f08"),
    "job-python": lambda scene: check_language(scene, "python"),
    "job-end": check_end,
}
