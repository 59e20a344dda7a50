"""A machine that can lose its power: QEMU, Debian's kernel, and a file system in memory with what the test needs.

Nothing of it is installed: the kernel's package is unpacked in Cargo's target directory.
"""

import os
import pathlib
import queue
import re
import shutil
import subprocess
import threading

from house import places
from house.checking import Skip, run

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "log" / "programs"
KERNEL = "linux-image-cloud-amd64"
DOWNLOAD_SECONDS_MAX = 600
# What a boot needs: the disks; and file systems, with what they ask for by name only.
MODULES = {"all": ["virtio_pci", "virtio_blk"], "ext4": ["crc32c_generic", "ext4"], "xfs": ["crc32c_generic", "xfs"],
           "btrfs": ["crc32c_generic", "xxhash_generic", "blake2b_generic", "btrfs"]}
QEMU = ["qemu-system-x86_64", "-nodefaults", "-cpu", "max", "-m", "512", "-no-reboot", "-display", "none"]
# Without timers to calibrate against, which takes seconds where no hardware helps.
KERNEL_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable lpj=4000000"
# Hardware that does not answer within this time does not work.
ACCELERATED_SECONDS_MAX = 20


def tools():
    """Skips where something is missing that `./dev setup powercut` installs."""
    for name, package in (("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("cpio", "cpio"),
                          ("mkfs.ext4", "e2fsprogs"), ("gcc", "gcc"), ("strip", "binutils")):
        if not shutil.which(name, path=places.CASE_PATH):
            raise Skip(f"{name} is not installed: Debian's {package}; ./dev setup powercut installs it")


def kernel():
    """The directory of the unpacked kernel package."""
    cache = places.target_directory() / "powercut" / "kernel"
    if (cache / "unpacked").exists():
        return cache
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    told = run("apt-cache", "depends", KERNEL).stdout.decode()
    package = re.search(r"Depends: (linux-image-\S+)", told)
    if not package:
        raise Skip(f"apt knows no {KERNEL}")
    done = run("apt-get", "download", package[1], expect=None, seconds_max=DOWNLOAD_SECONDS_MAX, cwd=cache)
    if done.returncode != 0:
        raise Skip(f"{package[1]} cannot be downloaded: {done.stderr.decode().strip()[-300:]}")
    for archive in cache.glob("*.deb"):
        run("dpkg-deb", "-x", archive, cache, seconds_max=DOWNLOAD_SECONDS_MAX)
        archive.unlink()
    (cache / "unpacked").touch()
    return cache


def module_order(directory, names):
    """The files of these modules and of what they need, in an order in which they can be loaded. What is built in has none."""
    files = {path.name.split(".")[0].replace("-", "_"): path for path in directory.rglob("*.ko*")}
    ordered = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in ordered:
            return
        # modinfo(8) reads it there, too.
        needs = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for other in (needs[1].decode() if needs else "").split(","):
            add(other)
        ordered.append(path)

    for name in names:
        add(name)
    return ordered


class Kit:
    """What all boots share, made once in `place`."""

    def __init__(self, sluice, place):
        tools()
        self.place = place
        package = kernel()
        self.kernel = next((package / "boot").glob("vmlinuz-*"))
        root = place / "root"
        for name in ("bin", "lib", "modules", "etc", "proc", "sys", "dev", "log", "target", "root", "tmp"):
            (root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin")
        shutil.copy(HERE / "guest" / "init", root / "init")
        for purpose, names in MODULES.items():
            order = module_order(package / "lib" / "modules", names)
            for path in order:
                shutil.copy(path, root / "modules")
            (root / "modules" / purpose).write_text("".join(f"{path.name}\n" for path in order))
        run("gcc", "-O1", "-shared", "-fPIC", "-o", root / "lib/nosync.so", HERE / "guest/nosync.c")
        run("gcc", "-O1", "-o", root / "bin/lone", PROGRAMS / "lone.c")
        self.checker = place / "points"
        run("gcc", "-O1", "-o", self.checker, PROGRAMS / "points.c")
        for path in (sluice, sluice.parent / "libsluice.so"):
            run("strip", "-o", root / "bin" / path.name, path)
        for path in self.libraries(root):
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path[1:])
        self.initramfs = place / "initramfs"
        with open(self.initramfs, "wb") as out:
            names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode(), stdout=out, check=True)
        self.accelerator = "kvm" if self.answers("kvm") else "tcg"

    @staticmethod
    def libraries(root):
        """The shared libraries that the programs name."""
        found = set()
        for name in ("sluice", "libsluice.so", "lone"):
            found |= set(re.findall(r"(/\S+) \(0x", run("ldd", root / "bin" / name).stdout.decode()))
        return sorted(found)

    def answers(self, accelerator):
        """Whether a machine starts. That there is a /dev/kvm does not say it."""
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        self.accelerator = accelerator
        with Machine(self, self.place / "probe", {}, {"DO": "nothing"}) as machine:
            return machine.wait_for(lambda words: words[:2] == ["@", "up"], ACCELERATED_SECONDS_MAX) is not None


class Machine:
    """One boot. `disks` are /dev/vda, vdb and so on: sockets of NBD servers, or files."""

    def __init__(self, kit, place, disks, words):
        place.mkdir(parents=True, exist_ok=True)
        self.console = place / f"console.{len(list(place.glob('console.*')))}"
        command = [*QEMU, "-accel", kit.accelerator, "-kernel", str(kit.kernel), "-initrd", str(kit.initramfs)]
        command += ["-append", " ".join([KERNEL_WORDS, *(f"{key}={value}" for key, value in words.items())])]
        command += ["-serial", f"file:{self.console}", "-serial", "stdio"]
        for number, path in enumerate(disks):
            end = f"driver=nbd,server.type=unix,server.path={path}"
            if not path.is_socket():
                end = f"driver=raw,file.driver=file,file.filename={path}"
            # The disk has a write cache and says so.
            command += ["-blockdev", f"{end},node-name=d{number}", "-device", f"virtio-blk-pci,drive=d{number},write-cache=on"]
        self.noted, self.lines, self.complaint = [], queue.Queue(), None
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _read(self):
        for line in self.process.stdout:
            # Without its end it is none.
            if line.endswith(b"\n"):
                words = line.decode(errors="replace").split()
                self.noted.append(words)
                self.lines.put(words)
        self.lines.put(None)

    def wait_for(self, condition, seconds_max):
        """The first line of words that meets the condition, or None if the machine ends or is silent for so long before."""
        while True:
            try:
                words = self.lines.get(timeout=seconds_max)
            except queue.Empty:
                return None
            if words is None or condition(words):
                return words

    def end(self):
        """SIGKILL; what it had noted is all there afterwards."""
        if self.complaint is not None:
            return
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.complaint = self.process.stderr.read().decode(errors="replace")
        self.process.stdout.close()
        self.process.stderr.close()

    def said(self):
        """The end of its console, for people."""
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return "\n".join([*text.strip().splitlines()[-6:], *self.complaint.strip().splitlines()[-3:]])

    def status(self, what):
        """The exit status that was noted for a command, or None."""
        return next((int(words[2]) for words in self.noted if words[:2] == ["@", what]), None)


