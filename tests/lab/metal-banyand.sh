#!/usr/bin/env bash
# banyand controls the image of boards/qemu-virt-arm64. First the image alone, under a pre-shared
# key; then a leaf-spine fabric in which a leaf with two hosts and a spine are images, and the other
# switches are banyan-switchd. Heartbeats arrive, allreduces run and are verified. While calls run,
# the leaf is reset, which banyand detects by the boot nonce; and the spine's QEMU is killed and
# restarted, so its tables are loaded again. The calls continue.
#   metal-banyand.sh [BUILD]     Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh metal-banyand "${1:-build/release}"
need_root
# shellcheck source=tests/lab/metal-common.sh
. tests/lab/metal-common.sh
cleanup_more() {
    [ "$pid" -eq 0 ] || kill -KILL "$pid" 2>/dev/null
    down_of "$dir/up.out"
}
banyand=$build/bin/banyand
hosts="host0 host1 host2 host3"
# An emulated leaf may be late on a machine with other load; after three times this a switch counts
# as down.
beat=700
said() { tail -n "+$((${since:-0} + 1))" "$dir/banyand.log" | grep -Eq -- "$1"; } # since line $since
lines() { wc -l <"$dir/banyand.log"; }
start_banyand() { # TOPOLOGY OPTIONS...
    "$banyand" "$@" --heartbeat $beat --timeout 10 --http off >>"$dir/banyand.log" 2>&1 &
    controller=$!
    children+=("$controller")
    disown
    since=0
}

# ---- under the key ------------------------------------------------------------------------------------------------------------
"$banyan" topo star --hosts 4 >"$dir/star.json"
"$banyan" keys --psk "$dir/key" >/dev/null
image_name=switch0
boot 4 $(setting slots 2048) $(setting nonce 1) -fw_cfg "name=opt/banyan/psk,file=$dir/key"
until_says "ready, 4 ports" >/dev/null
start_banyand "$dir/star.json" --to "switch0=psk+unix:$dir/c.sock" --psk "$dir/key" --job 1=allreduce
if await 20 said 'job 1 runs'; then pass "banyand loads a job onto the image under the key"; else fail "banyand under the key" "$dir/banyand.log" "$dir/log"; fi
since=$(lines)
monitor system_reset
if await 20 said 'switch switch0 has restarted'; then pass "and finds a reset by the boot nonce"; else fail "a reset" "$dir/banyand.log" "$dir/log"; fi
has_table() { "$banyan" show "psk+unix:$dir/c.sock" --psk "$dir/key" 2>/dev/null | grep -q 'entry job 1'; }
check "and loads the table again" await 20 has_table
end_tree TERM "$controller"
halt

# ---- a leaf ---------------------------------------------------------------------------------------------------------------------
rows() { awk '/^ allreduce/ { n++ } END { print n + 0 }' "$dir/host0.out" 2>/dev/null; }
wrong_rows() { awk '/^ allreduce/ && ($10 + $14 > 0) { n++ } END { print n + 0 }' "$dir"/host?.out; }
more_rows() { [ "$(rows)" -gt "$1" ]; }
alive() { kill -0 "${ranks[@]}" 2>/dev/null; }
spine_qemu() { pgrep -f "[g]uest=/run/banyan/lab-$id/spine0.sock"; }
# goes_on WHAT: passes if further results arrive from now on.
goes_on() {
    local before
    before=$(rows)
    if await 30 more_rows $((before + 2)) && alive; then pass "$1"; else fail "$1" "$dir"/host*.out "$dir/banyand.log"; fi
}
"$banyan" topo leafspine --spines 2 --uplink 5 >"$dir/fabric.json"
"$banyan" lab up "$dir/fabric.json" -c allreduce --transport udp --switch "leaf0=$board/run" --switch "spine0=$board/run" >"$dir/up.out" 2>&1 ||
    { fail "a lab with images as a leaf and a spine comes up" "$dir/up.out"; finish; }
id=$(id_of "$dir/up.out")
rm -f "$dir/banyand.log"
start_banyand "$dir/fabric.json" --sockets "/run/banyan/lab-$id" --members "unix:$dir/members" --job 1=allreduce --quiet 500
if await 30 said 'job 1 runs'; then pass "banyand leads a fabric of which a leaf and a spine are images"; else fail "banyand leads" "$dir/banyand.log"; finish; fi
for host in $hosts; do
    ip netns exec "lab-$id-$host" env BANYAN_CONTROLLER="unix:$dir/members" BANYAN_NODE="$host" BANYAN_TRANSPORT=udp BANYAN_LOG=2 BANYAN_TIMEOUT=30 \
        "$build/bin/banyan-perf" -c allreduce -b 64K -e 1M -i 16 -d i32 -n 1 -w 0 >"$dir/$host.out" 2>&1 &
    ranks[${host#host}]=$!
    children+=("$!")
    disown
done
goes_on "allreduces go through"
# Beside a load an emulated processor may be late by some 100 ms.
down='is down'
[ "$(slowness)" -eq 0 ] || down='is down: (no answer for [0-9]{4,} ms|its process)'
check "and heartbeats are seen: nothing is down" bash -c "! grep -E '$down|has restarted' '$dir/banyand.log'"

since=$(lines)
before=$(rows)
monitor_path=/run/banyan/lab-$id/leaf0.sock.monitor monitor system_reset
if await 20 said 'switch leaf0 has restarted'; then pass "a reset is found by the boot nonce"; else fail "a reset" "$dir/banyand.log"; fi
if await 20 said 'is in generation'; then pass "the tables are loaded again"; else fail "tables after a reset" "$dir/banyand.log"; fi
goes_on "and the calls go on"

since=$(lines)
qemu_pid=$(spine_qemu)
run_pid=$(awk '/^PPid:/ { print $2 }' "/proc/$qemu_pid/status")
mapfile -d '' words <"/proc/$run_pid/cmdline"
kill -KILL "$qemu_pid"
if await 20 said 'switch spine0 is down' && await 20 said 'is in generation'; then pass "a QEMU that is killed is found and planned around"; else fail "QEMU killed" "$dir/banyand.log"; fi
goes_on "and the calls go on"
while kill -0 "$run_pid" 2>/dev/null; do sleep 0.05; done # it undoes its bridges
since=$(lines)
ip netns exec "lab-$id-spine0" "${words[@]}" >>"$dir/spine0.log" 2>&1 &
children+=("$!")
disown
if await 30 said 'switch spine0 has restarted'; then pass "started anew, it is found by its boot nonce"; else fail "QEMU anew" "$dir/banyand.log" "$dir/spine0.log"; fi
spine_has_table() { "$banyan" show "unix:/run/banyan/lab-$id/spine0.sock" 2>/dev/null | grep -q 'entry job 1'; }
if await 20 said 'is in generation' && await 10 spine_has_table; then pass "and its tables are loaded again"; else fail "tables after QEMU" "$dir/banyand.log"; fi
goes_on "and the calls go on"
check "$(rows) sizes, and no wrong element" test "$(wrong_rows)" -eq 0
for rank in "${ranks[@]}"; do end_tree KILL "$rank"; done
end_tree TERM "$controller"
finish
