#!/usr/bin/env bash
# Runs the lab's scripts one after another, since each wants the machine for itself: all.sh BUILD NAME...   One that cannot run here (not root)
# says so and counts as nothing. One that fails is run once more, in case the machine had to serve others: what failed first is said in a note
# and stays in the log. Closes with `N passed, N failed, N repeated` over all scripts. Exit 1 when one failed, twice.
set -u
build=$1
shift
status=0
passed=0
failed=0
repeated=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# once NAME: its output goes on as it comes, its own total indented. Sets $result, $good and $bad.
once() {
    "$(dirname "$0")/$1.sh" "$build" 2>&1 | sed -uE 's/^([0-9]+ passed, [0-9]+ failed)$/  \1/' | tee "$log"
    result=${PIPESTATUS[0]}
    read -r good bad < <(sed -nE 's/^  ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1)
    good=${good:-0} bad=${bad:-0}
    case $result in
    0 | 77) ;;
    *) [ "$bad" -gt 0 ] || bad=1 ;;
    esac
}

for name in "$@"; do
    echo "$name"
    once "$name"
    if [ "$bad" -gt 0 ] && [ -z "${LAB_ONCE:-}" ]; then
        first=$(grep -E '^ *FAIL' "$log" | head -n 3 | tr '\n' ';')
        echo "note: $name is run again after: $first"
        repeated=$((repeated + 1))
        once "$name"
        [ "$bad" -gt 0 ] || echo "note: $name passed the second time"
    fi
    case $result in
    0) ;;
    77) echo "note: $name needs root and was skipped; the runs in one process need none" ;;
    *) status=1 ;;
    esac
    passed=$((passed + good))
    failed=$((failed + bad))
done
echo "$passed passed, $failed failed, $repeated repeated"
exit $status
