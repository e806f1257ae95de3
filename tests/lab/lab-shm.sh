#!/usr/bin/env bash
# Hosts that share memory with their switches (--transport shm): all collectives, with and without
# buffers that switches read in place, two levels with a wire between the switches, relays, faults,
# two jobs, and the message if there is no switch.
#   lab-shm.sh [BUILD]     Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-shm "${1:-build/release}"
need_root
make_topologies
lab_right "star4: all collectives in shared memory" star4 --transport shm --bytes 1M --iters 2
BANYAN_ARENA=0 lab_right "star4: buffers that switches do not see are copied" star4 --transport shm --bytes 1M --iters 1
most=1.25 lab_right "leafspine: hosts in memory, switches on wires" leafspine --transport shm --mtu 1500 --bytes 256K --iters 1
most=1.25 lab_right "relay-spine: packets of others are passed on" relay-spine --transport shm --mtu 1500 --bytes 256K --iters 1
most=3 lab_right "packets lost, doubled and overtaken" star4 --transport shm --bytes 256K --iters 1 --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
most=1.25 lab_right "two jobs on the same cables" star4 --transport shm --jobs 2 --collective allreduce,broadcast --bytes 256K --iters 2
lab_right "mode exact, f16" star4 --transport shm --collective allreduce --mode exact --dtype f16 --bytes 256K --iters 1
refused "hosts without a switch have nobody to share with" 2 "joined without a switch" \
    "$banyan" lab run "$dir/ring4.json" --transport shm --bytes 4K
refused "a switch that dies is named" 3 "switch0" \
    "$banyan" lab run "$dir/star4.json" --transport shm --collective allreduce --bytes 64M --iters 1000 --kill switch0@1 --timeout $((2 + slow))
finish
