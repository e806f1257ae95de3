#!/usr/bin/env bash
# The planner's benchmark, for allgather on one core.
#   planner.sh BUILD [promised|classes|large|suite|routes|replan|growth [SVG]]
#              growth draws the picture SVG (default BUILD/../planner-growth.svg)
# "all" is the whole command, from reading the fabric's JSON to a plan that the independent verifier
# has reported as OPTIMAL in memory: wall time, and processor time. Promises apply to processor
# time, because it does not depend on other work on the machine. "plan" is planning alone, followed
# by its steps, in wall time; "read" is `banyan verify` on the plan's file. The least of RUNS (3)
# runs counts. Memory is the peak of the process. Exit 1: a plan is not optimal or takes longer than
# promised.
set -u
build=$1
part=${2:-}
picture=${3:-$(dirname "$build")/planner-growth.svg}
runs=${RUNS:-3}
banyan=$build/bin/banyan
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
if command -v taskset >/dev/null; then
    core=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')
    pin() { taskset -c "$core" "$@"; }
else
    pin() { "$@"; }
fi

# The number after "KEY": in the last plan's summary, within the object SECTION if one is named.
field() { # KEY [SECTION]
    awk -v key="\"$1\": " -v section="${2:+\"$2\": {}" '
        { text = text $0 }
        END {
            if (section != "") text = substr(text, index(text, section) + length(section))
            text = substr(text, index(text, key) + length(key))
            sub(/[,}].*/, "", text)
            print text
        }' "$folder/summary"
}

# Runs a command; sets wall and busy (microseconds; busy is processor time).
TIMEFORMAT='%3R %3U %3S'
clock() {
    local result spent
    { time "$@" 2>"$folder/errors" >"$folder/output"; } 2>"$folder/time"
    result=$?
    read -r -a spent <"$folder/time"
    wall=$((10#${spent[0]/./} * 1000))
    busy=$(((10#${spent[1]/./} + 10#${spent[2]/./}) * 1000))
    return $result
}

# Plans the fabric in $folder/fabric and verifies the file; sets all, cpu and read (microseconds).
measure() { # OPTIONS of banyan plan
    local run
    all=0 cpu=0 read=0
    for ((run = 0; run < runs; run++)); do
        clock pin "$banyan" plan "$folder/fabric" -c allgather --json "$@" || return 1
        ((cpu == 0 || busy < cpu)) && cpu=$busy
        if ((all == 0 || wall < all)); then
            all=$wall
            cp "$folder/output" "$folder/best"
        fi
    done
    mv "$folder/best" "$folder/summary"
    pin "$banyan" plan "$folder/fabric" -c allgather "$@" -o "$folder/plan" >/dev/null || return 1
    for ((run = 0; run < runs; run++)); do
        clock pin "$banyan" verify "$folder/fabric" "$folder/plan" || return 1
        ((read == 0 || busy < read)) && read=$busy
    done
    rm -f "$folder/plan"
    grep -q '^OPTIMAL' "$folder/output" && [ "$(field verdict)" = '"OPTIMAL"' ]
}

heading() {
    printf '# %-20s %9s %9s %9s %9s %9s %9s %7s %9s %5s %7s %6s %6s\n' "$1" "all ms" "all cpu" "plan ms" "optimum" "tight+sw." "packing" "MiB" "read cpu" k trees height mean
}

row() { # NAME LIMIT PRESET ARGUMENTS...: LIMIT is in ms, of all, or of the planning where a p follows; 0 for none
    local name=$1 limit=$2 mark=
    shift 2
    if ! "$banyan" topo "$@" >"$folder/fabric" || ! measure; then
        printf '  %-20s FAILED: no plan, or not optimal\n' "$name"
        status=1
        return
    fi
    case $limit in
    0) ;;
    *p) awk -v t="$(field total seconds)" -v part="$((1000 * cpu / all))" -v limit="${limit%p}" 'BEGIN { exit !(t * part > limit) }' && mark="  planning over ${limit%p} ms" ;;
    *) ((cpu > limit * 1000)) && mark="  over $limit ms" ;;
    esac
    [ -n "$mark" ] && status=1
    printf '  %-20s %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %7.1f %9.1f %5s %7s %6s %6s%s\n' "$name" \
        $(awk -v all="$all" -v cpu="$cpu" -v file="$read" -v total="$(field total seconds)" -v optimum="$(field optimum seconds)" -v tight="$(field split seconds)" \
            -v pack="$(field pack seconds)" -v memory="$(field peak_memory)" \
            'BEGIN { print all / 1e3, cpu / 1e3, 1e3 * total, 1e3 * optimum, 1e3 * tight, 1e3 * pack, memory / 1048576, file / 1e3 }') \
        "$(field k)" "$(field tree_count)" "$(field max height)" "$(field mean height)" "$mark"
}

growth() { # NAME PRESET OPTION FIRST (the count that gives 64 GPUs) CAPABLE
    local name=$1 preset=$2 option=$3 count=$4 capable=$5 gpus
    : >"$folder/points"
    printf '# %s, GPUs and processor time of the whole command in ms:' "$name"
    for ((gpus = 64; gpus <= 4096; gpus *= 2, count *= 2)); do
        if ! "$banyan" topo "$preset" "--$option" "$count" --capable "$capable" >"$folder/fabric" || ! measure; then
            printf ' FAILED at %d\n' "$gpus"
            status=1
            return
        fi
        echo "$gpus $cpu" >>"$folder/points"
        echo "$name;$gpus;$cpu" >>"$folder/all-points"
        printf '  %d %.1f' "$gpus" "$(awk -v cpu="$cpu" 'BEGIN { print cpu / 1e3 }')"
    done
    awk '$1 >= 256 { x = log($1); y = log($2); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
        END { printf "\n#   exponent from 256 on: %.2f (edges of all trees together grow with 2)\n", (n * sxy - sx * sy) / (n * sxx - sx * sx) }' "$folder/points"
}

# Draws the same as a picture.
draw() {
    [ -s "$folder/all-points" ] || return
    awk -v title="banyan plan: time against size" -v note="allgather, from JSON to a verified plan; processor time of one core" \
        -f tests/bench/growth.awk "$folder/all-points" >"$picture" && echo "# drawn in $picture" || status=1
}

promised() {
    echo "# the fabrics that have promises: 1,024 GPUs in 100 ms, 2,048 in 1 s, 4,096 in 5 s; planning alone in 50 ms where switches multicast"
    heading fabric
    row a100-1024 100 a100 --boxes 128 --capable none
    row mi250-1024 100 mi250 --boxes 64 --capable none
    row h100-1024 100 h100 --boxes 128 --capable none
    row leafspine-1024 0 leafspine --leaves 32 --spines 32 --hosts 32 --capable none
    row fattree-1024 0 fattree --ports 16 --capable none
    row rail-1024 0 rail --boxes 128 --gpus 8 --capable none
    row hypercube-1024 0 hypercube --dimensions 10
    row a100-2048 1000 a100 --boxes 256 --capable none
    row mi250-2048 1000 mi250 --boxes 128 --capable none
    row a100-4096 5000 a100 --boxes 512 --capable none
    row mi250-4096 5000 mi250 --boxes 256 --capable none
    row a100-1024-multicast 50p a100 --boxes 128 --capable all
    row mi250-1024-multicast 0 mi250 --boxes 64 --capable all
    row fattree-multicast 0 fattree --ports 16 --capable all
    row leafspine-multicast 0 leafspine --leaves 32 --spines 32 --hosts 32 --capable all
    row leafspine-mixed 0 leafspine --leaves 32 --spines 32 --hosts 32 --capable leaf
}

large() {
    echo "# hosts without switches, and irregular fabrics: 4,096 hosts in 10 s, 8,192 on a random regular graph in 20 s"
    heading fabric
    row hypercube-4096 10000 hypercube --dimensions 12
    row torus-4096 10000 torus --sizes 64x64
    row dragonfly-4160 10000 dragonfly --groups 65 --routers 16 --hosts 4 --capable none
    row fattree-3456 10000 fattree --ports 24 --capable none
    row regular-8192 20000 regular --hosts 8192 --degree 8
}

suite() {
    echo "# the hard suite (tests/bench/hard-suite): each in 10 s, half of them in 1 s"
    heading fabric
    : >"$folder/suite"
    while read -r name arguments; do
        case $name in '' | '#'*) continue ;; esac
        # shellcheck disable=SC2086 # the arguments are words
        row "$name" 10000 $arguments
        echo "$cpu" >>"$folder/suite"
    done <tests/bench/hard-suite
    sort -n "$folder/suite" | awk '{ v[NR] = $1 } END { printf "# median %.0f ms, worst %.0f ms of processor time, of %d\n", v[int((NR + 1) / 2)] / 1e3, v[NR] / 1e3, NR; exit v[int((NR + 1) / 2)] > 1e6 }' ||
        status=1
}

# Collectives with routes: processor time of the whole command, and whether the plan is proved optimal.
routes() {
    local name preset
    echo "# routes: processor time of the whole command in ms, MiB, routes"
    while read -r name collective preset; do
        # shellcheck disable=SC2086 # the words of the preset, and of a root
        "$banyan" topo $preset >"$folder/fabric"
        # shellcheck disable=SC2086
        if ! clock pin "$banyan" plan "$folder/fabric" -c ${collective//,/ } --json; then
            printf '  %-24s FAILED: no plan\n' "$name"
            status=1
            continue
        fi
        cp "$folder/output" "$folder/summary"
        [ "$(field verdict)" = '"OPTIMAL"' ] || status=1
        printf '  %-24s %9.1f %7.1f %7s %s\n' "$name" "$(awk -v t="$busy" 'BEGIN { print t / 1e3 }')" \
            "$(awk -v m="$(field peak_memory)" 'BEGIN { print m / 1048576 }')" "$(field route_count)" "$(field verdict)"
    done <<'ROWS'
all-to-all-leafspine-64 all-to-all leafspine --leaves 8 --hosts 8 --spines 4
all-to-all-mi250-32 all-to-all mi250 --boxes 2
all-to-all-hypercube-32 all-to-all hypercube --dimensions 5
all-to-all-a100-1024 all-to-all a100 --boxes 128
all-to-all-mi250-1024 all-to-all mi250 --boxes 64
scatter-a100-1024 scatter,--root,gpu0 a100 --boxes 128 --capable none
gather-a100-1024 gather,--root,gpu0 a100 --boxes 128 --capable none
ROWS
}

# Losses: in-process times of re-planning at 1,024 GPUs, and the whole command for one of them.
replan() {
    local name
    echo "# re-planning after one loss, beside a plan made without the old one; rate: of that plan; high: hops of the highest tree"
    "$banyan" topo a100 --boxes 128 --capable none >"$folder/a100"
    "$banyan" topo h100 --boxes 128 --capable none >"$folder/h100"
    "$banyan" topo mi250 --boxes 64 --capable none >"$folder/mi250"
    for name in a100 h100; do
        echo "# $name, 1,024 GPUs, allgather"
        pin "$build/tools/bench-replan" "$folder/$name" allgather gpu9,ib0 gpu9,nvswitch1 gpu9 nvswitch1 || status=1
    done
    echo "# mi250, 1,024 GPUs, allgather: the links of a box, and a GPU"
    # shellcheck disable=SC2046 # one loss a word
    pin "$build/tools/bench-replan" "$folder/mi250" allgather \
        $(grep -o '"between": \["gcd[0-9]*", "[a-z]*[0-9]*"' "$folder/mi250" | tr -d '" [' | sed 's/between://' |
            awk -F, '{ a = substr($1, 4) + 0; b = substr($2, 4) + 0; if (a < 16 && ($2 ~ /^ib/ || b < 16)) print }') gcd17 || status=1
    echo "# rails, 1,024 GPUs, allgather: a rail's switch"
    "$banyan" topo rail --boxes 128 --gpus 8 --capable none >"$folder/rail"
    pin "$build/tools/bench-replan" "$folder/rail" allgather rail0 || status=1
    "$banyan" plan "$folder/a100" -c allgather -o "$folder/old" >/dev/null
    clock pin "$banyan" plan "$folder/a100" --from "$folder/old" --fail-link gpu9,ib0 -o "$folder/new" || status=1
    awk -v t="$busy" 'BEGIN { printf "# the whole command for gpu9,ib0 of a100, from files to a file, verified: %.0f ms of processor time\n", t / 1e3 }'
}

# Plans by classes: the whole command, to a plan that is verified by classes.
classes() {
    local name collective limit preset mark
    echo "# by classes: processor time of the whole command in ms, MiB, classes, trees of each, height"
    while read -r name collective limit preset; do
        # shellcheck disable=SC2086 # the words of the preset
        "$banyan" topo $preset >"$folder/fabric"
        mark=
        cpu=0
        for ((run = 0; run < runs; run++)); do
            if ! clock pin "$banyan" plan "$folder/fabric" -c "$collective" --classes --json; then
                printf '  %-24s FAILED: %s\n' "$name" "$(cat "$folder/errors")"
                status=1
                continue 2
            fi
            ((cpu == 0 || busy < cpu)) && cpu=$busy
            cp "$folder/output" "$folder/summary"
        done
        [ "$(field verdict)" = '"OPTIMAL"' ] || { status=1; mark=" not optimal"; }
        ((cpu > limit * 1000)) && { status=1; mark="$mark over $limit ms"; }
        printf '  %-24s %-14s %9.1f %7.1f %4s %9s %4s%s\n' "$name" "$collective" \
            "$(awk -v t="$cpu" 'BEGIN { print t / 1e3 }')" "$(awk -v m="$(field peak_memory)" 'BEGIN { print m / 1048576 }')" \
            "$(field tree_count)" "$(grep -o '"images": [0-9]*' "$folder/summary" | cut -d' ' -f2)" "$(field max height)" "$mark"
    done <<'ROWS'
a100-1024 allgather 100 a100 --boxes 128
h100-1024 allgather 100 h100 --boxes 128
mi250-1024 allgather 100 mi250 --boxes 64
h100-1024 allreduce 100 h100 --boxes 128
a100-8192 allgather 1500 a100 --boxes 1024
h100-8192 allgather 1500 h100 --boxes 1024
mi250-8192 allgather 1500 mi250 --boxes 512
h100-rails-65536 allgather 2000 rail --boxes 8192 --gpus 8 --inside 450 --outside 50
h100-rails-65536 allreduce 2000 rail --boxes 8192 --gpus 8 --inside 450 --outside 50
clos-102400 allgather 2000 clos --pods 80 --leaves 32 --hosts 40 --spines 40 --cores 32
clos-102400 allreduce 2000 clos --pods 80 --leaves 32 --hosts 40 --spines 40 --cores 32
ROWS
}

case $part in
classes) classes ;;
large) large ;;
routes) routes ;;
replan) replan ;;
promised) promised ;;
suite) suite ;;
growth | '')
    [ -n "$part" ] || { promised; echo; classes; echo; large; echo; suite; echo; routes; echo; replan; echo; }
    growth "DGX A100" a100 boxes 8 none
    growth MI250 mi250 boxes 4 none
    growth "A100, switches multicast" a100 boxes 8 all
    draw
    ;;
*) echo "$0: no part '$part'" >&2; exit 2 ;;
esac
exit $status
