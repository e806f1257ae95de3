#!/usr/bin/env bash
# Runs scripts of the lab, one more at a time than there are processors, because most of them mostly
# wait.
#   all.sh BUILD NAME... [-- NAME...]      those behind -- run one after another, at the end, because
#                                          they change what the machine has once, such as hugepages
# Of several scripts each runs in namespaces of its own (processes, network, mounts) with folders of
# its own for labs, and its output is printed at its end. LAB_JOBS is the number of concurrent scripts.
# A script that cannot run here (not root) prints this and is not counted. TEST_REPEAT=1 is for
# debugging: a failed script runs once more, alone, and still counts as failed; a line
# `N repeated: NAME...` precedes the last line. The last line is `N passed, N failed` over all
# scripts. Exit 1: a script failed.
set -u
[ $# -gt 1 ] || { echo "usage: all.sh BUILD NAME... [-- NAME...]" >&2; exit 2; }
build=$1
shift
folder=$(dirname "$0")
jobs=${LAB_JOBS:-$(($(nproc) + 1))}
status=0
passed=0
failed=0
repeated=()
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' INT TERM HUP

# shellcheck disable=SC2016 # for the inner shell
own=(unshare --mount --pid --net --fork --kill-child=TERM --mount-proc sh -c '
    mount --make-rprivate / && ip link set lo up && mkdir -p /run/netns /run/banyan /run/dpdk || exit 1
    for folder in /run/netns /run/banyan /run/dpdk /dev/shm; do mount -t tmpfs none $folder || exit 1; done
    exec "$@"' sh)

# once LOG NAME [COMMAND...]: runs the script, under the command. Its output, with its total indented,
# goes to LOG and to standard output, its status and time to LOG.end.
once() {
    local log=$1 name=$2 begin=$SECONDS
    shift 2
    echo "$name"
    "$@" "$folder/$name.sh" "$build" 2>&1 </dev/null | sed -uE 's/^([0-9]+ passed, [0-9]+ failed)$/  \1/' | tee "$log"
    echo "${PIPESTATUS[0]} $((SECONDS - begin))" >"$log.end"
}

# count LOG NAME: sets $good and $bad.
count() {
    local result seconds
    read -r result seconds <"$1.end"
    echo "  TIME   $2 $seconds s"
    read -r good bad < <(sed -nE 's/^  ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$1" | tail -n 1)
    good=${good:-0} bad=${bad:-0}
    case $result in
    0) ;;
    77) echo "note: $2 needs root and was skipped; the runs in one process need none" ;;
    *) [ "$bad" -gt 0 ] || bad=1 ;;
    esac
}

# ended LOG NAME: adds the results of a script.
ended() {
    count "$@"
    passed=$((passed + good))
    failed=$((failed + bad))
    [ "$bad" -gt 0 ] || return 0
    status=1
    [ -z "${TEST_REPEAT:-}" ] || repeated+=("$2")
}

together=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    together+=("$1")
    shift
done
[ $# -eq 0 ] || shift
if [ ${#together[@]} -lt 2 ] || [ "$jobs" -lt 2 ] || ! "${own[@]}" true 2>/dev/null; then
    set -- "${together[@]}" "$@"
    together=()
fi
declare -A names=() logs=() # of the scripts that run, by process
collect() {                 # one that ends
    local pid
    wait -n -p pid "${!names[@]}"
    cat "${logs[$pid]}.out"
    ended "${logs[$pid]}" "${names[$pid]}"
    unset "names[$pid]" "logs[$pid]"
}
number=0
for name in "${together[@]}"; do
    [ ${#names[@]} -lt "$jobs" ] || collect
    log=$scratch/$((number += 1))
    once "$log" "$name" "${own[@]}" >"$log.out" &
    names[$!]=$name logs[$!]=$log
done
while [ ${#names[@]} -gt 0 ]; do collect; done
for name in "$@"; do
    once "$scratch/alone" "$name"
    ended "$scratch/alone" "$name"
done
if [ ${#repeated[@]} -gt 0 ]; then
    for name in "${repeated[@]}"; do
        once "$scratch/alone" "$name"
        count "$scratch/alone" "$name"
        [ "$bad" -gt 0 ] || echo "note: $name passed at its repeat; it counts as failed"
    done
    echo "${#repeated[@]} repeated: ${repeated[*]}"
fi
echo "$passed passed, $failed failed"
exit $status
