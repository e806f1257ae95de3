#!/usr/bin/env bash
# Compares banyan-switchd with DPDK's own programs, on the same ports, with the same frames and the
# same load, one after another:
#   sum          every host sends data and receives the sum; beside dpdk-testpmd that forwards
#                between pairs of ports (macswap)
#   replication  one host sends data, all receive it; beside bench-multicast, the loop of DPDK's
#                sample ipv4_multicast
# on three kinds of ports: veth pairs through net_af_packet and net_af_xdp, and vhost-user rings,
# where no kernel is between the switch and its hosts.
#   switchd.sh [BUILD]        BUILD: folder with bin/ and tools/ (default build/release). Needs
#                             root, two cores and dpdk-testpmd (package dpdk-dev). Takes about 3
#                             minutes.
#                             BENCH_SECONDS: time of one measurement (default 2).
# For each it prints frames per second that came out, and processor time (ns) for each frame that
# the program received and sent, in rounds with frames: testpmd counts the same
# ("record-core-cycles"), as do bench-multicast and the switch ("busy_ns"). The ratio is that of
# frames per second of a busy core. With "*" the hosts (bench-hosts, on the other core) were at
# their limit, so that the program under test was idle at times and more frames per second would
# have been possible.
# Frames have 1408 bytes of payload. In a replication the switch receives a credit from each other
# host; bench-multicast receives the same frames and drops the credits; "bare" is without them. All
# programs have priority over other work on this machine. First bench-shell prints the cost of the
# switch's loop with ports that cost nothing. No program uses hugepages, so that the machine's
# settings do not change and no other program can take the pages.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
bin=$build/bin
tools=$build/tools
seconds=${BENCH_SECONDS:-2}
kinds=${BENCH_PORTS:-"af_packet:4 af_xdp:4 vhost:2 vhost:4 vhost:8"}
window=128
count=352
[ "$(id -u)" -eq 0 ] || { echo "switchd.sh: skipped: namespaces need root" >&2; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "switchd.sh: skipped: the switch and its hosts need a core each" >&2; exit 77; }
command -v dpdk-testpmd >/dev/null || { echo "switchd.sh: skipped: no dpdk-testpmd (apt-get install dpdk-dev)" >&2; exit 77; }
for program in "$bin/banyan-switchd" "$tools/switch-probe" "$tools/bench-hosts" "$tools/bench-multicast" "$tools/bench-shell"; do
    [ -x "$program" ] || { echo "switchd.sh: $program is missing: make build-all build-tools" >&2; exit 1; }
done

ns=bybench$$
dir=$(mktemp -d -t banyan-switchd-XXXXXX)
middle=0 # the program under test, and the hosts: process ids
hosts=0
cleanup() {
    trap '' HUP INT TERM
    for program in $middle $hosts; do
        [ "$program" -eq 0 ] || kill -KILL "$program" 2>/dev/null
    done
    wait 2>/dev/null
    ip netns del "$ns" 2>/dev/null
    rm -rf "$dir" "/var/run/dpdk/$ns"* /var/run/dpdk/banyan.bench$$.*
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# Runs a program in the background, in the namespace, on one core, with priority over everything
# else: the scheduler weighs sessions, then the programs of each. Its output is in $dir/LOG.
launch() { # launch CORE LOG PROGRAM...: its process id in $launched
    local core=$1 log=$2
    shift 2
    : >"$dir/$log"
    # shellcheck disable=SC2016 # for the inner shell
    setsid sh -c 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$@"' launch \
        nice -n -20 taskset -c "$core" ip netns exec "$ns" stdbuf -oL "$@" >"$dir/$log" 2>"$dir/$log.err" </dev/null &
    launched=$!
}
# await PATTERN LOG: waits until a line of the log contains PATTERN, while the program under test
# runs, 30 s at most.
await() {
    local tries
    for ((tries = 0; tries < 1500; tries++)); do
        ! grep -q "$1" "$dir/$2" || return 0
        kill -0 "$middle" 2>/dev/null || break
        sleep 0.02
    done
    tail -n 5 "$dir/$2" "$dir/$2.err" >&2
    echo "switchd.sh: $2 does not become ready" >&2
    return 1
}
# Ends a program, which has 10 s for this.
finish() { # finish PID SIGNAL
    local tries
    kill -"$2" "$1" 2>/dev/null
    for ((tries = 0; tries < 500; tries++)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.02
    done
    kill -KILL "$1" 2>/dev/null
    { wait "$1"; } 2>/dev/null
}

links() { # links KIND PORTS: a fresh namespace
    local i
    ip netns del "$ns" 2>/dev/null
    ip netns add "$ns" && ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    [ "$1" != vhost ] || return 0
    for ((i = 0; i < $2; i++)); do
        ip -n "$ns" link add "p$i" type veth peer name "h$i"
        ip -n "$ns" link set "p$i" up
        ip -n "$ns" link set "h$i" up
    done
}
devices() { # devices KIND PORTS p|h: EAL's arguments for one side
    local i
    for ((i = 0; i < $2; i++)); do
        case $1-$3 in
        vhost-p) echo "--vdev net_vhost$i,iface=$dir/s$i" ;;
        vhost-h) echo "--vdev net_virtio_user$i,path=$dir/s$i,queue_size=1024,packed_vq=1,mrg_rxbuf=0,in_order=1" ;;
        af_packet-*) echo "--vdev net_af_packet$i,iface=$3$i,framesz=2048,blocksz=65536,framecnt=1024,qdisc_bypass=1" ;;
        af_xdp-*) echo "--vdev net_af_xdp$i,iface=$3$i" ;;
        esac
    done
}
eal="--no-huge --no-shconf --no-pci --no-telemetry --log-level=error"

# The three programs under test; each leaves its process id in $middle.
testpmd() { # KIND PORTS
    launch 1 testpmd dpdk-testpmd $eal -m 256 --file-prefix "$ns.m" --lcores "0@1,1@1" $(devices "$1" "$2" p) -- --total-num-mbufs=40960 \
        --forward-mode=macswap --nb-cores=1 --auto-start --stats-period 1 --record-core-cycles
    middle=$launched
    await "NIC statistics for port" testpmd
}
multicast() { # KIND PORTS
    launch 1 multicast "$tools/bench-multicast" $eal -m 256 --file-prefix "$ns.m" --lcores "0@1" $(devices "$1" "$2" p)
    middle=$launched
    await ready multicast
}
switch() { # KIND PORTS
    local i ports=
    for ((i = 0; i < $2; i++)); do
        if [ "$1" = vhost ]; then ports+=" --vdev net_vhost$i,iface=$dir/s$i"; else ports+=" --iface p$i --driver $1"; fi
    done
    "$tools/switch-probe" image "$dir/table" "$2" 1 $window $((4 * count)) 1500
    launch 1 switch "$bin/banyan-switchd" --name bench$$ $ports --no-huge --table "$dir/table" --control "unix:$dir/c.sock"
    middle=$launched
    await ready switch
}
# The cost of a frame (ns), after the program has ended or, for the switch, before.
cost() { # cost testpmd|multicast|switch
    case $1 in
    testpmd) sed -nE 's/.*CPU cycles\/packet=([0-9.]+) .* at ([0-9]+) MHz.*/\1 \2/p' "$dir/testpmd" | tail -1 | awk '{print $1 * 1000 / $2}' ;;
    multicast) awk '$1 ~ /^[0-9]+$/ {print $2 / $1}' "$dir/multicast" ;;
    switch) awk '$1 == "shell_busy_ns" {busy = $2} $1 == "tx_result" {sent = $2} END {if (sent) print busy / sent}' "$dir/counters" ;;
    esac
}

# run MIDDLE KIND PORTS TRAFFIC: $rate, $ns_each, $mark
run() {
    local idle resent wrong
    links "$2" "$3"
    "$1" "$2" "$3" || return 1
    launch 0 hosts "$tools/bench-hosts" $eal -m $((64 + 26 * $3)) --single-file-segments --file-prefix "$ns.h" --lcores "0@0" $(devices "$2" "$3" h) -- \
        "$4" "$seconds" $window $count
    hosts=$launched
    wait "$hosts"
    hosts=0
    if ! read -r rate idle resent wrong <"$dir/hosts"; then
        tail -n 5 "$dir/hosts.err" "$dir/$1" "$dir/$1.err" >&2
        echo "switchd.sh: $1 on $2: no frames" >&2
        return 1
    fi
    [ "$1" != switch ] || "$tools/switch-probe" counters "unix:$dir/c.sock" >"$dir/counters"
    finish "$middle" INT
    middle=0
    [ "$wrong" -eq 0 ] || { echo "switchd.sh: $wrong wrong results" >&2; return 1; }
    ns_each=$(cost "$1")
    [ -n "$ns_each" ] || { tail -n 5 "$dir/$1" >&2; echo "switchd.sh: $1 does not say what a frame cost" >&2; return 1; }
    mark=" "
    [ "$idle" -ge 5 ] || mark="*"
    [ "$resent" -eq 0 ] || echo "# $1 on $2, $3 ports: $resent chunks were sent again"
}

row() { # row KIND PORTS WHAT OURS MARK NS MIDDLE TRAFFIC NAME GOAL
    run "$7" "$1" "$2" "$8" || exit 1
    printf '  %-9s %5d  %-11s %10d%s %6.0f  %-16s %10d%s %6.0f  %6.2f %5s\n' "$1" "$2" "$3" "$4" "$5" "$6" "$9" "$rate" "$mark" "$ns_each" \
        "$(awk -v a="$ns_each" -v b="$6" 'BEGIN {print a / b}')" "${10}"
}

"$tools/bench-shell" || exit 1
printf '# %-9s %5s  %-11s %11s %6s  %-16s %11s %6s  %6s %5s\n' ports count traffic switchd/s ns beside frames/s ns ratio goal
for kind in $kinds; do
    ports=${kind#*:}
    kind=${kind%:*}
    run switch "$kind" "$ports" sum || exit 1
    row "$kind" "$ports" sum "$rate" "$mark" "$ns_each" testpmd sum "testpmd macswap" 0.6
    run switch "$kind" "$ports" copy || exit 1
    ours=$rate own_mark=$mark own=$ns_each
    row "$kind" "$ports" replication "$ours" "$own_mark" "$own" multicast copy "multicast" 0.9
    row "$kind" "$ports" replication "$ours" "$own_mark" "$own" multicast fan "multicast, bare" ""
done
