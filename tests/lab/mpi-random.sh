#!/usr/bin/env bash
# Random MPI programs (mpi/random.c) over real switches with banyand: every call, type and operator,
# on communicators that are made and freed, blocking and not. A program that fails is run again
# without banyan; if it fails there, too, this is noted and not counted. Needs root.
#   mpi-random.sh BUILD   FIRST=1 SEEDS=1 STEPS=300; MPIS="openmpi mpich"; EACH=2: two ranks on each
#                         host; MORE=BANYAN_MODE=det: more of the environment; LOSS=0.01 at the switch
. "$(dirname "$0")/lab-common.sh" mpi-random "$@"
need_root
. "$(dirname "$0")/mpi-common.sh"

each=${EACH:-1}
ranks=$((hosts * each))
first=${FIRST:-1}
environment="BANYAN_FALLBACK=circulant ${MORE:-}"
fabric_up --controller --loss "${LOSS:-0}" || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
for mpi in ${MPIS:-openmpi mpich}; do
    mpicc.$mpi -O2 -I. -w -o "$dir/random.$mpi" "$(dirname "$0")/mpi/random.c" || { fail "programs for $mpi"; finish; }
done
wanted='^right'
for ((seed = first; seed < first + ${SEEDS:-1}; seed++)); do
    for mpi in ${MPIS:-openmpi mpich}; do
        compared $mpi "$mpi, seed $seed" "$dir/random.$mpi" $seed "${STEPS:-300}"
    done
done
finish
