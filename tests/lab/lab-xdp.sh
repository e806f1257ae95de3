#!/usr/bin/env bash
# The driver xdp: the kernel replicates and relays as the tables specify; every element is right,
# also under loss, and counters show the kernel's part. The programs are removed when the switch
# ends, however it ends. The switch reports what the driver does not support.
#   lab-xdp.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-xdp "${1:-build/release}"
need_root
make_topologies
ns=byxdp$$
switch=0
switchd=$build/bin/banyan-switchd
cleanup_more() {
    [ "$switch" -eq 0 ] || kill -KILL "$switch" 2>/dev/null
    ip netns del "$ns" 2>/dev/null
}
# counted NAME: some switch of the last run has counted this, and no switch has lost a copy.
counted() { grep -Eq "\"shell_$1\": [1-9]" "$dir/report.json" && ! grep -Eq '"shell_kernel_lost": [1-9]' "$dir/report.json"; }
small=(--driver xdp --transport afxdp --bytes 128K --iters 1 --report "$dir/report.json")

lab_right "star4: all collectives" star4 "${small[@]}"
check "results were replicated in the kernel" counted kernel_replicated
lab_right "a spine that only relays" relay-spine "${small[@]}"
check "it did so in the kernel" counted kernel_relayed
check "and its switch has seen none of it" bash -c "! grep -Eq '\"shell_tx_relayed\": [1-9]' '$dir/report.json'"
lab_right "hosts over UDP" leafspine "${small[@]}" --transport udp
check "the kernel did both" bash -c "grep -Eq '\"shell_kernel_replicated\": [1-9]' '$dir/report.json' && grep -Eq '\"shell_kernel_relayed\": [1-9]' '$dir/report.json'"
lab_right "a keyed job, whose results differ from child to child" relay-spine "${small[@]}" --keyed
check "is relayed in the kernel, and replicated by the switches" bash -c "grep -Eq '\"shell_kernel_relayed\": [1-9]' '$dir/report.json' && ! grep -Eq '\"shell_kernel_replicated\": [1-9]' '$dir/report.json'"
lab_right "frames of 3,000 bytes" star4 "${small[@]}" --mtu 3000
most=3
lab_right "two jobs, and losses, doubles and frames out of order" leafspine "${small[@]}" --transport udp --jobs 2 --loss 0.01 --dup 0.01 --reorder 0.01 --seed 9
check "replicated in the kernel" counted kernel_replicated
check "and relayed by the switches, which inject the faults" bash -c "grep -Eq '\"shell_tx_relayed\": [1-9]' '$dir/report.json' && ! counted kernel_relayed"

# ---- a switch by hand ----
ip netns add "$ns"
ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
for i in 0 1; do ip -n "$ns" link add "p$i" type veth peer name "h$i" && ip -n "$ns" link set "h$i" up; done
ip -n "$ns" link add jumbo mtu 9000 type veth peer name jumbo-peer
ip -n "$ns" link add plain type bridge
start() { # start ARGUMENTS...
    local i
    rm -f "$dir/switch.out"
    ip netns exec "$ns" "$switchd" --name switch0 --no-huge --control "unix:$dir/c.sock" "$@" >"$dir/switch.out" 2>"$dir/switch.err" &
    switch=$!
    for ((i = 0; i < 300; i++)); do
        grep -q ready "$dir/switch.out" 2>/dev/null && return 0
        kill -0 "$switch" 2>/dev/null || break
        sleep 0.05
    done
    return 1
}
end() { # end SIGNAL
    [ "$switch" -ne 0 ] || return 0
    kill -"$1" "$switch"
    { wait "$switch"; } 2>/dev/null
    switch=0
}
programs() { ip -n "$ns" link show | grep -c 'prog/xdp'; }
has_programs() { [ "$(programs)" -eq "$1" ] || { echo "$(programs) interfaces have a program, $1 should"; ip -n "$ns" link show; return 1; }; }
refused_switch() { # refused_switch WHAT STATUS TEXT ARGUMENTS...
    local what=$1 status=$2 text=$3
    shift 3
    refused "$what" "$status" "$text" timeout 20 ip netns exec "$ns" "$switchd" --name t --no-huge --control "unix:$dir/t.sock" "$@"
}
start --board xdp-host --iface p0 --iface p1 || cat "$dir/switch.err"
check "the board xdp-host has that driver" has_programs 2
check "banyan show has its counters" bash -c "'$banyan' show 'unix:$dir/c.sock' --counters --json | grep -q shell_kernel_replicated"
check "nothing of it is seen among the interfaces" bash -c "[ \"\$(ip -n '$ns' -o link show | wc -l)\" -eq 8 ]"
refused_switch "an interface that has a switch" 3 "another process has its AF_XDP socket" --driver xdp --iface p0
end TERM
check "its programs go with it" has_programs 0
start --driver xdp --iface p0 --iface p1 || cat "$dir/switch.err"
end KILL
check "also when it is killed" has_programs 0
start --driver xdp --iface p0 --iface p1 || cat "$dir/switch.err"
check "and the next one starts" grep -q ready "$dir/switch.out"
end TERM
refused_switch "an interface whose driver takes no program" 3 "its driver does not accept an XDP program" --driver xdp --iface plain
refused_switch "frames larger than a page" 2 "MTU 9000 does not fit a frame of AF_XDP" --driver xdp --iface jumbo
refused "a process that may open packet sockets, but load no program" 3 "give the program CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_SYS_ADMIN" \
    timeout 20 ip netns exec "$ns" setpriv --bounding-set=-all,+net_raw,+net_admin,+ipc_lock,+dac_override \
    "$switchd" --name t --no-huge --control "unix:$dir/t.sock" --driver xdp --iface p0
refused_switch "a driver that is none" 2 "it must be auto, ring, af_packet, af_xdp, xdp or gso" --driver best --iface p0
sed 's/"driver": "xdp"/"driver": "warp"/' boards/xdp-host/board.json >"$dir/board.json"
refused_switch "a board with a driver that is none" 2 "driver warp: no such driver" --board "$dir/board.json" --iface p0
finish
