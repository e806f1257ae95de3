#!/usr/bin/env bash
# The NCCL plugin on hosts with real switches: a harness in NCCL's place runs messages and CollNet in
# every version of the interface; hosts that cannot agree, or have no table.
#   lab-nccl.sh BUILD
. "$(dirname "$0")/lab-common.sh" lab-nccl "$@"
need_root
rank=$build/tools/nccl-rank
"$banyan" topo star --hosts 4 >"$dir/fabric.json"

on_hosts() { # OPTION... -- PROGRAM...: output in $dir/run.out
    attended "$banyan" lab run "$dir/fabric.json" --limit 120 "$@" >"$dir/run.out" 2>&1
}
all_right() { # VERSION
    [ "$(grep -cE "^host[0-3]: version $1: a ring of messages, [0-9]{3} collective operations, 0 wrong" "$dir/run.out")" -eq 4 ]
}
for version in 8 9 10 11 12; do
    on_hosts -c allreduce,allgather,reduce-scatter -- "$rank" $version
    if all_right $version && grep -q '^host0: banyan: rank 0: CollNet used: 4 ranks, in the trees of the table' "$dir/run.out"; then
        pass "version $version: messages, and CollNet in the trees of four hosts"
    else
        fail "version $version: messages, and CollNet in the trees of four hosts" "$dir/run.out"
    fi
done
on_hosts -c allreduce -- "$rank" 12 100000 3
check "three communicators one after another" all_right 12
check "a second one beside each is declined" test \
    "$(grep -cE '^host0: .*CollNet not used: .*in use by another communicator' "$dir/run.out")" -eq 3
on_hosts -c allreduce -m det -- "$rank" 12
check "a table with trees for allreduce only: the rest runs between the hosts" all_right 12
on_hosts -c allreduce -- sh -c "[ \$RANK = 2 ] && export BANYAN_MODE=exact; exec $rank 12"
check "hosts with different modes agree not to use it" test \
    "$(grep -cE '^host[0-3]: .*CollNet not used: BANYAN_MODE is exact at rank 2 and fast at rank 0' "$dir/run.out")" -ge 4
on_hosts -c allreduce -- env BANYAN_OFFLOAD=off "$rank" 12
check "hosts without a table: not used, and why" test \
    "$(grep -cE '^host[0-3]: .*CollNet not used: rank 0 on .*: no trees for an allreduce' "$dir/run.out")" -ge 4
on_hosts -c allreduce -- sh -c "[ \$RANK = 1 ] && export BANYAN_TABLE=/nowhere; exec $rank 12"
check "one host without its table: no rank uses it" test \
    "$(grep -cE '^host[0-3]: .*CollNet not used: rank 1 on .*/nowhere' "$dir/run.out")" -ge 4
on_hosts -c allreduce --timeout $((2 + slow)) -- sh -c "[ \$RANK = 3 ] && export BANYAN_NCCL_COLLNET=on; exec $rank 12"
check "hosts with different settings agree not to use it" test \
    "$(grep -cE '^host[0-3]: .*CollNet not used: BANYAN_NCCL_COLLNET differs between rank 3' "$dir/run.out")" -ge 4
on_hosts -c allreduce --timeout $((2 + slow)) -- sh -c "[ \$RANK = 2 ] && export BANYAN_NCCL_RATE=10,30; exec $rank 12"
check "hosts that state different rates to the tuner agree not to use it" test \
    "$(grep -cE '^host[0-3]: .*CollNet not used: BANYAN_NCCL_RATE differs between rank 2' "$dir/run.out")" -ge 4
for seconds in 0 2; do # after which its window is full
    what="a host that vanishes $seconds s into a message is a remote error at both neighbours"
    on_hosts -c allreduce --timeout $((3 + slow)) -- "$rank" 12 0 0 "$seconds"
    if [ "$(grep -cE '^host[02]: rank [02]: a remote error after [0-9]+ s: ' "$dir/run.out")" -eq 2 ]; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
    check "within its timeout of 3 s, and 6 s" in_time "$(sed -nE 's/^host[02]: rank [02]: a remote error after ([0-9]+) s: .*/\1/p' "$dir/run.out" | sort -n | tail -1)" $((8 + seconds + slow))
done
finish
