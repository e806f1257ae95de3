#!/usr/bin/env bash
# banyan top on a lab: what it shows of switches that it queries itself and of a controller, missing
# ranks, a switch that dies, and the terminal, which it takes over and restores.
#   lab-top.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-top "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; down_of "$dir/controlled.out"; }
make_topologies

# shown WHAT TEXT OPTIONS...: passes if one frame contains TEXT.
shown() {
    local what=$1 text=$2
    shift 2
    if "$banyan" top --once "$@" >"$dir/top.out" 2>&1 && grep -qE -- "$text" "$dir/top.out"; then
        pass "$what"
    else
        fail "$what" "$dir/top.out"
    fi
}

if "$banyan" lab up "$dir/star4.json" >"$dir/up.out" 2>&1; then
    id=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$id
    direct=(--sockets "$folder" --topology "$dir/star4.json")
    shown "switches are asked directly" '^ 1 of 1 switch up, 4 ports, 0 down, 1 job$' "${direct[@]}"
    check "without colours where there is no terminal" bash -c "! grep -q $'\033' '$dir/top.out'"
    # Three of four ranks: their contributions wait for the fourth.
    for i in 0 1 2; do
        host=$(host_line "host$i")
        # shellcheck disable=SC2086
        BANYAN_TIMEOUT=30 ${host% COMMAND} "$build/bin/banyan-perf" -c allreduce -b 64K -e 64K -n 1 -w 0 >/dev/null 2>&1 &
        children+=($!)
    done
    for ((i = 0; i < 20; i++)); do
        "$banyan" top --once "${direct[@]}" >"$dir/top.out" 2>&1
        ! grep -q ' host3 at switch0 (tree' "$dir/top.out" || break
    done
    check "the rank that is missing is named" grep -qE ' host3 at switch0 \(tree [0-9]+, chunk 0\)' "$dir/top.out"
    top_json() { "$banyan" top --json --sockets "$folder" >"$dir/top.json" && is_json <"$dir/top.json" && grep -q '"missing": "node 3"' "$dir/top.json"; }
    check "in JSON, and by its number without a topology" top_json
    for child in "${children[@]}"; do end_tree TERM "$child"; done
    wait "${children[@]}" 2>/dev/null
    children=()
    # A terminal: the alternate screen, a frame, and the normal screen again.
    live() {
        (sleep 1.5; printf q) | timeout 20 script -qec "$banyan top ${direct[*]}" /dev/null >"$dir/live.out" || return 1
        grep -q $'\033\\[?1049h' "$dir/live.out" && grep -q $'\033\\[?1049l' "$dir/live.out" &&
            [ "$(grep -o 'banyan top  star' "$dir/live.out" | wc -l)" -ge 2 ]
    }
    check "live on a terminal, until q" live
    kill -KILL "$(switch_pid "$id" switch0)"
    shown "a switch that dies is down" '^ switch0 down ' "${direct[@]}"
    down_of "$dir/up.out"
    rm -f "$dir/up.out"
else
    fail "lab up" "$dir/up.out"
fi
refused "no controller: 3" 3 "check that banyand runs" "$banyan" top --once --controller http://127.0.0.1:1
refused "a folder without sockets: 2" 2 "no *.sock" "$banyan" top --sockets "$dir"

if "$banyan" lab up "$dir/leafspine.json" --controller >"$dir/controlled.out" 2>&1; then
    url=$(sed -n 's/.*--controller \(unix:[^ ]*\).*/\1/p' "$dir/controlled.out")
    shown "a controller is asked" 'banyand [0-9.]+  [0-9:]+$' --controller "$url"
    check "it tells jobs" grep -qE '^ +1 .* running ' "$dir/top.out"
    check "and links by the names of both ends" grep -qE '^ leaf0 +spine0 +\[' "$dir/top.out"
    check "doctor finds nothing wrong with it" "$banyan" doctor --controller "$url"
    kill -KILL "$(switch_pid "$(id_of "$dir/controlled.out")" spine0)"
    shown "a switch that it has lost is down" '^ spine0 down ' --controller "$url"
    refused "doctor finds it: 1" 1 "spine0: is down, as the controller reports" "$banyan" doctor --controller "$url"
else
    fail "lab up --controller" "$dir/controlled.out"
fi
finish
