"""Runs the tests of mpi4py's source, one after another, on all ranks, and notes each result at once.

    suite_of_mpi4py.py TESTS NOTES [--skip FILE] [--only FILE] [--types LETTERS] [--modules A,B]
                       [--seconds S] [--each S]

TESTS is the folder test of the source. Each rank appends "begin NAME", and "ok NAME", "skipped NAME"
or "wrong NAME: why", to NOTES/rank.N. A rank whose test fails ends the program, because the others
may wait in the same test for ever; a test that takes more than --each seconds is killed. The caller
starts the program again, with the tests that have a result in --skip; --only lists those to run. No
test begins after --seconds. Rank 0 admits each test by a byte in NOTES/gate: a call of MPI for this
would be counted.
--types restricts arrays to some element types (i: int, d: double).
"""
import argparse
import os
import signal
import sys
import threading
import time
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("tests")
parser.add_argument("notes")
parser.add_argument("--skip")
parser.add_argument("--only")
parser.add_argument("--types")
parser.add_argument("--seconds", type=float, default=300)
parser.add_argument("--each", type=float, default=60)
parser.add_argument("--modules", default="")
options = parser.parse_args()

# Those that start processes need a launcher that does.
LEFT_OUT = ("test_spawn", "test_dynproc")


def names_and_cases():
    """All tests, in the order of their names."""
    sys.path.insert(0, options.tests)
    if options.types:
        import arrayimpl

        for backend in arrayimpl.ArrayBackends:
            backend.TypeMap = {code: mpi for code, mpi in backend.TypeMap.items() if code in options.types}
    modules = sorted(name[:-3] for name in os.listdir(options.tests) if name.startswith("test_") and name.endswith(".py"))
    selected = options.modules.split(",") if options.modules else modules
    found = []

    def walk(suite):
        for item in suite:
            if isinstance(item, unittest.TestSuite):
                walk(item)
            else:
                found.append((item.id(), item))

    for module in modules:
        if module in selected and module not in LEFT_OUT:
            walk(unittest.defaultTestLoader.loadTestsFromModule(__import__(module)))
    return sorted(found, key=lambda pair: pair[0])


def main():
    sys.dont_write_bytecode = True
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.Get_rank()
    notes = open(os.path.join(options.notes, "rank.%d" % rank), "a", buffering=1)
    gate = os.path.join(options.notes, "gate")
    skip = set(open(options.skip).read().split()) if options.skip else set()
    only = set(open(options.only).read().split()) if options.only else None
    begin = time.monotonic()
    # MPI calls release Python's lock, so that this thread runs while a test waits in one.
    running = [None, 0.0]

    def watch():
        while True:
            time.sleep(1)
            name, since = running
            if name is not None and time.monotonic() - since > options.each:
                notes.write("slow %s\n" % name)
                os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    tests = [pair for pair in names_and_cases() if pair[0] not in skip and (only is None or pair[0] in only)]
    for number, (name, case) in enumerate(tests):
        if rank == 0:
            with open(gate, "ab") as file:
                file.write(b"." if time.monotonic() - begin < options.seconds else b"s")
        while not os.path.exists(gate) or os.path.getsize(gate) <= number:
            time.sleep(0.001)
        with open(gate, "rb") as file:
            if file.read()[number:number + 1] == b"s":
                break
        notes.write("begin %s\n" % name)
        running[:] = name, time.monotonic()
        result = unittest.TestResult()
        case.run(result)
        running[0] = None
        bad = result.failures + result.errors
        if bad:
            notes.write("wrong %s: %s\n" % (name, bad[0][1].strip().splitlines()[-1]))
            notes.close()
            MPI.COMM_WORLD.Abort(1)
        notes.write("%s %s\n" % ("skipped" if result.skipped else "ok", name))
    notes.write("end\n")
    print("right" if rank == 0 else "", flush=True)


main()
