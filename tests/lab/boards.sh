#!/usr/bin/env bash
# Boards: a new folder is a new board (docs/porting.md), for Linux and for bare metal. An image that
# exceeds its limits does not build. The cross-built arm64 switch starts under user emulation and
# loads a table.
#   boards.sh [BUILD]     BUILD: folder of a complete build (default build/release). Exit 0: all
#                         passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh boards "${1:-build/release}"
out=$(realpath "$build/..")
pid=0
cleanup_more() {
    [ "$pid" -eq 0 ] || kill -KILL "$pid" 2>/dev/null
    rm -rf "$out/boards/scratch" "$out/boards/scratch-metal"
}
# A copy of the tree with two more boards. It shares this build's objects, in which sources have the
# same relative names.
mkdir "$dir/tree"
git ls-files -z | xargs -0 cp -p --parents -t "$dir/tree"
in_copy() { make --no-print-directory -C "$dir/tree" O="$out" "$@"; }
mkdir "$dir/tree/boards/scratch"
sed 's/"lab-veth"/"scratch"/; s/"slots": [0-9]*/"slots": 96/' boards/lab-veth/board.json >"$dir/tree/boards/scratch/board.json"
cp boards/lab-veth/board.mk "$dir/tree/boards/scratch/"
check "a Linux board is added by a folder" in_copy firmware BOARD=scratch
refused "the switch made for it knows it, and all others" 2 "available: arm64-dpdk, lab-veth, scratch, x86-dpdk, xdp-host" \
    "$out/boards/scratch/banyan-switchd" --name t --board nope --vdev net_ring0 --control "unix:$dir/x.sock"
cp -r boards/qemu-virt-arm64 "$dir/tree/boards/scratch-metal"
sed -i 's/"qemu-virt-arm64"/"scratch-metal"/' "$dir/tree/boards/scratch-metal/"board.{c,json}
sed -i 's/"code_bytes_max": [0-9]*/"code_bytes_max": 100000/' "$dir/tree/boards/scratch-metal/board.json"
refused "an image that outgrows its board does not build" 2 "allows 100000: make it smaller" in_copy firmware BOARD=scratch-metal
check "and leaves none behind" test ! -e "$out/boards/scratch-metal/banyan.elf"
sed -i 's/"ports": [0-9]*/"ports": -4/' "$dir/tree/boards/scratch-metal/board.json"
refused "a bare-metal board with fewer than no ports" 2 'board.json: "ports": give a whole number above 0' in_copy firmware BOARD=scratch-metal
cp boards/qemu-virt-arm64/board.json "$dir/tree/boards/scratch-metal/board.json"
sed -i 's/"qemu-virt-arm64"/"scratch-metal"/; s/"code_bytes_max": [0-9]*/"code_bytes_max": 300000/; s/"slots": [0-9]*/"slots": 96/' \
    "$dir/tree/boards/scratch-metal/board.json"
check "a bare-metal board is added by a folder" in_copy firmware BOARD=scratch-metal
qemu-system-aarch64 -M virt -cpu cortex-a53 -m 256 -nodefaults -nographic -global virtio-mmio.force-legacy=false -serial stdio \
    -kernel "$out/boards/scratch-metal/banyan.elf" -netdev "dgram,id=n0,local.type=unix,local.path=$dir/s0,remote.type=unix,remote.path=$dir/h0" \
    -device virtio-net-device,netdev=n0 -chardev "socket,id=control,path=$dir/m.sock,server=on,wait=off" -device virtio-serial-device,max_ports=2 \
    -device virtserialport,chardev=control </dev/null >"$dir/log" 2>&1 &
pid=$!
for ((i = 0; i < 1500; i++)); do grep -q ready "$dir/log" && break; sleep 0.02; done
check "and boots with its limits" grep -q 'ready, 1 ports, 96 slots of 1408 bytes, neon, board scratch-metal' "$dir/log"
kill "$pid"
wait "$pid" 2>/dev/null
pid=0

# ---- arm64 under user emulation -----------------------------------------------------------------------------------------------
"$out/boards/arm64-dpdk/run" --name arm --no-huge --slots 256 --vdev net_ring0 --vdev net_ring1 --control "unix:$dir/arm.sock" >"$dir/arm.out" 2>&1 &
pid=$!
for ((i = 0; i < 3000; i++)); do grep -q ready "$dir/arm.out" && break; kill -0 "$pid" 2>/dev/null || break; sleep 0.02; done
check "the arm64 switch starts" grep -qx "banyan-switchd: arm: ready, 2 ports, control unix:$dir/arm.sock" "$dir/arm.out"
"$build/tools/switch-probe" image "$dir/two" 2 1 16 1408 1500
check "and takes a table" "$build/tools/switch-probe" push "unix:$dir/arm.sock" "$dir/two"
kill "$pid"
wait "$pid"
check "and ends when it is told to" test $? -eq 0
pid=0
finish
