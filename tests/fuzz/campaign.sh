#!/usr/bin/env bash
# The fuzz targets that packets and control messages go through, for some seconds each, and what they were given, counted: [SEED=N] campaign.sh FOLDER SECONDS
# Targets that take packets run three times: without keys, with tags over headers, over payloads. Address and undefined behaviour sanitizers, leaks.
# Starts from tests/fuzz/corpus, and works in a temporary copy. Exit 1 when a target fails, with the command that replays it.
set -u
folder=$1
seconds=$2
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
rows=()
for cover in 0 1 2; do
    for name in engine endpoint cluster; do rows+=("$name $cover"); done
done
for name in wire member agent message; do rows+=("$name 0"); done

# One target: a line "NAME COVER INPUTS COUNTED EDGES", or what went wrong.
one() {
    local name=$1 cover=$2 log=$work/$1.$2.log corpus=$work/$1.$2 status=0
    mkdir -p "$corpus"
    FUZZ_COVER=$cover ASAN_OPTIONS=detect_leaks=1 "$folder/fuzz-$name" -max_total_time="$seconds" -max_len=4096 -timeout=20 \
        -rss_limit_mb=3000 -print_final_stats=1 -seed=$((${SEED:-20261121} + cover)) -artifact_prefix="$folder/crash-fuzz-$name-$cover-" \
        "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null || status=$?
    if [ $status -ne 0 ]; then
        printf '  FAIL   %s\n%s\n  replay: FUZZ_COVER=%s %s\n' "$name" "$(tail -40 "$log")" "$cover" \
            "$folder/fuzz-$name $(find "$folder" -maxdepth 1 -name "crash-fuzz-$name-$cover-*" | head -n 1)"
        return 1
    fi
    echo "$name $cover $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") $(sed -n 's/^counted: //p' "$log") $(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" >>"$work/table"
}

status=0
running=0
for row in "${rows[@]}"; do
    if [ $running -ge "${FUZZ_JOBS:-$(nproc)}" ]; then
        wait -n || status=1
        running=$((running - 1))
    fi
    # shellcheck disable=SC2086
    one $row &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || status=1
    running=$((running - 1))
done
sort "$work/table" | awk -v seconds="$seconds" '
    BEGIN {
        split("no keys,tags over headers,tags over payloads", cover, ",")
        printf "%-10s %-20s %12s %14s %8s\n", "target", "", "inputs", "given", "edges"
    }
    {
        printf "%-10s %-20s %12d %14d %8d\n", $1, $1 ~ /engine|endpoint|cluster/ ? cover[$2 + 1] : "", $3, $4, $5
        sum[$1 ~ /agent|message|member/ ? "control messages" : "packets"] += $4
    }
    END {for (kind in sum) printf "%.0f %s, %d seconds for each target\n", sum[kind], kind, seconds}'
exit $status
