#!/usr/bin/env bash
# Runs the checks of `make lint` one after another. Prints a line for each and the findings of those
# that fail; the last line is `N passed, N failed`. Each check is a make target, so that it can be
# run alone.
#   lint.sh MAKE CHECK...
set -u
make=$1
shift
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
jobs=${LINT_JOBS:-$(nproc)}
for check in "$@"; do
    start=$(date +%s%N)
    if $make --no-print-directory -j"$jobs" LINT_JOBS="$jobs" "$check" >"$log" 2>&1; then
        passed=$((passed + 1))
        verdict=PASS
    else
        failed=$((failed + 1))
        verdict=FAIL
    fi
    spent=$((($(date +%s%N) - start) / 10000000))
    printf '  %s   %-16s %4d.%02d s  %s\n' $verdict "$check" $((spent / 100)) $((spent % 100)) \
        "$(grep -E '^[0-9]+ .*checked' "$log" | tail -1)"
    [ $verdict = PASS ] || grep -vE '^  (CC|AR|LD|PROTO|BPF)  ' "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
