#!/usr/bin/env bash
# The backend "banyan" of torch.distributed with Debian's PyTorch: its collectives on four hosts and
# real switches, groups of some ranks, a missing rank, wrong use, training that repeats to the bit,
# and some of PyTorch's own tests of a backend between hosts. SUITE=all runs all of those that are
# installed, under Gloo as well, and compares (half an hour).
#   lab-torch.sh BUILD
. "$(dirname "$0")/lab-common.sh" lab-torch "$@"
need_root
python="/usr/bin/python3 -W ignore"
export PYTHONPATH=$build/lib/banyan/torch PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
[ -e "$build/lib/banyan/torch/banyan_torch/_C.so" ] || { echo "lab-torch: skipped: the backend is not built: make torch" >&2; exit 77; }
"$banyan" topo star --hosts 4 >"$dir/fabric.json"

on_hosts() { # SECONDS OPTION... -- PROGRAM...: output in $dir/run.out
    local limit=$1
    shift
    attended "$banyan" lab run "$dir/fabric.json" --limit "$limit" "$@" >"$dir/run.out" 2>&1
}
collectives() { # NAME ARGUMENT...
    local name=$1
    shift
    # shellcheck disable=SC2086 # words are wanted
    on_hosts 300 ${controller:-} -- $python tests/torch/test_backend.py "$@"
    read -r good bad < <(sed -nE 's/^host0: ([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' "$dir/run.out")
    if [ "${bad:-1}" -eq 0 ] && [ "$(grep -cE "^host[0-3]: $good passed, 0 failed over banyan" "$dir/run.out")" -eq 4 ]; then
        passed=$((passed + good - 1))
        pass "$name on four hosts ($good groups of checks)"
    else
        fail "$name on four hosts" "$dir/run.out"
    fi
}
collectives "every collective, operator and type"
BANYAN_FALLBACK=circulant collectives "gather, scatter and all-to-all of every type" --exchanges
controller=--controller BANYAN_FALLBACK=circulant collectives "groups of some ranks" --groups
# shellcheck disable=SC2086
on_hosts 120 --controller -- $python tests/torch/test_backend.py --beside
check "groups of some ranks beside another backend" test "$(grep -c 'groups beside another backend are over banyan' "$dir/run.out")" -eq 4
# shellcheck disable=SC2086
on_hosts 120 --timeout $((2 + slow)) -c allreduce -- $python tests/torch/test_backend.py --again
check "a missing rank is named" test "$(grep -c 'the missing rank is named' "$dir/run.out")" -eq 3

# shellcheck disable=SC2086
attended $python tests/torch/test_misuse.py >"$dir/misuse.out" 2>&1
read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$dir/misuse.out")
if [ "${bad:-1}" -eq 0 ] && [ "${good:-0}" -gt 0 ]; then
    passed=$((passed + good - 1))
    pass "wrong use is an error or a warning with the remedy ($good cases)"
else
    fail "wrong use is an error or a warning with the remedy" "$dir/misuse.out"
fi

train() { # MODE: prints the hashes of the losses and the weights
    # shellcheck disable=SC2086
    on_hosts 300 -c allreduce,broadcast -m "$1" -- $python host-driver/examples/train/train.py --model convolutions --steps 6 --rows 4 &&
        sed -nE 's/^host0: .*curve ([0-9a-f]+), weights ([0-9a-f]+),.*/\1 \2/p' "$dir/run.out"
}
for mode in det exact; do
    first=$(train $mode)
    cp "$dir/run.out" "$dir/first.out"
    second=$(train $mode)
    if [ -n "$first" ] && [ "$first" = "$second" ]; then
        pass "training in mode $mode repeats to the bit"
    else
        fail "training in mode $mode repeats to the bit" "$dir/first.out" "$dir/run.out"
    fi
done

suite() { # BACKEND [ARGUMENT...]
    local backend=$1
    shift
    # shellcheck disable=SC2086
    BACKEND=$backend $python tests/torch/suite.py -v "$@" >"$dir/suite.$backend" 2>&1
    sed -nE 's/^Ran ([0-9]+) tests? in.*/\1/p' "$dir/suite.$backend"
}
failures() { sed -nE 's/^(ERROR|FAIL): (test_[a-zA-Z0-9_]+).*/\2/p' "$dir/suite.$1" | sort -u; }
if [ "${SUITE:-}" = all ]; then
    ran=$(suite banyan)
    suite gloo >/dev/null
    comm -23 <(failures banyan) <(failures gloo) >"$dir/more"
    check "PyTorch's own tests: of $ran none fails that passes under Gloo" test "${ran:-0}" -gt 200 -a ! -s "$dir/more"
    cat "$dir/more"
else
    ran=$(suite banyan -k test_all_reduce_sum_async -k test_all_gather_into_stack -k test_all_gather_object_default -k test_reduce_scatter_v \
        -k test_all_reduce_coalesced_max_complex -k test_barrier_full_group -k test_gather_checks -k test_all_to_all_single_equal_split \
        -k test_reduce_max -k test_broadcast_full_group)
    if [ "${ran:-0}" -ge 8 ] && [ -z "$(failures banyan)" ] && grep -qE '^OK' "$dir/suite.banyan"; then
        pass "$ran of PyTorch's own tests of a backend"
    else
        grep -v '^INFO' "$dir/suite.banyan" | tail -n 40
        fail "some of PyTorch's own tests of a backend (${ran:-none} ran)"
    fi
fi
finish
