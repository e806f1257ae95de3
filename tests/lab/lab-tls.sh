#!/usr/bin/env bash
# A control channel that other machines can reach: keys made by `banyan keys`, tables pushed over
# TLS. A client without a controller's keys from the switch's authority can read and change nothing,
# and cannot keep the controller out.
#   lab-tls.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-tls "${1:-build/release}"
need_root
ns=bytls$$
cleanup_more() { ip netns del "$ns" 2>/dev/null; }
make_topologies
inside() { ip netns exec "$ns" "$@"; }

check "tables" bash -c "
    set -e
    '$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan'
    '$banyan' tables '$dir/star4.json' '$dir/a.plan' -o '$dir/one'
    '$banyan' tables '$dir/star4.json' '$dir/a.plan' --gen 2 -o '$dir/two'"
check "keys of every switch of a fabric and of a controller" bash -c "
    '$banyan' keys '$dir/keys' --topology '$dir/star4.json' --controller operator --switch spare &&
    '$banyan' keys '$dir/others' --controller operator"
refused "keys are not replaced unasked" 2 "--renew" "$banyan" keys "$dir/keys" --switch switch0
check "keys are their owner's alone" bash -c "[ \"\$(stat -c %a '$dir/keys/ca.key' '$dir'/keys/*/key.pem | sort -u)\" = 600 ]"

ip netns add "$ns"
ip -n "$ns" link set lo up
for i in 0 1 2 3; do ip -n "$ns" link add "p$i" type veth peer name "h$i"; done
ports=(--iface p0 --iface p1 --iface p2 --iface p3)
# start WHAT NAME ARGUMENT...: starts a switch; its process is $switch.
start() {
    local what=$1 name=$2 i
    shift 2
    rm -f "$dir/switch.out" # what the one before said
    ip netns exec "$ns" "$build/bin/banyan-switchd" --name "$name" "${ports[@]}" "$@" >"$dir/switch.out" 2>"$dir/switch.err" &
    switch=$!
    children=("$switch")
    for ((i = 0; i < 300; i++)); do grep -q ready "$dir/switch.out" 2>/dev/null && { pass "$what"; return; }; sleep 0.1; done
    fail "$what" "$dir/switch.err"
}
stop() { kill -TERM "$switch" 2>/dev/null; wait "$switch"; children=(); }

switchd=$build/bin/banyan-switchd
refused "plain TCP beyond this machine is refused" 2 "use tls:" inside "$switchd" --name switch0 "${ports[@]}" --control tcp:0.0.0.0:46250
refused "TLS without keys is refused" 2 "TLS requires --keys" "$switchd" --name switch0 --iface p0 --control tls:127.0.0.1:46250
refused "keys that are not there are named" 2 "nobody/ca.pem" \
    inside "$switchd" --name switch0 "${ports[@]}" --control tls:127.0.0.1:46250 --keys "$dir/keys/nobody"

start "a switch with keys starts" switch0 --control tls:127.0.0.1:46250 --keys "$dir/keys/switch0"
address=tls:127.0.0.1:46250
push() { local keys=$1; shift; inside "$banyan" push "$@" --to "switch0=$address" --keys "$keys"; }
check "push with a controller's keys" push "$dir/keys/operator" "$dir/one"
with_variable() { inside env BANYAN_KEYS="$dir/keys/operator" "$banyan" show "$address" --counters; }
check "show, with the keys named by BANYAN_KEYS" with_variable
check "read back over TLS" bash -c "
    ip netns exec '$ns' '$banyan' show '$address' --keys '$dir/keys/operator' -o '$dir/back.table' && cmp '$dir/back.table' '$dir/one/switch0.table'"
refused "no keys" 3 "name their folder with --keys" inside "$banyan" push "$dir/two" --to "switch0=$address"
refused "keys of another authority" 3 "keys of the same authority" push "$dir/others/operator" "$dir/two"
refused "a switch's keys write no tables" 3 "refused our certificate" push "$dir/keys/spare" "$dir/two"
plain() { inside timeout 20 "$banyan" push "$dir/two" --to switch0=tcp:127.0.0.1:46250 --timeout 5; }
refused "no TLS" 3 "127.0.0.1:46250" plain
check "what was refused is told at the switch" grep -q "a control client was refused: " "$dir/switch.err"
unchanged() { inside "$banyan" show "$address" --keys "$dir/keys/operator" -o "$dir/back.table" && cmp "$dir/back.table" "$dir/one/switch0.table"; }
check "after all refusals the table is the one before" unchanged
# Strangers hold silent connections.
crowd() {
    inside bash -c "
        for i in \$(seq 60); do exec {fd}<>/dev/tcp/127.0.0.1/46250 || exit 1; done
        timeout 20 '$banyan' push '$dir/two' --to 'switch0=$address' --keys '$dir/keys/operator'"
}
check "sixty silent strangers do not keep the controller out" crowd
stop
start "a switch with another's keys starts" switch0 --control "$address" --keys "$dir/keys/spare"
refused "it is unmasked" 3 "but the certificate of 'spare'" push "$dir/keys/operator" "$dir/two"
stop
finish
