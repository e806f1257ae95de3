# shellcheck shell=bash disable=SC2034
# For the lab's scripts, which source it: `. lab-common.sh NAME "$@"`. Gives $banyan (build folder: first argument, default build/release),
# a scratch folder $dir, pass, fail, check and finish. Everything made is removed at the end, also after a failure or Ctrl-C.
name=$1
build=$(realpath "${2:-build/release}")
banyan=$build/bin/banyan
for program in banyan banyan-perf banyan-switchd; do
    [ -x "$build/bin/$program" ] || { echo "$name: $build/bin/$program is missing: make" >&2; exit 1; }
done
dir=$(mktemp -d)
passed=0
failed=0
children=()
foreground=
cleanup() {
    local child i folder
    trap '' HUP INT TERM
    [ -z "$foreground" ] || children+=("$foreground")
    # A lab undoes what it made when it is asked to end.
    for child in "${children[@]}"; do end_tree TERM "$child"; done
    for ((i = 0; i < 200; i++)); do
        kill -0 "${children[@]}" 2>/dev/null || break
        sleep 0.1
    done
    for child in "${children[@]}"; do end_tree KILL "$child"; done
    wait 2>/dev/null
    [ "$(type -t cleanup_more)" != function ] || cleanup_more
    # What switches that were killed have left; the next one would remove it as well.
    for folder in /var/run/dpdk/banyan.*; do
        [ ! -d "$folder" ] || kill -0 "${folder##*.}" 2>/dev/null || rm -rf "$folder"
    done
    rm -rf "$dir"
}
# end_tree SIGNAL PID: the process and all that it has started; those first, as one that is gone no longer tells of its own.
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
# Runs a command such that a signal to this script ends it at once: bash would wait for one that it does not run in the background.
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
# check WHAT COMMAND...: passes when the command succeeds; else its output is shown.
check() {
    local what=$1
    shift
    if attended "$@" >"$dir/check.out" 2>&1; then pass "$what"; else fail "$what" "$dir/check.out"; fi
}
# refused WHAT STATUS TEXT COMMAND...: passes when the command exits with STATUS and says TEXT.
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
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}

# The fabrics that the lab is shown on.
make_topologies() {
    "$banyan" topo star --hosts 4 >"$dir/star4.json"
    "$banyan" topo star --hosts 8 >"$dir/star8.json"
    "$banyan" topo leafspine >"$dir/leafspine.json"
    "$banyan" topo twobox >"$dir/twobox.json"
    "$banyan" topo ring --hosts 4 >"$dir/ring4.json"
    "$banyan" topo leafspine --capable leaf >"$dir/relay-spine.json" # the spine neither multicasts nor aggregates
    # Three hosts around a ring of switches that goes one way.
    cat >"$dir/one-way.json" <<'JSON'
{"name": "one-way", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "h2", "kind": "compute"},
           {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"}, {"name": "s2", "kind": "switch"}],
 "links": [{"between": ["h0", "s0"], "bandwidth": 10}, {"between": ["h1", "s1"], "bandwidth": 10}, {"between": ["h2", "s2"], "bandwidth": 10},
           {"from": "s0", "to": "s1", "bandwidth": 10}, {"from": "s1", "to": "s2", "bandwidth": 10}, {"from": "s2", "to": "s0", "bandwidth": 10}]}
JSON
}
all_topologies="star4 star8 leafspine twobox ring4 relay-spine"

# lab_right WHAT TOPOLOGY OPTIONS...: a run whose every element is right, and whose cables all carried what the plan predicts (nothing was
# forgotten; credits and acknowledgements share frames, so that it may be $least of it) and at most $most times that. Its output stays in $dir/run.out.
lab_right() {
    local what=$1 topology=$2
    shift 2
    if ! attended "$banyan" lab run "$dir/$topology.json" "$@" >"$dir/run.out" 2>&1; then
        fail "$what" "$dir/run.out"
        return 1
    fi
    # "# counted / predicted: LEAST to MOST ..." and "# 0 wrong elements ..."
    if ! awk -v most="${most:-1.08}" -v least="${least:-0.9}" '
        /^# counted \/ predicted: / { seen = 1; if ($5 < least || $7 > most) { print "ratio out of range: " $0; bad = 1 } }
        /^# 0 wrong elements/ { right = 1 }
        END { exit !(seen && right && !bad) }' "$dir/run.out" >"$dir/check.out"; then
        fail "$what" "$dir/check.out" "$dir/run.out"
        return 1
    fi
    pass "$what"
}
# is_json: reads JSON from its input, and fails if it is none.
is_json() { perl -MJSON::PP -0777 -ne 'decode_json($_)'; }
# id_of FILE: the number of the lab that `lab up` said in FILE; nothing when it did not come that far.
id_of() { sed -n 's/^# lab \([0-9.]*\) is up.*/\1/p' "$1" 2>/dev/null; }
# down_of FILE: ends that lab. For cleanup_more, as a signal may come as soon as it is up.
down_of() {
    local id
    id=$(id_of "$1")
    [ -z "$id" ] || "$banyan" lab down "$id" >/dev/null 2>&1
}
# host_line HOST: how `lab up`, whose output is in $dir/up.out, says to run a command on a host.
host_line() { sed -n "s/^host  *$1  *\(ip .*\) COMMAND$/\1/p" "$dir/up.out"; }
# runs PID: it has not ended. Who has, and whom his parent has not asked for yet, does not: a lab's switches belong to process 1, which may take seconds.
runs() {
    { ! grep -q '^State:.Z' "/proc/$1/status" || [ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1 ]; } 2>/dev/null && [ -e "/proc/$1" ]
}
# switch_pid LAB SWITCH: its process.
switch_pid() {
    local pid
    for pid in $(grep -lz "unix:/run/banyan/lab-$1/$2.sock" /proc/[0-9]*/cmdline 2>/dev/null | sed 's|/proc/\([0-9]*\)/.*|\1|'); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != banyan-switchd ] || { echo "$pid"; return; }
    done
}
# outside_up LAB HOSTS: a bridge in the namespace $outside joins the lab's hosts beside its links; host i is $subnet.(i + 1) there, on out0.
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
# launch_agent LAB HOSTS: writes $dir/agent, which launchers call as AGENT ADDRESS WORD... where they
# would call ssh. The hosts' names are in /etc/hosts there: a launcher looks up its own, and a name
# server that does not answer costs it 10 seconds.
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
# address_list HOSTS: their addresses there.
address_list() {
    local i list=$subnet.1
    for ((i = 2; i <= $1; i++)); do list=$list,$subnet.$i; done
    echo "$list"
}
outside_down() { ip netns delete "$outside" 2>/dev/null; }
# Nothing of this script's own labs is left: their namespaces carry the number of the process that made them.
left_of() { # left_of PID
    ip netns list | grep -q "^lab-$1[.-]" && { ip netns list | grep "^lab-$1[.-]"; return 0; }
    ls -d /run/banyan/lab-"$1" 2>/dev/null
}
