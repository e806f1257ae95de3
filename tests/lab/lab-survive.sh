#!/usr/bin/env bash
# Faults while collectives run, on leaf-spine with two spines and with banyand: calls must continue,
# and every result must be right. A switch is killed, restarted or stopped for a while; a link goes
# down, or blackholes packets in one or both directions; the controller is killed and restarted, is
# stopped, loses messages, or is away until ranks have moved to a standby. For each fault the script prints the fault, the event that reported
# it, and the time from the fault to the first chunk after it, with its parts. The last faults leave
# no other path: a leaf dies, or the link of a host blackholes packets, and calls end with an error
# that names the cut. Finally a rank dies.
#   lab-survive.sh [BUILD]   Needs root (77 without). Exit 0: no wrong result, no call that hangs.
# Settings: N: faults (default 3: the first without a controller, the last a blackhole); KINDS: only these kinds;
# TRANSPORT of the hosts (udp); LAB_OPTIONS of lab up; SEED (default: the clock); EPOCH: faults
# between two fresh labs (default 20); LOSE=never: no messages are lost; ENDS=no: without the last
# faults; STANDBY: standby generations (default 2); STORE=etcd: three banyands over an etcd with three members. The leader is then what fails
# as the controller, it may also be cut off from etcd, and members of etcd are killed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-survive "${1:-build/release}"
need_root
STORE=${STORE:-folder}
controllers=(0)
if [ "$STORE" = etcd ]; then
    for program in etcd curl; do
        command -v $program >/dev/null || { echo "lab-survive: skipped: $program is missing: make etcd-deps installs it" >&2; exit 77; }
    done
    controllers=(0 1 2)
    # shellcheck source=tests/lab/etcd-common.sh
    . tests/lab/etcd-common.sh
fi
cleanup_more() {
    down_of "$dir/up.out"
    [ "$STORE" != etcd ] || cluster_down
}

N=${N:-3}
TRANSPORT=${TRANSPORT:-udp}
read -ra lab_options <<<"${LAB_OPTIONS:-}"
SEED=${SEED:-$(date +%s)}
EPOCH=${EPOCH:-20}
STANDBY=${STANDBY:-2}
kinds=(kill reboot stop link controller cut leaf swallow)
if [ "$STORE" = etcd ]; then kinds+=(apart member); elif [ "$STANDBY" != 0 ]; then kinds+=(gone); fi
[ -z "${KINDS:-}" ] || read -ra kinds <<<"$KINDS"
RANDOM=$((SEED % 32768))
echo "SEED=$SEED N=$N"
draw() { echo $((RANDOM % $1)); } # draw COUNT
now() { date +%s.%N; }
ms_between() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.0f", (b - a) * 1000 }'; }
hosts="host0 host1 host2 host3"
links=("leaf0 spine0" "leaf0 spine1" "leaf1 spine0" "leaf1 spine1")
collectives=(allreduce reduce-scatter allgather broadcast reduce)
wrong=0 hangs=0 count=0 lose=0 moves=0
: >"$dir/times"
: >"$dir/steps"

"$banyan" topo leafspine --spines 2 --uplink 5 >"$dir/fabric.json"

# start_controller [N]: starts banyand N. All have one log, in which each line has its time.
start_controller() {
    local n=${1:-0} where=() state=(--state "$dir/state" --socket off "${job[@]}")
    # Followers have no jobs of their own: what the leader has created is in the store.
    [ "$STORE" != etcd ] || { where=(ip netns exec "$cluster-c$n") state=(--store "$store/lab$id" --socket "$dir/socket$n"); }
    "${where[@]}" "$build/bin/banyand" "$dir/fabric.json" --sockets "/run/banyan/lab-$id" --members "unix:$dir/members$n" --http off "${state[@]}" --lose "$lose" --quiet 500 --trust 1000 --standby "$STANDBY" \
        >>"$dir/banyand.log" 2>&1 &
    banyands[n]=$!
    children+=("$!")
    disown
}
# find_leader: sets $leader and its process, $controller; status 1: none leads at the moment.
find_leader() {
    leader=0
    if [ "$STORE" = etcd ]; then
        for leader in "${controllers[@]}" none; do
            [ "$leader" != none ] || return 1
            ! timeout 2 "$banyan" job list --controller "unix:$dir/socket$leader" >/dev/null 2>&1 || break
        done
    fi
    controller=${banyands[leader]}
}
# start_ranks COLLECTIVE: runs endless verified operations of growing sizes.
start_ranks() {
    local host
    for host in $hosts; do
        rm -f "$dir/$host.out"
        (
            exec ip netns exec "lab-$id-$host" env BANYAN_CONTROLLER="$members_at" BANYAN_NODE="$host" BANYAN_TRANSPORT="$TRANSPORT" BANYAN_SHM="/run/banyan/lab-$id" BANYAN_LOG=2 \
                BANYAN_TIMEOUT=10 "$build/bin/banyan-perf" -c "$1" -b 1M -e 64M -i 64 -d i32 -n 1 -w 0 >"$dir/$host.out" 2>&1
        ) &
        ranks[${host#host}]=$!
        children+=("$!")
        disown
    done
}
# The number of result rows so far, and of those with a wrong element.
rows() { awk '$5 == "sum" || $5 == "none" || /^ (allreduce|reduce|all|broad)/ { n++ } END { print n + 0 }' "$dir/host0.out"; }
bad_rows() { awk '/^ (allreduce|reduce|allgather|broadcast)/ && ($10 + $14 > 0) { n++ } END { print n + 0 }' "$dir/host0.out"; }
more_rows() { [ "$(rows)" -gt "$1" ]; }
alive() { kill -0 "${ranks[@]}" 2>/dev/null; }
gone() { ! kill -0 "${banyands[@]}" 2>/dev/null; }
# Jobs that have continued since line $1 of the controller's log.
settled_since() { [ "$(tail -n "+$(($1 + 1))" "$dir/banyand.log" | grep -Ec 'is in generation|have moved from generation')" -ge "${2:-1}" ]; }
# The tables of the last generation have standbys, or cannot have any.
has_standbys() { grep -E 'job 1 runs|is in generation|standby generation' "$dir/banyand.log" | tail -n 1 | grep -Eq 'standby generations'; }
log_lines() { wc -l <"$dir/banyand.log"; }
# first_chunk SINCE: the time of the first chunk after a pause, since SINCE, at the last of the
# ranks; nothing while a rank is missing.
first_chunk() {
    local host files=()
    for host in $hosts; do files+=("$dir/$host.out"); done
    awk -v since="$1" '/continues in (standby )?generation.*first chunk at [0-9.]*$/ { at[FILENAME] = $NF }
        END {
            for (i = 1; i < ARGC; i++) {
                if (at[ARGV[i]] + 0 < since + 0) exit 1
                if (at[ARGV[i]] + 0 > latest + 0) latest = at[ARGV[i]]
            }
            print latest
        }' "${files[@]}"
}
# parts SINCE LINES PATTERN UNTIL: the steps of a recovery, in ms after the fault: a rank reports a wait;
# banyand finds the fault (PATTERN in its log after LINES lines), and has a plan that is
# recorded in its store; the last rank is frozen, is level with the others, has GO, and uses the new
# trees. The last step, its first chunk, is the fault's time UNTIL; later recoveries, when the part
# is used again, do not count. "-": unknown, or before the fault.
parts() {
    local host midnight files=()
    midnight=$(date -d 0:00 +%s)
    for host in $hosts; do files+=("$dir/$host.out"); done
    tail -n "+$(($2 + 1))" "$dir/banyand.log" | awk -v since="$1" -v pattern="$3" -v until="$4" -v midnight="$midnight" '
        function stamp(text, at) { split(text, at, ":"); return (midnight - since + at[1] * 3600 + at[2] * 60 + at[3]) * 1000 }
        function later(name, ms) { if (!(name in last) || ms > last[name]) last[name] = ms }
        function show(name) { return name in last && last[name] >= 0 ? sprintf("%.0f", last[name]) : "-" }
        FILENAME == "-" && !("found" in last) && $0 ~ pattern { last["found"] = stamp($2) }
        FILENAME == "-" && "found" in last && !("planned" in last) && match($0, /is in generation [0-9]+, [0-9]+ ms after the planning began .[0-9]+ ms to hosts, [0-9]+ ms to switches; [0-9]+/) {
            split(substr($0, RSTART, RLENGTH), word, /[^0-9]+/)
            last["planned"] = stamp($2) - word[3] + word[4]
            last["told"] = stamp($2) - word[6]
        }
        FILENAME != "-" && /continues in (standby )?generation.*first chunk at [0-9.]*$/ && $NF >= since + 0 && $NF <= until + 0 {
            match($0, /made no progress for.*first/)
            steps[FILENAME] = $NF - since " " substr($0, RSTART, RLENGTH)
        }
        END {
            for (name in steps) { # the last recovery of each rank, as in first_chunk
                split(steps[name], word, /[^0-9.]+/)
                frozen = (word[1] - word[2]) * 1000
                later("frozen", frozen); later("level", frozen + word[3] * 1000)
                later("tables", frozen + word[4] * 1000); later("trees", frozen + word[5] * 1000)
            }
             print show("told"), show("found"), show("planned"), show("frozen"), show("level"), show("tables"), show("trees") }' - "${files[@]}"
}
has_first_chunk() { first_chunk "$1" >/dev/null; }
restart_switch() { # SWITCH WORD...
    local switch=$1
    shift
    ip netns exec "lab-$id-$switch" "$@" >>"$dir/$switch.log" 2>&1 &
    children+=("$!")
    disown
}
# came_back SPINE WORD...: the controller is back, and then the switch.
came_back() {
    start_controller "$leader"
    await 8 settled_since "$lines" || fail "banyand goes on with the standby" "$dir/banyand.log"
    restart_switch "$@"
}
fresh_lab() {
    local n
    rm -rf "$dir/state"
    : >"$dir/banyand.log"
    job=(--job "1=$1")
    "$banyan" lab up "$dir/fabric.json" -c "$1" --transport "$TRANSPORT" "${lab_options[@]}" >"$dir/up.out" 2>&1 || { fail "the lab comes up" "$dir/up.out"; finish; }
    id=$(id_of "$dir/up.out")
    banyands=()
    for n in "${controllers[@]}"; do start_controller "$n"; done
    if [ "$STORE" = etcd ]; then
        await 20 find_leader && "$banyan" job create -c "$1" --controller "unix:$dir/socket$leader" >>"$dir/banyand.log" 2>&1
    fi
    await 20 grep -q 'job 1 runs' "$dir/banyand.log" && find_leader || { fail "banyand leads" "$dir/banyand.log"; finish; }
    start_ranks "$1"
    await 60 more_rows 1 || { fail "$1 runs" "$dir/host0.out" "$dir/banyand.log"; finish; }
}
end_lab() {
    local bad n
    bad=$(bad_rows)
    wrong=$((wrong + bad))
    [ "$bad" -eq 0 ] || grep -E '^ (all|red|bro)' "$dir/host0.out" | tail -n 5
    verified=$((${verified:-0} + $(rows) * 2))
    for pid in "${ranks[@]}"; do end_tree KILL "$pid"; done
    for n in "${controllers[@]}"; do end_tree TERM "${banyands[n]}"; done
    await 5 gone || true
    down_of "$dir/up.out"
}
# swallow SWITCH INTERFACE: drops every packet that arrives there; the process becomes the last of
# $swallowing.
swallow() {
    ip netns exec "lab-$id-$1" "$build/tools/lab-blackhole" "$2" >"$dir/swallow.$2" 2>&1 &
    swallowing+=("$!")
    children+=("$!")
    disown
    await 2 grep -q swallowing "$dir/swallow.$2" || { fail "lab-blackhole in $1" "$dir/swallow.$2"; finish; }
}
swallow_no_more() { # ends them, and waits until the kernel has taken their programs away
    kill "${swallowing[@]}" 2>/dev/null
    while kill -0 "${swallowing[@]}" 2>/dev/null; do sleep 0.005; done
}
# port_to LEAF SPINE: the interface of LEAF to SPINE.
port_to() { port_of "$id" "$1" $((6 + ${2#spine})); }

# hit KIND: injects a fault. Sets $what, $saw (a pattern of the controller's log), $undo (a command)
# and $since.
hit() {
    local spine=spine$(draw 2) pid pause
    await 20 find_leader || fail "a banyand leads" "$dir/banyand.log"
    local -a ends
    undo=: saw='' what="$1 $spine"
    pid=$(switch_pid "$id" "$spine")
    case $1 in
    kill | reboot | leaf)
        [ "$1" != leaf ] || spine=leaf$(draw 2) what="reboot of the only way of two hosts, $spine"
        pid=$(switch_pid "$id" "$spine")
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        since=$(now)
        kill -KILL "$pid"
        saw="switch $spine (is down|has restarted)"
        while runs "$pid"; do sleep 0.005; done
        if [ "$1" != kill ]; then restart_switch "$spine" "${words[@]}"; else undo="restart_switch $spine ${words[*]}"; fi
        ;;
    stop)
        pause=$((50 + $(draw 1000)))
        what="$what for $pause ms"
        since=$(now)
        kill -STOP "$pid"
        (sleep "$(awk -v p=$pause 'BEGIN { print p / 1000 }')"; kill -CONT "$pid") 2>/dev/null &
        saw="switch $spine is down"
        ;;
    link)
        read -ra ends <<<"${links[$(draw 4)]}"
        what="link ${ends[0]} - ${ends[1]}"
        since=$(now)
        ip -n "lab-$id-${ends[0]}" link set "$(port_to "${ends[0]}" "${ends[1]}")" down
        undo="ip -n lab-$id-${ends[0]} link set $(port_to "${ends[0]}" "${ends[1]}") up"
        saw="link .* is down"
        ;;
    swallow)
        read -ra ends <<<"${links[$(draw 4)]}"
        swallowing=()
        pause=$(draw 3)
        what="${ends[0]} - ${ends[1]} drops packets silently, $(set -- 'both ways' upwards downwards; shift "$pause"; echo "$1")"
        undo=swallow_no_more
        saw="(link|switch) .* drops packets silently"
        since=$(now)
        [ "$pause" = 2 ] || swallow "${ends[1]}" "$(port_of "$id" "${ends[1]}" $((4 + ${ends[0]#leaf})))"
        [ "$pause" = 1 ] || swallow "${ends[0]}" "$(port_to "${ends[0]}" "${ends[1]}")"
        ;;
    controller)
        pause=$(draw 800)
        what="controller, away for $pause ms"
        since=$(now)
        kill -KILL "$controller"
        while runs "$controller"; do sleep 0.005; done
        if [ "$(draw 2)" = 0 ]; then # and a switch while it is away
            mapfile -d '' words <"/proc/$pid/cmdline"
            words[0]=$build/bin/banyan-switchd
            kill -KILL "$pid"
            what="$what, and $spine"
            undo="restart_switch $spine ${words[*]}"
            saw="switch $spine is down|$spine"
        fi
        sleep "$(awk -v p="$pause" 'BEGIN { print p / 1000 }')"
        start_controller "$leader"
        ;;
    apart | member) # the leader is cut off from etcd, or a member of etcd dies, and a switch with it
        number=$(draw 3)
        since=$(now)
        if [ "$1" = apart ]; then
            what="banyand $leader cut off from etcd, and $spine killed"
            cut "c$leader"
        else
            what="member $number of etcd and $spine killed"
            member_end "$number" KILL
        fi
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        kill -KILL "$pid"
        undo="restart_switch $spine ${words[*]}"
        saw="switch $spine is down"
        ;;
    gone) # the controller is away as long as calls stand still
        what="controller, away until ranks moved, and $spine"
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        kill -KILL "$controller"
        while runs "$controller"; do sleep 0.005; done
        since=$(now)
        kill -KILL "$pid"
        undo="came_back $spine ${words[*]}"
        saw='ranks have moved'
        ;;
    cut) # the controller stands still: its connections are there, and nobody answers
        pause=$((200 + $(draw 600)))
        what="controller stopped for $pause ms, and $spine killed"
        mapfile -d '' words <"/proc/$pid/cmdline"
        words[0]=$build/bin/banyan-switchd
        since=$(now)
        kill -STOP "$controller"
        kill -KILL "$pid"
        sleep "$(awk -v p=$pause 'BEGIN { print p / 1000 }')"
        kill -CONT "$controller"
        undo="restart_switch $spine ${words[*]}"
        saw="switch $spine is down"
        ;;
    esac
}
# class_of KIND: prints what is available for a recovery from such a fault: another path, the
# controller, all messages to it.
class_of() {
    case $1 in
    leaf) echo "without another path" ;;
    controller | cut | apart) echo "without a controller for a while" ;;
    gone) echo "without a controller" ;;
    member) echo "with another path, a member of etcd killed" ;;
    *) [ "$lose" = 0 ] && echo "with another path" || echo "with another path, messages to the controller lost" ;;
    esac
}
# Injects one fault. Every rank must then complete a chunk, and further results must follow. Status
# 1: a call hangs.
fault() {
    local kind=$1 before since what saw undo at ms by lines number moved steps=
    # Without standbys no rank moves.
    if [ "$STANDBY" != 0 ] && ! await 3 has_standbys && [ "$kind" = gone ]; then kind=kill; fi
    before=$(rows)
    lines=$(log_lines)
    hit "$kind"
    if await "$patience" has_first_chunk "$since"; then
        at=$(first_chunk "$since")
        ms=$(ms_between "$since" "$at")
        by=$(tail -n "+$((lines + 1))" "$dir/banyand.log" | grep -Em1 "$saw" | sed -E 's/^banyand: [0-9:.]+ //; s/: (unix|no).*//')
        before=$(rows)
    else
        ms=0 by="nothing stood still"
    fi
    moved=$(awk -v since="$since" '/continues in standby generation/ && $NF >= since + 0 { n++ } END { print n + 0 }' "$dir"/host*.out)
    [ "$moved" = 0 ] || moves=$((moves + 1)) by="$by${by:+, }$moved ranks moved"
    if [ "$kind" = gone ] && [ "$moved" = 0 ] && [ "$ms" != 0 ]; then
        hangs=$((hangs + 1))
        fail "fault $count: $what: calls continue without a move" "$dir"/host*.out "$dir/banyand.log"
        return 1
    fi
    if ! alive || ! await 15 more_rows "$((before + 1))"; then
        hangs=$((hangs + 1))
        fail "fault $count: $what: no further result" "$dir"/host*.out
        tail -n 40 "$dir/banyand.log" | sed 's/^/         | /'
        return 1
    fi
    printf '  fault %3d  %-46s %-34s %5s ms\n' "$count" "$what" "${by:-(its log was away)}" "$ms"
    if [ "$ms" != 0 ]; then
        await 3 settled_since "$lines" || true
        steps=$(parts "$since" "$lines" "$saw" "$at")
        echo "$ms $(class_of "$kind")" >>"$dir/times"
        echo "$steps $ms" >>"$dir/steps"
        # shellcheck disable=SC2086
        printf '             ms until: a rank reports %s, found %s, planned %s, frozen %s, level %s, tables %s, new trees %s\n' $steps
    fi
    lines=$(log_lines)
    case $kind in
    apart) join "c$leader" ;;
    member) member_start "$number" ;;
    esac
    $undo
    [ "$ms" = 0 ] || [ "$kind" = leaf ] || await 8 settled_since "$lines" || true # until it is used again
    return 0
}
# ended TEXT: succeeds if every rank except $spared has printed an error with TEXT.
ended() {
    local host
    for host in $hosts; do
        [ "$host" = "$spared" ] || grep -Eq "$1" "$dir/$host.out" || return 1
    done
}

members_at=unix:$dir/members0 patience=4
if [ "$STORE" = etcd ]; then
    members_at=$members_at,unix:$dir/members1,unix:$dir/members2 patience=8
    cluster_up 3 >"$dir/check.out" 2>&1 || { fail "etcd with three members" "$dir/check.out"; finish; }
fi
while [ "$count" -lt "$N" ]; do
    collective=${collectives[$(draw ${#collectives[@]})]}
    [ "${LOSE:-}" = never ] || lose=$((1 - lose > 0 ? 100 : 0)) # in every other lab one message in ten between hosts and controller is lost
    fresh_lab "$collective"
    echo "lab $id: $collective$([ "$lose" = 0 ] || echo ", $lose of 1000 messages between hosts and controller are lost")"
    for ((i = 0; i < EPOCH && count < N; i++)); do
        count=$((count + 1))
        kind=${kinds[$(draw ${#kinds[@]})]}
        [ "$N" -gt 3 ] || [ "$count" -lt "$N" ] || kind=swallow
        [ "$N" -gt 3 ] || [ "$count" -gt 1 ] || [ "$STANDBY" = 0 ] || [ "$STORE" = etcd ] || kind=gone
        fault "$kind" || break
    done
    end_lab
done
if [ "$wrong" -eq 0 ] && [ "$hangs" -eq 0 ]; then pass "$N faults: $verified results, none wrong, no call hangs; ranks moved to a standby after $moves"; else fail "$N faults: $wrong wrong results, $hangs hang"; fi
sort -n "$dir/times" | awk '
    { ms = $1; $1 = ""; t["" , ++n[""]] = ms; t[$0, ++n[$0]] = ms }
    function show(class) { printf "%s: median %d ms, worst %d ms, of %d", class, t[class, int((n[class] + 1) / 2)], t[class, n[class]], n[class] }
    END {
        if (!n[""]) exit
        printf "  from fault to traffic"; show(""); print " that stopped it"
        for (class in n) if (class != "") { printf "   "; show(class); print "" }
    }'
# Medians of the durations of the steps, of the faults of which all steps are known. Levelling and
# the push run at once, so that "both" begins when the last rank is frozen.
grep -v -e - "$dir/steps" 2>/dev/null | awk '
    function median(step, i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[step, j] < v[step, j - 1]; j--) { t = v[step, j]; v[step, j] = v[step, j - 1]; v[step, j - 1] = t }
        return sprintf("%d (%d)", v[step, int((n + 1) / 2)], v[step, n])
    }
    { n++; both = $5 > $6 ? $5 : $6; v[1, n] = $1; v[2, n] = $2 - $1; v[3, n] = $3 - $2; v[4, n] = $4 - $3; v[5, n] = $5 - $4; v[6, n] = both - $4; v[7, n] = $7 - both; v[8, n] = $8 - $7 }
    END { if (n) printf "  its parts, median (worst) in ms of %d: until a rank reports %s, to the finding %s, to the plan %s, to the last freeze %s, levelling %s (and tables %s), to new trees %s, to the first chunk %s\n", n, median(1), median(2), median(3), median(4), median(5), median(6), median(7), median(8) }'

[ "${ENDS:-yes}" = yes ] || finish

# Faults without another path, and a rank that dies.
lose=0
fresh_lab allreduce
spared=
since=$(now)
kill -KILL "$(switch_pid "$id" leaf1)"
if await 8 ended 'leaf1.*(apart|cut|path|reach)'; then pass "leaf1 dies: $(grep -Eho '[a-z-]+: .*leaf1.*' "$dir/host0.out" | tail -n 1) ($(ms_between "$since" "$(now)") ms)"; else fail "leaf1 dies" "$dir"/host*.out; fi
end_lab
fresh_lab allreduce
swallowing=()
since=$(now)
swallow leaf1 "$(port_of "$id" leaf1 2)"
if await 10 ended 'link host2 - leaf1 drops packets silently: .* sent by host2, none received by leaf1 .* no path'; then pass "host2's link drops packets silently: $(grep -Eho '[a-z]+: link host2 .*' "$dir/host0.out" | tail -n 1) ($(ms_between "$since" "$(now)") ms)"; else fail "host2's link drops packets silently" "$dir"/host*.out "$dir/banyand.log"; fi
swallow_no_more
end_lab
fresh_lab allreduce
spared=host2
since=$(now)
end_tree KILL "${ranks[2]}"
if await 6 ended 'rank 2 \(host2\) failed'; then pass "host2 dies: $(grep -Eho 'allreduce: .*' "$dir/host0.out" | tail -n 1) ($(ms_between "$since" "$(now)") ms)"; else fail "host2 dies" "$dir"/host*.out; fi
end_lab
finish
