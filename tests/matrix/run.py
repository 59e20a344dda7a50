#!/usr/bin/python3
"""Runs every program case natively and through Sluice, and compares what can be seen.

Compared are the exit status, standard output, and the whole trees of the data directory and the
working directory: names, types, modes, sizes, contents, links. Verdicts:

  ok       no difference
  known    a clean error that known.toml lists with its reason, or any clean error under SLUICE_PATCH=0
  error    a difference that the program reported: an exit status or a message natively absent
  silent   a difference that nobody reported: the one thing that must never happen
  hang     no end within the time allowed
  failed   a service died, or the native run itself failed
  skipped  something it needs is not installed
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import places, report, seed, tree  # noqa: E402
from house.services import ServiceFailed  # noqa: E402
from matrix import transports  # noqa: E402
from matrix.case import load_cases  # noqa: E402

PYTHON = "/usr/bin/python3"


def main():
    options = parse_arguments()
    cases = chosen_cases(options)
    if options.list:
        for case in cases:
            print(f"{case.group:<12} {case.name}")
        return 0

    sluice = None
    if options.transport not in transports.WITHOUT_SLUICE:
        sluice = places.sluice_binary(options.sluice)
        if sluice is None:
            print("matrix: no sluice binary; build it with `cargo build --release`, or use --transport local")
            return 2
    subprocess.run(["make", "-s", "-C", str(places.REPOSITORY / "tests" / "programs"),
                    f"BIN={places.programs_directory()}", "-j2", "-k"], stdout=subprocess.DEVNULL)

    scratch = places.scratch_directory("matrix")
    transport = transports.make(options.transport, sluice)
    results = []
    try:
        transport.open(scratch)
        seed.make_seed(scratch / "seed")
        bench = Bench(scratch, transport, options, load_known(transport))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for result in pool.map(bench.judge, cases):
                results.append(result)
                if options.verbose or not report.passed(result):
                    report.print_line(result)
    except ServiceFailed as reason:
        results.append(report.Result(f"matrix over {options.transport}", "failed", details=[str(reason)]))
        report.print_line(results[-1])
    finally:
        transport.close()
        if options.keep:
            print(f"  kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)

    if options.json:
        print(json.dumps([vars(r) for r in results], indent=1))
    report.print_table(results)
    silent = sum(r.verdict == "silent" for r in results)
    print(f"\n  matrix over {options.transport}: {len(results)} cases, silent {silent}")
    return report.conclude(results)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="REGEX", help="cases whose name or group matches")
    parser.add_argument("--core", action="store_true", help="the small set only")
    parser.add_argument("--transport", default="uds", choices=[*transports.WITHOUT_SLUICE, *transports.ROUTED])
    parser.add_argument("--sluice", help="the sluice binary (default: $SLUICE_BIN, then the release build)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="also print every result as JSON")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory in place")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--verbose", "-v", action="store_true", help="a line for every case, not only for bad ones")
    return parser.parse_args()


def chosen_cases(options):
    cases = load_cases()
    if options.core:
        cases = [c for c in cases if c.core]
    if options.only:
        cases = [c for c in cases if any(re.search(o, c.name) or o == c.group for o in options.only)]
    return cases


def load_known(transport):
    """Case name → reason, of the clean errors that are accepted here."""
    if transport.name in transports.WITHOUT_SLUICE:
        return {}
    with open(HERE / "known.toml", "rb") as file:
        listed = tomllib.load(file)
    sections = ["everywhere", transport.name]
    return {name: reason for section in sections for name, reason in listed.get(section, {}).items()
            if isinstance(reason, str)}


def load_skipped(transport):
    """Case name → reason, of those that tell nothing here."""
    with open(HERE / "known.toml", "rb") as file:
        return tomllib.load(file).get(transport.name, {}).get("skip", {})


class Bench:
    """Judges cases, each in its own corner of the scratch directory."""

    def __init__(self, scratch, transport, options, known):
        self.scratch, self.transport, self.options, self.known = scratch, transport, options, known
        # Plain interposition misses what libc calls within itself: there, errors are expected, silence is not.
        self.interposed = transport.name not in transports.WITHOUT_SLUICE and os.environ.get("SLUICE_PATCH") == "0"
        self.skipped = load_skipped(transport)
        self.modules = {}
        self.modules_lock = threading.Lock()

    def judge(self, case):
        """Runs one case both ways and compares."""
        if case.name in self.skipped:
            return report.Result(case.name, "skipped", details=[self.skipped[case.name]], group=case.group)
        missing = self.missing(case)
        if missing:
            return report.Result(case.name, "skipped", details=[f"not installed: {missing}"], group=case.group)
        start = time.monotonic()
        verdict, details = self.compare(case)
        if verdict == "error" and (case.name in self.known or self.interposed):
            verdict = "known"
        elif verdict == "ok" and case.name in self.known:
            details = [f"passes now: take it off known.toml ({self.known[case.name]})"]
        return report.Result(case.name, verdict, time.monotonic() - start, details, case.group)

    def missing(self, case):
        for tool in case.needs:
            if not places.has_tool(tool) and not (places.programs_directory() / tool).exists():
                return tool
        for module in case.modules:
            with self.modules_lock:
                if module not in self.modules:
                    probe = subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL)
                    self.modules[module] = probe.returncode == 0
            if not self.modules[module]:
                return f"the Python module {module}"
        return None

    def compare(self, case):
        corner = self.scratch / "cases" / case.name
        native = Run(self, case, corner / "native", corner / "native" / "data")
        routed_data = self.transport.served / case.name
        routed = Run(self, case, corner / "routed", routed_data, self.transport)
        try:
            native.execute()
            if native.hung:
                return "failed", ["the native run did not end"]
            if native.status != 0:
                return "failed", ["the native run failed: fix the case", *native.last_words()]
            routed.execute()
            died = self.transport.health()
            if died:
                return "failed", [died]
            if routed.hung:
                return "hang", [f"no end after {case.seconds_max} s", *routed.last_words()]
            return self.verdict_by_line(native, routed) if case.by_line else self.verdict(native, routed)
        finally:
            if not self.options.keep:
                shutil.rmtree(corner, ignore_errors=True)
                shutil.rmtree(routed_data, ignore_errors=True)

    @staticmethod
    def verdict(native, routed):
        details = []
        if routed.status != native.status:
            details.append(f"exit status {routed.status}, should be {native.status}")
        if routed.output != native.output:
            details += unequal_lines(native.output, routed.output)
        details += [f"data: {line}" for line in tree.differences(native.data_tree, routed.data_tree)]
        details += [f"work: {line}" for line in tree.differences(native.work_tree, routed.work_tree)]
        if not details:
            return "ok", []
        heard = set(native.errors.splitlines())
        messages = [line for line in routed.errors.splitlines() if line.strip() and line not in heard]
        details += [f"stderr: {m.decode(errors='replace')}" for m in messages[:4]]
        reported = (routed.status != 0 and routed.status != native.status) or messages
        return ("error" if reported else "silent"), details


    def verdict_by_line(self, native, routed):
        """For tables of probes: each line is right, a known error, an error, or silently wrong."""
        got = numbered_answers(routed.output)
        worst, details = "ok", []
        for what, want in numbered_answers(native.output).items():
            answer = got.get(what, b"no answer")
            what = what[0]
            if answer == want or f"{native.case.name}: {what.decode()}" in self.known:
                continue
            refused = b'"result": -1' in answer and b'"result": -1' not in want
            # Two different errnos are both errors; a value in place of an errno is not.
            refused = refused or (b'"result": -1' in answer and b'"errno": ""' not in answer)
            reported = refused or not answer.startswith(b"{")
            worst = "error" if reported and worst != "silent" else "silent"
            details.append(f"{'error ' if reported else 'SILENT'} {what.decode()}: {short(answer)}")
            details.append(f"                should be: {short(want)}")
        trees = tree.differences(native.data_tree, routed.data_tree)
        if trees and worst == "ok":
            worst = "silent"
        return worst, details + [f"data: {line}" for line in trees]


class Run:
    """One execution of a case's script, and everything that can be seen of it afterwards."""

    def __init__(self, bench, case, corner, data_directory, transport=None):
        self.bench, self.case, self.corner = bench, case, corner
        self.real_data = data_directory
        self.work = corner / "work"
        self.command, self.data, self.address = [], str(data_directory), str(data_directory)
        if transport:
            self.command = transport.command(case.name)
            self.data, self.address = transport.data(case.name), transport.address(case.name)

    def execute(self):
        seed.plant(self.bench.scratch / "seed", self.real_data)
        self.work.mkdir(parents=True)
        script = self.corner / "case.sh"
        script.write_text(f". {HERE}/prelude.sh\n{self.case.script}")
        out, err = self.corner / "stdout", self.corner / "stderr"
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            process = subprocess.Popen(
                [*self.command, "/bin/bash", str(script)], cwd=self.work, env=self.environment(),
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True)
            self.hung = not self.wait(process)
        self.status = process.returncode
        self.output = self.normalise(out.read_bytes())
        self.errors = self.normalise(err.read_bytes())
        self.data_tree = tree.snapshot(self.real_data)
        self.work_tree = tree.snapshot(self.work)

    def wait(self, process):
        """True if it ended in time; otherwise the whole process group is ended."""
        try:
            process.wait(self.case.seconds_max)
            return True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False

    def environment(self):
        passed_on = {k: v for k, v in os.environ.items() if k.startswith("SLUICE_")}
        return {
            "PATH": places.CASE_PATH, "HOME": str(self.work), "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "D": self.data, "U": self.address, "W": str(self.work), "P": str(places.programs_directory()),
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "TMPDIR": "/tmp",
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
            "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org",
            "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z", "GIT_CONFIG_NOSYSTEM": "1",
            **passed_on,
        }

    def normalise(self, text: bytes):
        """Replaces what must differ between the runs: where the data and working directories are."""
        for path, shown in ((self.address, b"@D"), (self.data, b"@D"), (str(self.work), b"@W"),
                            (str(self.corner), b"@C")):
            text = re.sub(re.escape(path.encode()) + rb"(?![\w-])", shown, text)
        return text

    def last_words(self):
        return [f"stderr: {line.decode(errors='replace')}" for line in self.errors.splitlines()[-4:]]


def numbered_answers(output):
    """Maps (what was asked, how many times before) to the answer."""
    answers, seen = {}, {}
    for line in output.splitlines():
        what, tab, answer = line.partition(b"\t")
        if tab:
            answers[what, seen.get(what, 0)] = answer
            seen[what] = seen.get(what, 0) + 1
    return answers


def unequal_lines(native, routed):
    """The first lines where two outputs differ."""
    for number, (want, got) in enumerate(zip(native.splitlines(), routed.splitlines()), 1):
        if want != got:
            return [f"stdout line {number}: {short(got)}", f"     should be: {short(want)}"]
    return [f"stdout has {len(routed)} bytes, should have {len(native)}"]


def short(line, length=160):
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= length else text[:length] + "…"


if __name__ == "__main__":
    sys.exit(main())
