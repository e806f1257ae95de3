#!/usr/bin/env bash
# A switch is killed during a run: every host ends within the timeout with an error that names it,
# nothing hangs, nothing is left.
#   lab-kill.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-kill "${1:-build/release}"
need_root
make_topologies

killed() { # killed TOPOLOGY SWITCH
    local topology=$1 switch=$2 hosts begin seconds status pid
    hosts=$(grep -c '"compute"' "$dir/$topology.json")
    begin=$(date +%s)
    timeout 60 "$banyan" lab run "$dir/$topology.json" -c allreduce --bytes 256K --iters 1000000 --kill "$switch@1" --timeout $((3 + slow)) \
        >"$dir/run.out" 2>&1 &
    pid=$!
    wait $pid
    status=$?
    seconds=$(($(date +%s) - begin))
    cat "$dir/run.out" >"$dir/check.out"
    echo "(exit status $status after $seconds s)" >>"$dir/check.out"
    if [ $status -eq 3 ] && [ "$(grep -c "host .*exit status 3.*$switch" "$dir/run.out")" -eq "$hosts" ] && [ $seconds -lt $((40 + slow)) ]; then
        pass "$topology: $switch dies, all $hosts hosts name it ($seconds s)"
    else
        fail "$topology: $switch dies, all $hosts hosts name it" "$dir/check.out"
    fi
}
killed star4 switch0
killed leafspine leaf0
killed leafspine spine0
finish
