#!/usr/bin/env bash
# Runs fuzz targets, as many at a time as there are processors: run.sh FOLDER SECONDS NAME...   Each starts from its corpus in tests/fuzz/corpus/ and works in a
# temporary copy of it. A crash leaves its input in FOLDER/crash-NAME-... and prints the command that replays it.
# Closes with `N passed, N failed`.
set -u
folder=$1
seconds=$2
shift 2
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT

# One target: its verdict goes to stdout in one piece.
one() {
    local name=$1 log=$work/$1.log corpus=tests/fuzz/corpus/${1#fuzz-} dictionary=() status=0 runs edges artifact
    mkdir -p "$work/$name"
    [ -e "$corpus.dict" ] && dictionary=("-dict=$corpus.dict")
    "$folder/$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="$folder/crash-$name-" "${dictionary[@]}" "$work/$name" "$corpus" >"$log" 2>&1 </dev/null || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    if [ $status -eq 0 ]; then
        printf '  PASS   %-16s %9s inputs, %5s edges in %s s\n' "$name" "${runs:-?}" "${edges:-?}" "$seconds"
        return 0
    fi
    artifact=$(find "$folder" -maxdepth 1 -name "crash-$name-*" -newer "$work/$name" -printf '%p\n' | head -1)
    printf '  FAIL   %s\n%s\n  replay: %s\n' "$name" "$(tail -60 "$log")" "$folder/$name ${artifact:-INPUT}"
    return 1
}

passed=0
failed=0
running=0
collect() { # one that ends
    if wait -n; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    running=$((running - 1))
}
for name in "$@"; do
    [ "$running" -lt "${FUZZ_JOBS:-$(nproc)}" ] || collect
    one "$name" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do collect; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
