"""One object from the logs of several nodes: the home of a job fetches what lies on the others, and puts it together."""

import os
import signal
import subprocess

from house.checking import Failed, run, want
from log.carriers import through_nodes
from objects.checks.formats import parts, stacks_of
from objects.scene import check

RANKS, EPOCHS, EACH = 4, 6, 200
SECONDS_MAX = 120


def logs_of(scene):
    return [scene.scratch / f"node.log{node}" for node in range(2)]


def write(scene, stack, flags=()):
    """Ranks on two nodes write one file; returns what it should hold."""
    program = parts(lambda: stack.compiled("epochs.c"))
    plan = ("mixed", "independent", "sync", EPOCHS, EACH)
    beside, told = scene.scratch / "beside", [scene.scratch / name for name in ("told", "told-beside")]
    for directory in (beside, *told):
        directory.mkdir()
    environment = scene.environment | stack.library.environment
    run(*stack.launch(RANKS, [program, told[1], beside, *plan]), env=environment)
    # Open MPI's launcher has no such address among its arguments: the prefix is mapped.
    way = through_nodes(scene.sluice, logs_of(scene), scene.scratch / "meeting", "s3://bucket/out",
                        flags=("--map", "/far=s3://bucket/out", *flags))
    run(*stack.launch(RANKS, [*way, program, told[0], "/far", *plan]), env=environment, seconds_max=SECONDS_MAX)
    return {path.name: path.read_bytes() for path in beside.iterdir()}


def want_the_same(scene, expected):
    root = scene.bucket / "out"
    found = {path.name: path.read_bytes() for path in root.iterdir()} if root.exists() else {}
    want(sorted(found) == sorted(expected), f"objects: {sorted(found)}")
    for name, content in expected.items():
        want(found[name] == content, name)


@check
def ranks_on_two_nodes_write_one_object(scene):
    scene.be_served()
    for stack in stacks_of(scene, "mpich"):
        expected = write(scene, stack)
        for log in logs_of(scene):
            scene.command("log", "drain", log, seconds_max=SECONDS_MAX)
            scene.command("log", "verify", log)
        want_the_same(scene, expected)


@check
def after_a_crash_of_two_nodes_one_object_is_made_of_both_logs(scene):
    scene.be_served()
    for stack in stacks_of(scene, "mpich"):
        # No byte is in the bucket before all agents are killed; that the file was created may be known there.
        expected = write(scene, stack, flags=("--log-bandwidth", "1"))
        agents = scene.log_agents()
        want(len(agents) == 2, f"{len(agents)} agents")
        for agent in agents:
            os.kill(agent, signal.SIGKILL)
        there = [path.name for path in (scene.bucket / "out").glob("*") if path.stat().st_size > 0]
        want(not there, f"objects that hold something already: {there}")
        begun = [subprocess.Popen([scene.sluice, "log", "recover", log], env=scene.environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for log in logs_of(scene)]
        try:
            for recover in begun:
                said, _ = recover.communicate(timeout=SECONDS_MAX)
                want(recover.returncode == 0, said[-600:])
        except subprocess.TimeoutExpired:
            raise Failed("recover has not ended") from None
        finally:
            for recover in begun:
                recover.kill()
        want_the_same(scene, expected)
