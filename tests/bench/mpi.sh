#!/usr/bin/env bash
# Allreduce of banyan's lab beside Open MPI and MPICH, in one run, interleaved, over the same kind of veth links.
#
#   mpi.sh [--hosts N] [--bytes LIST] [--mtu LIST] [--rounds N] [--limit SECONDS]
#
# The MPIs run on a star: a network namespace for each host, a veth pair from each into one namespace that holds a Linux
# bridge. Ranks are started without SSH, by an agent that enters the host's namespace under a host name of its own, so that
# each rank is a machine for the MPI. Shared memory is switched off (left alone, MPICH's UCX finds it in spite of the namespaces), and
# the bytes on the links are counted to prove that the data went over them. Segmentation offload (tso, gso, gro) is off, then on,
# at both ends of each link. banyan builds its star itself (`banyan lab run`), with the same MTU and the same offload: off, each of its packets
# crosses each link alone; on, hosts over UDP and switches hand them over in trains (--driver gso), as the MPIs' TCP does. AF_XDP knows
# single frames only: both rows show the same figure.
#
# All time calls in place, one after another, and check every element of another call on fresh data. Prints one table: algbw in
# GB/s, the median of the rounds. A round runs each contender once; the first always runs, others while they fit in the limit. A start that
# fails is told of and left out; the table needs one of each.
# Needs root. Exit 0; 1 wrong sums; 2 bad usage; 3 something never ran; 77 cannot run here.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3

hosts=4
sizes=16M
mtus=1500,9000
rounds=5
limit=330
warmup=1
run_limit=60 # seconds for one start of one contender, less when the whole would take longer than the limit
least_limit=5
failures=0
out=${O:-build}
prefix=bybm$$
subnet=198.18.77
began=$(date +%s)
work=
child=
status=0
declare -A samples # "contender size mtu offload" -> algbw of each round
declare -A spread  # "contender" -> bytes that a host sent for a byte of data, of each start

usage() {
    echo "usage: mpi.sh [--hosts 2..32] [--bytes 1M,16M] [--mtu 1500,9000] [--rounds N] [--limit SECONDS]"
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

arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --help) usage && exit 0 ;;
        --hosts | --bytes | --mtu | --rounds | --limit) [ $# -ge 2 ] || refuse 2 "$1: its value is missing" ;;
        *) usage >&2 && refuse 2 "unknown argument '$1'" ;;
        esac
        case $1 in
        --hosts) whole "$1" "$2" 2 32 && hosts=$2 ;;
        --bytes) sizes=$2 ;;
        --mtu) mtus=$2 ;;
        --rounds) whole "$1" "$2" 1 1000 && rounds=$2 ;;
        --limit) whole "$1" "$2" 1 86400 && limit=$2 ;;
        esac
        shift 2
    done
    local list=$sizes size bytes mtu
    sizes=()
    for size in ${list//,/ }; do
        bytes=$(numfmt --from=iec "$size" 2>/dev/null) || refuse 2 "--bytes $size: sizes such as 1M,16M are wanted"
        whole --bytes "$bytes" 4 536870912
        sizes+=($((bytes / 4 * 4)))
    done
    list=$mtus
    mtus=()
    for mtu in ${list//,/ }; do
        whole --mtu "$mtu" 1500 9000
        mtus+=("$mtu")
    done
    [ ${#sizes[@]} -gt 0 ] || refuse 2 "--bytes wants at least one size"
    [ ${#mtus[@]} -gt 0 ] || refuse 2 "--mtu wants at least one value"
}

# What cleanup must undo is named by the prefix alone: whatever runs in these namespaces was started by this script.
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

# Ends what a start left in the namespaces of this script.
sweep() {
    local ns pid
    for ns in $(namespaces "$prefix"); do
        for pid in $(ip netns pids "$ns"); do
            kill -KILL "$pid" 2>/dev/null
        done
    done
}

# Seconds that a start may take now.
allowance() {
    local left=$((began + limit - $(date +%s)))
    [ $left -lt $run_limit ] || left=$run_limit
    [ $left -gt $least_limit ] || left=$least_limit
    echo $left
}

# Runs a command with its own time limit such that a signal to this script ends it at once; output to $work/out and $work/err. Once
# it has printed so many lines of results it has a second to end, then is ended: MPICH 4.0 over UCX's TCP does not always
# return from MPI_Finalize.
bounded() { # LINES (0: it ends by itself) COMMAND...
    local lines=$1 result=0 polls=0
    shift
    timeout --kill-after=10 "$(allowance)" "$@" >"$work/out" 2>"$work/err" </dev/null &
    child=$!
    { # the shell itself would tell of one that a signal ended
        while [ "$lines" -gt 0 ] && kill -0 "$child" && [ $polls -lt 6 ]; do
            [ "$(grep -c '^mpi_allreduce ' "$work/out")" -lt "$lines" ] || polls=$((polls + 1))
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
        mpicc.$mpi -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -o "$out/bench/mpi_allreduce.$mpi" tests/bench/mpi_allreduce.c ||
            refuse 3 "mpicc.$mpi does not build tests/bench/mpi_allreduce.c"
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
    for ((i = 1; i <= hosts; i++)); do
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
    for ((i = 1; i <= hosts; i++)); do
        must ip -n "$prefix-sw" link set "p$i" mtu "$1"
        must ip -n "$prefix-h$i" link set eth0 mtu "$1"
        must ip netns exec "$prefix-sw" ethtool -K "p$i" tso "$2" gso "$2" gro "$2" >/dev/null
        must ip netns exec "$prefix-h$i" ethtool -K eth0 tso "$2" gso "$2" gro "$2" >/dev/null
    done
    must ip -n "$prefix-sw" link set br0 mtu "$1"
}

# Bytes that all hosts have sent.
links_sent() {
    ip netns exec "$prefix-sw" sh -c 'cat /sys/class/net/p[0-9]*/statistics/rx_bytes' | awk '{sum += $1} END {printf "%.0f", sum}'
}

# The launchers call AGENT ADDRESS WORD...; like rsh, it gives the joined words to a shell there.
agent_write() {
    cat >"$work/agent" <<AGENT
#!/bin/sh
index=\${1##*.}
shift
exec ip netns exec $prefix-h\$index unshare --uts sh -c 'echo h'\$index' >/proc/sys/kernel/hostname; exec sh -c "\$1"' agent "\$*"
AGENT
    chmod 700 "$work/agent"
}

# Operations for a size: about 32 MB of data, so that small sizes are timed long enough and large ones do not take for ever.
iterations() {
    local n=$((33554432 / $1))
    [ $n -ge 3 ] || n=3
    [ $n -le 32 ] || n=32
    echo $n
}

address_list() {
    local i list=$subnet.1
    for ((i = 2; i <= hosts; i++)); do
        list=$list,$subnet.$i
    done
    echo "$list"
}

# One start of one MPI on the first host's machine, all sizes.
mpi_start() { # openmpi|mpich
    local size arguments=() common program
    program=$(realpath "$out/bench/mpi_allreduce.$1")
    for size in "${sizes[@]}"; do
        arguments+=(-w "$warmup" -n "$(iterations "$size")" "$size")
    done
    common="cd '$PWD'; export HOME='$work' TMPDIR='$work' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    if [ "$1" = openmpi ]; then
        bounded ${#sizes[@]} "$work/agent" $subnet.1 "$common; exec mpirun.openmpi -n $hosts --host $(address_list)" \
            "--mca plm_rsh_agent '$work/agent' --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0" \
            "--mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --mca btl_base_warn_component_unused 0 --bind-to none" \
            "'$program' ${arguments[*]}"
    else
        bounded ${#sizes[@]} "$work/agent" $subnet.1 "$common UCX_TLS=tcp,self UCX_NET_DEVICES=eth0; exec mpirun.mpich -n $hosts -ppn 1" \
            "-launcher rsh -launcher-exec '$work/agent' -iface eth0 -hosts $(address_list)" \
            "'$program' ${arguments[*]}"
    fi
}

mpi_run() { # openmpi|mpich MTU off|on
    local result=0 before after size algbw wrong data=0 least lines=0
    before=$(links_sent)
    mpi_start "$1" || result=$?
    after=$(links_sent)
    sweep
    while read -r size algbw wrong; do
        lines=$((lines + 1))
        data=$((data + size * ($(iterations "$size") + warmup + 1)))
        if [ "$wrong" != 0 ]; then
            say "$1: $wrong wrong elements at $size bytes"
            [ $status -ne 0 ] || status=1
            continue
        fi
        samples["$1 $size $2 $3"]+=" $algbw"
    done < <(sed -nE 's/^mpi_allreduce .*bytes=([0-9]+) .*algbw=([0-9.]+) wrong=([0-9]+)$/\1 \2 \3/p' "$work/out")
    if [ $lines -ne ${#sizes[@]} ]; then
        failed "$1" "MTU $2, offload $3, status $result$([ $result -ne 124 ] || echo ", no end in time")"
        return
    fi
    # No allreduce among hosts sends less than 2 (N - 1) / N of the data a host; less means that it did not use these links.
    least=$((data * 2 * (hosts - 1)))
    [ $((after - before)) -ge $least ] ||
        failed "$1" "its hosts sent $((after - before)) bytes where an allreduce needs $least: the data went another way"
    spread[$1]+=" $(awk -v sent=$((after - before)) -v data=$((data * hosts)) 'BEGIN {printf "%.3f", sent / data}')"
}

banyan_ready() {
    local program
    for program in banyan banyan-perf banyan-switchd; do
        [ -x "$out/bin/$program" ] || return 1
    done
    "$out/bin/banyan" topo star --hosts "$hosts" >"$work/star.json"
}

# The switches' driver: trains of frames, or what banyan-switchd chooses by itself for single ones.
banyan_driver() { # afxdp|udp MTU off|on
    if [ "$1" = udp ] && [ "$3" = on ]; then
        echo gso
    elif [ "$2" -le 1900 ]; then
        echo af_xdp
    else
        echo af_packet
    fi
}

# One start for each size. In the lab's JSON the first `inplace` is what rank 0 found for the slowest rank; `ab` of a link is what its
# host sent: both halves of banyan-perf, each with its warm-up, and the call that is checked.
banyan_run() { # afxdp|udp MTU off|on
    local size n result algbw sent=0 data=0
    for size in "${sizes[@]}"; do
        n=$(iterations "$size")
        result=0
        bounded 0 "$out/bin/banyan" lab run "$work/star.json" --collective allreduce --bytes "$size" --iters "$n" --warmup $warmup \
            --mtu "$2" --transport "$1" --driver "$(banyan_driver "$@")" --limit $(($(allowance) * 3 / 4)) --json || result=$?
        tr -d ' \n' <"$work/out" >"$work/flat"
        algbw=$(grep -oE '"inplace":\{[^}]*"algbw":[0-9.eE+-]+' "$work/flat" | head -1 | sed 's/.*://')
        if [ $result -eq 1 ]; then
            say "banyan over $1: wrong elements at $size bytes"
            [ $status -ne 0 ] || status=1
        elif [ $result -ne 0 ] || [ -z "$algbw" ]; then
            failed "banyan over $1" "$size bytes, MTU $2, offload $3, status $result"
        else
            samples["$1 $size $2 $3"]+=" $algbw"
            sent=$((sent + $(grep -oE '"ab":\{"counted":[0-9]+' "$work/flat" | sed 's/.*://' | awk '{s += $1} END {printf "%.0f", s}')))
            data=$((data + size * (2 * (n + warmup) + 1)))
        fi
    done
    [ $data -eq 0 ] || spread[$1]+=" $(awk -v sent=$sent -v data=$((data * hosts)) 'BEGIN {printf "%.3f", sent / data}')"
}

# Each contender once.
round() {
    local mtu offload
    for mtu in "${mtus[@]}"; do
        [ "$banyan" = no ] || banyan_run afxdp "$mtu" off
        for offload in off on; do
            [ "$banyan" = no ] || banyan_run udp "$mtu" $offload
            links_set "$mtu" $offload
            mpi_run openmpi "$mtu" $offload
            mpi_run mpich "$mtu" $offload
        done
    done
}

median() { # NUMBER...: empty when there is none
    printf '%s\n' "$@" | grep . | sort -g | awk '{v[NR] = $1} END {if (NR) printf "%.6f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

row() { # SIZE MTU OFFLOAD
    local name cells=()
    for name in "afxdp $1 $2 off" "udp $1 $2 $3" "openmpi $1 $2 $3" "mpich $1 $2 $3"; do
        # shellcheck disable=SC2086 # a list of numbers
        cells+=("$(median ${samples[$name]:-})")
    done
    awk -v size="$(numfmt --to=iec "$1")" -v mtu="$2" -v offload="$3" \
        -v a="${cells[0]}" -v u="${cells[1]}" -v o="${cells[2]}" -v m="${cells[3]}" '
        function cell(value) { return value == "" ? "-" : sprintf("%.3f", value) }
        function ratio(value, best) { return value == "" || best == 0 ? "-" : sprintf("%.2f", value / best) }
        BEGIN {
            best = o + 0 > m + 0 ? o + 0 : m + 0
            ours = a + 0 > u + 0 ? a + 0 : u + 0
            printf " %7s %6s %8s  %9s %9s  %9s %9s  %9s %9s %9s\n", size, mtu, offload, cell(a), cell(u), cell(o), cell(m),
                   ratio(a, best), ratio(u, best), ratio(ours, best)
        }'
}

table() { # ROUNDS
    local size mtu offload name
    echo "# allreduce, f32 sum, in place, one call at a time, $hosts hosts on one switch, all on $(nproc) cores;" \
        "algbw in GB/s, median of rounds: $1"
    printf '#%7s %6s %8s  %9s %9s  %9s %9s  %9s %9s %9s\n' "" "" "" banyan banyan "" "" afxdp/ udp/ better/ \
        size MTU offload AF_XDP UDP "Open MPI" MPICH "best MPI" "best MPI" "best MPI"
    for size in "${sizes[@]}"; do
        for mtu in "${mtus[@]}"; do
            for offload in off on; do
                row "$size" "$mtu" $offload
            done
        done
    done
    for name in afxdp udp openmpi mpich; do
        # shellcheck disable=SC2086 # a list of numbers
        [ -z "${spread[$name]:-}" ] || printf '# %s: a host sent %.3f bytes for a byte of data\n' $name "$(median ${spread[$name]})"
    done
}

# Each cell of the table has a figure.
complete() {
    local size mtu offload name contenders="openmpi mpich"
    [ "$banyan" = no ] || contenders+=" udp"
    for size in "${sizes[@]}"; do
        for mtu in "${mtus[@]}"; do
            [ "$banyan" = no ] || [ -n "${samples["afxdp $size $mtu off"]:-}" ] || return 1
            for offload in off on; do
                for name in $contenders; do
                    [ -n "${samples["$name $size $mtu $offload"]:-}" ] || return 1
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
