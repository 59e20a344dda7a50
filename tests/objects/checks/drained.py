"""Programs that write through a log whose target is a bucket."""

from house.checking import want
from house.suite import only_full
from objects.scene import PYTHON, bytes_of, check

MIB = 1 << 20
BIG = 21 * MIB + 12345
MAPPED = ("--map", "/far=s3://bucket/out")


def log_of(scene, name="log"):
    return scene.scratch / name


def through(scene, *command, to="s3://bucket/out", name="log", options=(), **more):
    """Runs a program that writes through a log to the bucket."""
    return scene.sluice_run(*command, options=(*options, "--log", log_of(scene, name), "--to", to), **more)


def settle(scene, name="log"):
    """Until the bucket has what counts; the log must be whole."""
    scene.command("log", "drain", log_of(scene, name), seconds_max=120)
    scene.command("log", "verify", log_of(scene, name))


def shell(scene, script, **more):
    return through(scene, "bash", "-ec", script, **more)


def everything(scene):
    """Keys and contents below the target."""
    root = scene.bucket / "out"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def writes_become_objects(scene):
    big, small = bytes_of(BIG), bytes_of(1000, 2)
    (scene.scratch / "big").write_bytes(big)
    (scene.scratch / "small").write_bytes(small)
    shell(scene, f"""
        cp {scene.scratch}/big s3://bucket/out/big
        mkdir 's3://bucket/out/a name'
        cp {scene.scratch}/small 's3://bucket/out/a name/größe & ?.bin'
        printf x > s3://bucket/out/one
        : > s3://bucket/out/empty
        cmp {scene.scratch}/big s3://bucket/out/big
    """)
    settle(scene)
    want(everything(scene) == {"big": big, "a name/größe & ?.bin": small, "one": b"x", "empty": b""}, "written")
    # A next version, of a file that the log has nothing of any more: appended to, changed in the middle, cut, extended.
    script = f"""
import os
file = os.open("s3://bucket/out/big", os.O_RDWR)
assert os.pread(file, 9, {10 * MIB}) == {big[10 * MIB:10 * MIB + 9]!r}
os.pwrite(file, b"changed", {10 * MIB})
os.lseek(file, 0, os.SEEK_END)
os.write(file, b"appended")
assert os.pread(file, 9, {10 * MIB}) == b"changed" + {big[10 * MIB + 7:10 * MIB + 9]!r}
os.close(file)
os.truncate("s3://bucket/out/one", 0)
os.truncate("s3://bucket/out/empty", 5)
"""
    through(scene, PYTHON, "-c", script)
    settle(scene)
    found = everything(scene)
    changed = big[:10 * MIB] + b"changed" + big[10 * MIB + 7:] + b"appended"
    want(found["big"] == changed, "changed and appended to")
    want((found["one"], found["empty"]) == (b"", bytes(5)), "cut and extended")


def names_change(scene):
    big = bytes_of(BIG, 3)
    (scene.scratch / "big").write_bytes(big)
    shell(scene, f"""
        cd /far
        mkdir d e
        cp {scene.scratch}/big d/first
        echo old > d/final
        sync d/final
        cp {scene.scratch}/big d/new && mv d/new d/final
        echo gone > d/gone; rm d/gone
        mv d/first e/moved
        cmp {scene.scratch}/big e/moved
        chmod 600 e/moved && touch -d 2001-01-01 e/moved
    """, options=MAPPED)
    settle(scene)
    want(everything(scene) == {"d/final": big, "e/moved": big}, list(everything(scene)))
    refused = """
import errno, os
def number(call, *words):
    try:
        call(*words)
    except OSError as error:
        return error.errno
os.chdir("/far")
assert number(os.symlink, "x", "link") == errno.EOPNOTSUPP
assert number(os.link, "d/final", "link") == errno.EOPNOTSUPP
assert number(os.rename, "d", "f") == errno.EXDEV
assert number(os.mkdir, "a\\nb") == errno.EINVAL
assert number(open, "x" * 255 + "/y", "w") == errno.ENOENT
os.rename("e/moved", "e/again")
with open("e/again", "rb+") as file:
    file.seek(5); file.write(b"!"); os.fsync(file.fileno())
    os.rename("e/again", "d/final")
    file.seek(0)
    assert file.read(8) == %r
os.remove("d/final"); os.rmdir("d"); os.rmdir("e")
with open("last", "w") as file: file.write("last")
""" % (big[:5] + b"!" + big[6:8],)
    through(scene, PYTHON, "-c", refused, options=MAPPED)
    settle(scene)
    want(everything(scene) == {"last": b"last"}, list(everything(scene)))


@check
def what_goes_through_a_log_becomes_objects(scene):
    scene.start()
    writes_become_objects(scene)


@check
def what_goes_through_a_log_becomes_objects_of_versitygw(scene):
    scene.use_versitygw()
    spoiled = scene.spoil(lambda kind, path: None)
    writes_become_objects(scene)
    want(scene.other.unfinished() == 0, "uploads are left behind")
    want(spoiled.count("complete") >= 2, "it did not come in parts")


@check
@only_full
def what_goes_through_a_log_becomes_objects_of_s3proxy(scene):
    scene.use_s3proxy()
    writes_become_objects(scene)


@check
@only_full
def names_that_change_in_the_log_change_in_s3proxy(scene):
    scene.use_s3proxy()
    names_change(scene)


@check
def names_that_change_in_the_log_change_in_the_bucket(scene):
    scene.start()
    names_change(scene)


@check
def names_that_change_in_the_log_change_in_versitygw(scene):
    scene.use_versitygw()
    names_change(scene)
