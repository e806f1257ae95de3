#!/usr/bin/env bash
# The script of `make demo`: plans a leaf-spine fabric of 4 hosts and 3 switches, checks the plan,
# builds the fabric in network namespaces, and runs all six collectives; then runs them again while
# every switch loses 1% of its packets. Without root or namespaces it runs in one process and prints
# this.
#   demo.sh BIN OUT     BIN: folder of the programs; OUT: folder for results. Exit 0: every element
#                       was right.
set -u
bin=$1
out=$2
mkdir -p "$out"
step=0
begin=$(date +%s)

say() {
    step=$((step + 1))
    printf '\n[%d/6] %s\n\n' $step "$1"
}
die() {
    printf '\ndemo: failed: %s\n' "$1" >&2
    exit 1
}
# Prints the command and its output.
show() {
    printf '    $ banyan %s\n' "$*"
    "$bin/banyan" "$@" 2>&1 | sed 's/^/    /'
    return "${PIPESTATUS[0]}"
}
# On a terminal the lab has its own progress line, so its output is not piped.
lab() {
    printf '    $ banyan lab run %s\n\n' "$*"
    "$bin/banyan" lab run "$@"
}

mode=()
where="on real switches: a network namespace for each node, a DPDK program for each switch"
if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2>/dev/null; then
    mode=(--in-process)
    where="in one process over memory, since network namespaces need root here"
fi
echo "banyan computes collectives inside the network: switches copy and sum packets in flight, along trees that"
echo "use the links as well as mathematics allows. This runs $where."

say "A fabric: two leaf switches with two hosts each, joined by one spine. Links of 10 GB/s."
printf '    $ banyan topo leafspine --leaves 2 --spines 1 --hosts 2 > %s\n' "$out/leafspine.json"
"$bin/banyan" topo leafspine --leaves 2 --spines 1 --hosts 2 >"$out/leafspine.json" || die "no topology"

say "The planner finds the best trees for an allreduce and proves that nothing can be faster."
show plan "$out/leafspine.json" -c allreduce -o "$out/allreduce.plan" || die "no plan"

say "An independent program checks the plan: it shares no code with the planner."
show verify "$out/leafspine.json" "$out/allreduce.plan" || die "the plan does not verify"

say "All six collectives, 4 MiB each; every element of every result is compared with a scalar sum."
lab "$out/leafspine.json" --collective all --bytes 4M --iters 2 "${mode[@]}" || die "a collective went wrong"

say "The same while every switch loses 1% of the packets it receives: slower, never wrong."
lab "$out/leafspine.json" --collective all --bytes 1M --iters 2 --loss 0.01 --seed 1 "${mode[@]}" || die "a collective went wrong under loss"

say "A picture: the fabric, what each link carries, and the trees."
show plot "$out/leafspine.json" "$out/allreduce.plan" -o "$out/leafspine.svg" || die "no picture"

printf '\n    next: banyan lab run TOPO on a fabric of yours; banyan topo lists presets; docs/README.md is the index\n'
printf '\ndemo: every element was right; %d s\n' $(($(date +%s) - begin))
printf 'picture of fabric and trees: %s\n' "$out/leafspine.svg"
