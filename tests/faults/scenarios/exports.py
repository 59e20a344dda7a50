"""What an export must keep in, keep out, and keep unchanged."""

import contextlib
import os
import subprocess

from faults.scenario import Skip, clear_sentence, hold, scenario
from house import ninep, tree

SECRET = "must not be seen from outside"


# What a program sees that asks first: access(2) and statvfs(3) as on a read-only mount.
LOOKS_READ_ONLY = {
    "access": '''
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
ask = lambda path, mode: ctypes.get_errno() if libc.access(path, mode) else 0
assert ask(b"/far/file.txt", 4) == 0
print(ask(b"/far/file.txt", 2), ask(b"/far", 2), ask(b"/far/file.txt", 6))
''',
    "flags": '''
import os
at = os.open("/far/file.txt", os.O_RDONLY)
print(*(found.f_flag & os.ST_RDONLY for found in
        (os.statvfs("/far"), os.statvfs("/far/file.txt"), os.fstatvfs(at), os.statvfs("/far/dir"))))
''',
}


@scenario
def read_only_export(house):
    """Every change is EROFS; reading works; nothing changes."""
    uri = house.serve("--read-only").uri
    before = tree.snapshot(house.served)
    for script in ("echo x > /far/file.txt", "echo x >> /far/file.txt", "echo x > /far/new", "rm /far/file.txt", "mkdir /far/d2",
                   "mv /far/file.txt /far/other", "chmod 600 /far/file.txt", "touch -d 2001-01-01 /far/file.txt",
                   "ln -s x /far/s", "ln /far/file.txt /far/h", "truncate -s 5 /far/file.txt", "rmdir /far/dir",
                   "dd if=/dev/zero of=/far/file.txt bs=1 count=1 conv=notrunc", "cp /etc/hostname /far/"):
        clear_sentence(house.run(f"{uri}/far", script), "Read-only file system")
    done = house.run(f"{uri}/far", "cat /far/file.txt; ls /far; exec 3< /far/dir/inner.txt; cat <&3")
    hold(done.returncode == 0 and "second line" in done.stdout and "inside" in done.stdout, done.stderr)
    for what, expected in (("access", "30 30 30"), ("flags", "1 1 1 1")):
        done = house.run(f"{uri}/far", f"python3 -c '{LOOKS_READ_ONLY[what]}'")
        hold(done.stdout.strip() == expected, what, done.stdout, done.stderr)
    clear_sentence(house.cli("rm", f"{uri}/far/file.txt"), "read-only")
    clear_sentence(house.cli("mkdir", f"{uri}/far/d3"), "read-only")
    hold(not tree.differences(before, tree.snapshot(house.served)), tree.differences(before, tree.snapshot(house.served)))


def lay_traps(house):
    """A secret beside the export, and every kind of link to it."""
    outside = house.scratch / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    for name, target in (("absolute", outside / "secret"), ("relative", "../outside/secret"), ("directory", outside),
                         ("up", ".."), ("deep", "dir/../../outside/secret"), ("etc", "/etc/passwd")):
        os.symlink(target, house.served / name)
    os.symlink(outside / "made", house.served / "dangling-out")
    return outside


@scenario
def symlinks_that_leave(house):
    """A link that leaves the export is an error, to readers and to writers."""
    outside = lay_traps(house)
    before = tree.snapshot(outside)
    uri = house.serve().uri
    for name in ("absolute", "relative", "deep", "directory/secret", "up/outside/secret", "etc"):
        done = house.cli("cat", f"{uri}/far/{name}")
        hold(SECRET not in done.stdout and "root:" not in done.stdout, "read through", name)
        clear_sentence(done, name)
        done = house.run(f"{uri}/far", f"cat /far/{name}")
        hold(SECRET not in done.stdout and "root:" not in done.stdout, "a program read through", name)
        clear_sentence(done, name)
    for name in ("absolute", "relative", "dangling-out", "directory/made", "up/outside/made"):
        clear_sentence(house.run(f"{uri}/far", f"echo changed > /far/{name}"))
        clear_sentence(house.run(f"{uri}/far", f"mkdir /far/{name}/d"))
    clear_sentence(house.run(f"{uri}/far", "rm /far/directory/secret"))
    hold(not tree.differences(before, tree.snapshot(outside)), "outside was changed")
    done = house.run(f"{uri}/far", "readlink /far/relative; ls -l /far | wc -l; rm /far/up; cat /far/file.txt")
    hold(done.returncode == 0 and "../outside/secret" in done.stdout, "the links themselves are ordinary:", done.stderr)


@scenario
def links_that_stay(house):
    """Links within the export work, relative and absolute from its root or not at all."""
    os.symlink("dir/inner.txt", house.served / "inner")
    os.symlink("../file.txt", house.served / "dir" / "upwards")
    uri = house.serve().uri
    done = house.run(f"{uri}/far", "cat /far/inner /far/dir/upwards; cat /far/dir/../file.txt")
    hold(done.returncode == 0 and done.stdout.startswith("inside\nthe first"), done.stderr)


@scenario
def dot_dot_stays_inside(house):
    """`..` at the root of an export, walked by hand or written in an address, stays in it."""
    lay_traps(house)
    uri = house.serve().uri
    for path in ("far/../outside/secret", "far/../../outside/secret", "far/dir/../../outside/secret", "../outside/secret"):
        done = house.cli("cat", f"{uri}/{path}")
        hold(SECRET not in done.stdout, "left through", path)
        clear_sentence(done)
    with ninep.Wire(uri) as wire:
        wire.begin("far")
        for names in (["..", "..", "outside", "secret"], ["dir", "..", "..", "..", "outside", "secret"], ["up", "outside", "secret"],
                      ["../outside/secret"], ["dir/../../outside/secret"], ["relative"], ["absolute"], ["/etc/passwd"], ["directory", "secret"]):
            kind, _, body = wire.ask(ninep.walk(1, 2, *names))
            if kind != ninep.TWALK + 1 or len(body) < 2 + 13 * len(names):
                continue
            kind, _, body = wire.ask(ninep.lopen(2))
            if kind == ninep.TLOPEN + 1:
                kind, _, body = wire.ask(ninep.read(2, 0, 1000))
                hold(SECRET.encode() not in body and b"root:" not in body, "walked out by", names)
            wire.ask(ninep.clunk(2))


@scenario
def special_files_are_not_entered(house):
    """A fifo in the export must not hang its service, nor a client."""
    os.mkfifo(house.served / "fifo")
    uri = house.serve().uri
    done = house.run(f"{uri}/far", "ls -l /far/fifo; timeout 5 cat /far/fifo; cat /far/file.txt", seconds_max=30)
    hold("second line" in done.stdout, "the service did not survive a fifo:", done.stderr)
    hold("second line" in house.cli("cat", f"{uri}/far/file.txt", seconds_max=10).stdout, "the service hangs on the fifo")


def mount_small(house):
    """A file system of two mebibytes, gone with the scenario."""
    if os.geteuid() != 0:
        raise Skip("mounting a small tmpfs needs root")
    small = house.scratch / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True).returncode != 0:
        raise Skip("mounting a tmpfs is not allowed here")
    house.closing.append(lambda: subprocess.run(["umount", "-l", str(small)], capture_output=True))
    return small


@scenario
def full_disk(house):
    """ENOSPC reaches the program at write, fsync or close, and the command line in words."""
    small = mount_small(house)
    (small / "kept").write_text("kept")
    uri = house.serve(served=small).uri
    for script in ("dd if=/dev/zero of=/far/big bs=64k count=100 status=none", "cp $BIG /far/big", "head -c 9000000 /dev/zero > /far/big",
                   "python3 -c 'f = open(\"/far/big\", \"wb\"); f.write(bytes(9000000)); f.close()'",
                   "python3 -c 'import os; f = os.open(\"/far/big\", 65); [os.write(f, bytes(1000)) for _ in range(9000)]; os.fsync(f)'",
                   "awk 'BEGIN { for (i = 0; i < 900000; i++) print i > \"/far/big\" }'", "seq 2000000 | tee /far/big > /dev/null"):
        (house.local / "big").write_bytes(bytes(9_000_000))
        done = house.run(f"{uri}/far", f"BIG={house.local}/big; {script}")
        clear_sentence(done, "No space left")
        (small / "big").unlink(missing_ok=True)
    clear_sentence(house.cli("cp", house.local / "big", f"{uri}/far/big"), ("No space", "full"))
    # cp leaves what it has, to go on from there.
    for left in small.glob("*big*"):
        left.unlink()
    done = house.run(f"{uri}/far", "echo fits > /far/small; cat /far/kept /far/small")
    hold(done.stdout == "keptfits\n", "the service is of no use any more:", done.stderr)


@scenario
def full_disk_and_small_writes(house):
    """A few bytes that do not fit are reported too, though the program only closes, or not even that."""
    small = mount_small(house)
    uri = house.serve(served=small).uri
    with contextlib.suppress(OSError), open(small / "filler", "wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
    for script in ("echo x > /far/new", "dash -c 'echo x > /far/new; true'", "exec 3> /far/new; echo x >&3; exec 3>&-",
                   "printf x | cat > /far/new", "{ echo a; echo b; } > /far/new", "echo x | tee /far/new > /dev/null",
                   "python3 -c 'f = open(\"/far/new\", \"w\"); f.write(\"x\"); f.close()'",
                   "python3 -c 'import os; os.write(os.open(\"/far/new\", 65), b\"x\")'",
                   "awk 'BEGIN { print 1 > \"/far/new\" }'", "perl -e 'open F, \">/far/new\" or die; print F 1; close F or die \"$!\"'"):
        done = house.run(f"{uri}/far", script)
        hold(done.returncode != 0 or done.stderr.strip(), "nobody noticed that nothing was written:", script)
        (small / "new").unlink(missing_ok=True)


@scenario
def file_size_limit_of_the_service(house):
    """A write the service's own limits refuse is EFBIG or ENOSPC at the program, not a dead service."""
    service = house.serve()
    subprocess.run(["prlimit", f"--pid={service.pid}", "--fsize=1000000"], check=True)
    done = house.run(f"{service.uri}/far", "head -c 5000000 /dev/zero > /far/big")
    clear_sentence(done)
    hold(service.alive(), "the service died of SIGXFSZ")


@scenario
def permissions(house):
    """What the server may not read is EACCES, in words (only when not root)."""
    if os.geteuid() == 0:
        raise Skip("root may read everything")
    (house.served / "closed").write_text("x")
    (house.served / "closed").chmod(0)
    clear_sentence(house.run(house.serve().uri + "/far", "cat /far/closed"), "Permission denied")
