#!/usr/bin/env bash
# Many communicators of MPI programs over real switches with banyand: 100 are made, called and
# freed, again and again; of 64 at once a rank stops, or is killed. banyand gets all slots back.
# Needs root.
#   mpi-loops.sh BUILD   LOOPS=20: times 100 communicators; MPIS="openmpi mpich"
. "$(dirname "$0")/lab-common.sh" mpi-loops "$@"
need_root
. "$(dirname "$0")/mpi-common.sh"

loops=${LOOPS:-20}
# Without it MPICH's ranks, which poll for whole time slices, take minutes to make communicators.
idle=$dir/idle.so
cc -O2 -shared -fPIC -o "$idle" "$(dirname "$0")/mpi/idle.c" || { fail "a library for idle ranks"; finish; }
fabric_up --controller || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
before=$(held)
for mpi in ${MPIS:-openmpi mpich}; do
    mpicc.$mpi -O2 -I. -w -o "$dir/groups.$mpi" "$(dirname "$0")/mpi/groups.c" || { fail "programs for $mpi"; finish; }
    for each in 1 2; do
        ranks=$((each * hosts))
        jobs=$(made)
        # Of the four calls of each of the first communicators some stay with MPI.
        environment=$patient limit=$((60 + 3 * loops)) shown "$mpi, $ranks ranks, $loops times 100 communicators" $((380 * loops)) run $mpi "$dir/groups.$mpi" hundred "$loops"
        grep ' times 100 ' "$dir/run.out" | sed "s/\$/, with $(($(made) - jobs)) jobs of banyand/; s/^/         | /"
        returned "$mpi, $ranks ranks, no slot is lost"
    done
    each=1 ranks=$hosts
    environment="BANYAN_TIMEOUT=$((2 + slow))" run $mpi "$dir/groups.$mpi" stopped 64
    named "$mpi, a rank that stops is named in a call of each of 64 communicators" 3 $((4 + slow)) 'rank [012]: after [0-9.]+ s 64 of 64 calls have ended with the name of the rank'
    returned "$mpi, the slots of all 64 return"
    environment="BANYAN_TIMEOUT=$((2 + slow))" run $mpi "$dir/groups.$mpi" killed 64
    if [ $? -eq 0 ]; then fail "$mpi, a rank of 64 communicators is killed" "$dir/run.out"; else pass "$mpi, a rank of 64 communicators is killed: the program ends"; fi
    returned "$mpi, the slots of all 64 return"
done
finish
