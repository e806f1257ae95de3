#!/usr/bin/env python3
"""Mutation testing: changes one operator, condition, constant or statement of a room's C code at a
time, and runs the unit tests that link it. A mutant that no test detects survives: a test is missing.

    mutants.py FOLDER|FILE... --build BUILD --tests LIST --flags LIST --compile COMMAND --link COMMAND [options]

LIST has a line for each test: its name, its objects, its libraries, and further arguments of the
linker, separated by tabs. That of --flags has a source and further flags for it. COMMAND compiles or
links in the root of the sources. `make mutants` calls this program. Mutants whose object code equals the original's are equivalent and not counted
(Papadakis et al., "Trivial Compiler Equivalence", ICSE 2015); those in survivors.txt have a reason.
Exit status: 0 if at least --least percent are detected, else 1; 2 after bad usage.
"""
import argparse
import concurrent.futures
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b(?!\.))
      | (?P<word>[A-Za-z_]\w*|\d[\w.]*)
      | (?P<operator><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL,
)
SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
    "+=": ["-="], "-=": ["+="], "|=": ["&="], "&=": ["|="], "++": ["--"], "--": ["++"], "%": ["/"],
}
BINARY = {"+", "-", "&"}  # unary after an operator
NOT_STATEMENTS = {"case", "default", "goto", "break", "continue", "typedef", "static", "struct", "const", "enum",
                  "union", "else", "if", "for", "while", "do", "switch", "return"}


class Token:
    def __init__(self, match):
        self.kind, self.text, self.start, self.end = match.lastgroup, match.group(), match.start(), match.end()


def tokens_of(source):
    """Tokens without spaces, comments and preprocessor lines."""
    blank = re.sub(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), source)
    return [token for token in map(Token, TOKEN.finditer(blank)) if token.kind != "space"]


def bodies(tokens):
    """Yields the ranges of token indices inside function bodies."""
    depth = begin = 0
    for i, token in enumerate(tokens):
        if token.text == "{":
            if depth == 0:
                begin = i if i > 0 and tokens[i - 1].text == ")" else -1
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and begin > 0:
                yield begin + 1, i


def is_operand(token):
    return token.kind in ("word", "number", "text") and token.text != "return" or token.text in (")", "]")


def closing(tokens, at):
    depth = 0
    for i in range(at, len(tokens)):
        depth += tokens[i].text == "("
        depth -= tokens[i].text == ")"
        if depth == 0:
            return i
    return len(tokens) - 1


def statement_end(tokens, at, end):
    """The index of the semicolon that ends a plain statement, or None."""
    depth = 0
    for i in range(at, end):
        if tokens[i].text in "{}":
            return None
        depth += tokens[i].text in "(["
        depth -= tokens[i].text in ")]"
        if tokens[i].text == ";" and depth == 0:
            return i
    return None


def is_declaration(tokens, at, end):
    """Whether the statement declares a variable: two names, or a name, stars and a name, come first."""
    i = at + 1
    if tokens[at].kind != "word":
        return False
    while i < end and tokens[i].text == "*":
        i += 1
    return i < end and tokens[i].kind == "word" and i + 1 <= end and tokens[i + 1].text in ("=", ";", ",", "[")


# The larger or smaller of two: "a > b ? a : b", where a cast may be before either. Equal values give
# the same result whichever is taken.
EXTREME = re.compile(r"([\w.\->\[\]]+) ([<>]=?) ([\w.\->\[\]]+) \? (?:\(\w+\))?([\w.\->\[\]]+) : (?:\(\w+\))?([\w.\->\[\]]+)")


def ties_of(source):
    """The places of comparisons that choose an extreme."""
    return {match.start(2) for match in EXTREME.finditer(source)
            if sorted(match.group(1, 3)) == sorted(match.group(4, 5))}


def mutants_of(path, source):
    """Yields (path, start, end, replacement)."""
    tokens = tokens_of(source)
    ties = ties_of(source)
    for begin, end in bodies(tokens):
        for i in range(begin, end):
            token, before = tokens[i], tokens[i - 1]
            if token.kind == "operator" and token.text in SWAPS:
                if token.text in BINARY and not is_operand(before):
                    continue
                for swap in SWAPS[token.text]:
                    if token.start in ties and swap[0] == token.text[0]:
                        continue
                    yield path, token.start, token.end, swap
            elif token.kind == "number" and before.text not in ("case", "["):
                number = re.match(r"0[xX][0-9a-fA-F]+|\d+", token.text).group()
                rest = token.text[len(number):]
                yield path, token.start, token.end, "%d%s" % (int(number, 0 if number[:2].lower() == "0x" else 10) + 1, rest)
            elif token.text in ("if", "while") and tokens[i + 1].text == "(":
                last = closing(tokens, i + 1)
                condition = source[tokens[i + 1].end:tokens[last].start]
                yield path, tokens[i + 1].end, tokens[last].start, "!(" + condition + ")"
            elif before.text in (";", "{", "}", ")", "else") and token.kind == "word" and token.text not in NOT_STATEMENTS:
                if before.text == ")" and tokens[i - 1].end == token.start:
                    continue
                last = statement_end(tokens, i, end)
                if last is not None and not is_declaration(tokens, i, last):
                    yield path, token.start, tokens[last].end, ";"


class Test:
    def __init__(self, line):
        self.name, objects, libraries, rest = line.rstrip("\n").split("\t")
        self.objects, self.libraries, self.rest = objects.split(), libraries.split(), rest.split()
        self.seconds = None

    def nearness(self, path):
        """How far a test is from the mutated file: folders that their sources have in common bring them
        nearer, and the first word of the file's name in the test's."""
        folders, name = os.path.dirname(path).split("/"), os.path.basename(path)[:-2].split("_")[0]
        return -max([sum(f in o.split("/") for f in folders) for o in self.objects] + [0]) - (name in self.name) / 2


def call(command, seconds, folder=None):
    """Exit status, None after the time limit."""
    environment = dict(os.environ, BY_TEST_SEED="1")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True, cwd=folder, env=environment)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return None


class Campaign:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="mutants-", dir=options.build)
        with open(options.tests) as lines:
            self.tests = [Test(line) for line in lines]
        with open(options.flags) as lines:
            self.flags = {path: shlex.split(flags) for path, flags in (line.rstrip("\n").split("\t") for line in lines)}

    def compile(self, path, source, out, further=()):
        """Writes the object of a mutated source. Returns whether it compiles. The compiler reads its standard
        input, because an object names its source: those of equal code would differ."""
        command = (shlex.split(self.options.compile) + self.flags.get(path, []) + list(further)
                   + ["-g0", "-I", os.path.dirname(path), "-x", "c", "-c", "-o", out + ".o", "-"])
        return subprocess.run(command, input=('#line 1 "%s"\n%s' % (path, source)).encode(), stderr=subprocess.DEVNULL,
                              check=False).returncode == 0

    def code(self, path):
        with open(path, "rb") as file:
            return file.read()

    def tests_of(self, path):
        """The tests that link the file's object and are nearest to it, the nearest first."""
        object_path = os.path.join(self.options.build, "obj", path[:-2] + ".o")
        users = [t for t in self.tests
                 if object_path in t.objects or any(self.holds(l, object_path) for l in t.libraries)]
        return sorted(users, key=lambda t: t.nearness(path))[:self.options.most]

    members = {}
    lock = threading.Lock()
    late = 0  # mutants whose test did not end in its time limit

    def holds(self, library, object_path):
        if library not in self.members:
            listing = subprocess.run(["ar", "t", library], capture_output=True, text=True, check=True).stdout
            self.members[library] = set(listing.split())
        return os.path.basename(object_path) in self.members[library]

    def run(self, test, path, mutated, out, further=(), slower=1):
        """Links and runs a test with the mutated object. Returns whether it passes."""
        object_path = os.path.join(self.options.build, "obj", path[:-2] + ".o")
        objects = [o for o in test.objects if o != object_path]
        command = (shlex.split(self.options.link) + list(further) + ["-o", out, mutated] + objects + ["-Wl,--start-group"]
                   + test.libraries + ["-Wl,--end-group"] + test.rest)
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            return True  # the object is not in this test: nothing to detect
        begin = time.monotonic()
        status = call([os.path.abspath(out)], 120 if test.seconds is None else slower * (5 + 10 * test.seconds))
        if test.seconds is None and status == 0:
            test.seconds = time.monotonic() - begin
        os.unlink(out)
        self.late += status is None and not os.path.basename(mutated).startswith("original-")
        return status == 0

    def judge(self, mutant):
        """Returns "invalid", "equivalent", "survives", or the name of the test that detects the mutant."""
        path, start, end, replacement = mutant
        source = self.sources[path]
        out = os.path.join(self.folder, "%s-%d-%d-%d" % (path.replace("/", "_"), start, end, abs(hash(replacement))))
        try:
            if not self.compile(path, source[:start] + replacement + source[end:], out):
                return "invalid"
            if self.code(out + ".o") == self.code(self.originals[path] + ".o"):
                return "equivalent"
            for test in self.users[path]:
                if not self.run(test, path, out + ".o", out + ".test"):
                    return test.name
            if self.options.sanitizers and self.is_found_by_sanitizers(path, source[:start] + replacement + source[end:], out):
                return "sanitizers"
            return "survives"
        finally:
            for suffix in (".o", ".test"):
                if os.path.exists(out + suffix):
                    os.unlink(out + suffix)

    def is_found_by_sanitizers(self, path, source, out):
        """Whether a test fails that passes with the unchanged file, if this file has sanitizers: they find wrong
        accesses and leaks. `make test` runs the unit tests with sanitizers in all files."""
        flags = ["-fsanitize=" + self.options.sanitizers, "-fno-sanitize-recover=all"]
        with self.lock:
            if path not in self.sanitized:
                sound = []
                if self.compile(path, self.sources[path], self.originals[path] + ".sanitized", flags):
                    sound = [t for t in self.users[path]
                             if self.run(t, path, self.originals[path] + ".sanitized.o", out + ".test", flags, 5)]
                self.sanitized[path] = sound
        if not self.compile(path, source, out, flags):
            return False
        return any(not self.run(t, path, out + ".o", out + ".test", flags, 5) for t in self.sanitized[path])

    def prepare(self, paths):
        """Reads the sources, compiles each unchanged, and drops tests that fail without a mutant."""
        self.sources, self.originals, self.users, self.sanitized = {}, {}, {}, {}
        broken = set()
        for number, path in enumerate(paths):
            with open(path) as file:
                self.sources[path] = file.read()
            self.originals[path] = os.path.join(self.folder, "original-%d" % number)
            if not self.compile(path, self.sources[path], self.originals[path]):
                sys.exit("mutants: %s does not compile" % path)
            self.users[path] = self.tests_of(path)
        for path in paths:
            for test in self.users[path]:
                if test.seconds is None and test.name not in broken:
                    if not self.run(test, path, self.originals[path] + ".o", self.originals[path] + ".test"):
                        broken.add(test.name)
                        print("# %s fails without a mutant, and is left out" % test.name)
        for path in paths:
            sound = [t for t in self.users[path] if t.name not in broken and (t.seconds or 0) <= self.options.slowest]
            self.users[path] = sorted(sound, key=lambda t: (t.nearness(path), t.seconds or 0))
        return broken


def describe(source, mutant):
    path, start, end, replacement = mutant
    line = source.count("\n", 0, start) + 1
    first = source.rfind("\n", 0, start) + 1
    old = " ".join(source[first:source.find("\n", end)].split())
    new = " ".join((source[first:start] + replacement + source[end:source.find("\n", end)]).split())
    return "%s:%d" % (path, line), old, new


def reasons(path):
    """The lines "FILE @@ OLD @@ NEW @@ REASON" of survivors.txt, as a map."""
    known = {}
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                file, old, new, reason = (part.strip() for part in line.split(" @@ "))
                known[file, old, new] = reason
    return known


def survivors_of(path):
    """The survivors that a former run printed, as (file, line of code, mutated line)."""
    with open(path) as file:
        found = re.findall(r"^SURVIVES (\S+):\d+\n    - (.*)\n    \+ (.*)$", file.read(), re.MULTILINE)
    return set(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("room", nargs="+", help="a folder of sources, or a file")
    for name in ("build", "tests", "flags", "compile", "link"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--sample", type=int, default=0, help="judge this many mutants, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=25, help="run at most this many tests, the nearest ones (default 25)")
    parser.add_argument("--slowest", type=float, default=10, help="leave out tests of more seconds than this (default 10)")
    parser.add_argument("--least", type=float, default=95, help="percent that must be detected (default 95)")
    parser.add_argument("--sanitizers", help="judge survivors once more with these in the mutated file, such as address,undefined")
    parser.add_argument("--again", help="judge only the survivors in this output of a former run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    paths = []
    for room in options.room:
        if os.path.isdir(room):
            paths += [os.path.join(folder, name) for folder, _, names in sorted(os.walk(room)) for name in sorted(names)]
        elif os.path.isfile(room):
            paths.append(room)
        else:
            parser.error("%s: no such folder or file" % room)
    # those of other machines are in no library
    paths = [path for path in paths
             if path.endswith(".c") and os.path.exists(os.path.join(options.build, "obj", path[:-2] + ".o"))]
    campaign = Campaign(options)
    try:
        sys.exit(run(campaign, options, paths))
    finally:
        shutil.rmtree(campaign.folder)


def run(campaign, options, paths):
    broken = campaign.prepare(paths)
    paths = [path for path in paths if campaign.users[path]]
    campaign.late = 0
    mutants = [m for path in paths for m in mutants_of(path, campaign.sources[path])]
    count = len(mutants)
    if count == 0:
        print("mutants: no test links these sources, so nothing is tested")
        return 1
    if options.again:
        former = survivors_of(options.again)
        mutants = [m for m in mutants if (m[0],) + describe(campaign.sources[m[0]], m)[1:] in former]
    random.Random(options.seed).shuffle(mutants)
    if options.sample:
        mutants = mutants[:options.sample]
    known = reasons(os.path.join(os.path.dirname(os.path.abspath(__file__)), "survivors.txt"))
    print("# %d files, %d mutants, %d of them judged (seed %d)" % (len(paths), count, len(mutants), options.seed), flush=True)
    tally = {"invalid": 0, "equivalent": 0, "survives": 0, "excused": 0, "sanitizers": 0, "detected": 0}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, verdict in zip(mutants, pool.map(campaign.judge, mutants)):
            where, old, new = describe(campaign.sources[mutant[0]], mutant)
            if verdict == "survives" and (mutant[0], old, new) in known:
                verdict = "excused"
            if verdict == "survives":
                print("SURVIVES %s\n    - %s\n    + %s" % (where, old, new), flush=True)
            tally[verdict if verdict in tally else "detected"] += 1
    tally["detected"] += tally["sanitizers"]
    judged = tally["detected"] + tally["survives"]
    part = 100 * tally["detected"] / judged if judged else 100
    print("%d detected (%d of them by sanitizers, %d by the time limit), %d survive (%.1f %% detected), %d with a reason in survivors.txt, "
          "%d with the same object code, %d do not compile" % (tally["detected"], tally["sanitizers"], campaign.late, tally["survives"], part,
                                                               tally["excused"], tally["equivalent"], tally["invalid"]))
    return 1 if part < options.least or broken else 0


if __name__ == "__main__":
    main()
