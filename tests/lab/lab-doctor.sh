#!/usr/bin/env bash
# banyan doctor on a healthy lab, and on the same lab with one fault after another.
#   lab-doctor.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-doctor "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; }
make_topologies

doctor() { "$banyan" doctor "$@"; }
# found WHAT STATUS TEXT OPTIONS...: runs doctor on the first host; its output must contain TEXT.
found() {
    local what=$1 status=$2 text=$3 got
    shift 3
    $host "$banyan" doctor "$@" >"$dir/doctor.out" 2>&1
    got=$?
    if [ "$got" -eq "$status" ] && grep -qF -- "$text" "$dir/doctor.out"; then
        pass "$what"
    else
        echo "status $got, expected $status and '$text'" >>"$dir/doctor.out"
        fail "$what" "$dir/doctor.out"
    fi
}
check "the machine alone" bash -c "'$banyan' doctor --json >'$dir/alone.json' || [ \$? -eq 1 ]; perl -MJSON::PP -0777 -ne 'decode_json(\$_)' '$dir/alone.json'"
listed() {
    local name
    "$banyan" doctor --checks | while read -r name _; do
        grep -q "^\.It Cm $name\$" docs/man/banyan-doctor.1 || { echo "banyan-doctor(1) says nothing of $name"; exit 1; }
    done
}
check "the manual names every check" listed

if ! "$banyan" lab up "$dir/star4.json" >"$dir/up.out" 2>&1; then
    fail "lab up" "$dir/up.out"
    finish
fi
id=$(id_of "$dir/up.out")
folder=/run/banyan/lab-$id
host=$(host_line host0)
host=${host% COMMAND}
switches=(--sockets "$folder" --tables "$folder")
link=$($host ip -o link | sed -n 's/^[0-9]*: \(eth0\)@.*/\1/p')

found "a lab that is well: 0" 0 " ok" --table "$folder/host0.table" "${switches[@]}"
check "nothing about it is wrong" bash -c "! grep -q '^trouble' '$dir/doctor.out'"
found "its peer has answered" 0 "(node 4) answers" --table "$folder/host0.table" -v
node=${host/host0/switch0}
node=${node%% env *}
on_switch() { $node "$banyan" doctor --table "$folder/switch0.table"; }
check "the same on the switch, whose ports are in use" on_switch
$host ip link set "$link" mtu 1400
found "a smaller MTU: 1" 1 "ip link set eth0 mtu 1500" --table "$folder/host0.table"
$host ip link set "$link" mtu 1500
$host ip addr del "$($host ip -o -4 addr show dev "$link" | awk '{print $4}')" dev "$link"
found "an address that is gone: 1" 1 "does not have the table's address" --table "$folder/host0.table"
found "another host's table: 1" 1 "does not have the table's address" --table "$folder/host1.table"
found "an interface that is not there: 1, naming those that are" 1 "available: lo, eth0" --iface nope
found "a switch that is not there: 1" 1 "start banyan-switchd there" --to "leaf9=unix:$folder/leaf9.sock"
found "a switch with another name: 1" 1 "answers as 'switch0'" --to "leaf9=unix:$folder/switch0.sock"
found "TLS without keys: 3" 3 "TLS requires keys" --to leaf9=tls:127.0.0.1:46250
found "no such table: 2" 2 "No such file" --table "$dir/nowhere.table"
check "another plan is pushed" bash -c "
    '$banyan' plan '$dir/star4.json' -c allgather -o '$dir/g.plan' &&
    '$banyan' tables '$dir/star4.json' '$dir/g.plan' --gen 9 -o '$dir/other' && '$banyan' push '$dir/other' --sockets '$folder'"
found "a table that is not the file's: 1" 1 "banyan diff unix:$folder/switch0.sock" "${switches[@]}"
kill -STOP "$(switch_pid "$id" switch0)"
found "a switch that is stopped: 1" 1 "check its log" --sockets "$folder" --timeout 1
kill -CONT "$(switch_pid "$id" switch0)"
kill -KILL "$(switch_pid "$id" switch0)"
found "a switch that was killed does not answer its hosts: 1" 1 "does not answer" --table "$folder/host0.table"
found "nor us: 1" 1 "cannot connect" --sockets "$folder"
down_of "$dir/up.out"
rm -f "$dir/up.out"
if "$banyan" lab up "$dir/star4.json" --driver ring >"$dir/up.out" 2>&1; then
    id=$(id_of "$dir/up.out")
    ringed() {
        ip netns exec "lab-$id-switch0" "$banyan" doctor -v --table "/run/banyan/lab-$id/switch0.table" >"$dir/ring.out" &&
            grep -q '(node 0) answers' "$dir/ring.out" || { cat "$dir/ring.out"; return 1; }
    }
    check "on a switch with rings its hosts answer" ringed
else
    fail "lab up --driver ring" "$dir/up.out"
fi
finish
