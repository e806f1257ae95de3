#!/usr/bin/env python3
"""Checks and draws the graph of the tree: includes and calls. Run in the root.

    arrows.py                    the #include lines against the arrows of docs/architecture.md, and cycles
    arrows.py OBJECTS GEN        also the headers in the .d files of a build, and its calls
    arrows.py OBJECTS GEN FILE   the same, and draws the graph of rooms into FILE (SVG; needs graphviz)

OBJECTS is the folder of a build's objects, GEN the folder of generated headers. An arrow of the block
```arrows``` allows a room to include another room and to call its functions. A call is an undefined
symbol of one object that exactly one other object defines. A cycle is a set of units (a .c file with
its header) that reach each other by includes and calls. It may have at most three units, or more if
all of them include the header of one, which defines their noun, or a header that includes it, and no
more than three reach each other without it.
"""
import collections
import fnmatch
import os
import re
import subprocess
import sys

TREES = ["offload", "dataplane", "firmware", "boards", "control", "host-driver", "tests"]
CYCLE_MAX = 3
findings = []


def finding(text):
    if text not in findings:
        findings.append(text)


def covers(prefix, path):
    """Is `path` in the room `prefix`? A header as a prefix stands for its unit."""
    return path == prefix or path.startswith(prefix + "/") or (prefix.endswith(".h") and path == prefix[:-1] + "c")


def read_arrows():
    """Two tables of the block: room -> rooms it may use, room -> system headers it may include."""
    text = open("docs/architecture.md").read()
    block = re.search(r"^```arrows\n(.*?)^```$", text, re.M | re.S)
    if not block or len(block.group(1).splitlines()) < 2:
        sys.exit("docs/architecture.md: no block ```arrows")
    rooms, system = {}, {}
    for row in re.sub(r"\n[ \t]+(?=\S)", " ", block.group(1)).splitlines():
        words = row.split("#")[0].split()
        if words and words[0] == "system":
            system[words[1]] = words[2:]
        elif words:
            rooms[words[0]] = words[1:]
    return rooms, system


def longest(table, path):
    return max((room for room in table if covers(room, path)), key=len, default=None)


def includes_of(file):
    """(line, name, whether the name is in quotes) of each #include."""
    with open(file, errors="replace") as source:
        for number, line in enumerate(source, 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if match:
                yield number, match.group(2), match.group(1) == '"'


def depends(objects):
    """(source, header) of each .d file."""
    for folder, _, names in os.walk(objects):
        for name in names:
            if name.endswith(".d"):
                rule = open(os.path.join(folder, name)).read().replace("\\\n", " ").split("\n")[0].split()
                for header in rule[2:]:
                    yield rule[1], header


def calls(objects):
    """(caller's source, callee's source, symbol) of the objects whose sources are in the tree."""
    defined, undefined = collections.defaultdict(set), []
    for folder, _, names in os.walk(objects):
        for name in names:
            path = os.path.join(folder, name)
            source = os.path.relpath(path, objects)[:-2] + ".c"
            if not name.endswith(".o") or not os.path.exists(source) or covers("tests", source):
                continue
            table = subprocess.run(["nm", "-g", path], capture_output=True, text=True, check=True)
            for line in table.stdout.splitlines():
                kind, symbol = line.split()[-2:]
                if kind == "U":
                    undefined.append((source, symbol))
                else:
                    defined[symbol].add(source)
    for source, symbol in undefined:
        if len(defined[symbol]) == 1:
            yield source, next(iter(defined[symbol])), symbol


def cycles(edges, nodes):
    """Sets of nodes that reach each other (Tarjan 1972), the edges outside of `nodes` left out."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node] & nodes):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(nodes):
        if node not in index:
            visit(node)
    return found


def check_cycles(edges, includes):
    """A noun is a unit whose header all others of the cycle include, or a header that they include."""
    def reads(unit):
        direct = includes[unit + ".c"] | includes[unit + ".h"]
        return direct | {unit + ".h"}.union(*(includes[file] for file in direct))

    for group in cycles(edges, set(edges)):
        if len(group) <= CYCLE_MAX:
            continue
        read = {unit: reads(unit) for unit in group}
        nouns = [noun for noun in group if all(noun + ".h" in read[unit] for unit in group)]
        if all(max(map(len, cycles(edges, group - {noun}))) > CYCLE_MAX for noun in nouns):
            finding(f"a cycle of {len(group)} units, which is more than {CYCLE_MAX}, and no header that defines "
                    f"their noun: {' '.join(sorted(group))}")


def draw(arrows, path):
    """The arrows that are in use, without those that follow from others, laid out by graphviz."""
    lines = ["digraph {", 'graph [rankdir=TB nodesep=0.18 ranksep=0.5 fontname="sans-serif" fontsize=13 bgcolor=white]',
             'node [shape=box style="rounded,filled" fillcolor=white color="#5b6770" fontname="sans-serif" fontsize=11 '
             'height=0.3 margin="0.08,0.03"]', 'edge [color="#8a949c" arrowsize=0.6]']
    tops = collections.defaultdict(set)
    for pair in arrows:
        for room in pair:
            tops[room.split("/")[0]].add(room)
    for top in sorted(tops):
        lines.append(f'subgraph "cluster {top}" {{ label="{top}/" style="rounded,filled" fillcolor="#eef3f6" color="#c3ced6"')
        for room in sorted(tops[top]):
            lines.append(f'"{room}" [label="{room.partition("/")[2] or room}"]')
        lines.append("}")
    lines += [f'"{a}" -> "{b}"' for a, b in sorted(arrows)] + ["}"]
    reduced = subprocess.run(["tred"], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    drawn = subprocess.run(["dot", "-Tsvg"], input=reduced, capture_output=True, text=True, check=True).stdout
    drawn = re.sub(r"<!-- Generated by.*?-->\n?", "", drawn, flags=re.S)
    with open(path, "w") as out:
        out.write(drawn)


def main():
    objects, gen, picture = (sys.argv[1:] + ["", "", ""])[:3]
    rooms, system = read_arrows()
    arrows, edges, includes, checked = set(), collections.defaultdict(set), collections.defaultdict(set), 0

    def arrow(at, file, to, how):
        """Records that `file` uses `to`, and checks that an arrow allows it."""
        room = longest(rooms, file)
        if room is None:
            finding(f"{at}: its folder has no row among the arrows of docs/architecture.md")
        elif not covers(room, to) and not any(covers(other, to) for other in rooms[room]):
            finding(f"{at}: {room} must not {how.format(to)}")
        if not covers("tests", file) and os.path.exists(to):
            if room and longest(rooms, to) and room != longest(rooms, to):
                arrows.add((room, longest(rooms, to)))
            one, other = os.path.splitext(file)[0], os.path.splitext(to)[0]
            edges[other]
            if one != other:
                edges[one].add(other)

    for file in sorted(os.path.join(folder, name) for tree in TREES for folder, _, names in os.walk(tree)
                       for name in names if name.endswith((".c", ".h"))):
        for line, to, quoted in includes_of(file):
            at = f"{file}:{line}"
            checked += 1
            if os.path.exists("host-driver/include/" + to):
                to = "host-driver/include/" + to
            elif not quoted:
                arrow(at, file, file, "")
                room = longest(system, file)
                if room and not any(fnmatch.fnmatchcase(to, name) for name in system[room]):
                    finding(f"{at}: <{to}> is not among the system headers of {room} ({' '.join(system[room])})")
                continue
            elif not to.startswith("proto/") and not os.path.exists(to):
                finding(f'{at}: "{to}": write includes from the root')
                continue
            arrow(at, file, to, "include {}")
            if not covers("tests", file):
                includes[file].add(to)
    if objects:
        for file, to in depends(objects):
            checked += 1
            if gen and covers(gen, to):
                to = os.path.relpath(to, gen)
            if os.path.exists(file) and not covers(gen, file) and (to.startswith("proto/") or os.path.exists(to)) and to[0] != "/":
                room = longest(rooms, file)
                if room and not covers(room, to) and not any(covers(other, to) for other in rooms[room]):
                    finding(f"{file}: {room} must not include {to} (through other headers)")
        for file, to, symbol in calls(objects):
            checked += 1
            arrow(file, file, to, "call " + symbol + " of {}")
    check_cycles(edges, includes)
    for text in findings:
        print(text)
    if picture and not findings:
        draw(arrows, picture)
    print(f"{checked} includes and calls checked, {len(findings)} findings")
    sys.exit(bool(findings))


main()
