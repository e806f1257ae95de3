#!/usr/bin/env bash
# Compares plans on simulated fabrics with their proven optimum: sim.sh BUILD [FABRIC...]. Boxes of
# accelerators at large sizes must reach 97 %, not counting headers; 256 accelerators show the cost
# of a run. Chunk, window and chunks in flight are those that banyan sim recommends. "seconds" is
# processor time of the whole command. Exit 1: a run falls short, is wrong, or carries other bytes
# than predicted.
set -u
build=$1
shift
wanted=("$@")
banyan=$build/bin/banyan
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

field() { sed -n 's/^ "'"$1"'": \(.*[^,]\),\{0,1\}$/\1/p' "$folder/report"; }

row() { # FABRIC COLLECTIVE SIZE LEAST OPTIONS of banyan topo
    local fabric=$1 collective=$2 size=$3 least=$4 spent verdict=ok
    shift 4
    if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $fabric "* ]]; then return; fi
    "$banyan" topo "$@" >"$folder/fabric" && "$banyan" plan "$folder/fabric" -c "$collective" -o "$folder/plan" >/dev/null || exit 1
    TIMEFORMAT='%U'
    { time "$banyan" sim "$folder/fabric" "$folder/plan" -b "$size" --report "$folder/report" >"$folder/out" 2>"$folder/errors"; } 2>"$folder/time" ||
        verdict=failed
    spent=$(cat "$folder/time")
    if [ $verdict = ok ] && ! awk -v r="$(field bound_ratio)" -v least="$least" 'BEGIN { exit !(r >= least && r <= 1) }'; then verdict=short; fi
    printf '%-13s %-15s %6s %10.1f %9.2f %8.2f %8.2f %6s %6s %8s %7s %9.1f  %s\n' "$fabric" "$collective" "$size" "$(field time_us)" "$(field algbw)" \
        "$(awk -v r="$(field bound_ratio)" 'BEGIN { print 100 * r }')" "$(awk -v r="$(field bound_ratio_with_headers)" 'BEGIN { print 100 * r }')" \
        "$(field chunk)" "$(field window)" "$(field inflight)" "$(field retransmissions)" "$spent" "$verdict"
    if [ $verdict != ok ]; then
        cat "$folder/errors"
        status=1
    fi
}

printf '%-13s %-15s %6s %10s %9s %8s %8s %6s %6s %8s %7s %9s\n' fabric collective bytes 'time us' GB/s '% bound' '% with H' chunk window inflight again seconds
row a100-2x8 allgather 1G 0.97 a100 --boxes 2
row a100-2x8 reduce-scatter 1G 0.97 a100 --boxes 2
row a100-2x8 allreduce 512M 0.97 a100 --boxes 2
row h100-16x8 allgather 256M 0.97 h100 --boxes 16
row h100-16x8 reduce-scatter 256M 0.97 h100 --boxes 16
row h100-16x8 allreduce 256M 0.97 h100 --boxes 16
row mi250-2x16 allgather 2G 0.97 mi250 --boxes 2
row mi250-2x16 reduce-scatter 1G 0.97 mi250 --boxes 2
row mi250-2x16 allreduce 512M 0.97 mi250 --boxes 2
row h100-32x8 allreduce 64M 0.9 h100 --boxes 32
row fattree-1024 allreduce 16M 0 fattree --ports 16
exit $status
