#!/usr/bin/env bash
# Compares all-to-alls of 8 hosts: Open MPI and MPICH over TCP, and libbanyan under Open MPI
# (BANYAN_FALLBACK), over the same veth links and bridge of a lab. Each contender runs once in each
# round, one after another, and checks every byte of a call on fresh data for each size. Prints, for
# each size of the data of a rank, medians over the rounds in microseconds, and the time of the faster
# MPI over libbanyan's. Needs root.
#   alltoall.sh BUILD [ROUNDS]
. "$(dirname "$0")/../lab/lab-common.sh" bench-alltoall "$1"
need_root
rounds=${2:-3}
. "$(dirname "$0")/../lab/mpi-common.sh"
hosts=8
fabric_up || { fail "a lab with a network beside it" "$dir/up.out"; finish; }
for mpi in openmpi mpich; do
    mpicc.$mpi -O2 -o "$dir/alltoall.$mpi" "$(dirname "$0")/mpi_alltoall.c" || { fail "a program for $mpi"; finish; }
done

# MPICH 4.0 over TCP does not always return from MPI_Finalize. It spins while it waits, so that with
# more ranks than cores a call takes turns of time slices.
over_tcp() {
    timeout --kill-after=5 150 "$dir/agent" $subnet.1 "export HOME='$dir' UCX_TLS=tcp,self UCX_NET_DEVICES=out0; \
exec $(launcher_of mpich) $dir/alltoall.mpich" >"$dir/run.out" 2>&1 </dev/null
    clear_hosts
}
for ((round = 0; round < rounds; round++)); do
    launch openmpi "$dir/alltoall.openmpi"
    sed -n 's/^\(alltoall\|WRONG\)/openmpi \1/p' "$dir/run.out" >>"$dir/times"
    over_tcp
    sed -n 's/^\(alltoall\|WRONG\)/mpich \1/p' "$dir/run.out" >>"$dir/times"
    environment=BANYAN_FALLBACK=circulant run openmpi "$dir/alltoall.openmpi"
    sed -n 's/^\(alltoall\|WRONG\)/banyan \1/p' "$dir/run.out" >>"$dir/times"
done
! grep -q WRONG "$dir/times" || fail "wrong results" "$dir/times"
sort -k1,1 -k3,3n -k4,4g "$dir/times" | awk '
    { name = $1 " " $3; times[name, ++count[name]] = $4; sizes[$3] }
    function median(who, bytes,   n) { n = count[who " " bytes]; return n ? times[who " " bytes, int((n + 1) / 2)] : 0 }
    END {
        printf "%10s %12s %12s %12s %8s\n", "bytes", "openmpi us", "mpich us", "banyan us", "ratio"
        for (b = 1024; b <= 16777216; b *= 4) {
            o = median("openmpi", b); m = median("mpich", b); l = median("banyan", b)
            best = m && m < o ? m : o
            printf "%10d %12.1f %12s %12.1f %8.2f\n", b, o, m ? sprintf("%.1f", m) : "-", l, l ? best / l : 0
            if (l && best) { sum += log(best / l); n++ }
        }
        if (n) printf "geometric mean %.2f of %d sizes\n", exp(sum / n), n
    }'
finish
