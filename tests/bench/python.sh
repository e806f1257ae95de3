#!/usr/bin/env bash
# What the Python package adds to a call of libbanyan: an allreduce of 8 bytes of two hosts that share
# memory with their switch, through Python and by banyan-perf, in turn.
#   python.sh [BUILD]      BENCH_ROUNDS (default 5). Exit 77: cannot run here.
# Prints the median of the rounds in microseconds. "arguments" is the time in which the package finds
# address, count and type of both arrays; "foreign" that of ctypes around an empty C function.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
rounds=${BENCH_ROUNDS:-5}
python=/usr/bin/python3
[ "$(id -u)" -eq 0 ] || { echo "python.sh: skipped: namespaces need root" >&2; exit 77; }
"$python" -c 'import numpy' 2>/dev/null || { echo "python.sh: skipped: no numpy (tests/deps.sh mpi)" >&2; exit 77; }
export PYTHONPATH=$PWD/host-driver/python LIBBANYAN=$build/lib/libbanyan.so.0 PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d -t banyan-python-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
"$build/bin/banyan" topo star --hosts 2 >"$dir/star.json" || exit 1
median() { sort -n | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]; else print "nan"}'; }

for ((round = 0; round < rounds; round++)); do
    timeout 60 "$build/bin/banyan" lab run "$dir/star.json" --transport shm -c allreduce -- "$python" tests/bench/python_latency.py 20000 >"$dir/out" 2>&1 || { cat "$dir/out" >&2; exit 1; }
    sed -nE 's/^host0: call //p' "$dir/out" >>"$dir/call"
    sed -nE 's/^host0: arguments ([0-9.]+) foreign .*/\1/p' "$dir/out" >>"$dir/arguments"
    sed -nE 's/^host0: .* foreign //p' "$dir/out" >>"$dir/foreign"
    timeout 60 "$build/bin/banyan" lab run "$dir/star.json" --transport shm -c allreduce -b 8 -n 20000 -w 2000 2>"$dir/err" |
        awk '$1 == "allreduce" && NF > 12 {print $7}' >>"$dir/c"
done
call=$(median <"$dir/call") c=$(median <"$dir/c")
echo "# allreduce of 8 bytes, 2 hosts, shared memory, us; the package's own part should be at most 5"
echo "python  banyan-perf  difference  arguments  foreign"
awk -v p="$call" -v c="$c" -v a="$(median <"$dir/arguments")" -v f="$(median <"$dir/foreign")" \
    'BEGIN {printf "%6.1f  %11.1f  %10.1f  %9.2f  %7.2f\n", p, c, p - c, a, f}'
