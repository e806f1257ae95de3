#!/usr/bin/env bash
# Table of emulated NICs: banyan-switchd behind vfio in a virtual machine, as the switch of two hosts,
# six collectives of 256 KiB. For each NIC: wrong elements, bytes on the cables relative to the plan,
# and the time of an allreduce relative to virtio-net-pci's in the same runs.
#   pci-table.sh [BUILD]    Needs root (77 without). RUNS=20: runs of each NIC (default 1).
#                           NICS="e1000e igb": these, and virtio-net-pci. RECORD=FILE keeps the
#                           results; a table over several calls has the runs of all of them.
# Goals: every run right with no refused chunk, bytes 0.97 to 1.03, time at most 3. Exit 1: a run
# failed, had a wrong element, or refused a chunk because a driver released packets late.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh pci-table "${1:-build/release}"
need_root
out=$(realpath "$build/..")
export BANYAN_VM=$out/vm-amd64 BANYAN_VM_PROGRAM=$build/bin/banyan-switchd BANYAN_VM_ROOT=/
[ -r "$BANYAN_VM/initrd" ] || { echo "pci-table: $BANYAN_VM is missing: make pci-table" >&2; exit 1; }
record=$(realpath -m "${RECORD:-$dir/record}")
touch "$record" || exit 1
"$banyan" topo star --hosts 2 >"$dir/star2.json"
collectives="allreduce reduce-scatter allgather broadcast reduce barrier"

# A QEMU of qemu.sh emulates igb, which Debian 12's does not.
qemu=qemu-system-x86_64
[ ! -x "$out/qemu/$qemu" ] || qemu=$out/qemu/$qemu
export BANYAN_VM_QEMU=$qemu
nics=(virtio-net-pci)
for nic in ${NICS:-e1000e vmxnet3 igb}; do
    if ! "$qemu" -device help 2>/dev/null | grep -q "^name \"$nic\""; then
        echo "  note: $qemu does not emulate $nic, which is skipped"
    elif [ "$nic" != virtio-net-pci ]; then
        nics+=("$nic")
    fi
done
# measure NIC: one run. Appends a line: the NIC, the wrong elements of each collective, refused chunks,
# results sent by reference and as copies, least and largest ratio of bytes, and the time in us of an
# allreduce; or the NIC and "failed".
measure() {
    rm -f "$dir/report.json"
    if ! BANYAN_VM_NIC=$1 attended timeout 180 "$banyan" lab run "$dir/star2.json" --switch "switch0=$PWD/tests/lab/vm/switch" \
        --bytes 256K --iters 5 --report "$dir/report.json" >"$dir/run.out" 2>&1 && [ ! -s "$dir/report.json" ]; then
        echo "$1 failed" >>"$record"
        sed "s/^/  $1 | /" "$dir/run.out"
        return
    fi
    NIC=$1 ORDER=$collectives RATIO=$(sed -n 's/^# counted \/ predicted: \([0-9.]*\) to \([0-9.]*\).*/\1 \2/p' "$dir/run.out") perl -MJSON::PP -0777 -ne '
        my $report = decode_json($_);
        my ($time, %wrong, %sum);
        for my $job (@{$report->{jobs}}) {
            for my $rank (@{$job->{ranks}}) {
                for (@{$rank->{results}}) {
                    $wrong{$_->{collective}} += $_->{wrong} + ($_->{inplace} ? $_->{inplace}{wrong} : 0);
                }
            }
            for (@{$job->{results}}) { $time = $_->{time_us} if $_->{collective} eq "allreduce" }
        }
        for my $counters (values %{$report->{switches}}) { $sum{$_} += $counters->{$_} // 0 for qw(drop_busy shell_tx_shared shell_tx_copied) }
        print join(" ", $ENV{NIC}, map({ $wrong{$_} // "missing" } split / /, $ENV{ORDER}), $sum{drop_busy}, $sum{shell_tx_shared}, $sum{shell_tx_copied},
                   $ENV{RATIO} || "missing missing", $time // "missing"), "\n"' "$dir/report.json" >>"$record"
}
for ((run = 0; run < ${RUNS:-1}; run++)); do
    for nic in "${nics[@]}"; do measure "$nic"; done
done
echo "RESULTS: $(wc -l <"$record") runs"
awk -v names="$collectives" '
    function median(list, count,    i, j, t) {
        for (i = 2; i <= count; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
    }
    { if (!($1 in runs)) order[++kinds] = $1; runs[$1]++ }
    NF != 13 || /missing/ { next }
    {
        sum = 0
        for (i = 2; i <= 7; i++) { wrong[$1, i] += $i; sum += $i }
        if (sum == 0 && $8 == 0) right[$1]++
        refused[$1] += $8; shared[$1] += $9; copied[$1] += $10; good[$1]++
        if (!($1 in least) || $11 < least[$1]) least[$1] = $11
        if ($12 > most[$1]) most[$1] = $12
        time[$1, good[$1]] = $13
    }
    END {
        split(names, name, " ")
        printf "%-15s %9s %15s %10s %14s %10s %22s\n", "NIC", "right", "bytes / plan", "allreduce", "of virtio-net", "by copy", "goals"
        for (k = 1; k <= kinds; k++) {
            nic = order[k]
            if (!good[nic]) { printf "%-15s %4d of %2d  every run failed\n", nic, 0, runs[nic]; bad = 1; continue }
            delete list
            for (i = 1; i <= good[nic]; i++) list[i] = time[nic, i]
            middle = median(list, good[nic])
            if (nic == "virtio-net-pci") base = middle
            ratio = base > 0 ? middle / base : 0
            all = shared[nic] + copied[nic]
            goal = ""
            if (right[nic] != runs[nic]) { bad = 1; goal = goal " right" }
            if (least[nic] < 0.97 || most[nic] > 1.03) goal = goal " bytes"
            if (ratio > 3) goal = goal " time"
            printf "%-15s %4d of %2d %7.4f-%7.4f %7.1f ms %14.2f %8.2f %% %22s\n", nic, right[nic], runs[nic], least[nic], most[nic], middle / 1000, ratio,
                   all ? 100 * copied[nic] / all : 0, goal == "" ? "met" : "missed:" goal
            for (i = 2; i <= 7; i++) if (wrong[nic, i]) printf "  %s: %d wrong elements in %s\n", nic, wrong[nic, i], name[i - 1]
            if (refused[nic]) printf "  %s: %d chunks refused\n", nic, refused[nic]
        }
        exit bad
    }' "$record"
