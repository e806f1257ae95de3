#!/usr/bin/env bash
# Several ranks on a host, without MPI: all collectives over real switches in several layouts, modes
# and transports, tables from a controller, a switch that fails, and a rank that is killed in each
# place.
#   lab-ranks.sh BUILD
. "$(dirname "$0")/lab-common.sh" lab-ranks "$@"
need_root
make_topologies
"$banyan" topo leafspine --spines 2 >"$dir/spines2.json"

# ranks_right WHAT TOPOLOGY RANKS OPTIONS... -- PERF OPTIONS...: passes if all elements are right,
# and the job has RANKS ranks that share memory on its hosts and use trees through switches.
ranks_right() {
    local what=$1 topology=$2 ranks=$3 options=()
    shift 3
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    if attended "$banyan" lab run "$dir/$topology.json" --timeout $((5 + slow)) "${options[@]}" -- banyan-perf "$@" >"$dir/run.out" 2>&1 &&
        grep -q '# Out of bounds values : 0 OK' "$dir/run.out" &&
        grep -q "rank 0 of $ranks (.*): ${trees:-offloaded}: .*; $ranks ranks on .* hosts, joined by shared memory in each" "$dir/run.out"; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
}

before=$(ls -A /dev/shm)
ranks_right "2 ranks on each of 4 hosts" star4 8 --ranks-per-host 2 -- -c all -b 8 -e 2M -f 64 -n 2
ranks_right "3, 1, 2 and 2 ranks, shares of unequal size, to rank 6" star4 8 --ranks-per-host 3,1,2,2 -- -c all -b 8 -e 256K -f 32 -n 2 -r 6 --counts 3,1,0,2,5,0,1,4
ranks_right "mode det, a sum that depends on the order" star4 8 --ranks-per-host 2 --mode det -- -c allreduce,reduce,reduce-scatter -b 96 -e 1M -f 100 -n 2 -d f16
ranks_right "hosts that share memory with their switch" star4 12 --ranks-per-host 3 --transport shm -- -c all -b 1M -e 1M -n 2
ranks_right "a fabric of two levels, packets lost" leafspine 8 --ranks-per-host 2 --loss 0.001 -- -c all -b 256K -e 256K -n 2
trees="host trees only" ranks_right "hosts without a switch" ring4 8 --ranks-per-host 2 -- -c allreduce,allgather -b 256K -e 256K -n 2
ranks_right "tables from the controller, and a spine that fails" spines2 8 --ranks-per-host 2 --controller --kill spine0@2 -- -c allreduce -b 256K -e 256K -n 400

# killed RANK TEXT TEXT NEAR FAR: the rank is killed during a run. NEAR ranks, of its host, must
# print the first text, FAR ranks of other hosts the second. Only the rank that leads a host sends to
# the others, so if it is lost, they can only name the host.
killed() {
    local rank=$1 near=$2 far=$3 what="rank $1 of 8 is killed" begin took
    cat >"$dir/perf" <<PERF
#!/bin/sh
[ "\$RANK" != $rank ] || exec timeout -s KILL 4 $build/bin/banyan-perf -c allreduce -b 256K -n 1000000
exec $build/bin/banyan-perf -c allreduce -b 256K -n 1000000
PERF
    chmod 700 "$dir/perf"
    begin=$(date +%s%N)
    attended "$banyan" lab run "$dir/star4.json" --timeout $((2 + slow)) --ranks-per-host 3,1,2,2 -- "$dir/perf" >"$dir/run.out" 2>&1
    took=$((($(date +%s%N) - begin) / 1000000))
    if [ "$(grep -c "banyan-perf: rank [0-9]*: allreduce of .*: $near" "$dir/run.out")" -eq "$4" ] &&
        [ "$(grep -c "banyan-perf: rank [0-9]*: allreduce of .*: $far" "$dir/run.out")" -eq "$5" ]; then
        pass "$what, $took ms with start and end: $(grep -m1 -o "allreduce of .*: $near.*" "$dir/run.out" || grep -m1 -o "allreduce of .*: $far.*" "$dir/run.out")"
    else
        fail "$what" "$dir/run.out"
    fi
}
killed 1 'rank 1 on host0 (process [0-9]*) has ended' 'rank 1 on host0 has ended' 2 5
killed 0 'rank 0 on host0 (process [0-9]*) has ended' 'host0 (ranks 0, 1, 2) has not contributed' 2 5
killed 3 'no rank is left there' 'host1 (rank 3) has not contributed' 0 7
killed 7 'rank 7 on host3 (process [0-9]*) has ended' 'rank 7 on host3 has ended' 1 6
if [ "$(ls -A /dev/shm)" = "$before" ]; then pass "nothing is left in /dev/shm"; else fail "something is left in /dev/shm"; fi

refused "numbers for three of four hosts" 2 "3 numbers for 4 hosts; give one number, or one for each host" "$banyan" lab run "$dir/star4.json" --ranks-per-host 1,2,3 -- true
refused "several ranks without a program" 2 "--ranks-per-host requires a program" "$banyan" lab run "$dir/star4.json" --ranks-per-host 2
refused "too many ranks on a host" 2 "it must be whole numbers from 1 to 64" "$banyan" lab run "$dir/star4.json" --ranks-per-host 65 -- true
finish
