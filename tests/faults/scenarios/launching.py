"""Commands that cannot be: refused with a sentence that says what to do."""

import os
import shutil
import socket

from faults.scenario import Skip, clear_sentence, hold, scenario
from house import places


@scenario
def program_not_found(house):
    """Like env(1): 127 for a program that is not there, 126 for one that cannot be run."""
    done = house.cli("run", "--", "no-such-program")
    clear_sentence(done, "no-such-program")
    hold(done.returncode == 127, "exit status", done.returncode)
    (house.local / "not-executable").write_text("text")
    done = house.cli("run", "--", "./not-executable")
    clear_sentence(done, "not-executable")
    hold(done.returncode == 126, "exit status", done.returncode)


@scenario
def exit_status_is_the_programs(house):
    """run is transparent: statuses and signals come through."""
    hold(house.cli("run", "--", "sh", "-c", "exit 7").returncode == 7)
    hold(house.cli("run", "--", "true").returncode == 0)
    hold(house.cli("run", "--", "sh", "-c", "kill -TERM $$").returncode in (-15, 143))


@scenario
def static_program(house):
    """A static program is refused with advice, and does not touch the local directory."""
    program = places.programs_directory() / "static"
    if not program.exists():
        raise Skip("the static test program is not built (libc.a missing?)")
    mapped = house.local / "mapped"
    mapped.mkdir()
    uri = house.serve().uri
    done = house.cli("run", "--map", f"{mapped}={uri}/far", "--", program, mapped / "out")
    clear_sentence(done, "static")
    hold(not list(mapped.iterdir()), "it wrote to the local directory")


@scenario
def setuid_program(house):
    """The loader ignores preloading for a setuid program: refused with advice."""
    if os.geteuid() != 0:
        raise Skip("making a program of another user's needs root")
    program = house.local / "setuid-cat"
    shutil.copy("/bin/cat", program)
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    done = house.cli("run", "--", program, "/etc/hostname")
    clear_sentence(done, ("setuid", "set-user-ID"))


@scenario
def script_of_a_missing_interpreter(house):
    """A script whose interpreter is not there."""
    script = house.local / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    clear_sentence(house.cli("run", "--", script), ("/no/such/interpreter", "script"))


@scenario
def serving_what_is_not_there(house):
    """serve refuses missing directories, files, doubled and malformed names."""
    listen = ("--listen", f"unix:{house.scratch}/x.sock")
    clear_sentence(house.cli("serve", f"far={house.scratch}/absent", *listen, seconds_max=10), "absent")
    clear_sentence(house.cli("serve", f"far={house.served}/file.txt", *listen, seconds_max=10), "file.txt")
    clear_sentence(house.cli("serve", f"far={house.served}", f"far={house.served}", *listen, seconds_max=10), "far")
    clear_sentence(house.cli("serve", f"a/b={house.served}", *listen, seconds_max=10), "a/b")
    clear_sentence(house.cli("serve", *listen, seconds_max=10))


@scenario
def listening_in_public(house):
    """Without TLS a service listens on the loopback only, unless told --insecure."""
    clear_sentence(house.cli("serve", f"far={house.served}", "--listen", "tcp:0.0.0.0:0", seconds_max=10), "insecure")
    service = house.serve("--insecure", listen="tcp:0.0.0.0:0")
    hold(service.alive())


@scenario
def listening_where_somebody_is(house):
    """A port or a socket in use is named; the service that has it goes on."""
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    clear_sentence(house.cli("serve", f"far={house.served}", "--listen", f"tcp:127.0.0.1:{port}", seconds_max=10), str(port))
    taken.close()
    service = house.serve()
    path = service.command[-1]
    clear_sentence(house.cli("serve", f"far={house.served}", "--listen", path, seconds_max=10), ".sock")
    hold("second line" in house.run(f"{service.uri}/far", "cat /far/file.txt").stdout, "the first service is disturbed")
    (house.scratch / "plain.sock").write_text("not a socket")
    clear_sentence(house.cli("serve", f"far={house.served}", "--listen", f"unix:{house.scratch}/plain.sock", seconds_max=10), "plain.sock")
    hold((house.scratch / "plain.sock").read_text() == "not a socket", "it removed somebody's file")


@scenario
def socket_is_private(house):
    """The socket file is for its owner only."""
    house.serve()
    for path in house.scratch.glob("*.sock"):
        hold(path.stat().st_mode & 0o077 == 0, "mode", oct(path.stat().st_mode))


@scenario
def configuration_mistakes(house):
    """An unknown key is an error that names the line and the nearest key."""
    (house.local / "sluice.toml").write_text("[serve]\nlistne = []\n")
    done = house.cli("run", "--config", house.local / "sluice.toml", "--", "true")
    clear_sentence(done, "listne", "listen", ":2")
    clear_sentence(house.cli("run", "--config", house.local / "absent.toml", "--", "true"), "absent.toml")


@scenario
def wrong_command_lines(house):
    """Wrong usage is status 2 (125 from run) and names the problem."""
    for arguments in (["frobnicate"], ["cat"], ["cp", "one"], ["ls", "--no-such-flag"]):
        done = house.cli(*arguments, seconds_max=10)
        hold(done.returncode == 2, arguments, "exit status", done.returncode)
        clear_sentence(done)
