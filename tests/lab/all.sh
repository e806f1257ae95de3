#!/usr/bin/env bash
# Runs the scripts of the lab one after another, because each needs the whole machine.
#   all.sh BUILD NAME...
# A script that cannot run here (not root) prints this and is not counted. TEST_REPEAT=1 is for
# debugging: a failed script runs once more and still counts as failed; a line `N repeated: NAME...`
# precedes the last line. The last line is `N passed, N failed` over all scripts. Exit 1: a script
# failed.
set -u
build=$1
shift
status=0
passed=0
failed=0
repeated=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# once NAME: prints the script's output while it runs, with its total indented. Sets $result, $good
# and $bad.
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
    begin=$SECONDS
    once "$name"
    echo "  TIME   $name $((SECONDS - begin)) s"
    case $result in
    0 | 77) ;;
    *) status=1 ;;
    esac
    [ "$result" -ne 77 ] || echo "note: $name needs root and was skipped; the runs in one process need none"
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" -gt 0 ] && [ -n "${TEST_REPEAT:-}" ]; then
        repeated+=("$name")
        once "$name"
        [ "$bad" -gt 0 ] || echo "note: $name passed at its repeat; it counts as failed"
    fi
done
[ ${#repeated[@]} -eq 0 ] || echo "${#repeated[@]} repeated: ${repeated[*]}"
echo "$passed passed, $failed failed"
exit $status
