#!/usr/bin/env python3
"""Branch coverage of rooms: a table by file, and the branches that no test took.

    coverage.py --profile DATA --objects FILE... --rooms FOLDER[=PERCENT]... [--missing] [--least PERCENT]

A branch is an outcome of a condition; each condition has two, as clang counts them (llvm-cov).
Outcomes of BY_ASSERT are not counted: no input may fail an assertion. Branches that cannot be taken
are listed in unreachable.txt with a reason, and not counted unless a test takes them. `make coverage`
calls this program. A file belongs to the folder with the longest name. Exit status: 0 if each folder
has at least its percent (default: --least) of its branches taken, and each line of unreachable.txt
names a branch.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

ASSERTIONS = "offload/base/assert.h"


def report_of(objects, profile):
    """The exported report of object files."""
    command = ["llvm-cov", "export", "-instr-profile=" + profile]
    for file in objects:
        command += ["-object", file]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["data"][0]


def room_of(path, rooms):
    """The folder to which a file belongs, or None."""
    return max((room for room in rooms if path.startswith(room + "/")), key=len, default=None)


def branches_of(report, rooms):
    """For each folder a map from (file, line, column, end line, end column, outcome) to how often it
    was taken; a function that several objects contain counts once."""
    taken = {room: collections.Counter() for room in rooms}
    for function in report["functions"]:
        for line, column, end_line, end_column, true, false, file, _, _ in function["branches"]:
            path = os.path.relpath(function["filenames"][file])
            room = room_of(path, rooms)
            if room is not None and path != ASSERTIONS:
                taken[room][path, line, column, end_line, end_column, True] += true
                taken[room][path, line, column, end_line, end_column, False] += false
    return taken


class Excuses:
    """The lines "FILE @@ LINE @@ CONDITION @@ OUTCOME @@ REASON" of unreachable.txt."""

    def __init__(self, path):
        with open(path) as lines:
            self.rows = [tuple(part.strip() for part in line.split(" @@ "))
                         for line in lines if line.strip() and not line.startswith("#")]
        self.known = {row[:4] for row in self.rows}
        self.used = set()

    def excuses(self, branch):
        self.used.add(branch)
        return branch in self.known


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--profile", required=True)
    parser.add_argument("--objects", required=True, nargs="+", help="object files")
    parser.add_argument("--rooms", required=True, nargs="+", help="folders of sources, each with its percent")
    parser.add_argument("--missing", action="store_true", help="print each branch that was not taken")
    parser.add_argument("--least", type=float, default=95, help="percent of each room's branches (default 95)")
    options = parser.parse_args()
    report = report_of(options.objects, options.profile)
    excuses = Excuses(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unreachable.txt"))
    failed = False
    least_of = {room: float(least or options.least) for room, _, least in (text.partition("=") for text in options.rooms)}
    rooms = branches_of(report, least_of)
    for room, least in least_of.items():
        tally = collections.defaultdict(lambda: [0, 0, 0])  # branches, taken, excused
        missing = []
        for (path, line, column, end_line, end_column, outcome), count in sorted(rooms[room].items()):
            with open(path) as file:
                source = file.read().split("\n")
            text = source[line - 1][column - 1:end_column - 1] if line == end_line else source[line - 1][column - 1:]
            if "BY_ASSERT(" in source[line - 1]:
                continue
            branch = (path, " ".join(source[line - 1].split()), " ".join(text.split()), str(outcome).lower())
            if excuses.excuses(branch) and count == 0:
                tally[path][2] += 1
                continue
            tally[path][0] += 1
            tally[path][1] += count > 0
            if count == 0:
                missing.append("%s:%d: %s is never %s: %s" % (path, line, branch[2], branch[3], branch[1]))
        print("%-38s %8s %8s %8s %10s" % (room, "branches", "taken", "%", "excused"))
        for path, row in sorted(tally.items()):
            print("  %-36s %8d %8d %8.1f %10d" % (path[len(room) + 1:], row[0], row[1], 100 * row[1] / max(row[0], 1), row[2]))
        branches, taken, excused = (sum(row[i] for row in tally.values()) for i in range(3))
        percent = 100 * taken / max(branches, 1)
        print("  %-36s %8d %8d %8.1f %10d" % ("all", branches, taken, percent, excused))
        if options.missing or percent < least:
            print("\n".join(missing))
        if percent < least or branches == 0:
            failed = True
            print("%s: %.1f %% of branches are taken, and %g %% are required: add tests for those above, or list those "
                  "that cannot be taken in tests/coverage/unreachable.txt" % (room, percent, least))
    for row in excuses.rows:
        if row[:4] not in excuses.used:
            failed = True
            print("unreachable.txt: there is no branch %s: correct the line, or remove it" % " @@ ".join(row[:4]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
