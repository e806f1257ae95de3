#!/usr/bin/env python3
"""Checks the pages for newcomers against the sources (docs/walk.md, where.md, glossary.md,
extending.md), the index of docs/decisions, and the parts of `make test` in CONTRIBUTING.md:
  - every `path` on these pages exists;
  - in a table, a `name` or `name()` right of a path occurs in that file, with () as the
    definition of a function, macro or target;
  - a walk has at most 15 stops, and its calls are found in the callers' bodies;
  - the glossary lists all members of the X-lists that it names;
  - the index has each decision once, under its title.
Run in the root. Prints the number of references checked."""

import functools
import pathlib
import re
import sys

PAGES = ("docs/walk.md", "docs/where.md", "docs/glossary.md", "docs/extending.md")
STOPS_MAX = 15
ROOMS = ("offload", "dataplane", "firmware", "control", "host-driver")
DECISIONS = pathlib.Path("docs/decisions")

problems = []
checked = 0


@functools.cache
def text(path):
    """The content of a file; empty if there is none."""
    path = pathlib.Path(path)
    return path.read_text(errors="replace") if path.is_file() else ""


def numbered(path):
    return enumerate(text(path).splitlines(), 1)


def ticked(line):
    return re.findall(r"`([^`]+)`", line)


def cells(line):
    """The cells of a table's row, without blanks and backquotes."""
    return [cell.replace("`", "").strip() for cell in line.split("|")[1:]]


@functools.cache
def defines(path, name):
    """The file defines the function, macro, target or Makefile variable."""
    name = re.escape(name)
    return re.search(
        rf"^[A-Za-z_].*[ *]{name}\(([^;\n]*|.*\{{.*)$|^[ \t]*#[ \t]*define[ \t]+{name}\b|^{name}\(\)"
        rf"|^{name}[ \t]*[:?+]?=|^define {name}$|^{name}:", text(path), re.MULTILINE) is not None


def mentions(where, name):
    """The text has the name as a word: no letter, digit or _ beside it."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", where) is not None


@functools.cache
def body(path, name):
    """The lines of the function behind its first one, up to the closing brace."""
    lines = text(path).splitlines()
    head = re.compile(rf"[A-Za-z_].*[ *]{re.escape(name)}\(")
    for at, line in enumerate(lines):
        if head.match(line) and not line.endswith(";"):
            end = next((i for i in range(at, len(lines)) if lines[i].startswith("}")), len(lines) - 1)
            return "\n".join(lines[at + 1 : end + 1])
    return ""


@functools.cache
def home(name, *files):
    """The first of the files, else of the sources, that defines the function; empty if none does."""
    for path in files:
        if defines(path, name):
            return path
    head = re.compile(rf"^[A-Za-z_].*[ *]{re.escape(name)}\([^;\n]*$", re.MULTILINE)
    sources = (str(path) for room in ROOMS for path in sorted(pathlib.Path(room).rglob("*.c")))
    return next((path for path in sources if head.search(text(path))), "")


def is_path(token):
    return token == "Makefile" or ("/" in token and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+/-]*", token))


def check_page(page):
    global checked
    if not pathlib.Path(page).is_file():
        problems.append(f"{page} is missing")
        return
    for number, line in numbered(page):
        path = ""
        for token in ticked(line):
            at = f"{page}:{number}"
            if is_path(token):
                checked += 1
                path = token
                if not pathlib.Path(path).exists():
                    problems.append(f"{at}: {path} does not exist")
            elif line.startswith("|") and path and re.fullmatch(r"[A-Za-z_]\w*(\(\))?", token):
                checked += 1
                if not pathlib.Path(path).is_file():
                    continue
                if token.endswith("()"):
                    if not defines(path, token[:-2]):
                        problems.append(f"{at}: {path} does not define {token[:-2]}")
                elif not mentions(text(path), token):
                    problems.append(f"{at}: {path} does not mention {token}")


def check_call(at, stops, reached, path, function):
    """The stop calls the function: `call`, `call 3`, `call via a, b`."""
    global checked
    source = re.search(r"call ([0-9]+)", reached)
    number = int(source[1]) if source else len(stops)
    if not 0 < number <= len(stops):
        problems.append(f"{at}: there is no stop {number} before")
        return
    where, last = stops[number - 1]
    via = re.search(r"via (.*)", reached)
    for step in (re.sub(r"[(),]", " ", via[1]).split() if via else []) + [function]:
        checked += 1
        if not mentions(body(where, last), step):
            problems.append(f"{at}: {last} in {where} does not call {step}")
            return
        last, where = step, home(step, where, path)


def check_walks():
    """| stop | reached by | file | function | what happens |"""
    name, stops = "", []
    for number, line in numbered("docs/walk.md"):
        if line.startswith("## "):
            name, stops = line[3:], []
        elif re.match(r"\| [0-9]", line):
            stop, reached, path, function = cells(line)[:4]
            function = function.replace("()", "")
            at = f"docs/walk.md:{number}"
            if int(stop) != len(stops) + 1:
                problems.append(f"{at}: stop {stop} of '{name}' is the {len(stops) + 1}th")
            if len(stops) >= STOPS_MAX:
                problems.append(f"{at}: '{name}' has more than {STOPS_MAX} stops")
            if not defines(path, function):
                problems.append(f"{at}: {path} does not define {function}")
            if reached.startswith("call"):
                check_call(at, stops, reached, path, function)
            stops.append((path, function))


def check_glossary():
    """| prefix | members | file | list |: names that macros assemble"""
    global checked
    for number, line in numbered("docs/glossary.md"):
        if not (line.startswith("| `") and line.endswith("_LIST` |")):
            continue
        prefix, _, path, name = cells(line)[:4]
        if not pathlib.Path(path).is_file():
            continue
        rows = re.search(rf"#define {name}\(.*\\\n((?:.*\\\n)*.*)", text(path))
        want = {prefix + member for member in re.findall(r"\bX\(([A-Za-z0-9_]+)", rows[1] if rows else "")}
        have = set(ticked(line.split("|")[2]))
        checked += len(want)
        if have != want or not want:
            more = [f"< {member}" for member in sorted(have - want)] + [f"> {member}" for member in sorted(want - have)]
            problems.append(f"docs/glossary.md:{number}: not the names of {name} in {path}: {' '.join(more)}")


def check_decisions():
    """The index has one row for each page, under its title."""
    global checked
    index = DECISIONS / "README.md"
    rows = text(index).splitlines()
    for page in sorted(DECISIONS.glob("[0-9]*.md")):
        checked += 1
        number = int(page.name.split("-")[0])
        first = text(page).split("\n", 1)[0]
        if not first.startswith(f"# {number}. "):
            problems.append(f"{page}: the title must begin with '# {number}. '")
        title = first.split(". ", 1)[-1]
        own = [row for row in rows if f"]({page.name})" in row]
        if len(own) != 1:
            problems.append(f"{index}: names {page.name} {len(own)} times; once is right")
        elif f"[{title}]({page.name})" not in own[0]:
            problems.append(f"{index}: the title of {page.name} is: {title}")
        successor = re.search(r"^\*\*Superseded[^*]* by \[[0-9]*\]\(([^)]*)\)", text(page), re.MULTILINE)
        if successor:
            if not (DECISIONS / successor[1]).is_file():
                problems.append(f"{page}: superseded by {successor[1]}, which does not exist")
            by = int(successor[1].split("-")[0])
            if not any(re.search(rf"superseded.* by {by}\b", row) for row in own):
                problems.append(f"{index}: the row of {page.name} must say: superseded by {by}")
    for base in re.findall(r"\]\(([0-9][^)]*)\)", text(index)):
        if not (DECISIONS / base).is_file():
            problems.append(f"{index}: {base} does not exist")


def check_parts():
    """CONTRIBUTING.md lists the parts of `make test` in order."""
    global checked
    checked += 1
    parts = re.findall(r'^(?:if| {4,}(?:else )?)? *(?:part|begin|with) ([a-z-]+) [a-z"]', text("tests/test.sh"), re.MULTILINE)
    table = re.search(r"^\| part \| time.*?(?=^$|\Z)", text("CONTRIBUTING.md"), re.MULTILINE | re.DOTALL)
    if not table or parts != re.findall(r"^\| ([a-z-]+) \| [0-9]+ \|", table[0], re.MULTILINE):
        problems.append("CONTRIBUTING.md: the table of parts does not list the parts of tests/test.sh in their order")


for each in PAGES:
    check_page(each)
check_walks()
check_glossary()
check_decisions()
check_parts()
print(*problems, f"{checked} references checked", sep="\n")
sys.exit(1 if problems else 0)
