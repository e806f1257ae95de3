#!/usr/bin/env bash
# Links that carry GSO batches whole (--driver gso): hosts over UDP and over AF_XDP, sizes with
# short last segments, jumbo frames, all kinds of fabric, faults. The same with links that cut the
# batches (--segments cut), where the kernel copies results for several children; and a host that
# sends batches to receivers that do not accept them.
#   lab-gso.sh [BUILD]     Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-gso "${1:-build/release}"
need_root
make_topologies
for topology in $all_topologies one-way; do
    most=1.25 lab_right "$topology: all collectives in trains" "$topology" --transport udp --bytes 256K --iters 1
done
lab_right "segments of other sizes than the last: 100004 bytes of i8" star4 --transport udp --bytes 100004 --dtype i8 --iters 2
lab_right "trains of jumbo frames" star4 --transport udp --mtu 9000 --bytes 1M --iters 1
lab_right "hosts on AF_XDP, switches on trains" star4 --transport afxdp --driver gso --bytes 256K --iters 1
most=3 lab_right "trains under loss, duplication and reordering" leafspine --transport udp --bytes 256K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
for topology in $all_topologies one-way; do
    most=1.25 lab_right "$topology: all collectives, trains cut before the links and frames out of rings" "$topology" --transport udp --segments cut \
        --bytes 256K --iters 1
done
lab_right "segments of other sizes than the last, cut" star4 --transport udp --segments cut --bytes 100004 --dtype i8 --iters 2
lab_right "jumbo frames out of rings" star4 --transport udp --segments cut --mtu 9000 --bytes 1M --iters 1
lab_right "hosts on AF_XDP, switches on rings" star4 --transport afxdp --driver ring --bytes 256K --iters 1
most=3 lab_right "rings under loss, duplication and reordering" leafspine --transport udp --segments cut --bytes 256K --iters 1 \
    --loss 0.01 --dup 0.01 --reorder 0.01 --seed 7
# ---- copies that the kernel makes at the ports' exits ----
# counted NAME: some switch of the last run has counted this, and no switch has lost a copy.
counted() { grep -Eq "\"shell_$1\": [1-9]" "$dir/report.json" && ! grep -Eq '"shell_kernel_lost": [1-9]' "$dir/report.json"; }
cut=(--transport udp --segments cut --bytes 128K --iters 1 --report "$dir/report.json")
for topology in star4 star8; do
    for mtu in 1500 9000; do
        most=4 lab_right "$topology, MTU $mtu: copies under loss, duplication and reordering" "$topology" "${cut[@]}" --mtu $mtu --loss 0.01 --dup 0.01 \
            --reorder 0.01 --seed 5
        check "the kernel made them" counted kernel_replicated
        most=4 lab_right "$topology, MTU $mtu: the same of trains that cross links whole" "$topology" --transport udp --bytes 128K --iters 1 \
            --report "$dir/report.json" --mtu $mtu --loss 0.01 --dup 0.01 --reorder 0.01 --seed 5
        check "the kernel made them" counted kernel_replicated
    done
done
lab_right "a keyed job, whose results differ from child to child" star4 "${cut[@]}" --keyed
check "is sent to each by the switch" bash -c "! grep -Eq '\"shell_kernel_replicated\": [1-9]' '$dir/report.json' && grep -Eq '\"shell_tx_shared\": [1-9]' '$dir/report.json'"

# says WHAT OPTIONS TEXT: passes if a host prints this about its transport.
says() {
    local folder found=0
    # shellcheck disable=SC2086 # words
    "$banyan" lab run "$dir/star4.json" $2 --bytes 64K --iters 1 --keep >"$dir/run.out" 2>&1
    folder=$(sed -n 's/^# tables, logs and reports: //p' "$dir/run.out")
    grep -qs "transport udp: $3" "$folder"/*.log && found=1
    [ -z "$folder" ] || rm -rf "$folder"
    if [ -n "$folder" ] && [ $found -eq 1 ] && grep -q "0 wrong elements" "$dir/run.out"; then pass "$1"; else fail "$1" "$dir/run.out"; fi
}
says "hosts send GSO batches where the switches accept them" "--transport udp" "in GSO batches$"
says "and where they do not, such as the kernel cuts; then they receive from rings" "--transport udp --driver af_xdp" "in GSO batches, from a receive ring"
says "where links carry single frames auto selects rings" "" "in GSO batches, from a receive ring"
finish
