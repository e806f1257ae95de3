#!/usr/bin/env bash
# Communicators of unmodified MPI programs, under Open MPI and MPICH, over real switches with
# banyand: every way to make one, 64 at once, the refusal at the limit, and a loop that makes and
# frees them. banyand gets all slots back.
#   lab-mpi-groups.sh BUILD   SECONDS_OF_LOOP=N runs the loops for N seconds (default 5)
. "$(dirname "$0")/lab-common.sh" lab-mpi-groups "$@"
need_root
. "$(dirname "$0")/mpi-common.sh"

fabric_up --controller || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
# In the session of this script they would share a ninth of the processors beside eight ranks.
sessions() { sed -nE 's/^process ([0-9]+) .*/\1/p' "/run/banyan/lab-$lab/state" | xargs ps -o pid=,sid= -p | awk '$1 != $2 { other = 1 } END { exit NR < 2 || other }'; }
check "each process of the lab leads a session" sessions
for mpi in openmpi mpich; do
    mpicc.$mpi -O2 -I. -w -o "$dir/groups.$mpi" "$(dirname "$0")/mpi/groups.c" || { fail "programs for $mpi"; finish; }
done
before=$(held)

for mpi in openmpi mpich; do
    shown "$mpi, communicators of every shape" 300 run $mpi "$dir/groups.$mpi" shapes
    each=2 ranks=$((2 * hosts)) shown "$mpi, communicators of every shape, two ranks on each host" 300 run $mpi "$dir/groups.$mpi" shapes
    returned "$mpi, their slots return"
    jobs=$(made)
    for near in 2 4 8; do
        each=$near ranks=$((near * hosts)) shown "$mpi, communicators of one host, $near ranks on each of four" 200 run $mpi "$dir/groups.$mpi" near 100
        check "$mpi, which carries some all-to-alls, too" test "$(offloaded_of all-to-all)" -gt 0
    done
    [ "$(made)" -eq "$jobs" ] && pass "$mpi, for which banyand makes no job" || fail "$mpi, for which banyand makes no job" "/run/banyan/lab-$lab/banyand.log"
    environment=BANYAN_FALLBACK=circulant shown "$mpi, all-to-alls of every shape" 310 run $mpi "$dir/groups.$mpi" shapes
    check "$mpi, they are offloaded" test "$(offloaded_of all-to-all)" -gt 8
    # 60 rounds of 12.5 calls on three communicators. How many are offloaded depends on how fast the jobs open.
    environment=$patient shown "$mpi, only calls that do not wait" 300 run $mpi "$dir/groups.$mpi" nowait 60
    environment=$patient each=2 ranks=$((2 * hosts)) shown "$mpi, only calls that do not wait, two ranks on each host" 300 run $mpi "$dir/groups.$mpi" nowait 60
    returned "$mpi, their slots return"
    shown "$mpi, 64 communicators at once" 190 run $mpi "$dir/groups.$mpi" many 64
    shown "$mpi, 70 communicators: six stay with MPI" 190 run $mpi "$dir/groups.$mpi" many 70
    check "$mpi, they are counted with their reason" grep -q 'no trees for a communicator 18' "$dir/run.out"
    check "$mpi, which is printed" grep -q 'is not offloaded: 64 jobs of communicators exist, the limit of banyand' "$dir/run.out"
    # 64 times two calls, and of 1500 calls those after the thousandth.
    environment=$patient shown "$mpi, one of 70 that is refused at first" $((128 + 499)) run $mpi "$dir/groups.$mpi" later 70
    environment=$patient shown "$mpi, 64 at once, while jobs of freed ones are kept" 198 run $mpi "$dir/groups.$mpi" full 64
    if grep -q 'no trees for a communicator' "$dir/run.out"; then fail "$mpi, which give way" "$dir/run.out"; else pass "$mpi, which give way"; fi
    jobs=$(made)
    environment=$patient shown "$mpi, communicators of ranks that have had one" 1700 run $mpi "$dir/groups.$mpi" again 40
    jobs=$(($(made) - jobs))
    [ $jobs -le 30 ] && pass "$mpi, 240 of these have used $jobs jobs" || fail "$mpi, 240 of these have used $jobs jobs"
    environment=$patient each=2 ranks=$((2 * hosts)) shown "$mpi, the same, two ranks on each host" 1000 run $mpi "$dir/groups.$mpi" again 30
    returned "$mpi, the slots of kept jobs return"
    shown "$mpi, ScaLAPACK's QR of Debian" 150 scalapack $mpi
    jobs=$(made)
    run $mpi "$dir/groups.$mpi" unused 100
    if grep -q 'right' "$dir/run.out" && [ "$(made)" -eq "$jobs" ]; then pass "$mpi, 100 communicators that are called once make no job"; else fail "$mpi, 100 communicators that are called once make no job" "$dir/run.out"; fi
    for each in 1 2; do
        ranks=$((each * hosts)) run $mpi "$dir/groups.$mpi" parents 50
        if grep -q 'right' "$dir/run.out" && [ "$(made)" -eq "$jobs" ] && ! grep -q 'first calls of a communicator' "$dir/run.out"; then pass "$mpi, $each on each host, nor do 50 of which others are made: $(sed -n 's/^banyan: MPI: \([0-9].*\)/\1/p' "$dir/run.out")"; else fail "$mpi, $each on each host, nor do 50 of which others are made" "$dir/run.out"; fi
    done
    each=1
    environment=$patient shown "$mpi, a loop: at least 8 pairs" 30 run $mpi "$dir/groups.$mpi" loop "${SECONDS_OF_LOOP:-5}"
    grep 'in a loop' "$dir/run.out" | sed 's/^/         | /'
    returned "$mpi, no slot is lost"
    environment=BANYAN_TIMEOUT=$((2 + slow)) run $mpi "$dir/groups.$mpi" kill
    named "$mpi, a rank that stops in a call of a pair is named" 2 $((2 + slow)) 'rank [02]: an error after [0-9.]+ s: .*(host1|host3|rank 1)'
    returned "$mpi, the slots of the pairs return"
    each=2 ranks=$((2 * hosts)) environment=BANYAN_TIMEOUT=$((2 + slow)) run $mpi "$dir/groups.$mpi" kill
    named "$mpi, a rank that stops in a call of a pair on one host is named" 4 $((2 + slow)) 'rank [0246]: an error after [0-9.]+ s: .*on one host, rank 0 of 2: .*rank 1 was silent'
done
finish
