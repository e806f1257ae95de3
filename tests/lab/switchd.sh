#!/usr/bin/env bash
# banyan-switchd by hand on veth ports: tables, sums, malformed packets, injected faults, bad ports,
# no hugepages, no root, clean ends. Removes all that it made, also after a failure or Ctrl-C.
#   switchd.sh [BUILD]        BUILD: folder with bin/ and tools/ (default build/release). Needs
#                             root.
#                             Exit 0: all passed, 1: one failed, 77: skipped (not root).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
switchd=$build/bin/banyan-switchd
probe=$build/tools/switch-probe
[ "$(id -u)" -eq 0 ] || { echo "switchd.sh: skipped: namespaces need root" >&2; exit 77; }
for program in "$switchd" "$probe"; do
    [ -x "$program" ] || { echo "switchd.sh: $program is missing: make build-all build-tools" >&2; exit 1; }
done

ns=bysw$$
dir=$(mktemp -d -t banyan-switchd-XXXXXX)
pid=0
passed=0
failed=0
taken_huge=0
cleanup() {
    local i
    trap '' HUP INT TERM
    if [ "$pid" -ne 0 ]; then
        kill -CONT "$pid" 2>/dev/null
        kill -TERM "$pid" 2>/dev/null
        for ((i = 0; i < 600; i++)); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.05
        done
        kill -KILL "$pid" 2>/dev/null
    fi
    wait 2>/dev/null
    change_huge -"$taken_huge"
    ip netns del "$ns" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

pass() { passed=$((passed + 1)); echo "  PASS   $1"; }
fail() { failed=$((failed + 1)); echo "  FAIL   $1"; [ ! -s "$dir/err" ] || sed 's/^/         /' "$dir/err"; }
check() { # check NAME COMMAND...: the command's success
    local name=$1
    shift
    if "$@" >"$dir/out.check" 2>&1; then pass "$name"; else fail "$name"; sed 's/^/         /' "$dir/out.check"; fi
}
inside() { ip netns exec "$ns" "$@"; }

# A new namespace with COUNT veth pairs: p0.. for the switch, h0.. for its hosts.
links() { # links COUNT MTU
    ip netns del "$ns" 2>/dev/null
    ip netns add "$ns" && inside sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    ip -n "$ns" link set lo up
    for ((i = 0; i < $1; i++)); do
        ip -n "$ns" link add "p$i" mtu "$2" type veth peer name "h$i" mtu "$2"
        ip -n "$ns" link set "p$i" up
        ip -n "$ns" link set "h$i" up
    done
}
# Changes the number of hugepages relative to the present one, because other programs may do so at
# the same time.
change_huge() {
    [ "$1" -eq 0 ] || flock /run/lock sh -c 'sysctl -qw vm.nr_hugepages=$(($(sysctl -n vm.nr_hugepages) + $1))' sh "$1"
}
# Hugepages belong to the whole machine, and other programs allocate and free them. Therefore the
# switch sees a substitute for the kernel's folder, with FREE hugepages, RESERVED of which are
# promised to others. (ip netns exec has made a mount namespace.)
cat >"$dir/shown" <<'END'
#!/bin/sh
pages=/sys/kernel/mm/hugepages/hugepages-2048kB
mount -t tmpfs none /sys/kernel/mm/hugepages && mkdir $pages && echo "$1" >$pages/free_hugepages && echo "$2" >$pages/resv_hugepages && shift 2 && exec "$@"
END
chmod +x "$dir/shown"
# Starts the switch in the background, on a machine without hugepages; succeeds when it reports that
# it is ready.
start() { start_with "$dir/shown 0 0" "$@"; }
start_with() { # start_with "PROGRAM ..." ARGUMENTS...: through another program
    local through=$1
    shift
    : >"$dir/out"
    ip netns exec "$ns" $through "$switchd" --name test "$@" >"$dir/out" 2>"$dir/err" &
    pid=$!
    for ((i = 0; i < 1500; i++)); do
        grep -q ready "$dir/out" && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    wait "$pid"
    pid=0
    return 1
}
# Ends the switch with a signal; succeeds if it exits with 0 and leaves nothing behind.
stop() { # stop [SIGNAL]
    local status left
    kill -"${1:-TERM}" "$pid"
    wait "$pid"
    status=$?
    left=$(ls -d /var/run/dpdk/banyan.test."$pid" "$dir"/*.sock 2>/dev/null)
    pid=0
    [ "$status" -eq 0 ] && [ -z "$left" ] && return 0
    echo "status $status, left behind: $left"
    return 1
}
# Runs the switch to its end: its status must be $1 and its message must contain $2.
refused() { # refused STATUS TEXT ARGUMENTS...
    local status=$1 text=$2 got
    shift 2
    timeout 20 ip netns exec "$ns" "$dir/shown" 0 0 "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" -eq "$status" ] && grep -qF -- "$text" "$dir/err" && [ ! -s "$dir/out" ] && return 0
    echo "status $got, expected $status and '$text'"
    return 1
}
# Sums while the switch is stopped for a while: retransmissions of the hosts meet their first
# packets, so the switch answers many times at once.
late_star() {
    local result=0 hosts
    kill -STOP "$pid"
    inside "$probe" star 2 10 352 "$1" h0 h1 &
    hosts=$!
    sleep 0.3
    kill -CONT "$pid"
    wait "$hosts" || result=$?
    test "$(counter repair_result)" -gt 0 || { echo "no repeated results: $(counter repair_result)"; result=1; }
    return $result
}
counter() { "$probe" counters "unix:$dir/c.sock" | awk -v name="$1" '$1 == name {print $2}'; }
equal() { [ "$1" = "$2" ] || { echo "$1, expected $2"; return 1; }; }

control="--control unix:$dir/c.sock"
two="--iface p0 --iface p1"
four="--iface p0 --iface p1 --iface p2 --iface p3"

# ---- sums, tables and counters ------------------------------------------------------------------------------------------------
links 4 1500
"$probe" image "$dir/two" 2 1 16 1408 1500
"$probe" image "$dir/four" 4 3 64 1408 1500
check "a switch starts and says that it is ready" start $two $control --control tcp:127.0.0.1:46248 --driver af_packet
check "stdout holds one line and nothing else" equal "$(cat "$dir/out")" "banyan-switchd: test: ready, 2 ports, control unix:$dir/c.sock"
check "without hugepages it runs and says how to get them" grep -q "not enough hugepages (0 MiB free, 88 needed): running without; .sysctl vm.nr_hugepages=44. provides them" "$dir/err"
check "in one line" equal "$(wc -l <"$dir/err")" 1
check "a table is pushed in pieces of 7 bytes and read back" "$probe" push "unix:$dir/c.sock" "$dir/two" 7
check "the same over TCP, again" inside "$probe" push tcp:127.0.0.1:46248 "$dir/two"
check "a star of two hosts gets right sums" inside "$probe" star 2 100 352 0 h0 h1
check "malformed packets are counted and not answered, a late one is" inside "$probe" malformed "unix:$dir/c.sock" 2 100 h0 h1
check "payloads were shared, not copied" equal "$(counter shell_tx_shared) $(counter shell_tx_copied)" "200 1" # the one is the answer to the late packet
head -c 200 "$dir/two" >"$dir/cut"
check "a truncated image is refused by push" bash -c '! "$0" push "$1" "$2"' "$probe" "unix:$dir/c.sock" "$dir/cut"
cp "$dir/two" "$dir/flipped" && printf '\xff' | dd of="$dir/flipped" bs=1 seek=300 conv=notrunc status=none
check "a bit-flipped image is refused by push" bash -c '! "$0" push "$1" "$2"' "$probe" "unix:$dir/c.sock" "$dir/flipped"
check "an image with more ports is refused by push" bash -c '! "$0" push "$1" "$2"' "$probe" "unix:$dir/c.sock" "$dir/four"
check "and the active table still works" inside "$probe" star 2 1 352 101 h0 h1
# ---- more clients, more requests and longer rounds than there should be -----------------------------------------------------
told() { # told TEXT COMMAND...: prints it
    local text=$1
    shift
    "$@" | tee /dev/stderr | grep -qF -- "$text"
}
check "the seventeenth client is told that sixteen are the limit" told "connections: 16 clients are connected, the limit" "$probe" crowd "unix:$dir/c.sock" 17
check "a client that asks without a pause is told how often it may" told "more than 8192 at once and 1000 a second" "$probe" haste "unix:$dir/c.sock"
check "another one is served all the same" inside "$probe" counters "unix:$dir/c.sock"
log() { "$build/bin/banyan" show "unix:$dir/c.sock" --log; }
check "show --log tells of the start" told "started on board x86-dpdk: 2 ports" log
check "of the table" told "commit: the active table is 0x" log
check "of who was refused" told "a control client was refused: connections: 16" log
check "and of the client that had to wait" told "a client exceeds its request rate" log
if command -v dpdk-telemetry.py >/dev/null; then
    check "dpdk-telemetry.py shows the counters" bash -c \
        'for c in counters ports entries slots,0; do echo "/banyan/$c"; done | dpdk-telemetry.py -f "banyan.test.$0" | grep -c shell_tx_shared' "$pid"
fi
ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }
before=$(ticks)
sleep 2
check "an idle switch uses no CPU (at most 2 ticks in 2 s)" test $(($(ticks) - before)) -le 2
check "SIGTERM ends it with 0 and leaves nothing behind" stop TERM
# It sleeps on its ports' descriptors also where these are above 1,023, the limit of select().
cat >"$dir/many" <<'END'
#!/bin/sh
exec bash -c 'ulimit -n 4096 && for ((fd = 3; fd < 1100; fd++)); do eval "exec $fd</dev/null"; done && exec "$@"' many "$@"
END
chmod +x "$dir/many"
check "a switch with 1,100 descriptors open before its own starts" start_with "$dir/many $dir/shown 0 0" $two $control --driver af_packet
check "its ports' descriptors are above 1,023" bash -c "ls -l /proc/$pid/fd | grep -E ' 1[1-9][0-9]{2} -> socket' | grep -q ."
before=$(ticks)
sleep 2
check "it uses no CPU when idle" test $(($(ticks) - before)) -le 2
check "and ends" stop TERM
cores=$(nproc)
check "more workers than cores: 2, with the remedy" refused 2 "this process may use $cores; --cores $cores uses them, --workers $((cores + 1)) lets" "$switchd" --name t --iface p0 $control --cores $((cores + 1))
check "a core that is not there: 2" refused 2 "core 1023 is not available to this process" "$switchd" --name t --iface p0 $control --cores 0,1023
check "a list that is none: 2" refused 2 "it must be a number of cores, or a list" "$switchd" --name t --iface p0 $control --cores 1-
check "three workers start" start $two $control --driver af_packet --workers 3
check "and are told" grep -q ", 3 workers" "$dir/out"
before=$(ticks)
sleep 2
check "they use no CPU when idle" test $(($(ticks) - before)) -le 3
check "and end" stop TERM
check "--watchdog 1 is too short: 2" refused 2 "it must be 0 or at least 2" "$switchd" --name t --iface p0 $control --watchdog 1
check "a switch is watched" start $two $control --watchdog 2
"$probe" hold "$pid" 30 &
wait "$pid"
check "a loop that hangs ends it: 3" equal "$?" 3
pid=0
wait
check "and it says where the loop was" grep -qE "the loop made no progress for 2 s, (asleep|at its ports|at the control channel): ending" "$dir/err"

# ---- faults, drivers, MTUs ----------------------------------------------------------------------------------------------------
check "it loads a table at start" start $four $control --table "$dir/four" --loss 0.05 --dup 0.1 --reorder 0.1 --seed 7
check "four hosts get right sums under loss, duplication and reordering" inside "$probe" star 4 100 352 0 h0 h1 h2 h3
check "faults were injected" test "$(counter shell_fault_dropped)" -gt 0 -a "$(counter shell_fault_duplicated)" -gt 0 -a "$(counter shell_fault_held)" -gt 0
check "SIGINT ends it as well" stop INT
# counted_lost LEAST: succeeds if port p0 counts more lost frames than that, within 10 s after the
# switch runs again.
counted_lost() {
    local lost end=$((SECONDS + 10))
    while lost=$("$probe" counters "unix:$dir/c.sock" | awk '/^port p0/ {print $10}'); [ "${lost:-0}" -le "$1" ]; do
        [ $SECONDS -lt $end ] || { echo "port p0 counts ${lost:-no} lost frames, more than $1 were sent in vain"; return 1; }
        sleep 0.1
    done
}
for driver in af_packet af_xdp gso; do
    # The kernel copies its results, except repeated ones, to all children.
    [ $driver != gso ] || export PROBE_COPIES=1
    check "a switch on net_$driver is stopped" start $two $control --driver $driver --table "$dir/two"
    kill -STOP "$pid"
    check "frames come in the meantime" inside "$probe" blast 1 1490 h0
    kill -CONT "$pid"
    check "those that the port had no room for are counted" counted_lost 1000
    check "right sums afterwards" inside "$probe" star 2 10 352 0 h0 h1
    check "right sums where hosts had to send again" late_star 10
    check "it ends" stop TERM
done
unset PROBE_COPIES
check "without the right to load programs it falls back to net_af_packet" start_with "$dir/shown 0 0 setpriv --bounding-set -sys_admin,-bpf,-perfmon" $two $control --table "$dir/two"
check "and says so" grep -q "iface p0: net_af_xdp does not work here, using net_af_packet" "$dir/err"
check "right sums all the same" inside "$probe" star 2 10 352 0 h0 h1
check "it ends" stop TERM
if start $two $control --driver af_xdp --table "$dir/two"; then
    check "the same sums over net_af_xdp" inside "$probe" star 2 100 352 0 h0 h1
    check "it ends" stop TERM
    links 8 1500
    "$probe" image "$dir/eight" 8 1 16 1408 1500
    check "eight ports over net_af_xdp" start $(printf -- "--iface p%d " {0..7}) $control --driver af_xdp --table "$dir/eight"
    check "right sums" inside "$probe" star 8 200 352 0 h{0..7}
    check "every frame of these left the switch: nothing was sent again" equal "$(counter repair_result)" 0
    check "it ends" stop TERM
    check "and has detached its programs" bash -c '! ip -n "$0" link show p0 | grep -q xdp' "$ns"
else
    fail "net_af_xdp opens a veth port"
fi
check "a killed switch leaves a socket" start $two $control --table "$dir/two"
kill -KILL "$pid" && wait "$pid" 2>/dev/null
check "which the next one replaces" start $two $control --table "$dir/two"
check "a second switch on the same socket is refused" refused 2 "another switch listens" "$switchd" --name other --iface p2 $control
check "the first one still runs" inside "$probe" star 2 3 352 0 h0 h1
check "it ends" stop TERM
links 4 9000
"$probe" image "$dir/jumbo" 4 1 16 8192 9000
check "jumbo frames: 8192 bytes of payload" start $four $control --table "$dir/jumbo"
check "right sums in jumbo frames" inside "$probe" star 4 50 2048 0 h0 h1 h2 h3
check "it ends" stop TERM

# ---- hugepages ----------------------------------------------------------------------------------------------------------------
links 2 1500
check "with hugepages that are promised to others it runs without" start_with "$dir/shown 50 10" $two $control --table "$dir/two"
check "and does not count them" grep -q "not enough hugepages (80 MiB free, 88 needed)" "$dir/err"
check "it ends" stop TERM
# Other programs may take the new pages before the switch does, so there are three attempts.
for attempt in 1 2 3; do
    before=$(sysctl -n vm.nr_hugepages)
    change_huge 256
    taken_huge=$((taken_huge + $(sysctl -n vm.nr_hugepages) - before))
    start_with "" $two $control --table "$dir/two" && [ ! -s "$dir/err" ] && break
    [ "$pid" -eq 0 ] || stop TERM >"$dir/out.check"
done
if [ "$pid" -ne 0 ]; then
    pass "with hugepages it starts without a word"
    check "and uses them" test "$(awk '/^Private_Hugetlb/ {sum += $2} END {print sum}' "/proc/$pid/smaps")" -gt 16384
    check "right sums" inside "$probe" star 2 10 352 0 h0 h1
    check "it ends" stop TERM
    check "no file keeps pages" bash -c '! find $(awk "\$3 == \"hugetlbfs\" {print \$2}" /proc/mounts) -name "*banyan.test*" | grep .'
    check "stderr is empty" test ! -s "$dir/err"
elif [ "$taken_huge" -ge 256 ]; then
    fail "with hugepages it starts without a word"
else
    echo "  SKIP   hugepages: the kernel gives none"
fi
change_huge -"$taken_huge"
taken_huge=0

# ---- what is refused ----------------------------------------------------------------------------------------------------------
check "an interface that does not exist: 2, naming what does" refused 2 "--iface nope: no such interface; available: lo, h0, p0, h1, p1" "$switchd" --name t --iface p0 --iface nope $control
check "a PCI address that does not exist: 2" refused 2 "--pci 0000:ff:1f.7: no such device" "$switchd" --name t --pci 0000:ff:1f.7 $control
check "a virtual device that does not exist: 2" refused 2 "--vdev net_nope0: no such virtual device" "$switchd" --name t --vdev net_nope0 $control
check "a port given twice: 2" refused 2 "port p0 is given twice" "$switchd" --name t --iface p0 --iface p0 $control
check "a payload larger than the MTU: 2, with the numbers" refused 2 "a payload of 8192 bytes needs an MTU of 8260, and the port has 1500" "$switchd" --name t --iface p0 $control --payload-max 8192
check "a table that is none: 2" refused 2 "not a table image" "$switchd" --name t --iface p0 $control --table /etc/passwd
check "a truncated table: 2" refused 2 "--table $dir/cut" "$switchd" --name t --iface p0 $control --table "$dir/cut"
check "a bit-flipped table: 2" refused 2 "CRC32C" "$switchd" --name t --iface p0 $control --table "$dir/flipped"
check "a table with more ports: 2" refused 2 "with 4 ports; this is a switch with 1" "$switchd" --name t --iface p0 $control --table "$dir/four"
check "a probability above 1: 2" refused 2 "--loss is '1.01'" "$switchd" --name t --iface p0 $control --loss 1.01
check "an address that is none: 2" refused 2 "tcp:ADDRESS:PORT" "$switchd" --name t --iface p0 --control tcp:127.0.0.1:99999
check "a folder that is missing: 3" refused 3 "make the folder first" "$switchd" --name t --iface p0 --control "unix:$dir/none/c.sock"
check "no port: 2" refused 2 "no port" "$switchd" --name t $control
check "no name: 2" refused 2 "--name is missing" "$switchd" --iface p0 $control
check "an unknown board: 2" refused 2 "no such board; available: " "$switchd" --name t --iface p0 $control --board toaster
install -d -m 777 "$dir/open" && cp "$switchd" "$dir/open/" && chmod 755 "$dir"
check "no root: 3, naming the remedy" refused 3 "run as root, or give the program CAP_NET_RAW" setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/open/banyan-switchd" --name t --iface p0 --control "unix:$dir/open/c.sock"
check "nothing is left in DPDK's folder" bash -c '! ls -d /var/run/dpdk/banyan.t.* /var/run/dpdk/banyan.test.* 2>/dev/null | grep -v "\.$$\$"'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
