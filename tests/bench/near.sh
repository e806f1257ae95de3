#!/usr/bin/env bash
# Single calls of MPI programs whose ranks all run on this machine: the MPI's own shared memory, and
# banyan's (banyan-run with BANYAN_FALLBACK, without switches), one after the other.
#   near.sh [BUILD]     RANKS="2 4 8" MPIS="openmpi mpich" COLLECTIVES="allreduce ..." ROUNDS=3
#                       LEAST=8 MOST=1048576 TIMES=300
# Prints the median time in us of each, and the ratio, of medians of the rounds. A call is timed from
# a barrier until the slowest rank returns, on fresh data that are checked. Exit 77: cannot run here.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
read -ra collectives <<<"${COLLECTIVES:-allreduce reduce broadcast allgather alltoall scatter gather barrier}"
dir=$(mktemp -d -t banyan-near-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 BANYAN_FALLBACK=circulant
status=0
first="chrt -r 1" # other programs of this machine affect only memory

run() { # MPI RANKS COLLECTIVE [banyan-run]
    local launcher=(mpirun.mpich) least=${LEAST:-8} most=${MOST:-1048576}
    # With more ranks than processors, MPICH's ranks poll for whole time slices without this library.
    local idle=$dir/idle.so
    [ "$1" != openmpi ] || idle='' launcher=(mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1)
    [ "$3" != barrier ] || least=0 most=0
    [ "$least" -eq 0 ] || [ "$least" -ge $((4 * $2)) ] || least=$((4 * $2)) # a share of four bytes
    LD_PRELOAD=$idle timeout 120 $first ${4:+"$build/bin/$4"} "${launcher[@]}" -n "$2" "$dir/latency.$1" "$3" "$least" "$most" "${TIMES:-300}" 2>>"$dir/err"
}
cc -O2 -shared -fPIC -o "$dir/idle.so" tests/lab/mpi/idle.c || exit 1
for mpi in ${MPIS:-openmpi mpich}; do
    command -v "mpicc.$mpi" >/dev/null || { echo "near.sh: skipped: no mpicc.$mpi (tests/deps.sh bench)" >&2; exit 77; }
    "mpicc.$mpi" -O2 -o "$dir/latency.$mpi" tests/bench/mpi_latency.c || exit 1
    for ranks in ${RANKS:-2 4 8}; do
        for collective in "${collectives[@]}"; do
            : >"$dir/own"
            : >"$dir/banyan"
            for ((round = 0; round < ${ROUNDS:-3}; round++)); do
                run "$mpi" "$ranks" "$collective" >>"$dir/own" && run "$mpi" "$ranks" "$collective" banyan-run >>"$dir/banyan" || status=1
            done
            ! grep -h WRONG "$dir/own" "$dir/banyan" || status=1
            awk -v what="$mpi, $ranks ranks, $collective" '
                function median(list, values, n, i, j, t) {
                    n = split(list, values, " ")
                    for (i = 2; i <= n; i++) for (j = i; j > 1 && values[j] + 0 < values[j - 1] + 0; j--) { t = values[j]; values[j] = values[j - 1]; values[j - 1] = t }
                    return values[int((n + 1) / 2)]
                }
                NR == FNR { own[$2] = own[$2] " " $3; if (!($2 in seen)) { seen[$2]; size[++count] = $2 } next }
                { ours[$2] = ours[$2] " " $3 }
                END {
                    for (i = 1; i <= count; i++) {
                        m = median(own[size[i]]); b = median(ours[size[i]])
                        printf "%-36s %8d bytes: %9.1f us, banyan %9.1f us, ratio %.2f\n", what, size[i], m, b, (b > 0 ? m / b : 0)
                    }
                }' "$dir/own" "$dir/banyan"
        done
    done
done
[ $status -eq 0 ] || tail -n 3 "$dir/err" >&2
exit $status
