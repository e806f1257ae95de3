#!/usr/bin/env bash
# banyan plot and banyan info from a user's view: pictures of presets and plans are well-formed XML;
# bad input is refused with the reason.
#   plot.sh [BUILD]     BUILD: folder with bin/ (default build/release). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh plot "${1:-build/release}"
# Succeeds if every element of the picture is closed, and it contains neither nan nor inf.
sound() {
    awk '{ line = $0; n += gsub(/<(svg|g|text|title)[ >]/, "", line); line = $0; n -= gsub(/<\/(svg|g|text|title)>/, "", line)
           if ($0 ~ /[" ]-?(nan|inf)/) bad = 1 } END { exit !(n == 0 && NR > 3 && !bad) }' "$1"
}
for preset in star ring complete torus hypercube leafspine fattree clos dragonfly rail twobox a100 h100 mi250 random; do
    "$banyan" topo $preset >"$dir/$preset.json"
    check "$preset is drawn" "$banyan" plot "$dir/$preset.json" -o "$dir/$preset.svg"
    check "$preset: the picture is sound" sound "$dir/$preset.svg"
done
for collective in allreduce allgather; do
    "$banyan" plan "$dir/twobox.json" -c $collective -o "$dir/$collective.plan" >/dev/null
    check "a plan for $collective is drawn" "$banyan" plot "$dir/twobox.json" "$dir/$collective.plan" -o "$dir/plan.svg"
    check "its picture is sound" sound "$dir/plan.svg"
    check "and as DOT" "$banyan" plot "$dir/twobox.json" "$dir/$collective.plan" -o "$dir/plan.dot"
done
"$banyan" topo leafspine --leaves 16 --spines 8 --hosts 16 >"$dir/large.json"
check "256 hosts are drawn within 10 s" timeout 10 "$banyan" plot "$dir/large.json" -o "$dir/large.svg"
while read -r name arguments; do
    case "$name" in '' | '#'*) continue ;; esac
    # shellcheck disable=SC2086
    "$banyan" topo $arguments >"$dir/$name.json"
    check "$name is drawn by classes within 2 s" timeout 2 "$banyan" plot "$dir/$name.json" -o "$dir/$name.svg"
    check "$name: the picture has less than 200 kB" test "$(wc -c <"$dir/$name.svg")" -lt 200000
    check "$name: its XML is whole" sound "$dir/$name.svg"
done <tests/bench/hard-suite
"$banyan" topo rail --boxes 16 --gpus 8 >"$dir/rails.json"
"$banyan" plan "$dir/rails.json" -c allreduce -o "$dir/rails.plan" >/dev/null
check "a plan on 128 GPUs is drawn by classes" "$banyan" plot "$dir/rails.json" "$dir/rails.plan" -o "$dir/rails.svg"
check "with the loads and one tree" grep -q 'what each link carries' "$dir/rails.svg"
check "and as a whole" "$banyan" plot --whole "$dir/rails.json" "$dir/rails.plan" -o "$dir/whole.svg"
check "by classes where asked" "$banyan" plot --classes "$dir/twobox.json" "$dir/allgather.plan" -o "$dir/classes.svg"
check "its picture is sound" sound "$dir/classes.svg"
refused "no file to write is refused" 2 "-o FILE.svg" "$banyan" plot "$dir/star.json"
refused "an unknown ending is refused" 2 "neither .svg nor .dot" "$banyan" plot "$dir/star.json" -o "$dir/a.png"
refused "a folder that is missing" 3 "none/a.svg': No such file" "$banyan" plot "$dir/star.json" -o "$dir/none/a.svg"
refused "an unknown root is refused" 2 "no node with this name" "$banyan" plot "$dir/twobox.json" "$dir/allgather.plan" --root nobody -o "$dir/a.svg"
refused "a root without trees is refused" 2 "no tree of" "$banyan" plot "$dir/twobox.json" "$dir/allgather.plan" --root box0 -o "$dir/a.svg"
refused "too many trees are refused" 2 "a whole number from 0 to 8" "$banyan" plot "$dir/star.json" --trees 9 -o "$dir/a.svg"
refused "a plan of another fabric is refused" 2 "plan" "$banyan" plot "$dir/star.json" "$dir/allgather.plan" -o "$dir/a.svg"
refused "a topology that is none is refused" 2 "allgather.plan" "$banyan" plot "$dir/allgather.plan" -o "$dir/a.svg"
check "info" "$banyan" info
check "info --json is one object" awk 'BEGIN { RS = "^$" } { exit !($0 ~ /^{.*}\n$/) }' <("$banyan" info --json)
check "info -c" "$banyan" info -c
refused "info with an unknown option" 2 "unknown option --nothing" "$banyan" info --nothing
finish
