#!/usr/bin/env bash
# Runs fuzz targets one after another: run.sh FOLDER SECONDS NAME...   Each starts from its corpus in tests/fuzz/corpus/ and works in a
# temporary copy of it. A crash leaves its input in FOLDER/crash-NAME-... and prints the command that replays it.
# Closes with `N passed, N failed`.
set -u
folder=$1
seconds=$2
shift 2
passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "$@"; do
    log=$work/$name.log
    mkdir -p "$work/$name"
    corpus=tests/fuzz/corpus/${name#fuzz-}
    dictionary=()
    [ -e "$corpus.dict" ] && dictionary=("-dict=$corpus.dict")
    status=0
    "$folder/$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="$folder/crash-$name-" "${dictionary[@]}" "$work/$name" "$corpus" >"$log" 2>&1 </dev/null || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        printf '  PASS   %-16s %9s inputs, %5s edges in %s s\n' "$name" "${runs:-?}" "${edges:-?}" "$seconds"
    else
        failed=$((failed + 1))
        printf '  FAIL   %s\n' "$name"
        tail -60 "$log"
        artifact=$(find "$folder" -maxdepth 1 -name "crash-$name-*" -newer "$work" -printf '%p\n' | head -1)
        echo "  replay: $folder/$name ${artifact:-INPUT}"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
