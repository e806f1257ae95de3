#!/usr/bin/env bash
# Errors name the cause at every rank. All ranks name a rank that is absent or was killed within a
# second or two of their timeout (2 s; more on a slow machine), also below another switch. If ranks
# are in different calls, all errors list which rank is in which call.
#   lab-blame.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-blame "${1:-build/release}"
need_root
cleanup_more() { down_of "$dir/up.out"; }
make_topologies

# start HOST ARGUMENTS...: runs banyan-perf on one host, with output in $dir/HOST.out; sets
# $started.
start() {
    local host=$1 command
    shift
    command=$(sed -n "s/^host  *$host  *\(ip .*\)$/\1/p" "$dir/up.out")
    # shellcheck disable=SC2086
    (BANYAN_TIMEOUT=$((2 + slow)) exec timeout 60 ${command% COMMAND} "$build/bin/banyan-perf" "$@" >"$dir/$host.out" 2>&1) &
    started=$!
    children+=("$started")
}
hosts() { sed -n 's/^host  *\([^ ]*\) .*/\1/p' "$dir/up.out"; }
renew() { children=(); "$banyan" push --renew "$folder" --sockets "$folder" >"$dir/renew.out" 2>&1 || fail "push --renew" "$dir/renew.out"; }
# all_say WHAT LEFT_OUT TEXT...: passes if the output of every host except LEFT_OUT matches each
# TEXT.
all_say() {
    local what=$1 out=$2 host text
    shift 2
    for host in $(hosts); do
        [ "$host" = "$out" ] && continue
        for text in "$@"; do
            grep -Eq "$text" "$dir/$host.out" && continue
            fail "$what: $host does not say '$text'" "$dir/$host.out"
            return
        done
    done
    pass "$what"
}
# absent HOST; killed HOST; differ WHAT TEXT HOST ARGUMENTS_OF_HOST -- ARGUMENTS_OF_OTHERS
absent() {
    local host pids=() begin=$SECONDS
    for host in $(hosts); do
        [ "$host" = "$1" ] || { start "$host" -c allreduce -b 64K -n 1; pids+=("$started"); }
    done
    wait "${pids[@]}"
    all_say "$topology: all name $1, which does not come" "$1" "$1 \(rank [0-9]+\) has not contributed"
    if in_time $((SECONDS - begin)) $((5 + slow)); then pass "$topology: within $((SECONDS - begin)) s"; else fail "$topology: $((SECONDS - begin)) s"; fi
    renew
}
killed() {
    local host pids=() victim=
    for host in $(hosts); do
        start "$host" -c allreduce -b 256K -n 1000000
        if [ "$host" = "$1" ]; then victim=$started; else pids+=("$started"); fi
    done
    sleep 2
    end_tree KILL "$victim"
    wait "${pids[@]}" "$victim" 2>/dev/null
    all_say "$topology: all name $1, which was killed" "$1" "$1 \(rank [0-9]+\) has not contributed"
    renew
}
differ() {
    local what=$1 text=$2 odd=$3 host pids=() own=()
    shift 3
    while [ "$1" != -- ]; do own+=("$1"); shift; done
    shift
    for host in $(hosts); do
        if [ "$host" = "$odd" ]; then start "$host" "${own[@]}"; else start "$host" "$@"; fi
        pids+=("$started")
    done
    wait "${pids[@]}"
    all_say "$topology: $what: all read who disagrees" - "disagree" "$odd \(rank [0-9]+\)(, host[0-9]+ \(rank [0-9]+\)| below [^:]*)*: $text"
    renew
}

for topology in star4 leafspine; do
    if ! "$banyan" lab up "$dir/$topology.json" >"$dir/up.out" 2>&1; then
        fail "$topology: lab up" "$dir/up.out"
        continue
    fi
    id=$(id_of "$dir/up.out")
    folder=/run/banyan/lab-$id
    last=$(hosts | tail -n 1)
    first=$(hosts | head -n 1)
    absent "$last"
    absent "$first"
    killed "$last"
    differ "another collective" "broadcast" "$last" -c broadcast -b 64K -n 1 -- -c allreduce -b 64K -n 1
    differ "an allgather, on trees of its own" "allgather" "$last" -c allgather -b 64K -n 1 -- -c allreduce -b 64K -n 1
    differ "another operator" "allreduce, max" "$first" -c allreduce -o max -b 64K -n 1 -- -c allreduce -b 64K -n 1
    differ "another type" "allreduce, sum of [0-9]+ i32" "$last" -c allreduce -d i32 -b 64K -n 1 -- -c allreduce -b 64K -n 1
    differ "another count" "allreduce, sum of|a call unknown to this rank" "$last" -c allreduce -b 32K -n 1 -- -c allreduce -b 64K -n 1
    differ "another root" "broadcast from rank 1" "$last" -c broadcast -r 1 -b 64K -n 1 -- -c broadcast -r 0 -b 64K -n 1
    down_of "$dir/up.out"
done
finish
