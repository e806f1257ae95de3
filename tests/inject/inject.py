#!/usr/bin/env python3
"""Makes one call of a program fail at a time, and checks how the program ends.

    inject.py --build BUILD [--runs N] [--seed N] [SCENARIO[:KIND]...]

For each scenario and kind of call (fail.c), the calls of a run are counted; then the n-th fails, for
each n, or for N of them drawn at random. A program must give a correct result, or exit with status 1
to 3 and a text. It may not end by a signal, hang, give a wrong result, or leave state behind with
which the next run fails or that lacks what was acknowledged. Prints each violation with the command
that repeats it, and at the end `N passed, N failed`.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT_S = 20
number = itertools.count(1)


class Wrong(Exception):
    """A program did what it must not."""


class Process:
    """A program with its output in files, under the preloaded library if `fault` is set."""

    def __init__(self, folder, command, fault=None):
        environment = dict(os.environ, BANYAN_TIMEOUT="2", BANYAN_TRANSPORT="udp", ASAN_OPTIONS="detect_leaks=0")
        if fault:
            environment.update(fault)
        self.path = os.path.join(folder, "out%d" % next(number))
        with open(self.path, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                            env=environment, cwd=folder)

    def text(self):
        with open(self.path, errors="replace") as file:
            return file.read()

    def until(self, words):
        """Waits for the words, or the end. Returns whether the words were printed."""
        begin = time.monotonic()
        while not re.search(words, self.text()):
            if self.process.poll() is not None:
                return bool(re.search(words, self.text()))
            if time.monotonic() - begin > LIMIT_S / 2:
                return False
            time.sleep(0.005)
        return True

    def end(self, stop=False):
        """Waits for the end, after SIGTERM if `stop`. Returns the exit status, which must be sound."""
        stop = stop and self.process.poll() is None
        if stop:
            self.process.terminate()
        try:
            status = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Wrong("no end within %d s:\n%s" % (LIMIT_S, self.text())) from None
        if status == -15 and stop and self.text().strip():
            status = 3  # it was ending already, after an error
        if status < 0 or status > 3:
            raise Wrong("signal %d:\n%s" % (-status, self.text()) if status < 0 else
                        "exit status %d:\n%s" % (status, self.text()))
        if status != 0 and not self.text().strip():
            raise Wrong("exit status %d without a text" % status)
        return status


class Scenarios:
    def __init__(self, build, scratch):
        self.bin, self.examples, self.scratch = os.path.join(build, "bin"), os.path.join(build, "tools"), scratch
        self.star = self.make("star", ["topo", "star", "--hosts", "3"])
        self.regular = self.make("regular", ["topo", "regular", "--hosts", "4", "--degree", "2"])
        self.tables = os.path.join(scratch, "tables")
        plan = self.make("plan", ["plan", self.star, "-c", "allreduce", "-o", "-"])
        self.banyan(["tables", self.star, plan, "-o", self.tables])
        self.pair = os.path.join(scratch, "pair")
        self.make_pair()
        self.saved = os.path.join(scratch, "saved")
        self.banyand_new(self.saved, {}, check=False)

    def banyan(self, arguments):
        done = subprocess.run([os.path.join(self.bin, "banyan")] + arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit("inject: banyan %s: %s" % (" ".join(arguments), done.stderr))
        return done.stdout

    def make_pair(self):
        """The tables of two hosts on one cable, here the loopback interface of a network namespace."""
        two, site = os.path.join(self.scratch, "two.json"), os.path.join(self.scratch, "site.json")
        with open(two, "w") as file:
            json.dump({"name": "two", "unit": "Gbit/s", "nodes": [{"name": n, "kind": "compute"} for n in ("h0", "h1")],
                       "links": [{"between": ["h0", "h1"], "bandwidth": 10}]}, file)
        with open(site, "w") as file:
            json.dump({"format": "banyan-site-1", "links": [{"between": ["h0", "h1"], "ends": [
                {"interface": "lo", "address": "10.7.0.%d" % i} for i in (1, 2)]}]}, file)
        plan = self.make("pair", ["plan", two, "-c", "allreduce", "-o", "-"])
        self.banyan(["tables", two, plan, "--site", site, "-o", self.pair])

    def make(self, name, arguments):
        path = os.path.join(self.scratch, name + ".json")
        with open(path, "w") as file:
            file.write(self.banyan(arguments))
        return path

    def banyand(self, folder, *more, fault=None):
        return Process(folder, [os.path.join(self.bin, "banyand"), self.regular, "--sockets", folder, "--state",
                                os.path.join(folder, "state"), "--http", "off", "--socket", "off"] + list(more), fault)

    def banyand_after(self, folder, jobs):
        """The next banyand on this state must start, with the jobs that were acknowledged."""
        process = self.banyand(folder)
        ready = process.until(r"ready,")
        status = process.end(stop=True)
        if not ready or status != 0:
            raise Wrong("the next banyand does not start:\n" + process.text())
        if int(re.search(r"(\d+) jobs run", process.text()).group(1)) < jobs:
            raise Wrong("the next banyand has lost the job that ran:\n" + process.text())

    def banyand_new(self, folder, fault, check=True):
        """A new banyand plans a job and stores it."""
        os.makedirs(folder, exist_ok=True)
        process = self.banyand(folder, "--job", "1=allreduce", fault=fault)
        told = r"job 1 runs|job 1 .*fail|job 1: |banyand.db: "
        process.until(told)
        runs = "job 1 runs" in process.text()
        status = process.end(stop=True)
        if status == 0 and not re.search(told, process.text()):
            raise Wrong("banyand went on without its job, and said nothing:\n" + process.text())
        if check:
            self.banyand_after(folder, runs)

    def banyand_again(self, folder, fault):
        """A banyand that starts with the job of its last run."""
        shutil.copytree(os.path.join(self.saved, "state"), os.path.join(folder, "state"))
        process = self.banyand(folder, fault=fault)
        ready = process.until(r"ready,")
        process.end(stop=True)
        if ready and " 1 jobs run" not in process.text():
            raise Wrong("banyand started without its job:\n" + process.text())
        self.banyand_after(folder, 1)

    def switchd(self, folder, fault):
        """A switch that gets a table, and offers it to the next run."""
        control = "unix:%s/switch0.sock" % folder
        command = [os.path.join(self.bin, "banyan-switchd"), "--name", "switch0", "--vdev", "net_null0", "--vdev", "net_null1",
                   "--vdev", "net_null2", "--control", control, "--state", folder, "--no-huge", "--cores", "1"]
        process = Process(folder, command, dict(fault, FAIL_OWN="1"))
        pushed = False
        if process.until(r"ready,"):
            push = Process(folder, [os.path.join(self.bin, "banyan"), "push", self.tables, "--to", "switch0=" + control,
                                    "--timeout", "3"])
            pushed = push.end() == 0
        process.end(stop=True)
        told = "--state" in process.text()
        process = Process(folder, command)
        if not process.until(r"ready,"):
            raise Wrong("the next switch does not start:\n" + process.text())
        restore = Process(folder, [os.path.join(self.bin, "banyan"), "push", "--saved", "--to", "switch0=" + control])
        restored = restore.end() == 0
        process.end(stop=True)
        if "ignoring it" in process.text():
            raise Wrong("a saved table is damaged:\n" + process.text())
        if pushed and not told and not restored:
            raise Wrong("the table that was active is not offered:\n" + restore.text())

    def library(self, folder, fault):
        """Three ranks of libbanyan on a fabric in memory, which check their sums."""
        process = Process(folder, [os.path.join(self.examples, "example-in_process"), self.tables], fault)
        if process.end() != 0 and "in_process: " not in process.text():
            raise Wrong("a wrong sum:\n" + process.text())

    def library_udp(self, folder, fault):
        """Two ranks of libbanyan over UDP; rank 0 has the fault."""
        example = os.path.join(self.examples, "example-allreduce")
        faults = " ".join("%s=%s" % pair for pair in fault.items())
        process = Process(folder, ["unshare", "--net", "sh", "-c", """
            ip link set lo up && ip address add 10.7.0.1/32 dev lo && ip address add 10.7.0.2/32 dev lo || exit 3
            BANYAN_TABLE=%s/h1.table %s & env %s BANYAN_TABLE=%s/h0.table %s; status=$?
            wait $!; peer=$?; [ $peer -le 3 ] || exit $peer; exit $status"""
                                   % (self.pair, example, faults, self.pair, example)])
        status = process.end()
        if status not in (0, 1) or (status == 1 and "allreduce: " not in process.text()):
            raise Wrong("exit status %d:\n%s" % (status, process.text()))
        if re.search("ranks is (?!1$)", process.text(), re.M):
            raise Wrong("a wrong sum:\n" + process.text())

    KINDS = {"banyand_new": ["memory", "eio", "enospc", "short"], "banyand_again": ["memory", "eio", "enospc", "short"],
             "switchd": ["memory", "eio", "enospc", "short", "send"], "library": ["memory"],
             "library_udp": ["memory", "send"]}


def attempt(scenarios, library, name, kind, at):
    """Returns the violation, or None, and the number of calls."""
    folder = tempfile.mkdtemp(dir=scenarios.scratch)
    count = os.path.join(folder, "count")
    fault = {"LD_PRELOAD": library, "FAIL_KIND": kind, "FAIL_AT": str(at), "FAIL_COUNT": count}
    try:
        getattr(scenarios, name)(folder, fault)
        violation = None
    except Wrong as wrong:
        violation = str(wrong)
    calls = 0
    if os.path.exists(count):
        with open(count) as file:
            calls = int(file.read() or 0)  # nothing: the call that failed was one of these
    shutil.rmtree(folder)
    return violation, calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("scenario", nargs="*", help="as printed (default: all)")
    parser.add_argument("--build", required=True)
    parser.add_argument("--runs", type=int, default=0, help="faults of each scenario and kind, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", type=int, default=0, help="fail this call alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    library = os.path.join(build, "lib/libfail.so")
    scratch = tempfile.mkdtemp(prefix="inject-")
    passed = failed = 0
    try:
        scenarios = Scenarios(build, scratch)
        for name, kinds in scenarios.KINDS.items():
            if name == "library_udp" and os.geteuid() != 0:
                print("  SKIP   library_udp              its network namespace needs root")
                continue
            for kind in kinds:
                if options.scenario and name not in options.scenario and name + ":" + kind not in options.scenario:
                    continue
                violation, calls = attempt(scenarios, library, name, kind, 0)
                if violation:
                    sys.exit("inject: %s without a fault: %s" % (name, violation))
                places = list(range(1, calls + 1))
                if options.at:
                    places = [options.at]
                elif options.runs:
                    places = sorted(random.Random(options.seed).sample(places, min(options.runs, calls)))
                bad = 0
                with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                    results = pool.map(lambda at, n=name, k=kind: attempt(scenarios, library, n, k, at), places)
                    for at, (violation, _) in zip(places, results):
                        bad += violation is not None
                        if violation:
                            print("  FAIL   %s:%s --at %d: %s" % (name, kind, at, violation), flush=True)
                print("  %-4s   %-24s %5d of %5d calls failed, %d violations"
                      % ("FAIL" if bad else "PASS", name + ":" + kind, len(places), calls, bad), flush=True)
                passed += len(places) - bad
                failed += bad
    finally:
        shutil.rmtree(scratch)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
