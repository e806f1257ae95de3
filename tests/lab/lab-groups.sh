#!/usr/bin/env bash
# Communicators of some ranks of another one, with libbanyan alone: rows, columns, copies, reversed
# order, several ranks on a host; 64 at once, the refusal at the
# limit, and 100 made and freed; a rank that is killed in a call of one. banyand gets all slots back.
#   lab-groups.sh [BUILD]   Needs root (77 without). Exit 0: all passed. SECONDS_OF_LOOP=N runs the
#   loop for N seconds (default 8).
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-groups "${1:-build/release}"
need_root
make_topologies
groups=$build/tools/lab-groups
cleanup_more() { down_of "$dir/up.out"; }

# all_right WHAT HOSTS OPTIONS... -- PROGRAM...: passes if each of the processes prints "right".
all_right() {
    local what=$1 count=$2
    shift 2
    if attended "$banyan" lab run "$@" >"$dir/run.out" 2>&1 && [ "$(grep -c ': right$' "$dir/run.out")" -eq "$count" ] &&
        ! grep -q WRONG "$dir/run.out"; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
}
# hosts of the fabric after the colon
for topology in star4:4 leafspine:4 twobox:8 star8:8; do
    all_right "communicators of every shape on ${topology%:*}" "${topology#*:}" "$dir/${topology%:*}.json" --controller -- "$groups" shapes
done
all_right "communicators of every shape, two ranks on each host, a loss of 1 %" 8 "$dir/star4.json" --controller --ranks-per-host 2 --loss 0.01 --timeout 20 -- "$groups" shapes
BANYAN_FALLBACK=circulant all_right "all-to-all, scatter and gather of every shape, two ranks on each host" 8 "$dir/star4.json" --controller --ranks-per-host 2 -- "$groups" shapes

# A lab that stays: what banyand holds before and after.
if ! "$banyan" lab up "$dir/star4.json" --controller --timeout $((3 + slow)) >"$dir/up.out" 2>&1; then
    fail "a lab with a controller is up" "$dir/up.out"
    finish
fi
lab=$(id_of "$dir/up.out")
before=$(held)
# ranks WHAT...: runs the program on all hosts; its output is in $dir/rank*.out. Returns the number
# of ranks that failed.
ranks() {
    local i status=0 pids=()
    for i in 0 1 2 3; do
        # shellcheck disable=SC2046
        $(host_line "host$i" | sed 's/ env / env BANYAN_TIMEOUT='$((3 + slow))' /') "$groups" "$@" >"$dir/rank$i.out" 2>&1 &
        pids+=($!)
    done
    children=("${pids[@]}")
    for i in "${pids[@]}"; do wait "$i" || status=$((status + 1)); done 2>/dev/null # the shell reports killed ones
    children=()
    return $status
}
[ -n "$before" ] && pass "banyand reports what the job holds: $before" || fail "banyand reports what the job holds"
if ranks loop "${SECONDS_OF_LOOP:-8}"; then
    pass "communicators made and freed in a loop: $(grep made "$dir/rank0.out")"
else
    fail "communicators made and freed in a loop" "$dir"/rank*.out
fi
returned "no slot is lost"
if ranks many 64 && grep -q 'rank 3: 64 communicators at once' "$dir/rank3.out"; then
    pass "64 communicators at once"
else
    fail "64 communicators at once" "$dir"/rank*.out
fi
returned "their slots return"
if ranks many 65 && [ "$(grep -h refused "$dir"/rank*.out | sed 's/^rank [0-9]*: //' | sort -u | wc -l)" -eq 1 ] &&
    [ "$(grep -lc 'the limit of banyand' "$dir"/rank*.out | wc -l)" -eq 4 ]; then
    pass "one more is refused, alike on all ranks: $(grep -h -o 'refused: .*' "$dir/rank0.out")"
else
    fail "one more is refused, alike on all ranks" "$dir"/rank*.out
fi
returned "and the slots return"
ranks kill
if [ $? -eq 2 ] && [ "$(grep -l 'rank 0: an error after [0-9.]* s: .*host1\|rank 2: an error after [0-9.]* s: .*host3' "$dir"/rank*.out | wc -l)" -eq 2 ] &&
    in_time "$(sed -n 's/.*an error after \([0-9.]*\) s: .*/\1/p' "$dir"/rank*.out | sort -n | tail -1)" $((2 + slow)); then
    pass "a rank that is killed in a call is named: $(grep -h -o 'an error after.*' "$dir/rank0.out")"
else
    fail "a rank that is killed in a call is named" "$dir"/rank*.out
fi
returned "the slots of both pairs return"
# A program that ends without freeing its communicators.
if ranks leave; then pass "a program ends with communicators"; else fail "a program ends with communicators" "$dir"/rank*.out; fi
returned "their slots return as well"
"$banyan" lab down "$lab" >/dev/null 2>&1

finish
