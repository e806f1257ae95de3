#!/usr/bin/env bash
# Series of scatters, gathers, all-to-alls and reduces on hosts, over links that the lab limits to a
# rate, beside the proven optimum: series.sh BUILD [CASE...]
# Prints for each case the optimum and the measured throughput in operations a second, and their
# ratio; CASE: only those of this call (scatter, gather, alltoall, reduce). Links count the headers of
# frames, the optimum does not. Exit 0; 1 something failed; 77 cannot run here.
set -uo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")/../.." || exit 1
if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then
    echo "needs root, for network namespaces"
    exit 77
fi
banyan=$build/bin/banyan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# Links of different speeds, where the best routes lead through other hosts.
uneven() {
    cat <<'JSON'
{"name": "uneven", "unit": "messages", "nodes": [
 {"name": "a", "kind": "compute", "task_time": "1/1000"}, {"name": "b", "kind": "compute", "task_time": "1/1000"},
 {"name": "c", "kind": "compute", "task_time": "1/1000"}, {"name": "d", "kind": "compute", "task_time": "1/1000"}],
 "links": [
 {"between": ["a", "b"], "bandwidth": 2}, {"between": ["b", "c"], "bandwidth": 1},
 {"between": ["c", "d"], "bandwidth": 3}, {"between": ["d", "a"], "bandwidth": 1},
 {"between": ["a", "c"], "bandwidth": 1}]}
JSON
}

# name|topology|options of banyan steady|call of bench-series|bytes|calls|root|rate of bandwidth 1
cases=(
    "scatter, uneven links|uneven|--op scatter --source a --ports many|scatter|1048576|24|0|2M"
    "gather, uneven links|uneven|--op gossip --source a,c,d --target b --ports many|gather|1048576|24|1|2M"
    "all-to-all, uneven links|uneven|--op gossip --ports many|alltoall|1048576|16|0|2M"
    "reduce, uneven links|uneven|--op reduce --target c --ports many|reduce|1048576|64|2|2M"
    "scatter, leaf-spine of 8|topo leafspine --leaves 4 --hosts 2 --spines 2|--op scatter --source host0 --ports host|scatter|1048576|16|0|800K"
    "gather, leaf-spine of 8|topo leafspine --leaves 4 --hosts 2 --spines 2|--op gossip --source host0,host1,host2,host3,host4,host5,host6 --target host7 --ports host|gather|1048576|16|7|800K"
    "all-to-all, leaf-spine of 4|topo leafspine --leaves 2 --hosts 2 --spines 2|--op gossip --ports host|alltoall|1048576|32|0|800K"
    "all-to-all, torus of 9|topo torus --sizes 3x3|--op gossip --ports many|alltoall|262144|24|0|50K"
    "all-to-all, hypercube of 8|topo hypercube --dimensions 3|--op gossip --ports many|alltoall|262144|24|0|50K"
    "reduce, hypercube of 8|topo hypercube --dimensions 3|--op reduce --target host0 --ports many|reduce|1048576|48|0|50K"
    "reduce, leaf-spine of 8|topo leafspine --leaves 4 --hosts 2 --spines 2 --capable none|--op reduce --target host0 --ports host|reduce|1048576|128|0|400K"
)

number() { # TEXT: bytes
    numfmt --from=iec "$1"
}

run_case() { # NAME TOPOLOGY OPTIONS CALL BYTES CALLS ROOT RATE
    local line optimum
    case $2 in
    topo*) $banyan $2 | sed 's|"kind": "compute"|&, "task_time": "1/1000"|' >"$work/fabric.json" || return 1 ;;
    *) "$2" >"$work/fabric.json" ;;
    esac
    $banyan steady "$work/fabric.json" $3 --json -o "$work/a.series" >"$work/steady.json" || return 1
    optimum=$(python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))["throughput"]; print(int(t["num"]) / int(t["den"]))' "$work/steady.json") || return 1
    $banyan lab run "$work/fabric.json" --series "$work/a.series" --rate "$8" -- \
        "$build/tools/bench-series" "$4" "$5" "$6" "$7" >"$work/out" 2>&1 || {
        tail -3 "$work/out"
        return 1
    }
    line=$(grep -oE "$4 bytes=.*" "$work/out") || return 1
    awk -v line="$line" -v name="$1" -v optimum="$optimum" -v rate="$(number "$8")" -v bytes="$5" '
        BEGIN {
            words = split(line, word, /[ =]/)
            for (i = 1; i < words; i++) value[word[i]] = word[i + 1]
            best = optimum * rate / bytes
            printf "%-32s %10.3f %10.3f %8.3f\n", name, best, value["rate"] / bytes, value["rate"] / bytes / best
            exit value["scheduled"] < value["calls"]
        }'
}

printf '%-32s %10s %10s %8s\n' "operations a second" optimum measured ratio
for case in "${cases[@]}"; do
    IFS='|' read -r name topology options call bytes calls root rate <<<"$case"
    [ $# -eq 0 ] || [[ " $* " == *" $call "* ]] || continue
    run_case "$name" "$topology" "$options" "$call" "$bytes" "$calls" "$root" "$rate" || {
        echo "$name: failed"
        status=1
    }
done
exit $status
