"""The ways from a program to the served directory."""

import pathlib
import shutil
import subprocess
import threading

from house.mounts import Mount
from house.services import Service, ServiceFailed

EXPORT = "far"


class Local:
    """No Sluice at all: the second run is as native as the first. Proves that the cases are sane."""

    name = "local"
    prefix = None

    def open(self, scratch: pathlib.Path):
        self.served = scratch / "served"
        self.served.mkdir()

    def command(self, case_directory):
        return []

    def data(self, case_directory):
        return str(self.served / case_directory)

    def address(self, case_directory):
        return self.data(case_directory)

    def health(self):
        return None

    def close(self):
        pass


class Passthrough(Local):
    """No Sluice, but FUSE: bindfs shows the directory. What differs here too is the kernel's doing, not ours."""

    name = "bindfs"

    def open(self, scratch: pathlib.Path):
        super().open(scratch)
        bindfs = shutil.which("bindfs")
        if bindfs is None:
            raise ServiceFailed("bindfs is not installed")
        self.directory = scratch / "mnt"
        self.directory.mkdir()
        # As `sluice mount` has it: inode numbers are the files', and nothing is answered from memory for long.
        subprocess.run([bindfs, "-o", "use_ino,attr_timeout=1", self.served, self.directory], check=True)

    def data(self, case_directory):
        return str(self.directory / case_directory)

    def close(self):
        if hasattr(self, "directory"):
            subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL)


class Routed:
    """Common to the transports that go through `sluice run --map /far=URI`."""

    prefix = "/far"

    def __init__(self, sluice):
        self.sluice = str(sluice)
        self.lock = threading.Lock()
        self.services = []

    def open(self, scratch):
        self.scratch = scratch
        self.served = scratch / "served"
        self.served.mkdir()
        self.start()

    def start(self):
        raise NotImplementedError

    def serve(self, name, export, listen, *options):
        service = Service(self.sluice, [export], listen, options, log=self.scratch / f"{name}.log")
        self.services.append(service)
        return service

    def command(self, case_directory):
        return [self.sluice, "run", *self.run_options(), "--map", f"{self.prefix}={self.address(case_directory)}", "--"]

    def run_options(self):
        return []

    def data(self, case_directory):
        return self.prefix

    def address(self, case_directory):
        return f"{self.uri}/{EXPORT}/{case_directory}"

    def health(self):
        """None while every service lives; otherwise what happened. Dead ones are started again."""
        with self.lock:
            dead = [s for s in self.services if not s.alive()]
            for service in dead:
                said = service.lines[-3:]
                status = service.process.returncode
                service.restart()
                return f"a service died with status {status}: {said}"
        return None

    def close(self):
        for service in reversed(self.services):
            service.stop()


class Uds(Routed):
    """One hop over a Unix socket."""

    name = "uds"

    def start(self):
        self.uri = self.serve("far", f"{EXPORT}={self.served}", f"unix:{self.scratch}/far.sock").uri


class Tcp(Routed):
    """One hop over TCP on the loopback."""

    name = "tcp"

    def start(self):
        self.uri = self.serve("far", f"{EXPORT}={self.served}", "tcp:127.0.0.1:0").uri


class Relay(Routed):
    """Two hops: Unix socket to a relay, TCP from there to the store."""

    name = "relay"

    def start(self):
        far = self.serve("far", f"{EXPORT}={self.served}", "tcp:127.0.0.1:0").uri
        self.uri = self.serve("relay", f"{EXPORT}={far}/{EXPORT}", f"unix:{self.scratch}/relay.sock").uri


class Direct(Routed):
    """The service lives in the process that uses it."""

    name = "direct"
    uri = "scdc://"

    def start(self):
        pass

    def run_options(self):
        return ["--store", f"{EXPORT}={self.served}"]


class Mounted:
    """`sluice mount` of a service on a Unix socket; programs run as they are."""

    name = "mount"
    prefix = None

    def __init__(self, sluice):
        self.sluice = str(sluice)

    def open(self, scratch):
        self.served = scratch / "served"
        self.served.mkdir()
        self.service = Service(self.sluice, [f"{EXPORT}={self.served}"], f"unix:{scratch}/far.sock")
        self.mount = Mount(self.sluice, f"{self.service.uri}/{EXPORT}", scratch / "mnt")

    def command(self, case_directory):
        return []

    def data(self, case_directory):
        return str(self.mount.directory / case_directory)

    def address(self, case_directory):
        return self.data(case_directory)

    def health(self):
        if self.service.alive() and self.mount.alive():
            return None
        return f"the service or the mount died: {self.service.lines[-3:]}, {self.mount.lines[-3:]}"

    def close(self):
        if hasattr(self, "mount"):
            self.mount.stop()
        if hasattr(self, "service"):
            self.service.stop()


ROUTED = {t.name: t for t in (Uds, Tcp, Relay, Direct, Mounted)}
WITHOUT_SLUICE = {t.name: t for t in (Local, Passthrough)}


def make(name, sluice):
    """The transport of this name."""
    return WITHOUT_SLUICE[name]() if name in WITHOUT_SLUICE else ROUTED[name](sluice)
