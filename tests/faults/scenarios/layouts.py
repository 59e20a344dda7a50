"""Layouts that change while they are used, and datasets that a program has for itself."""

import functools
import json
import os
import pty
import random
import select
import signal
import subprocess
import time

from faults.scenario import clear_sentence, environment, hold, scenario
from faults.scenarios.datasets import DATASET, POINTS, define, differences, rows, serve
from house.services import wait_until

AOS = DATASET.replace("view soa", "// view soa")
SOA = "view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }"

# Writes one view without end and says which of its numbers were acknowledged.
WRITER = """
import os, random, sys
at = os.open("/far/aos", os.O_WRONLY)
numbers = random.Random(int(sys.argv[1]))
for i in range(10**9):
    offset = 12 * numbers.randrange(%d)
    os.pwrite(at, numbers.randbytes(12), offset); os.fsync(at)
    print(i, flush=True)
"""


def written(seed, count, data):
    """What `WRITER` has made of the array after so many writes."""
    data, numbers = bytearray(data), random.Random(seed)
    for _ in range(count):
        offset = 12 * numbers.randrange(POINTS)
        data[offset:offset + 12] = numbers.randbytes(12)
    return bytes(data)


def layouts(aos):
    arrays = b"".join(b"".join(aos[k + 12 * i:k + 12 * i + 4] for i in range(POINTS)) for k in (0, 4, 8))
    return {"aos": aos, "soa": arrays, "b": arrays[4 * POINTS:8 * POINTS]}


class Writer:
    """A program that writes all the while, and how many writes were acknowledged to it."""

    def __init__(self, house, uri, seed):
        command = [house.sluice, "run", "--map", f"/far={uri}/p", "--", "/usr/bin/python3", "-u", "-c", WRITER % POINTS, str(seed)]
        self.process = house.start(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.seed, self.count = seed, 0
        self.wait_for(1)

    def wait_for(self, more):
        end = self.count + more
        for line in self.process.stdout:
            self.count = int(line) + 1
            if self.count >= end:
                return
        hold(False, "the writer has ended after", self.count)

    def stop(self):
        """Ends it, and says how many writes were acknowledged."""
        self.process.kill()
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.count = int(line) + 1
        self.process.wait()
        return self.count


def holds(found, data, seed, count):
    """Whether a view has what was acknowledged; the write after that may be there or not."""
    return found in (written(seed, count, data), written(seed, count + 1, data))


def cat(house, uri, view):
    return subprocess.run([house.sluice, "cat", f"{uri}/p/{view}"], capture_output=True, timeout=60).stdout


@scenario
def layouts_change_while_a_program_writes(house):
    """Views and replicas are added, removed and rebuilt by file and by address; the writer never notices."""
    path = define(house, ["replica r1 { view aos }  // the first"], AOS % POINTS)
    service, data = serve(house, path), rows("live")["aos"]
    (house.local / "in").write_bytes(data)
    hold(house.run(f"{service.uri}/p", "cat in > /far/aos").returncode == 0, "writing")
    writer = Writer(house, service.uri, 1)
    for arguments, said in ((("add", path, SOA), "added view soa"),
                            (("add", f"{service.uri}/p", "replica r2 { view soa }", "replica r3 async complete { view b }"), "r3: made"),
                            (("add", path, "replica r4 on-close { view soa }"), "r4: made"),
                            (("remove", path, "fifth"), "removed view fifth"),
                            (("remove", "--replica", f"{service.uri}/p", "r4"), "removed replica r4")):
        done = house.cli("layout", *arguments)
        hold(done.returncode == 0 and said in done.stdout, arguments, done.stdout, done.stderr)
        writer.wait_for(20)
    os.remove(path.parent / "r2")
    done = house.cli("layout", "status", "--json", path)
    stale = [one["name"] for one in json.loads(done.stdout)["replicas"] if not one["ok"]]
    hold(done.returncode == 1 and stale == ["r2"], done.stdout, done.stderr)
    writer.wait_for(20)
    done = house.cli("layout", "rebuild", path)
    hold(done.returncode == 0 and "r2: made" in done.stdout, done.stdout, done.stderr)
    writer.wait_for(20)
    clear_sentence(house.cli("layout", "remove", path, "soa"), "r2", "remove the replica first")
    clear_sentence(house.cli("layout", "add", path, "view x { var x = nothing }"), "nothing")
    hold(house.cli("layout", "remove", "--replica", path, "r1").returncode == 0, "r2 has all")
    clear_sentence(house.cli("layout", "remove", "--replica", path, "r2"), ("r2", "sync"))
    writer.wait_for(20)
    count = writer.stop()
    found = cat(house, service.uri, "aos")
    hold(holds(found, data, 1, count), "acknowledged data is lost")
    expected = layouts(found)
    hold(not differences(house, service.uri, expected), differences(house, service.uri, expected))
    hold(house.cli("layout", "status", f"{service.uri}/p").returncode == 0, "it is up to date")
    hold(service.stop(), "it had to be killed")
    hold((path.parent / "r2").read_bytes() == expected["soa"], "r2 differs")
    hold((path.parent / "r3").read_bytes()[:4 * POINTS] == expected["b"], "r3 differs")
    text = path.read_text()
    hold("fifth" not in text and "r1" not in text and "// the first" in text and "replica r2 { view soa }" in text, text)
    # The same without a service.
    for arguments in (("add", path, "view a { var a[i] = data[i].a }", "replica r5 { view a; view b }"), ("remove", "--replica", path, "r5"),
                      ("remove", path, "a")):
        done = house.cli("layout", *arguments)
        hold(done.returncode == 0, arguments, done.stdout, done.stderr)
    service = serve(house, path)
    hold(not differences(house, service.uri, expected), "something was changed")


@scenario
def killed_while_layouts_change(house):
    """SIGKILL amid add, remove and rebuild while a program writes: the old or the new definition, equal replicas."""
    chance = random.Random(os.environ.get("SLUICE_FAULTS_SEED", "layouts"))
    seen = set()
    for turn in range(8):
        name = f"turn{turn}.drepl"
        path = define(house, [f"replica t{turn}a {{ view aos }}", f"replica t{turn}b {{ view soa }}"], DATASET % POINTS, name)
        service, data = serve(house, path), bytes(12 * POINTS)
        writer = Writer(house, service.uri, turn)
        if turn % 4 == 3:
            os.remove(path.parent / f"t{turn}b")
        arguments = (("add", path, f"replica t{turn}c {{ view soa }}"), ("add", path, f"replica t{turn}c async complete {{ view b }}"),
                     ("remove", "--replica", path, f"t{turn}b"), ("rebuild", path))[turn % 4]
        change = house.start([house.sluice, "layout", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.random() * 0.08)
        service.kill()
        count = writer.stop()
        change.kill()
        change.wait()
        service = serve(house, path)
        done = house.cli("layout", "rebuild", path)
        hold(done.returncode == 0, turn, done.stdout, done.stderr)
        status = json.loads(house.cli("layout", "status", "--json", path).stdout)
        names = [one["name"][-1] for one in status["replicas"]]
        hold(all(one["ok"] for one in status["replicas"]), turn, status)
        seen.add((turn % 4, "".join(names)))
        found = cat(house, service.uri, "aos")
        hold(holds(found, data, turn, count), "acknowledged data is lost", turn, count)
        expected = layouts(found)
        hold(not differences(house, service.uri, expected), turn, "views differ")
        hold(service.stop(), "it had to be killed")
        for one, view in (("a", "aos"), ("b", "soa"), ("c", "soa" if turn % 4 == 0 else "b")):
            if one in names:
                stored = (path.parent / f"t{turn}{one}").read_bytes()
                hold(stored[:len(expected[view])] == expected[view], turn, one, "differs")
    hold(len(seen) >= 4, seen)


def own(house, path, script, *options, **how):
    """Starts a shell whose /views are the views of a dataset that nobody else serves."""
    command = [house.sluice, "run", *options, "--layout", f"/views={path}", "--", "/bin/bash", "-c", script]
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=house.local, env=environment(), process_group=0, **how)


@scenario
def a_program_has_a_dataset_for_itself(house):
    """`run --layout` and `run --store`: several processes, one dataset, and replicas that are complete at the end."""
    path = define(house, ["replica r1 { view aos }", "replica r2 async { view soa }", "replica r3 on-close { view b }"])
    expected = rows("own")
    for view in ("aos", "soa", "b"):
        (house.local / view).write_bytes(expected[view])
    program = own(house, path, "cat aos > /views/aos & wait; cmp soa /views/soa && cat /views/b | cmp b - && ls /views | wc -l; exit 7")
    out, err = program.communicate(timeout=60)
    hold(program.returncode == 7 and out.strip() == "4", program.returncode, out, err)
    for name, view in (("r1", "aos"), ("r2", "soa"), ("r3", "b")):
        hold((path.parent / name).read_bytes() == expected[view], name, "differs")
    hold("not closed" not in house.cli("layout", "status", path).stdout, "it was closed")
    done = house.cli("run", "--store", f"p={path}", "--", "cmp", "b", "scdc:///p/b")
    hold(done.returncode == 0, done.stdout, done.stderr)
    done = house.cli("run", "--layout", path, "--", "cmp", "b", "scdc:///points/b")
    hold(done.returncode == 0, done.stdout, done.stderr)
    # One that is served for all is used where it is served; one that another program has is not.
    service = serve(house, path)
    done = house.cli("run", "--layout", path, "--", "cmp", "soa", "scdc:///points/soa")
    hold(done.returncode == 0, done.stdout, done.stderr)
    service.stop()
    other = own(house, path, "echo ready; exec sleep 60")
    other.stdout.readline()
    done = house.cli("layout", "add", path, "view more { var data = data }")
    hold(done.returncode == 0, "a dataset of a program can be changed, too", done.stderr)
    clear_sentence(house.cli("run", "--layout", path, "--", "true"), "in use", str(other.pid))
    other.terminate()
    hold(other.wait(30) == -signal.SIGTERM, other.returncode)
    other.communicate()


def end_group(program):
    """What is stopped ends, too."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()


@scenario
def a_program_with_a_dataset_is_told_what_it_would_be_told(house):
    """Signals, stops, exit statuses, process group: as without Sluice."""
    path = define(house, ["replica r1 { view aos }", "replica r2 on-close { view soa }"])
    trap = "trap 'echo got; exit 9' %s; echo ready; while :; do sleep 0.05; done"
    for name in ("TERM", "USR1", "HUP", "INT", "QUIT"):
        program = own(house, path, trap % name)
        hold(program.stdout.readline() == "ready\n", name, "it does not begin")
        program.send_signal(getattr(signal, f"SIG{name}"))
        out, err = program.communicate(timeout=30)
        hold((program.returncode, out) == (9, "got\n"), name, program.returncode, out, err)
    for name in ("TERM", "KILL", "SEGV"):
        program = own(house, path, f"kill -{name} $$")
        program.communicate(timeout=30)
        hold(program.returncode == -getattr(signal, f"SIG{name}"), name, program.returncode)
    # What is ignored stays so.
    program = own(house, path, "grep SigIgn /proc/self/status", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    out, err = program.communicate(timeout=30)
    hold(int(out.split()[1], 16) & 1, out, err)
    # The terminal's stop, for all of the process group, and back.
    program = own(house, path, "ps -o pgid= -p $$; echo x > /views/aos; echo after")
    out, err = program.communicate(timeout=30)
    hold(out.split() == [str(program.pid), "after"], out, err)
    # Often, because what is passed on of a stop must not come after what ended it. The group is no orphaned one
    # (setpgid(2)), in which SIGTSTP would do nothing: this process has the session, and not the group, in common with it.
    for turns, is_alone in ((30, False), (1, True)):
        program = own(house, path, "echo ready; while [ ! -e end ]; do sleep 0.02; done; echo done")
        house.closing.append(functools.partial(end_group, program))
        program.stdout.readline()
        send = program.send_signal if is_alone else functools.partial(os.killpg, program.pid)
        for turn in range(turns):
            for number, flags in ((signal.SIGTSTP, os.WUNTRACED), (signal.SIGCONT, os.WCONTINUED)):
                send(number)
                hold(wait_until(lambda: os.waitpid(program.pid, flags | os.WNOHANG)[0] == program.pid, 20, 0.001),
                     turn, number.name, "alone" if is_alone else "to the group")
        (house.local / "end").touch()
        out, err = program.communicate(timeout=30)
        hold((program.returncode, out) == (0, "done\n"), program.returncode, out, err)
        (house.local / "end").unlink()
    done = house.cli("run", "--layout", path, "--", "/no/such/program")
    hold(done.returncode == 127, done.returncode)


class Terminal:
    """An interactive bash on a terminal of its own."""

    def __init__(self, house):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(house.local)
            os.execvpe("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], {**environment(), "PS1": "$ ", "TERM": "dumb"})
        house.closing.append(self.close)

    def until(self, text, written=b""):
        """Types something, and reads until the terminal shows a text."""
        os.write(self.terminal, written)
        said, end = "", time.monotonic() + 30
        while text not in said:
            hold(time.monotonic() < end, "no", repr(text), "but", repr(said))
            if select.select([self.terminal], [], [], 0.1)[0]:
                said += os.read(self.terminal, 65536).decode(errors="replace")
        return said

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@scenario
def a_program_with_a_dataset_is_a_job_of_its_shell(house):
    """On a terminal: Ctrl-Z, jobs, fg, Ctrl-C and kill %1 do what they do without Sluice."""
    path = define(house, ["replica r1 { view aos }", "replica r2 on-close { view soa }"])
    terminal = Terminal(house)
    run = f"{house.sluice} run --layout /views={path} --".encode()
    terminal.until("$ ")
    terminal.until("6\r\n", b"stty -echo; echo $((3 + 3))\n")
    terminal.until("hello\r\n", run + b" cat\nhello\n")
    terminal.until("Stopped", b"\x1a")
    terminal.until("Stopped", b"jobs\n")
    terminal.until("again\r\n", b"fg\nagain\n")
    terminal.until("$ ", b"\x03")
    terminal.until("status 130", b"echo status $?\n")
    terminal.until("[1]", run + b" sleep 60 &\n")
    terminal.until("status 143", b"kill %1; wait %1; echo status $?\n")
    terminal.until("%d\r\n" % (12 * POINTS), run + b" cat /views/aos | wc -c\n")
