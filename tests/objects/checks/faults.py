"""A log that is drained to a bucket whose service, connection or agent fails."""

import os
import random
import signal
import subprocess
import threading
import time

from house.checking import run, want
from house.suite import only_full
from objects import cutter
from objects.checks.drained import BIG, MIB, everything, log_of, settle, through
from objects.scene import PYTHON, bytes_of, check

KILLS = 4
KILLS_FULL = 40
# A drain makes pauses of up to 30 s while the service does not want.
SECONDS_MAX = 150


def first(count, about, verdict):
    """The first requests of a kind meet with that."""
    left = [count]
    lock = threading.Lock()

    def judge(kind, _path):
        with lock:
            if kind == about and left[0] > 0:
                left[0] -= 1
                return verdict
        return None

    judge.left = left
    return judge


def meets(scene, judge, content, before=None):
    """A file is written while the service behaves so; what readers see meanwhile is what was there before, or all of it."""
    is_atomic = scene.use_best_server()
    if before is not None:
        scene.put("out/file", before)
    spoiled = scene.spoil(judge)
    (scene.scratch / "file").write_bytes(content)
    seen, end = set(), threading.Event()

    def look():
        path = scene.bucket / "out" / "file"
        while not end.is_set():
            try:
                seen.add(path.stat().st_size)
            except FileNotFoundError:
                seen.add(None)
            time.sleep(0.002)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        through(scene, "cp", scene.scratch / "file", "s3://bucket/out/file")
        scene.command("log", "drain", log_of(scene), seconds_max=SECONDS_MAX)
    finally:
        end.set()
        looker.join()
    scene.command("log", "verify", log_of(scene))
    want(everything(scene) == {"file": content}, "the object is not what was written")
    allowed = {len(content), None if before is None else len(before)}
    want(seen <= allowed or not is_atomic, f"sizes that were seen: {seen}, may be: {allowed}")
    want(scene.unfinished() == 0, "an upload is left behind")
    return spoiled


@check
def a_connection_that_breaks_between_parts_loses_nothing(scene):
    judge = first(2, "part", cutter.CUT)
    meets(scene, judge, bytes_of(BIG, 4), before=b"before")
    want(judge.left == [0], "nothing was cut")


@check
def an_answer_to_a_part_that_is_lost_loses_nothing(scene):
    judge = first(2, "part", cutter.CUT_ANSWER)
    meets(scene, judge, bytes_of(BIG, 5))
    want(judge.left == [0], "nothing was cut")


@check
def a_completion_that_does_not_arrive_is_made_again(scene):
    judge = first(1, "complete", cutter.CUT)
    meets(scene, judge, bytes_of(BIG, 6), before=b"before")
    want(judge.left == [0], "nothing was cut")


@check
def a_completion_whose_answer_is_lost_is_seen_to_be_done(scene):
    judge = first(1, "complete", cutter.CUT_ANSWER)
    spoiled = meets(scene, judge, bytes_of(BIG, 7))
    want(judge.left == [0], "nothing was cut")
    want(spoiled.count("begin") == 1, "it was sent once more")


@check
def a_service_that_is_busy_is_asked_again(scene):
    dice = random.Random(8)
    storm = time.monotonic() + 3
    meets(scene, lambda *_: cutter.SLOW_DOWN if time.monotonic() < storm and dice.random() < 0.5 else None, bytes_of(BIG, 8))


@check
def a_part_that_is_rejected_is_sent_again(scene):
    judge = first(1, "part", cutter.REFUSED)
    meets(scene, judge, bytes_of(BIG, 9), before=b"before")
    want(judge.left == [0], "nothing was rejected")


@check
def credentials_that_expire_keep_everything_in_the_log(scene):
    scene.use_best_server()
    is_expired = threading.Event()
    is_expired.set()
    scene.spoil(lambda kind, _: cutter.EXPIRED if is_expired.is_set() and kind in ("begin", "put", "part") else None)
    content = bytes_of(BIG, 10)
    (scene.scratch / "file").write_bytes(content)
    through(scene, "bash", "-c", f"cp {scene.scratch}/file s3://bucket/out/file; cmp {scene.scratch}/file s3://bucket/out/file")
    end = time.monotonic() + 30
    while "credentials have expired" not in agent_log(scene) and time.monotonic() < end:
        time.sleep(0.1)
    want("credentials have expired" in agent_log(scene), agent_log(scene))
    want(everything(scene) == {}, "something is in the bucket")
    is_expired.clear()
    settle(scene)
    want(everything(scene) == {"file": content}, "the object is not what was written")


@check
def a_server_that_is_killed_between_parts_loses_nothing(scene):
    scene.use_versitygw()
    server, killed = scene.other, threading.Event()

    def judge(kind, _path):
        if kind == "part" and not killed.is_set():
            killed.set()
            server.end()
        return None

    scene.spoil(judge)
    content = bytes_of(BIG, 12)
    (scene.scratch / "file").write_bytes(content)
    through(scene, "cp", scene.scratch / "file", "s3://bucket/out/file")
    want(killed.wait(30), "no part was sent")
    time.sleep(1)
    want(everything(scene) == {}, "something is in the bucket")
    server.start()
    settle(scene)
    want(everything(scene) == {"file": content}, "the object is not what was written")


def agent_log(scene):
    path = log_of(scene) / "agent.log"
    return path.read_text() if path.exists() else ""


@check
def a_bucket_that_is_missing_is_said_at_once(scene):
    scene.use_best_server()
    done = run(scene.sluice, "run", "--log", log_of(scene), "--to", "s3://nobody/out", "--", "true",
               env=scene.environment, expect=None)
    want(done.returncode != 0 and b"no such bucket" in done.stderr, done.stderr.decode()[-300:])


VICTIM = """
import os, sys
side, count = sys.argv[1], int(sys.argv[2])
for n in range(1, count):
    file = os.open("s3://bucket/out/file", os.O_RDWR | os.O_CREAT)
    # Every byte of a version says which it is, and where.
    size = %d + 4096 * n
    os.ftruncate(file, size)
    block = (n.to_bytes(4, "little") * 1024)
    for at in range(0, size, 1 << 20):
        os.pwrite(file, block * (min(1 << 20, size - at) // 4096), at)
    os.fsync(file)
    os.close(file)
    with open(side, "a") as told:
        told.write(f"{n}\\n")
    with open(f"s3://bucket/out/new", "wb") as other:
        other.write(block)
    os.rename("s3://bucket/out/new", f"s3://bucket/out/small")
""" % (9 * MIB)


def version(content):
    """Which version of the victim's file this is."""
    number = int.from_bytes(content[:4], "little")
    size = 9 * MIB + 4096 * number
    want(len(content) == size and content == number.to_bytes(4, "little") * (size // 4), f"a mixture, from {number} on")
    return number


def killed(scene, kills):
    scene.use_versitygw()
    dice = random.Random(11)
    path = scene.bucket / "out" / "file"
    for round in range(kills):
        name, side = f"log-{round}", scene.scratch / f"side-{round}"
        program = subprocess.Popen(
            [scene.sluice, "run", "--reconnect-seconds", "1", "--log", log_of(scene, name), "--to", "s3://bucket/out", "--",
             PYTHON, "-c", VICTIM, side, "1000"], env=scene.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 60
            while not side.exists() and time.monotonic() < end:
                time.sleep(0.01)
            until = time.monotonic() + dice.random() * 2
            last = 0
            while time.monotonic() < until:
                # What a reader of the bucket sees is one version, and none goes back.
                if path.exists():
                    found = version(path.read_bytes())
                    want(found >= last, f"version {found} is seen after {last}")
                    last = found
                time.sleep(0.01)
            for agent in scene.log_agents():
                os.kill(agent, signal.SIGKILL)
            program.wait(60)
        finally:
            if program.poll() is None:
                program.kill()
                program.wait()
        told = side.read_text().split() if side.exists() else []
        passed = int(told[-1]) if told else 0
        want(path.exists() is False or version(path.read_bytes()) > 0, "before recovery")
        scene.command("log", "recover", log_of(scene, name), seconds_max=SECONDS_MAX)
        scene.command("log", "verify", log_of(scene, name))
        found = version(path.read_bytes())
        want(passed <= found <= passed + 1, f"round {round}: version {found}, and the program was told of {passed}")
        small = int.from_bytes((scene.bucket / "out" / "small").read_bytes()[:4], "little") if passed > 1 else 0
        want(passed == 0 or small >= passed - 1, f"round {round}: renamed version {small}, of {passed}")
        want(scene.unfinished() == 0, f"round {round}: uploads are left behind")
        path.unlink()


@check
def an_agent_that_is_killed_at_any_moment_loses_nothing(scene):
    killed(scene, KILLS)


@check
@only_full
def an_agent_that_is_killed_at_many_moments_loses_nothing(scene):
    killed(scene, KILLS_FULL)
