#!/usr/bin/env python3
"""Checks all text of the tree: paths contain only letters, digits and ._+/-; no source file is over
the limit of lines; no file contains a pattern of words.txt; no line of a source ends in blanks;
every file ends in a newline. Run in the root. Checks the files that git tracks, or without git all
files outside build/."""

import os
import re
import subprocess
import sys

LINES_MAX = 700
WORDS = "tests/lint/words.txt"
CODE = (".c", ".h", ".sh", ".mk", ".py", "Makefile")
NO_TEXT = (".hex", ".bin", ".png")

problems = []


def tree():
    git = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=False)
    if git.returncode == 0:
        return sorted({os.fsdecode(name) for name in git.stdout.split(b"\0") if name})
    return sorted(os.path.join(folder, name)[2:] for folder, _, names in os.walk(".") for name in names
                  if not re.match(r"\./(build|\.git)(/|$)", folder))


def find(pattern, files):
    """Lines of text files with the pattern, as FILE:LINE:TEXT. Files with a zero byte are no text."""
    for path, data in files.items():
        if b"\0" not in data and pattern.search(data):
            for number, line in enumerate(data.split(b"\n"), 1):
                if pattern.search(line):
                    yield f"{path}:{number}:{line.decode(errors='replace')}"


code, texts = {}, {}
for path in tree():
    if re.search(r"[^A-Za-z0-9._+/-]", path):
        problems.append(f"{path}: a path holds letters, digits and ._+/- alone")
    if not os.path.isfile(path):
        continue
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(CODE):
        code[path] = data
    if path != WORDS and not path.startswith("tests/fuzz/corpus/") and not path.endswith(NO_TEXT):
        texts[path] = data
for path, data in code.items():
    count = data.count(b"\n")
    if count > LINES_MAX:
        problems.append(f"{path}: {count} lines; the limit is {LINES_MAX}: split it by a second noun")
with open(WORDS, encoding="utf-8") as file:
    patterns = [line for line in file.read().splitlines() if line and not line.startswith("#")]
for pattern in patterns:
    found = list(find(re.compile(pattern.encode(), re.MULTILINE), texts))
    if found:
        problems += found + [f"the lines above hold what words.txt forbids: {pattern}"]
blank = list(find(re.compile(rb"[ \t]+$", re.MULTILINE), code))
if blank:
    problems += blank + ["the lines above end in blanks"]
problems += [f"{path}: no newline at the end" for path, data in texts.items() if data and data[-1:] not in (b"\n", b"\0")]
print(*problems, f"{len(texts)} files checked", sep="\n")
sys.exit(1 if problems else 0)
