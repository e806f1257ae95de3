#!/usr/bin/env bash
# Any single fault in the middle of a run: a rank is stopped or killed, a switch is killed, a link goes down, a switch loses its table. Every
# other rank must end within BANYAN_TIMEOUT + 1 s of the fault, with an error that names the rank or the switch; the time of the slowest is
# printed. Over AF_XDP and UDP through a switch, and between hosts over TCP beside it.
#   lab-faults.sh [BUILD]   FAULTS=all: every fault on every transport, and on two levels of switches. Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-faults "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; outside_down; }
make_topologies

timeout=2
victim=host2
rank=2
hosts() { sed -n 's/^host  *\([^ ]*\) .*/\1/p' "$dir/up.out"; }

# start TRANSPORT HOST: allreduces without end; its output in $dir/HOST.out, its exit status and the time of its end in $dir/HOST.end.
start() {
    local -a words environment=(BANYAN_TIMEOUT="$timeout" BANYAN_LINGER=0 BANYAN_TRANSPORT="$1")
    read -ra words <<<"$(host_line "$2")"
    [ "$1" != tcp ] || environment=(BANYAN_TIMEOUT="$timeout" BANYAN_OFFLOAD=off BANYAN_FALLBACK="${schedule:-circulant}" RANK="${2#host}"
        WORLD_SIZE="$(hosts | wc -l)" MASTER_ADDR="$subnet.1" MASTER_PORT=$((29000 + $$ % 1000)))
    (
        "${words[@]}" env "${environment[@]}" "$build/bin/banyan-perf" -c allreduce -b 64K -n 1000000 >"$dir/$2.out" 2>&1
        echo "$? $(date +%s.%N)" >"$dir/$2.end"
    ) 2>/dev/null &
    children+=("$!")
    pids[$2]=$!
}
# under_way: until every rank has moved packets.
under_way() {
    local i
    for ((i = 0; i < 100; i++)); do
        sleep 0.1
        [ "$(cat "$dir"/host*.out 2>/dev/null | grep -c 'redop')" -eq 1 ] && break
    done
    sleep 0.5
}
# restart SWITCH WORD...: the same program, in the same namespace, without tables.
restart() {
    local switch=$1
    shift
    ip netns exec "lab-$id-$switch" "$@" >"$dir/$switch.log" 2>&1 &
    children+=("$!")
}

# signal NAME: to the victim, not to the shell that waits for it.
signal() {
    local child
    for child in $(cat "/proc/${pids[$victim]}/task/${pids[$victim]}/children" 2>/dev/null); do end_tree "$1" "$child"; done
}
# What happens to the fabric. Each sets $spared: the hosts whose end does not count.
hit() { # hit FAULT WHERE
    local pid
    local -a words
    spared=
    case $1 in
    stop) spared=$victim; signal STOP ;;
    kill) spared=$victim; signal KILL ;;
    link) ip -n "lab-$id-$victim" link set "$2" down ;;
    bridge) ip -n "$outside" link set br0 down ;;
    switch) kill -KILL "$(switch_pid "$id" "$2")" ;;
    table)
        pid=$(switch_pid "$id" "$2")
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        kill -KILL "$pid"
        while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
        restart "$2" "${words[@]}"
        ;;
    esac
}
heal() { # heal FAULT WHERE
    local -a words
    case $1 in
    link) ip -n "lab-$id-$victim" link set "$2" up ;;
    bridge) ip -n "$outside" link set br0 up ;;
    esac
}
# fault TRANSPORT FAULT WHERE TEXT [TEXT_OF_VICTIM]: one row of the matrix.
fault() {
    local transport=$1 what=$2 where=$3 text=$4 own=${5:-$4} host begin status end slowest bad wanted attempt
    # On a machine that does other things too a right answer may be late: once.
    for attempt in 1 2; do
        slowest=0 bad=0
        try "$@"
        if [ $bad -eq 0 ] && awk -v t="$slowest" -v limit=$timeout 'BEGIN { exit !(t <= limit + 1) }'; then
            pass "$(printf '%-9s %-6s %-8s %s s%s: %s' "$topology" "$transport" "$what" "$slowest" "$([ $attempt = 1 ] || echo ' (again)')" \
                "$(cat "$dir"/host*.out | grep -Eom1 "$text.{0,60}")")"
            return
        fi
        [ $bad -eq 0 ] && [ "$what" != switch ] || break
    done
    echo "(the slowest took $slowest s)" >>"$dir/host0.out"
    fail "$topology, $transport, $what $where" "$dir"/host*.out
}
# One attempt; sets $slowest and $bad.
try() {
    local -A pids=()
    rm -f "$dir"/host*.out "$dir"/host*.end
    [ "$transport" = tcp ] || "$banyan" push --renew "$folder" --sockets "$folder" >"$dir/renew.out" 2>&1 || { bad=1; mv "$dir/renew.out" "$dir/host.out"; return; }
    for host in $(hosts); do start "$transport" "$host"; done
    under_way
    begin=$(date +%s.%N)
    hit "$what" "$where"
    for host in $(hosts); do
        [ "$host" = "$spared" ] || wait "${pids[$host]}" 2>/dev/null
    done
    for host in $(hosts); do
        [ "$host" != "$spared" ] || continue
        read -r status end <"$dir/$host.end"
        wanted=$text
        [ "$host" != "$victim" ] || wanted=$own
        slowest=$(awk -v a="$slowest" -v b="$end" -v c="$begin" 'BEGIN { b -= c; printf "%.2f", (a > b ? a : b) }')
        [ "$status" -eq 3 ] && grep -Eq "$wanted" "$dir/$host.out" || { bad=1; echo "$host: exit status $status, wanted: $wanted" >>"$dir/$host.out"; }
    done
    [ -z "$spared" ] || { signal KILL; wait "${pids[$victim]}" 2>/dev/null; }
    heal "$what" "$where"
}

trees() { # trees TRANSPORT FAULT...
    local transport=$1
    shift
    for what in "$@"; do
        case $what in
        stop | kill) fault "$transport" "$what" $victim "$victim \(rank $rank\) has not contributed" ;;
        link) fault "$transport" link eth0 "$victim \(rank $rank\) has not contributed" "no answer from switch" ;;
        switch) fault "$transport" switch "$first_switch" "$first_switch" ;;
        table) fault "$transport" table "$first_switch" "$first_switch.*with this job.s tables" ;;
        esac
        [ "$what" != switch ] || replace
    done
}
# A new lab where a switch was lost.
replace() { down_of "$dir/up.out"; up; }
up() {
    children=()
    "$banyan" lab up "$dir/$topology.json" >"$dir/up.out" 2>&1 || { fail "$topology: lab up" "$dir/up.out"; finish; }
    id=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$id
    first_switch=$(sed -n 's/^switch  *\([^ ]*\) .*/\1/p' "$dir/up.out" | head -n 1)
}
between() { # between FAULT...
    outside_up "$id" "$(hosts | wc -l)" || { fail "a network beside the lab"; return; }
    sleep 1 # until the bridge forwards
    for what in "$@"; do
        case $what in
        stop) fault tcp stop $victim "rank $rank \([0-9.]*\) was silent" ;;
        kill) fault tcp kill $victim "rank $rank \([0-9.]*\) has closed its connections" ;;
        link) fault tcp link out0 "rank $rank \([0-9.]*\) was silent" "rank [0-9] \([0-9.]*\)" ;;
        bridge) fault tcp bridge br0 "rank [0-9] \([0-9.]*\) was silent" ;;
        esac
    done
    outside_down
}

topology=star4
up
if [ "${FAULTS:-}" = all ]; then
    for transport in afxdp udp; do trees $transport stop kill link table switch; done
    for schedule in circulant ring rhd; do between stop kill link bridge; done
    down_of "$dir/up.out"
    topology=leafspine
    up
    for transport in afxdp udp; do trees $transport stop kill link table switch; done
    down_of "$dir/up.out"
    topology=relay-spine # the spine is in no tree: it passes packets on
    up
    for transport in afxdp udp; do
        fault $transport switch spine0 "by way of spine0"
        replace
    done
else
    between stop link
    trees udp kill table
    trees afxdp stop link switch
fi
finish
