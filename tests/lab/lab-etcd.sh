#!/usr/bin/env bash
# Several banyands over one etcd: one leads, and another one takes over within 3 s when the leader
# is killed, stopped or cut off, while ranks run verified allreduces through real switches. No
# generation is used twice. A member of etcd is lost, then the majority.
#   lab-etcd.sh [BUILD]   Needs root, and Debian's etcd-server and curl (77 without).
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-etcd "${1:-build/release}"
need_root
for program in etcd curl; do
    command -v $program >/dev/null || { echo "lab-etcd: skipped: $program is missing: make etcd-deps installs it" >&2; exit 77; }
done
# shellcheck source=tests/lab/etcd-common.sh
. tests/lab/etcd-common.sh
cleanup_more() {
    down_of "$dir/up.out"
    cluster_down
}
hosts="host0 host1 host2 host3"
# logs: the last lines of the banyands
logs() { tail -n 25 "$dir"/c?.log >"$dir/logs"; echo "$dir/logs"; }
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

"$banyan" topo leafspine --spines 2 --uplink 5 >"$dir/fabric.json"
cluster_up 3 >"$dir/check.out" 2>&1 || { fail "etcd with three members" "$dir/check.out"; finish; }
"$banyan" lab up "$dir/fabric.json" -c allreduce --transport udp >"$dir/up.out" 2>&1 || { fail "a lab" "$dir/up.out"; finish; }
lab=$(id_of "$dir/up.out")

banyands=()
start_banyand() { # N [OPTION...]
    at "c$1" "$build/bin/banyand" "$dir/fabric.json" --sockets "/run/banyan/lab-$lab" --members "unix:$dir/members$1" --socket "$dir/socket$1" --http off \
        --store "$store" --quiet 500 "${@:2}" >>"$dir/c$1.log" 2>&1 &
    banyands[$1]=$!
    children+=("$!")
    disown
}
readies() { grep -c '^banyand: ready' "$dir/c$1.log"; }
ready_again() { [ "$(readies "$1")" -gt "$2" ]; }
follows() { tail -n 1 "$dir/c$1.log" | grep -q 'this one takes over when that one ends'; }
said() { tail -n "+$((${since:-0} + 1))" "$dir/c$1.log" | grep -Eq -- "$2"; }
mark() { since=$(wc -l <"$dir/c$1.log"); } # of the log of banyand $1: for said
list=unix:$dir/socket0,unix:$dir/socket1,unix:$dir/socket2
job() { timeout 20 "$banyan" job "$@" --controller "$list"; }
generation() { job list | sed -n "s/^job $1[ :].*generation \([0-9]*\),.*/\1/p"; }
tables() { for s in leaf0 leaf1 spine0 spine1; do "$banyan" show "unix:/run/banyan/lab-$lab/$s.sock" | grep -o 'hash [0-9a-f]*'; done; }
rows() { awk '/^ allreduce/ { n++ } END { print n + 0 }' "$dir/host0.out" 2>/dev/null; }
more_rows() { [ "$(rows)" -gt "$1" ]; }
goes_on() { # WHAT: passes if further results arrive
    local before
    before=$(rows)
    if await 10 more_rows $((before + 1)) && kill -0 "${ranks[@]}" 2>/dev/null; then pass "$1"; else fail "$1" "$(logs)"; fi
}
# takes_over WHAT LEADER BEFORE: passes if a follower is ready within 3 s; sets $leader. BEFORE:
# `readies` of all three before.
takes_over() {
    local begin=$4 i took
    read -ra counts <<<"$3"
    while :; do
        took=$(($(now_ms) - begin))
        for i in 0 1 2; do
            [ "$i" -eq "$2" ] || ! ready_again "$i" "${counts[$i]}" || { leader=$i; break 2; }
        done
        [ $took -lt 10000 ] || { fail "$1: nobody takes over" "$(logs)"; finish; }
        sleep 0.01
    done
    if [ $took -le 3000 ]; then pass "$1: another one leads after $took ms"; else fail "$1: another one leads only after $took ms" "$(logs)"; fi
}
counts() { echo "$(readies 0) $(readies 1) $(readies 2)"; }

for i in 0 1 2; do
    start_banyand $i
    [ $i -gt 0 ] || await 10 ready_again 0 0 || { fail "banyand leads" "$dir/c0.log"; finish; }
done
"$banyan" job create -c allreduce --window 64 --controller "unix:$dir/socket0" >"$dir/check.out" 2>&1 || { fail "a job" "$dir/check.out" "$dir/c0.log"; finish; }
leader=0
if await 5 follows 1 && await 5 follows 2; then pass "the first banyand leads, and the others follow"; else fail "followers" "$(logs)"; fi
refused "banyan job finds the leader in a list" 0 "job 1: running" job list
refused "a follower accepts no requests and names the leader" 3 "accepts no requests: banyand on $(hostname), process " "$banyan" job list --controller "unix:$dir/socket1"
refused "so do the commands that look at it" 3 "this banyand follows: banyand on $(hostname), process " "$banyan" top --once --controller "unix:$dir/socket2"
for host in $hosts; do
    ip netns exec "lab-$lab-$host" env BANYAN_CONTROLLER="unix:$dir/members2,unix:$dir/members1,unix:$dir/members0" BANYAN_NODE="$host" BANYAN_TRANSPORT=udp BANYAN_LOG=2 BANYAN_TIMEOUT=20 \
        "$build/bin/banyan-perf" -c allreduce -b 64K -e 1M -i 16 -d i32 -n 1 -w 0 >"$dir/$host.out" 2>&1 &
    ranks+=("$!")
    children+=("$!")
    disown
done
goes_on "hosts find it in theirs"

# ---- the leader is killed -----------------------------------------------------------------------------------------------
job create --window 64 -c allreduce >"$dir/check.out" 2>&1 || fail "a second job" "$dir/check.out"
first=$(generation 1) second=$(generation 2) hashes=$(tables)
before=$(counts) old=$leader begin=$(now_ms)
end_tree KILL "${banyands[$leader]}"
takes_over "SIGKILL" "$leader" "$before" "$begin"
if [ "$(generation 1) $(generation 2)" = "$first $second" ] && [ "$hashes" = "$(tables)" ]; then pass "with the same jobs, generations and tables"; else fail "the same jobs" "$(logs)"; fi
goes_on "and the calls go on"
start_banyand "$old"
job end 2 >/dev/null && job create --window 64 -c allreduce >"$dir/check.out" 2>&1
if [ "$(generation 2)" -gt "$second" ]; then pass "the next job 2 has a later generation than the last one"; else fail "generation of job 2" "$dir/check.out"; fi

# ---- the leader is killed while it changes tables --------------------------------------------------------------------------
last=$(generation 2) repeated=0
job end 2 >/dev/null
await 5 follows "$old" || fail "banyand $old follows again" "$(logs)"
before=$(counts) old=$leader begin=$(now_ms)
job create --window 64 --job 2 -c allreduce >"$dir/create.out" 2>&1 &
sleep 0.03
end_tree KILL "${banyands[$leader]}"
wait $!
takes_over "SIGKILL 30 ms after a request for a job" "$leader" "$before" "$begin"
start_banyand "$old"
[ -n "$(generation 2)" ] || job create --window 64 --job 2 -c allreduce >"$dir/check.out" 2>&1
[ "$(generation 2)" -gt "$last" ] || repeated=1
if [ $repeated -eq 0 ]; then pass "no generation is used twice"; else fail "a generation is used twice" "$(logs)"; fi
goes_on "and the calls go on"

# ---- the leader is stopped --------------------------------------------------------------------------------------------------
await 5 follows "$old" || fail "banyand $old follows again" "$(logs)"
before=$(counts) old=$leader begin=$(now_ms) first=$(generation 1)
end_tree STOP "${banyands[$leader]}"
takes_over "SIGSTOP" "$leader" "$before" "$begin"
mark "$leader"
spine=$(switch_pid "$lab" spine0)
mapfile -d '' words <"/proc/$spine/cmdline"
words[0]=$build/bin/banyan-switchd
end_tree KILL "$spine"
if await 10 said "$leader" 'job 1 is in generation'; then pass "hosts leave the stopped one when they need a leader"; else fail "hosts of a stopped leader" "$(logs)" "$dir"/host?.out; fi
goes_on "and the calls go on"
hashes=$(tables 2>/dev/null)
mark "$old"
end_tree CONT "${banyands[$old]}"
if await 5 said "$old" 'this one follows now'; then pass "continued, it follows"; else fail "a stopped leader continues" "$(logs)"; fi
if [ "$(generation 1)" -gt "$first" ] && [ "$hashes" = "$(tables 2>/dev/null)" ]; then pass "and has changed no table"; else fail "a stopped leader changes tables" "$(logs)"; fi

# A switch in place of the one that was killed.
mark "$leader"
ip netns exec "lab-$lab-spine0" "${words[@]}" >"$dir/spine0.log" 2>&1 &
children+=("$!")
disown
await 10 said "$leader" 'job 1 is in generation' || fail "spine0 returns" "$(logs)" "$dir/spine0.log"

# ---- the leader is cut off from etcd, but not from switches and hosts -------------------------------------------------------
await 5 follows "$old" || fail "banyand $old follows again" "$(logs)"
before=$(counts) old=$leader begin=$(now_ms)
cut "c$leader"
mark "$old"
takes_over "cut off from etcd" "$leader" "$before" "$begin"
if await 5 said "$old" 'is led by a newer controller'; then pass "the switches refuse the former leader"; else fail "a former leader" "$(logs)"; fi
join "c$old"
goes_on "and the calls go on"

# ---- members of etcd are lost ------------------------------------------------------------------------------------------------
member_end 0 KILL
job end 2 >/dev/null
check "a job is created while one of three members of etcd is lost" job create --window 64 --job 2 -c allreduce
member_end 1 KILL
job end 2 >/dev/null 2>&1
last=$(generation 1)
refused "without a majority no job is created, and the reason is reported" 3 "no member of etcd serves the request" job create --window 64 --job 3 -c allreduce
goes_on "and the calls go on"
mark "$leader"
end_tree KILL "$(switch_pid "$lab" spine1)"
if await 10 said "$leader" 'the tables could not be pushed: --store: no member of etcd'; then pass "nor are tables changed when a switch dies"; else fail "a switch dies without a majority" "$(logs)"; fi
member_start 0
member_start 1
if await 15 said "$leader" 'job 1 is in generation' && [ "$(generation 1)" -gt "$last" ]; then pass "with a majority again they are"; else fail "after the majority is back" "$(logs)"; fi
goes_on "and the calls go on"
check "and a job is created" job create --window 64 --job 3 -c allreduce

# ---- https ---------------------------------------------------------------------------------------------------------------------
mkdir -p "$dir/keys" "$dir/strange"
signed() { # NAME DIR: makes a key and a certificate, for both ends, of the authority in DIR
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$2/$1.pem" -subj "/CN=$1" -out "$dir/$1.csr" 2>/dev/null &&
        openssl x509 -req -in "$dir/$1.csr" -CA "$2/ca.pem" -CAkey "$2/ca.key" -CAcreateserial -days 2 -out "$2/$1.crt" \
            -extfile <(echo "subjectAltName=IP:$network.10
extendedKeyUsage=serverAuth,clientAuth") 2>/dev/null
}
for folder in "$dir/keys" "$dir/strange"; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$folder/ca.key" -subj /CN=authority -days 2 -out "$folder/ca.pem" 2>/dev/null
    signed key "$folder"
    mv "$folder/key.crt" "$folder/cert.pem"
done
signed member "$dir/keys"
at m0 etcd --name tls --data-dir "$dir/tls" --listen-client-urls "https://$network.10:3379" --advertise-client-urls "https://$network.10:3379" \
    --listen-peer-urls http://127.0.0.1:3380 --initial-advertise-peer-urls http://127.0.0.1:3380 --initial-cluster tls=http://127.0.0.1:3380 --unsafe-no-fsync \
    --cert-file "$dir/keys/member.crt" --key-file "$dir/keys/member.pem" --trusted-ca-file "$dir/keys/ca.pem" --client-cert-auth >"$dir/tls.log" 2>&1 &
children+=("$!")
disown
secret() { # KEYS: runs banyand with these keys, for another fabric whose switches are absent
    at c0 timeout 6 "$build/bin/banyand" "$dir/fabric.json" --sockets "$dir" --http off --socket off --keyed --store "etcd:https://$network.10:3379" --store-keys "$dir/$1"
}
refused "an etcd at https:// keeps the state of keyed jobs" 124 "banyand: ready, 0 of 4 switches are up" secret keys
refused "another authority is reported" 124 "certificate" secret strange
refused "members of two clusters in one list" 3 "belongs to another cluster" at c0 timeout 10 "$build/bin/banyand" "$dir/fabric.json" --sockets "$dir" --http off --socket off \
    --store "etcd:http://$network.12:$port,https://$network.10:3379" --store-keys "$dir/keys"

# ---- wrong input ---------------------------------------------------------------------------------------------------------------
other() { timeout "${limit:-10}" "$build/bin/banyand" "$dir/fabric.json" --sockets "/run/banyan/lab-$lab" --http off --socket off "$@"; }
refused "another scheme" 2 "is no address of a member of etcd" other --store etcd:ftp://127.0.0.1:2379
refused "no port" 2 "is no address of a member of etcd" other --store etcd:http://127.0.0.1
refused "a folder as well" 2 "--state and --store exclude each other" other --store "$store" --state "$dir"
refused "https without keys" 2 "--store-keys" other --store etcd:https://127.0.0.1:2379
refused "keyed jobs over http to another machine" 2 "which http:// would expose" other --keyed --store "$store"
waits() { limit=2 other "$@"; }
refused "an unreachable etcd is reported, and banyand waits" 124 "no member of etcd serves the request (1 asked; http://127.0.0.1:9: " waits --store etcd:http://127.0.0.1:9
check "once, while its attempts fail alike" test "$(grep -c "serves the request" "$dir/check.out")" -eq 1
refused "another etcd, or name, for the same fabric" 3 "is led by another controller" at c0 timeout 10 "$build/bin/banyand" "$dir/fabric.json" --sockets "/run/banyan/lab-$lab" --http off --socket off --store "$store/other"
wrong() { awk '/^ allreduce/ && ($10 + $14 > 0) { n++ } END { print n + 0 }' "$dir"/host?.out; }
check "$(rows) sizes, and no wrong element" test "$(wrong)" -eq 0
for i in "${ranks[@]}"; do end_tree KILL "$i"; done
before=$(counts)
end_tree TERM "${banyands[$leader]}"
takes_over "SIGTERM" "$leader" "$before" "$(now_ms)"
end_tree TERM "${banyands[$leader]}"
finish
