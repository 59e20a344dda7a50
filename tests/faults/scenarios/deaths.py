"""Servers and clients that die at the worst moment, and what must be left."""

import hashlib
import os
import subprocess
import time

from faults.scenario import clear_sentence, hold, open_descriptors, scenario
from house.services import wait_until

SIZE = 24 << 20

READER = """
import hashlib, sys, time
total, digest = 0, hashlib.sha256()
with open("/far/large", "rb", buffering=0) as f:
    while block := f.read(100_000):
        total += len(block); digest.update(block)
        print(total)
        time.sleep(0.01)
print("sha256", digest.hexdigest())
"""

# Prints how many blocks are certain after each fsync.
WRITER = """
import os, time
fd = os.open("/far/written", os.O_CREAT | os.O_WRONLY, 0o644)
for n in range(1, 121):
    block = n.to_bytes(4, "little") * 10_000
    while block:
        block = block[os.write(fd, block):]
    if n % 5 == 0:
        os.fsync(fd)
        print(n)
    time.sleep(0.01)
os.close(fd)
print("closed")
"""

BEFORE_FSYNC = """
import os, sys
fd = os.open("/far/written", os.O_CREAT | os.O_WRONLY, 0o644)
block = bytes(range(256)) * 4000
for n in range(5):
    os.write(fd, block)
print("written"); sys.stdin.readline()
try:
    os.fsync(fd); os.close(fd)
    print("acknowledged")
except OSError as error:
    print("refused", error.errno); sys.exit(1)
"""

CLOSE_ONLY = """
import os, sys
f = open("/far/written", "wb", buffering=0)
for n in range(5):
    f.write(bytes(range(256)) * 4000)
print("written"); sys.stdin.readline()
try:
    f.close()
    print("acknowledged")
except OSError as error:
    print("refused", error.errno); sys.exit(1)
"""


def large(house):
    data = os.urandom(1 << 20) * (SIZE >> 20)
    (house.served / "large").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def started(house, uri, program):
    return house.start(house.python(uri, program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process, seconds_max=60):
    """Waits for the end; a hang fails the scenario."""
    try:
        out, err = process.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        hold(False, f"no end after {seconds_max} s")
    return process.returncode, out, err


def checked_reader(house, restart_after=None):
    """Kills the service in the middle of a read; the reader ends right or with an error."""
    digest = large(house)
    service = house.serve()
    reader = started(house, f"{service.uri}/far", READER)
    for _ in range(20):
        reader.stdout.readline()
    service.kill()
    if restart_after is not None:
        time.sleep(restart_after)
        service.restart()
    status, out, err = outcome(reader)
    finished = [line for line in out.splitlines() if line.startswith("sha256")]
    if status == 0:
        hold(finished == [f"sha256 {digest}"], "it ended well, with wrong data")
    else:
        hold("OSError" in err, "no errno but:", err[-300:])
        hold(not finished, "an end of file instead of an error")
    return status


@scenario
def killed_while_reading(house):
    """The server is gone for good: the reader gets an error, not an early end of file."""
    hold(checked_reader(house) != 0, "the whole file was read from a dead server")


@scenario
def killed_while_reading_and_restarted(house):
    """The server comes back within a second: right data, or EIO; never wrong."""
    checked_reader(house, restart_after=0.5)


@scenario
def killed_while_reading_and_restarted_late(house):
    """The server comes back after five seconds."""
    checked_reader(house, restart_after=5)


def checked_writer(house, restart_after=None):
    """Kills the service in the middle of writing; what fsync acknowledged must be there."""
    service = house.serve()
    writer = started(house, f"{service.uri}/far", WRITER)
    for _ in range(4):
        writer.stdout.readline()
    service.kill()
    if restart_after is not None:
        time.sleep(restart_after)
        service.restart()
    status, out, err = outcome(writer)
    certain = [20] + [int(line) for line in out.split() if line.isdigit()]
    content = (house.served / "written").read_bytes()
    for n in range(1, max(certain) + 1):
        hold(content[(n - 1) * 40_000:n * 40_000] == n.to_bytes(4, "little") * 10_000, "block", n, "of", max(certain), "acknowledged is lost")
    if status == 0:
        hold("closed" in out and len(content) == 120 * 40_000, "it ended well with", len(content), "bytes")
    else:
        hold("OSError" in err, "no errno but:", err[-300:])
    return status


@scenario
def killed_while_writing(house):
    """The server is gone for good: an error, and nothing lost that was acknowledged."""
    hold(checked_writer(house) != 0, "writing to a dead server succeeded")


@scenario
def killed_while_writing_and_restarted(house):
    """The server comes back: all there, or an error; nothing lost that was acknowledged."""
    checked_writer(house, restart_after=0.5)


def checked_ending(house, program, restart):
    service = house.serve()
    writer = started(house, f"{service.uri}/far", program)
    writer.stdout.readline()
    service.kill()
    if restart:
        service.restart()
    status, out, err = outcome(writer)
    content = (house.served / "written").read_bytes() if (house.served / "written").exists() else b""
    if "acknowledged" in out:
        hold(content == bytes(range(256)) * 20_000, "acknowledged, but", len(content), "bytes are there")
    else:
        hold(status != 0 and "refused" in out, "neither acknowledged nor refused:", err[-300:])


@scenario
def killed_before_fsync(house):
    """fsync after the server's death fails."""
    checked_ending(house, BEFORE_FSYNC, restart=False)


@scenario
def killed_before_fsync_and_restarted(house):
    """fsync after a restart: acknowledged means there."""
    checked_ending(house, BEFORE_FSYNC, restart=True)


@scenario
def killed_before_close(house):
    """close after the server's death does not swallow the loss."""
    checked_ending(house, CLOSE_ONLY, restart=False)


@scenario
def killed_before_close_and_restarted(house):
    """close after a restart: acknowledged means there."""
    checked_ending(house, CLOSE_ONLY, restart=True)


@scenario
def new_programs_after_a_restart(house):
    """A socket file that a killed service left behind does not keep the next one from starting."""
    service = house.serve()
    service.kill()
    service.restart()
    done = house.run(f"{service.uri}/far", "cat /far/file.txt")
    hold(done.returncode == 0 and "second line" in done.stdout, done.stderr)


@scenario
def relay_loses_its_far_side(house):
    """A relay whose far side died gives errors, and works again when the far side is back."""
    far = house.serve(listen="tcp:127.0.0.1:0")
    relay = house.serve(export=f"far={far.uri}/far")
    hold("second line" in house.run(f"{relay.uri}/far", "cat /far/file.txt").stdout)
    far.kill()
    clear_sentence(house.run(f"{relay.uri}/far", "cat /far/file.txt", seconds_max=60))
    hold(relay.alive(), "the relay died with it")
    far.restart()
    done = house.run(f"{relay.uri}/far", "cat /far/file.txt")
    hold("second line" in done.stdout, done.stderr)


@scenario
def killed_clients_leave_nothing(house):
    """Twenty clients killed in the middle of writing: the service forgets them, others work on."""
    large(house)
    service = house.serve()
    uri = f"{service.uri}/far"
    hold(house.run(uri, "cat /far/file.txt").returncode == 0)
    before = open_descriptors(service.pid)
    for n in range(20):
        client = house.start([house.sluice, "run", "--map", f"/far={uri}", "--", "dd", "if=/dev/zero", f"of=/far/junk{n}", "bs=10k"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda n=n: (house.served / f"junk{n}").exists() and (house.served / f"junk{n}").stat().st_size > 0, 10)
        client.kill()
        client.wait()
        (house.served / f"junk{n}").unlink(missing_ok=True)
    done = house.run(uri, "sha256sum /far/large; cat /far/file.txt")
    hold(done.returncode == 0 and "second line" in done.stdout, done.stderr)
    wait_until(lambda: open_descriptors(service.pid) <= before + 3, 5)
    hold(open_descriptors(service.pid) <= before + 3, "descriptors grew from", before, "to", open_descriptors(service.pid))


@scenario
def two_clients_undisturbed(house):
    """While one client is killed and another sends noise, a third reads the right bytes."""
    digest = large(house)
    service = house.serve()
    reader = started(house, f"{service.uri}/far", READER)
    for n in range(3):
        victim = house.start([house.sluice, "run", "--map", f"/far={service.uri}/far", "--", "dd", "if=/far/large", f"of=/far/copy{n}", "bs=4k"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        victim.kill()
        victim.wait()
    status, out, err = outcome(reader)
    hold(status == 0 and out.splitlines()[-1] == f"sha256 {digest}", err[-300:])


@scenario
def terminated_politely(house):
    """SIGTERM ends a service in seconds, with a client in the middle, and its socket file is gone."""
    large(house)
    service = house.serve()
    reader = started(house, f"{service.uri}/far", READER)
    reader.stdout.readline()
    hold(service.stop(), "SIGTERM was not enough")
    hold(not list(house.scratch.glob("*.sock")), "the socket file is still there")
    status, out, err = outcome(reader)
    hold(status != 0 and "OSError" in err, "the reader ended with", status, err[-200:])
