#!/usr/bin/env bash
# Collectives between 8 hosts without switches, all on the loopback interface of their own network,
# interleaved: hosts.sh BUILD
# Contenders: libbanyan's three schedules and, if installed, Open MPI over TCP (shared memory off).
# Prints algbw in GB/s of calls in place, the median of the rounds, the ratios of the default
# schedule (circulant) and of the fastest of the three to Open MPI, and their geometric means. The
# environment may set ROUNDS (5), SIZES and COLLECTIVES. Exit 0; 1 something failed; 77 cannot run
# here.
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
read -ra sizes <<<"${SIZES:-1024 16384 65536 262144 1048576 4194304 16777216 67108864}"
read -ra collectives <<<"${COLLECTIVES:-broadcast allreduce reduce-scatter allgather}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
port=29500

iterations() { echo $(($1 > 33554432 ? 3 : $1 > 1048576 ? 10 : $1 > 65536 ? 40 : 400)); } # of BYTES

banyan_ranks() { # WAY COLLECTIVE BYTES
    local rank pids=() status=0
    port=$((port + 1))
    for ((rank = 0; rank < ranks; rank++)); do
        RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port BANYAN_LOG=0 BANYAN_FALLBACK=$1 \
            "$build/bin/banyan-perf" -c "$2" -b "$3" -e "$3" -n "$(iterations "$3")" -w 1 >"$work/out.$rank" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    awk -v name="$2" '$1 == name {print $12}' "$work/out.0"
    return $status
}
open_mpi() { # COLLECTIVE BYTES
    mpirun.openmpi --allow-run-as-root --oversubscribe -n $ranks --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include lo \
        --mca mpi_yield_when_idle 1 "$work/mpi_collective" -c "$1" -n "$(iterations "$2")" "$2" 2>"$work/err" |
        sed -nE 's/^.* algbw=([0-9.]+) .* wrong=0$/\1/p'
}
contenders=(circulant ring rhd)
if mpicc.openmpi -O2 -o "$work/mpi_collective" tests/bench/mpi_collective.c 2>"$work/err"; then contenders+=(openmpi); fi

median() { sort -g | awk '{v[NR] = $1} END {if (NR) printf "%.6f", v[int((NR + 1) / 2)]}'; }
printf '# %-14s %9s' collective bytes
printf ' %9s' "${contenders[@]}" circulant fastest
printf '   GB/s; relative to Open MPI\n'
status=0
for collective in "${collectives[@]}"; do
    for size in "${sizes[@]}"; do
        rm -f "$work"/median.*
        for ((round = 0; round < rounds; round++)); do
            for contender in "${contenders[@]}"; do
                if [ "$contender" = openmpi ]; then open_mpi "$collective" "$size"; else banyan_ranks "$contender" "$collective" "$size"; fi >>"$work/median.$contender" || status=1
            done
        done
        for contender in "${contenders[@]}"; do
            echo "$contender $(median <"$work/median.$contender")"
        done | awk -v name="$collective" -v bytes="$size" '
            {rate[$1] = $2; row = row sprintf(" %9.4f", $2)}
            END {
                best = rate["circulant"] > rate["ring"] ? rate["circulant"] : rate["ring"]
                best = best > rate["rhd"] ? best : rate["rhd"]
                if (rate["openmpi"] > 0) row = row sprintf(" %9.2f %9.2f", rate["circulant"] / rate["openmpi"], best / rate["openmpi"])
                printf "  %-14s %9d%s\n", name, bytes, row
            }' | tee -a "$work/table"
    done
done
awk 'NF == 8 && $7 > 0 {n++; a += log($7); b += log($8); if (!least || $7 < least) least = $7; if (!low || $8 < low) low = $8}
    END {if (n) printf "# geometric means and least ratios: circulant %.2f, %.2f; the fastest %.2f, %.2f\n", exp(a / n), least, exp(b / n), low}' "$work/table"
exit $status
