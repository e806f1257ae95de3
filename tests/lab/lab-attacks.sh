#!/usr/bin/env bash
# Attacks on real switches while two jobs run, all of whose elements are checked. Attackers on the
# wire have a cable of their own or use another node's cable, with and without keys; others attack
# the control channel. Each line names the attack and the counter that saw it; docs/security.md has
# the table.
#   lab-attacks.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-attacks "${1:-build/release}"
need_root
attack=$build/tools/lab-attack
control=$build/tools/control-attack
tenant=$build/tools/lab-tenant
for program in "$attack" "$control" "$tenant"; do
    [ -x "$program" ] || { echo "lab-attacks: $program is missing: make build-tools" >&2; exit 1; }
done
cleanup_more() { down_of "$dir/up.out"; }

# ---- a star of five hosts: job 1 on hosts 0 and 1, job 2 on 2 and 3; host 4 is in none ----------------------------------------------------
"$banyan" topo star --hosts 5 >"$dir/star5.json"
check "plans of two jobs, and keys of a control channel" bash -c "
    set -e
    '$banyan' plan '$dir/star5.json' -c allreduce --ranks host0,host1 -o '$dir/a.plan'
    '$banyan' plan '$dir/star5.json' -c allreduce --ranks host2,host3 -o '$dir/b.plan'
    '$banyan' keys '$dir/keys' --topology '$dir/star5.json' --controller operator
    '$banyan' keys '$dir/others' --controller operator"
gen=1
tables() { # tables FOLDER OPTION...: of the next generation
    local folder=$1
    shift
    gen=$((gen + 2)) # renewed once in between
    "$banyan" tables "$dir/star5.json" --job 1 "$dir/a.plan" --job 2 "$dir/b.plan" --gen $gen "$@" -o "$folder" >/dev/null
}
cat >"$dir/switchd" <<WRAP
#!/bin/sh
exec '$build/bin/banyan-switchd' "\$@" --control tcp:127.0.0.1:46248 --control tls:127.0.0.1:46250 --keys '$dir/keys/switch0'
WRAP
chmod 700 "$dir/switchd"
if ! "$banyan" lab up "$dir/star5.json" --jobs 2 --transport udp --switch "switch0=$dir/switchd" >"$dir/up.out" 2>&1; then
    fail "the lab is up" "$dir/up.out"
    finish
fi
id=$(id_of "$dir/up.out")
socket=unix:/run/banyan/lab-$id/switch0.sock
at() { local node=$1; shift; ip netns exec "lab-$id-$node" "$@"; }
push() { "$banyan" push "$1" --to "switch0=$socket"; }
counter() { "$banyan" show "$socket" --counters | awk -v name="$1:" '$1 == "counter" && $2 == name {value = $3} END {print value + 0}'; }

# ---- two jobs ------------------------------------------------------------------------------------------------------------------------------
# jobs_start FOLDER: starts four ranks that sum until jobs_stop, which returns 0 if all elements
# were right.
jobs_start() {
    local host i
    ranks=()
    rm -f "$dir"/rank* "$dir/stop"
    for host in 0 1 2 3; do
        at host$host env BANYAN_TABLE="$1/host$host.table" BANYAN_JOB=$((host / 2 + 1)) BANYAN_TRANSPORT=udp BANYAN_LOG=0 BANYAN_TIMEOUT=$((8 + slow)) \
            timeout 900 "$tenant" "$dir/rank$host" "$dir/stop" >"$dir/rank$host.out" 2>&1 &
        ranks+=($!)
    done
    children=("${ranks[@]}")
    for ((i = 0; i < 1200; i++)); do
        [ "$(done_by 1)" -gt 2 ] && [ "$(done_by 2)" -gt 2 ] && return
        sleep 0.05
    done
    fail "$mode: the jobs run" "$dir"/rank*.out
}
jobs_stop() {
    local pid status=0
    touch "$dir/stop"
    for pid in "${ranks[@]}"; do wait "$pid" || status=1; done
    children=()
    return $status
}
# done_by JOB: the number of operations so far. pace: sets $pace1 and $pace2, the operations per
# second of both jobs.
done_by() {
    local count
    count=$(cat "$dir/rank$((2 * $1 - 2))" 2>/dev/null)
    echo "${count:-0}"
}
pace() {
    local a b begin end
    a=$(done_by 1) b=$(done_by 2) begin=$(date +%s%N)
    sleep "$1"
    end=$(date +%s%N)
    pace1=$((($(done_by 1) - a) * 1000000000 / ((end - begin) / 1000)))
    pace2=$((($(done_by 2) - b) * 1000000000 / ((end - begin) / 1000)))
}
share() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", (b > 0 ? a / b : 0)}'; }
jobs_right() { # jobs_right WHAT: both jobs ran all the while, stop now, and every element was right
    local ran=1
    kill -0 "${ranks[@]}" 2>/dev/null || ran=0
    if jobs_stop && [ $ran -eq 1 ]; then pass "$1: $(cat "$dir/rank0.out"); $(cat "$dir/rank2.out")"; else fail "$1" "$dir"/rank*.out; fi
}

# tried WHAT COUNTER NODE KIND OPTION...: sends packets; passes if COUNTER has increased by at least
# nine tenths of them.
tried() {
    local what=$1 name=$2 node=$3 before after=0 sent i
    shift 3
    before=$(counter "$name")
    if ! sent=$(at "$node" "$attack" "$@" --table "$table" 2>"$dir/attack.err"); then
        fail "$mode: $what" "$dir/attack.err" "$dir"/rank*.out
        return
    fi
    for ((i = 0; i < 200; i++)); do
        after=$(counter "$name")
        [ $((10 * (after - before))) -lt $((9 * sent)) ] || break
        sleep 0.05
    done
    if [ $((10 * (after - before))) -ge $((9 * sent)) ]; then
        pass "$mode: $what: $sent sent, $name +$((after - before))"
    else
        fail "$mode: $what: $sent sent, $name +$((after - before))"
    fi
}
# Packets from an attacker's own cable: host 4 is in no job, host 2 is in the other job.
from_own_cable() {
    tried "another's address on an own cable (wrong port, spoofed source)" drop_ingress host4 contribution --iface eth0 --job 1 --child 0 --as 0
    tried "a foreign job" drop_ingress host2 contribution --iface eth0 --job 1 --child 0
    tried "a job that is not there" drop_entry host4 no-job --iface eth0 --job 1
    tried "another generation" drop_gen host2 gen --iface eth0 --job 2 --child 0
    tried "another child of the own job" drop_ingress host2 contribution --iface eth0 --job 2 --child 1
    tried "a header cut by a byte" drop_format host2 stub --iface eth0 --job 2 --child 0
    tried "a payload longer than chunks" "$1" host2 oversize --iface eth0 --job 2 --child 0
    tried "a payload that is cut" "$2" host2 cut --iface eth0 --job 2 --child 0
    tried "an old sequence number" "$3" host2 contribution --iface eth0 --job 2 --child 0
    tried "a result sent back up" drop_ingress host2 reflection --iface eth0 --job 2
}
flooded() { # flooded WHAT KIND OPTION...: host 4 sends all it can for two seconds; what both jobs do then, and did before
    local what=$1 calm1 calm2 pid
    shift
    pace 1
    calm1=$pace1 calm2=$pace2
    at host4 "$attack" "$@" --iface eth0 --table "$table" --seconds 2 >"$dir/sent" 2>&1 &
    pid=$!
    pace 1.8
    wait $pid || fail "$mode: a flood" "$dir/sent"
    echo "         $mode: a flood of $what: $(cat "$dir/sent") sent in 2 s; the jobs did $(share "$pace1" "$calm1") and $(share "$pace2" "$calm2") of what they had done before"
}
round() { # round MODE OPTION...: tables with these options, loaded
    mode=$1
    shift
    folder=$dir/$mode
    table=$folder/switch0.table
    tables "$folder" "$@"
    check "$mode: tables are loaded" push "$folder"
}
again() { # another run wants another generation
    "$banyan" push --renew "$folder" --to "switch0=$socket" >"$dir/renew.out" 2>&1 || fail "$mode: renew" "$dir/renew.out"
}

round plain
jobs_start "$folder"
from_own_cable drop_count drop_count drop_stale
flooded "packets of job 1 from another cable" contribution --job 1 --child 0 --as 0
jobs_right "plain: both jobs are right after all this"
# Attacks that only keys prevent: forged packets on a rank's own cable.
again
jobs_start "$folder"
at host0 "$attack" next --iface eth0 --job 1 --child 0 --count 3000 --table "$table" >"$dir/attack.out" 2>&1
if jobs_stop; then
    fail "plain: forged packets on a rank's own cable spoil its job, and that was not seen"
else
    pass "plain: forged packets on a rank's own cable spoil its job, which is what keys are for: $(grep -h . "$dir"/rank[01].out | head -n 1 | cut -c1-90)..."
fi
if grep -q ' 0 wrong elements' "$dir/rank2.out" && grep -q ' 0 wrong elements' "$dir/rank3.out"; then
    pass "plain: the other job is right all the same"
else
    fail "plain: the other job is right all the same" "$dir"/rank[23].out
fi

round keyed --keyed
check "keyed: tables are their owner's alone" bash -c "[ \"\$(stat -c %a '$folder'/switch0.table '$folder'/host[0-3].table | sort -u)\" = 600 ]"
jobs_start "$folder"
from_own_cable drop_key drop_key drop_key
tried "forged in the name of a rank, on its own cable" drop_key host0 next --iface eth0 --job 1 --child 0
tried "a rank's packets with altered payload and psum" drop_key host0 altered --iface eth0 --job 1 --child 0
tried "a rank's packets in another child's place, on that one's cable" drop_key host1 elsewhere --iface eth0 --job 1 --child 1 --see "/run/netns/lab-$id-host0:eth0"
before=$(($(counter duplicate) + $(counter drop_stale)))
sent=$(at host0 "$attack" replay --iface eth0 --job 1 --table "$table")
for ((i = 0; i < 200; i++)); do
    moved=$(($(counter duplicate) + $(counter drop_stale) - before))
    [ $((10 * moved)) -lt $((9 * sent)) ] || break
    sleep 0.05
done
if [ $((10 * moved)) -ge $((9 * sent)) ]; then
    pass "keyed: a rank's packets played again on its own cable: $sent sent, duplicate and drop_stale +$moved"
else
    fail "keyed: a rank's packets played again on its own cable: $sent sent, duplicate and drop_stale +$moved"
fi
at switch0 "$attack" result --iface p0 --job 1 --child 0 --table "$table" >"$dir/attack.out" 2>&1 || fail "keyed: forged results" "$dir/attack.out"
flooded "forged packets of job 1 from another cable" contribution --job 1 --child 0 --as 0
jobs_right "keyed: both jobs are right after all this"
dropped=$(sed -n 's/.*drop_key //p' "$dir/rank0.out")
if [ "${dropped:-0}" -ge 180 ]; then
    pass "keyed: forged results for a rank, on its own cable: 200 sent, drop_key +$dropped there"
else
    fail "keyed: forged results: drop_key ${dropped:-0}" "$dir/rank0.out"
fi

round payload --keyed=payload
jobs_start "$folder"
tried "one word more, another less, under the same psum" drop_key host0 balanced --iface eth0 --job 1 --child 0 --count 100
jobs_right "payload: both jobs are right"

# ---- a switch that is only passed by: packets in another's name end there -------------------------------------------------------------------
"$banyan" topo star --hosts 5 --capable none >"$dir/plain5.json"
"$banyan" plan "$dir/plain5.json" -c allreduce --ranks host0,host1 -o "$dir/pa.plan" >/dev/null
"$banyan" plan "$dir/plain5.json" -c allreduce --ranks host2,host3 -o "$dir/pb.plan" >/dev/null
mode=relay
folder=$dir/relay
table=$folder/switch0.table
gen=$((gen + 2))
check "relay: tables are loaded" bash -c "'$banyan' tables '$dir/plain5.json' --job 1 '$dir/pa.plan' --job 2 '$dir/pb.plan' --gen $gen -o '$folder' && '$banyan' push '$folder' --to 'switch0=$socket'"
jobs_start "$folder"
tried "from an own cable, in another's name, to where a relay leads" drop_ingress host4 relayed --iface eth0 --job 1
tried "the same from a cable of the other job" drop_ingress host2 relayed --iface eth0 --job 1
jobs_right "relay: both jobs are right"

# ---- shares: a rank's host floods in the rank's own name, on a cable that another job has a share of ------------------------------------------
# Cables of 4 MB/s in the tables, half of it for job 1. The checks use counters of bytes, and parts
# of them that even a slow machine reaches.
mode=share
folder=$dir/share
table=$folder/switch0.table
gen=$((gen + 2))
"$banyan" topo star --hosts 5 --bandwidth 0.004 >"$dir/thin5.json"
"$banyan" plan "$dir/thin5.json" -c allreduce --ranks host0,host1 -o "$dir/thin.plan" >/dev/null
check "share: tables are loaded" bash -c "'$banyan' tables '$dir/thin5.json' --job 1 --share 1/2 '$dir/thin.plan' --job 2 --share 1/4 '$dir/thin.plan' --gen $gen -o '$folder' &&
    '$banyan' push '$folder' --to 'switch0=$socket'"
came() { "$banyan" show "$socket" --counters | awk -v job="$1" '$1 == "share" && $3 == job {value = $6} END {print value + 0}'; } # bytes of a job, all ports
rm -f "$dir"/rank* "$dir/stop"
ranks=()
for host in 0 1; do
    at host$host env BANYAN_TABLE="$folder/host$host.table" BANYAN_JOB=1 BANYAN_TRANSPORT=udp BANYAN_LOG=0 BANYAN_TIMEOUT=$((8 + slow)) \
        timeout 900 "$tenant" "$dir/rank$host" "$dir/stop" >"$dir/rank$host.out" 2>&1 &
    ranks+=($!)
done
children=("${ranks[@]}")
for ((i = 0; i < 1200; i++)); do [ "$(done_by 1)" -gt 2 ] && break; sleep 0.05; done
dropped=$(counter drop_share)
one=$(came 1) begin=$(date +%s%N)
sleep 2
calm=$((($(came 1) - one) * 1000 / (($(date +%s%N) - begin) / 1000000)))
at host0 "$attack" contribution --iface eth0 --job 2 --child 0 --table "$table" --seconds 12 >"$dir/sent" 2>&1 &
pid=$!
sleep 0.5
# Other programs may keep a job from the processors for seconds, so its best second counts.
one=0 two=0 best=0 start=$(date +%s%N)
for ((i = 0; i < 10; i++)); do
    before=$(came 1) other=$(came 2) begin=$(date +%s%N)
    sleep 1
    bytes=$(($(came 1) - before)) now=$((bytes * 1000 / (($(date +%s%N) - begin) / 1000000)))
    one=$((one + bytes)) two=$((two + $(came 2) - other))
    [ $now -le $best ] || best=$now
done
took=$((($(date +%s%N) - start) / 1000000))
wait $pid || fail "share: a flood" "$dir/sent"
children=()
share=$((2 * 1937500)) # of job 1 each second, in its two ports: 31/32 of the half of 4 MB/s each
echo "         share: $(cat "$dir/sent") frames sent in 12 s; job 1 had $calm bytes/s before, and $((one * 1000 / took)) then, $best in its best second, of the $share that are its own; job 2 had $((two * 1000 / took))"
if [ $((10 * best)) -ge $((6 * share)) ]; then pass "share: a job has its share of a cable that another one floods"; else fail "share: a job has its share of a cable that another one floods: $best of $share bytes/s"; fi
# All bandwidth that is not job 1's, and the contents of meters and of queues.
if [ "$two" -le $((3875 * took - one / 2 + 700000)) ]; then pass "share: the flood has what is left of the cable, and no more"; else fail "share: the flood has $two bytes in $took ms beside $one"; fi
if [ $(($(counter drop_share) - dropped)) -ge 100 ]; then pass "share: what is far beyond the share is dropped"; else fail "share: nothing of the flood was dropped"; fi
touch "$dir/stop"
status=0
for pid in "${ranks[@]}"; do wait "$pid" || status=1; done
if [ $status -eq 0 ]; then pass "share: the job is right: $(cat "$dir/rank0.out")"; else fail "share: the job is right" "$dir"/rank*.out; fi

# ---- the control channel, while both jobs run ----------------------------------------------------------------------------------------------
round control --keyed
tls=tls:127.0.0.1:46250
tcp=tcp:127.0.0.1:46248
before=$("$banyan" show "$socket" | grep -o 'hash [0-9a-f]*')
tables "$dir/next" --keyed
jobs_start "$folder"
pace 1
calm1=$pace1 calm2=$pace2
refused "control: without a certificate" 3 "name their folder with --keys" at switch0 "$banyan" push "$dir/next" --to "switch0=$tls"
refused "control: a controller of another authority" 3 "keys of the same authority" at switch0 "$banyan" push "$dir/next" --to "switch0=$tls" --keys "$dir/others/operator"
refused "control: keys of jobs over plain TCP" 3 "without TLS would expose" at switch0 "$banyan" push "$dir/next" --to "switch0=$tcp"
check "control: malformed messages, cut, endless, of other versions, of random bytes" at switch0 "$control" malformed 127.0.0.1 46248
check "control: a write with an old election id, an old commit played again" at switch0 "$control" replay 127.0.0.1 46248
check "control: forty clients that say a byte now and then keep nobody out" at switch0 "$control" loris 127.0.0.1 46248
check "control: after sixty strangers on the TLS port the controller comes in" bash -c "
    ip netns exec lab-$id-switch0 bash -c '
        for i in \$(seq 60); do exec {fd}<>/dev/tcp/127.0.0.1/46250 || exit 1; done
        timeout 20 \"$banyan\" show $tls --keys \"$dir/keys/operator\" >/dev/null'"
. tests/lab/attacks-doors.sh
at switch0 "$control" handshakes 127.0.0.1 46250 >"$dir/sent" 2>&1 &
pid=$!
pace 1
wait $pid || fail "control: handshakes" "$dir/sent"
echo "         control: $(cat "$dir/sent"); the jobs did $(share "$pace1" "$calm1") and $(share "$pace2" "$calm2") of what they had done before"
if [ "$("$banyan" show "$socket" | grep -o 'hash [0-9a-f]*')" = "$before" ]; then pass "control: the table is the one before"; else fail "control: the table has changed"; fi
jobs_right "control: both jobs are right"
check "no key is in any text or log" bash -c "! grep -qiE '[0-9a-f]{32}' '$dir'/*/*.txt '$dir/up.out' /run/banyan/lab-$id/*.log"
. tests/lab/attacks-keys.sh
. tests/lab/attacks-shm.sh
finish
