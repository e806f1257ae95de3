#!/usr/bin/env bash
# Modes on real switches, compared by the digest of all results. det gives the same bits in every
# run on the same tables, with packets lost, duplicated and reordered. exact gives the same bits on
# different fabrics and trees. fast does not, which shows that the data can tell the modes apart.
#   lab-modes.sh [BUILD]   Without root it runs in one process. Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-modes "${1:-build/release}"
make_topologies
where=()
if [ "$(id -u)" -ne 0 ]; then
    echo "note: not root: all in one process"
    where=(--in-process)
fi

# digest TOPOLOGY OPTIONS...: runs random data; every element must be right within its bound. Sets
# $digest.
digest() {
    local topology=$1
    shift
    digest=none
    most=4 lab_right "$topology $*" "$topology" "${where[@]}" -c allreduce,reduce,reduce-scatter --bytes 96K --iters 1 --warmup 0 \
        --data random "$@" || return
    digest=$(sed -n 's/^# Digest of the results: //p' "$dir/run.out")
    [ ${#digest} -eq 16 ] || fail "$topology $*: a digest" "$dir/run.out"
}
same() { # same WHAT A B
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" <(echo "$2 $3"); fi
}

for topology in star4 leafspine ring4; do
    digest $topology --mode det
    first=$digest
    for seed in 1 2; do
        digest $topology --mode det --loss 0.01 --dup 0.01 --reorder 0.05 --seed $seed
        same "$topology: det gives the same bits with faults, seed $seed" "$first" "$digest"
    done
done
for dtype in f32 f16 bf16 f64; do
    digest star4 --mode exact --dtype $dtype
    first=$digest
    for topology in leafspine ring4; do
        [ $topology = leafspine ] || [ $dtype = f32 ] || continue
        digest $topology --mode exact --dtype $dtype
        same "exact, $dtype: $topology gives the bits of star4" "$first" "$digest"
    done
done
digest leafspine --mode exact --loss 0.01 --dup 0.01 --reorder 0.05 --seed 3
first=$digest
digest star4 --mode exact
same "exact: leafspine with faults gives the bits of star4" "$first" "$digest"
digest star4 --mode fast
first=$digest
digest ring4 --mode fast
if [ "$first" != "$digest" ]; then pass "fast: ring4 gives other bits than star4"; else fail "fast: the data do not show the order" <(echo "$digest"); fi
refused "a product of floats has no mode exact" 2 "in mode exact" "$banyan" lab run "$dir/star4.json" --in-process -c allreduce --bytes 4K \
    --op prod --mode exact
refused "a mode that does not exist" 2 "it must be fast, det or exact" "$banyan" lab run "$dir/star4.json" --in-process --mode quick
finish
