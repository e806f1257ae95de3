#!/usr/bin/env bash
# Pushes tables of an allgather among 1,024 hosts onto 64 switches, then again after one link was
# lost and the plan repaired: seconds, bytes, and the part of the tables that crosses the control
# channel.
#   push.sh BUILD
set -euo pipefail
banyan=$(realpath "$1")/bin/banyan
push=$(realpath "$1")/tools/bench-push
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$banyan" topo leafspine --leaves 32 --spines 32 --hosts 32 --capable all >fabric.json
"$banyan" plan fabric.json -c allgather -o before.plan >plan.txt
"$banyan" plan fabric.json -c allgather --from before.plan --fail-link leaf0,spine0 -o after.plan >replan.txt
sed -n 's/^ *\(of .* trees .*\)$/# one link is lost: \1/p' replan.txt
for when in before after; do
    "$banyan" tables fabric.json $when.plan --window 4 -o $when >tables.txt
done
"$push" before after
