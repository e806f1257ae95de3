#!/usr/bin/env bash
# Switches with several workers each: all collectives on a star and a leaf-spine with two and four
# workers, more than this machine may have cores, also under injected faults.
#   lab-workers.sh [BUILD]     BUILD: folder with bin/ (default build/release). Needs root. Exit 0:
#                              all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-workers "${1:-build/release}"
make_topologies
for workers in 2 4; do
    most=3 lab_right "star4 with $workers workers: all collectives right" star4 --cores $workers --bytes 256K --iters 2
    most=3 lab_right "leafspine with $workers workers and faults" leafspine --cores $workers --bytes 64K --iters 1 \
        --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
done

# Sums go up through one switch and results down through another: pairs of trees with one root.
cat >"$dir/updown.json" <<'JSON'
{"name": "updown", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "h2", "kind": "compute"},
           {"name": "up", "kind": "switch", "multicast": false, "aggregate": true},
           {"name": "down", "kind": "switch", "multicast": true, "aggregate": false},
           {"name": "root", "kind": "switch", "multicast": true, "aggregate": true}],
 "links": [{"between": ["h0", "up"], "bandwidth": 10}, {"between": ["h1", "up"], "bandwidth": 10}, {"between": ["h2", "up"], "bandwidth": 10},
           {"between": ["h0", "down"], "bandwidth": 10}, {"between": ["h1", "down"], "bandwidth": 10}, {"between": ["h2", "down"], "bandwidth": 10},
           {"between": ["up", "root"], "bandwidth": 10}, {"between": ["down", "root"], "bandwidth": 10}]}
JSON
least=0.6 most=3 lab_right "pairs of trees with four workers and faults" updown --cores 4 -c allreduce --bytes 64K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
finish
