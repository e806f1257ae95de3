#!/usr/bin/env bash
# Runs test programs one after another: run.sh FOLDER NAME...   Prints a line for each, the whole output of those that fail,
# and closes with `N passed, N failed`. Exit status 1 when one failed. TEST_TIMEOUT is the limit for each in seconds.
set -u
folder=$1
shift
passed=0
failed=0
limit=${TEST_TIMEOUT:-300}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for name in "$@"; do
    start=$(date +%s%N)
    status=0
    timeout --kill-after=5 "$limit" "$folder/$name" >"$log" 2>&1 </dev/null || status=$?
    spent=$((($(date +%s%N) - start) / 10000000))
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        printf '  PASS   %-40s %4d.%02d s\n' "$name" $((spent / 100)) $((spent % 100))
    else
        failed=$((failed + 1))
        case $status in
        124 | 137) why="no end within $limit s" ;;
        1[3-9][0-9]) why="signal $((status - 128))" ;;
        *) why="status $status" ;;
        esac
        printf '  FAIL   %s (%s)\n' "$name" "$why"
        cat "$log"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
