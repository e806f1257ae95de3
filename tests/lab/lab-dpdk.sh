#!/usr/bin/env bash
# Hosts over ports of DPDK (BANYAN_TRANSPORT=dpdk): all collectives are right, with and without
# faults, over each driver of an interface, and over virtual devices that a setting names. What cannot
# be opened is refused with the object and the remedy.
#   lab-dpdk.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-dpdk "${1:-build/release}"
need_root
make_topologies
"$banyan" topo star --hosts 2 >"$dir/star2.json"
# with SETTING=VALUE... COMMAND...: runs a function with these settings.
with() {
    local status names=()
    while [[ $1 == *=* ]]; do
        export "${1?}"
        names+=("${1%%=*}")
        shift
    done
    "$@"
    status=$?
    unset "${names[@]}"
    return $status
}
# Hosts poll on few cores here. A host that runs late costs retransmissions, which are many for the few
# packets of these calls.
most=2
lab_right "star4: six collectives" star4 --transport dpdk --bytes 256K --iters 1
check "the hosts used that transport" grep -q "transport dpdk" "$dir/run.out"
lab_right "jumbo frames" star4 --transport dpdk --mtu 9000 --bytes 256K --iters 1
for driver in af_xdp ring gso; do
    BANYAN_DPDK_DRIVER=$driver lab_right "driver $driver" star2 --transport dpdk --bytes 128K --iters 1
done
with 'BANYAN_DPDK_PORTS=net_af_packet77,iface=eth0,qpairs=1,blocksz=65536,framesz=2048,framecnt=1024' \
    lab_right "a virtual device with its arguments" star2 --transport dpdk --bytes 128K --iters 1
most=3 lab_right "leafspine with loss, duplication and reordering" leafspine --transport dpdk --bytes 128K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
lab_right "two jobs on the same interfaces" star2 --transport dpdk --jobs 2 -c allreduce --bytes 128K --iters 1

lab_refused() { # lab_refused WHAT TEXT SETTING=VALUE... OPTIONS...
    local what=$1 text=$2 settings=()
    shift 2
    while [[ ${1:-} == *=* ]]; do settings+=("$1"); shift; done
    refused "$what" 3 "$text" env "${settings[@]}" timeout 60 "$banyan" lab run "$dir/star2.json" --transport dpdk -c barrier --iters 1 "$@"
}
lab_refused "an interface that does not exist" "transport dpdk: eth7: no such interface; available: " BANYAN_DPDK_PORTS=eth7
lab_refused "more devices than ports" "more devices than the table has ports: 1 (eth0)" "BANYAN_DPDK_PORTS=eth0;eth1"
lab_refused "frames larger than the driver carries" "MTU 9000 does not fit a frame of AF_XDP (at most 3400): use BANYAN_DPDK_DRIVER=af_packet" BANYAN_DPDK_DRIVER=af_xdp --mtu 9000
lab_refused "a plugin that is missing" "/nowhere/plugin.so: cannot open shared object file" BANYAN_DPDK_LIBRARY=/nowhere/plugin.so
refused "a transport that does not exist" 2 "it must be auto, afxdp, udp, dpdk or shm" "$banyan" lab run "$dir/star2.json" --transport dpdq
refused "the same, of a host" 2 "set BANYAN_TRANSPORT to auto, afxdp, udp, dpdk or shm" "$build/bin/banyan-perf" --transport dpdq --table /dev/null
check "no file of DPDK is left" bash -c '! ls -d /var/run/dpdk/banyan.host*'
finish
