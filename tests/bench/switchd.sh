#!/usr/bin/env bash
# Packets a second that banyan-switchd sends when it replicates results to 1, 2, 4 and 8 ports, as a ratio to dpdk-testpmd forwarding from one
# port to another on the same kind of ports, one after the other: veth pairs, driven by net_af_packet and by net_af_xdp.
#   switchd.sh [BUILD]        BUILD: folder with bin/ and tools/ (default build/release). Needs root, two cores and dpdk-testpmd (package dpdk-dev).
# Rates are per second of CPU that the program took (the forwarding thread of testpmd, the one thread of banyan-switchd), so that a machine that is busy
# with other things gives the same figures. Frames are 1490 bytes: 1408 of payload. A chunk costs the switch as many packets in as out (the data
# once, credits from the other hosts), and the header's and payload's checks; testpmd looks at nothing. "<": testpmd could have done more, its load
# was at its end. Neither program uses hugepages, so that nothing of the machine's is changed and no other program can take them away.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
switchd=$build/bin/banyan-switchd
probe=$build/tools/switch-probe
seconds=${BENCH_SECONDS:-3}
[ "$(id -u)" -eq 0 ] || { echo "switchd.sh: skipped: namespaces need root" >&2; exit 77; }
command -v dpdk-testpmd >/dev/null || { echo "switchd.sh: skipped: no dpdk-testpmd (apt-get install dpdk-dev)" >&2; exit 77; }
for program in "$switchd" "$probe"; do
    [ -x "$program" ] || { echo "switchd.sh: $program is missing: make build-all build-tools" >&2; exit 1; }
done

ns=bybench$$
dir=$(mktemp -d -t banyan-switchd-XXXXXX)
pid=0
cleanup() {
    [ "$pid" -eq 0 ] || kill -KILL "$pid" 2>/dev/null
    wait 2>/dev/null
    ip netns del "$ns" 2>/dev/null
    rm -rf "$dir" "/var/run/dpdk/$ns" "/var/run/dpdk/banyan.bench.$pid"
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM
inside() { ip netns exec "$ns" "$@"; }
links() {
    ip netns del "$ns" 2>/dev/null
    ip netns add "$ns" && inside sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    for ((i = 0; i < $1; i++)); do
        ip -n "$ns" link add "p$i" type veth peer name "h$i"
        ip -n "$ns" link set "p$i" up
        ip -n "$ns" link set "h$i" up
    done
}
# await PATTERN FILE: until a line of FILE holds PATTERN, while the program runs, 60 s at most. Files are emptied before the program starts: one
# from the last run would say that this one is ready, too.
await() {
    local tries
    for ((tries = 0; tries < 3000; tries++)); do
        grep -q "$1" "$2" && return 0
        kill -0 "$pid" 2>/dev/null || return 1
        sleep 0.02
    done
    return 1
}
# ended PROGRAM LOG: the program on the way to its end, with what it said last. Always 1.
ended() {
    local status how="is not ready after 60 s"
    if ! kill -0 "$pid" 2>/dev/null; then
        wait "$pid"
        status=$?
        how="ended with status $status"
    fi
    tail -5 "$2" >&2
    echo "switchd.sh: $1 $how" >&2
    return 1
}
# Nanoseconds of CPU of a thread; packets that have come out of the far end of a port.
first="nice -n -20" # before all else that runs on this machine
cpu_ns() { awk '{print $1}' "/proc/$1/schedstat"; }
came() { inside cat "/sys/class/net/$1/statistics/rx_packets"; }
rate() { result=$(($1 * 1000000000 / ($2 + 1))); }

# testpmd DRIVER: result = packets per CPU second, forwarded from p0 to p1 while h0 sends as fast as it can.
testpmd() {
    local thread begin sent
    links 2
    local devices="--vdev net_$1""0,iface=p0 --vdev net_$1""1,iface=p1"
    [ "$1" = af_packet ] && devices="--vdev net_af_packet0,iface=p0,framesz=2048,blocksz=65536,framecnt=1024,qdisc_bypass=1 --vdev net_af_packet1,iface=p1,framesz=2048,blocksz=65536,framecnt=1024,qdisc_bypass=1"
    : >"$dir/testpmd"
    $first ip netns exec "$ns" stdbuf -oL dpdk-testpmd --no-huge -m 1024 --no-shconf --no-pci --file-prefix "$ns" --lcores "0@0,1@1" $devices -- \
        --total-num-mbufs=16384 --forward-mode=io --nb-cores=1 --auto-start --stats-period 1 >"$dir/testpmd" 2>&1 </dev/null &
    pid=$!
    await "NIC statistics for port 1" "$dir/testpmd" || { ended dpdk-testpmd "$dir/testpmd"; return 1; }
    thread=$(grep -lE '^(dpdk-worker1|rte-worker-1)$' /proc/$pid/task/*/comm | cut -d/ -f5)
    [ -n "$thread" ] || { echo "switchd.sh: dpdk-testpmd has no thread that forwards" >&2; return 1; }
    begin=$(cpu_ns "$thread")
    sent=$(came h1)
    $first taskset -c 0 ip netns exec "$ns" "$probe" blast "$seconds" 1490 h0 >"$dir/blast"
    sent=$(($(came h1) - sent))
    [ "$sent" -gt 0 ] || { tail -5 "$dir/testpmd" >&2; echo "switchd.sh: dpdk-testpmd forwarded nothing" >&2; return 1; }
    rate "$sent" $(($(cpu_ns "$thread") - begin))
    bound=" "
    [ $(($(cut -d' ' -f1 "$dir/blast") * seconds)) -gt $((sent * 102 / 100)) ] || bound="<"
    kill -INT "$pid"
    wait "$pid"
    pid=0
}

# switch DRIVER PORTS: the same for results that come out at all hosts.
switch() {
    local begin sent=0 hosts= ports= i
    links "$2"
    for ((i = 0; i < $2; i++)); do hosts+=" h$i"; ports+=" --iface p$i"; done
    "$probe" image "$dir/table" "$2" 1 128 1408 1500
    : >"$dir/out"
    $first taskset -c 1 ip netns exec "$ns" "$switchd" --name bench $ports --no-huge --driver "$1" --table "$dir/table" --control "unix:$dir/c.sock" >"$dir/out" 2>"$dir/err" &
    pid=$!
    await ready "$dir/out" || { ended banyan-switchd "$dir/err"; return 1; }
    begin=$(cpu_ns "$pid")
    for i in $hosts; do sent=$((sent - $(came "$i"))); done
    $first taskset -c 0 ip netns exec "$ns" "$probe" replicate "$2" "$seconds" 128 352 $hosts >"$dir/replicate" || { echo "switchd.sh: no results" >&2; return 1; }
    for i in $hosts; do sent=$((sent + $(came "$i"))); done
    rate "$sent" $(($(cpu_ns "$pid") - begin))
    kill -TERM "$pid"
    wait "$pid"
    pid=0
}

echo "# banyan-switchd replicating results beside dpdk-testpmd forwarding (io): packets sent per second of one core, 1490-byte frames, veth ports"
printf '# %-14s %6s %14s %14s %7s\n' driver ports switchd testpmd ratio
for driver in af_packet af_xdp; do
    testpmd "$driver" || exit 1
    base=$result
    for count in 1 2 4 8; do
        switch "$driver" "$count" || exit 1
        printf '  net_%-10s %6d %14d %14d %s%6s\n' "$driver" "$count" "$result" "$base" "$bound" "$(awk -v a="$result" -v b="$base" 'BEGIN {printf "%.2f", a / b}')"
    done
done
