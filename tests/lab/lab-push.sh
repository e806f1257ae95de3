#!/usr/bin/env bash
# Tables by hand: topo, plan and tables make files; banyan push loads them onto switches that were
# started by hand; show reads the same bytes back. Images that are truncated, have flipped bits or
# belong to another switch are refused and change nothing.
#   lab-push.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-push "${1:-build/release}"
need_root
ns=bypush$$
cleanup_more() { ip netns del "$ns" 2>/dev/null; }
make_topologies
show() { "$banyan" show "$@"; }

check "plans and tables" bash -c "
    set -e
    '$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan'
    '$banyan' plan '$dir/star4.json' -c allgather -o '$dir/g.plan'
    '$banyan' tables '$dir/star4.json' '$dir/a.plan' '$dir/g.plan' -o '$dir/one'
    '$banyan' tables '$dir/star4.json' '$dir/a.plan' --job 2 '$dir/a.plan' --gen 5 -o '$dir/two'
    test -s '$dir/one/switch0.table' -a -s '$dir/one/host3.txt'"

ip netns add "$ns"
for i in 0 1 2 3; do ip -n "$ns" link add "p$i" type veth peer name "h$i"; done
mkdir "$dir/state"
start() {
    local i
    rm -f "$dir/switch.out" # what the one before said
    ip netns exec "$ns" "$build/bin/banyan-switchd" --name switch0 --iface p0 --iface p1 --iface p2 --iface p3 \
        --control "unix:$dir/switch0.sock" --control tcp:127.0.0.1:46248 --state "$dir/state" >"$dir/switch.out" 2>"$dir/switch.err" &
    switch=$!
    children=("$switch")
    for ((i = 0; i < 300; i++)); do grep -q ready "$dir/switch.out" 2>/dev/null && return; sleep 0.1; done
    fail "the switch is ready within 30 s" "$dir/switch.err"
}
start
address=unix:$dir/switch0.sock

refused "a switch without a table says so" 0 "no table is active" show "$address"
check "push by folder of sockets" "$banyan" push "$dir/one" --sockets "$dir"
check "show reads back the bytes that were pushed" bash -c "
    '$banyan' show '$address' -o '$dir/back.table' && cmp '$dir/back.table' '$dir/one/switch0.table'"
check "show of the switch and of the file name one hash" bash -c "
    [ \"\$('$banyan' show '$address' | grep -o 'hash [0-9a-f]*')\" = \"\$('$banyan' show '$dir/one/switch0.table' | grep -o 'hash [0-9a-f]*')\" ]"
check "diff: nothing" "$banyan" diff "$address" "$dir/one/switch0.table"
refused "diff: what changed" 1 "+ job 2: generation 5" "$banyan" diff "$address" "$dir/two/switch0.table"
push_json() { "$banyan" push "$dir/two/switch0.table" --to "switch0=$address" --json | is_json; }
check "push by address, JSON" push_json
check "diff: nothing after the push" "$banyan" diff "$address" "$dir/two/switch0.table"
over() {
    "$banyan" push "$dir/one" --over "$dir/two" --sockets "$dir" --json >"$dir/over.json" || return 1
    "$banyan" diff "$address" "$dir/one/switch0.table" || return 1
    awk -F'[:,]' '/"bytes"/ {bytes = $2} /"sent"/ {sent = $2} END {exit !(sent > 0 && sent < 0.7 * bytes)}' "$dir/over.json"
}
check "push of what differs from the table that is active" over
check "and back, whole" "$banyan" push "$dir/two/switch0.table" --to "switch0=$address"
show_json() { "$banyan" show "$address" --counters --waiting --json | is_json; }
check "counters and waiting as JSON" show_json
check "the control channel over TCP" ip netns exec "$ns" bash -c "
    ip link set lo up; '$banyan' show tcp:127.0.0.1:46248 | grep -q 'switch0'"

head -c 300 "$dir/one/switch0.table" >"$dir/cut.table"
refused "a cut image" 2 "header 0: length differs" "$banyan" push "$dir/cut.table" --to "switch0=$address"
head -c 20 "$dir/one/switch0.table" >"$dir/stub.table"
refused "an image shorter than its header" 2 "shorter than its header" "$banyan" push "$dir/stub.table" --to "switch0=$address"
# The file with one bit flipped, for every seventh byte.
flips() {
    local at byte size
    size=$(stat -c %s "$dir/one/switch0.table")
    for ((at = 0; at < size; at += 7)); do
        cp "$dir/one/switch0.table" "$dir/flipped.table"
        byte=$(od -An -tu1 -j "$at" -N 1 "$dir/flipped.table")
        printf "\\x$(printf %02x $((byte ^ 1 << at % 8)))" | dd of="$dir/flipped.table" bs=1 seek="$at" conv=notrunc status=none
        "$banyan" show "$dir/flipped.table" >"$dir/flip.out" 2>&1
        if [ $? -ne 2 ] || ! grep -q 'table image refused: ' "$dir/flip.out"; then
            echo "byte $at was flipped, and show said:"
            cat "$dir/flip.out"
            return 1
        fi
    done
}
check "every flipped bit tried is refused" flips
refused "no such file" 2 "No such file" "$banyan" show "$dir/nowhere.table"
refused "no such switch" 3 "check that the switch runs" show "unix:$dir/nobody.sock"
refused "another switch's image" 3 "answers as 'switch0'" bash -c "
    '$banyan' topo leafspine >'$dir/l.json' && '$banyan' plan '$dir/l.json' -c allreduce -o '$dir/l.plan' &&
    '$banyan' tables '$dir/l.json' '$dir/l.plan' -o '$dir/leaf' && '$banyan' push '$dir/leaf/leaf0.table' --to leaf0=$address"
refused "a host's image" 2 "BANYAN_TABLE" "$banyan" push "$dir/one/host0.table" --to "host0=$address"
refused "an image without an address" 2 "--to switch0=ADDR" "$banyan" push "$dir/one" --to "x=$address"
refused "an address that is none" 2 "unix:PATH, tcp:HOST:PORT or tls:HOST:PORT" "$banyan" push "$dir/one" --to switch0=nowhere
check "after all refusals the table is the one before" "$banyan" diff "$address" "$dir/two/switch0.table"
refused "without a saved table nothing is offered" 3 "offers no saved table" "$banyan" push --saved --sockets "$dir"
check "settle: no push was open" bash -c "'$banyan' push --settle --sockets '$dir' | grep -q 'no push was open'"
kill -KILL $switch
wait $switch 2>/dev/null
start
refused "a switch that was killed and started again has no table" 0 "no table is active" show "$address"
refused "it offers the one that it had" 0 "was active before the switch restarted" show "$address"
check "push --saved" "$banyan" push --saved --to "switch0=$address"
check "it is the one from before" "$banyan" diff "$address" "$dir/two/switch0.table"
refused "images beside --saved" 2 "accept no images" "$banyan" push "$dir/one" --saved --sockets "$dir"
kill -TERM $switch
wait $switch
[ $? -eq 0 ] && pass "the switch ends cleanly" || fail "the switch ends cleanly" "$dir/switch.err"
children=()
finish
