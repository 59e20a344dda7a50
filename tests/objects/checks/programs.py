"""Programs that know nothing of buckets."""

import hashlib
import os
import signal
import subprocess
import time

from house.checking import Skip, want
from objects.scene import PYTHON, bytes_of, check

MIB = 1 << 20


@check
def programs_read_objects(scene):
    content = bytes_of(30 * MIB + 7)
    scene.put("some dir/größe.bin", content)
    uri = "s3://bucket/some dir/größe.bin"
    said = scene.sluice_run("sha256sum", uri).stdout.split()[0].decode()
    want(said == hashlib.sha256(content).hexdigest(), said)
    want(scene.sluice_run("cat", uri).stdout == content, "cat")
    part = scene.sluice_run("tail", "-c", "1000", uri).stdout
    want(part == content[-1000:], "tail")
    target = scene.scratch / "copy"
    scene.sluice_run("cp", uri, target)
    want(target.read_bytes() == content, "cp")
    names = scene.sluice_run("ls", "s3://bucket/some dir").stdout.decode()
    want(names == "größe.bin\n", names)


@check
def programs_write_objects(scene):
    content = bytes_of(30 * MIB + 7)
    source = scene.scratch / "source"
    source.write_bytes(content)
    scene.sluice_run("cp", source, "s3://bucket/copied")
    want(scene.held("copied") == content, "cp")
    scene.sluice_run("bash", "-c", f"cat {source} > s3://bucket/redirected")
    want(scene.held("redirected") == content, "a shell's redirection")
    scene.sluice_run("bash", "-c", "{ echo one; cat; echo three; } > s3://bucket/together", input=b"two\n")
    want(scene.held("together") == b"one\ntwo\nthree\n", "what several programs write together")
    scene.sluice_run("bash", "-c", "(echo one; exec echo two) > s3://bucket/became")
    want(scene.held("became") == b"one\ntwo\n", "a program that becomes another one")
    scene.sluice_run("dd", f"if={source}", "of=s3://bucket/dd", "bs=64k", "conv=fsync", "status=none")
    want(scene.held("dd") == content, "dd conv=fsync")
    scene.sluice_run("mv", "s3://bucket/dd", "s3://bucket/moved")
    want(scene.held("moved") == content and scene.held("dd") is None, "mv")
    scene.sluice_run("rm", "s3://bucket/moved")
    want(scene.held("moved") is None, "rm")


@check
def mapped_prefixes_and_stores_lead_to_buckets(scene):
    scene.put("base/data/in.txt", b"content\n")
    options = ("--map", "/far=s3://bucket/base")
    said = scene.sluice_run("bash", "-c", "cd /far/data && sort in.txt > out.txt && pwd", options=options)
    want(said.stdout == b"/far/data\n", said.stdout)
    want(scene.held("base/data/out.txt") == b"content\n", "written below a mapped prefix")
    said = scene.sluice_run("cat", "scdc:///x/data/in.txt", options=("--store", "x=s3://bucket/base"))
    want(said.stdout == b"content\n", said.stdout)
    script = "print(open('s' + '3:/' + '/bucket/base/data/in.txt').read(), end='')"
    said = scene.sluice_run(PYTHON, "-c", script, options=("--objects",))
    want(said.stdout == b"content\n", said.stdout)


@check
def h5py_reads_an_object(scene):
    try:
        import h5py
        import numpy
    except ImportError:
        raise Skip("python3-h5py is not installed") from None
    values = numpy.random.default_rng(1).random((400, 500, 20))
    with h5py.File(scene.scratch / "x.h5", "w") as file:
        file.create_dataset("grid", data=values, chunks=(50, 50, 20))
    scene.put("x.h5", (scene.scratch / "x.h5").read_bytes())
    script = """
import h5py, sys
with h5py.File(sys.argv[1], "r") as file:
    print(repr(float(file["grid"][10:390:7, 3::11, 5].sum())))
"""
    said = scene.sluice_run(PYTHON, "-c", script, "s3://bucket/x.h5", seconds_max=120).stdout.decode().strip()
    want(said == repr(float(values[10:390:7, 3::11, 5].sum())), said)


@check
def what_objects_cannot_do_is_an_error_that_says_so(scene):
    scene.put("file", b"content")
    said = scene.sluice_run("bash", "-c", "echo more >> s3://bucket/file", expect=1)
    want(b"not supported" in said.stderr, said.stderr)
    want(scene.held("file") == b"content", "the object is as it was")
    want("sluice run --log" in scene.agent_log(), scene.agent_log())
    said = scene.sluice_run("cat", "s3://nowhere/file", expect=1)
    want(b"No such file" in said.stderr, said.stderr)
    want("there is no such bucket" in scene.agent_log(), scene.agent_log())


@check
def errors_at_the_end_are_errors_of_close(scene):
    scene.start()
    scene.environment["AWS_SECRET_ACCESS_KEY"] = "wrong"
    said = scene.sluice_run("bash", "-c", "echo x > s3://bucket/file", expect=None)
    want(said.returncode != 0, "a write that cannot be is no success")
    script = """
import os, signal, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b"x")
os.kill(int(sys.argv[2]), signal.SIGKILL)
try:
    os.close(fd)
except OSError as error:
    print("close:", error.strerror)
"""
    scene.environment["AWS_SECRET_ACCESS_KEY"] = "secret-of-the-example"
    said = scene.sluice_run(PYTHON, "-c", script, "s3://bucket/file", str(scene.server.pid)).stdout
    want(said.startswith(b"close:"), said)


@check
def a_killed_writer_leaves_no_object(scene):
    scene.put("file", b"former")
    script = """
import os, sys, time
file = open(sys.argv[1], "wb", buffering=0)
for n in range(30):
    file.write(bytes(1 << 20))
print("written", flush=True)
time.sleep(60)
"""
    scene.start()
    command = [scene.sluice, "run", "--", PYTHON, "-c", script, "s3://bucket/file"]
    process = subprocess.Popen(command, env=scene.environment, stdout=subprocess.PIPE)
    want(process.stdout.readline() == b"written\n", "the program writes")
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)
    want(scene.held("file") == b"former", "what was there before is still there")


@check
def one_agent_serves_all_and_ends_by_itself(scene):
    scene.put("file", b"content")
    scene.start()
    command = [scene.sluice, "run", "--", "bash", "-c", "cat s3://bucket/file; sleep 1"]
    processes = [subprocess.Popen(command, env=scene.environment, stdout=subprocess.PIPE) for _ in range(6)]
    time.sleep(0.5)
    for process in processes:
        want(process.communicate()[0] == b"content", "each reads")
    want(len(scene.agents()) == 1, f"agents: {scene.agents()}")
    mode = os.stat(next(scene.runtime.glob("sluice/objects-*.sock")).parent).st_mode & 0o777
    want(mode == 0o700, f"the directory of its socket has mode {mode:o}")
    scene.environment["AWS_REGION"] = "elsewhere"
    scene.sluice_run("cat", "s3://bucket/file")
    want(len(scene.agents()) == 2, "other settings, another agent")
    end = time.monotonic() + 15
    while scene.agents() and time.monotonic() < end:
        time.sleep(0.1)
    want(not scene.agents(), "agents end when nobody needs them")
