#!/usr/bin/env bash
# Scenarios 0 to COUNT-1 of a seed, shared out among the processors: run.sh SIM COUNT SEED. Exit 1 when one failed.
set -u
sim=$1 count=$2 seed=$3
parts=$(nproc)
[ "$count" -ge "$parts" ] || parts=1
pids=()
trap '[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null' EXIT
for ((i = 0; i < parts; i++)); do
    first=$((count * i / parts))
    "$sim" --seed "$seed" --scenario $first --count $((count * (i + 1) / parts - first)) &
    pids+=($!)
done
status=0
while read -r failed scenario _; do
    [ "$failed" = '#' ] || "$sim" --seed "$failed" --scenario "$scenario" >/dev/null || { echo "replay: $sim --seed $failed --scenario $scenario --verbose"; status=1; }
done <"$(dirname "$0")/replays.txt"
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
pids=()
exit $status
