#!/usr/bin/env bash
# Words and options of banyan plan for allreduce from a user's view: bounds, proofs, what-if, order,
# low trees, limits of addition; series of operations with banyan steady.
#   planning.sh [BUILD]     BUILD: folder with bin/ (default build/release). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh planning "${1:-build/release}"
says() { # says WHAT TEXT COMMAND...: passes when the command succeeds and prints TEXT
    local what=$1 text=$2
    shift 2
    if "$@" >"$dir/says.out" 2>&1 && grep -qF -- "$text" "$dir/says.out"; then pass "$what"; else fail "$what" "$dir/says.out"; fi
}
plan() { "$banyan" plan "$dir/$1.json" -c "${@:2}"; }
"$banyan" topo ring --hosts 5 >"$dir/ring.json"
"$banyan" topo star --hosts 8 >"$dir/star.json"
"$banyan" topo star --hosts 8 --capable none >"$dir/plain.json"
"$banyan" topo twobox --hosts 2 --boxes 4 >"$dir/boxes.json"
"$banyan" topo mi250 --boxes 2 >"$dir/mi250.json"
"$banyan" topo star --hosts 12 | sed 's|"kind": "compute"|&, "task_time": "1/8"|' >"$dir/busy.json"
sed 's/"aggregate": true/"aggregate": true, "aggregate_rate": 35/' "$dir/star.json" >"$dir/slow.json"
says "a ring's bound is that of trees" "no trees carry more" plan ring allreduce
says "reduce-scatter and allgather are said to be optimal there" "provably optimal among trees" plan ring allreduce
says "a star's bound is the cut" "no schedule can be faster" plan star allreduce
says "what a star gains is said" "1.75 times as fast" plan star allreduce
says "a switch that is to forward: 40/7, and proved" "(40/7), 100 % of it: optimal" plan star allreduce --in-network none -o "$dir/none.plan"
says "which the verifier finds, too" "OPTIMAL 5.71429 GB/s" "$banyan" verify "$dir/star.json" "$dir/none.plan"
says "a switch that only forwards: 40/7, and proved" "(40/7), 100 % of it: optimal" plan plain allreduce
plan ring allreduce -o "$dir/ring.plan" >/dev/null
says "the proof is verified" "OPTIMAL" "$banyan" verify "$dir/ring.json" "$dir/ring.plan"
sed 's/\["host0"\],$/[],/' "$dir/ring.plan" >"$dir/forged.plan"
refused "a proof with an empty part is refused" 1 "holds no compute node" "$banyan" verify "$dir/ring.json" "$dir/forged.plan"
says "what the outer switch of 4 boxes is worth" "1.5 (3/2)" plan boxes allreduce --what-if outer0
says "and as JSON" '"gain": {"num": 3, "den": 2}' plan boxes allreduce --what-if outer --json
refused "a capability that switches do not have" 2 "multicast, aggregate, or both" plan star allreduce --what-if switch0=fly
refused "a switch that is not there" 2 "neither a switch nor a class" plan star allreduce --what-if leaf0
"$banyan" topo leafspine --leaves 2 --hosts 2 --spines 3 >"$dir/spines.json"
says "failures in advance: what is covered" "against 9 of 15 failures of one switch or link" plan spines allreduce --protect link,switch --backups "$dir/backups"
says "what is not, and why" "6 that cut a rank off: switch leaf0" plan spines allreduce --protect link,switch
says "what it costs" "with them   at most 2 trees and 512 slots at a switch (leaf0), 1 and 256 without" plan spines allreduce --protect link
says "as JSON" '"covered": 3, "backup_trees": 1' plan spines allreduce --protect switch --json
says "each set is a plan of what remains" "OPTIMAL" "$banyan" verify "$dir/backups/switch-spine0.json" "$dir/backups/switch-spine0.plan"
refused "which is none of the whole fabric" 1 "INVALID" "$banyan" verify "$dir/backups/switch-spine1.json" "$dir/backups/switch-spine0.plan"
refused "a failure that nobody plans for" 2 "link, switch or link,switch" plan spines allreduce --protect host
refused "a part without failures" 2 "requires --protect" plan spines allreduce --protect-part 1/2
refused "more than the optimum" 2 "up to 1" plan spines allreduce --protect link --protect-part 2
refused "protection of another plan" 2 "cannot be combined with --what-if" plan spines allreduce --protect link --what-if all
refused "switches where there are none" 2 "no switch to protect against" plan ring allreduce --protect switch
says "ordered trees" "every partial sum covers contiguous ranks" plan boxes allreduce --ordered
refused "what adds nothing has no order" 2 "does not reduce" plan star allgather --ordered
says "low trees are traded for" ": selected" plan mi250 allreduce --latency-aware=30%
refused "a loss of the whole rate" 2 "below 1" plan mi250 allreduce --latency-aware=100%
plan slow allreduce -o "$dir/slow.plan" >/dev/null
says "a limit of addition is kept" "OPTIMAL" "$banyan" verify "$dir/slow.json" "$dir/slow.plan"
plan star allreduce -o "$dir/star.plan" >/dev/null
refused "and its violation seen" 1 "aggregate_rate" "$banyan" verify "$dir/slow.json" "$dir/star.plan"
echo '[3, "1/2", 0.25, 0, 1, 1, 1, 1]' >"$dir/shares.json"
says "shards of unequal size: parts of the data" "31 parts at 7 compute nodes, most (12) at host0" plan star allgather --shares "$dir/shares.json" -o "$dir/unequal.plan"
says "and they are verified" "OPTIMAL" "$banyan" verify "$dir/star.json" "$dir/unequal.plan"
sed 's/"host0": 12/"host0": 13/' "$dir/unequal.plan" >"$dir/forged.plan"
refused "a share that the trees do not carry is seen" 1 "are not in proportion" "$banyan" verify "$dir/star.json" "$dir/forged.plan"
says "and drawn" "the trees of host0" "$banyan" plot "$dir/star.json" "$dir/unequal.plan" -o -
says "tables take them" "switch0.table" sh -c "'$banyan' tables '$dir/star.json' '$dir/unequal.plan' -o '$dir/tables' && ls '$dir/tables'"
refused "the simulation has calls of equal ones" 2 "equal ones" "$banyan" sim "$dir/star.json" "$dir/unequal.plan" --bytes 64K
# as_predicted WHAT COMMAND...: passes if each link carries the bytes of the plan, in one process
# without retransmissions. Credits that share frames save some headers.
as_predicted() {
    local what=$1
    shift
    if "$@" >"$dir/out" 2>&1 && awk '/^# counted \/ predicted:/ {seen = $5 >= 0.93 && $7 <= 1.00005} END {exit !seen}' "$dir/out"; then
        pass "$what"
    else
        fail "$what" "$dir/out"
    fi
}
unequal="lab run $dir/star.json --in-process -c allgather,reduce-scatter -b 256K -n 1"
as_predicted "they run, each byte as predicted" "$banyan" $unequal --shares "$dir/shares.json"
as_predicted "so does any split over trees of equal shares" "$banyan" $unequal --counts 0,5,1,1,0,0,9,0
as_predicted "in mode exact too" "$banyan" $unequal --counts 0,5,1,1,0,0,9,0 --mode exact
says "what a job would do, from plans" "trees      1: tree 0 by switch0: 47" "$banyan" explain "$dir/star.json" "$dir/star.plan" -s 64K
says "its optimum" "optimum    6.6 us: 10 GB/s" "$banyan" explain "$dir/star.json" "$dir/star.plan" -s 64K
# The same bandwidths in other units give the same optimum in GB/s wherever bytes and times are
# combined.
for unit in Gbit/s:80 MB/s:10000 B/s:10000000000 kbps:80000000; do
    sed "s|\"GB/s\"|\"${unit%:*}\"|; s/\"bandwidth\": 10}/\"bandwidth\": ${unit#*:}}/" "$dir/star.json" >"$dir/unit.json"
    says "in ${unit%:*} the plan counts in it" "bound       ${unit#*:} ${unit%:*}" plan unit allreduce -o "$dir/unit.plan"
    says "explain tells the same optimum" "optimum    6.6 us: 10 GB/s" "$banyan" explain "$dir/unit.json" "$dir/unit.plan" -s 64K
    says "the simulation takes as long" "$("$banyan" sim "$dir/star.json" "$dir/star.plan" --bytes 64K 2>&1 | grep -o 'time [0-9.]* us')" "$banyan" sim "$dir/unit.json" "$dir/unit.plan" --bytes 64K
    # The value of %opt ends the row that contains algbw: 10 GB/s are 1000 in hundredths of a
    # percent.
    if "$banyan" lab run "$dir/unit.json" --in-process -c allreduce -b 1M -n 5 >"$dir/out" 2>&1 &&
        awk '$1 == "allreduce" {seen = $NF > 0 && $NF - 10 * $8 < 0.06 && 10 * $8 - $NF < 0.06} END {exit !seen}' "$dir/out"; then
        pass "%opt compares with it"
    else
        fail "%opt compares with it" "$dir/out"
    fi
    refused "a plan that counts in another unit" 2 "the plan's unit is 'GB/s', the topology's '${unit%:*}'" "$banyan" explain "$dir/unit.json" "$dir/star.plan"
done
sed 's|"GB/s"|"bananas"|' "$dir/star.json" >"$dir/unit.json"
for command in "plan -c allreduce" compare bound "steady --op gossip" "plot -o $dir/unit.svg" verify tables sim explain; do
    plans=$dir/star.plan
    case $command in plan* | compare | bound | steady* | plot*) plans= ;; tables) command="tables -o $dir/tables" ;; esac
    refused "a unit that is none: ${command%% *}" 2 "the unit is 'bananas'; it must be one of B/s, kB/s, MB/s, GB/s" "$banyan" $command "$dir/unit.json" $plans
done
echo 'graph { a [kind=compute]; b [kind=compute]; a -- b [label="100 Gbit/s"]; a -- b [label="12.5 GB/s"] }' >"$dir/units.dot"
says "labels of drawings have units" '"bandwidth": "25/2"}' "$banyan" topo import --format dot "$dir/units.dot"
says "each of the two links" "bottleneck  25 GB/s leave" sh -c "'$banyan' topo import --format dot '$dir/units.dot' | '$banyan' plan - -c allreduce"
sed 's|"GB/s"|"messages"|' "$dir/star.json" >"$dir/unit.json"
says "messages are a unit of plans" "10 messages" plan unit allreduce -o "$dir/unit.plan"
refused "not of times" 2 "does not count bytes" "$banyan" explain "$dir/unit.json" "$dir/unit.plan"
refused "nor of simulations" 2 "does not count bytes" "$banyan" sim "$dir/unit.json" "$dir/unit.plan" --bytes 64K
"$banyan" tables "$dir/star.json" "$dir/star.plan" -o "$dir/optimum" >/dev/null
says "without an optimum explain names what gives one" "(--optimum, or banyan explain TOPO PLAN)" "$banyan" explain --table "$dir/optimum/host0.table" -s 64K
says "which is taken" "optimum    13.1 us: 5 GB/s" "$banyan" explain --table "$dir/optimum/host0.table" -s 64K --optimum allreduce=5
says "of shares of unequal size" "allgatherv of" "$banyan" explain "$dir/star.json" "$dir/unequal.plan" -c allgather --counts 12,2,1,0,4,4,4,4
says "between hosts" "rounds of messages" env BANYAN_OFFLOAD=off RANK=0 WORLD_SIZE=5 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 "$banyan" explain -c broadcast --alpha 20 --beta 0.1
says "as JSON" '"path": "trees"' "$banyan" explain "$dir/star.json" "$dir/star.plan" --json
refused "a topology without plans" 2 "or neither" "$banyan" explain "$dir/star.json"
refused "counts of other ranks" 2 "--counts 1,2,3: 3 numbers, but " "$banyan" $unequal --counts 1,2,3
sed 's/"host\([14]\)", "kind": "compute"/"host\1", "kind": "compute", "forward": true/' "$dir/ring.json" >"$dir/forward.json"
refused "ranks that idle hosts keep apart" 2 "'host0' and 'host2' are connected only through" plan ring allreduce --ranks host0,host2,host3
says "hosts that forward join them" "3 of 5 compute nodes" plan forward allreduce --ranks host0,host2,host3 -o "$dir/some.plan"
says "some of the compute nodes are verified" "OPTIMAL" "$banyan" verify "$dir/forward.json" "$dir/some.plan"
says "and drawn, the others apart" "host that is not a rank" "$banyan" plot "$dir/forward.json" "$dir/some.plan" -o -
sed '/"ranks"/d' "$dir/some.plan" >"$dir/forged.plan"
refused "without the ranks the plan is another" 1 "passes through compute node host1" "$banyan" verify "$dir/forward.json" "$dir/forged.plan"
says "a host that forwards has a switch's table" "3 ranks" sh -c "'$banyan' tables '$dir/forward.json' '$dir/some.plan' -o '$dir/tables' && grep -q '^switch host1' '$dir/tables/host1.txt' && cat '$dir/tables/host2.txt'"
says "they run, each byte as predicted" "0 wrong elements" "$banyan" lab run "$dir/forward.json" --ranks host0,host2,host3 --in-process -b 256K -n 1
printf 'host0 host1\nhost6\n' >"$dir/list"
says "ranks from a file" "3 of 8 compute nodes" plan star allgather --ranks "@$dir/list" --in-network none -o "$dir/few.plan"
says "are exported as ranks from 0" "allgather of 3 ranks" "$banyan" export "$dir/star.json" "$dir/few.plan" --format msccl -o "$dir/few.xml"
refused "a rank that is no node" 2 "list:3:1: 'host9' is not a node" sh -c "echo host9 >>'$dir/list'; '$banyan' plan '$dir/star.json' -c allgather --ranks '@$dir/list'"
cat >"$dir/three.json" <<'JSON'
{"name": "three", "nodes": [{"name": "n0", "kind": "compute", "task_time": 0.5}, {"name": "n1", "kind": "compute", "task_time": 1},
 {"name": "n2", "kind": "compute", "task_time": 1}], "links": [{"between": ["n0", "n1"], "bandwidth": 1},
 {"between": ["n0", "n2"], "bandwidth": 1}, {"between": ["n1", "n2"], "bandwidth": 1}]}
JSON
echo '[1, 1, 2, 3, 0, 0, 0, 7]' >"$dir/parts.json"
awk 'BEGIN { printf "["; for (i = 0; i < 8; i++) printf "%s[%d, 0, 0, 0, 0, 0, 0, %d]", i ? ", " : "", i == 7, i < 7; print "]" }' >"$dir/skewed.json"
steady() { "$banyan" steady "$dir/$1.json" --op "${@:2}"; }
says "a series of reduces" "throughput 1 (1) operations in a unit of time, OPTIMAL" steady three reduce --target n0 -o "$dir/three.series"
says "is verified" "OPTIMAL throughput 1/1" "$banyan" verify "$dir/three.json" "$dir/three.series"
says "and drawn" "n1 combines" "$banyan" plot "$dir/three.json" "$dir/three.series" -o -
sed '0,/"duration": {"num": 1,/s//"duration": {"num": 2,/' "$dir/three.series" >"$dir/forged.series"
refused "a period that is too short for it" 1 "longer than the period" "$banyan" verify "$dir/three.json" "$dir/forged.series"
says "all-to-alls, run from rest to rest" "0.995 of the throughput" steady star gossip --ports host --run 200 -o "$dir/star.series"
says "what each host moves" "gossip of 8 ranks" "$banyan" export "$dir/star.json" "$dir/star.series" --format hosts -o "$dir/star.moves"
says "is executed" "RIGHT" "$banyan" export --check "$dir/star.moves"
says "an all-to-all as a plan" "routes      56 for 56 messages" "$banyan" plan "$dir/star.json" -c all-to-all -o "$dir/a2a.series"
says "that is verified, and does not run" "runs on tables: no: a table has no routes for single receivers" "$banyan" verify "$dir/star.json" "$dir/a2a.series"
says "whose moves are executed" "gossip of 8 ranks" "$banyan" export "$dir/star.json" "$dir/a2a.series" --format hosts -o "$dir/a2a.moves"
says "a gather to one host" "bottleneck  1 link: switch0-host3" "$banyan" plan "$dir/star.json" -c gather --root host3
says "a scatter of unequal parts as JSON" '"rate_of": "messages"' "$banyan" plan "$dir/star.json" -c scatter --root host0 --shares "$dir/parts.json" --json
says "a skewed all-to-all: 7 units to one host" "throughput 10/7 " sh -c "'$banyan' plan '$dir/star.json' -c all-to-all --matrix '$dir/skewed.json' -o '$dir/skewed.series' && '$banyan' verify '$dir/star.json' '$dir/skewed.series'"
refused "a matrix for a broadcast" 2 "--matrix is for all-to-all" "$banyan" plan "$dir/star.json" -c broadcast --root host0 --matrix "$dir/skewed.json"
refused "trees for a gather" 2 "--trees-max is for plans of trees" "$banyan" plan "$dir/star.json" -c gather --root host0 --trees-max 2
refused "a gather without a root" 2 "gather needs a root" "$banyan" plan "$dir/star.json" -c gather
refused "a matrix that is none" 2 "not valid JSON" "$banyan" plan "$dir/star.json" -c all-to-all --matrix "$dir/star.json"
says "a scatter as JSON" '"throughput": {"num": 10, "den": 7}' steady star scatter --source host0 --json
refused "nobody can compute" 2 "no reduction is possible" steady plain reduce --target host0
refused "a switch is no target" 2 "'switch0' is a switch" steady star reduce --target switch0
refused "a node that is not there" 2 "has no node 'host9'" steady star scatter --source host9
refused "a size that is none" 2 "must be a positive integer" steady star gossip --size host1=0
refused "an order for what has none" 2 "--order has no meaning" steady star gossip --order host0
says "balance is cheap there" "2 trees" steady three reduce --target n0
says "a period with room for one of two trees" "throughput 1 (1) operations in a unit of time, OPTIMAL" steady three reduce --target n0 --period 1
says "and left out when not wanted" "1 tree of" steady three reduce --target n0 --balance=never
refused "a balance that is none" 2 "never, cheap or always" steady three reduce --target n0 --balance=often
refused "many values that commute, beside hosts without one" 2 "the limit is then 8 values" steady busy reduce --target host0 --commutative --order host0,host1,host2,host3,host4,host5,host6,host7,host8
"$banyan" topo a100 --boxes 128 >"$dir/large.json"
says "alike parts are planned once" "trees       1 class of 1024, k = 1; height 4" \
    plan large allgather --classes -o "$dir/classes.plan"
says "which is verified by classes" "OPTIMAL 201.575 GB/s with 1 class of 1024 trees" "$banyan" verify "$dir/large.json" "$dir/classes.plan"
says "and in numbers" '"images": 1024' "$banyan" verify "$dir/large.json" "$dir/classes.plan" --json
says "all of its trees are written" "OPTIMAL 201.575 GB/s with 1024 trees" \
    sh -c "'$banyan' export '$dir/large.json' '$dir/classes.plan' --format plan -o '$dir/all.plan' && '$banyan' verify '$dir/large.json' '$dir/all.plan'"
says "those of one root are written" '"root": "gpu77", "use": "down"' "$banyan" export "$dir/large.json" "$dir/classes.plan" --format plan --root gpu77
refused "the trees of a switch" 2 "name a compute node" "$banyan" export "$dir/large.json" "$dir/classes.plan" --format plan --root ib0
refused "a root for a schedule" 2 "--root is for --format plan" "$banyan" export "$dir/large.json" "$dir/classes.plan" --format msccl --root gpu77
refused "classes of a ring" 2 "no alike parts" plan ring allgather --classes
refused "no time" 2 "a number above 0" plan star allgather --time-limit 0
"$banyan" topo mi250 --boxes 64 >"$dir/packed.json"
says "a time limit that no search can keep still gives a plan" "ended by    the time limit, with the best plan so far" \
    plan packed allgather --time-limit 0.000001
"$banyan" topo torus --sizes 14x14x14 --fail 0.05 --seed 2 >"$dir/torus.json"
says "a signal ends a long search with a plan" "ended by    a signal, with the best plan so far" \
    timeout --foreground --preserve-status --signal INT $((2 + slow)) "$banyan" plan "$dir/torus.json" -c allreduce
says "a comparison at 1,024 GPUs" "height 2046" "$banyan" compare "$dir/large.json" -c allgather --algorithms forest,ring,recursive
says "leaves out what takes too long, and says so" "did not finish within its time limit" \
    "$banyan" compare "$dir/large.json" -c allgather --algorithms multitree --time-limit 0.05
says "progress is told where it is asked for" "banyan: allgather: multitree, " \
    "$banyan" compare "$dir/large.json" -c allgather --algorithms multitree --time-limit 1.5 --progress
says "and drawn on a terminal" "....] allgather: multitree" \
    script -qec "'$banyan' compare '$dir/large.json' -c allgather --algorithms multitree --time-limit 1.5" /dev/null
finish
