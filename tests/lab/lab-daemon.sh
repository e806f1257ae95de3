#!/usr/bin/env bash
# banyand in a lab: it makes a job, hosts run the job, and banyand is killed and restarted
# meanwhile; a second banyand is refused. `banyan job` creates and ends jobs, and HTTP refuses
# invalid requests.
#   lab-daemon.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-daemon "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; }
make_topologies

if ! "$banyan" lab up "$dir/leafspine.json" --controller --collective allreduce,broadcast >"$dir/up.out" 2>&1; then
    fail "a lab with a controller is up" "$dir/up.out"
    finish
fi
pass "a lab with a controller is up"
lab=$(id_of "$dir/up.out")
folder=/run/banyan/lab-$lab
at=$(sed -n 's/.*--controller \(unix:[^ ]*\).*/\1/p' "$dir/up.out")
daemon=$(sed -n 's/^process \([0-9]*\) [0-9]* banyand$/\1/p' "$folder/state")
job() { "$banyan" job "$@" --controller "$at"; }
# http METHOD PATH [HEADER]: prints status and body of the answer at the loopback port.
http() {
    exec 3<>"/dev/tcp/127.0.0.1/$(sed -n 's/.* http 127.0.0.1:\([0-9]*\)$/\1/p' "$dir/again.out")" || return 1
    printf '%s %s HTTP/1.0\r\n%s\r\n' "$1" "$2" "${3:+$3$'\r\n'}" >&3
    cat <&3
    exec 3<&-
}

# run ITERATIONS: starts all four ranks, with output in $dir/rank*.out.
ranks=()
run() {
    local i
    ranks=()
    for i in 0 1 2 3; do
        # shellcheck disable=SC2046
        $(host_line "host$i") "$build/bin/banyan-perf" --job 1 -c allreduce,broadcast -b 1M -e 1M -n "$1" -w 0 >"$dir/rank$i.out" 2>&1 &
        ranks+=($!)
    done
    children+=("${ranks[@]}")
}
# right WHAT: passes if all ranks end successfully without a wrong element.
right() {
    local i status=0
    for i in "${!ranks[@]}"; do wait "${ranks[$i]}" || status=1; done
    if [ $status -eq 0 ] && grep -q '^# Out of bounds values : 0 OK' "$dir/rank0.out"; then pass "$1"; else fail "$1" "$dir"/rank*.out; fi
}
run 1
right "hosts that know nothing but the controller run the job"
tables() { for s in leaf0 leaf1 spine0; do "$banyan" show "unix:$folder/$s.sock" | grep -o 'hash [0-9a-f]*'; done; }

# The daemon dies while a job runs; its successor continues the job and pushes nothing.
run 48
sleep 0.7
before=$(tables)
kill -KILL "$daemon"
args=(banyand "$folder/topology.json" --sockets "$folder" --state "$folder" --members "unix:$folder/members.sock" --socket "${at#unix:}" --http 0)
"$build/bin/${args[0]}" "${args[@]:1}" >"$dir/again.out" 2>"$dir/again.err" &
daemon=$!
children+=("$daemon")
right "the job runs on when its controller is killed"
ready() { local i; for ((i = 0; i < 600; i++)); do grep -q ready "$dir/again.out" && return; sleep 0.05; done; cat "$dir/again.out" "$dir/again.err"; return 1; }
check "it starts again" ready
refused "it goes on with the job of its last life" 0 "1 jobs run" cat "$dir/again.out"
[ "$before" = "$(tables)" ] && pass "no table has changed" || fail "no table has changed" "$dir/again.err"
run 1
right "and serves hosts that start now"
refused "a second controller is refused" 3 "is led by another controller" \
    timeout 20 "$build/bin/banyand" "$dir/leafspine.json" --sockets "$folder" --http off --socket off
refused "and so is one with the same store" 3 "is in use by another banyand" \
    timeout 20 "$build/bin/banyand" "$folder/topology.json" --sockets "$folder" --state "$folder" --http off --socket off

refused "a job on two hosts" 0 "job 2: running" job create -c allreduce --ranks host0,host1 --share 75% -o "$dir/two"
check "with tables for them" test -s "$dir/two/host0.table" -a -s "$dir/two/host1.table"
refused "no slots: who holds them" 1 "(job 1 holds " job create -c all --window 4096
refused "no bandwidth: what would fit" 1 "a share of 1/4 would fit" job create -c allreduce --ranks host0,host1 --share 1/2
refused "no such host" 2 "host9" job create -c allreduce --ranks host0,host9
refused "no such collective" 2 "available: allreduce" job create -c allredice
check "a job ends" job end 2
refused "and is gone" 1 "no job has that number" job end 2
list_json() { job list --json | is_json; }
check "the list as JSON" list_json
status_json() { http GET /v1/status "Host: localhost" | sed '1,/^\r$/d' | is_json; }
check "the status as JSON" status_json
refused "metrics of operations" 0 'banyan_job_operation_seconds_count{job="1",collective="allreduce"}' http GET /metrics "Host: localhost"
if command -v promtool >/dev/null; then
    promtool_accepts() { http GET /metrics "Host: localhost" | sed '1,/^\r$/d' | promtool check metrics; }
    check "promtool accepts the metrics" promtool_accepts
fi
refused "metrics" 0 'banyan_switch_up{switch="leaf0"} 1' http GET /metrics "Host: localhost"
refused "the port that every user reaches makes no jobs" 0 "403 Forbidden" http POST /v1/jobs "Host: localhost"
refused "and ends none" 0 "read-only" http DELETE /v1/jobs/1 "Host: localhost"
refused "nor does banyan job through it" 1 "--http-open" "$banyan" job end 1 --controller "127.0.0.1:$(sed -n 's/.* http 127.0.0.1:\([0-9]*\)$/\1/p' "$dir/again.out")"
check "the socket is its owner's alone" test "$(stat -c %a "${at#unix:}")" = 600
stranger() { setpriv --reuid 65534 --clear-groups "$banyan" job list --controller "$at"; }
stranger_reads() { setpriv --reuid 65534 --clear-groups cat "$folder"/banyand.db*; }
refused "no other user reads the store, which holds keys" 1 "Permission denied" stranger_reads
refused "another user is told so" 3 "check that this user may use that socket" stranger
refused "a page of a browser is refused" 0 "403 Forbidden" http GET /v1/status "Origin: http://somewhere.example"
refused "a name that means this machine for now is refused" 0 "403 Forbidden" http GET /v1/status "Host: somewhere.example"
refused "no such place" 0 "404 Not Found" http GET /v2 "Host: localhost"
kill -TERM "$daemon"
wait "$daemon"
[ $? -eq 0 ] && pass "the controller ends cleanly" || fail "the controller ends cleanly" "$dir/again.err"
refused "without it banyan job says so" 3 "check that banyand runs" job list
children=()
"$banyan" lab down "$lab" >/dev/null
check "nothing of the lab is left" test ! -e "$folder"

# A plan that takes long, for hosts only: it has a time limit, and the end of the controller does
# not wait for it.
"$banyan" topo regular --hosts 4000 --degree 12 >"$dir/large.json"
plans() { # plans OPTION...: a controller that plans a job, in the background
    "$build/bin/banyand" "$dir/large.json" --sockets "$dir" --state "$dir/large" --http off --socket off --job 1=allreduce "$@" >"$dir/large.out" 2>&1 &
    daemon=$!
    children=("$daemon")
}
until_said() { local i; for ((i = 0; i < 600; i++)); do grep -q "$1" "$dir/large.out" && return; sleep 0.05; done; cat "$dir/large.out"; return 1; }
plans --plan-limit 1
check "a plan that takes longer than its limit is given up" until_said "job 1: no plan of allreduce within 1 s: allow more time with --plan-limit"
kill -TERM "$daemon"
wait "$daemon"
plans
until_said ready
for ((i = 0; i < 200; i++)); do [ -z "$(cat "/proc/$daemon/task/"*/children 2>/dev/null)" ] || break; sleep 0.05; done
planner=$(cat "/proc/$daemon/task/"*/children 2>/dev/null)
[ -n "$planner" ] && pass "a plan is made by a process of its own" || fail "a plan is made by a process of its own" "$dir/large.out"
begin=$(date +%s%N)
kill -TERM "$daemon"
wait "$daemon"
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
if [ $status -eq 0 ] && in_time "${took}e-3" 1; then pass "a controller that plans ends in time: $took ms"; else fail "a controller that plans ends in time: status $status, $took ms" "$dir/large.out"; fi
check "and so does its planner" test ! -e "/proc/${planner:-self}"
plans --plan-limit 1
check "it starts again with the same store" until_said "^banyand: ready, .* 0 jobs run"
kill -TERM "$daemon"
wait "$daemon"
children=()
finish
