#!/usr/bin/env bash
# The scripts of the lab remove what they made when a signal ends them early. Each runs in its own
# namespaces (mounts, processes), where everything left is visible: network namespaces, folders of
# labs and of DPDK, temporary files, processes.
#   lab-signals.sh [BUILD]   SECONDS_BEFORE="1 4": times of the signals. Needs root (77 without).
#                            Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-signals "${1:-build/release}"
need_root

# Runs SCRIPT in the new namespaces, ends it, and lists what is left; fails if that is not empty.
cat >"$dir/watch" <<'END'
#!/bin/bash
script=$1 build=$2 signal=$3 seconds=$4
mount --make-rprivate / && mkdir -p /run/netns /run/banyan /run/dpdk || exit 1
for folder in /run/netns /run/banyan /run/dpdk; do mount -t tmpfs none $folder || exit 1; done
export TMPDIR=/run/banyan/tmp
mkdir $TMPDIR
"$script" "$build" >/run/banyan/out 2>&1 &
pid=$!
sleep "$seconds"
kill -"$signal" $pid 2>/dev/null || { echo "the script has ended before"; tail -3 /run/banyan/out; }
for ((i = 0; i < 300; i++)); do
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -0 $pid 2>/dev/null && echo "it still runs 30 s after the signal" && exit 1
wait $pid
status=$?

left=$(ls -d /run/netns/* /run/banyan/lab-* /run/dpdk/* $TMPDIR/* 2>/dev/null; for p in /proc/[0-9]*; do
    [ "${p#/proc/}" -le 1 ] || [ "${p#/proc/}" -eq $$ ] || [ ! -r "$p/exe" ] || readlink "$p/exe" | grep banyan; done)
[ -z "$left" ] && exit 0
echo "status $status; left: $left"
exit 1
END
chmod +x "$dir/watch"
for script in lab-smoke lab-jobs lab-again lab-blame lab-kill lab-push lab-teardown lab-gso switchd; do
    for seconds in ${SECONDS_BEFORE:-1 4}; do
        check "$script.sh ended by SIGTERM after $seconds s leaves nothing" unshare --mount --pid --fork --mount-proc "$dir/watch" \
            "tests/lab/$script.sh" "$build" TERM "$seconds"
    done
done
finish
