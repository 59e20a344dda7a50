"""Locks through a mount: they are the store's, so others meet them."""

import fcntl
import os
import signal
import subprocess
import time

from house.checking import want
from mount.scene import PYTHON, check, python

TRY = """if True:
    import fcntl, os, sys
    fd = os.open(sys.argv[1], os.O_RDWR)
    try:
        getattr(fcntl, sys.argv[2])(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("free")
    except BlockingIOError:
        print("held")
    """


@check
def locks_exclude_across_mounts_and_carried_programs(scene):
    first, second = scene.mount(), scene.mount()
    (first / "f").write_bytes(b"0")
    for kind in ("lockf", "flock"):
        with open(first / "f", "r+b") as file:
            getattr(fcntl, kind)(file, fcntl.LOCK_EX)
            for path in (first / "f", second / "f"):
                want(python(TRY, path, kind).strip() == "held", f"{kind} at {path.parent.name}")
            carried = [scene.sluice, "run", "--map", f"/far={scene.uri()}", "--", PYTHON, "-c", TRY, "/far/f", kind]
            want(subprocess.run(carried, capture_output=True).stdout == b"held\n", f"{kind} under sluice run")
        for path in (first / "f", second / "f"):
            want(python(TRY, path, kind).strip() == "free", f"{kind} after closing, at {path.parent.name}")
    with open(first / "f", "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        want(python(TRY, second / "f", "flock").strip() == "held", "flock through a descriptor for reading")


@check
def counting_under_a_lock(scene):
    """Processes at two mounts read, add one and write, under a lock that they wait for."""
    roots = [scene.mount(), scene.mount()]
    (roots[0] / "n").write_bytes(b"0")
    count = """if True:
        import fcntl, os, sys
        fd = os.open(sys.argv[1], os.O_RDWR)
        for _ in range(25):
            fcntl.lockf(fd, fcntl.LOCK_EX)
            number = int(os.pread(fd, 20, 0)) + 1
            os.pwrite(fd, b"%d" % number, 0)
            fcntl.lockf(fd, fcntl.LOCK_UN)
        """
    running = [subprocess.Popen([PYTHON, "-c", count, str(roots[n % 2] / "n")]) for n in range(4)]
    want(all(process.wait(60) == 0 for process in running), "a process failed")
    want((scene.served / "n").read_bytes() == b"100", f"counted {(scene.served / 'n').read_bytes()}")


@check
def waiting_for_a_lock_ends_with_a_signal(scene):
    root = scene.mount()
    (root / "f").write_bytes(b"0")
    # Who runs in the background of a script ignores SIGINT, and so would what it starts.
    wait = """if True:
        import fcntl, signal, sys
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        f = open(sys.argv[1], "r+b")
        print("open", flush=True)
        fcntl.lockf(f, fcntl.LOCK_EX)
        """
    with open(root / "f", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        for number in (signal.SIGINT, signal.SIGKILL):
            waiting = subprocess.Popen([PYTHON, "-c", wait, str(root / "f")], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
            waiting.stdout.readline()
            time.sleep(0.3)
            want(waiting.poll() is None, "it did not wait")
            waiting.send_signal(number)
            try:
                waiting.wait(5)
            except subprocess.TimeoutExpired:
                waiting.kill()
                want(False, f"{number.name} did not end the wait")


@check
def who_holds_a_lock(scene):
    root = scene.mount()
    (root / "f").write_bytes(b"0123456789")
    ask = """if True:
        import fcntl, os, struct, sys
        fd = os.open(sys.argv[1], os.O_RDWR)
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
        kind, _, start, length, process = struct.unpack("hhqqi", answer)
        print(kind == fcntl.F_WRLCK, start, length, process)
        """
    with open(root / "f", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 4, 2)
        said = python(ask, root / "f").split()
        want(said == ["True", "2", "4", str(os.getpid())], f"F_GETLK: {said}")
