#!/usr/bin/env bash
# Broadcasts between 8 hosts, each in its own namespace, interleaved: broadcast.sh BUILD
# Contenders: circulant schedules between hosts over TCP, Open MPI over TCP on the same links, and
# trees over UDP through a switch. Segmentation offload is off for all (OFFLOAD=on leaves it on):
# frames of 1500 bytes, as on a wire. Prints algbw in GB/s, the median of ROUNDS rounds (3); the
# ratios to Open MPI, each the median of the rounds' ratios; and the ranks' processor time over TCP
# as a ratio to that over trees. SIZES and CONTENDERS select a part. Exit 0; 1 something failed; 77
# cannot run here.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh bench-broadcast "${1:-build/release}"
[ "$(id -u)" -eq 0 ] || { echo "needs root, for namespaces"; exit 77; }
command -v mpirun.openmpi >/dev/null || { echo "Open MPI is missing: make mpi"; exit 77; }
hosts=8
rounds=${ROUNDS:-3}
read -ra sizes <<<"${SIZES:-16384 65536 1048576 8388608}"
read -ra contenders <<<"${CONTENDERS:-tcp openmpi trees}"
# shellcheck disable=SC2317
cleanup_more() { down_of "$dir/up.out"; outside_down; }

"$banyan" topo star --hosts $hosts >"$dir/star.json"
"$banyan" lab up "$dir/star.json" >"$dir/up.out" 2>&1 || { cat "$dir/up.out"; exit 1; }
id=$(id_of "$dir/up.out")
folder=/run/banyan/lab-$id
outside_up "$id" $hosts || exit 1
for ((i = 0; i < hosts; i++)); do
    [ "${OFFLOAD:-off}" = on ] || ip netns exec "lab-$id-host$i" ethtool -K out0 tso off gso off gro off tx-udp-segmentation off >/dev/null 2>&1
done
launch_agent "$id" $hosts
mpicc.openmpi -O2 -o "$dir/mpi_collective" tests/bench/mpi_collective.c || exit 1
port=29000

perf() { # SIZE ITERATIONS ENVIRONMENT...: one process for each host; rank 0's algbw
    local size=$1 iterations=$2 i pids=() status=0
    shift 2
    for ((i = 0; i < hosts; i++)); do
        ip netns exec "lab-$id-host$i" env BANYAN_LOG=0 RANK=$i "$@" BANYAN_TABLE="$folder/host$i.table" "$build/bin/banyan-perf" -c broadcast -d u8 \
            -b "$size" -e "$size" -n "$iterations" -w 2 >"$dir/out.$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || status=1; done
    [ $status -eq 0 ] || cat "$dir"/out.* >&2
    awk '$1 == "broadcast" {print $8}' "$dir/out.0"
}
# of CONTENDER SIZE ITERATIONS
of() {
    case $1 in
    tcp)
        port=$((port + 1))
        perf "$2" "$3" BANYAN_OFFLOAD=off WORLD_SIZE=$hosts MASTER_ADDR=$subnet.1 MASTER_PORT=$port
        ;;
    trees)
        "$banyan" push --renew "$folder" --sockets "$folder" >"$dir/push.out" 2>&1 || cat "$dir/push.out" >&2
        perf "$2" "$3" BANYAN_TRANSPORT=udp
        ;;
    openmpi)
        "$dir/agent" $subnet.1 "export HOME='$dir' TMPDIR='$dir' OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; exec mpirun.openmpi -n $hosts \
--host $(address_list $hosts) --mca plm_rsh_agent '$dir/agent' --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include out0 --mca oob_tcp_if_include out0 \
--mca mpi_yield_when_idle 1 --bind-to none '$dir/mpi_collective' -c broadcast -n $3 $2" 2>"$dir/mpi.err" </dev/null | sed -nE 's/^broadcast .*algbw=([0-9.]+) .*/\1/p'
        ;;
    esac
}
# The processor time in seconds of the processes for which this shell has waited; a subshell counts
# its own.
spent() {
    times >"$dir/times"
    awk 'NR == 2 {split($1, u, /[ms]/); split($2, s, /[ms]/); print 60 * (u[1] + s[1]) + u[2] + s[2]}' "$dir/times"
}
median() { sort -g "$1" | awk '{v[NR] = $1} END {if (NR) printf "%.4f", v[int((NR + 1) / 2)]; else printf "-"}'; }
# ratio WHO OTHER SIZE: the median of the rounds' ratios
ratio() {
    [ -e "$dir/$1.$3" ] && [ -e "$dir/$2.$3" ] || { printf -- -; return; }
    paste "$dir/$1.$3" "$dir/$2.$3" | awk '$2 > 0 {print $1 / $2}' >"$dir/ratios"
    median "$dir/ratios"
}
status=0
printf '%10s' bytes
printf ' %9s' "${contenders[@]}"
printf '   GB/s; ratios tcp/openmpi, trees/openmpi; processor time tcp/trees\n'
for size in "${sizes[@]}"; do
    iterations=$((size <= 65536 ? 50 : 8))
    for ((round = 0; round < rounds; round++)); do
        for who in "${contenders[@]}"; do
            value=$(of "$who" "$size" $iterations; spent >>"$dir/$who-time.$size")
            [ -n "$value" ] || { status=1; value=0; }
            echo "$value" >>"$dir/$who.$size"
        done
    done
    printf '%10d' "$size"
    for who in "${contenders[@]}"; do printf ' %9s' "$(median "$dir/$who.$size")"; done
    printf '   %s %s; %s\n' "$(ratio tcp openmpi "$size")" "$(ratio trees openmpi "$size")" "$(ratio tcp-time trees-time "$size")"
done
exit $status
