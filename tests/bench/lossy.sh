#!/usr/bin/env bash
# What losses cost on simulated fabrics: lossy.sh BUILD [FABRIC...]. Each row is one `banyan sim
# --sweep` with the same seed for all values; a cell is the algorithm bandwidth as a part of that
# without loss. Chunk, window and chunks in flight are those that banyan sim recommends. The last
# rows reorder packets instead. "seconds" is processor time of the whole row. Exit 1: a run failed,
# or has a wrong element.
set -u
build=$1
shift
wanted=("$@")
banyan=$build/bin/banyan
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
seed=1

row() { # FABRIC COLLECTIVE SIZE WORD=VALUES OPTIONS of banyan topo
    local fabric=$1 collective=$2 size=$3 sweep=$4
    shift 4
    if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $fabric "* ]]; then return; fi
    "$banyan" topo "$@" >"$folder/fabric" && "$banyan" plan "$folder/fabric" -c "$collective" -o "$folder/plan" >/dev/null || exit 1
    TIMEFORMAT='%U'
    { time "$banyan" sim "$folder/fabric" "$folder/plan" -b "$size" --seed $seed --sweep "$sweep" >"$folder/out" 2>"$folder/errors"; } 2>"$folder/time" ||
        { cat "$folder/errors" && status=1; }
    printf '%-12s %-10s %5s %8s' "$fabric" "$collective" "$size" "$(awk 'NR == 5 { print $4 }' "$folder/out")"
    sed 1,5d "$folder/out" | awk '{ printf " %8s", $5 }'
    printf ' %9.1f\n' "$(cat "$folder/time")"
}

head() { printf '%-12s %-10s %5s %8s%s %9s\n' fabric collective bytes '% bound' "$(printf ' %8s' "$@")" seconds; }

echo "# seed $seed; the part of the bandwidth without loss that remains, by loss at each switch"
head 1e-5 1e-4 1e-3 1e-2
losses=loss=0,1e-5,1e-4,1e-3,1e-2
row star-8 allreduce 64M $losses star --hosts 8
row h100-4x8 allgather 64M $losses h100 --boxes 4
row h100-4x8 allreduce 64M $losses h100 --boxes 4
row h100-4x8 allgather 256M $losses h100 --boxes 4
row h100-4x8 reduce-scatter 256M $losses h100 --boxes 4
row h100-16x8 allgather 256M $losses h100 --boxes 16
row h100-16x8 allreduce 256M $losses h100 --boxes 16
echo "# the same by the part of packets that are reordered"
head 1e-3 1e-2
row h100-4x8 allreduce 64M reorder=0,1e-3,1e-2 h100 --boxes 4
row h100-4x8 allgather 64M reorder=0,1e-3,1e-2 h100 --boxes 4
row h100-4x8 allgather 256M reorder=0,1e-3,1e-2 h100 --boxes 4
exit $status
