#!/usr/bin/env bash
# Unmodified MPI programs over real switches: C, Fortran and Python under Open MPI, C and Fortran
# under MPICH. For the MPI each host is a separate machine: a namespace with a host name and, apart
# from the lab's links, one more network. The MPI starts over this network, and Open MPI sends over
# it what is not offloaded (MPICH: see run). Programs check their own results. This script checks by
# the counts that the plugins print, and by the packets that the switch added, that the expected
# calls were offloaded.
#   lab-mpi.sh BUILD
. "$(dirname "$0")/lab-common.sh" lab-mpi "$@"
need_root
. "$(dirname "$0")/mpi-common.sh"

# lacks REGEX FILE
lacks() { if grep -E "$1" "$2"; then return 1; fi; }
# The count that the plugin prints for checks.c.
without_data() { if [ "$1" = mpich ]; then echo 'calls offloaded, 2 (no data 2)'; else echo 'calls offloaded, 0'; fi; }

# The exchanges that libbanyan has run, and those that were faster in MPI.
exchanged() {
    local what sum=0 count
    for what in all-to-all scatter gather; do
        count=$(offloaded_of "$what")
        sum=$((sum + ${count:-0}))
    done
    count=$(sed -n 's/.*faster in MPI \([0-9]*\).*/\1/p' "$dir/run.out")
    echo $((sum + ${count:-0}))
}

# alone openmpi|mpich PROGRAM: four ranks on this machine, without a table. Output: $dir/run.out
alone() {
    local options=()
    [ "$1" = mpich ] || options=(--oversubscribe --mca pml ob1 --mca btl "vader,self" --mca mpi_yield_when_idle 1)
    timeout --kill-after=5 120 env HOME="$dir" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 BANYAN_LOG=1 BANYAN_FALLBACK=circulant \
        "$build/bin/banyan-run" "mpirun.$1" "${options[@]}" -n 4 "$2" >"$dir/run.out" 2>&1 </dev/null
}

fabric_up || { fail "a lab with a network beside it" "$dir/up.out"; finish; }
cc -O2 -o "$dir/late" "$(dirname "$0")/mpi/late.c" || { fail "a program that loads MPI late"; finish; }
for mpi in openmpi mpich; do
    mpicc.$mpi -O2 -I. -o "$dir/collectives.$mpi" "$(dirname "$0")/mpi/collectives.c" &&
        mpicc.$mpi -O2 -I. -fPIC -shared -o "$dir/collectives.$mpi.so" "$(dirname "$0")/mpi/collectives.c" &&
        mpicc.$mpi -O2 -o "$dir/stops.$mpi" "$(dirname "$0")/mpi/stops.c" &&
        mpicc.$mpi -O2 -I. -w -o "$dir/flights.$mpi" "$(dirname "$0")/mpi/flights.c" &&
        mpicc.$mpi -O2 -I. -w -o "$dir/groups.$mpi" "$(dirname "$0")/mpi/groups.c" &&
        mpicc.$mpi -O2 -o "$dir/passed.$mpi" "$(dirname "$0")/mpi/passed.c" &&
        mpicc.$mpi -O2 -I. -o "$dir/exchanges.$mpi" "$(dirname "$0")/mpi/exchanges.c" &&
        mpicc.$mpi -O2 -I. -w -o "$dir/persistent.$mpi" "$(dirname "$0")/mpi/persistent.c" &&
        mpicc.$mpi -O2 -I. -o "$dir/checks.$mpi" "$(dirname "$0")/mpi/checks.c" &&
        mpicc.$mpi -O2 -I. -c -o "$dir/mixed.$mpi.o" "$(dirname "$0")/mpi/mixed.c" &&
        mpif90.$mpi -O2 -w -o "$dir/mixed.$mpi" "$dir/mixed.$mpi.o" "$(dirname "$0")/mpi/mixed_f08.f90" &&
        mpif90.$mpi -O2 -w -o "$dir/reductions.$mpi" "$(dirname "$0")/mpi/reductions.f90" || { fail "programs for $mpi"; finish; }
done

for mpi in openmpi mpich; do
    shown "$mpi, C, every collective" 34 run $mpi "$dir/collectives.$mpi"
    shown "$mpi, C, MPI loaded late in a scope of its own" 34 run $mpi "$dir/late" "$dir/collectives.$mpi.so"
    shown "$mpi, C, all ranks on one host, without a table" 34 alone $mpi "$dir/collectives.$mpi"
    check "$mpi, these share its memory" grep -q 'through memory that all ranks share on this host' "$dir/run.out"
    shown "$mpi, Fortran" 4 run $mpi "$dir/reductions.$mpi"
    # Only the calls without data are left to MPI; Open MPI carries these out itself.
    shown "$mpi, C beside mpi_f08, one call by different names" 8 run $mpi "$dir/mixed.$mpi"
    check "$mpi, all of these are offloaded" grep -q 'calls offloaded, 0 left to MPI' "$dir/run.out"
    shown "$mpi, attributes, arguments and calls without data" 3 run $mpi "$dir/checks.$mpi"
    check "$mpi, calls without data are counted as such" grep -q "$(without_data $mpi) left to MPI" "$dir/run.out"
    shown "$mpi, calls that stay with MPI" 1 run $mpi "$dir/passed.$mpi"
    check "$mpi, these are counted with their reasons" \
        grep -q '10 (persistent 1, gather or scatter 4, all-to-all 3, scan 2) left to MPI' "$dir/run.out"
    # Messages with one receiver: 3 all-to-alls of each of 5 sizes, 4 unequal ones, and 3 of several
    # types; from and to each of 4 roots, 5 sizes and unequal shares. Those without data, and of half of
    # the ranks, are not.
    environment=BANYAN_FALLBACK=circulant shown "$mpi, all-to-all, scatter and gather between hosts" 70 run $mpi "$dir/exchanges.$mpi"
    check "$mpi, each of these is counted" grep -q 'all-to-all 22, scatter 24, gather 24) calls offloaded' "$dir/run.out"
    # Timed before: each of these 70 is offloaded, or faster in MPI.
    environment="BANYAN_FALLBACK=circulant BANYAN_SMALL=auto" run $mpi "$dir/exchanges.$mpi"
    if [ "$(grep -c '^right' "$dir/run.out")" -eq 6 ] && [ "$(exchanged)" -eq 70 ] &&
        grep -qE 'us of MPI and of banyan with shares of 1, 4096 and 65536 bytes: all-to-all [0-9.]+ and [0-9.]+,.*; scatter .*; gather ' "$dir/run.out"; then
        pass "$mpi, $(grep -o 'all-to-all, scatter and gather, BANYAN_SMALL.*' "$dir/run.out")"
    else
        fail "$mpi, all-to-all, scatter and gather where they are faster than MPI's" "$dir/run.out"
    fi
    # 15 calls of 2 sizes: 3 rounds of each alone, 6 of all together.
    environment="BANYAN_FALLBACK=circulant BANYAN_MPI_PERSISTENT=ordered" shown "$mpi, persistent" 270 run $mpi "$dir/persistent.$mpi"
    check "$mpi, each start of these is counted" grep -q '270 (.*) calls offloaded, 0 left to MPI' "$dir/run.out"
done
# Without the setting each is counted when it is made. MPICH 4.0.2 aborts in its own, without banyan too.
run openmpi "$dir/persistent.openmpi"
check "openmpi, without the setting persistent calls stay with MPI" grep -q '0 calls offloaded, 30 (persistent 30) left to MPI' "$dir/run.out"
shown "openmpi, mpi4py" 9 run openmpi /usr/bin/python3 "$(realpath "$(dirname "$0")/mpi/arrays.py")"

# Non-blocking calls, with one and two ranks on each host, with threads and with a loss of 1 %. Left to
# MPI are those without data, and those that start while the program has a second communicator of all
# ranks.
shown "openmpi, non-blocking" 600 run openmpi "$dir/flights.openmpi"
check "openmpi, those beside a communicator are counted" grep -q 'non-blocking beside other communicators 2)' "$dir/run.out"
environment=BANYAN_LOSS=0.01 shown "mpich, non-blocking, threads, 1 % loss" 600 run mpich "$dir/flights.mpich" multiple
environment=BANYAN_LOSS=0.01 each=2 ranks=$((2 * hosts)) shown "openmpi, non-blocking, two ranks on each host, threads, 1 % loss" 600 \
    run openmpi "$dir/flights.openmpi" multiple
each=2 ranks=$((2 * hosts)) shown "mpich, non-blocking, two ranks on each host" 600 run mpich "$dir/flights.mpich"
check "mpich, those beside a communicator are counted" grep -q 'non-blocking beside other communicators 2)' "$dir/run.out"

# The HPC Challenge as Debian packages it (for Open MPI); it checks its own results.
sed 's/^1000 /300 /' /usr/share/doc/hpcc/examples/_hpccinf.txt >"$dir/hpccinf.txt"
hpcc() {
    run openmpi -wdir "$dir" /usr/bin/hpcc && grep -qx 'Success=1' "$dir/hpccoutf.txt" && ! grep -q 'FAILED' "$dir/hpccoutf.txt" && echo right >>"$dir/run.out"
}
shown "openmpi, hpcc of Debian" 500 hpcc
for mpi in openmpi mpich; do
    shown "$mpi, ScaLAPACK's QR of Debian" 40 scalapack $mpi
done
# A program that uses only libbanyan finds its ranks through the launcher.
for mpi in openmpi mpich; do
    if launch $mpi "$build/bin/banyan-perf" -c all -b 64K -n 3 && grep -q '4 ranks, transport tcp' "$dir/run.out" &&
        grep -q '# Out of bounds values : 0 OK' "$dir/run.out"; then
        pass "$mpi's launcher, a program without MPI: $(grep -o '4 ranks, transport tcp' "$dir/run.out")"
    else
        fail "$mpi's launcher, a program without MPI" "$dir/run.out"
    fi
done
# On one host another rank often looks up rank 0's address after rank 0 has joined PMIx and before
# it has published the address.
started=0
for ((i = 0; i < 50; i++)); do
    if machines=1 each=$hosts launch openmpi "$build/bin/banyan-perf" -c barrier -n 1; then started=$((started + 1)); else mv "$dir/run.out" "$dir/start.out"; fi
done
if [ $started -eq $i ]; then
    pass "openmpi's launcher, all ranks on one host: $started starts of $i"
else
    fail "openmpi's launcher, all ranks on one host: $started starts of $i; the last that failed:" "$dir/start.out"
fi
refused "a way to meet that is not there" 2 "BANYAN_BOOTSTRAP is pmi, but its variables are not set" env BANYAN_BOOTSTRAP=pmi "$build/bin/banyan-perf" -c barrier

# While a program runs, another one of the same job is left to MPI.
environment=BANYAN_TIMEOUT=20 run openmpi "$dir/stops.openmpi" hang >/dev/null &
first=$!
children+=($first)
sleep 4
mv "$dir/run.out" "$dir/first.out"
left "mpich, a second program at once" "job 1 is in use by process [0-9]* (stops.openmpi)" run mpich "$dir/reductions.mpich"
wait $first
children=()
for mpi in openmpi mpich; do
    ranks=3 left "$mpi, fewer ranks than the tables have" "tables are for 4 ranks, but MPI runs 3" run $mpi "$dir/reductions.$mpi"
done
# Several ranks on a host, in the order of hosts and dealt out over them, and more on some hosts.
for mpi in openmpi mpich; do
    each=2 ranks=$((2 * hosts)) shown "$mpi, two ranks on each host, C" 34 run $mpi "$dir/collectives.$mpi"
    check "$mpi, two ranks on each host share memory" grep -q '8 ranks on 4 hosts, joined by shared memory' "$dir/run.out"
    each=2 ranks=$((2 * hosts)) shown "$mpi, two ranks on each host, Fortran" 4 run $mpi "$dir/reductions.$mpi"
    each=3 ranks=$((3 * hosts)) shown "$mpi, communicators of one host, without banyand" 100 run $mpi "$dir/groups.$mpi" near 50
done
each=3 by=node ranks=$((3 * hosts)) shown "openmpi, three ranks on each host, dealt out" 34 run openmpi "$dir/collectives.openmpi"
uneven=3,1,2,2 ranks=8 shown "openmpi, 3, 1, 2 and 2 ranks" 34 run openmpi "$dir/collectives.openmpi"
uneven=3,1,2,2 ranks=8 shown "mpich, 3, 1, 2 and 2 ranks" 34 run mpich "$dir/collectives.mpich"
for mpi in openmpi mpich; do
    each=4 ranks=4 left "$mpi, a host without a rank" "none of the 4 ranks runs on host 1 of the 4 hosts" run $mpi "$dir/reductions.$mpi"
done
environment=BANYAN_TRANSPORT=pigeon left "openmpi, a setting that is wrong" "transport 'pigeon' is unknown" run openmpi "$dir/reductions.openmpi"
mv "/run/banyan/lab-$lab/host2.table" "$dir/"
left "openmpi, a host without a table" "rank 2 on host2: .*no table host2.table for this host" run openmpi "$dir/reductions.openmpi"
mv "$dir/host2.table" "/run/banyan/lab-$lab/"

# A rank stops or is killed during the run. The others receive an error that names it within the
# time limit and a second. If it is killed, the launcher may be first and end them all.
for mpi in openmpi mpich; do
    for how in hang stop kill later again; do
        before=$(date +%s.%N)
        environment="BANYAN_TIMEOUT=$((2 + slow)) BANYAN_MPI_PERSISTENT=ordered" run $mpi "$dir/stops.$mpi" $how
        status=$?
        took=$(date +%s.%N | awk -v b="$before" '{ printf "%.1f", $1 - b }')
        slowest=$(sed -n 's/.*an error, as it must be after \([0-9.]*\) s$/\1/p' "$dir/run.out" | sort -g | tail -n 1)
        said=$(grep -cE 'rank [013]: an error, as it must be' "$dir/run.out")
        if [ $status -ne 124 ] && [ "$said" -eq 3 ] && grep -q "host2 (rank 2) has not contributed" "$dir/run.out" &&
            in_time "$slowest" $((2 + slow)); then
            pass "$mpi, rank 2, $how: $slowest s: $(grep -m1 -o 'allreduce of .* for [0-9]* s' "$dir/run.out")"
        elif [ $how = kill ] && [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && in_time "$took" $((11 + slow)) &&
            grep -Eq 'process rank 2 .* exited on signal 9|BAD TERMINATION|KILLED BY SIGNAL: 9' "$dir/run.out"; then
            pass "$mpi, rank 2, $how: the launcher ends all, $took s with start and end: $(grep -Eom1 'process rank 2 .* signal 9|=   .* RUNNING AT .*|KILLED BY SIGNAL: 9' "$dir/run.out")"
        else
            echo "(exit status $status after $took s; $said of 3 ranks said their error; the slowest after $slowest s)" >>"$dir/run.out"
            fail "$mpi, rank 2, $how" "$dir/run.out"
        fi
    done
done

# A rank that computes for longer than BANYAN_TIMEOUT is waited for, by default as long as by MPI.
# computes MPI HOW SECONDS CALLS
computes() {
    run "$1" "$dir/stops.$1" "$2" "$3"
    local status=$?
    if [ $status -eq 0 ] && [ "$(grep -c 'rank [0-3]: no error' "$dir/run.out")" -eq 4 ] && grep -q "$4" "$dir/run.out"; then
        pass "$1, a rank that computes for $3 s is waited for in ${4% *}"
    else
        echo "(exit status $status)" >>"$dir/run.out"
        fail "$1, a rank that computes for $3 s is waited for in ${4% *}" "$dir/run.out"
    fi
}
environment='' computes openmpi compute 13 'allreduce 10000'
environment="BANYAN_TIMEOUT=2 BANYAN_WAIT=60" computes mpich compute 5 'allreduce 10000'
environment=BANYAN_FALLBACK=circulant computes openmpi exchange 13 'all-to-all 10000'
environment="BANYAN_FALLBACK=ring BANYAN_TIMEOUT=2 BANYAN_WAIT=60" computes mpich exchange 5 'all-to-all 10000'

# Open MPI would repeat the calls of a duplicate for ever; MPICH makes it by itself.
environment=BANYAN_TIMEOUT=$((2 + slow)) run openmpi "$dir/stops.openmpi" dup
status=$?
if [ $status -ne 0 ] && [ $status -ne 124 ] && grep -q "host2 (rank 2) has not contributed" "$dir/run.out" &&
    grep -q '[0-9] calls in a row; the program ends' "$dir/run.out" && [ "$(wc -l <"$dir/run.out")" -lt 60 ]; then
    pass "openmpi, rank 2 hangs while the others duplicate a communicator"
else
    echo "(exit status $status)" >>"$dir/run.out"
    fail "openmpi, rank 2 hangs while the others duplicate a communicator" "$dir/run.out"
fi

# The same with two ranks on each host: rank 2 leads host1, rank 3 is beside it.
for mpi in openmpi mpich; do
    each=2 ranks=$((2 * hosts)) environment=BANYAN_TIMEOUT=$((2 + slow)) run $mpi "$dir/stops.$mpi" stop
    status=$?
    slowest=$(sed -n 's/.*an error, as it must be after \([0-9.]*\) s$/\1/p' "$dir/run.out" | sort -g | tail -n 1)
    said=$(grep -cE 'rank [0-7]: an error, as it must be' "$dir/run.out")
    if [ $status -ne 124 ] && [ "$said" -eq 7 ] && grep -q "host1 (ranks 2, 3) has not contributed" "$dir/run.out" &&
        grep -q "rank 2 on host1 has not contributed" "$dir/run.out" && in_time "$slowest" $((3 + slow)); then
        pass "$mpi, two ranks on each host, rank 2 stops: $slowest s: $(grep -m1 -o 'allreduce of .* for [0-9]* s' "$dir/run.out")"
    else
        echo "(exit status $status; $said of 7 ranks said their error; the slowest after $slowest s)" >>"$dir/run.out"
        fail "$mpi, two ranks on each host, rank 2 stops" "$dir/run.out"
    fi
done

# The plugin of the wrong MPI.
refused "the preload for MPICH in a program of Open MPI" 3 "was preloaded into a program of Open MPI" \
    env LD_PRELOAD="$build/lib/banyan/libbanyan-mpich.so" "$dir/reductions.openmpi"

refused "banyan-run without a program" 2 "give a program" "$build/bin/banyan-run"
refused "banyan-run with a program that is not there" 2 "cannot find the program nothere" "$build/bin/banyan-run" nothere
refused "banyan-run with an unknown MPI" 2 "it must be openmpi or mpich" "$build/bin/banyan-run" --mpi lam true
refused "banyan-run with a program that tells no MPI" 2 "use --mpi openmpi or --mpi mpich" "$build/bin/banyan-run" /bin/true
for mpi in openmpi mpich; do
    cp "$dir/reductions.$mpi" "$dir/program"
    refused "banyan-run knows a program of $mpi by its libraries" 0 "according to the libraries that it needs" env OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$build/bin/banyan-run" -v "$dir/program"
done

finish
