#!/usr/bin/env bash
# Every fabric of the lab on real switches: all collectives at full size, without faults and with
# injected faults. On the star an allreduce sends each host's data up once and down once, so its
# cable carries at most 8% more than the data.
#   lab-topologies.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
# Settings: BYTES=16M ITERS=1 SEED=7.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-topologies "${1:-build/release}"
need_root
make_topologies
bytes=${BYTES:-16M} iters=${ITERS:-1} seed=${SEED:-7}
for topology in $all_topologies; do
    most=1.25 lab_right "$topology: all collectives, $bytes" "$topology" --bytes "$bytes" --iters "$iters" --warmup 0
    most=3 lab_right "$topology: the same with 1% loss, duplication and reordering, seed $seed" "$topology" --bytes "$bytes" \
        --iters "$iters" --warmup 0 --loss 0.01 --dup 0.01 --reorder 0.01 --seed "$seed" --timeout 30
done
# One size, one collective: (bytes on the cable) / (operations x data). The operations are out of
# place, in place, and the checked one: 2 x 2 + 1.
for topology in star4 star8; do
    lab_right "$topology: allreduce alone, $bytes" "$topology" --collective allreduce --bytes "$bytes" --iters 2 --warmup 0 || continue
    check "$topology: each cable carries the data once each way, headers at most 8%" awk '
        $1 == "allreduce" { data = 5 * $2 }
        $2 == "-" && $3 ~ /^switch/ {
            print $1, $4 / data, $7 / data
            cables++
            if ($4 > 1.08 * data || $7 > 1.08 * data || $4 < data || $7 < data) bad = 1
        }
        END { exit !(cables > 0 && !bad) }' "$dir/run.out"
done
finish
