#!/usr/bin/env bash
# Runs the lab's scripts one after another, since each wants the machine for itself: all.sh BUILD NAME...   Each closes with its own
# `N passed, N failed`; one that cannot run here (not root) says so and counts as nothing. Exit 1 when one failed.
set -u
build=$1
shift
status=0
for name in "$@"; do
    echo "$name"
    result=0
    "$(dirname "$0")/$name.sh" "$build" || result=$?
    case $result in
    0) ;;
    77) echo "note: $name needs root and was skipped; the runs in one process need none" ;;
    *) status=1 ;;
    esac
done
exit $status
