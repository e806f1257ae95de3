#!/usr/bin/env bash
# Runs test programs, one more at a time than there are processors, since some mostly wait: run.sh FOLDER NAME...   Prints a line for each as it ends, the whole output of
# those that fail, and closes with `N passed, N failed, N repeated`. One that fails beside others is run once more, alone, and a note says so: some wait for
# patience of a second or two to end. Exit status 1 when one failed. TEST_TIMEOUT is the limit for each in seconds, TEST_JOBS how many run at a time. As root each has a network of its own, so that those that use the loopback interface do not meet each other, nor another
# run on this machine; without, they run one after another.
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

# One program: its verdict goes to stdout in one piece.
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
repeated=0
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
if [ "$jobs" -gt 1 ] && [ -e "$logs/failed" ]; then
    mapfile -t again <"$logs/failed"
    for name in "${again[@]}"; do
        repeated=$((repeated + 1))
        one "$name" || continue
        passed=$((passed + 1))
        failed=$((failed - 1))
        echo "note: $name failed beside other tests, and passed alone"
    done
fi
echo "$passed passed, $failed failed, $repeated repeated"
[ "$failed" -eq 0 ]
