"""Starting and ending `sluice mount` processes."""

import os
import pathlib
import shutil
import subprocess
import threading

READY_SECONDS_MAX = 15


class MountFailed(Exception):
    """A mount did not come about, or does not end."""


def unusable():
    """Why nothing can be mounted here; None if it can."""
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse here"
    if os.geteuid() != 0 and shutil.which("fusermount3") is None:
        return "fusermount3 is not installed, and this is not root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened: {error.strerror}"
    return None


class Mount:
    """One running `sluice mount PLACE DIR`; `prefix` goes before the command."""

    def __init__(self, sluice, place, directory: pathlib.Path, options=(), prefix=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.lines = []
        command = [*prefix, str(sluice), "mount", str(place), str(self.directory), *options]
        self._ready = threading.Event()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        if not self._ready.wait(READY_SECONDS_MAX) or not any(line.startswith("mounted ") for line in self.lines):
            self.stop()
            raise MountFailed(f"{' '.join(command)}: {self.lines[-3:]}")

    def _follow(self):
        for raw in self.process.stdout:
            self.lines.append(raw.decode(errors="replace").rstrip())
            self._ready.set()
        self._ready.set()

    def alive(self):
        return self.process.poll() is None

    def is_in_place(self):
        return f" {self.directory.resolve()} fuse." in pathlib.Path("/proc/mounts").read_text()

    def stop(self, seconds_max=10):
        """SIGTERM, then SIGKILL. True if SIGTERM was enough and nothing is mounted any more."""
        clean = True
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                clean = False
                self.process.kill()
                self.process.wait()
        in_place = f" {self.directory} fuse." in pathlib.Path("/proc/mounts").read_text()
        if in_place:
            subprocess.run(["umount", "-l", str(self.directory)], stderr=subprocess.DEVNULL)
        return clean and not in_place

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
