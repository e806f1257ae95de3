#!/usr/bin/env bash
# Every plan runs: runs.sh TOOLS BANYAN COUNT SEED SIMULATED LAB.   Plans COUNT random fabrics of mixed capabilities for every collective,
# verifies and compiles all plans, simulates the allreduce of the first SIMULATED fabrics and one other collective of each (256M of data
# at every 25th, 32M elsewhere), and runs the first LAB fabrics on real switches in network namespaces. Fails when an element is wrong,
# when the rate is below 0.95 of the plan's, or when more than 0.1 % of the chunks are sent twice. With 32M the start of a call may be a
# large part of it: a plan that misses one of the two limits there is printed as SHORT, and must meet both with 256M.
set -u
tools=$1 banyan=$2 count=$3 seed=$4 simulated=$5 lab=$6
out=$tools/run-campaign.out
rm -rf "$out"
mkdir -p "$out"
"$tools/run-campaign" --count "$count" --seed "$seed" --out "$out" >"$out/log"
status=$?
grep -v '^plan ' "$out/log"

# simulate SEED COLLECTIVE BYTES RATE FAMILY: prints PASS, SHORT or FAIL with the figures.
simulate() {
    "$banyan" sim "$out/$1.json" "$out/$1.$2" -b "$3" --json >"$out/sim.json" 2>"$out/sim.log"
    awk -v rc=$? -v name="seed $1, $2, $3" -v rate="$4" -v bytes="${3%M}" -v family="$5" '
        function value(key) { return match(text, "\"" key "\": [-0-9.e+]+") ? substr(text, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : -1 }
        { text = text $0 " " }
        END {
            part = value("algbw") / rate; again = value("retransmissions")
            chunks = bytes * 1048576 / value("chunk") / value("batch") * value("ranks")
            wrong = rc != 0 || value("wrong_elements") != 0 || value("missing_chunks") != 0
            slow = part < 0.95 || again > chunks / 1000
            printf "%s %s: %.4f of the rate, %d of %d chunks sent twice%s\n", wrong || (slow && bytes >= 256) ? "FAIL" : slow ? "SHORT" : "PASS", name, part, again, chunks, rc ? ", exit status " rc : ""
            printf "figures %s %sM %.4f %.6f\n", family, bytes, part, (chunks > 0 ? again / chunks : 0)
        }' "$out/sim.json"
}

others=(reduce-scatter allgather broadcast reduce)
number=0
while read -r _ at family collective rate; do
    case $collective in
    allreduce) number=$((number + 1)) ;;
    "${others[at % 4]}") ;;
    *) continue ;;
    esac
    [ "$number" -le "$simulated" ] || break
    bytes=32M
    [ $((at % 25)) -ne 0 ] || bytes=256M
    result=$(simulate "$at" "$collective" "$bytes" "$rate" "$family")
    echo "$result"
    [[ $result != SHORT* ]] || simulate "$at" "$collective" 256M "$rate" "$family"
done < <(grep '^plan ' "$out/log") >"$out/simulated"
grep '^SHORT' "$out/simulated"
grep '^FAIL' "$out/simulated" && status=1
awk '/^(PASS|FAIL)/ { n++; failed += $1 == "FAIL" } END { printf "# simulated: %d plans\n%d passed, %d failed\n", n, n - failed, failed }' "$out/simulated"
awk '$1 == "figures" {
         f = $2; n[f]++
         if ($3 == "256M") { large[f]++; if (!(f in least) || $4 < least[f]) least[f] = $4 }
         if (!(f in small) || $4 < small[f]) small[f] = $4
         if ($5 > most[f]) most[f] = $5
     }
     END {
         print "# simulated by family: plans, those of 256M, their least part of the rate, the least of all, most chunks sent twice"
         for (f in n) printf "# %-8s %5d %5d %8s %8.4f %8.3f %%\n", f, n[f], large[f], (f in least ? sprintf("%.4f", least[f]) : "-"), small[f], 100 * most[f]
     }' "$out/simulated"

# Real switches in network namespaces; banyan-perf checks every element. `banyan lab` makes the same plans.
while read -r _ at _ collective _; do
    [ "$collective" = allreduce ] || continue
    [ $((lab--)) -gt 0 ] || break
    if "$banyan" lab run "$out/$at.json" -c allreduce,reduce,allgather -b 256K -n 3 >"$out/lab.log" 2>&1; then
        echo "PASS seed $at on real switches"
    else
        echo "FAIL seed $at on real switches"
        sed 's/^/     | /' "$out/lab.log"
        status=1
    fi
done < <(grep '^plan ' "$out/log")
exit $status
