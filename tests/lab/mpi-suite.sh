#!/usr/bin/env bash
# Runs test programs of others, which check their own results, on the hosts of a lab with banyand:
# over banyan, and where one fails there, without it. Reports the calls offloaded, and those left to
# MPI with their reasons. Needs root.
#   mpi-suite.sh BUILD openmpi|mpich "PROGRAM [ARGUMENT...]"...
# EACH=2 runs two ranks on each of the four hosts. Exit 1: a program fails only over banyan.
. "$(dirname "$0")/lab-common.sh" mpi-suite "$1"
need_root
. "$(dirname "$0")/mpi-common.sh"
mpi=$2
shift 2
each=${EACH:-1}
ranks=$((hosts * each))
environment=BANYAN_FALLBACK=circulant
fabric_up --controller || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
for program in "$@"; do
    compared "$mpi" "$(basename "${program%% *}")${program#"${program%% *}"}" "$program"
done
finish
