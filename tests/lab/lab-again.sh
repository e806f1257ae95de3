#!/usr/bin/env bash
# Tables that remain on switches across runs: any number of runs on the same tables are right, also
# after a run whose processes were killed; a second program at the same time gets an error that names
# the first. On a star, and on a fabric with two levels.
#   lab-again.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-again "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; }
make_topologies

# perf_all BYTES [TIMES]: runs one process on each host of the lab; writes exit statuses and output to
# $dir/perf.out.
perf_all() {
    local host command pids=() pid
    rm -f "$dir"/perf.*.out
    while read -r host command; do
        # shellcheck disable=SC2086
        (BANYAN_TIMEOUT=8 timeout 60 ${command% COMMAND} "$build/bin/banyan-perf" -c allreduce,barrier -b "$1" -e "$1" -n "${2:-2}" -w 1
            echo "exit $?") >"$dir/perf.$host.out" 2>&1 &
        pids+=($!)
        children+=($!)
    done < <(sed -n 's/^host  *\([^ ]*\)  *\(ip .*\)$/\1 \2/p' "$dir/up.out")
    for pid in "${pids[@]}"; do wait "$pid"; done
    children=()
    cat "$dir"/perf.*.out >"$dir/perf.out"
}
hosts() { grep -c '^host ' "$dir/up.out"; }
# right WHAT BYTES
right() {
    perf_all "$2"
    if [ "$(grep -c '^exit 0$' "$dir/perf.out")" -eq "$(hosts)" ]; then pass "$1"; else fail "$1" "$dir/perf.out"; fi
}
# killed WHAT BYTES: a run, all of whose processes are killed while chunks are on their way.
killed() {
    local host command pids=() pid
    while read -r host command; do
        # shellcheck disable=SC2086
        BANYAN_TIMEOUT=8 timeout -s KILL 2 ${command% COMMAND} "$build/bin/banyan-perf" -c allreduce -b "$2" -e "$2" -n 100000 -w 1 >"$dir/killed.$host.out" 2>&1 &
        pids+=($!)
        children+=($!)
    done < <(sed -n 's/^host  *\([^ ]*\)  *\(ip .*\)$/\1 \2/p' "$dir/up.out")
    for pid in "${pids[@]}"; do wait "$pid"; done 2>/dev/null
    children=()
    if cat "$dir"/killed.*.out | grep -q banyan-perf:; then cat "$dir"/killed.*.out >"$dir/killed.out"; fail "$1" "$dir/killed.out"; else pass "$1"; fi
}
# two_at_once: while a program runs, another one on its first host is refused and names it, and the
# first one ends well.
two_at_once() {
    local first
    (perf_all 64K 1500) &
    children+=($!)
    sleep 1
    first=$(sed -n 's/^host  *[^ ]*  *\(ip .*\)$/\1/p' "$dir/up.out" | head -n 1)
    # shellcheck disable=SC2086
    timeout 60 ${first% COMMAND} "$build/bin/banyan-perf" -c barrier -n 2 -w 1 >"$dir/second.out" 2>&1 && echo "it ran" >>"$dir/second.out"
    if grep -Eq 'job [0-9]+ is in use by process [0-9]+ \(banyan-perf\)' "$dir/second.out"; then pass "$1: the second is refused"; else fail "$1" "$dir/second.out"; fi
    wait "${children[0]}"
    children=()
    if [ "$(grep -c '^exit 0$' "$dir/perf.out")" -eq "$(hosts)" ]; then pass "$1: the first ends well"; else fail "$1" "$dir/perf.out"; fi
}

for topology in star4 leafspine; do
    if ! "$banyan" lab up "$dir/$topology.json" >"$dir/up.out" 2>&1; then
        fail "$topology: lab up" "$dir/up.out"
        continue
    fi
    id=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$id
    renew() { "$banyan" push --renew "$folder" --sockets "$folder"; }
    # Immediately after `lab up`: a controller that starts now must not find a link down.
    every_port_is_up() {
        local ns
        for ns in $(ip netns list | sed -n "s/^\(lab-$id-[^ ]*\).*/\1/p"); do ip -n "$ns" -br link show type veth || return; done >"$dir/links"
        grep -q '^p0@.* UP ' "$dir/links" && ! grep -q 'DOWN\|NO-CARRIER' "$dir/links"
    }
    check "$topology: every port has its carrier" every_port_is_up
    right "$topology: a short first run" 64
    right "$topology: a second one on the same tables" 64
    right "$topology: a long one" 256K
    right "$topology: a short one after it" 64
    killed "$topology: a run that is killed" 64K
    right "$topology: a run after it" 64K
    killed "$topology: a run that is killed, of small calls" 64
    right "$topology: a run after it" 256K
    two_at_once "$topology: two programs at once"
    check "$topology: push --renew" renew
    check "$topology: switch and file are of generation 2" bash -c "
        '$banyan' show 'unix:$folder/$(sed -n 's/^switch  *\([^ ]*\).*/\1/p' "$dir/up.out" | head -n 1).sock' | grep -q 'generation 2'"
    right "$topology: a run after it" 64K
    down_of "$dir/up.out"
done

check "files of one generation each" bash -c "
    set -e
    '$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan'
    '$banyan' tables '$dir/star4.json' '$dir/a.plan' --gen 65535 -o '$dir/last'"
refused "--renew of a single file" 2 "needs the folder" "$banyan" push --renew "$dir/last/switch0.table" --sockets "$dir"
refused "--renew writes before it finds no switch" 3 "push:" "$banyan" push --renew "$dir/last" --sockets "$dir" --timeout 1
for file in switch0 host0 host3; do
    [ -e "$dir/last/$file.table" ] || continue
    check "generation 1 follows 65535: $file" bash -c "'$banyan' show '$dir/last/$file.table' | grep -q 'generation 1\b' && grep -q 'generation 1\b' '$dir/last/$file.txt'"
done
head -c 300 "$dir/last/switch0.table" >"$dir/last/z.table"
cp "$dir/last/switch0.table" "$dir/before.table"
refused "--renew of a folder with a damaged image" 2 "z.table" "$banyan" push --renew "$dir/last" --sockets "$dir"
check "it changed nothing" cmp "$dir/before.table" "$dir/last/switch0.table"
finish
