#!/usr/bin/env bash
# Runs collectives on fabrics of every kind in the lab, and wants every element right: lab.sh BIN smoke|full [NAME...]. Without root or
# namespaces it says so and runs in one process. Prints a line for each run, the whole output of those that fail, and closes
# with `N passed, N failed`. `full` is what a release must show: 16 MiB, all six collectives, with and without faults.
set -u
bin=$1
size=$2
shift 2
passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mode=()
if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2>/dev/null; then
    mode=(--in-process)
    echo "note: namespaces need root here; these runs are in one process over memory"
fi
if [ "$size" = full ]; then
    data=(--bytes 16M --iters 1)
    faulty=(--bytes 16M --iters 1 --loss 0.01 --dup 0.01 --reorder 0.01)
else
    data=(--bytes 1M --iters 1)
    faulty=(--bytes 256K --iters 1 --loss 0.01 --dup 0.01 --reorder 0.01)
fi
seed=${SEED:-1}

# run NAME "topology command" LAB-OPTIONS...
wanted=("$@")
run() {
    local name=$1 preset=$2 start status=0 log=$work/log
    shift 2
    if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
    start=$(date +%s%N)
    # shellcheck disable=SC2086 # the preset's options are words
    "$bin/banyan" topo $preset >"$work/$name.json" 2>"$log" || status=$?
    if [ $status -eq 0 ]; then
        timeout --kill-after=10 600 "$bin/banyan" lab run "$work/$name.json" --collective all "$@" "${mode[@]}" >"$log" 2>&1 </dev/null || status=$?
    fi
    grep -q '# 0 wrong elements' "$log" || [ $status -ne 0 ] || status=1
    local spent=$((($(date +%s%N) - start) / 10000000))
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        printf '  PASS   %-28s %4d.%02d s  %s\n' "$name" $((spent / 100)) $((spent % 100)) "$(sed -n 's/^# \(counted.*\)/\1/p' "$log" | tail -1)"
    else
        failed=$((failed + 1))
        printf '  FAIL   %s (status %d): banyan topo %s; banyan lab run --collective all %s\n' "$name" $status "$preset" "$*"
        cat "$log"
    fi
}

leafspine="leafspine --leaves 2 --spines 1 --hosts 2"
run leafspine "$leafspine" "${data[@]}"
run leafspine-faults "$leafspine" "${faulty[@]}" --seed "$seed"
run ring-4 "ring --hosts 4" "${data[@]}"
if [ "$size" = full ]; then
    run star-4 "star --hosts 4" "${data[@]}"
    run star-8 "star --hosts 8" "${data[@]}"
    run two-box "twobox" "${data[@]}"
    run plain-spine "$leafspine --capable leaf" "${data[@]}"
    run two-jobs "$leafspine" "${data[@]}" --jobs 2
    run star-4-faults "star --hosts 4" "${faulty[@]}" --seed "$seed"
    run star-8-faults "star --hosts 8" "${faulty[@]}" --seed "$seed"
    run two-box-faults "twobox" "${faulty[@]}" --seed "$seed"
    run ring-4-faults "ring --hosts 4" "${faulty[@]}" --seed "$seed"
    run plain-spine-faults "$leafspine --capable leaf" "${faulty[@]}" --seed "$seed"
else
    run plain-spine "$leafspine --capable leaf" "${data[@]}"
    run two-jobs "$leafspine" --bytes 256K --iters 1 --jobs 2
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
