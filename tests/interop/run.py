#!/usr/bin/python3
"""Interoperation with 9P clients and servers that are not ours.

Their clients list, read and write through `sluice serve` (diod's tools speak 9P2000.L, Plan 9's Go
library base 9P2000), and our command line works on their server. What is not installed is skipped
with a message. `--full` adds the Linux kernel's own client in a virtual machine (v9fs.sh).
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from house.checking import Failed, Skip, run, tool, want  # noqa: E402
from house.services import Service  # noqa: E402

# The machine boots and works without hardware help.
MACHINE_SECONDS_MAX = 600

UNPFS_VERSION = "0.13.0"

CHECKS = []


class ServerCrashed(Exception):
    """A server that is not ours died of a signal: that says nothing of us."""


def check(function):
    CHECKS.append(function)
    return function


class Scene:
    """A scratch tree with known content and whatever serves it."""

    def __init__(self, sluice, scratch):
        self.foreign = []
        self.sluice = sluice
        self.scratch = scratch
        self.tree = scratch / "tree"
        (self.tree / "sub").mkdir(parents=True)
        self.numbers = b"".join(b"%d\n" % i for i in range(300_000))
        (self.tree / "numbers").write_bytes(self.numbers)
        (self.tree / "sub" / "small").write_bytes(b"hello\n")
        (self.tree / "link").symlink_to("numbers")
        self.stack = contextlib.ExitStack()

    def ours(self, listen="tcp:127.0.0.1:0"):
        """Starts `sluice serve x=TREE` and returns its address as HOST:PORT or socket path."""
        service = self.stack.enter_context(Service(self.sluice, [f"x={self.tree}"], listen))
        return re.sub(r"^scdc\+\w+://", "", service.uri)

    def unpfs(self):
        """Starts rs9p's unpfs on the tree and returns its address for our URIs."""
        root = places.target_directory() / "foreign"
        program = root / "bin" / "unpfs"
        if not program.exists():
            if not self.full:
                raise Skip(f"unpfs is not in {root}: --full builds it there")
            built = run("cargo", "install", "unpfs", "--version", UNPFS_VERSION, "--locked", "--root", root,
                        "--target-dir", root / "build", expect=None, seconds_max=MACHINE_SECONDS_MAX)
            if built.returncode != 0:
                raise Skip(f"unpfs does not build here: {built.stderr.decode().strip()[-200:]}")
        port = free_port()
        self.begin([program, f"tcp!127.0.0.1!{port}", self.tree], socket.AF_INET, ("127.0.0.1", port))
        return f"scdc+tcp://127.0.0.1:{port}"

    def has_lost_its_server(self):
        """Whether a foreign server died of a signal: diod 1.0.24 has a race that ends in SIGSEGV."""
        return any((process.poll() or 0) < 0 for process in self.foreign)

    def diod(self, unix):
        """Starts diod on the tree and returns its address for our URIs."""
        diod = tool("diod")
        address = str(self.scratch / "diod") if unix else f"127.0.0.1:{free_port()}"
        host, _, port = address.partition(":")
        self.begin([diod, "-f", "-n", "-N", "-e", self.tree, "-l", address],
                   socket.AF_UNIX if unix else socket.AF_INET, address if unix else (host, int(port)))
        return f"scdc+{'uds' if unix else 'tcp'}://{address}{self.tree}"

    def begin(self, command, family, address):
        """Starts a server and waits until it listens."""
        # diod ends at SIGPIPE when a client leaves with a reply under way: ours must not. It may crash when it is
        # ended itself; what it leaves then goes with the scratch directory.
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.scratch)
        self.foreign.append(process)
        self.stack.callback(end, process)
        for _ in range(500):
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.connect(address)
                return
            time.sleep(0.02)
        raise Failed(f"{command[0]} does not listen")


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- diod's clients on our service ----------------------------------------------------------------


def diod_clients(scene, address):
    listing = run(tool("diodls"), "-s", address, "-a", "x", "-l").stdout.decode()
    for name, kind in (("numbers", "-"), ("sub", "d"), ("link", "l")):
        line = next((line for line in listing.splitlines() if line.split()[-1] == name), "")
        # diodls shows symbolic links' modes as files' (it asks for no type).
        want(line.startswith(kind) or kind == "l" and line, f"diodls -l shows no {name}:\n{listing}")
    want(f" {len(scene.numbers)} " in listing, f"the size of numbers is missing:\n{listing}")
    below = run(tool("diodls"), "-s", address, "-a", "/x/sub").stdout.decode().split()
    want("small" in below, f"diodls of the subtree: {below}")
    for msize in (4096, 65536, 1 << 20, 16 << 20):
        found = run(tool("diodcat"), "-s", address, "-a", "x", "-m", str(msize), "numbers").stdout
        want(found == scene.numbers, f"diodcat with msize {msize}: {len(found)} other bytes")
    missing = run(tool("diodcat"), "-s", address, "-a", "x", "missing", expect=1).stderr.decode()
    want("No such file" in missing, f"diodcat of a missing file: {missing}")
    tree = run(tool("diodcat"), "-s", address, "-a", "nowhere", "numbers", expect=1).stderr.decode()
    want("No such file" in tree, f"diodcat of a missing tree: {tree}")


@check
def diodls_and_diodcat_over_tcp(scene):
    diod_clients(scene, scene.ours())


@check
def diodls_and_diodcat_over_unix_socket(scene):
    tool("diodls")
    diod_clients(scene, scene.ours(f"unix:{scene.scratch}/s.sock"))


# ---- Plan 9's client on our service ---------------------------------------------------------------


def plan9_client(scene):
    """Builds the Go program; the module proxy may be out of reach."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise Skip("go is not installed: Plan 9's client library needs it")
    program = scene.scratch / "plan9"
    built = run(go, "build", "-o", program, ".", cwd=HERE / "plan9", expect=None, seconds_max=300)
    if built.returncode != 0:
        raise Skip(f"9fans.net/go does not build here: {built.stderr.decode().strip()[-200:]}")
    return program


@check
def plan9_client_over_tcp_and_unix_socket(scene):
    program = plan9_client(scene)
    for network, listen in (("tcp", "tcp:127.0.0.1:0"), ("unix", f"unix:{scene.scratch}/s.sock")):
        (scene.tree / network).mkdir()
        output = run(program, network, scene.ours(listen), f"x/{network}", expect=None).stdout.decode()
        want(output.count("ok ") == 13 and "failed" not in output, f"over {network}:\n{output}")
        want((scene.tree / network / "d" / "entry-499").exists(), "what it created is not there")


# ---- our client on their servers ---------------------------------------------------------------------------


def our_client(scene, uri):
    sluice = scene.sluice
    names = run(sluice, "ls", uri).stdout.decode().split()
    want({"numbers", "sub", "link"} <= set(names), f"sluice ls: {names}")
    found = run(sluice, "cat", f"{uri}/numbers").stdout
    want(found == scene.numbers, f"sluice cat: {len(found)} other bytes")
    found = run(sluice, "cat", f"{uri}/link").stdout
    want(found == scene.numbers, "sluice cat of a symbolic link")
    local = scene.scratch / "copy"
    run(sluice, "cp", f"{uri}/numbers", local)
    want(local.read_bytes() == scene.numbers, "sluice cp from diod")
    run(sluice, "cp", local, f"{uri}/sub/uploaded")
    want((scene.tree / "sub/uploaded").read_bytes() == scene.numbers, "sluice cp to diod")
    run(sluice, "mkdir", f"{uri}/made")
    want((scene.tree / "made").is_dir(), "sluice mkdir")
    run(sluice, "rm", f"{uri}/sub/uploaded")
    want(not (scene.tree / "sub/uploaded").exists(), "sluice rm")
    missing = run(sluice, "cat", f"{uri}/missing", expect=None)
    want(missing.returncode != 0 and b"No such file" in missing.stderr,
         f"sluice cat of a missing file: {missing.returncode}, {missing.stderr}")


@check
def our_client_on_diod_over_tcp(scene):
    our_client(scene, scene.diod(unix=False))


@check
def our_client_on_unpfs_over_tcp(scene):
    our_client(scene, scene.unpfs())


def unmodified_programs(scene, uri):
    run(scene.sluice, "run", "--map", f"/far={uri}", "--", "sh", "-c",
        "sha256sum </far/numbers >/far/sum && sort -rn /far/numbers | head -3 >/far/top"
        " && cp /far/numbers /far/again && test -d /far/sub")
    want((scene.tree / "top").read_bytes() == b"299999\n299998\n299997\n", "sort | head")
    want((scene.tree / "again").read_bytes() == scene.numbers, "cp within diod's tree")
    expected = subprocess.run(["sha256sum"], input=scene.numbers, capture_output=True).stdout
    want((scene.tree / "sum").read_bytes() == expected, "sha256sum")


@check
def unmodified_programs_on_diod(scene):
    unmodified_programs(scene, scene.diod(unix=False))


@check
def unmodified_programs_on_unpfs(scene):
    unmodified_programs(scene, scene.unpfs())


@check
def relay_of_diod(scene):
    """Our service in front of theirs: their clients through both."""
    uri = scene.diod(unix=False)
    service = scene.stack.enter_context(Service(scene.sluice, [f"x={uri}"], "tcp:127.0.0.1:0"))
    diod_clients(scene, service.uri.removeprefix("scdc+tcp://"))


# ---- the Linux kernel's client --------------------------------------------------------------------


@check
def linux_kernel_client(scene):
    if not scene.full:
        raise Skip("boots a virtual machine: only with --full")
    for name in ("qemu-system-x86_64", "cpio", "gzip"):
        tool(name)
    port = scene.ours().rpartition(":")[2]
    done = run(HERE / "v9fs.sh", port, scene.scratch, expect=None, seconds_max=MACHINE_SECONDS_MAX)
    output = done.stdout.decode(errors="replace")
    if done.returncode == 77:
        raise Skip(output.strip().splitlines()[-1])
    (scene.scratch / "console").write_text(output)
    want("V9FS-DONE" in output, f"the machine did not finish: {output[-800:]}")
    bad = [line for line in output.splitlines() if line.startswith("failed ")]
    want(not bad and output.count("\nok ") >= 10, "\n".join(bad) or output[-800:])
    want((scene.tree / "v9fs" / "big").read_bytes() == scene.numbers, "what the kernel wrote")


def perform(function, options, sluice, attempts_left=3):
    scratch = places.scratch_directory("interop")
    start = time.monotonic()
    scene = Scene(sluice, scratch)
    scene.full = options.full
    try:
        with scene.stack:
            try:
                function(scene)
            except Failed:
                if scene.has_lost_its_server() and attempts_left > 0:
                    raise ServerCrashed from None
                raise
        verdict, details = "ok", []
    except ServerCrashed:
        shutil.rmtree(scratch, ignore_errors=True)
        print(f"  {function.__name__}: the foreign server crashed; once more", flush=True)
        return perform(function, options, sluice, attempts_left - 1)
    except Skip as skip:
        verdict, details = "skipped", [str(skip)]
    except Failed as failed:
        verdict, details = "failed", str(failed).splitlines()
    except Exception as error:  # a fault of the check itself is a failure too
        verdict, details = "failed", [repr(error)]
    if options.keep:
        details.append(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.Result(function.__name__.replace("_", " "), verdict,
                         time.monotonic() - start, details, "interop")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX")
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--full", action="store_true", help="the Linux kernel's client too")
    parser.add_argument("--keep", action="store_true", help="keep scratch directories")
    options = parser.parse_args()
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print("interop: no sluice binary; build it with `cargo build --release`")
        return 2
    os.environ.pop("LD_PRELOAD", None)
    results = []
    for function in CHECKS:
        if options.only and not any(re.search(pattern, function.__name__) for pattern in options.only):
            continue
        results.append(perform(function, options, sluice))
        report.print_line(results[-1])
    return report.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
