"""Three network namespaces in a row: the ends see the middle, and not each other."""

import os
import shutil
import subprocess


def why_not():
    """Why namespaces cannot be made here, or None if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        return "ip (package iproute2) is not installed"
    name = f"sluice-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return None if made.returncode == 0 else f"ip netns add: {made.stderr.strip()}"


class Row:
    """near — middle — far. No packet is forwarded: only a relay in the middle joins the ends."""

    NEAR, MIDDLE_NEAR, MIDDLE_FAR, FAR = "10.90.1.1", "10.90.1.2", "10.90.2.1", "10.90.2.2"

    def __init__(self):
        mark = f"sluice-{os.getpid()}"
        self.near, self.middle, self.far = (f"{mark}-{end}" for end in ("near", "middle", "far"))

    def __enter__(self):
        try:
            for name in (self.near, self.middle, self.far):
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            self._join(self.near, "to-middle", self.NEAR, self.middle, "to-near", self.MIDDLE_NEAR)
            self._join(self.far, "to-middle", self.FAR, self.middle, "to-far", self.MIDDLE_FAR)
        except BaseException:
            self.__exit__()
            raise
        return self

    @staticmethod
    def _join(left, left_device, left_address, right, right_device, right_address):
        ip("link", "add", left_device, "netns", left, "type", "veth", "peer", "name", right_device, "netns", right)
        for name, device, address in ((left, left_device, left_address), (right, right_device, right_address)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")

    def prefix(self, name):
        """What to put before a command so that it runs there."""
        return ["ip", "netns", "exec", name]

    def ends_are_apart(self):
        """True if the near end cannot reach the far one by itself."""
        code = f"import socket; socket.create_connection(('{self.FAR}', 9), 1)"
        tried = subprocess.run([*self.prefix(self.near), "/usr/bin/python3", "-c", code], capture_output=True, text=True)
        return "unreachable" in tried.stderr

    def __exit__(self, *_):
        for name in (self.near, self.middle, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def ip(*arguments):
    """Runs ip(8); its message is the exception's when it fails."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
