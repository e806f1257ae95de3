#!/usr/bin/env bash
# banyan sim: plans on simulated fabrics reach their optimum and repair losses, and a wrong run is
# reported as wrong.
#   sim.sh [BUILD]     BUILD: folder with bin/ (default build/release). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh sim "${1:-build/release}"
sim() { "$banyan" sim "$dir/$1.json" "$dir/$2.plan" "${@:3}"; }
plan() { "$banyan" plan "$dir/$1.json" -c "$2" -o "$dir/$3.plan" "${@:4}" >/dev/null; }
field() { sed -n 's/^ "'"$1"'": \(.*[^,]\),\{0,1\}$/\1/p' "$dir/report"; }
# reaches WHAT LEAST MOST FABRIC PLAN OPTIONS...: passes if bound_ratio lies in the interval, and
# every byte is as predicted.
reaches() {
    local what=$1 least=$2 most=$3
    shift 3
    if sim "$@" --json >"$dir/report" 2>"$dir/errors" &&
        awk -v r="$(field bound_ratio)" -v a="$least" -v b="$most" 'BEGIN { exit !(r >= a && r <= b) }' &&
        [ "$(field predicted_traffic)" = '"equal"' ] && [ "$(field wrong_elements)" = 0 ]; then
        pass "$what: $(awk -v r="$(field bound_ratio)" 'BEGIN { printf "%.2f %%", 100 * r }')"
    else
        fail "$what: $(field bound_ratio), traffic $(field predicted_traffic)" "$dir/errors"
    fi
}
# survives WHAT KEY FABRIC PLAN OPTIONS...: passes if all elements are right, and the counter KEY is
# not 0.
survives() {
    local what=$1 key=$2
    shift 2
    if sim "$@" --json >"$dir/report" 2>"$dir/errors" && [ "$(field "$key")" -gt 0 ] && [ "$(field wrong_elements)" = 0 ]; then
        pass "$what ($key: $(field "$key"))"
    else
        fail "$what: $key $(field "$key")" "$dir/errors"
    fi
}

"$banyan" topo a100 --boxes 2 >"$dir/a100.json"
"$banyan" topo star --hosts 8 >"$dir/star.json"
"$banyan" topo h100 --boxes 9 >"$dir/wide.json"
"$banyan" topo ring --hosts 6 >"$dir/ring.json"
sed 's/"aggregate": true/"aggregate": true, "aggregate_rate": 35/' "$dir/star.json" >"$dir/slow.json"
sed 's:GB/s:furlongs:' "$dir/star.json" >"$dir/furlongs.json"
cat >"$dir/passed.json" <<'END'
{"name": "passed", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "h2", "kind": "compute"}, {"name": "h3", "kind": "compute"},
           {"name": "s", "kind": "switch", "multicast": true, "aggregate": true, "aggregate_rate": 1}],
 "links": [{"between": ["h0", "s"], "bandwidth": 2}, {"between": ["h1", "s"], "bandwidth": 1}, {"between": ["h2", "s"], "bandwidth": 1},
           {"between": ["h3", "s"], "bandwidth": 1}]}
END
cat >"$dir/passed.plan" <<'END'
{"format": "banyan-plan-2", "topology": "passed", "unit": "GB/s", "collective": "allreduce", "root": null,
 "optimum": {"num": 1, "den": 1}, "achieved": {"num": 1, "den": 1}, "inv_x": null, "k": 0,
 "bottleneck": {"nodes": ["h0", "h2", "h3", "s"], "compute_count": 3, "exiting": {"num": 1, "den": 1}},
 "paths": [["h0", "s"], ["s", "h1"], ["s", "h2"], ["h0", "s", "h3"]],
 "trees": [{"root": "h0", "use": "both", "weight": {"num": 1, "den": 1}, "edges": [0, 1, 2, 3]}]}
END
cat >"$dir/oneway.json" <<'END'
{"name": "oneway", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "s0", "kind": "switch", "multicast": true, "aggregate": true}],
 "links": [{"from": "h0", "to": "h1", "bandwidth": 4}, {"from": "h1", "to": "s0", "bandwidth": 4}, {"from": "s0", "to": "h0", "bandwidth": 4},
           {"between": ["h0", "s0"], "bandwidth": 4}, {"between": ["h1", "s0"], "bandwidth": 4}]}
END
plan oneway reduce oneway --root h0
for collective in allgather reduce-scatter allreduce; do plan a100 $collective a100-$collective; done
for collective in allreduce allgather barrier; do plan star $collective star-$collective; done
plan star broadcast star-broadcast --root host3
plan star reduce star-reduce --root host5
plan ring allreduce ring
plan slow allreduce slow
plan wide allreduce wide

reaches "2x8 A100 allgather" 0.955 1 a100 a100-allgather -b 512M
reaches "2x8 A100 reduce-scatter" 0.97 1 a100 a100-reduce-scatter -b 320M
reaches "2x8 A100 allreduce" 0.97 1 a100 a100-allreduce -b 128M
reaches "a ring of hosts that run engines" 0.97 1 ring ring -b 16M
reaches "a star" 0.97 1 star star-allreduce -b 16M
reaches "a switch with 72 ports, more than our own programs drive" 0.8 1 wide wide -b 16M
reaches "additions at a limited rate, planned for" 0.97 1 slow slow -b 16M
check "no chunk is sent again while the adder's queue grows" [ "$(field retransmissions)" = 0 ]
reaches "and not planned for: half the rate, 35 GB/s for 7 additions" 0.499 0.507 slow star-allreduce -b 16M
reaches "contributions that only pass through the adder's switch are not added" 0.97 1 passed passed -b 16M
reaches "one-way links beside links of both directions" 0.97 1 oneway oneway -b 16M
reaches "broadcast from another root" 0.97 1 star star-broadcast -b 16M
reaches "reduce to another root" 0.97 1 star star-reduce -b 16M
check "a barrier" sim star star-barrier -c barrier
check "trees of allreduce serve an allgather" sim star star-allreduce -c allgather -b 1M

survives "loss, duplication and reordering are repaired" retransmissions a100 a100-allreduce -b 4M --loss 0.001 --dup 0.001 --reorder 0.001
survives "on hosts too, where there is no switch" lost ring ring -b 2M --loss 0.001
survives "short buffers lose, and nothing is wrong" overflowed star star-allreduce -b 4M --buffer 100K --inflight 1000 --window 512
sim star star-allreduce -b 16M --buffer 100K --json >"$dir/report" 2>"$dir/errors"
check "the chunks in flight are chosen for short buffers ($(field bound_ratio))" awk -v r="$(field bound_ratio)" 'BEGIN { exit !(r >= 0.97 && r <= 1) }'
survives "a buffer that all ports share loses, and nothing is wrong" overflowed star star-allgather -b 4M --shared-buffer 100K
survives "losses in runs" lost star star-allreduce -b 32M --chunk 2048 --loss 0.01 --loss-run 10
check "are as many as without runs" awk -v n="$(field lost)" 'BEGIN { exit !(n > 128000 * 0.006 && n < 128000 * 0.014) }'
lost_on() { perl -MJSON::PP -0777 -ne 'print join " ", map { "$_->{from}-$_->{to}" } grep { $_->{lost} } @{decode_json($_)->{links}}' "$dir/report"; }
survives "a link that loses packets" lost star star-allreduce -b 32M --lossy-link switch0,host3 --link-loss 0.01
check "others lose none" [ "$(lost_on)" = "host3-switch0 switch0-host3" ]
survives "long queues are marked" marked star star-allreduce -b 4M --mark 100K --inflight 1000 --window 512
sim star star-allreduce -b 16M --traffic 0.5 --json >"$dir/report" 2>"$dir/errors"
check "half of the rate beside other packets on half of every link ($(field bound_ratio))" awk -v r="$(field bound_ratio)" 'BEGIN { exit !(r >= 0.45 && r <= 0.51) }'
refused "other packets that leave nothing are refused" 2 "at most 0.95" sim star star-allreduce --traffic 0.99
refused "in a sweep, too" 2 "at most 0.95" sim star star-allreduce --sweep traffic=0,0.99
survives "batches" checked_elements star star-allreduce -b 64M --batch 8

sweep() { sim star star-allreduce -b 4M --sweep "$@"; }
table=$(sweep loss=0,1e-4,0.001 | sed 1,4d)
check "a sweep prints a line for each value" [ "$(awk '{ print $1, $8 }' <<<"$table" | tr '\n' ' ')" = "0 0 1e-4 0 0.001 0 " ]
check "the first is the measure of the others" [ "$(awk 'NR == 1 { a = $5 } NR == 3 { b = $5 } END { print a, (b > 0.1 && b < 1) }' <<<"$table")" = "1.0000 1" ]
sim star star-allreduce -b 4M --loss 0.001 --report "$dir/one" >/dev/null
sweep loss=0,1e-3 --json >"$dir/report"
of_point() { perl -MJSON::PP -0777 -ne 'print decode_json($_)->{points}[1]{'"$1"'}' "$dir/report"; }
check "a point is the run with this value" [ "$(of_point time_us)" = "$(perl -MJSON::PP -0777 -ne 'print decode_json($_)->{time_us}' "$dir/one")" ]
check "as JSON it has the value as given" [ "$(of_point loss)" = 1e-3 ]
refused "a wrong point of a sweep is called so" 1 "wrong results: " sweep loss=0 --spoil
refused "a sweep of what is no probability" 2 "loss, link-loss, dup, reorder or traffic" sweep window=1,2
refused "a sweep without values" 2 "such as loss=0,1e-4,1e-3" sweep loss
refused "an empty value in a sweep" 2 "each value must be a probability" sweep loss=0,,1
refused "a sweep over lossy links that are not named" 2 "requires the links of --lossy-link" sweep link-loss=0,0.1
refused "samples of a sweep" 2 "exclude each other" sweep loss=0 --series "$dir/series.csv"
refused "a sweep whose folder is to be kept" 2 "exclude each other" sweep loss=0 --keep

faulty=(a100 a100-allgather -b 2M --loss 0.001 --seed 7 --report)
sim "${faulty[@]}" "$dir/one" >/dev/null
sim "${faulty[@]}" "$dir/two" >/dev/null
check "the same seed gives the same bytes of report" cmp "$dir/one" "$dir/two"
sim "${faulty[@]}" "$dir/three" --seed 8 >/dev/null
refused "another seed others" 1 "differ" cmp "$dir/one" "$dir/three"
refused "a wrong result is called so" 1 "wrong results: " sim star star-allreduce -b 1M --spoil
refused "of an allgather, too" 1 "wrong results: " sim star star-allgather -b 1M --spoil
sed 's/"optimum": {"num": 10,/"optimum": {"num": 9,/; s/"achieved": {"num": 10,/"achieved": {"num": 9,/' "$dir/star-allreduce.plan" >"$dir/modest.plan"
refused "what is faster than the proven optimum is not believed" 1 "faster than the plan's proven optimum" sim star modest -b 16M

refused "no plan" 2 "at least one plan" "$banyan" sim "$dir/star.json"
refused "a plan of another fabric" 2 "banyan: " sim star ring
refused "a chunk of odd length" 2 "multiple of 64" sim star star-allreduce --chunk 100
refused "a lossy link that is not there" 2 "has no link between the two" sim star star-allreduce --lossy-link host0,host1
refused "a window that is no power of two" 2 "power of two" sim star star-allreduce --window 3
refused "a time without its unit" 2 "such as 500ns" sim star star-allreduce --latency 5
refused "a rank that is not there" 2 "ranks 0 to 7" sim star star-reduce --root 8
refused "a unit without seconds" 2 "GB/s" sim furlongs star-allreduce
refused "less than an element for each rank" 2 "needs" sim star star-allgather -b 8
refused "a folder that is none" 2 "banyan sim --keep" "$build/bin/banyan-sim" "$dir/nowhere"
latency() { sim "$@" | sed -n 's/^latency bound .* this call took \([0-9.]*\) times as long$/\1/p'; }
check "an allreduce of 8 bytes takes the time of its latency bound" [ "$(latency star star-allreduce -b 8)" = 1.00 ]
check "so does a barrier" [ "$(latency star star-barrier -c barrier)" = 1.00 ]
# The rates of a direction over time, summed, are its bytes; no rate exceeds the bandwidth.
series() {
    awk -F, -v want="$1" 'NR > 1 { bytes[$2 " " $3] += $6 * 1000; if ($7 > 1.000001 || $4 > 7) bad = 1; if ($1 <= last[$2 " " $3]) bad = 1
            last[$2 " " $3] = $1 } END { r = bytes["host3 switch0"] / want; exit !(NR > 1000 && !bad && r > 0.999 && r < 1.001) }' "$dir/series.csv"
}
sim star star-allgather -b 4M --series "$dir/series.csv" --report "$dir/report" >/dev/null
bytes=$(perl -MJSON::PP -0777 -ne 'print map { $_->{payload_bytes} + $_->{header_bytes} } grep { $_->{from} eq "host3" } @{decode_json($_)->{links}}' "$dir/report")
check "a series of samples holds every byte" series "$bytes"
check "and is drawn" "$banyan" plot "$dir/star.json" "$dir/series.csv" -o "$dir/series.svg"
check "with its queues" grep -q "switch0 .* host3" "$dir/series.svg"
refused "on its own topology only" 2 "of another topology" "$banyan" plot "$dir/a100.json" "$dir/series.csv" -o "$dir/series.svg"
head -c 3000 "$dir/series.csv" >"$dir/cut.csv"
refused "a series that was cut" 2 "the last row is not complete" "$banyan" plot "$dir/star.json" "$dir/cut.csv" -o "$dir/series.svg"
refused "a series that cannot be written" 3 "none/s.csv" sim star star-allreduce -b 1M --series "$dir/none/s.csv"
kept=$("$banyan" sim "$dir/star.json" "$dir/star-allreduce.plan" -b 64K --keep | sed -n 's/^# the folder of banyan-sim: //p')
check "a folder that is kept runs again" "$build/bin/banyan-sim" "$kept"
mkdir "$dir/tmp"
TMPDIR=$dir/tmp "$banyan" sim "$dir/a100.json" "$dir/a100-allgather.plan" -b 1G >/dev/null 2>"$dir/ended" &
ended=$!
for _ in $(seq 100); do pgrep -P $ended >/dev/null && break; sleep 0.1; done
kill -TERM $ended
wait $ended
check "a run that a signal ends says so" grep -q "ended by signal 15" "$dir/ended"
check "and leaves nothing" rmdir "$dir/tmp"
echo "arc 0 0 0" >>"$kept/work"
refused "a broken line in it is named" 2 "unknown word" "$build/bin/banyan-sim" "$kept"
rm -rf "$kept"
finish
