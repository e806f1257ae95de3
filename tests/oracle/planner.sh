#!/usr/bin/env bash
# The planner against everything outside of it: planner.sh TOOLS BANYAN COUNT SEED.   Random fabrics against every cut and the verifier,
# larger ones too; the same bounds by LEMON's flows and allreduce by glpsol's exact programs, where those are installed (`make deps`
# does it; without them this says so). Each run closes with `N passed, N failed`. Exit status 1 when one failed.
set -u
tools=$1
banyan=$2
count=$3
seed=$4
status=0
out=$tools/planner-check
rm -rf "$out"
mkdir -p "$out/programs"
flow=
[ -x "$tools/oracle-flow" ] && flow=$tools/oracle-flow

ask_flows() {
    if [ -n "$flow" ]; then
        "$flow" "$1" || status=1
    else
        echo "NOTE: no LEMON here: the bounds were not checked by other flows; 'make deps' installs liblemon-dev"
    fi
}

# A former plan of the campaign's seed 311, 26 trees over slow links: 0.92 of its rate, 55/24 GB/s, before decision 599.
slow_links() {
    "$banyan" sim tests/oracle/slow-links.json tests/oracle/slow-links.plan -b 32M --json >"$out/slow" || { echo "0 passed, 1 failed"; return 1; }
    awk '$1 == "\"algbw\":" { part = $2 / (55 / 24) }
         END { printf "slow links: %.4f of the rate\n%d passed, %d failed\n", part, (part >= 0.95), (part < 0.95); exit (part < 0.95) }' "$out/slow"
}

"$tools/plan-campaign" --count "$count" --seed "$seed" --out "$tools" --dump "$out/small" --ratio-least 95 || status=1
ask_flows "$out/small"
if [ "$count" -ge 100 ]; then # a replay wants its own fabric alone
    "$tools/plan-campaign" --count $((count / 20)) --seed "$seed" --nodes 10..32 --no-allreduce --out "$tools" --dump "$out/large" ||
        status=1
    ask_flows "$out/large"
    tests/oracle/suite.sh "$banyan" tests/bench/hard-suite >"$out/suite" || { cat "$out/suite"; status=1; }
    tail -1 "$out/suite"
    tests/oracle/runs.sh "$tools" "$banyan" 240 "$seed" 6 0 >"$out/runs" || { grep -v '^PASS' "$out/runs"; status=1; }
    tail -1 "$out/runs"
    for at in 167 185; do # trees of small shares: 0.92 of the rate before decision 598
        tests/oracle/runs.sh "$tools" "$banyan" 1 "$at" 1 0 >"$out/runs" || { grep -v '^PASS' "$out/runs"; status=1; }
        tail -1 "$out/runs"
    done
    slow_links || status=1
    tests/oracle/refusals.sh "$banyan" >"$out/refusals" || { grep -v '^  PASS' "$out/refusals"; status=1; }
    tail -1 "$out/refusals"
fi
if command -v glpsol >/dev/null; then
    programs=$((count < 20 ? count : count / 10))
    "$tools/plan-campaign" --count "$programs" --seed "$seed" --nodes 3..6 --out "$tools" --lp "$out/programs" >"$out/lp.log" ||
        { cat "$out/lp.log"; status=1; }
    tests/oracle/programs.sh "$out/programs" || status=1
else
    echo "NOTE: no glpsol here: allreduce was not checked by exact programs; 'make deps' installs glpk-utils"
fi
exit $status
