#!/usr/bin/env bash
# Schedules on hosts: libbanyan executes all-to-alls, scatters, gathers and reduces by schedules of
# banyan steady, over links with a rate, with every element right; a rank that dies ends the others
# with an error that names it. How fast they are is measured by `make bench PART=series`.
#   lab-series.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-series "${1:-build/release}"
need_root
series=$build/tools/bench-series

"$banyan" topo leafspine --leaves 2 --hosts 2 --spines 2 --capable none >"$dir/leaf.json"
sed 's|"kind": "compute"|&, "task_time": "1/1000"|' "$dir/leaf.json" >"$dir/adding.json"
"$banyan" topo hypercube --dimensions 3 >"$dir/cube.json"

# series_right WHAT TOPOLOGY RATE CALL BYTES CALLS ROOT OPTION...: makes the schedule with these
# options of banyan steady, and runs the series; passes if the schedule has executed all calls.
series_right() {
    local what=$1 topology=$2 rate=$3 call=$4 bytes=$5 calls=$6 root=$7
    shift 7
    if ! "$banyan" steady "$dir/$topology.json" "$@" -o "$dir/a.series" >"$dir/steady.out" 2>&1; then
        fail "$what: the schedule" "$dir/steady.out"
        return
    fi
    attended "$banyan" lab run "$dir/$topology.json" --series "$dir/a.series" --rate "$rate" -- \
        "$series" "$call" "$bytes" "$calls" "$root" >"$dir/run.out" 2>&1
    # the calls and four before them
    if [ $? -eq 0 ] && grep -q "$call bytes=$bytes calls=$calls .*scheduled=$((calls + 4))\$" "$dir/run.out"; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
}
series_right "all-to-alls over two spines" leaf 1M alltoall 262144 8 0 --op gossip --ports host
series_right "all-to-alls by way of other hosts" cube 400K alltoall 65536 8 0 --op gossip --ports many
series_right "scatters" leaf 1M scatter 262144 8 1 --op scatter --source host1 --ports host
series_right "gathers" leaf 1M gather 262144 8 3 --op gossip --source host0,host1,host2 --target host3 --ports host
series_right "reduces, which hosts add" adding 1M reduce 262144 8 2 --op reduce --target host2 --ports host

# A rank that dies.
cat >"$dir/die.sh" <<SCRIPT
[ "\$BANYAN_NODE" != host2 ] || { (sleep 6; kill -9 \$\$) & }
exec "$series" alltoall 1048576 1000 0
SCRIPT
"$banyan" steady "$dir/leaf.json" --op gossip --ports host -o "$dir/a.series" >"$dir/steady.out" 2>&1
attended "$banyan" lab run "$dir/leaf.json" --series "$dir/a.series" --rate 1M --timeout 5 -- sh "$dir/die.sh" >"$dir/run.out" 2>&1
[ $? -eq 3 ] && grep -qE "host[013]: .*rank 2 .*has closed its connections" "$dir/run.out" &&
    pass "a rank that dies is named by the others" || fail "a rank that dies is named by the others" "$dir/run.out"
# Wrong use: a schedule that hosts cannot execute.
"$banyan" topo leafspine --leaves 2 --hosts 2 --spines 2 >"$dir/sum.json"
"$banyan" steady "$dir/sum.json" --op reduce --target host0 -o "$dir/sum.series" >"$dir/steady.out" 2>&1
attended "$banyan" lab run "$dir/sum.json" --series "$dir/sum.series" -- true >"$dir/run.out" 2>&1
[ $? -eq 2 ] && grep -q "combines values, which only hosts do" "$dir/run.out" &&
    pass "a schedule in which switches add is refused" || fail "a schedule in which switches add is refused" "$dir/run.out"
finish
