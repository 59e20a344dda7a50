"""Files as programs use them: read, written, mapped, renamed, removed, many of them."""

import concurrent.futures
import os
import sqlite3
import subprocess
import time

from house.checking import Failed, run, tool, want
from mount.scene import bytes_of, check, mib, on_disk, python


@check
def places_of_every_kind(scene):
    """A directory, memory, a relay of a relay: the same front over other stores."""
    data = bytes_of(mib(3) + 17)
    uri = scene.uri()
    for place in (scene.served, "mem:", uri, "scdc:///y"):
        options = ("--store", f"y={uri}") if place == "scdc:///y" else ()
        root = scene.mount(*options, place=place)
        (root / "d").mkdir()
        (root / "d" / "f").write_bytes(data)
        want((root / "d" / "f").read_bytes() == data, f"{place}: other bytes")
        want(os.listdir(root) == ["d"] and os.listdir(root / "d") == ["f"], f"{place}: listing")
        os.remove(root / "d" / "f")
        os.rmdir(root / "d")
        want(scene.mounted.stop(), f"{place}: not unmounted by SIGTERM")
    want(os.listdir(scene.served) == [], "something is left")


@check
def mapped_writes(scene):
    root = scene.mount()
    data = bytearray(bytes_of(mib(2) + 5))
    (root / "f").write_bytes(data)
    python("""if True:
        import mmap, os, sys
        fd = os.open(sys.argv[1], os.O_RDWR)
        m = mmap.mmap(fd, 0)
        m[10:20] = b"0123456789"
        m[1048570:1048586] = b"x" * 16
        m[-3:] = b"end"
        m.flush()
        os.pwrite(fd, b"W", 0)
        assert m[:1] == b"W", "a write is not seen in the mapping"
        m[5:6] = b"M"
        m.close(); os.close(fd)
        """, root / "f")
    data[10:20], data[1048570:1048586], data[-3:] = b"0123456789", b"x" * 16, b"end"
    data[0:1], data[5:6] = b"W", b"M"
    want((root / "f").read_bytes() == data, "the mount has other bytes")
    want(on_disk(scene.served / "f") == data, "the store has other bytes")


@check
def mapped_writes_of_an_appending_descriptor(scene):
    """The kernel writes pages through any opening; one that appends must not append them."""
    root = scene.mount()
    (root / "f").write_bytes(b"a" * 8192)
    python("""if True:
        import mmap, os, sys
        fd = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)
        m = mmap.mmap(fd, 8192)
        m[0:4] = b"page"
        m.flush(); m.close()
        os.write(fd, b"tail")
        """, root / "f")
    want(on_disk(scene.served / "f") == b"page" + b"a" * 8188 + b"tail", "pages were appended")


@check
def renamed_and_removed_while_open(scene):
    root = scene.mount()
    (root / "f").write_bytes(b"first")
    with open(root / "f", "r+b", buffering=0) as file:
        os.rename(root / "f", root / "g")
        file.write(b"FIRST")
        (root / "f").write_bytes(b"other")
        want(on_disk(scene.served / "g") == b"FIRST", "after a rename")
        os.remove(root / "g")
        want(not (scene.served / "g").exists(), "the removed name is there")
        file.seek(0)
        want(file.read() == b"FIRST", "content after removal")
        file.write(b"+more")
        os.ftruncate(file.fileno(), 7)
        found = os.fstat(file.fileno())
        want((found.st_size, found.st_nlink) == (7, 0), f"fstat after removal: {found}")
    want(os.listdir(root) == ["f"], "names in the end")
    os.mkdir(root / "d")
    (root / "d" / "x").write_bytes(b"x")
    with open(root / "d" / "x", "rb", buffering=0) as file:
        os.rename(root / "d", root / "e")
        want(file.read() == b"x" and (root / "e" / "x").read_bytes() == b"x", "below a renamed directory")
    (root / "target").write_bytes(b"old")
    with open(root / "target", "rb") as old:
        (root / "new").write_bytes(b"new")
        os.replace(root / "new", root / "target")
        want(old.read() == b"old" and (root / "target").read_bytes() == b"new", "a replaced file")


@check
def ten_thousand_files(scene):
    """Most are made at the store, which is quicker; all are looked at through the mount."""
    root = scene.mount()
    (root / "many").mkdir()
    for number in range(10_000):
        directory = root if number % 5 == 0 else scene.served
        with open(directory / "many" / f"f{number}", "wb", buffering=0) as file:
            file.write(b"%d" % number)
    names = os.listdir(root / "many")
    want(sorted(names) == sorted(f"f{number}" for number in range(10_000)), f"{len(names)} names")
    entries = {entry.name: (entry.stat(), entry.inode()) for entry in os.scandir(root / "many")}
    total = sum(found.st_size for found, _ in entries.values())
    want(total == sum(len(str(number)) for number in range(10_000)), "sizes")
    want(all(found.st_ino == inode for found, inode in entries.values()), "inode numbers")
    want(len({inode for _, inode in entries.values()}) == 10_000, "inode numbers that are not unique")
    for name in names[1000:]:
        os.remove(scene.served / "many" / name)
    run("rm", "-r", root / "many", seconds_max=300)
    want(os.listdir(scene.served) == [], "something is left")


@check
def sqlite_transactions(scene):
    root = scene.mount()
    for mode in ("delete", "wal"):
        base = sqlite3.connect(root / f"{mode}.db")
        base.execute(f"pragma journal_mode={mode}")
        base.execute("create table t(a integer primary key, b blob)")
        with base:
            base.executemany("insert into t values(?, ?)", ((n, bytes_of(100, n)) for n in range(5000)))
        base.execute("delete from t where a % 3 = 0")
        base.commit()
        base.execute("vacuum")
        want(base.execute("pragma integrity_check").fetchone() == ("ok",), f"{mode}: integrity")
        base.close()
    want(sqlite3.connect(scene.served / "delete.db").execute("select count(*) from t").fetchone() == (3333,),
         "as the store has it")


@check
def git_clone_and_commit(scene):
    git = tool("git")
    root = scene.mount()
    near = scene.scratch / "near"
    near.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(scene.scratch), "GIT_CONFIG_NOSYSTEM": "1",
                   "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
                   "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
    def call(*words, at):
        return run(git, "-C", at, *words, env=environment).stdout
    call("init", "-q", ".", at=near)
    for number in range(100):
        (near / f"f{number}").write_bytes(bytes_of(2000, number))
    call("add", ".", at=near)
    call("commit", "-qm", "one", at=near)
    run(git, "clone", "-q", near, root / "far", env=environment)
    call("fsck", "--full", "--strict", at=root / "far")
    (root / "far" / "f7").write_bytes(b"changed")
    call("commit", "-qam", "two", at=root / "far")
    call("gc", "-q", at=root / "far")
    call("pull", "-q", root / "far", at=near)
    want((near / "f7").read_bytes() == b"changed", "what was pulled")
    want(call("status", "--porcelain", at=root / "far") == b"", "status after all")


@check
def many_readers_and_writers(scene):
    """Processes that append to one file, and threads that read and write parts of another."""
    root = scene.mount()
    writer = """if True:
        import os, sys
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for number in range(200):
            os.write(fd, b"%s %6d\\n" % (sys.argv[2].encode(), number))
        """
    running = [subprocess.Popen(["/usr/bin/python3", "-c", writer, str(root / "log"), f"writer{n}"])
               for n in range(4)]
    want(all(process.wait(60) == 0 for process in running), "a writer failed")
    lines = on_disk(scene.served / "log").decode().splitlines()
    want(sorted(lines) == sorted(f"writer{n} {number:6}" for n in range(4) for number in range(200)),
         f"{len(lines)} lines, some not whole")
    want((root / "log").read_bytes() == on_disk(scene.served / "log"), "the mount shows other lines")

    data = bytes_of(mib(16))
    part = mib(1)
    with open(root / "big", "wb", buffering=0) as file:
        def write(number):
            os.pwrite(file.fileno(), data[number * part:(number + 1) * part], number * part)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(16)))
    with open(root / "big", "rb", buffering=0) as file:
        def read(number):
            return os.pread(file.fileno(), part, number * part)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = b"".join(pool.map(read, range(16)))
    want(found == data == on_disk(scene.served / "big"), "other bytes")


@check
def what_others_write(scene):
    """Close-to-open with writers that do not use the mount."""
    root = scene.mount()
    for number in range(50):
        # Another size each time, the same size each time, and another file under the name.
        for content in (b"x" * number, b"%04d" % number):
            (scene.served / "f").write_bytes(content)
            want((root / "f").read_bytes() == content, f"round {number}: old content")
        (scene.served / "new").write_bytes(b"new %d" % number)
        os.replace(scene.served / "new", scene.served / "f")
        want((root / "f").read_bytes() == b"new %d" % number, f"round {number}: the replaced file")
        want((root / "f").stat().st_size == len(b"new %d" % number), f"round {number}: size")
    with open(root / "f", "rb", buffering=0) as file:
        file.read()
        with open(scene.served / "f", "ab") as other:
            other.write(b" grown")
        end = time.monotonic() + 5
        grown = b""
        while not grown and time.monotonic() < end:
            time.sleep(0.05)
            grown = file.read()
        want(grown == b" grown", f"growth of an open file: {grown}")
    (scene.served / "gone").write_bytes(b"")
    os.stat(root / "gone")
    os.remove(scene.served / "gone")
    want(not (root / "gone").exists(), "a removed file is still there")
    run(scene.sluice, "run", "--map", f"/far={scene.uri()}", "--", "sh", "-c", "echo carried > /far/f")
    want((root / "f").read_bytes() == b"carried\n", "what `sluice run` wrote")


@check
def attributes_and_names(scene):
    root = scene.mount()
    (root / "f").write_bytes(b"1234567890")
    os.chmod(root / "f", 0o640)
    os.utime(root / "f", ns=(1_000_000_001, -1_500_000_000))
    found, real = os.stat(root / "f"), os.stat(scene.served / "f")
    for field in ("st_mode", "st_uid", "st_gid", "st_size", "st_nlink", "st_blocks", "st_atime_ns",
                  "st_mtime_ns", "st_ctime_ns"):
        want(getattr(found, field) == getattr(real, field), f"{field}: {found} {real}")
    want(found.st_mtime_ns == -1_500_000_000, f"before 1970: {found.st_mtime_ns}")
    os.symlink("f", root / "s")
    os.link(root / "f", root / "h")
    want(os.readlink(root / "s") == "f" and os.stat(root / "h").st_ino == found.st_ino, "links")
    want(os.stat(root / "f").st_nlink == 2, "link count")
    os.truncate(root / "f", 4)
    want((root / "h").read_bytes() == b"1234", "truncate")
    odd = os.fsencode(root) + b"/\xff\xfe \n\\"
    os.close(os.open(odd, os.O_CREAT | os.O_WRONLY))
    want(b"\xff\xfe \n\\" in os.listdir(os.fsencode(root)), "a name of odd bytes")
    for call, errno in ((lambda: os.mkdir(root / "f"), "EEXIST"),
                        (lambda: os.rmdir(root / "f"), "ENOTDIR"),
                        (lambda: os.remove(root / "missing"), "ENOENT"),
                        (lambda: os.mkfifo(root / "fifo"), "EPERM"),
                        (lambda: (root / ("n" * 256)).write_bytes(b""), "ENAMETOOLONG")):
        expect_errno(call, errno)
    try:
        os.setxattr(root / "f", "user.k", b"v")
    except OSError as error:
        want(error.errno == 95, f"setxattr: {error}")
    else:
        want(os.getxattr(root / "h", "user.k") == b"v" and os.listxattr(root / "f") == ["user.k"], "xattr")
        os.removexattr(root / "f", "user.k")
        expect_errno(lambda: os.getxattr(root / "f", "user.k"), "ENODATA")
    want(os.statvfs(root).f_blocks == os.statvfs(scene.served).f_blocks, "statvfs")


def expect_errno(call, name):
    import errno
    try:
        call()
    except OSError as error:
        want(errno.errorcode[error.errno] == name, f"{error}, should be {name}")
    else:
        raise Failed(f"no error, should be {name}")


@check
def files_without_a_size(scene):
    """proc(5) makes its files up as they are read."""
    root = scene.mount(place="/proc/sys/kernel")
    want((root / "ostype").read_bytes() == b"Linux\n", "a file that says it has 0 bytes")
