#!/usr/bin/env bash
# Bounds and the Reduce-Broadcast rate of all small fabrics against everything tried: bound.sh TOOLS.   Every set of nodes, every
# partition, every tree as a variable, the verifier; a sample of the programs also by glpsol --exact, where that is installed. Each
# run closes with `N passed, N failed`. Exit status 1 when one failed.
set -u
tools=$1
status=0
out=$tools/bound-check
rm -rf "$out"
mkdir -p "$out"
"$tools/bound-exhaustive" --lp "$out" || status=1
if command -v glpsol >/dev/null; then
    tests/oracle/programs.sh "$out" || status=1
else
    echo "NOTE: no glpsol here: the programs were solved by our own alone; 'make deps' installs glpk-utils"
fi
exit $status
