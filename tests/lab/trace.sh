#!/usr/bin/env bash
# The same bytes everywhere: traces of frames (tests/trace) run through the engine alone, the shell
# of banyan-switchd on DPDK's ports, the simulator, and the image without an operating system in
# QEMU. Their output is compared byte by byte, on each port.
#   trace.sh [BUILD]     BUILD: folder with bin/ and tools/ (default build/release); the image is in
#                        BUILD/../boards. Needs no root. Exit 0: all passed.
#                        TRACE_SEEDS: seeds of the traces (default "1 2 3").
#                        TRACE_FRAMES: frames in each (default 10000).
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh trace "${1:-build/release}"
# shellcheck source=tests/lab/metal-common.sh
. tests/lab/metal-common.sh
control=unix:$dir/c.sock
image_name=star
frames=${TRACE_FRAMES:-10000}

"$trace" image "$dir/trace.table"
for seed in ${TRACE_SEEDS:-1 2 3}; do
    boot 4 $(setting timeless 1)
    check "trace $seed: the image is ready" until_says ready
    check "trace $seed: its table is loaded" "$banyan" push "$dir/trace.table" --to "star=$control"
    check "trace $seed: the same bytes out of the engine alone, the DPDK shell, the simulator and the image" timeout 120 "$trace" "$seed" "$frames" "$dir"
    tail -n 2 "$dir/check.out" | sed 's/^/         /'
    halt
done
boot 4
check "an image with a clock is ready" until_says ready
check "its table is loaded" "$banyan" push "$dir/trace.table" --to "star=$control"
refused "it spaces repairs, and the trace shows it" 1 "the image does not send what the engine alone does" "$trace" 1 10000 "$dir"
halt
finish
