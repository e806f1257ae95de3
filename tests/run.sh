#!/usr/bin/env bash
# Runs test programs one after another: run.sh FOLDER NAME...   Prints a line for each, the whole output of those that fail,
# and closes with `N passed, N failed`. Exit status 1 when one failed.
set -u
folder=$1
shift
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in "$@"; do
    start=$(date +%s.%N)
    if timeout "${TEST_TIMEOUT:-300}" "$folder/$name" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf '  PASS   %-40s %6.2f s\n' "$name" "$(echo "$(date +%s.%N) - $start" | bc -l 2>/dev/null || echo 0)"
    else
        status=$?
        failed=$((failed + 1))
        printf '  FAIL   %s (status %d)\n' "$name" "$status"
        cat "$log"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
