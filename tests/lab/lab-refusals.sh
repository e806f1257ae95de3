#!/usr/bin/env bash
# Bad input to tables, push, show, diff and lab: each is refused with the object, the limit or the
# remedy, and the right exit status. Needs no root.
#   lab-refusals.sh [BUILD]   Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-refusals "${1:-build/release}"
make_topologies
"$banyan" plan "$dir/star4.json" -c allreduce -o "$dir/a.plan" >/dev/null
"$banyan" plan "$dir/leafspine.json" -c allreduce -o "$dir/l.plan" >/dev/null

refused "tables without a plan" 2 "at least one plan" "$banyan" tables "$dir/star4.json" -o "$dir/t"
refused "tables: a window that is no power of two" 2 "power of two" "$banyan" tables "$dir/star4.json" "$dir/a.plan" -o "$dir/t" --window 48
refused "tables: a window that is no number" 2 "it must be a power of two up to 4096" "$banyan" tables "$dir/star4.json" "$dir/a.plan" -o "$dir/t" --window -1
refused "tables: an MTU below the headers" 2 "from 132 to 65535" "$banyan" tables "$dir/star4.json" "$dir/a.plan" -o "$dir/t" --mtu 100
refused "tables: the same plan twice" 2 "two allreduce plans" "$banyan" tables "$dir/star4.json" "$dir/a.plan" "$dir/a.plan" -o "$dir/t"
refused "tables: jobs out of order" 2 "ascending" "$banyan" tables "$dir/star4.json" --job 2 "$dir/a.plan" --job 1 "$dir/a.plan" -o "$dir/t"
refused "tables: a plan for another fabric" 2 "l.plan" "$banyan" tables "$dir/star4.json" "$dir/l.plan" -o "$dir/t"
refused "tables: no such topology" 2 "nowhere.json" "$banyan" tables "$dir/nowhere.json" "$dir/a.plan" -o "$dir/t"
refused "tables: a folder that cannot be" 3 "cannot make the folder" "$banyan" tables "$dir/star4.json" "$dir/a.plan" -o "$dir/no/t"
refused "push without an address" 2 "--to, --sockets or --site" "$banyan" push "$dir"
refused "diff of one" 2 "give two switches or files" "$banyan" diff a
refused "lab without a verb" 2 "run, up or down" "$banyan" lab
refused "lab: no such collective" 2 "-c is 'gossip'" "$banyan" lab run "$dir/star4.json" -c gossip
refused "lab: no such type" 2 "-d is 'f8'; it must be i8, " "$banyan" lab run "$dir/star4.json" -d f8
refused "lab: an operator that the type lacks" 2 "--op band is not defined on --dtype f32" "$banyan" lab run "$dir/star4.json" -c all -d f32 -o band
refused "lab: less than one element" 2 "give 0, or 4 or more" "$banyan" lab run "$dir/star4.json" -b 3 -d f32
refused "lab: -c twice" 2 "-c is given twice" "$banyan" lab run "$dir/star4.json" -c barrier -c reduce
refused "banyan-perf: less than one element" 2 "banyan-perf: -b 3: less than one element of f32" "$build/bin/banyan-perf" -b 3 -d f32
refused "explain: less than one element" 2 "banyan explain: --size 3: less than one element of f32" "$banyan" explain --size 3 -d f32
refused "info -c: a setting that is no number" 2 "banyan info: BANYAN_TIMEOUT is 'abc' (environment); use a number from 0 to 86400" env BANYAN_TIMEOUT=abc "$banyan" info -c
"$banyan" tables "$dir/star4.json" "$dir/a.plan" -o "$dir/tables" >/dev/null
refused "switchd: a name with a blank" 2 "without '/', blanks" "$build/bin/banyan-switchd" --name "a b" --iface lo
refused "push to a port above 65535" 2 "with a port from 1 to 65535" "$banyan" push "$dir/tables" --to switch0=tcp:127.0.0.1:99999
refused "lab: a root that is no rank" 2 "ranks 0 to 3" "$banyan" lab run "$dir/star4.json" --in-process --root 4
refused "lab: a probability above 1" 2 "a probability from 0 to 1" "$banyan" lab run "$dir/star4.json" --loss 2
refused "lab: no such sign of congestion" 3 "BANYAN_CONGESTION is 'ecn'; use auto, losses or marks" env BANYAN_CONGESTION=ecn "$banyan" lab run "$dir/star4.json" --in-process -b 64K -n 1
refused "lab: a switch to kill that is none" 2 "no switch with that name" "$banyan" lab run "$dir/star4.json" --kill host0@1
refused "lab: a kill without a time" 2 "NODE@SECONDS" "$banyan" lab run "$dir/star4.json" --kill switch0
refused "lab: a kill at a time with a sign" 2 "NODE@SECONDS" "$banyan" lab run "$dir/star4.json" --kill switch0@+1
refused "lab: no such topology" 2 "nowhere.json" "$banyan" lab run "$dir/nowhere.json"
echo '{"name": "x", "nodes": [{"name": "a", "kind": "compute"}], "links": [{"between": ["a", "b"], "bandwidth": 1}]}' >"$dir/bad.json"
refused "lab: an unknown node in the topology" 2 "bad.json:1:" "$banyan" lab run "$dir/bad.json"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    cp -r "$build/bin" "$dir/bin" && chmod -R a+rX "$dir"
    as_nobody() { env XDG_RUNTIME_DIR= setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    refused "lab: no root" 3 "need root" as_nobody "$dir/bin/banyan" lab run "$dir/star4.json"
    check "lab in one process: no root" as_nobody "$dir/bin/banyan" lab run "$dir/star4.json" --in-process --bytes 64K --iters 1
fi
finish
