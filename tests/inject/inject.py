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
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from process import Process, Wrong, end_all
from systems import Systems


class Scenarios(Systems):
    def __init__(self, build, scratch):
        self.bin, self.lib, self.examples = (os.path.join(build, folder) for folder in ("bin", "lib", "tools"))
        self.scratch = scratch
        self.star = self.make("star", ["topo", "star", "--hosts", "3"])
        self.regular = self.make("regular", ["topo", "regular", "--hosts", "4", "--degree", "2"])
        self.tables = os.path.join(scratch, "tables")
        plan = self.make("plan", ["plan", self.star, "-c", "allreduce", "-o", "-"])
        self.banyan(["tables", self.star, plan, "-o", self.tables])
        self.pair = os.path.join(scratch, "pair")
        self.make_pair()
        self.make_site()
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
        command = [os.path.join(self.bin, "banyan-switchd"), "--name", "switch0", "--control", control, "--state", folder,
                   "--no-huge", "--cores", "1"]
        for i in range(3):
            command += ["--vdev", "net_null%d,no-rx=1" % i]
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
        if process.end() != 0 and (fault["FAIL_AT"] == "0" or "in_process: " not in process.text()):
            raise Wrong("a wrong sum, or an error without a fault:\n" + process.text())

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
        explained = fault["FAIL_AT"] != "0" and "allreduce: " in process.text()
        if status not in (0, 1) or (status == 1 and not explained):
            raise Wrong("exit status %d:\n%s" % (status, process.text()))
        if re.search("ranks is (?!1$)", process.text(), re.M):
            raise Wrong("a wrong sum:\n" + process.text())

    KINDS = {"banyand_new": ["memory", "eio", "enospc", "short"], "banyand_again": ["memory", "eio", "enospc", "short"],
             "banyand_serves": ["memory", "eio", "enospc", "short", "send"], "banyand_tls": ["own", "memory", "send"],
             "switchd": ["memory", "eio", "enospc", "short", "send"], "library": ["memory"],
             "library_udp": ["memory", "send"], "python": ["memory"], "nccl": ["memory", "send"],
             "openmpi": ["memory"], "mpich": ["memory"]}
    ALWAYS = {"openmpi:memory": [1, 2]}  # a rank without a module, for which the others waited for ever


def attempt(scenarios, library, name, kind, at, stacks=None):
    """Returns the violation, or None, and the number of calls. Writes those with new stacks to a file."""
    folder = tempfile.mkdtemp(dir=scenarios.scratch)
    count = os.path.join(folder, "count")
    fault = {"LD_PRELOAD": library, "FAIL_KIND": "memory" if kind == "own" else kind, "FAIL_AT": str(at),
             "FAIL_COUNT": count}
    if kind == "own":  # the memory of the program's own code, without that of libraries
        fault["FAIL_OWN"] = "1"
    if stacks:
        fault["FAIL_STACKS"] = stacks
    try:
        getattr(scenarios, name)(folder, fault)
        violation = None
    except Wrong as wrong:
        violation = str(wrong)
    end_all(folder)
    calls = 0
    if os.path.exists(count):
        with open(count) as file:
            calls = int(file.read() or 0)  # nothing: the call that failed was one of these
    shutil.rmtree(folder)
    return violation, calls


def draw(options, always, calls, stacks):
    """Returns the numbers of the calls that fail, and of how many different ones they are."""
    places = range(1, calls + 1)
    if stacks:
        with open(stacks) as file:
            places = sorted(int(line) for line in file)
    different = len(places)
    if options.at:
        places = [options.at]
    elif options.runs:
        places = random.Random(options.seed).sample(places, min(options.runs, different))
        places = sorted(set(places).union(always))
    return places, different


def run(options, scenarios, library, pool):
    """Runs all that is selected. Returns how many runs passed and failed."""
    chosen, passed, failed = [], 0, 0
    for name, kinds in scenarios.KINDS.items():
        kinds = [kind for kind in kinds if not options.scenario or {name, name + ":" + kind} & set(options.scenario)]
        kinds = [kind for kind in kinds if name + ":" + kind not in options.without]
        if kinds and scenarios.lacks(name):
            print("  SKIP   %-24s %s" % (name, scenarios.lacks(name)))
            continue
        for kind in kinds:
            stacks = os.path.join(scenarios.scratch, "stacks-%s-%s" % (name, kind)) if options.stacks else None
            chosen.append((name, kind, stacks, pool.submit(attempt, scenarios, library, name, kind, 0, stacks)))
    rows = []
    for name, kind, stacks, count in chosen:
        violation, calls = count.result()
        if violation or not calls:
            sys.exit("inject: %s:%s without a fault: %s" % (name, kind, violation or "it counts no calls"))
        places, different = draw(options, scenarios.ALWAYS.get(name + ":" + kind, []), calls, stacks)
        results = [pool.submit(attempt, scenarios, library, name, kind, at) for at in places]
        rows.append((name, kind, calls, " (%d stacks)" % different if stacks else "", places, results))
    for name, kind, calls, note, places, results in rows:
        bad = 0
        for at, result in zip(places, results):
            violation = result.result()[0]
            bad += violation is not None
            if violation:
                print("  FAIL   %s:%s --at %d: %s" % (name, kind, at, violation), flush=True)
        print("  %-4s   %-24s %5d of %5d calls failed, %d violations%s"
              % ("FAIL" if bad else "PASS", name + ":" + kind, len(places), calls, bad, note), flush=True)
        passed += len(places) - bad
        failed += bad
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("scenario", nargs="*", help="as printed (default: all)")
    parser.add_argument("--build", required=True)
    parser.add_argument("--runs", type=int, default=0, help="faults of each scenario and kind, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", type=int, default=0, help="fail this call alone")
    parser.add_argument("--stacks", action="store_true", help="of calls with the same stack, only the first")
    parser.add_argument("--without", action="append", default=[], help="leave out this scenario:kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1)
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    library = os.path.join(build, "lib/libfail.so")
    scratch = tempfile.mkdtemp(prefix="inject-")
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        passed, failed = run(options, Scenarios(build, scratch), library, pool)
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(scratch)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
