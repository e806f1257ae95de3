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
begin=$(date +%s)

# Prints the relevant part of a long log: failures with the lines that follow them, then the end of
# the log.
failing() {
    grep -nE -A12 '^ *FAIL|: error: |Error [0-9]+$|Sanitizer|^make.*\*\*\*' "$1" | head -n 80
    echo "... its last lines:"
    tail -n 25 "$1"
}

# part NAME "what it is" COMMAND...
part() {
    local name=$1 what=$2 start log line status=0 p=0 f=0
    shift 2
    [ -z "${ONLY:-}" ] || [ "$name" = build ] || [ "$name" = "$ONLY" ] || return 0
    ran+=("$name")
    log=$logs/$name.log
    start=$(date +%s)
    printf '  TEST   %-14s %s\n' "$name" "$what"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    while read -r line; do # a part may hold several counted runs
        p=$((p + ${line%% *}))
        line=${line#*, }
        f=$((f + ${line%% *}))
    done < <(grep -xE '[0-9]+ passed, [0-9]+ failed' "$log")
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1
    elif [ $status -eq 0 ] && [ "$p" -eq 0 ]; then
        p=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
    mapfile -t -O ${#repeated[@]} repeated < <(sed -nE 's/^[0-9]+ repeated: //p' "$log")
    if [ "$f" -ne 0 ]; then
        printf '  FAIL   %-14s %d failed in %d s; of its log, %s:\n' "$name" "$f" $(($(date +%s) - start)) "$log"
        failing "$log" | cut -c -400 | sed 's/^/         | /'
    else
        printf '  PASS   %-14s %d in %d s\n' "$name" "$p" $(($(date +%s) - start))
        grep -E '^(note|NOTE|lab): ' "$log" | sed 's/^/         /'
    fi
    return "$f"
}
run() { $make --no-print-directory -j"$jobs" "$@"; }

# early TARGET: starts to make what a later part waits for (await TARGET), with the processor time
# that other parts leave: the lab mostly waits.
declare -A early_pid=()
early() {
    [ -z "${ONLY:-}" ] || return 0
    nice -n 19 $make --no-print-directory -j"$jobs" "$1" >"$logs/$1.early" 2>&1 </dev/null &
    early_pid[$1]=$!
}
await() {
    local result=0
    [ -z "${ONLY:-}" ] || { run "$1"; return; }
    wait "${early_pid[$1]}" || result=$?
    unset "early_pid[$1]"
    cat "$logs/$1.early"
    return $result
}
# after EARLY TARGET: makes the target when what was begun early is made.
after() { await "$1" && run "$2"; }
end_early() {
    local pid
    for pid in "${early_pid[@]}"; do kill "$pid" 2>/dev/null; done
}
trap end_early EXIT

if part build "libraries, programs and tests, with $jobs jobs" run build-all build-tests build-tools; then
    part repeats "a test that fails once counts as failed" run repeat-check
    part unit "unit tests and golden packets" run unit
    part inject "some allocations and writes of banyand, banyan-switchd and libbanyan fail, one in a run" run inject-smoke
    part sim "simulation: real engines and endpoints under loss, duplication and reordering" run sim N=1000
    part once "each byte of a kernel's input is read once: gcc and clang, -O1 to -O3, stepped" run once
    part once-emulated "the same for AVX-512 and NEON, on emulated processors" run once-emulated
    part mutations "rules taken out of the protocol's code: each still applies, some are caught" run model-smoke
    part planner "random fabrics planned: every cut, the verifier, LEMON's flows, glpsol's exact programs" run planner-check N=2000
    early sanitizers-build
    if [ "$(id -u)" -ne 0 ]; then
        skipped=$((skipped + 1))
        echo "  SKIP   mpi            its namespaces, and the packages of two MPIs, need root"
    else
        part mpi "unmodified MPI programs in C, Fortran and Python, under Open MPI and MPICH, over real switches" run lab-mpi
    fi
    if [ "$(id -u)" -eq 0 ] && run torch-deps >"$logs/torch-packages" 2>&1; then
        part torch "the backend of torch.distributed, with Debian's PyTorch, over real switches" run lab-torch
    else
        skipped=$((skipped + 1))
        echo "  SKIP   torch          needs root, and Debian's PyTorch: $(tail -n 1 "$logs/torch-packages" 2>/dev/null)"
    fi
    if [ "$(id -u)" -eq 0 ] && run slurm-deps >"$logs/slurm-packages" 2>&1; then
        part slurm "jobs of Debian's Slurm (srun --banyan) over real switches" run lab-slurm
    else
        skipped=$((skipped + 1))
        echo "  SKIP   slurm          needs root, and Debian's Slurm: $(tail -n 1 "$logs/slurm-packages" 2>/dev/null)"
    fi
    if [ "$(id -u)" -eq 0 ] && run etcd-deps >"$logs/etcd-packages" 2>&1; then
        part etcd "several banyands over Debian's etcd: the leader is killed, stopped, cut off" run lab-etcd
    else
        skipped=$((skipped + 1))
        echo "  SKIP   etcd           needs root, and Debian's etcd: $(tail -n 1 "$logs/etcd-packages" 2>/dev/null)"
    fi
    early lint # which sees the plugins where the headers of MPI are
    early fuzz-build
    part lab "real switches, hosts and links in network namespaces: sums, faults, failures, refusals" run lab-short
    part lint "includes, symbols, format, analysers, manuals (begun with the lab)" await lint
    part size "the core's code, memory and stack against their limits" run size
    part metal "the image without an operating system, in QEMU" run lab-metal
    if [ "$(id -u)" -eq 0 ] && run lab-pci-packages >"$logs/pci-packages" 2>&1; then
        part pci "poll-mode drivers of NICs: the switch behind vfio in a virtual machine" run lab-pci
    else
        skipped=$((skipped + 1))
        echo "  SKIP   pci            needs root, and Debian's QEMU and kernel: $(tail -n 1 "$logs/pci-packages" 2>/dev/null)"
    fi
    part install "an installation is used by programs of others" run install-check
    part lint-selftest "a planted fault for each check of lint" run lint-selftest
    part sanitizers-build "the unit tests once more, with address and undefined behaviour sanitizers (begun with mpi)" await sanitizers-build
    part sanitizers "unit tests and simulation under address and undefined behaviour sanitizers" run sanitizers
    part fuzz "a few seconds on each fuzz target (their build begun with the lab)" after fuzz-build fuzz-smoke
fi
echo "  TIME   $(($(date +%s) - begin)) s"
if [ -n "${ONLY:-}" ] && [[ " ${ran[*]} " != *" $ONLY "* ]]; then
    echo "test.sh: there is no part '$ONLY'; the parts: $(sed -nE 's/^ +part ([a-z-]+) .*/\1/p' tests/test.sh | tr '\n' ' ')" >&2
    failed=$((failed + 1))
fi
[ ${#repeated[@]} -eq 0 ] || echo "$(wc -w <<<"${repeated[*]}") repeated: ${repeated[*]}"
[ "$skipped" -eq 0 ] || closing=", $skipped skipped"
echo "$passed passed, $failed failed${closing:-}"
[ "$failed" -eq 0 ]
