"""Suites of others, from the registry of Rust's crates: pjdfstest asks for POSIX, fsx mixes reads, writes and mappings."""

import re

from house import installed, suite
from house.checking import Failed, Skip, run, want
from house.mounts import Mount
from house.services import Service
from mount.scene import check

PJDFSTEST = ("pjdfstest", "0.2.2")
FSX = ("fsx", "0.3.2")
SECONDS_MAX = 600

# Only what Linux and the stores have. The users are those of Debian's base-passwd.
PJDFSTEST_CONFIGURATION = """
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.02
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"""

# There are no FIFOs, sockets and devices below a mount (docs/MOUNT.md): cases that begin with making one end with EPERM.
SPECIAL = re.compile(r"::(fifo|socket|block|char)$|^mkfifo::|^mknod::|^open::(fifo_nonblock_wronly|socket_error)$")
MAKING = re.compile(r"EPERM|mknod\(|f\(&path, Mode::from_bits_truncate\(mode\)\)")

FSX_CONFIGURATION = """
flen = 1048576
[opsize]
max = 131072
[weights]
close_open = 3
invalidate = 2
fsync = 1
fdatasync = 1
truncate = 5
posix_fallocate = 3
sendfile = 3
posix_fadvise = 2
copy_file_range = 5
"""

# A view has the size that it has.
FSX_VIEW_CONFIGURATION = """
flen = 240000
blockmode = true
nosizechecks = true
[opsize]
max = 60000
[weights]
invalidate = 2
fsync = 1
truncate = 0
sendfile = 3
posix_fadvise = 2
"""

POINTS = """
dataset { type Point struct { a, b, c float32; d int64 }; var data [12000]Point }
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c; var d[i] = data[i].d }
view d { var d[i] = data[i].d }
replica one { view soa }
replica two async { view aos }
"""


@check
@suite.only_full
def suite_pjdfstest(scene):
    """All of it that makes no special files, on a service, a relay of it, a directory and memory."""
    program = installed.crate(*PJDFSTEST)
    if run("id", "-u").stdout != b"0\n":
        raise Skip("switching users needs root")
    configuration = scene.scratch / "pjdfstest.toml"
    configuration.write_text(PJDFSTEST_CONFIGURATION)
    scene.scratch.chmod(0o755)
    counts = []
    for place in (None, scene.uri(), scene.served, "mem:"):
        options = ("--store", f"y={place}") if place == scene.uri() else ()
        root = scene.mount("--allow-other", *options, place="scdc:///y" if options else place)
        done = run(program, "-c", configuration, "-p", root, "-s", scene.scratch, expect=None, seconds_max=SECONDS_MAX)
        counts.append(judge(done.stdout.decode(errors="replace"), place or "a service"))
        want(scene.mounted.stop(), f"{place}: not unmounted by SIGTERM")
    want(len(set(counts)) == 1, f"the places differ: {counts}")


def judge(printed, place):
    """Fails for a case that failed for another reason than a special file; gives how many passed."""
    printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)
    verdicts = re.findall(r"^(\S+::\S+) +(ok|FAILED|skipped)$(?:\n\t(.*))?", printed, re.MULTILINE)
    failed = [(name, said.strip()) for name, verdict, said in verdicts if verdict == "FAILED"]
    bad = [f"{name}: {said}" for name, said in failed if not SPECIAL.search(name)]
    bad += [f"{name}: {said}" for name, said in failed if SPECIAL.search(name) and not MAKING.search(said)]
    passed = sum(verdict == "ok" for _, verdict, _ in verdicts)
    if bad or passed < 200:
        raise Failed(f"{place}: {passed} passed, and these failed:\n" + "\n".join(bad[:20]))
    return passed


def exercise(scene, configuration, file, operations, seeds):
    program, settings = installed.crate(*FSX), scene.scratch / "fsx.toml"
    settings.write_text(configuration)
    for seed in seeds:
        run(program, "-f", settings, "-N", operations, "-S", seed, "-P", scene.scratch, file, seconds_max=SECONDS_MAX)


@check
@suite.only_full
def suite_fsx(scene):
    """Every kind of operation, mappings among them, on a file of a service and of a relay of it."""
    exercise(scene, FSX_CONFIGURATION, scene.mount() / "f", 10_000, (1, 2))
    exercise(scene, FSX_CONFIGURATION, scene.mount("--store", f"y={scene.uri()}", place="scdc:///y") / "g", 5_000, (3,))


@check
@suite.only_full
def suite_fsx_on_a_view(scene):
    """The same on views of a dataset: what is stored is laid out otherwise, and the replicas agree in the end."""
    directory = scene.scratch / "dataset"
    directory.mkdir()
    definition = directory / "p.drepl"
    definition.write_text(POINTS)
    with Service(scene.sluice, [f"p={definition}"], f"unix:{scene.scratch}/p.sock") as service:
        with Mount(scene.sluice, f"{service.uri}/p", scene.scratch / "views") as mounted:
            exercise(scene, FSX_VIEW_CONFIGURATION, mounted.directory / "aos", 10_000, (4,))
            exercise(scene, FSX_VIEW_CONFIGURATION.replace("240000", "96000"), mounted.directory / "d", 5_000, (5,))
            aos = (mounted.directory / "aos").read_bytes()
            want(aos.strip(b"\0"), "nothing was written")
            want(mounted.stop(), "not unmounted by SIGTERM")
    want((directory / "two").read_bytes() == aos, "the replica has other bytes")
    soa = b"".join(aos[20 * i + at:20 * i + at + size] for at, size in ((0, 4), (4, 4), (8, 4), (12, 8)) for i in range(12000))
    want((directory / "one").read_bytes() == soa, "the replica of arrays has other bytes")
