#!/usr/bin/env bash
# Two concurrent jobs on the same switches, both right; and two concurrent labs on one machine.
#   lab-jobs.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-jobs "${1:-build/release}"
need_root
make_topologies
most=1.5 lab_right "two jobs at once on a star" star4 --jobs 2 --bytes 1M --iters 2
most=1.5 lab_right "two jobs at once on a leaf-spine" leafspine --jobs 2 --bytes 1M --iters 2
most=3 lab_right "two jobs at once under faults" leafspine --jobs 2 --bytes 256K --iters 1 --loss 0.01 --dup 0.01 --reorder 0.01 --seed 3 \
    --timeout 30
"$banyan" lab run "$dir/star4.json" --bytes 1M --iters 2 -c allreduce,barrier >"$dir/a.out" 2>&1 &
a=$!
"$banyan" lab run "$dir/star4.json" --bytes 1M --iters 2 -c allreduce,barrier >"$dir/b.out" 2>&1 &
b=$!
children=("$a" "$b")
if wait $a && wait $b; then pass "two labs at once on one machine"; else fail "two labs at once on one machine" "$dir/a.out" "$dir/b.out"; fi
finish
