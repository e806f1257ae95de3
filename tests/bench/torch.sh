#!/usr/bin/env bash
# The backend of torch.distributed beside Gloo, in one process of each of four hosts, in turn: an
# allreduce of a bucket of 25 MB, and a step of DistributedDataParallel.
#   torch.sh [BUILD]      BENCH_ROUNDS (default 5). Exit 77: cannot run here.
# banyan's hosts join one switch; Gloo's join one bridge by the same kind of links. First all links
# carry single frames of 1500 bytes, then both contenders' batches cross links whole (TSO, GSO); last
# banyan's hosts share memory with their switch. All contenders have priority over other programs of
# this machine (real-time class, round robin). Prints the medians in milliseconds, of the slowest
# rank; "communication" is the part of Gloo's step that the step without communication does not have.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
rounds=${BENCH_ROUNDS:-5}
python=/usr/bin/python3
[ "$(id -u)" -eq 0 ] || { echo "torch.sh: skipped: namespaces need root" >&2; exit 77; }
[ -e "$build/lib/banyan/torch/banyan_torch/_C.so" ] || { echo "torch.sh: skipped: the backend is not built: make torch" >&2; exit 77; }
export PYTHONPATH=$build/lib/banyan/torch PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
dir=$(mktemp -d -t banyan-torch-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
"$build/bin/banyan" topo star --hosts 4 >"$dir/star.json" || exit 1

run() { # NAME GLOO'S-OFFLOADS OPTION...
    local name=$1 offloads=$2
    shift 2
    # shellcheck disable=SC2016 # for the shell of the host
    timeout 300 chrt -r 1 "$build/bin/banyan" lab run "$dir/star.json" -c allreduce,broadcast "$@" -- \
        sh -c 'ethtool -K out0 tso $0 gso $0 gro $0 >/dev/null; exec "$@"' "$offloads" "$python" -W ignore tests/bench/torch_rates.py "$rounds" >"$dir/out" 2>&1 || { cat "$dir/out" >&2; return 1; }
    sed -nE 's/^host0: median (.*): ([0-9.]+)$/\1 \2/p' "$dir/out" | awk -v name="$name" '
        { ms[$1 " " $2] = $3 }
        END {
            printf "%-13s  bucket: banyan %7.1f  Gloo %7.1f  ratio %5.2f\n", name, ms["bucket banyan"], ms["bucket gloo"],
                ms["bucket gloo"] / ms["bucket banyan"]
            printf "%-13s  step:   banyan %7.1f  Gloo %7.1f  ratio %5.2f  without %.1f  communication %.0f %%\n", name, ms["step banyan"],
                ms["step gloo"], ms["step gloo"] / ms["step banyan"], ms["step alone"], 100 * (1 - ms["step alone"] / ms["step gloo"])
        }'
}
echo "# 4 hosts, ms; the goals at single frames are a ratio of 2 for the bucket, and of 1.3 for the step"
run "single frames" off --transport udp --segments cut || exit 1
run "whole batches" on --transport udp || exit 1
run "shared memory" on --transport shm || exit 1
