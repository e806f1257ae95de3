#!/usr/bin/env bash
# Compares collectives of banyan's lab with Open MPI and MPICH, in one run, interleaved, over the
# same kind of veth links.
#
#   mpi.sh [--hosts LIST] [--collective LIST] [--bytes LIST] [--mtu LIST] [--offload LIST] [--afxdp]
#          [--ranks N] [--rounds N] [--limit SECONDS]
#   mpi.sh --full      4 and 8 hosts, 1 MB to 64 MB, MTU 1500 and 9000, offload off and on: an hour
#
# The MPIs run on a star: a network namespace for each host, with a veth pair into one namespace
# that contains a Linux bridge. An agent starts ranks without SSH; it enters the host's namespace
# under its own host name, so that each rank is a separate machine for the MPI. Shared memory is
# switched off (otherwise MPICH's UCX finds it in spite of the namespaces), and the bytes on the
# links are counted to prove that the data went over them.
#
# Segmentation offload (tso, gso, gro, tx-udp-segmentation) is off, then on, at both ends of each
# link. With offload off, each frame of the MTU crosses each link alone. The kernel's stack may
# still receive more at a time and cut it before the link, as TCP always does, and as banyan's hosts
# and switches do (`lab run --segments cut`: UDP_SEGMENT, and frames from rings). With offload on,
# 64 KiB cross a link as one: TCP's segments, banyan's GSO batches.
#
# banyan builds its own star (`banyan lab run`). All processes are in the scheduler's class batch,
# in which `banyan lab` runs its nodes: a woken process does not preempt another. --afxdp adds
# banyan over AF_XDP sockets, at hosts and switch, with offload off.
#
# All contenders time calls in place, one after another, and check every element of another call on
# fresh data. The output is one table with medians of the rounds: algbw in GB/s, and processor time
# of all processes (hosts, switch; ksoftirqd) in ns per byte of data. The time of the MPIs' bridge
# is part of the hosts' time, because their system calls carry the frames across. A round runs each
# contender once; the first round always runs, further ones while they fit in the limit. A start
# that fails is reported and skipped; the table needs one of each.
# With --ranks each host has N ranks. Open MPI's ranks of a host then use shared memory; MPICH's use
# TCP, since UCX's shared memory would join all hosts. banyan's processor time is not shown then.
# Needs root. Exit 0; 1 wrong results; 2 bad usage; 3 something never ran; 77 cannot run here.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3

hosts_list=4,8
collectives=allreduce,broadcast,allgather
sizes=16M
mtus=1500,9000
offloads=off,on
afxdp=no
each=1
rounds=5
limit=600
warmup=1
# Limit in seconds for one start of one contender, less if the whole run would exceed the limit. The
# MPIs run all collectives and sizes in one start, and have this limit for every three of them:
# MPICH, which spins in turns of time slices, takes 10 s and more for 1 MiB among 8 hosts.
run_limit=90
least_limit=20
failures=0
out=${O:-build}
prefix=bybm$$
subnet=198.18.77
began=$(date +%s)
work=
child=
status=0
declare -A samples # "contender hosts collective size mtu offload" -> algbw of each round
declare -A costs   # the same -> ns of processor time for a byte of data

usage() {
    echo "usage: mpi.sh [--hosts 4,8] [--collective allreduce,broadcast,allgather,reduce-scatter] [--bytes 1M,16M] [--mtu 1500,9000] [--offload off,on]" \
        "[--afxdp] [--ranks N] [--rounds N] [--limit SECONDS] [--full]"
}

refuse() { # STATUS TEXT
    echo "mpi.sh: $2" >&2
    exit "$1"
}

say() { echo "  BENCH  $*" >&2; }

whole() { # OPTION VALUE LOW HIGH
    if ! [[ $2 =~ ^[0-9]{1,9}$ ]] || [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
        refuse 2 "$1 $2: a number from $3 to $4 is wanted"
    fi
}

one_of() { # OPTION VALUE WORD...
    local option=$1 value=$2 word
    shift 2
    for word in "$@"; do
        [ "$value" != "$word" ] || return 0
    done
    refuse 2 "$option $value: it is one of: $*"
}

arguments() {
    local value size bytes list
    while [ $# -gt 0 ]; do
        case $1 in
        --help) usage && exit 0 ;;
        --afxdp) afxdp=yes && shift && continue ;;
        --full) sizes=1M,4M,16M,64M rounds=3 limit=5400 && shift && continue ;;
        --hosts | --collective | --bytes | --mtu | --offload | --ranks | --rounds | --limit) [ $# -ge 2 ] || refuse 2 "$1: its value is missing" ;;
        *) usage >&2 && refuse 2 "unknown argument '$1'" ;;
        esac
        case $1 in
        --hosts) hosts_list=$2 ;;
        --collective) collectives=$2 ;;
        --bytes) sizes=$2 ;;
        --mtu) mtus=$2 ;;
        --offload) offloads=$2 ;;
        --ranks) whole "$1" "$2" 1 16 && each=$2 ;;
        --rounds) whole "$1" "$2" 1 1000 && rounds=$2 ;;
        --limit) whole "$1" "$2" 1 86400 && limit=$2 ;;
        esac
        shift 2
    done
    hosts_list=${hosts_list//,/ } collectives=${collectives//,/ } mtus=${mtus//,/ } offloads=${offloads//,/ }
    hosts_most=0
    for value in $hosts_list; do
        whole --hosts "$value" 2 32
        [ "$value" -le "$hosts_most" ] || hosts_most=$value
    done
    for value in $collectives; do one_of --collective "$value" allreduce broadcast allgather reduce-scatter; done
    for value in $mtus; do whole --mtu "$value" 1500 9000; done
    for value in $offloads; do one_of --offload "$value" off on; done
    list=${sizes//,/ }
    sizes=
    for size in $list; do
        bytes=$(numfmt --from=iec "$size" 2>/dev/null) || refuse 2 "--bytes $size: sizes such as 1M,16M are wanted"
        whole --bytes "$bytes" 128 536870912
        sizes+=" $((bytes / 128 * 128))" # whole elements for each of 32 hosts
    done
    for list in "${hosts_list}" "$collectives" "$sizes" "$mtus" "$offloads"; do
        [ -n "${list// /}" ] || refuse 2 "a list is empty"
    done
}

# The prefix identifies everything that cleanup must undo: all processes in these namespaces were
# started by this script.
cleanup() {
    local ns
    trap - EXIT
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -TERM "$child" 2>/dev/null
        for _ in {1..50}; do
            kill -0 "$child" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$child" 2>/dev/null
    fi
    sweep
    for ns in $(namespaces "$prefix"); do
        ip netns delete "$ns"
    done
    [ -z "$work" ] || rm -rf "$work"
}

namespaces() { # PREFIX
    ip netns list 2>/dev/null | cut -d' ' -f1 | grep -E "^$1-(sw|h[0-9]+)$"
}

# Ends what a start has left in the namespaces of this script.
sweep() {
    local ns pid
    for ns in $(namespaces "$prefix"); do
        for pid in $(ip netns pids "$ns"); do
            kill -KILL "$pid" 2>/dev/null
        done
    done
}

# The limit in seconds for a start now.
allowance() { # LINES of results
    local left=$((began + limit - $(date +%s))) most=$((run_limit * ($1 > 3 ? $1 : 3) / 3))
    [ $left -lt $most ] || left=$most
    [ $left -gt $least_limit ] || left=$least_limit
    echo $left
}

# Runs a command with its own time limit so that a signal to this script ends it at once; output to
# $work/out and $work/err. After it has printed the given number of lines of results it has one
# second to end before it is killed, because MPICH 4.0 over UCX's TCP does not always return from
# MPI_Finalize.
bounded() { # LINES (0: it ends by itself) COMMAND...
    local lines=$1 result=0 polls=0
    shift
    timeout --kill-after=10 "$(allowance "$lines")" "$@" >"$work/out" 2>"$work/err" </dev/null &
    child=$!
    { # the shell itself would tell of one that a signal ended
        while [ "$lines" -gt 0 ] && kill -0 "$child" && [ $polls -lt 6 ]; do
            [ "$(grep -c ' algbw=' "$work/out")" -lt "$lines" ] || polls=$((polls + 1))
            sleep 0.2
        done
        if [ $polls -eq 6 ]; then
            kill -TERM "$child"
            sweep
        fi
        wait "$child" || result=$?
    } 2>/dev/null
    child=
    return $result
}

failed() { # CONTENDER WHAT
    say "$1 failed: $2; the end of its output:"
    tail -n 15 "$work/out" "$work/err" >&2
    failures=$((failures + 1))
}

compile() {
    local mpi program
    mkdir -p "$out/bench"
    for mpi in openmpi mpich; do
        for program in mpicc.$mpi mpirun.$mpi; do
            command -v "$program" >/dev/null || refuse 77 "$program is missing; install it, as root: tests/deps.sh bench"
        done
        mpicc.$mpi -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -o "$out/bench/mpi_collective.$mpi" tests/bench/mpi_collective.c ||
            refuse 3 "mpicc.$mpi does not build tests/bench/mpi_collective.c"
    done
}

must() { "$@" || refuse 3 "this failed: $*"; }

quiet_ns() { # NAMESPACE: a new one without IPv6's own packets
    must ip netns add "$1"
    must ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    must ip -n "$1" link set lo up
}

links_up() {
    local i ns sw=$prefix-sw
    quiet_ns "$sw"
    must ip -n "$sw" link add br0 type bridge stp_state 0 mcast_snooping 0
    for ((i = 1; i <= hosts_most; i++)); do
        ns=$prefix-h$i
        quiet_ns "$ns"
        must ip -n "$ns" link add eth0 type veth peer name "p$i" netns "$sw"
        must ip -n "$ns" addr add "$subnet.$i/24" dev eth0
        must ip -n "$ns" link set eth0 up
        must ip -n "$sw" link set "p$i" master br0 up
    done
    must ip -n "$sw" link set br0 up
}

links_set() { # MTU off|on
    local i
    for ((i = 1; i <= hosts_most; i++)); do
        must ip -n "$prefix-sw" link set "p$i" mtu "$1"
        must ip -n "$prefix-h$i" link set eth0 mtu "$1"
        must ip netns exec "$prefix-sw" ethtool -K "p$i" tso "$2" gso "$2" gro "$2" tx-udp-segmentation "$2" >/dev/null
        must ip netns exec "$prefix-h$i" ethtool -K eth0 tso "$2" gso "$2" gro "$2" tx-udp-segmentation "$2" >/dev/null
    done
    must ip -n "$prefix-sw" link set br0 mtu "$1"
}

# Bytes that all hosts have sent.
links_sent() {
    ip netns exec "$prefix-sw" sh -c 'cat /sys/class/net/p[0-9]*/statistics/rx_bytes' | awk '{sum += $1} END {printf "%.0f", sum}'
}

# The launchers call AGENT ADDRESS WORD...; like rsh, it passes the joined words to a shell there.
agent_write() {
    cat >"$work/agent" <<AGENT
#!/bin/sh
index=\${1##*.}
shift
exec chrt --batch 0 ip netns exec $prefix-h\$index unshare --uts sh -c 'echo h'\$index' >/proc/sys/kernel/hostname; exec sh -c "\$1"' agent "\$*"
AGENT
    chmod 700 "$work/agent"
}

# Operations for a size: about 32 MB of data, so that small sizes run long enough and large ones end
# soon.
iterations() {
    local n=$((33554432 / $1))
    [ $n -ge 3 ] || n=3
    [ $n -le 32 ] || n=32
    echo $n
}

address_list() { # HOSTS
    local i list=$subnet.1
    for ((i = 2; i <= $1; i++)); do
        list=$list,$subnet.$i
    done
    echo "$list"
}

# One start of one MPI on the first host's machine, for all collectives and sizes.
mpi_start() { # openmpi|mpich HOSTS
    local collective size arguments=() common program lines=0 list inside=tcp
    program=$(realpath "$out/bench/mpi_collective.$1")
    for collective in $collectives; do
        for size in $sizes; do
            arguments+=(-c "$collective" -w "$warmup" -n "$(iterations "$size")" "$size")
            lines=$((lines + 1))
        done
    done
    list=$(address_list "$2")
    [ "$each" -eq 1 ] || inside=tcp,vader
    common="cd '$PWD'; export HOME='$work' TMPDIR='$work' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    if [ "$1" = openmpi ]; then
        bounded $lines "$work/agent" $subnet.1 "$common; exec mpirun.openmpi -n $(($2 * each)) --host ${list//,/:$each,}:$each" \
            "--mca plm_rsh_agent '$work/agent' --mca pml ob1 --mca btl $inside,self --mca btl_tcp_if_include eth0" \
            "--mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0 --bind-to none" \
            "'$program' ${arguments[*]}"
    else
        bounded $lines "$work/agent" $subnet.1 "$common UCX_TLS=tcp,self UCX_NET_DEVICES=eth0; exec mpirun.mpich -n $(($2 * each)) -ppn $each" \
            "-launcher rsh -launcher-exec '$work/agent' -iface eth0 -hosts $list" \
            "'$program' ${arguments[*]}"
    fi
}

# The least bytes that all hosts together send per byte of data: no algorithm between hosts needs
# less.
least_bytes() { # COLLECTIVE HOSTS
    if [ "$1" = allreduce ]; then echo $((2 * ($2 - 1))); else echo $(($2 - 1)); fi
}

mpi_run() { # openmpi|mpich HOSTS MTU off|on
    local result=0 before after collective size algbw cpu wrong least=0 lines=0 key
    before=$(links_sent)
    mpi_start "$1" "$2" || result=$?
    after=$(links_sent)
    sweep
    while read -r collective size algbw cpu wrong; do
        lines=$((lines + 1))
        least=$((least + $(least_bytes "$collective" "$2") * size * ($(iterations "$size") + warmup + 1)))
        if [ "$wrong" != 0 ]; then
            say "$1: $wrong wrong elements, $collective of $size bytes"
            [ $status -ne 0 ] || status=1
            continue
        fi
        key="$1 $2 $collective $size $3 $4"
        samples[$key]+=" $algbw"
        costs[$key]+=" $cpu"
    done < <(sed -nE 's/^([a-z-]+) .*bytes=([0-9]+) .*algbw=([0-9.]+) cpu=([0-9.]+) wrong=([0-9]+)$/\1 \2 \3 \4 \5/p' "$work/out")
    # shellcheck disable=SC2086 # lists
    if [ $lines -ne $(($(wc -w <<<$collectives) * $(wc -w <<<$sizes))) ]; then
        failed "$1" "$2 hosts, MTU $3, offload $4, status $result$([ $result -ne 124 ] || echo ", no end in time")"
        return
    fi
    [ $((after - before)) -ge $least ] ||
        failed "$1" "its hosts sent $((after - before)) bytes where at least $least are needed: the data went another way"
}

banyan_ready() {
    local program hosts
    for program in banyan banyan-perf banyan-switchd; do
        [ -x "$out/bin/$program" ] || return 1
    done
    for hosts in $hosts_list; do
        "$out/bin/banyan" topo star --hosts "$hosts" >"$work/star$hosts.json" || return 1
    done
}

# Options for hosts, switches and links of an offload setting.
banyan_words() { # banyan|afxdp MTU off|on
    if [ "$1" = afxdp ]; then
        echo --transport afxdp --driver "$([ "$2" -le 1900 ] && echo af_xdp || echo af_packet)"
    elif [ "$3" = off ]; then
        echo --transport udp --segments cut
    else
        echo --transport udp
    fi
}

# The number that follows a name in $work/flat. The first match counts: the lab's JSON has the value
# that rank 0 computed for all ranks before that of each rank.
number_of() { # PATTERN
    grep -oE "$1" "$work/flat" | head -1 | sed 's/.*://'
}

# One start for each collective and size. The processor time of hosts is that of the timed calls in
# place. That of switches is of all calls: both halves of banyan-perf, each with its warm-up, and
# the checked call.
banyan_run() { # banyan|afxdp HOSTS MTU off|on
    local collective size n result algbw cpu key
    for collective in $collectives; do
        for size in $sizes; do
            n=$(iterations "$size")
            result=0
            # shellcheck disable=SC2046 # words
            bounded 0 "$out/bin/banyan" lab run "$work/star$2.json" --collective "$collective" --bytes "$size" --iters "$n" --warmup $warmup \
                --mtu "$3" $(banyan_words "$1" "$3" "$4") --limit $(($(allowance 1) * 3 / 4)) --json || result=$?
            tr -d ' \n' <"$work/out" >"$work/flat"
            algbw=$(number_of '"inplace":\{[^}]*"algbw":[0-9.eE+-]+')
            if [ $result -eq 1 ]; then
                say "$1: wrong elements, $collective of $size bytes"
                [ $status -ne 0 ] || status=1
            elif [ $result -ne 0 ] || [ -z "$algbw" ]; then
                failed "$1" "$collective, $2 hosts, $size bytes, MTU $3, offload $4, status $result"
            else
                cpu=$(grep -oE '"inplace":\{"time_us":[0-9.]+,"cpu_us":[0-9.]+' "$work/flat" | sed 's/.*://' |
                    awk -v size="$size" -v calls=$((2 * (n + warmup) + 1)) -v switch="$(number_of '"switch_seconds":[0-9.eE+-]+')" \
                        -v kernel="$(number_of '"kernel_seconds":[0-9.eE+-]+')" \
                        'NR > 1 {sum += $1} END {printf "%.4f", (sum * 1e3 + (switch + kernel) * 1e9 / calls) / size}')
                key="$1 $2 $collective $size $3 $4"
                samples[$key]+=" $algbw"
                costs[$key]+=" $cpu"
            fi
        done
    done
}

# The same with several ranks on each host, from the table that banyan-perf prints.
banyan_ranks() { # HOSTS MTU off|on
    local collective size result algbw
    for collective in $collectives; do
        for size in $sizes; do
            result=0
            # shellcheck disable=SC2046 # words
            bounded 0 "$out/bin/banyan" lab run "$work/star$1.json" --mtu "$2" $(banyan_words banyan "$2" "$3") --limit $(($(allowance 1) * 3 / 4)) \
                --ranks-per-host "$each" -- banyan-perf -c "$collective" -b "$size" -e "$size" -n "$(iterations "$size")" -w $warmup || result=$?
            algbw=$(sed -nE "s/^host0\.0: +$collective //p" "$work/out" | awk '{print $11}')
            if [ $result -ne 0 ] || [ -z "$algbw" ] || ! grep -q "$(($1 * each)) ranks on $1 hosts, joined by shared memory" "$work/out"; then
                failed banyan "$collective, $1 hosts with $each ranks, $size bytes, MTU $2, offload $3, status $result"
            else
                samples["banyan $1 $collective $size $2 $3"]+=" $algbw"
            fi
        done
    done
}

# Runs each contender once.
round() {
    local hosts mtu offload
    for hosts in $hosts_list; do
        for mtu in $mtus; do
            for offload in $offloads; do
                if [ "$each" -gt 1 ]; then
                    [ "$banyan" = no ] || banyan_ranks "$hosts" "$mtu" "$offload"
                else
                    [ "$banyan" = no ] || banyan_run banyan "$hosts" "$mtu" "$offload"
                fi
                [ "$banyan" = no ] || [ $afxdp = no ] || [ "$offload" = on ] || banyan_run afxdp "$hosts" "$mtu" off
                links_set "$mtu" "$offload"
                mpi_run openmpi "$hosts" "$mtu" "$offload"
                mpi_run mpich "$hosts" "$mtu" "$offload"
            done
        done
    done
}

median() { # NUMBER...: empty when there is none
    printf '%s\n' "$@" | grep . | sort -g | awk '{v[NR] = $1} END {if (NR) printf "%.6f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

row() { # HOSTS COLLECTIVE SIZE MTU OFFLOAD
    local name key cells=()
    for name in banyan afxdp openmpi mpich; do
        key="$name $*"
        # shellcheck disable=SC2086 # lists of numbers
        cells+=("$(median ${samples[$key]:-})" "$(median ${costs[$key]:-})")
    done
    awk -v hosts="$1" -v collective="$2" -v size="$(numfmt --to=iec "$3")" -v mtu="$4" -v offload="$5" -v afxdp=$afxdp \
        -v b="${cells[0]}" -v bc="${cells[1]}" -v a="${cells[2]}" -v ac="${cells[3]}" \
        -v o="${cells[4]}" -v oc="${cells[5]}" -v m="${cells[6]}" -v mc="${cells[7]}" '
        function cell(value, digits) { return value == "" ? "-" : sprintf("%." digits "f", value) }
        function more(value) { return afxdp == "yes" ? sprintf(" %8s", value) : "" }
        BEGIN {
            best = o + 0 > m + 0 ? o + 0 : m + 0
            printf " %5s %-14s %5s %5s %7s  %7s%s %8s %7s  %8s  %7s%s %8s %7s\n", hosts, collective, size, mtu, offload,
                   cell(b, 3), more(cell(a, 3)), cell(o, 3), cell(m, 3), b == "" || best == 0 ? "-" : sprintf("%.2f", b / best),
                   cell(bc, 1), more(cell(ac, 1)), cell(oc, 1), cell(mc, 1)
        }'
}

table() { # ROUNDS
    local hosts collective size mtu offload more=
    [ $afxdp = no ] || more=$(printf ' %8s' AF_XDP)
    echo "# f32, in place, one call at a time, hosts on one switch, ranks on each: $each, all on $(nproc) cores; median of rounds: $1"
    printf '#%5s %-14s %5s %5s %7s  %-32s  %8s  %s\n' "" "" "" "" "" "algbw, GB/s" ratio "processor time, ns for a byte"
    printf '#%5s %-14s %5s %5s %7s  %7s%s %8s %7s  %8s  %7s%s %8s %7s\n' \
        hosts "" size MTU offload banyan "$more" "Open MPI" MPICH "to best" banyan "$more" "Open MPI" MPICH
    for hosts in $hosts_list; do
        for collective in $collectives; do
            for mtu in $mtus; do
                for offload in $offloads; do
                    for size in $sizes; do
                        row "$hosts" "$collective" "$size" "$mtu" "$offload"
                    done
                done
            done
        done
    done
}

# Checks that each cell of the table has a figure.
complete() {
    local hosts collective size mtu offload name
    for hosts in $hosts_list; do
        for collective in $collectives; do
            for size in $sizes; do
                for mtu in $mtus; do
                    for offload in $offloads; do
                        for name in openmpi mpich $([ "$banyan" = no ] || echo banyan); do
                            [ -n "${samples["$name $hosts $collective $size $mtu $offload"]:-}" ] || return 1
                        done
                    done
                done
            done
        done
    done
}

main() {
    local signal ns count=0 longest=0 start spent
    arguments "$@"
    [ "$(id -u)" -eq 0 ] || refuse 77 "network namespaces need root"
    for signal in INT:130 TERM:143 HUP:129; do
        # shellcheck disable=SC2064 # the status is known now
        trap "exit ${signal#*:}" "${signal%:*}"
    done
    trap cleanup EXIT
    work=$(mktemp -d) || refuse 3 "no folder for temporary files"
    for ns in $(ip netns list | cut -d' ' -f1 | sed -nE 's/^(bybm[0-9]+)-.*/\1/p' | sort -u); do # left by a start that was killed
        kill -0 "${ns#bybm}" 2>/dev/null || (prefix=$ns work='' child='' && cleanup)
    done
    compile
    banyan=yes
    if ! banyan_ready; then
        banyan=no
        echo "# banyan is left out: $out/bin lacks banyan, banyan-perf or banyan-switchd; build them with make"
    fi
    agent_write
    links_up
    while [ $count -lt "$rounds" ]; do
        start=$(date +%s)
        [ $count -eq 0 ] || [ $((start - began + longest)) -le "$limit" ] || break
        say "round $((count + 1)) of at most $rounds"
        round
        spent=$(($(date +%s) - start))
        [ $spent -le $longest ] || longest=$spent
        count=$((count + 1))
    done
    table $count
    [ $failures -eq 0 ] || echo "# $failures starts failed and are left out"
    complete || status=3
    exit $status
}

main "$@"
