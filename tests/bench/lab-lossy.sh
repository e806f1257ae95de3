#!/usr/bin/env bash
# What losses cost in labs of real switches: lab-lossy.sh BUILD. Each switch loses packets with the
# probability of the column; "losses": with BANYAN_CONGESTION=losses, where all losses narrow
# windows; the default goes by the tables, which state that all queues mark packets. A round runs
# every collective in each case, one after the other, so other programs delay all of them alike. A
# cell is the median over the rounds of the time without loss divided by the time with it: the part
# of the rate that remains. "sent again" are the packets of the hosts, and results and sums of all
# nodes, that were repeated, for each frame that was lost. The environment may set ROUNDS (5), BYTES
# (16M) and FABRICS (all four). Exit 1: a run failed, or has a wrong element; 77: not root.
set -u
build=$1
rounds=${ROUNDS:-5}
bytes=${BYTES:-16M}
read -ra fabrics <<<"${FABRICS:-star-4 star-8 leafspine-4 leafspine-8}"
banyan=$build/bin/banyan
[ "$(id -u)" -eq 0 ] || { echo "# the lab needs root"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cases=(0 0.001 0.01 0.001-losses 0.01-losses)

# One run; appends "FABRIC COLLECTIVE CASE MICROSECONDS" for each collective to times, and "FABRIC
# CASE LOST AGAIN" to repairs.
run() { # FABRIC CASE SEED
    local congestion=auto
    [[ $2 != *-losses ]] || congestion=losses
    BANYAN_CONGESTION=$congestion "$banyan" lab run "$folder/$1.json" -c allreduce,allgather,broadcast -b "$bytes" -n 5 --loss "${2%-losses}" \
        --seed "$3" --timeout 30 --report "$folder/report" >"$folder/out" 2>&1 || { cat "$folder/out"; exit 1; }
    python3 - "$folder" "$1" "$2" <<'PYTHON'
import json, sys

folder, fabric, case = sys.argv[1:]
with open(folder + "/report") as file:
    report = json.load(file)
job = report["jobs"][0]
with open(folder + "/times", "a") as times:
    for result in job["results"]:
        us = result["time_us"] + result["inplace"]["time_us"]
        print(fabric, result["collective"], case, us, file=times)
nodes = list(report["switches"].values()) + [rank["engine"] for rank in job["ranks"] if rank["engine"]]
again = sum(node.get("repair_result", 0) + node.get("repair_up", 0) for node in nodes)
again += sum(rank["endpoint"]["retx"] for rank in job["ranks"])
lost = sum(node.get("shell_fault_dropped", 0) for node in report["switches"].values())
with open(folder + "/repairs", "a") as repairs:
    print(fabric, case, lost, again, file=repairs)
PYTHON
}

table() {
    python3 - "$folder" "${cases[@]}" <<'PYTHON'
import statistics, sys

folder, base, *cases = sys.argv[1:]
times, repairs = {}, {}
with open(folder + "/times") as file:
    for fabric, collective, case, us in map(str.split, file):
        times.setdefault((fabric, collective), {}).setdefault(case, []).append(float(us))
with open(folder + "/repairs") as file:
    for fabric, case, lost, again in map(str.split, file):
        sums = repairs.setdefault(fabric, {}).setdefault(case, [0, 0])
        sums[0] += int(lost)
        sums[1] += int(again)
print(f"{'fabric':<12} {'collective':<10}" + "".join(f" {case:>12}" for case in cases))
for (fabric, collective), of in times.items():
    parts = (statistics.median(b / t for b, t in zip(of[base], of[case])) for case in cases)
    print(f"{fabric:<12} {collective:<10}" + "".join(f" {part:12.2f}" for part in parts))
for fabric, of in repairs.items():
    parts = (of[case][1] / max(of[case][0], 1) for case in cases)
    print(f"{fabric:<12} {'sent again':<10}" + "".join(f" {part:12.2f}" for part in parts))
PYTHON
}

"$banyan" topo star --hosts 4 >"$folder/star-4.json" && "$banyan" topo star --hosts 8 >"$folder/star-8.json" &&
    "$banyan" topo leafspine >"$folder/leafspine-4.json" && "$banyan" topo leafspine --hosts 4 >"$folder/leafspine-8.json" || exit 1
echo "# $bytes, $rounds rounds; the part of the rate without loss that remains, by loss at each switch"
for fabric in "${fabrics[@]}"; do
    for ((round = 1; round <= rounds; round++)); do
        for case in "${cases[@]}"; do run "$fabric" "$case" "$round"; done
    done
done
table
