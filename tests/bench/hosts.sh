#!/usr/bin/env bash
# Broadcasts between 8 hosts without offload, all on the loopback interface of their own network,
# interleaved: hosts.sh BUILD
# Contenders: libbanyan's three schedules and, if installed, Open MPI over TCP (shared memory off).
# Prints algbw in GB/s, the median of the rounds. Exit 0; 1 something failed; 77 cannot run here.
set -uo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
if [ -z "${BY_BENCH_INSIDE:-}" ]; then
    if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then
        echo "needs root, for a network of its own"
        exit 77
    fi
    BY_BENCH_INSIDE=1 exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$0" "$build"
fi
ranks=8
rounds=${ROUNDS:-5}
iterations=10
sizes=(1024 65536 1048576 16777216)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=29500

banyan_ranks() { # WAY SIZE
    local rank pids=() status=0
    port=$((port + 1))
    for ((rank = 0; rank < ranks; rank++)); do
        RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port BANYAN_LOG=0 BANYAN_FALLBACK=$1 \
            "$build/bin/banyan-perf" -c broadcast -d u8 -b "$2" -e "$2" -n $iterations -w 1 >"$work/out.$rank" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    awk '$1 == "broadcast" {print $8}' "$work/out.0"
    return $status
}
open_mpi() { # SIZE
    mpirun.openmpi --allow-run-as-root --oversubscribe -n $ranks --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include lo \
        --mca mpi_yield_when_idle 1 "$work/mpi_collective" -c broadcast -n $iterations "$1" 2>"$work/err" |
        sed -nE 's/^broadcast .*algbw=([0-9.]+) .*/\1/p'
}
contenders=(circulant ring rhd)
if mpicc.openmpi -O2 -o "$work/mpi_collective" tests/bench/mpi_collective.c 2>"$work/err"; then contenders+=(openmpi); fi

median() { sort -g | awk '{v[NR] = $1} END {if (NR) printf "%.3f", v[int((NR + 1) / 2)]}'; }
printf '%10s' bytes
printf ' %10s' "${contenders[@]}"
printf '   GB/s\n'
status=0
for size in "${sizes[@]}"; do
    for ((round = 0; round < rounds; round++)); do
        for who in "${contenders[@]}"; do
            if [ "$who" = openmpi ]; then open_mpi "$size"; else banyan_ranks "$who" "$size"; fi >>"$work/$who.$size" || status=1
        done
    done
    printf '%10d' "$size"
    for who in "${contenders[@]}"; do
        printf ' %10s' "$(median <"$work/$who.$size")"
    done
    printf '\n'
done
exit $status
