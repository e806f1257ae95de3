# shellcheck shell=bash disable=SC2034
# Common functions of the lab's scripts: `. lab-common.sh NAME "$@"`. Sets $banyan (build folder:
# first argument, default build/release), a scratch folder $dir, and $slow, the seconds by which
# short timeouts are longer on a slow machine; defines pass, fail, check and finish. Everything it
# makes is removed at the end, also after a failure or Ctrl-C.
name=$1
build=$(realpath "${2:-build/release}")
banyan=$build/bin/banyan
for program in banyan banyan-perf banyan-switchd; do
    [ -x "$build/bin/$program" ] || { echo "$name: $build/bin/$program is missing: make" >&2; exit 1; }
done
dir=$(mktemp -d)
# slowness: by how many seconds limits of a few seconds are longer here and now: one for every two
# milliseconds that it takes to start a program, at most 20, and 0 on an idle machine.
slowness() {
    local begin i more
    begin=$(date +%s%N)
    for ((i = 0; i < 50; i++)); do /bin/true; done
    more=$((($(date +%s%N) - begin) / 100000000))
    echo $((more < 20 ? more : 20))
}
slow=$(slowness)
passed=0
failed=0
children=()
foreground=
cleanup() {
    local child i folder
    trap '' HUP INT TERM
    [ -z "$foreground" ] || children+=("$foreground")
    # A lab removes what it made when it receives SIGTERM.
    for child in "${children[@]}"; do end_tree TERM "$child"; done
    for ((i = 0; i < 200; i++)); do
        kill -0 "${children[@]}" 2>/dev/null || break
        sleep 0.1
    done
    for child in "${children[@]}"; do end_tree KILL "$child"; done
    wait 2>/dev/null
    [ "$(type -t cleanup_more)" != function ] || cleanup_more
    # Removes what killed switches have left; the next switch would do the same.
    for folder in /var/run/dpdk/banyan.*; do
        [ ! -d "$folder" ] || kill -0 "${folder##*.}" 2>/dev/null || rm -rf "$folder"
    done
    rm -rf "$dir"
}
# end_tree SIGNAL PID: signals the process and its descendants. Descendants come first, because an
# ended process no longer lists its children.
end_tree() {
    local child
    for child in $(cat "/proc/$2/task/$2/children" 2>/dev/null); do
        end_tree "$1" "$child"
    done
    kill -"$1" "$2" 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
# Runs a command so that a signal to this script ends it at once; bash would wait for a command in
# the foreground.
attended() {
    local status
    "$@" &
    foreground=$!
    wait "$foreground"
    status=$?
    foreground=
    return $status
}

need_root() {
    [ "$(id -u)" -eq 0 ] || { echo "$name: skipped: network namespaces need root" >&2; exit 77; }
}
pass() { passed=$((passed + 1)); echo "  PASS   $1"; }
fail() { # fail WHAT [FILE...]: the files are shown
    failed=$((failed + 1))
    echo "  FAIL   $1"
    shift
    [ $# -eq 0 ] || sed 's/^/         | /' "$@"
}
# check WHAT COMMAND...: passes if the command succeeds; otherwise shows its output.
check() {
    local what=$1
    shift
    if attended "$@" >"$dir/check.out" 2>&1; then pass "$what"; else fail "$what" "$dir/check.out"; fi
}
# refused WHAT STATUS TEXT COMMAND...: passes if the command exits with STATUS and prints TEXT.
refused() {
    local what=$1 status=$2 text=$3 got
    shift 3
    attended "$@" >"$dir/check.out" 2>&1
    got=$?
    if [ $got -eq "$status" ] && grep -qF -- "$text" "$dir/check.out"; then
        pass "$what"
    else
        echo "(exit status $got instead of $status, or no '$text')" >>"$dir/check.out"
        fail "$what" "$dir/check.out"
    fi
}
# await SECONDS COMMAND...: waits until the command succeeds; status 1: it did not in time. The wait
# must not use processor time that the tested processes need.
await() {
    local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME/[.,]/}" -lt "$end" ] || return 1
        sleep 0.05
    done
}
# in_time SECONDS LIMIT: SECONDS is at most LIMIT and a second, and more on a slow machine; both may
# have a fraction.
in_time() { awk -v t="$1" -v limit="$2" -v grace="$(slowness)" 'BEGIN { exit !(t != "" && t <= limit + 1 + grace) }'; }
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}

# The fabrics on which the lab is tested.
make_topologies() {
    "$banyan" topo star --hosts 4 >"$dir/star4.json"
    "$banyan" topo star --hosts 8 >"$dir/star8.json"
    "$banyan" topo leafspine >"$dir/leafspine.json"
    "$banyan" topo twobox >"$dir/twobox.json"
    "$banyan" topo ring --hosts 4 >"$dir/ring4.json"
    "$banyan" topo leafspine --capable leaf >"$dir/relay-spine.json" # the spine neither multicasts nor aggregates
    # Three hosts around a one-way ring of switches.
    cat >"$dir/one-way.json" <<'JSON'
{"name": "one-way", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "h2", "kind": "compute"},
           {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"}, {"name": "s2", "kind": "switch"}],
 "links": [{"between": ["h0", "s0"], "bandwidth": 10}, {"between": ["h1", "s1"], "bandwidth": 10}, {"between": ["h2", "s2"], "bandwidth": 10},
           {"from": "s0", "to": "s1", "bandwidth": 10}, {"from": "s1", "to": "s2", "bandwidth": 10}, {"from": "s2", "to": "s0", "bandwidth": 10}]}
JSON
}
all_topologies="star4 star8 leafspine twobox ring4 relay-spine"

# lab_right WHAT TOPOLOGY OPTIONS...: passes if every element is right and the bytes on all cables
# are between $least and $most times the plan's prediction. Less than 1 is possible because credits
# and acknowledgements share frames. The output stays in $dir/run.out.
lab_right() {
    local what=$1 topology=$2
    shift 2
    if ! attended "$banyan" lab run "$dir/$topology.json" "$@" >"$dir/run.out" 2>&1; then
        fail "$what" "$dir/run.out"
        return 1
    fi
    # The lines are "# counted / predicted: LEAST to MOST ..." and "# 0 wrong elements ...".
    if ! awk -v most="${most:-1.08}" -v least="${least:-0.9}" '
        /^# counted \/ predicted: / { seen = 1; if ($5 < least || $7 > most) { print "ratio out of range: " $0; bad = 1 } }
        /^# 0 wrong elements/ { right = 1 }
        END { exit !(seen && right && !bad) }' "$dir/run.out" >"$dir/check.out"; then
        fail "$what" "$dir/check.out" "$dir/run.out"
        return 1
    fi
    pass "$what"
}
# is_json: reads standard input, and fails if it is not JSON.
is_json() { perl -MJSON::PP -0777 -ne 'decode_json($_)'; }
# id_of FILE: the number of the lab in FILE, the output of `lab up`; nothing if the lab did not
# start.
id_of() { sed -n 's/^# lab \([0-9.]*\) is up.*/\1/p' "$1" 2>/dev/null; }
# down_of FILE: ends that lab. For cleanup_more, because a signal may come as soon as the lab is up.
down_of() {
    local id
    id=$(id_of "$1")
    [ -z "$id" ] || "$banyan" lab down "$id" >/dev/null 2>&1
}
# host_line HOST: the command prefix for a host, from the output of `lab up` in $dir/up.out.
host_line() { sed -n "s/^host  *$1  *\(ip .*\) COMMAND$/\1/p" "$dir/up.out"; }
# runs PID: succeeds until the process has ended. A zombie counts as ended: a lab's switches belong
# to process 1, which may take seconds to reap them.
runs() {
    { ! grep -q '^State:.Z' "/proc/$1/status" || [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1 ]; } 2>/dev/null && [ -e "/proc/$1" ]
}
# switch_pid LAB SWITCH: the process ID of the switch.
switch_pid() {
    local pid
    for pid in $(grep -lz "unix:/run/banyan/lab-$1/$2.sock" /proc/[0-9]*/cmdline 2>/dev/null | sed 's|/proc/\([0-9]*\)/.*|\1|'); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != banyan-switchd ] || { echo "$pid"; return; }
    done
}
# port_of LAB SWITCH NODE: the interface of a switch to a node, by that node's number.
port_of() { awk -v to="to node $3" '$1 == "port" && index($0, to " ") { sub(":", "", $3); print $3; exit }' "/run/banyan/lab-$1/$2.txt"; }
# outside_up LAB HOSTS: joins the lab's hosts by a bridge in the namespace $outside, apart from the
# lab's links. Host i has the address $subnet.(i + 1) there, on out0.
outside=byo$$
subnet=198.18.177
outside_up() {
    local i
    ip netns add "$outside"
    ip -n "$outside" link add br0 type bridge
    ip -n "$outside" link set br0 up
    for ((i = 0; i < $2; i++)); do
        ip -n "lab-$1-host$i" link add out0 type veth peer name "h$i" netns "$outside" &&
            ip -n "lab-$1-host$i" addr add "$subnet.$((i + 1))/24" dev out0 &&
            ip -n "lab-$1-host$i" link set out0 up && ip -n "lab-$1-host$i" link set lo up &&
            ip -n "$outside" link set "h$i" master br0 up || return 1
    done
}
# launch_agent LAB HOSTS: writes $dir/agent, which launchers call as AGENT ADDRESS WORD... in place
# of ssh. /etc/hosts there has the hosts' names, because a launcher resolves its own name, and a
# name server that does not answer costs 10 seconds.
launch_agent() {
    local i
    for ((i = 0; i < $2; i++)); do echo "$subnet.$((i + 1)) host$i"; done >"$dir/hosts"
    echo "127.0.0.1 localhost" >>"$dir/hosts"
    cat >"$dir/agent" <<AGENT
#!/bin/sh
index=\$((\${1##*.} - 1))
shift
exec ip netns exec lab-$1-host\$index unshare --uts sh -c 'hostname host'\$index' && mount --bind $dir/hosts /etc/hosts && exec sh -c "\$1"' agent "\$*"
AGENT
    chmod 700 "$dir/agent"
}
# address_list HOSTS: the addresses of the hosts on that bridge.
address_list() {
    local i list=$subnet.1
    for ((i = 2; i <= $1; i++)); do list=$list,$subnet.$i; done
    echo "$list"
}
# Links first: the kernel removes those of a deleted namespace later, and another one could not be
# made meanwhile.
outside_down() {
    local link
    for link in $(ip -n "$outside" -o link show type veth 2>/dev/null | sed -E 's/^[0-9]+: ([^@:]+).*/\1/'); do
        ip -n "$outside" link del "$link" 2>/dev/null # gone if its other end is
    done
    ip netns delete "$outside" 2>/dev/null
}
# monitor COMMAND...: sends a command to QEMU's monitor, at $monitor_path or $dir/c.monitor.
monitor() { perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => shift) or die "no monitor: $!\n"; print $s "@ARGV\n"; $s->flush; sleep 1' "${monitor_path:-$dir/c.monitor}" "$@"; }
# Lists what is left of the labs of this script; their namespaces carry the ID of the process that
# made them.
left_of() { # left_of PID
    ip netns list | grep -q "^lab-$1[.-]" && { ip netns list | grep "^lab-$1[.-]"; return 0; }
    ls -d /run/banyan/lab-"$1" 2>/dev/null
}

# held: what the jobs of banyand of the lab $lab hold on each switch.
held() { "$banyan" job list --json --controller "unix:/run/banyan/lab-$lab/banyand.socket" | perl -MJSON::PP -0777 -ne '
    for my $job (@{decode_json($_)->{jobs}}) { print "job $job->{job}: $_->{slots} slots, $_->{entries} entries on $_->{switch}\n" for @{$job->{held}} }'; }
is_as_before() { [ "$(held)" = "$before" ]; }
# returned WHAT: passes if banyand holds $before, what it held before, within 30 s.
returned() {
    if await 30 is_as_before; then pass "$1"; return; fi
    held >"$dir/held.out"
    fail "$1" "$dir/held.out" "/run/banyan/lab-$lab/banyand.log"
}
