#!/usr/bin/env bash
# ScaLAPACK's test programs of Debian (scalapack-mpi-test) over real switches with banyand, with their
# own input. Each program reports its results; they must be the same over banyan and without it, and
# none may be wrong over banyan only. Needs root.
#   mpi-scalapack.sh BUILD [PROGRAM...]   MPIS="openmpi mpich"; EACH=2: two ranks on each host;
#                               MORE=BANYAN_MPI_AFTER=0: more of the environment
. "$(dirname "$0")/lab-common.sh" mpi-scalapack "$1"
need_root
. "$(dirname "$0")/mpi-common.sh"
shift
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(xdqr xdlu xdllt xdinv xdhrd xdbrd xdtrd xdls xdnep xddblu xdpbllt xdsep)
each=${EACH:-1}
ranks=$((hosts * each))
environment="BANYAN_FALLBACK=circulant ${MORE:-}"
limit=300
folder=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/scalapack
[ -x "$folder/openmpi-tests/xdqr" ] || { echo "$name: skipped: apt-get install scalapack-mpi-test" >&2; exit 77; }

# The results in a program's output: its own counts, and the words at the ends of its rows.
results_of() { # FILE
    grep -aE '[0-9]+ +tests' "$1" | tr -s ' ' | sort
    grep -aoE '\b(PASSED|FAILED|passed|failed|BYPASSED)\b' "$1" | sort | uniq -c
}
alike() { cmp -s "$1" "$2"; }
summary_of() { grep -aoE '[0-9]+ tests completed and passed' "$1" | head -n 1; }

fabric_up --controller || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
cp -L "$folder/openmpi-tests/"*.dat "$dir" || { fail "the input of the tests"; finish; }
# Fewer sizes and blocks than in the package, where these take minutes.
sed -i -e 's/^4\(.*number of problem\)/2\1/' -e "s/^[34]\(.*number of N[BR].*'s\)/2\1/i" -e 's/^4\(.*number of blocking\)/2\1/' \
    "$dir"/{LU,LLT,QR,HRD,INV,TRD,BRD}.dat
sed -i -e 's/^3\(.*number of problem\)/2\1/' -e "s/^2\(.*number of N[BR].*'s\)/1\1/i" "$dir/LS.dat"
for mpi in ${MPIS:-openmpi mpich}; do
    for program in "${programs[@]}"; do
        beside "$mpi" "$mpi, $program" -wdir "$dir" "$folder/$mpi-tests/$program"
    done
done
finish
