#!/usr/bin/env bash
# The lab removes what it made: after Ctrl-C early and late, after SIGTERM, after its time limit,
# after a failed start, and by `lab down` after SIGKILL and after `lab up`. Checked by namespaces,
# folders and processes that carry the lab's number.
#   lab-teardown.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-teardown "${1:-build/release}"
need_root
make_topologies
long=(--bytes 256K --iters 1000000 -c allreduce)

# Processes of a lab: their command lines name its folder (a switch's socket, a host's table).
processes_of() { grep -zl "/run/banyan/lab-$1/" /proc/[0-9]*/cmdline 2>/dev/null; }
clean() { # clean WHAT PID
    local i
    for ((i = 0; i < 300; i++)); do
        [ -z "$(left_of "$2")$(processes_of "$2")" ] && { pass "$1"; return; }
        sleep 0.1
    done
    { left_of "$2"; processes_of "$2"; } >"$dir/check.out"
    fail "$1" "$dir/check.out" "$dir/run.out"
}
stopped() { # stopped WHAT SIGNAL SECONDS TOPOLOGY
    local pid status
    "$banyan" lab run "$dir/$4.json" "${long[@]}" >"$dir/run.out" 2>&1 &
    pid=$!
    children+=("$pid")
    sleep "$3"
    kill -"$2" "$pid"
    wait "$pid"
    status=$?
    [ $status -eq 3 ] || fail "$1: exit status $status instead of 3" "$dir/run.out"
    clean "$1" "$pid"
}
stopped "Ctrl-C while the fabric is being built" INT 0.2 twobox
stopped "Ctrl-C while switches start" INT 0.8 twobox
stopped "Ctrl-C during the run" INT 4 leafspine
stopped "SIGTERM during the run" TERM 4 leafspine

"$banyan" lab run "$dir/star4.json" "${long[@]}" --limit 2 >"$dir/run.out" 2>&1 &
pid=$!
wait $pid
if [ $? -eq 3 ] && grep -q 'did not end within 2 s' "$dir/run.out"; then pass "the time limit ends a run"; else fail "the time limit ends a run" "$dir/run.out"; fi
clean "nothing is left after the time limit" $pid

# A switch that cannot start: net_af_xdp does not support jumbo frames.
"$banyan" lab run "$dir/star4.json" "${long[@]}" --mtu 9000 --driver af_xdp >"$dir/run.out" 2>&1 &
pid=$!
wait $pid
if [ $? -eq 3 ] && grep -q 'switch switch0' "$dir/run.out"; then pass "a switch that cannot start is named"; else fail "a switch that cannot start is named" "$dir/run.out"; fi
clean "nothing is left after a failed start" $pid

"$banyan" lab run "$dir/leafspine.json" "${long[@]}" >"$dir/run.out" 2>&1 &
pid=$!
children+=("$pid")
sleep 4
kill -KILL $pid
wait $pid 2>/dev/null
[ -n "$(left_of $pid)" ] || fail "a killed lab leaves a state file for this test to clean"
check "lab down undoes a run that was killed" "$banyan" lab down $pid
clean "nothing is left after lab down" $pid

cleanup_more() { down_of "$dir/run.out"; }
if "$banyan" lab up "$dir/star4.json" >"$dir/run.out" 2>&1; then
    id=$(id_of "$dir/run.out")
    check "lab up: a switch answers" "$banyan" show "unix:/run/banyan/lab-$id/switch0.sock"
    check "lab down ends what is up" "$banyan" lab down "$id"
    clean "nothing is left of what was up" "$id"
else
    fail "lab up" "$dir/run.out"
fi
finish
