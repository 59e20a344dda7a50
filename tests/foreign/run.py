#!/usr/bin/python3
"""Parties that are not ours: diod's clients and 9fans' against our service, our client against diod.

The Linux kernel's own client needs a machine of its own; it is not part of this.
"""

import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report  # noqa: E402
from house.services import Service, ServiceFailed, wait_until  # noqa: E402

SECONDS_MAX = 60
CHECKS = []


class Broken(Exception):
    """What must hold does not."""


class Skip(Exception):
    """Something is not installed."""


def check(function):
    CHECKS.append(function)
    return function


def hold(condition, *explanation):
    if not condition:
        raise Broken(" ".join(map(str, explanation)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    options = parser.parse_args()
    sluice = places.sluice_binary(options.sluice)
    if sluice is None:
        print("foreign: no sluice binary; build it with `cargo build --release`")
        return 2
    results = []
    for function in CHECKS:
        start, scratch = time.monotonic(), places.scratch_directory("foreign")
        corner = Corner(sluice, scratch)
        try:
            function(corner)
            verdict, details = "ok", []
        except Skip as reason:
            verdict, details = "skipped", [str(reason)]
        except (Broken, ServiceFailed) as broken:
            verdict, details = "failed", [function.__doc__, *str(broken).splitlines()[:8]]
        finally:
            for end in reversed(corner.closing):
                end()
            shutil.rmtree(scratch, ignore_errors=True)
        results.append(report.Result(function.__name__.replace("_", "-"), verdict, time.monotonic() - start, details))
        report.print_line(results[-1])
    return report.conclude(results)


class Corner:
    """One check's directory, services and processes."""

    def __init__(self, sluice, scratch):
        self.sluice, self.scratch, self.closing = str(sluice), scratch, []
        self.served, self.local = scratch / "served", scratch / "local"
        (self.served / "dir").mkdir(parents=True)
        self.local.mkdir()
        (self.served / "file.txt").write_text("the first line\nthe second line\n")
        (self.served / "dir" / "inner.txt").write_text("inside\n")
        (self.served / "large").write_bytes(os.urandom(3_000_001))

    def serve(self, listen):
        service = Service(self.sluice, [f"far={self.served}"], listen)
        self.closing.append(service.stop)
        return service.uri

    def diod(self, listen):
        """Starts diod on an address of its own form: a path, or HOST:PORT."""
        program = tool("diod")
        process = subprocess.Popen([program, "-f", "-n", "-N", "-e", str(self.served), "-l", listen],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)

        def end():
            process.terminate()
            process.wait()

        self.closing.append(end)
        if not wait_until(lambda: reachable(listen), 10):
            raise Broken(f"diod did not come up on {listen}")

    def do(self, *command):
        """Runs a command to its end; its output."""
        try:
            done = subprocess.run(list(map(str, command)), cwd=self.local, capture_output=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Broken(f"no end after {SECONDS_MAX} s: {command}") from None
        hold(done.returncode == 0, *command, "ended with", done.returncode, done.stderr.decode(errors="replace")[-500:])
        return done.stdout


def tool(name):
    found = shutil.which(name, path=places.CASE_PATH)
    if found is None:
        raise Skip(f"{name} is not installed")
    return found


def reachable(address):
    try:
        if address.startswith("/"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(address)
        else:
            host, port = address.rsplit(":", 1)
            socket.create_connection((host, int(port)), 1).close()
        return True
    except OSError:
        return False


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@check
def diods_clients_over_tcp(corner):
    """diodls and diodcat list and read through our service over TCP."""
    address = corner.serve("tcp:127.0.0.1:0").removeprefix("scdc+tcp://")
    diods_clients(corner, address)


@check
def diods_clients_over_a_socket(corner):
    """diodls and diodcat list and read through our service over a Unix socket."""
    corner.serve(f"unix:{corner.scratch}/far.sock")
    diods_clients(corner, f"{corner.scratch}/far.sock")


def diods_clients(corner, address):
    listing = corner.do(tool("diodls"), "-s", address, "-a", "far", "-l").decode()
    for name in ("file.txt", "dir", "large", "3000001"):
        hold(name in listing, name, "is not in the listing:", listing)
    hold(corner.do(tool("diodcat"), "-s", address, "-a", "far", "file.txt") == (corner.served / "file.txt").read_bytes())
    hold(corner.do(tool("diodcat"), "-s", address, "-a", "far", "large") == (corner.served / "large").read_bytes(), "large differs")


@check
def our_commands_on_diod(corner):
    """sluice ls, cat, cp, mkdir, stat and rm on a diod server."""
    port = free_port()
    corner.diod(f"127.0.0.1:{port}")
    far, sluice = f"scdc+tcp://127.0.0.1:{port}{corner.served}", corner.sluice
    hold(b"file.txt" in corner.do(sluice, "ls", far))
    hold(corner.do(sluice, "cat", f"{far}/file.txt").endswith(b"second line\n"))
    corner.do(sluice, "cp", f"{far}/large", corner.local / "large")
    hold((corner.local / "large").read_bytes() == (corner.served / "large").read_bytes(), "downloaded wrongly")
    corner.do(sluice, "cp", corner.local / "large", f"{far}/dir/back")
    hold((corner.served / "dir" / "back").read_bytes() == (corner.served / "large").read_bytes(), "uploaded wrongly")
    corner.do(sluice, "mkdir", f"{far}/made")
    hold((corner.served / "made").is_dir())
    hold(b"3000001" in corner.do(sluice, "stat", f"{far}/large"))
    corner.do(sluice, "rm", f"{far}/dir/back")
    hold(not (corner.served / "dir" / "back").exists())


@check
def programs_on_diod(corner):
    """Unmodified programs read and write a directory that diod serves."""
    corner.diod(f"{corner.scratch}/diod.sock")
    uri = f"scdc+uds://{corner.scratch}/diod.sock{corner.served}"

    def run(script):
        return corner.do(corner.sluice, "run", "--map", f"/far={uri}", "--", "/bin/bash", "-ec", script)

    hold(run("ls /far; cat /far/dir/inner.txt") == b"dir\nfile.txt\nlarge\ninside\n")
    run("cp /far/large here; cmp here /far/large; cp here /far/copy; sort -r /far/file.txt > /far/sorted; echo more >> /far/sorted")
    hold((corner.served / "copy").read_bytes() == (corner.served / "large").read_bytes(), "cp wrote wrongly")
    hold((corner.served / "sorted").read_text() == "the second line\nthe first line\nmore\n", (corner.served / "sorted").read_text())
    run("mkdir -p /far/a/b; mv /far/copy /far/a/b/; ln -s b /far/a/link; cat /far/a/link/copy | cmp - here; rm -r /far/a; chmod 600 /far/sorted; truncate -s 5 /far/sorted")
    hold((corner.served / "sorted").read_text() == "the s" and not (corner.served / "a").exists())
    run("python3 -c 'import mmap; f = open(\"/far/large\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[:4] = b\"MMAP\"; m.close()'; sqlite3 /far/db 'create table t(a); insert into t values(7);'")
    hold((corner.served / "large").read_bytes()[:4] == b"MMAP")
    hold(run("sqlite3 /far/db 'select a from t; pragma integrity_check'") == b"7\nok\n")


@check
def our_relay_before_diod(corner):
    """A relay of ours in front of diod."""
    corner.diod(f"{corner.scratch}/diod.sock")
    service = Service(corner.sluice, [f"far=scdc+uds://{corner.scratch}/diod.sock{corner.served}"], f"unix:{corner.scratch}/relay.sock")
    corner.closing.append(service.stop)
    hold(corner.do(corner.sluice, "cat", f"{service.uri}/far/large") == (corner.served / "large").read_bytes())


def plan9_client(corner):
    """Builds the 9fans client; Go's module proxy must be reachable the first time."""
    go = shutil.which("go", path=places.CASE_PATH + ":/usr/local/go/bin") or shutil.which("go")
    if go is None:
        raise Skip("go is not installed")
    built = places.programs_directory() / "plan9client"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([go, "build", "-mod=mod", "-o", str(built), "."], cwd=HERE / "plan9client", capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip(f"the 9fans client does not build here: {done.stderr.strip().splitlines()[-1:]}")
    return built


def check_plan9_client(corner, network, address):
    out = corner.do(plan9_client(corner), network, address).decode()
    for line in ("dir 0 true", "file.txt 31 false", "large 3000001 false", "read 3000001", "wrote 3000001", "copy 3000001"):
        hold(line in out, repr(line), "is not in:", out)
    hold("absent: " in out and "<nil>" not in out, out)
    hold((corner.served / "copy").read_bytes() == (corner.served / "large").read_bytes(), "it wrote something else")
    hold(not (corner.served / "made").exists() and not (corner.served / "renamed").exists())


@check
def plan9_client_over_tcp(corner):
    """9fans' client of base 9P2000 over TCP."""
    plan9_client(corner)
    check_plan9_client(corner, "tcp", corner.serve("tcp:127.0.0.1:0").removeprefix("scdc+tcp://"))


@check
def plan9_client_over_a_socket(corner):
    """9fans' client of base 9P2000 over a Unix socket."""
    plan9_client(corner)
    corner.serve(f"unix:{corner.scratch}/far.sock")
    check_plan9_client(corner, "unix", f"{corner.scratch}/far.sock")


if __name__ == "__main__":
    sys.exit(main())
