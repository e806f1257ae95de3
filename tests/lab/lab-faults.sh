#!/usr/bin/env bash
# A single fault during a run: a rank is stopped or killed, a switch is killed, a link goes down, a
# switch loses its table. Every other rank must end within BANYAN_TIMEOUT + 1 s of the fault, with
# an error that names the rank, the switch or the part between them; the script prints the time of
# the slowest. It tests switches over rings of frames (auto), AF_XDP, UDP sockets and shared memory,
# and calls between hosts over TCP.
#   lab-faults.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
# Settings: FAULTS=all tests every fault on every transport, also on two levels of switches and
# through a relay, and prints one table at the end (10 minutes, mostly waiting); TRANSPORTS="auto
# shm" and FABRICS="star4 hosts" select a part.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-faults "${1:-build/release}"
need_root
restarted=()
cleanup_more() { down; outside_down; }
make_topologies

# Two switches on the path that only forward packets.
cat >"$dir/relays.json" <<'JSON'
{"name": "relays", "unit": "GB/s",
 "nodes": [{"name": "host0", "kind": "compute"}, {"name": "host1", "kind": "compute"}, {"name": "host2", "kind": "compute"},
           {"name": "host3", "kind": "compute"}, {"name": "leaf0", "kind": "switch", "multicast": true, "aggregate": true},
           {"name": "spine0", "kind": "switch"}, {"name": "spine1", "kind": "switch"},
           {"name": "leaf1", "kind": "switch", "multicast": true, "aggregate": true}],
 "links": [{"between": ["host0", "leaf0"], "bandwidth": 10}, {"between": ["host1", "leaf0"], "bandwidth": 10},
           {"between": ["host2", "leaf1"], "bandwidth": 10}, {"between": ["host3", "leaf1"], "bandwidth": 10},
           {"between": ["leaf0", "spine0"], "bandwidth": 20}, {"between": ["spine0", "spine1"], "bandwidth": 20},
           {"between": ["spine1", "leaf1"], "bandwidth": 20}]}
JSON

timeout=$((2 + slow))
victim=host2
rank=2
hosts() { sed -n 's/^host  *\([^ ]*\) .*/\1/p' "$dir/up.out"; }

# start TRANSPORT HOST: runs endless allreduces, with output in $dir/HOST.out and exit status in
# $dir/HOST.end.
start() {
    local -a words environment=(BANYAN_TIMEOUT="$timeout" BANYAN_LINGER=0 BANYAN_TRANSPORT="$1")
    read -ra words <<<"$(host_line "$2")"
    case $1 in
    udp) environment+=(BANYAN_RING=off) ;;
    circulant | ring | rhd)
        environment=(BANYAN_TIMEOUT="$timeout" BANYAN_OFFLOAD=off BANYAN_FALLBACK="$1" RANK="${2#host}"
            WORLD_SIZE="$(hosts | wc -l)" MASTER_ADDR="$subnet.1" MASTER_PORT=$((29000 + $$ % 1000)))
        # Hosts that answer nothing are no absent ranks, for which calls wait longer.
        case $what in link | bridge) environment+=(BANYAN_WAIT=600) ;; esac
        ;;
    esac
    (
        "${words[@]}" env "${environment[@]}" "$build/bin/banyan-perf" -c allreduce -b 64K -n 1000000 >"$dir/$2.out" 2>&1
        echo "$?" >"$dir/$2.end"
    ) 2>/dev/null &
    children+=("$!")
    pids[$2]=$!
}
# moved: contributions that the first switch has added so far; 0 between hosts.
moved() {
    [ "$schedules" = 1 ] && { echo 0; return; }
    "$banyan" show "unix:$folder/$first_switch.sock" --counters 2>/dev/null | awk '$1 == "counter" && $2 == "contrib:" { n = $3 } END { print n + 0 }'
}
# under_way MOVED: waits until rank 0 prints its start and every rank has moved data since the count
# was MOVED. A rank that starts late and a fault would be two faults.
under_way() {
    local i
    for ((i = 0; i < 600; i++)); do
        sleep 0.1
        [ "$(cat "$dir"/host*.out 2>/dev/null | grep -c 'redop')" -eq 1 ] && { [ "$schedules" = 1 ] || [ "$(moved)" -gt $(($1 + 500)) ]; } && break
    done
    sleep 0.5
}
# restart SWITCH WORD...: starts the same program in the same namespace, without tables.
restart() {
    local switch=$1
    shift
    ip netns exec "lab-$id-$switch" "$@" >"$dir/$switch.log" 2>&1 &
    children+=("$!")
    restarted+=("$!")
}
# Ends the lab, and the switches that were restarted outside it.
down() {
    local child
    for child in "${restarted[@]}"; do
        end_tree KILL "$child"
        wait "$child" 2>/dev/null
    done
    restarted=()
    down_of "$dir/up.out"
}

# signal NAME: signals the victim, not the shell that waits for it.
signal() {
    local child
    for child in $(cat "/proc/${pids[$victim]}/task/${pids[$victim]}/children" 2>/dev/null); do end_tree "$1" "$child"; done
}
# Injects a fault into the fabric. Sets $spared: the hosts whose end does not count.
hit() { # hit FAULT WHERE
    local pid
    local -a words
    spared=
    case $1 in
    stop) spared=$victim; signal STOP ;;
    kill) spared=$victim; signal KILL ;;
    link) ip -n "lab-$id-$victim" link set "$2" down ;;
    uplink) ip -n "lab-$id-leaf0" link set "$(port_to leaf0 "$2")" down ;;
    bridge) ip -n "$outside" link set br0 down ;;
    switch) kill -KILL "$(switch_pid "$id" "$2")" ;;
    table)
        pid=$(switch_pid "$id" "$2")
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        kill -KILL "$pid"
        while runs "$pid"; do sleep 0.01; done
        restart "$2" "${words[@]}"
        ;;
    esac
}
heal() { # heal FAULT WHERE
    case $1 in
    link) ip -n "lab-$id-$victim" link set "$2" up ;;
    uplink) ip -n "lab-$id-leaf0" link set "$(port_to leaf0 "$2")" up ;;
    bridge) ip -n "$outside" link set br0 up ;;
    esac
}
# port_to SWITCH NODE: the interface of SWITCH to NODE, from their tables ("switch NODE: node 6,
# ...", "port 2 p2: ..., to node 6 ...").
port_to() {
    local number
    number=$("$banyan" show "$folder/$2.table" | sed -n '1s/^switch .*: node \([0-9]*\),.*/\1/p')
    "$banyan" show "$folder/$1.table" | sed -n "s/^ *port [0-9]* \([^ ]*\): .*, to node $number .*/\1/p" | head -n 1
}

# The matrix: rows in order, the errors, and cells by "ROW TRANSPORT".
rows=()
declare -A said=() cells=()
# cell ROW TRANSPORT TEXT [SAID]
cell() {
    [ -n "${said[$1]+there}" ] || { rows+=("$1"); said[$1]=; }
    [ -n "${said[$1]}" ] || said[$1]=${4:-}
    cells[$1 $2]=$3
}
# matrix HEADING TRANSPORT...: prints the rows that have a cell for one of these transports.
matrix() {
    local heading=$1 row transport line any text=
    shift
    for row in "${rows[@]}"; do
        line='' any=''
        for transport in "$@"; do
            [ -z "${cells[$row $transport]:-}" ] || any=1
            line+=" ${cells[$row $transport]:--} |"
        done
        [ -z "$any" ] || text+="| ${row%%,*} | ${row#*, } |$line ${said[$row]} |"$'\n'
    done
    [ -n "$text" ] || return
    printf '\n%s\n\n| fabric | fault |' "$heading"
    printf ' %s |' "$@"
    printf ' what the others say |\n|---|---|'
    printf -- '---:|%.0s' "$@"
    printf -- '---|\n%s' "$text"
}

# fault TRANSPORT FAULT WHERE TEXT [TEXT_OF_VICTIM]: makes one cell of the matrix.
fault() {
    local transport=$1 what=$2 where=$3 text=$4 own=${5:-$4} host begin status end slowest bad wanted late='' words before
    local row="$topology, $what $where"
    [ "$schedules" = 0 ] || row="hosts of $row"
    # On a machine with other load a fault may be detected late, or a delay may look like silence.
    # One repeat is allowed, and both results are shown.
    while true; do
        slowest=0 bad=0
        try "$@"
        if [ $bad -eq 0 ] && in_time "$slowest" "$timeout"; then
            # The message without the parts that differ between runs.
            words=$(cat "$dir"/host*.out | grep -Em1 "$text" | sed -E 's/^.*(f32|limit|failed): //; s/ \(tree [0-9]+, chunk [0-9]+\)//; s/;.*//')
            cell "$row" "$transport" "$slowest s${late:+ ($late)}" "$words"
            pass "$(printf '%-11s %-9s %-8s %s s%s: %s' "$topology" "$transport" "$what" "$slowest" \
                "${late:+ (again, after $late)}" "$words")"
            return
        fi
        [ -z "$late" ] || break
        late="$slowest s"
        [ $bad -eq 0 ] || late="$late, another text"
        [ "$what" != switch ] || replace
    done
    cell "$row" "$transport" FAIL
    echo "(the slowest took $slowest s)" >>"$dir/host0.out"
    fail "$topology, $transport, $what $where" "$dir"/host*.out
}
# One attempt; sets $slowest and $bad.
try() {
    local -A pids=()
    rm -f "$dir"/host*.out "$dir"/host*.end
    [ "$schedules" = 1 ] || "$banyan" push --renew "$folder" --sockets "$folder" >"$dir/renew.out" 2>&1 || { bad=1; mv "$dir/renew.out" "$dir/host.out"; return; }
    before=$(moved)
    for host in $(hosts); do start "$transport" "$host"; done
    under_way "$before"
    # The test also requires that auto selects rings here.
    [ "$transport" != auto ] || grep -q 'from a receive ring' "$dir/host0.out" || { bad=1; echo "auto took no rings" >>"$dir/host0.out"; }
    begin=$(date +%s.%N)
    hit "$what" "$where"
    for host in $(hosts); do
        [ "$host" = "$spared" ] || wait "${pids[$host]}" 2>/dev/null
    done
    for host in $(hosts); do
        [ "$host" != "$spared" ] || continue
        # The error is the last line of the output, so its time is that of the error, without the
        # time in which the kernel closes what the process had open.
        read -r status <"$dir/$host.end"
        end=$(stat -c %.6Y "$dir/$host.out")
        wanted=$text
        [ "$host" != "$victim" ] || wanted=$own
        slowest=$(awk -v a="$slowest" -v b="$end" -v c="$begin" 'BEGIN { b -= c; printf "%.2f", (a > b ? a : b) }')
        [ "$status" -eq 3 ] && grep -Eq "$wanted" "$dir/$host.out" || { bad=1; echo "$host: exit status $status, wanted: $wanted" >>"$dir/$host.out"; }
    done
    [ -z "$spared" ] || { signal KILL; wait "${pids[$victim]}" 2>/dev/null; }
    heal "$what" "$where"
}

schedules=0
trees() { # trees TRANSPORT FAULT...
    local transport=$1
    shift
    for what in "$@"; do
        case $what in
        stop | kill) fault "$transport" "$what" $victim "$victim \(rank $rank\) has not contributed" ;;
        link) fault "$transport" link eth0 "$victim \(rank $rank\) has not contributed" "no answer from switch" ;;
        uplink) fault "$transport" uplink spine0 "$uplink_says" ;;
        switch | table)
            for where in $switches; do
                case $what in
                switch) fault "$transport" switch "$where" "$(named "$where")" ;;
                table) fault "$transport" table "$where" "$(named "$where").*with this job.s tables|by way of.* $where" ;;
                esac
                [ "$what" != switch ] || replace
            done
            ;;
        esac
    done
}
# How errors name a switch: as silent, or as a switch on the path.
named() { echo "$1"; }
# Makes a new lab after a switch was lost.
replace() { down; up; }
up() {
    children=()
    "$banyan" lab up "$dir/$topology.json" "${options[@]}" >"$dir/up.out" 2>&1 || { fail "$topology: lab up" "$dir/up.out"; finish; }
    id=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$id
    first_switch=$(sed -n 's/^switch  *\([^ ]*\) .*/\1/p' "$dir/up.out" | head -n 1)
    [ -n "${switches:-}" ] || switches=$first_switch
}
between() { # between SCHEDULE FAULT...
    local schedule=$1
    shift
    outside_up "$id" "$(hosts | wc -l)" || { fail "a network beside the lab"; return; }
    sleep 1 # until the bridge forwards
    schedules=1
    for what in "$@"; do
        case $what in
        stop) fault "$schedule" stop $victim "rank $rank \([0-9.]*\) was silent" ;;
        kill) fault "$schedule" kill $victim "rank $rank \([0-9.]*\) has closed its connections" ;;
        link) fault "$schedule" link out0 "rank $rank \([0-9.]*\) was silent" "rank [0-9] \([0-9.]*\)" ;;
        bridge) fault "$schedule" bridge br0 "rank [0-9] \([0-9.]*\) was silent" ;;
        esac
    done
    schedules=0
    outside_down
}
# on TOPOLOGY SWITCHES FAULT...: tests these faults over each transport. Hosts that share memory
# with their switch have no link to it.
on() {
    local transport what
    topology=$1
    switches=$2
    shift 2
    for transport in $transports; do
        options=()
        [ "$transport" != shm ] || options=(--transport shm)
        up
        for what in "$@"; do
            [ "$transport $what" = "shm link" ] || trees "$transport" "$what"
        done
        down
    done
}

options=()
if [ "${FAULTS:-}" = all ]; then
    transports=${TRANSPORTS:-auto afxdp udp shm}
    for fabric in ${FABRICS:-star4 leafspine relay-spine relays hosts}; do
        case $fabric in
        star4) on star4 switch0 stop kill link table switch ;;
        leafspine)
            uplink_says='(spine0|leaf[01])'
            on leafspine "leaf0 spine0" stop kill link uplink table switch
            ;;
        relay-spine) # the spine is in no tree: it passes packets on
            uplink_says='by way of spine0|spine0'
            on relay-spine "leaf0 spine0" stop link uplink table switch
            ;;
        relays) # both are named, in their order
            uplink_says='by way of spine[01], spine[01]'
            on relays "spine0 spine1" uplink table switch
            ;;
        hosts)
            topology=star4 options=() switches=''
            up
            for schedule in circulant ring rhd; do between $schedule stop kill link bridge; done
            ;;
        esac
    done
    # shellcheck disable=SC2086
    matrix "Through switches: seconds from the fault to the end of the last other rank; BANYAN_TIMEOUT is $timeout s, $((timeout + 1)) s are allowed on an idle machine." $transports
    matrix "Between hosts, by schedule" circulant ring rhd
    echo
else
    topology=star4
    up
    between circulant stop link
    trees udp kill table
    trees auto stop link
    trees afxdp stop link switch
fi
finish
