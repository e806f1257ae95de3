#!/usr/bin/env bash
# The script of `make bench`: bench.sh BUILD. Each measurement compares contenders within one run on
# this machine, so that the ratios hold on other machines: kernels with plain memory, banyan-switchd
# with testpmd, banyan with two MPIs. All output is also written to BUILD/../bench.txt. Parts that
# cannot run here (not root, a missing package) print this. Exit 1: a part failed; 2: there is no such
# part.
set -u
build=$1
shift
cd "$(dirname "$0")/../.." || exit 3
report=$(dirname "$build")/bench.txt
status=0
wanted=("$@")
parts=()

part() { # NAME "what it is" COMMAND...
    local name=$1 what=$2 result=0
    shift 2
    parts+=("$name")
    if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
    printf '\n# ---- %s: %s\n' "$name" "$what"
    "$@" || result=$?
    case $result in
    0) ;;
    77) echo "# $name: skipped" ;;
    *)
        echo "# $name: failed with status $result"
        status=1
        ;;
    esac
}

# Only these parts need testpmd and the MPIs.
with_packages() {
    tests/deps.sh bench || return 77
    O=$(dirname "$build") "$@"
}

kernels() {
    "$build/tools/bench-kernels" && "$build/tools/bench-passes"
}

# Runs a program with priority over other work: the scheduler weighs sessions, then the programs of
# each.
prioritised() {
    # shellcheck disable=SC2016 # for the inner shell
    setsid -w sh -c 'echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -20 "$@"' prioritised "$@"
}

everything() {
    echo "# $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(uname -sr)"
    part kernels "reduction kernels, GB/s, beside a plain read of the same memory" kernels
    part engine "the engine's step in memory, contributions a second on one core" "$build/tools/bench-engine"
    part modes "allreduces in modes fast, det and exact" tests/bench/modes.sh "$build"
    part planner "the planner: times and memory from 64 to 4,096 GPUs, and the hard suite" tests/bench/planner.sh "$build"
    part instructions "instructions of a switch's loop for each frame" tests/bench/instructions.sh "$build"
    part workers "a switch with one and two workers on memory ports" prioritised "$build/tools/bench-workers"
    part circulant "schedules of a rank between hosts, beside the straightforward construction" "$build/tools/bench-circulant"
    part push "tables onto 64 switches, whole and what differs" tests/bench/push.sh "$build"
    part sim "plans on simulated fabrics, beside their proven optimum" tests/bench/sim.sh "$build"
    part lossy "what losses cost on simulated fabrics" tests/bench/lossy.sh "$build"
    part lab-lossy "what losses cost in labs of real switches" tests/bench/lab-lossy.sh "$build"
    part hosts "collectives between 8 hosts without offload, beside Open MPI" tests/bench/hosts.sh "$build"
    part broadcast "broadcasts between 8 namespaces: over TCP, over trees and UDP, and Open MPI's" with_packages tests/bench/broadcast.sh "$build"
    part series "series of scatters, gathers, all-to-alls and reduces on links that the lab limits, beside their optimum" tests/bench/series.sh "$build"
    part alltoall "all-to-alls of 8 hosts: between hosts, beside Open MPI and MPICH over TCP" with_packages tests/bench/latency.sh "$build" alltoall
    part short "calls of 8 bytes and 1 KiB of 4 and 8 hosts over trees, beside Open MPI and MPICH over TCP" with_packages tests/bench/latency.sh "$build" short
    part switchd "banyan-switchd summing and copying, beside dpdk-testpmd and the loop of ipv4_multicast on the same ports" with_packages tests/bench/switchd.sh "$build"
    part xdp "replication and relays in the kernel, beside the same switch on DPDK's kernel ports" tests/bench/xdp.sh "$build"
    part memory "allreduce of hosts that share memory with their switch, beside Open MPI on the same cores" with_packages tests/bench/memory.sh "$build"
    part near "single calls of MPI programs on one machine: the MPIs' own shared memory, and banyan's" with_packages tests/bench/near.sh "$build"
    part python "what the Python package adds to a call" with_packages tests/bench/python.sh "$build"
    part torch "buckets and training steps over the backend of torch.distributed, beside Gloo" tests/bench/torch.sh "$build"
    part mpi "collectives beside Open MPI and MPICH over the same kind of links" with_packages tests/bench/mpi.sh
    part mpi-ranks "the same with two ranks on each of four hosts" with_packages tests/bench/mpi.sh --hosts 4 --ranks 2 --collective allreduce --bytes 1M,16M --mtu 1500
    if [[ " ${wanted[*]} " == *" mpi-full "* ]]; then
        part mpi-full "the same, 1 MB to 64 MB" with_packages tests/bench/mpi.sh --full --afxdp
    fi
    for name in "${wanted[@]}"; do
        [[ " ${parts[*]} mpi-full " != *" $name "* ]] || continue
        echo "# there is no part '$name': use ${parts[*]} or mpi-full"
        status=2
    done
    return $status
}
set -o pipefail
everything 2>&1 | tee "$report"
result=$?
printf '\n# all of this is in %s\n' "$report"
exit $result
