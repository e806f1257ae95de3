#!/usr/bin/env bash
# Runs test programs, one more at a time than there are processors, because some mostly wait. Prints
# a line for each at its end and the whole output of those that fail; the last line is `N passed, N
# failed`. Exit status 1: a test failed.
#   run.sh FOLDER NAME...
# Settings: TEST_REPEAT=1 is for debugging: a failed test runs once more, alone, to distinguish a
# fault from a busy machine. It still counts as failed, and a line `N repeated: NAME...` precedes
# the last line. TEST_TIMEOUT is the limit for each test in seconds, TEST_JOBS the number of
# concurrent tests.
# As root each test has its own network, so that tests on the loopback interface do not collide with
# each other or with another run on this machine; otherwise they run one after another.
set -u
folder=$1
shift
limit=${TEST_TIMEOUT:-300}
jobs=${TEST_JOBS:-$(($(nproc) + 1))}
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$logs"' EXIT
alone=()
if [ "$(id -u)" -eq 0 ] && unshare --net true 2>/dev/null; then
    # shellcheck disable=SC2016 # for the inner shell
    alone=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
else
    jobs=1
fi

# Runs one program; its result goes to stdout in one piece.
one() {
    local name=$1 start status=0 spent why
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "${alone[@]}" "$folder/$name" >"$logs/$name" 2>&1 </dev/null || status=$?
    spent=$((($(date +%s%N) - start) / 10000000))
    if [ $status -eq 0 ]; then
        printf '  PASS   %-40s %4d.%02d s\n' "$name" $((spent / 100)) $((spent % 100))
        return 0
    fi
    case $status in
    124 | 137) why="no end within $limit s" ;;
    1[3-9][0-9]) why="signal $((status - 128))" ;;
    *) why="status $status" ;;
    esac
    printf '  FAIL   %s (%s)\n%s\n' "$name" "$why" "$(cat "$logs/$name")"
    echo "$name" >>"$logs/failed"
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
    [ "$running" -lt "$jobs" ] || collect
    one "$name" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do collect; done
if [ -n "${TEST_REPEAT:-}" ] && [ -e "$logs/failed" ]; then
    mapfile -t again <"$logs/failed"
    for name in "${again[@]}"; do
        one "$name" && echo "note: $name passed at its repeat; it counts as failed"
    done
    echo "${#again[@]} repeated: ${again[*]}"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
