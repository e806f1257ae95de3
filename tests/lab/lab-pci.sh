#!/usr/bin/env bash
# banyan-switchd with poll-mode drivers of NICs: in a virtual machine behind vfio, on emulated NICs,
# as the switch of lab fabrics. For each NIC: the six collectives with 0 wrong elements and the
# predicted bytes, jumbo frames, two workers with RSS, faults, and no chunk refused because a driver
# releases packets late.
#   lab-pci.sh [BUILD]      Needs root (77 without). NICS="e1000e vmxnet3" tests only these; RUNS=20
#                           repeats the first run of each. ARCH=arm64 tests the cross-compiled
#                           switch of boards/arm64-dpdk. Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-pci "${1:-build/release}"
need_root
arch=${ARCH:-amd64}
out=$(realpath "$build/..")
export BANYAN_VM=$out/vm-$arch BANYAN_VM_PROGRAM=$build/bin/banyan-switchd BANYAN_VM_ROOT=/
# A QEMU of qemu.sh emulates igb, which Debian 12's does not.
qemu=qemu-system-x86_64
[ ! -x "$out/qemu/$qemu" ] || export BANYAN_VM_QEMU=$out/qemu/$qemu
qemu=${BANYAN_VM_QEMU:-$qemu}
if [ "$arch" = arm64 ]; then
    qemu=qemu-system-aarch64
    BANYAN_VM_PROGRAM=$out/boards/arm64-dpdk/banyan-switchd
    BANYAN_VM_ROOT=$out/sysroot/dpdk-arm64
fi
[ -r "$BANYAN_VM/initrd" ] || { echo "lab-pci: $BANYAN_VM is missing: make lab-pci, or lab-arm64" >&2; exit 1; }
make_topologies
"$banyan" topo star --hosts 2 >"$dir/star2.json"
switch=$(pwd)/tests/lab/vm/switch

# counter NAME: the sum of a counter over the switches in the last report.
counter() {
    COUNTER=$1 perl -MJSON::PP -0777 -ne '
        my $switches = decode_json($_)->{switches};
        my $sum = 0;
        $sum += $_->{$ENV{COUNTER}} // 0 for values %$switches;
        print "$sum\n"' "$dir/report.json"
}
# unplugged: a run during which the cable of the first port is out for a second.
unplugged() {
    local lab monitor_path status
    rm -f "$dir/run.out" # of the run before
    "$banyan" lab run "$dir/star2.json" --switch "switch0=$switch" -c allreduce --bytes 256K --iters 300 >"$dir/run.out" 2>&1 &
    lab=$!
    children+=("$lab")
    monitor_path=/run/banyan/lab-$lab/switch0.sock.monitor
    # On a busy machine the emulated one takes minutes to boot.
    until grep -q '^# banyan-perf' "$dir/run.out" || ! runs "$lab"; do sleep 0.1; done
    sleep 1
    "$banyan" show "unix:${monitor_path%.monitor}" --timeout 60 --ports >"$dir/ports.out" 2>&1
    monitor set_link n0 off && "$banyan" show "unix:${monitor_path%.monitor}" --timeout 60 --ports >"$dir/ports-down.out" 2>&1
    monitor set_link n0 on || echo "the cable was not unplugged" >>"$dir/run.out"
    wait "$lab"
    status=$?
    cat "$dir/run.out"
    [ $status -eq 0 ] && grep -q '^# 0 wrong elements' "$dir/run.out" && ! grep -q "not unplugged" "$dir/run.out" &&
        grep -q '^# counted.*above 1: sent again' "$dir/run.out"
}
# described: what `banyan show --ports` printed before and while the cable was out.
described() {
    cat "$dir/ports.out" "$dir/ports-down.out"
    [ "$(grep -c '^  port .*: net_.*, link up, .*queues in 1\( x [1-9][0-9]*\)\?, out 1.*results by reference except payloads that cross two hugepages.*released late.*tx MULTI_SEGS' "$dir/ports.out")" -eq 2 ] &&
        [ "$(grep -c '^  port .*, link down' "$dir/ports-down.out")" -eq 1 ]
}
for nic in ${NICS:-virtio-net-pci e1000e vmxnet3 igb}; do
    export BANYAN_VM_NIC=$nic
    if ! "$qemu" -device help 2>/dev/null | grep -q "^name \"$nic\""; then
        echo "  note: this QEMU does not emulate $nic"
        continue
    fi
    for ((run = 0; run < ${RUNS:-1}; run++)); do
        least=0.95 most=1.05 lab_right "$nic: six collectives" star2 --switch "switch0=$switch" --bytes 256K --iters 2 --report "$dir/report.json" || continue
        awk -v nic="$nic" '$1 == "allreduce" { printf "         %s: an allreduce of 256 KiB took %.1f ms\n", nic, $7 / 1000 }' "$dir/run.out"
        check "$nic: no chunk was refused" test "$(counter drop_busy)" -eq 0
        check "$nic: results are sent by reference" test "$(counter shell_tx_shared)" -gt 0
    done
    case $nic in
    virtio-net-pci | igb) # those whose RSS looks at UDP ports in QEMU
        if BANYAN_VM_QUEUES=2 most=1.5 lab_right "$nic: two workers, each with queues" star2 --switch "switch0=$switch" --cores 2 \
            --transport dpdk -c allreduce --bytes 256K --iters 2 --report "$dir/report.json"; then
            check "$nic: RSS delivers frames to their workers" test "$((100 * $(counter shell_handed)))" -lt "$(counter rx)"
        fi
        ;;
    esac
    most=1.2 lab_right "$nic: jumbo frames" star4 --switch "switch0=$switch" --mtu 9000 -c allreduce --bytes 1M --iters 1
    check "$nic: a cable that is out for a second" unplugged
    check "$nic: the switch describes its ports" described
    most=3 lab_right "$nic: loss, duplication and reordering" leafspine --switch "leaf0=$switch" --bytes 128K --iters 1 --loss 0.01 --dup 0.01 --reorder 0.01
done
finish
