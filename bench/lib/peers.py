"""The alternatives that a user would pick instead, each as a way, each from its Debian package.

Everything listens on loopback only and is ended with the run. A mount is made afresh for every
session, so that the page cache of an earlier one does not serve it, and is not part of the time.
"""

import contextlib
import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Optional

from .measure import Failed
from .process import PROGRAM_SECONDS_MAX, Daemon, Ran, free_port, run
from .ways import Session, Way
from .workspace import Workspace

MOUNT_SECONDS_MAX = 10.0


def need(*programs: str, package: str) -> None:
    """Fails, naming the package, where a program is missing."""
    for program in programs:
        if not shutil.which(program):
            raise Failed(f"{program} is not installed (package {package})")


def need_fuse() -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Failed("/dev/fuse cannot be opened by this user")
    need("fusermount3", package="fuse3")


class Mount:
    """A FUSE file system in the foreground, until it is unmounted."""

    _count = 0

    def __init__(self, space: Workspace, argv: list[str], *, env: Optional[dict[str, str]] = None):
        Mount._count += 1
        self.point = space.run(f"mount-{Mount._count}")
        os.mkdir(self.point)
        log = space.run(f"mount-{Mount._count}.log")
        self.daemon = Daemon([self.point if part == "MOUNT" else part for part in argv], log, env=env)
        end = time.monotonic() + MOUNT_SECONDS_MAX
        while not os.path.ismount(self.point):
            if self.daemon.child.poll() is not None or time.monotonic() > end:
                self.close()
                with open(log, errors="replace") as text:
                    last = text.read().strip().splitlines()[-1:]
                raise Failed(f"{argv[0]} does not mount: {' '.join(last) or 'no message'}")
            time.sleep(0.01)

    def close(self) -> None:
        for argv in (["fusermount3", "-u", self.point], ["fusermount3", "-u", "-z", self.point]):
            if not os.path.ismount(self.point):
                break
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)
        self.daemon.end()
        with contextlib.suppress(OSError):
            os.rmdir(self.point)


class Sshd:
    """A private sshd of this user, with keys of its own, on a port of loopback."""

    def __init__(self, space: Workspace):
        need("ssh", "ssh-keygen", package="openssh-client")
        program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
        if not program:
            raise Failed("sshd is not installed (package openssh-server)")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd insists on it as root
        self.space = space
        self.port = free_port()
        self.key = space.run("ssh-key")
        for key in (self.key, space.run("ssh-host")):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key])
        config = space.run("sshd.conf")
        with open(config, "w") as file:
            file.write("\n".join([
                f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {space.run('ssh-host')}",
                f"AuthorizedKeysFile {self.key}.pub", "PidFile none", "StrictModes no", "UsePAM no",
                "PasswordAuthentication no", "PermitRootLogin prohibit-password", "LogLevel ERROR",
                "MaxStartups 100", "Subsystem sftp internal-sftp", ""]))
        self.daemon = Daemon([program, "-D", "-e", "-f", config], space.run("sshd.log"))
        self.daemon.port(self.port)

    def options(self) -> list[str]:
        """What ssh and its kin need to get in and to leave the user's own files alone."""
        return ["-F", "none", "-o", f"IdentityFile={self.key}", "-o", "IdentitiesOnly=yes",
                "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={self.space.run('ssh-hosts')}",
                "-o", "LogLevel=ERROR", "-o", "BatchMode=yes"]


class Sshfs(Way):
    """sshfs as it is without options."""

    name, label = "sshfs", "sshfs"

    def __init__(self, space: Workspace, sshd: Sshd, port: Optional[int] = None):
        need("sshfs", package="sshfs")
        need_fuse()
        self.space, self.sshd, self.port = space, sshd, port or sshd.port

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        mount = Mount(self.space, ["sshfs", f"{getpass.getuser()}@127.0.0.1:{self.space.far()}", "MOUNT", "-f",
                                   "-p", str(self.port), *self.sshd.options()])
        try:
            yield Session(mount.point)
        finally:
            mount.close()


class RcloneSession(Session):
    """rclone uploads after the program has closed the file: the time ends when the far side has it all."""

    def __init__(self, root: str, space: Workspace):
        super().__init__(root)
        self.space = space

    def run(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = (),
            timeout: float = PROGRAM_SECONDS_MAX) -> Ran:
        ran = super().run(argv, reads=reads, writes=writes, timeout=timeout)
        began = time.monotonic()
        self.settle(writes)
        return Ran(ran.stdout, ran.seconds + time.monotonic() - began)

    def timed(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> float:
        seconds = super(RcloneSession, self).run(argv, reads=reads).json()["seconds"]
        began = time.monotonic()
        self.settle(writes)
        return seconds + time.monotonic() - began

    def settle(self, writes: Sequence[str]) -> None:
        end = time.monotonic() + 30
        for name in writes:
            wanted = os.path.getsize(self.path(name))
            far = self.space.far(name)
            while not os.path.exists(far) or os.path.getsize(far) != wanted:
                if time.monotonic() > end:
                    raise Failed(f"rclone had not uploaded {name} after 30 s")
                time.sleep(0.002)


class Rclone(Way):
    """rclone mount over SFTP, with the write cache that programs which seek need."""

    name, label = "rclone", "rclone mount"

    def __init__(self, space: Workspace, sshd: Sshd):
        need("rclone", package="rclone")
        need_fuse()
        self.space, self.sshd = space, sshd

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        cache = self.space.run("rclone-cache")
        mount = Mount(self.space, [
            "rclone", "mount", f":sftp:{self.space.far()}", "MOUNT", "--config", os.devnull, "--cache-dir", cache,
            "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--log-level", "ERROR",
            "--sftp-host", "127.0.0.1", "--sftp-port", str(self.sshd.port), "--sftp-user", getpass.getuser(),
            "--sftp-key-file", self.sshd.key, "--sftp-disable-hashcheck"])
        try:
            yield RcloneSession(mount.point, self.space)
        finally:
            mount.close()
            shutil.rmtree(cache, ignore_errors=True)


class ScpSession(Session):
    """Copies what the program reads before it starts, and what it wrote after it has ended."""

    def __init__(self, staging: str, space: Workspace, sshd: Sshd):
        super().__init__(staging)
        self.space = space
        self.scp = ["scp", "-q", "-P", str(sshd.port), *sshd.options()]
        self.far = f"{getpass.getuser()}@127.0.0.1:"

    def copies(self, reads: Sequence[str], writes: Sequence[str]) -> float:
        seconds = 0.0
        for name in reads:
            seconds += run([*self.scp, "-r", self.far + self.space.far(name), self.path(name)]).seconds
        for name in writes:
            seconds += run([*self.scp, self.path(name), self.far + self.space.far(name)]).seconds
        return seconds

    def run(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = (),
            timeout: float = PROGRAM_SECONDS_MAX) -> Ran:
        before = self.copies(reads, ())
        ran = super().run(argv, timeout=timeout)
        return Ran(ran.stdout, before + ran.seconds + self.copies((), writes))

    def timed(self, argv: list[str], *, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> float:
        before = self.copies(reads, ())
        return before + run(argv).json()["seconds"] + self.copies((), writes)


class Scp(Way):
    """The paper's alternative: scp before and after the program."""

    name, label = "scp", "scp before/after"

    def __init__(self, space: Workspace, sshd: Sshd):
        need("scp", package="openssh-client")
        self.space, self.sshd = space, sshd

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        staging = self.space.run("scp-staging")
        os.makedirs(staging)
        try:
            yield ScpSession(staging, self.space, self.sshd)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


class Xrootd:
    """A private XRootD server, on loopback only by way of a small preload library."""

    USER = "xrootd"

    def __init__(self, space: Workspace, loopback: str):
        need("xrootd", package="xrootd-server")
        self.port = free_port()
        admin = space.run("xrootd")
        os.mkdir(admin)
        config = space.run("xrootd.conf")
        with open(config, "w") as file:
            file.write(f"all.export {space.far()}\nall.adminpath {admin}\nall.pidpath {admin}\nxrd.port {self.port}\n")
        argv = ["xrootd", "-c", config, "-l", os.path.join(admin, "log"), "-k", "0"]
        if os.geteuid() == 0:  # it refuses to run as root; the package makes this user
            try:
                shutil.chown(admin, self.USER)
            except LookupError:
                raise Failed(f"xrootd refuses to run as root and there is no user {self.USER}") from None
            argv += ["-R", self.USER]
            os.chmod(space.far(), 0o777)
        self.daemon = Daemon(argv, space.run("xrootd.log"), env={"LD_PRELOAD": loopback})
        self.daemon.port(self.port)

    def open_up(self, space: Workspace) -> None:
        """Lets the server's user write what other ways have made."""
        if os.geteuid() == 0:
            for folder, _, files in os.walk(space.far()):
                os.chmod(folder, 0o777)
                for name in files:
                    os.chmod(os.path.join(folder, name), 0o666)


# Without these a client waits for minutes when something is wrong.
XRD_ENV = {"XRD_CONNECTIONWINDOW": "5", "XRD_CONNECTIONRETRY": "1", "XRD_REQUESTTIMEOUT": "30"}


class XrootdPreload(Way):
    """XRootD's own preload library, the nearest relative of ours."""

    name, label = "xrootd_preload", "XRootD preload"

    def __init__(self, space: Workspace, server: Xrootd):
        found = [os.path.join(folder, "libXrdPosixPreload.so")
                 for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")]
        library = next((path for path in found if os.path.exists(path)), None)
        if not library:
            raise Failed("libXrdPosixPreload.so is not installed (package libxrdposix3)")
        self.space, self.server, self.library = space, server, library

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        self.server.open_up(self.space)
        yield Session(f"root://127.0.0.1:{self.server.port}/{self.space.far()}",
                      env={"LD_PRELOAD": self.library, **XRD_ENV})


class Xrootdfs(Way):
    """XRootD's FUSE file system."""

    name, label = "xrootdfs", "xrootdfs"

    def __init__(self, space: Workspace, server: Xrootd):
        need("xrootdfs", package="xrootd-fuse")
        need_fuse()
        self.space, self.server = space, server

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        self.server.open_up(self.space)
        mount = Mount(self.space, ["xrootdfs", "MOUNT", "-f", "-o",
                                   f"rdr=root://127.0.0.1:{self.server.port}/{self.space.far()}"], env=XRD_ENV)
        try:
            yield Session(mount.point)
        finally:
            mount.close()


def absent() -> list[tuple[str, str]]:
    """The alternatives that this bench cannot run, each with the reason here."""
    with open("/proc/filesystems") as table:
        nfs = "nfs" in table.read().split()
    return [
        ("nfs_userspace", "a user-space NFS server needs mount(2) and with it root"
         + ("" if nfs else "; this kernel has no NFS client either")),
        ("parrot_chirp", "parrot_run is installed, but this bench does not drive it"
         if shutil.which("parrot_run") else
         "Debian's coop-computing-tools has no parrot_run, and its chirp_fuse is built without FUSE"),
    ]


def all_ways(space: Workspace, loopback: str) -> tuple[list[Way], list[tuple[str, str]]]:
    """Starts what can be started; returns the ways, and what is missing and why."""
    ways: list[Way] = []
    skipped = absent()
    groups = [(lambda: Sshd(space), [Sshfs, Rclone, Scp]), (lambda: Xrootd(space, loopback), [Xrootdfs, XrootdPreload])]
    for start, kinds in groups:
        try:
            server = start()
        except Failed as why:
            skipped += [(kind.name, str(why)) for kind in kinds]
            continue
        for kind in kinds:
            try:
                ways.append(kind(space, server))
            except Failed as why:
                skipped.append((kind.name, str(why)))
    return ways, skipped
