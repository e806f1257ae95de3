#!/usr/bin/env bash
# A short run of the lab: real switches on a star and a leaf-spine, all collectives, with and
# without injected faults; the same in one process.
#   lab-smoke.sh [BUILD]     BUILD: folder with bin/ (default build/release). Without root only the
#                            runs in one process. Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-smoke "${1:-build/release}"
make_topologies
for topology in $all_topologies one-way; do
    lab_right "$topology in one process: all collectives right" "$topology" --in-process --bytes 1M --iters 1
done
most=3 lab_right "leafspine in one process with loss, duplication and reordering" leafspine --in-process --bytes 1M --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
if [ "$(id -u)" -eq 0 ]; then
    lab_right "star4 on real switches: all collectives right" star4 --bytes 1M --iters 1
    most=3 lab_right "leafspine on real switches with loss, duplication and reordering" leafspine --bytes 256K --iters 1 \
        --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
else
    echo "note: not root: no run on real switches"
fi
finish
