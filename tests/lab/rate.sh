#!/usr/bin/env bash
# The lab with a schedule: TCP between hosts takes the paths of the schedule, each link has its rate,
# transfers that share a link share its rate, everything is removed afterwards, and what makes no
# sense is refused. Rates are low, and limits are generous, for loaded machines.
#   rate.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh rate "${1:-build/release}"
need_root
make_topologies

# Two pairs of hosts, and two switches between them, whose links have half the bandwidth.
cat >"$dir/middle.json" <<'JSON'
{"name": "middle", "unit": "GB/s",
 "nodes": [{"name": "h0", "kind": "compute"}, {"name": "h1", "kind": "compute"}, {"name": "h2", "kind": "compute"},
           {"name": "h3", "kind": "compute"}, {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"},
           {"name": "m0", "kind": "switch"}, {"name": "m1", "kind": "switch"}],
 "links": [{"between": ["h0", "s0"], "bandwidth": 4}, {"between": ["h1", "s0"], "bandwidth": 4},
           {"between": ["h2", "s1"], "bandwidth": 4}, {"between": ["h3", "s1"], "bandwidth": 4},
           {"between": ["s0", "m0"], "bandwidth": 2}, {"between": ["s0", "m1"], "bandwidth": 2},
           {"between": ["s1", "m0"], "bandwidth": 2}, {"between": ["s1", "m1"], "bandwidth": 2}]}
JSON
for fabric in middle ring4 one-way; do
    "$banyan" plan "$dir/$fabric.json" -c all-to-all -o "$dir/$fabric.series" >"$dir/plan.out" 2>&1 || fail "a plan of $fabric" "$dir/plan.out"
done

# A program of hosts: `all`: every path carries data; `one`: a path by way of m0; `two`: two paths
# with the same switches. Senders print when their data begins, receivers how many bytes came and when
# the last did (seconds of the machine's monotonic clock, which all hosts of a lab share).
cat >"$dir/program.py" <<'PYTHON'
import json, os, socket, subprocess, sys, threading, time
what, seconds, name = sys.argv[1], float(sys.argv[2]), os.environ["BANYAN_NODE"]
rank = int(os.environ["RANK"])
with open(os.environ["BANYAN_SCHEDULE"]) as file:
    moves = json.load(file)
assert moves["hosts"][rank]["name"] == name and int(os.environ["WORLD_SIZE"]) == moves["ranks"]
assert not any(key in os.environ for key in ("BANYAN_TABLE", "BANYAN_TRANSPORT", "BANYAN_JOB"))
paths = list(enumerate(moves["paths"]))
if what == "one":
    paths = [next(path for path in paths if path[1]["switches"] == ["s0", "m0", "s1"])]
elif what == "two":
    paths = [path for path in paths if path[1]["switches"] == ["s0", "m0", "s1"]][:2]
    assert len(paths) == 2


def counted(switch, link):
    lab = os.path.basename(os.path.dirname(os.environ["BANYAN_SCHEDULE"]))
    text = subprocess.check_output(["ip", "-n", lab + "-" + switch, "-j", "-s", "link", "show", link])
    return json.loads(text)[0]["stats64"]["tx"]["bytes"]


def say(line): # threads print at the same time: print() would write a line in parts
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def take(listener, number, path):
    connection = listener.accept()[0]
    total = 0
    while data := connection.recv(1 << 18):
        total += len(data)
    say(f"path {number} ends {time.monotonic():.6f} bytes {total}")
    if what == "one":
        say(f"m0 {counted('m0', 'link6')} m1 {counted('m1', 'link7')}")


def give(number, path):
    for attempt in range(400):
        try:
            connection = socket.create_connection((path["address"], 7000 + number))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    begin = time.monotonic()
    say(f"path {number} begins {begin:.6f}")
    end = begin + seconds
    while time.monotonic() < end:
        connection.sendall(bytes(16384))
    connection.close()


threads = []
for number, path in paths:
    if path["to"] == rank:
        listener = socket.create_server((path["address"], 7000 + number))
        threads.append(threading.Thread(target=take, args=(listener, number, path)))
    if path["from"] == rank:
        threads.append(threading.Thread(target=give, args=(number, path)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
PYTHON

# scheduled FABRIC OPTIONS... -- WHAT SECONDS: runs the program; the output is in $dir/run.out.
scheduled() {
    local fabric=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    attended "$banyan" lab run "$dir/$fabric.json" --series "$dir/$fabric.series" "${options[@]}" -- python3 "$dir/program.py" "$@" >"$dir/run.out" 2>&1
}
# all_paths WHAT FABRIC OPTIONS...: passes if each path of the schedule carries data.
all_paths() {
    local what=$1 fabric=$2
    shift 2
    if scheduled "$fabric" "$@" -- all 0.5 && grep -q 'ended with status 0 on all hosts' "$dir/run.out" &&
        [ "$(grep -c ': path .* bytes [1-9]' "$dir/run.out")" -eq "$(sed -n 's/^# .* over \([0-9]*\) paths.*/\1/p' "$dir/run.out")" ]; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
}
# rated WHAT RATE COUNT: passes if COUNT transfers together reach 0.8 to 1.02 of RATE, from the first
# byte sent to the last one received, and each at least a tenth. A part of that time would not do:
# what a receiver keeps behind a lost segment arrives in one part and is counted in the next.
rated() {
    local result
    if result=$(awk -v rate="$2" -v count="$3" '
        / path [0-9]+ begins / { from[$3] = $5; if (!first || $5 < first) first = $5 }
        / path [0-9]+ ends / { bytes[$3] = $7; until[$3] = $5; if ($5 > last) last = $5 }
        END { for (path in bytes) { sum += bytes[path]; seen++; if (bytes[path] < rate / 10 * (until[path] - from[path])) low = 1 }
              sum /= last > first ? last - first : 1e-6; printf "%.3f of the rate", sum / rate; exit !(seen == count && !low && sum >= 0.8 * rate && sum <= 1.02 * rate) }' "$dir/run.out"); then
        pass "$1: $result"
    else
        fail "$1: $result" "$dir/run.out"
    fi
}

all_paths "all paths of an all-to-all carry data" middle
all_paths "hosts without switches, with a rate" ring4 --rate 256K
all_paths "one-way links, with a rate" one-way --rate 256K --mtu 1500

for mtu in 9000 1500; do
    scheduled middle --rate 1M --mtu $mtu -- one 3 || fail "a transfer, MTU $mtu" "$dir/run.out"
    rated "a transfer has the rate of the slowest link, MTU $mtu" 2097152 1
    if awk '/: path / { bytes = $7 } / m0 [0-9]+ m1 / { near = $3; far = $5 } END { exit !(bytes > 0 && near > bytes && near < 1.2 * bytes && far < bytes / 100) }' "$dir/run.out"; then
        pass "its frames take the path, MTU $mtu"
    else
        fail "its frames take the path, MTU $mtu" "$dir/run.out"
    fi
done
scheduled middle --rate 1M -- two 4 || fail "two transfers" "$dir/run.out"
rated "two transfers share a link" 2097152 2
if awk '/^ m0 -> s1 / { part = $5 } END { exit !(part >= 0.7 && part <= 1.02) }' "$dir/run.out"; then
    pass "the lab states how far the link was used"
else
    fail "the lab states how far the link was used" "$dir/run.out"
fi

# What is left of a lab: namespaces, its folder, the process of its wires.
gone() { # gone WHAT PID
    local i
    for ((i = 0; i < 100; i++)); do
        [ -z "$(left_of "$2")$(pgrep -f "^$banyan lab run $dir/middle.json")" ] && { pass "$1"; return; }
        sleep 0.1
    done
    { left_of "$2"; pgrep -af "^$banyan lab run $dir/middle.json"; } >"$dir/check.out"
    fail "$1" "$dir/check.out"
}
begin() { # begin: starts a lab in the background, and waits until it runs
    local i
    "$banyan" lab run "$dir/middle.json" --series "$dir/middle.series" --rate 1M -- sh -c "touch $dir/begun; sleep 60" >"$dir/run.out" 2>&1 &
    pid=$!
    children+=("$pid")
    for ((i = 0; i < 300; i++)); do
        [ ! -e "$dir/begun" ] || break
        sleep 0.1
    done
    rm -f "$dir/begun"
}
begin
kill -TERM "$pid"
wait "$pid"
if [ $? -eq 3 ]; then pass "SIGTERM ends a lab with status 3"; else fail "SIGTERM ends a lab with status 3" "$dir/run.out"; fi
gone "nothing is left after SIGTERM" "$pid"
begin
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$banyan" lab down >/dev/null 2>&1
gone "nothing is left after SIGKILL and lab down" "$pid"

run=("$banyan" lab run "$dir/middle.json")
sed 's/"throughput": {"num": 1,/"throughput": {"num": 3,/' "$dir/middle.series" >"$dir/wrong.series"
refused "a schedule without a program" 2 "--series requires a program" "${run[@]}" --series "$dir/middle.series"
refused "lab up with a schedule" 2 "--series requires a program" "$banyan" lab up "$dir/middle.json" --series "$dir/middle.series"
refused "a rate without a schedule" 2 "give --series too" "${run[@]}" --rate 1M
refused "a rate that is too low" 2 "from 1K to 1G" "${run[@]}" --series "$dir/middle.series" --rate 1 -- true
refused "a schedule of another topology" 2 "which the topology 'middle' does not have" "${run[@]}" --series "$dir/ring4.series" -- true
refused "a schedule that is wrong" 2 "wrong.series: the schedule is INVALID" "${run[@]}" --series "$dir/wrong.series" -- true
refused "several jobs" 2 "--jobs and --series cannot be combined" "${run[@]}" --series "$dir/middle.series" --jobs 2 -- true
refused "losses" 2 "--loss and --series cannot be combined" "${run[@]}" --series "$dir/middle.series" --loss 0.1 -- true
refused "a switch that is killed" 2 "--kill and --series cannot be combined" "${run[@]}" --series "$dir/middle.series" --kill s0@1 -- true
refused "a program that fails" 3 "false failed" "${run[@]}" --series "$dir/middle.series" --rate 1M -- false
finish
