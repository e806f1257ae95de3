#!/usr/bin/env bash
# Compares the times of single calls: Open MPI and MPICH over TCP, and banyan under Open MPI, over
# the same kind of veth links of a lab. Each contender runs once in each round, one after another,
# and checks every element of every call. Prints medians over the rounds in microseconds, and the
# time of the faster MPI over banyan's. Needs root.
#   latency.sh BUILD alltoall [ROUNDS]   all-to-alls of 8 hosts, 1 KiB to 16 MiB of a rank, between
#                                        hosts (BANYAN_FALLBACK): the median call
#   latency.sh BUILD short [ROUNDS]      allreduces and broadcasts of 8 bytes and 1 KiB and barriers
#                                        of 4 and 8 hosts, over trees: the median and the 99th
#                                        percentile of calls; HOSTS="4 8"
. "$(dirname "$0")/../lab/lab-common.sh" "bench-$2" "$1"
need_root
what=$2
rounds=${3:-3}
. "$(dirname "$0")/../lab/mpi-common.sh"
sizes=8
calls="alltoall 1024 16777216 50"
environment=BANYAN_FALLBACK=circulant
if [ "$what" = short ]; then
    sizes=${HOSTS:-4 8}
    calls="allreduce 8 8 1000|allreduce 1024 1024 1000|broadcast 8 8 1000|broadcast 1024 1024 1000|barrier 0 0 1000"
    environment=
    mpich_calls=200 mpich_limit=30
fi
IFS='|' read -ra calls <<<"$calls"
for mpi in openmpi mpich; do
    mpicc.$mpi -O2 -o "$dir/latency.$mpi" "$(dirname "$0")/mpi_latency.c" || { fail "a program for $mpi"; finish; }
done

# MPICH 4.0 over TCP does not always return from MPI_Finalize. It spins while it waits, so that with
# more ranks than cores a call takes turns of time slices, and fewer calls are made.
over_tcp() { # CALL
    timeout --kill-after=5 "${mpich_limit:-150}" "$dir/agent" $subnet.1 "export HOME='$dir' UCX_TLS=tcp,self UCX_NET_DEVICES=out0; \
exec $(launcher_of mpich) $dir/latency.mpich ${1%1000}${mpich_calls:-}" >"$dir/run.out" 2>&1 </dev/null
    clear_hosts
}
take() { # CONTENDER
    sed -nE "s/^(alltoall|allreduce|broadcast|barrier|WRONG) /$1 $hosts &/p" "$dir/run.out" >>"$dir/times"
    ! grep -q '^WRONG' "$dir/run.out" || fail "$1: a wrong result" "$dir/run.out"
    grep -qE '^(alltoall|allreduce|broadcast|barrier) ' "$dir/run.out" || fail "$1 printed no time" "$dir/run.out"
}
for hosts in $sizes; do
    fabric_up || { fail "a lab with a network beside it" "$dir/up.out"; finish; }
    for ((round = 0; round < rounds; round++)); do
        for call in "${calls[@]}"; do
            launch openmpi "$dir/latency.openmpi $call"
            take openmpi
            over_tcp "$call"
            take mpich
            run openmpi "$dir/latency.openmpi $call"
            take banyan
        done
    done
    cleanup_more
    lab=
done
# The times of one contender and call are together, in the order of a column.
column() { # 5: medians; 6: 99th percentiles
    sort -k2,2n -k3,3 -k4,4n -k1,1 -k"$1,$1g" "$dir/times" | awk -v column="$1" '
        { key = $2 " " $3 " " $4; if (!(key in seen)) { seen[key]; order[++keys] = key }
          times[$1, key, ++count[$1, key]] = $column }
        function median(who, key,   n) { n = count[who, key]; return n ? times[who, key, int((n + 1) / 2)] : 0 }
        END {
            printf "%s\n%5s %-9s %9s %12s %12s %12s %7s\n", column == 5 ? "median call" : "99th percentile", "hosts", "", "bytes", "Open MPI us", "MPICH us", "banyan us", "ratio"
            for (i = 1; i <= keys; i++) {
                split(order[i], part, " ")
                o = median("openmpi", order[i]); m = median("mpich", order[i]); l = median("banyan", order[i])
                best = m && (m < o || !o) ? m : o
                printf "%5d %-9s %9d %12.1f %12s %12.1f %7.2f\n", part[1], part[2], part[3], o, m ? sprintf("%.1f", m) : "-", l, l ? best / l : 0
                if (l && best) { sum += log(best / l); n++ }
            }
            if (n) printf "geometric mean %.2f of %d\n", exp(sum / n), n
        }'
}
column 5
[ "$what" != short ] || column 6
finish
