#!/usr/bin/env bash
# Allreduce of 4 ranks in the memory of one machine: without a switch ("single": ranks that meet,
# without a table), and over one with which hosts share memory (--transport shm; "switch", and
# "copied" with buffers that are not from banyan_alloc, BANYAN_ARENA=0), compared on the same cores
# with Open MPI's own shared memory and its TCP with all offloads on (the loopback interface, where
# segments of 64 KB are passed by reference). Also the time of one packet over a cable of memory
# between two processes (bench-cable).
#   memory.sh [BUILD]      BUILD: folder with bin/ and tools/ (default build/release). BENCH_ROUNDS
#                          (default 3), BENCH_BYTES (default "1K 64K 1M 4M 16M 64M"). Exit 77:
#                          cannot run here.
# All contenders time calls in place, one after another, on data that are checked. A round runs each
# contender once; the output is the median time of a call. All contenders have priority over other
# programs of this machine (real-time class, round robin), so that other load affects only memory;
# four or five processes share its cores.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
rounds=${BENCH_ROUNDS:-3}
sizes=${BENCH_BYTES:-1K 64K 1M 4M 16M 64M}
port=29600
first="chrt -r 1"
[ "$(id -u)" -eq 0 ] || { echo "memory.sh: skipped: namespaces need root" >&2; exit 77; }
for program in mpicc.openmpi mpirun.openmpi; do
    command -v $program >/dev/null || { echo "memory.sh: skipped: no $program (tests/deps.sh bench)" >&2; exit 77; }
done
dir=$(mktemp -d -t banyan-memory-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
mpicc.openmpi -O2 -o "$dir/mpi_collective" tests/bench/mpi_collective.c || exit 1
"$build/bin/banyan" topo star --hosts 4 >"$dir/star.json" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
declare -A samples

# Each function prints "GB/s microseconds" of one start.
banyan() { # ARENA-MIB SIZE ITERATIONS
    BANYAN_ARENA=$1 timeout 120 $first "$build/bin/banyan" lab run "$dir/star.json" --transport shm --window 128 -c allreduce -b "$2" -n "$3" -w 2 2>"$dir/err" |
        awk '$1 == "allreduce" && NF > 12 && $14 == 0 {print $12, $11}'
}
single() { # SIZE ITERATIONS
    local rank pids=() status=0
    port=$((port + 1))
    for rank in 0 1 2 3; do
        RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port BANYAN_LOG=0 timeout 120 $first "$build/bin/banyan-perf" \
            -c allreduce -b "$1" -n "$2" -w 2 >"$dir/single.$rank" 2>>"$dir/err" &
        pids+=("$!")
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    [ $status -ne 0 ] || awk '$1 == "allreduce" && NF > 12 && $14 == 0 {print $12, $11}' "$dir/single.0"
}
openmpi() { # BTL SIZE ITERATIONS
    timeout 120 $first mpirun.openmpi --oversubscribe -np 4 --mca pml ob1 --mca btl "$1,self" --mca btl_tcp_if_include lo --mca mpi_yield_when_idle 1 \
        "$dir/mpi_collective" -c allreduce -w 2 -n "$3" "$(numfmt --from=iec "$2")" 2>"$dir/err" |
        sed -nE 's/.*time_us=([0-9.]+) algbw=([0-9.]+) .*wrong=0.*/\2 \1/p'
}
median() { tr ' ' '\n' | grep . | sort -n | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]; else print "nan"}'; }
run() { # NAME SIZE COMMAND...
    local name=$1 size=$2 got
    shift 2
    got=$("$@") || true
    [ -n "$got" ] || { echo "memory.sh: $name at $size gave nothing: $(tail -n 2 "$dir/err")" >&2; return; }
    samples[$name.$size]+=" ${got% *}"
    samples[$name.$size.us]+=" ${got#* }"
}
of() { echo "${samples[$1]:-}" | median; }

for ((round = 0; round < rounds; round++)); do
    for size in $sizes 8; do
        case $size in 64M) n=6 ;; 16M) n=15 ;; 8 | 1K) n=5000 ;; 64K) n=500 ;; *) n=40 ;; esac
        run alloc "$size" banyan 16384 "$size" $n
        run single "$size" single "$size" $n
        run sm "$size" openmpi vader "$size" $n
        run plain "$size" banyan 0 "$size" $n
        run tcp "$size" openmpi tcp "$size" $n
    done
done
printf '# us    \n# %6s %9s %9s %9s %9s %9s %12s %12s %12s %12s\n' bytes single switch copied "MPI sm" "MPI tcp" "sm / single" "sm / switch" "sm / copied" "tcp / copied"
printf '# %6s %9s %9s %9s %9s %9s %12s %12s %12s %12s\n' goal "" "" "" "" "" ">= 1.5" ">= 1.5" "" ">= 2"
for size in 8 $sizes; do
    awk -v size="$size" -v m="$(of single."$size".us)" -v a="$(of alloc."$size".us)" -v p="$(of plain."$size".us)" -v s="$(of sm."$size".us)" -v t="$(of tcp."$size".us)" \
        'BEGIN {printf "  %6s %9.1f %9.1f %9.1f %9.1f %9.1f %12.2f %12.2f %12.2f %12.2f\n", size, m, a, p, s, t, s / m, s / a, s / p, t / p}'
done
cable=$($first "$build/tools/bench-cable") || exit 1
echo "# one packet one way: ${cable% *} us between two that sleep, ${cable#* } us between two that poll"
