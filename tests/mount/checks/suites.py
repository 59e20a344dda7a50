"""The file system exerciser fsx and the POSIX suite pjdfstest, built from their published crates."""

import os
import re
import subprocess

from house import places
from mount.scene import Skip, long_check, run, want

FSX_VERSION, PJDFSTEST_VERSION = "0.3.2", "0.2.2"
# Building takes minutes the first time.
BUILD_SECONDS_MAX = 1800

# What FUSE by way of 9P does not have. A case fails if its name begins with one of these, and everything else passes.
NOT_THERE = {
    "mkfifo": "stores have no FIFOs",
    "mknod": "stores have no devices, FIFOs and sockets",
}


def built(crate, version):
    """Builds a program outside of the repository and returns its path."""
    root = places.target_directory() / "foreign"
    program = root / "bin" / crate
    if not program.exists():
        done = run("cargo", "install", crate, "--version", version, "--locked", "--root", root,
                   "--target-dir", root / "build", expect=None, seconds_max=BUILD_SECONDS_MAX)
        if done.returncode != 0:
            raise Skip(f"{crate} does not build here: {done.stderr.decode().strip()[-200:]}")
    return program


@long_check
def fsx(scene):
    """Random reads, writes, truncations and mappings of one file, each compared with what it must hold."""
    program = built("fsx", FSX_VERSION)
    root = scene.mount()
    for seed in range(1, 5):
        run(program, "-N", "5000", "-S", str(seed), root / f"fsx{seed}", seconds_max=300)


@long_check
def pjdfstest(scene):
    if os.geteuid() != 0:
        raise Skip("pjdfstest changes users, which needs root")
    program = built("pjdfstest", PJDFSTEST_VERSION)
    root = scene.mount("--allow-other")
    os.chmod(scene.scratch, 0o755)
    os.chmod(scene.served, 0o777)
    settings = scene.scratch / "pjdfstest.toml"
    settings.write_text('[features]\n[settings]\nnaptime = 0.02\nallow_remount = false\n'
                        '[dummy_auth]\nentries = [["nobody", "nogroup"], ["daemon", "daemon"]]\n')
    done = subprocess.run([program, "-c", settings, "-p", root], capture_output=True, timeout=900)
    output = done.stdout.decode(errors="replace")
    counts = re.search(r"Tests: (\d+) failed, (\d+) skipped, (\d+) passed", output)
    want(counts is not None, f"no summary: {output[-500:]} {done.stderr.decode()[-300:]}")
