#!/usr/bin/env bash
# Hosts that share memory with their switch (--transport shm), compared with Open MPI on the same
# cores: allreduce of 4 ranks over one switch, against Open MPI's own shared memory and against its
# TCP with all offloads on (the loopback interface, where segments of 64 KB are passed by
# reference). Also the time of 8 bytes, beside that of one packet over a cable of memory between two
# sleeping processes (bench-cable).
#   memory.sh [BUILD]      BUILD: folder with bin/ and tools/ (default build/release). BENCH_ROUNDS
#                          (default 3), BENCH_BYTES (default "1M 4M 16M 64M"). Exit 77: cannot run
#                          here.
# All contenders time calls in place, one after another, on data that are checked. A round runs each
# contender once; the output is the median in GB/s (10^9 bytes of data over the time of a call).
# "copied" is banyan with buffers that are not from banyan_alloc (BANYAN_ARENA=0). All contenders
# have priority over other programs of this machine (real-time class, round robin), so that other
# load affects only memory; five processes share its cores.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
rounds=${BENCH_ROUNDS:-3}
sizes=${BENCH_BYTES:-1M 4M 16M 64M}
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
        case $size in 64M) n=6 ;; 16M) n=15 ;; 8) n=500 ;; *) n=40 ;; esac
        run alloc "$size" banyan 16384 "$size" $n
        run sm "$size" openmpi vader "$size" $n
        run plain "$size" banyan 0 "$size" $n
        run tcp "$size" openmpi tcp "$size" $n
    done
done
printf '# %8s  %8s %8s  %9s %9s  %13s %15s %12s\n' bytes banyan copied "MPI sm" "MPI tcp" "banyan / sm" "copied / sm" "copied / tcp"
printf '# %8s  %8s %8s  %9s %9s  %13s %15s %12s\n' goal "" "" "" "" ">= 1.5" "" ">= 2"
for size in $sizes; do
    awk -v size="$size" -v a="$(of alloc."$size")" -v p="$(of plain."$size")" -v s="$(of sm."$size")" -v t="$(of tcp."$size")" \
        'BEGIN {printf "  %8s  %8.2f %8.2f  %9.2f %9.2f  %13.2f %15.2f %12.2f\n", size, a, p, s, t, a / s, p / s, p / t}'
done
cable=$($first "$build/tools/bench-cable") || exit 1
awk -v b="$(of alloc.8.us)" -v s="$(of sm.8.us)" -v t="$(of tcp.8.us)" -v one="${cable% *}" -v spin="${cable#* }" 'BEGIN {
    printf "# 8 bytes, us: banyan %.1f, MPI sm %.1f, MPI tcp %.1f; one packet one way %.1f between two that sleep, %.2f between two that poll\n", b, s, t, one, spin}'
