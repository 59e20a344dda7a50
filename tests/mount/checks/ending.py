"""Mounting and unmounting, refusals, and services that go away."""

import os
import shutil
import signal
import subprocess
import threading
import time

from house.checking import Skip, run, want
from mount.scene import bytes_of, check, mib, python


def refused(scene, *arguments, words):
    done = run(scene.sluice, "mount", *arguments, expect=1, seconds_max=30)
    said = done.stderr.decode()
    want(words in said and said.count("\n") == 1, f"mount {arguments}: {said}")


@check
def refusals_say_why(scene):
    uri, empty = scene.uri(), scene.scratch / "empty"
    empty.mkdir()
    (scene.scratch / "file").write_bytes(b"")
    refused(scene, uri, scene.scratch / "missing", words="does not exist")
    refused(scene, uri, scene.scratch / "file", words="not a directory")
    refused(scene, uri, scene.scratch, words="not empty")
    refused(scene, f"{uri}/missing", empty, words="No such file")
    refused(scene, f"scdc+uds://{scene.scratch}/nobody.sock/x", empty, words="is a service running there?")
    refused(scene, "scdc+tcp://127.0.0.1:1/x", empty, words="is a service running there?")
    refused(scene, "--daemon", f"{uri}/missing", empty, words="No such file")
    (scene.served / "file").write_bytes(b"")
    refused(scene, f"{uri}/file", empty, words="not a directory")
    inner = scene.served / "inner"
    inner.mkdir()
    refused(scene, scene.served, inner, words="lies within")
    root = scene.mount()
    refused(scene, uri, root, words="already")
    said = run(scene.sluice, "umount", empty, expect=1).stderr.decode()
    want("is not a mount of sluice" in said, said)


@check
def read_only_mounts_refuse_changes(scene):
    (scene.served / "f").write_bytes(b"kept")
    root = scene.mount("--read-only")
    for call in (lambda: (root / "f").write_bytes(b"no"), lambda: os.remove(root / "f"),
                 lambda: os.mkdir(root / "d"), lambda: os.chmod(root / "f", 0)):
        try:
            call()
        except OSError as error:
            want(error.errno == 30, f"{error}, should be EROFS")
        else:
            want(False, "a change was not refused")
    want((root / "f").read_bytes() == b"kept", "content")


@check
def the_background_and_umount(scene):
    root = scene.scratch / "background"
    root.mkdir()
    (scene.served / "f").write_bytes(b"1")
    # Captured pipes would stay open with a process that does not let go of them.
    said = run(scene.sluice, "mount", "--daemon", scene.uri(), root, seconds_max=20).stdout.decode()
    want(said.startswith("mounted ") and (root / "f").read_bytes() == b"1", said)
    with open(root / "f", "rb"):
        said = run(scene.sluice, "umount", root, expect=1).stderr.decode()
        want("is in use" in said, said)
    run(scene.sluice, "umount", root)
    want(os.listdir(root) == [], "still mounted")
    run(scene.sluice, "mount", "--daemon", scene.uri(), root)
    with open(root / "f", "rb", buffering=0) as file:
        run(scene.sluice, "umount", "--lazy", root)
        want(os.listdir(root) == [] and file.read() == b"1", "an open file after a lazy unmount")


@check
def a_signal_unmounts_under_load(scene):
    for number in (signal.SIGTERM, signal.SIGINT):
        root = scene.mount()
        (root / "f").write_bytes(bytes_of(mib(4)))
        load = "while :; do cp {0}/f {0}/g; cat {0}/g >/dev/null; ls -l {0} >/dev/null; done 2>/dev/null"
        running = subprocess.Popen(["sh", "-c", load.format(root)], start_new_session=True)
        time.sleep(0.7)
        mounted = scene.mounted
        mounted.process.send_signal(number)
        try:
            mounted.process.wait(15)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        want(ended, f"{number.name}: still there after 15 s")
        want(mounted.process.returncode == 0, f"{number.name}: status {mounted.process.returncode}")
        want(not mounted.is_in_place(), f"{number.name}: still mounted")


@check
def a_killed_mount_is_cleared_away(scene):
    root = scene.mount()
    mounted = scene.mounted
    mounted.process.kill()
    mounted.process.wait()
    refused(scene, scene.uri(), root, words="`sluice umount")
    run(scene.sluice, "umount", root)
    want(os.listdir(root) == [], "still mounted")


@check
def a_service_that_is_killed_hangs_nobody(scene):
    scene.uri()
    root = scene.mount("--reconnect-seconds", "2")
    data = bytes_of(mib(2))
    (root / "f").write_bytes(data)
    file = os.open(root / "f", os.O_RDWR)
    scene.service.kill()
    calls = {
        "open": "open(p + '/f', 'rb').read()",
        "list": "os.listdir(p)",
        "stat": "os.stat(p + '/f')",
        "write": "open(p + '/g', 'wb').write(b'x')",
        "mkdir": "os.mkdir(p + '/d')",
    }
    start = time.monotonic()
    found = {}
    def perform(name):
        script = f"import os, sys\np = sys.argv[1]\ntry:\n    {calls[name]}\n    print('ok')\n" \
                 "except OSError as e:\n    print(e.errno)"
        found[name] = python(script, root, seconds_max=30).strip()
    threads = [threading.Thread(target=perform, args=(name,)) for name in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - start
    want(len(found) == len(calls) and took < 15, f"after {took:.0f} s: {found}")
    # EIO; only what the kernel knew already may be answered.
    want(all(answer == "5" for name, answer in found.items() if name != "stat"), f"{found}")
    scene.service.restart()
    want((root / "f").read_bytes() == data, "content after the service came back")
    want(os.pread(file, 10, mib(1)) == data[mib(1):mib(1) + 10], "an open file after the service came back")
    want(os.pwrite(file, b"again", 0) == 5 and (scene.served / "f").read_bytes()[:5] == b"again", "writing again")
    os.close(file)


@check
def other_users(scene):
    """Without --allow-other nobody else gets in; with it the modes decide, and files belong to who makes them."""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    os.chmod(scene.scratch, 0o755)
    os.chmod(scene.served, 0o777)
    (scene.served / "secret").write_bytes(b"s")
    os.chmod(scene.served / "secret", 0o600)
    (scene.served / "public").write_bytes(b"p")
    script = """if True:
        import os, sys
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        for name in ("public", "secret"):
            try:
                print(open(sys.argv[1] + "/" + name).read())
            except OSError as error:
                print(error.errno)
        try:
            open(sys.argv[1] + "/" + sys.argv[2], "w").close()
            print(os.stat(sys.argv[1] + "/" + sys.argv[2]).st_uid)
        except OSError as error:
            print(error.errno)
        """
    want(python(script, scene.mount(), "a").split() == ["13", "13", "13"], "without --allow-other")
    said = python(script, scene.mount("--allow-other"), "b").split()
    want(said == ["p", "13", "65534"], f"with --allow-other: {said}")
    want((scene.served / "b").stat().st_uid == 65534, "owner at the store")


@check
def mounting_without_being_root(scene):
    """By fusermount3, with a device that all may use: in a mount namespace of its own, where that does no harm."""
    if os.geteuid() != 0:
        raise Skip("this user is not root already; every check is this one")
    helper = shutil.which("fusermount3")
    if helper is None or not os.stat(helper).st_mode & 0o4000:
        raise Skip("no set-user-id fusermount3")
    os.chmod(scene.scratch, 0o755)
    for name in ("near", "mnt"):
        (scene.scratch / name).mkdir()
        os.chown(scene.scratch / name, 65534, 65534)
    (scene.scratch / "near" / "f").write_bytes(b"1")
    shutil.copy2(scene.sluice, scene.scratch / "sluice")
    script = """
        set -e
        cd "$1"
        mknod fuse c 10 229
        chmod 666 fuse
        mount --bind fuse /dev/fuse
        exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -ec '
            ./sluice mount --daemon near mnt
            cat mnt/f
            echo 2 > mnt/g
            ./sluice umount mnt
            ls mnt near'
        """
    done = run("unshare", "-m", "sh", "-c", script, "sh", scene.scratch, expect=None)
    if b"/dev/fuse" in done.stderr and b"nodev" in done.stderr:
        raise Skip("devices cannot be made here")
    want(done.returncode == 0, done.stderr.decode())
    said = done.stdout.decode().splitlines()
    want(said[1:] == ["1mnt:", "", "near:", "f", "g"], f"{said}")
