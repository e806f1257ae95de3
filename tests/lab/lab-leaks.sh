#!/usr/bin/env bash
# Communicators are made and freed repeatedly. Nothing of them may remain in the processes (memory,
# files) or on the switch (slots, waiting chunks, memory, files).
#   lab-leaks.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
# Settings: ROUNDS=N, communicators of each rank (default 40); VALGRIND=1 runs under valgrind where
# possible.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-leaks "${1:-build/release}"
need_root
# shellcheck disable=SC2317
cleanup_more() { down_of "$dir/up.out"; }
rounds=${ROUNDS:-40}
# malloc's caches of each thread would count as allocated.
export BANYAN_LOG=0 BANYAN_LINGER=20 GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0
valgrind=()
if [ "${VALGRIND:-0}" = 1 ]; then
    command -v valgrind >/dev/null || { echo "lab-leaks: valgrind is missing: apt-get install valgrind" >&2; exit 77; }
    valgrind=(valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible
        --error-exitcode=9 --child-silent-after-fork=yes)
    export BANYAN_TIMEOUT=60
fi
run() { # run WHAT COMMAND...
    local what=$1
    shift
    if attended "$@" >"$dir/run.out" 2>&1; then pass "$what: $(tail -n 1 "$dir/run.out")"; else fail "$what" "$dir/run.out"; fi
}
program=$build/tools/communicators

run "between hosts, tcp${valgrind:+, under valgrind}" env BANYAN_OFFLOAD=off "${valgrind[@]}" "$program" "$rounds" tcp 4

"$banyan" topo star --hosts 4 >"$dir/star.json"
"$banyan" lab up "$dir/star.json" >"$dir/up.out" 2>&1 || { fail "lab up" "$dir/up.out"; finish; }
id=$(id_of "$dir/up.out")
folder=/run/banyan/lab-$id
# The state of a switch: its entries with their slots, its files, and its memory in KiB.
slots() { "$banyan" show "unix:$folder/switch0.sock" | grep -E '^  entry' | sed 's/generation [0-9]*//'; }
files() { find "/proc/$(switch_pid "$id" switch0)/fd" -mindepth 1 2>/dev/null | wc -l; }
memory() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(switch_pid "$id" switch0)/status"; }
# with TRANSPORT: tests as many communicators over the switch.
with() {
    local before after
    local -a ranks=()
    for ((i = 0; i < 4; i++)); do ranks+=("lab-$id-host$i=$folder/host$i.table"); done
    run "warm-up, $1" "$program" 8 "$1" "'$banyan' push --renew '$folder' --sockets '$folder' >/dev/null" "${ranks[@]}"
    before="$(slots)"$'\n'"$(files) files" memory_before=$(memory)
    run "over a switch, $1${2:+, under valgrind}" ${2:+"${valgrind[@]}"} "$program" "$rounds" "$1" \
        "'$banyan' push --renew '$folder' --sockets '$folder' >/dev/null" "${ranks[@]}"
    for ((i = 0; i < 300; i++)); do # the switch closes the connection of the last push in its next turn
        after="$(slots)"$'\n'"$(files) files"
        [ "$before" != "$after" ] || break
        sleep 0.1
    done
    if [ "$before" = "$after" ] && [ -n "$(slots)" ]; then
        pass "$1: the switch has the same slots and files as before: $(echo "$after" | grep -o 'slots [0-9+]*' | tr '\n' ' ')$(echo "$after" | tail -n 1)"
    else
        printf '%s\n-- after --\n%s\n' "$before" "$after" >"$dir/slots.out"
        fail "$1: slots and files of the switch" "$dir/slots.out"
    fi
    if "$banyan" show --waiting "unix:$folder/switch0.sock" | tee "$dir/waiting.out" | grep -qi 'waits for'; then
        fail "$1: chunks that wait on the switch" "$dir/waiting.out"
    else
        pass "$1: no chunk waits on the switch"
    fi
    if [ "$(memory)" -le $((memory_before + 512)) ]; then
        pass "$1: the switch's memory: $memory_before KiB, then $(memory)"
    else
        fail "$1: the switch's memory has grown from $memory_before to $(memory) KiB"
    fi
}
with udp ${valgrind:+valgrind}
with afxdp
finish
