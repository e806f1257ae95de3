#!/usr/bin/env bash
# The script of `make test`: test.sh MAKE. Every part is a make target that can be run alone. Prints
# each part as it starts, and the failures from the log of a part that fails. The last line is `N
# passed, N failed`: the sum over all parts, where a part that does not count its own tests is one.
# Nothing is repeated unless TEST_REPEAT is set (run.sh, lab/all.sh): then a line `N repeated: ...`
# lists the repeated tests, which count as failed whatever the repeat shows. A part that cannot run
# on this machine is skipped, and the last line ends in `, N skipped`. ONLY=PART runs only that
# part, after the build.
set -u
make=$1
cd "$(dirname "$0")/.."
out=${O:-build}
logs=$out/test-logs
jobs=$(nproc)
mkdir -p "$logs"
passed=0
failed=0
skipped=0
repeated=()
ran=()
started=$(date +%s)

# Prints the relevant part of a long log: failures with the lines that follow them, then the end of
# the log.
failing() {
    grep -nE -A12 '^ *FAIL|: error: |Error [0-9]+$|Sanitizer|^make.*\*\*\*' "$1" | head -n 80
    echo "... its last lines:"
    tail -n 25 "$1"
}

# begin NAME "what it is" COMMAND...: starts a part, beside what comes until `report NAME`.
declare -A part_pid=()
begin() {
    local name=$1 what=$2
    shift 2
    [ -z "${ONLY:-}" ] || [ "$name" = build ] || [ "$name" = "$ONLY" ] || return 0
    ran+=("$name")
    printf '  TEST   %-14s %s\n' "$name" "$what"
    {
        local start status=0 TIMEFORMAT='%U %S'
        start=$(date +%s)
        { time "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?; } 2>"$logs/$name.spent"
        echo "$status $(($(date +%s) - start)) $(awk '{ printf "%d", $1 + $2 }' "$logs/$name.spent")" >"$logs/$name.end"
    } &
    part_pid[$name]=$!
}
# report NAME: waits for a part, and prints and counts its result.
report() {
    local name=$1 log=$logs/$1.log line status seconds spent p=0 f=0
    [ -n "${part_pid[$name]:-}" ] || return 0
    wait "${part_pid[$name]}"
    unset "part_pid[$name]"
    read -r status seconds spent <"$logs/$name.end"
    while read -r line; do # a part may hold several counted runs
        p=$((p + ${line%% *}))
        line=${line#*, }
        f=$((f + ${line%% *}))
    done < <(grep -xE '[0-9]+ passed, [0-9]+ failed' "$log")
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
    elif [ "$status" -eq 0 ] && [ "$p" -eq 0 ]; then
        p=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    mapfile -t -O ${#repeated[@]} repeated < <(sed -nE 's/^[0-9]+ repeated: //p' "$log")
    if [ "$f" -ne 0 ]; then
        printf '  FAIL   %-14s %d failed in %d s (%d s of processor time); of its log, %s:\n' "$name" "$f" "$seconds" "$spent" "$log"
        failing "$log" | cut -c -400 | sed 's/^/         | /'
    else
        printf '  PASS   %-14s %d in %d s (%d s of processor time)\n' "$name" "$p" "$seconds" "$spent"
        grep -E '^(note|NOTE|lab): ' "$log" | sed 's/^/         /'
    fi
    return "$f"
}
# part NAME "what it is" COMMAND...: both.
part() { begin "$@" && report "$1"; }
run() { $make --no-print-directory -j"$jobs" "$@"; }

# idle TARGET...: with the processor time that other parts leave: most of them mostly wait.
idle() { nice -n 19 $make --no-print-directory -j"$jobs" "$@"; }

# Parts run beside each other in this one session, but each rank of an MPI program has a session of
# its own. A kernel that shares processors between sessions would give eight ranks eight times as
# much as everything else together, and tests would find switches that do not answer (decision 609).
sharing=/proc/sys/kernel/sched_autogroup_enabled
shared=
if [ -w "$sharing" ] && [ "$(cat $sharing)" = 1 ] && echo 0 2>/dev/null >$sharing; then
    shared=1
    echo '  NOTE   processors are shared between processes, not sessions, until the end (kernel.sched_autogroup_enabled)'
fi
finish() {
    local pid
    for pid in "${part_pid[@]}"; do pkill -TERM -P "$pid"; done
    [ -z "$shared" ] || echo 1 >$sharing
}
trap finish EXIT

# with NAME TARGET "what it needs" "what it is" COMMAND...: a part that needs root and the packages
# that TARGET installs; without them it is skipped.
with() {
    local name=$1 target=$2 needs=$3
    shift 3
    [ -z "${ONLY:-}" ] || [ "$name" = "$ONLY" ] || return 0
    if [ "$(id -u)" -eq 0 ] && run "$target" >"$logs/$name-packages" 2>&1; then
        part "$name" "$@"
    else
        skipped=$((skipped + 1))
        printf '  SKIP   %-14s needs root, and %s: %s\n' "$name" "$needs" "$(tail -n 1 "$logs/$name-packages" 2>/dev/null)"
    fi
}

if part build "libraries, programs and tests, with $jobs jobs" run build-all build-tests build-tools; then
    part repeats "a test that fails once counts as failed" run repeat-check
    part unit "unit tests and golden packets" run unit
    part inject "some allocations and writes of banyand, banyan-switchd and libbanyan fail, one in a run" run inject-smoke
    part world "the whole system in virtual time: kills, disks that fail, clocks that jump, switches and hosts that die" run world
    part sim "simulation: real engines and endpoints under loss, duplication and reordering" run sim N=1000
    part once "each byte of a kernel's input is read once: gcc and clang, -O1 to -O3, stepped" run once
    part once-emulated "the same for AVX-512 and NEON, on emulated processors" run once-emulated
    part mutations "rules taken out of the protocol's code: each still applies, some are caught" run model-smoke
    part planner "random fabrics planned: every cut, the verifier, LEMON's flows, glpsol's exact programs" run planner-check N=2000
    begin lab "real switches, hosts and links in network namespaces: sums, faults, failures, refusals" run lab-short
    begin sanitizers-build "the unit tests once more, with address and undefined behaviour sanitizers" idle sanitizers-build
    report lab # with mpi at the same time five labs would share the processors
    with mpi mpi "the packages of two MPIs" "unmodified MPI programs in C, Fortran and Python, under Open MPI and MPICH, over real switches" run lab-mpi
    begin lint "includes, symbols, format, manuals, and analysers for what the last 100 commits changed" idle lint RECENT=100 # which sees the plugins where the headers of MPI are
    with torch torch-deps "Debian's PyTorch" "the backend of torch.distributed, with Debian's PyTorch, over real switches" run lab-torch
    with slurm slurm-deps "Debian's Slurm" "jobs of Debian's Slurm (srun --banyan) over real switches" run lab-slurm
    with etcd etcd-deps "Debian's etcd" "several banyands over Debian's etcd: the leader is killed, stopped, cut off" run lab-etcd
    begin fuzz-build "the fuzz targets are built" idle fuzz-build
    with pci lab-pci-packages "Debian's QEMU and kernel" "poll-mode drivers of two NICs: the switch behind vfio in a virtual machine" run lab-pci NICS="virtio-net-pci e1000e"
    part metal "the image without an operating system, in QEMU" run lab-metal
    report lint
    report sanitizers-build
    report fuzz-build
    part size "the core's code, memory and stack against their limits" run size
    part install "an installation is used by programs of others" run install-check
    part lint-selftest "a planted fault for each check of lint" run lint-selftest
    part sanitizers "unit tests and simulation under address and undefined behaviour sanitizers" run sanitizers
    part fuzz "a few seconds on each fuzz target" run fuzz-smoke
fi
echo "  TIME   $(($(date +%s) - started)) s"
if [ -n "${ONLY:-}" ] && [[ " ${ran[*]} " != *" $ONLY "* ]]; then
    echo "test.sh: there is no part '$ONLY'; the parts: $(sed -nE 's/^ +(part|begin|with) ([a-z-]+) .*/\2/p' tests/test.sh | tr '\n' ' ')" >&2
    failed=$((failed + 1))
fi
[ ${#repeated[@]} -eq 0 ] || echo "$(wc -w <<<"${repeated[*]}") repeated: ${repeated[*]}"
[ "$skipped" -eq 0 ] || closing=", $skipped skipped"
echo "$passed passed, $failed failed${closing:-}"
[ "$failed" -eq 0 ]
