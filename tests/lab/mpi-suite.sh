#!/usr/bin/env bash
# Runs test programs of others, which check their own results, on the four hosts of a lab with
# banyand. Reports the calls offloaded, and those left to MPI with their reasons. Needs root.
#   mpi-suite.sh BUILD openmpi|mpich "PROGRAM [ARGUMENT...]"...
#       over banyan, and where one fails there, without it. EACH=2: two ranks on each host. Exit 1:
#       a program fails only over banyan.
#   mpi-suite.sh BUILD
#       the suites of hpcc, ScaLAPACK and mpi4py, over banyan and without it: what passes must be
#       the same. Prints a line for each suite, MPI and number of ranks on a host (a cell).
#       Settings:
#       SUITES="hpcc scalapack mpi4py", MPIS="openmpi mpich", EACH="1 2 8"
#       CELL: the seconds that each cell may take over banyan, and without it (default 600)
#       PROGRAMS: those of ScaLAPACK; MODULES: those of mpi4py (test_op,test_comm)
#       TYPES: types of elements for mpi4py (default: all; with more than two ranks on a host id,
#           int and double)
#       MPI4PY: the source of mpi4py; MPI4PY_MPICH: the folder of an mpi4py built for MPICH;
#       HPCC_MPICH: an hpcc built for MPICH. Without them their cells are skipped.
#       RECORD: a file, to which the line of each cell is appended at its end
# MORE=BANYAN_MPI_AFTER=0: more settings for banyan.
. "$(dirname "$0")/lab-common.sh" mpi-suite "$1"
need_root
. "$(dirname "$0")/mpi-common.sh"
shift
environment="BANYAN_FALLBACK=circulant ${MORE:-}"
# mpi/idle.c: without it, eight ranks on a host of MPICH take minutes for seconds of work.
idle=$dir/idle.so
cc -O2 -shared -fPIC -o "$idle" "$(dirname "$0")/mpi/idle.c" || { fail "a library for idle ranks"; finish; }
fabric_up --controller || { fail "a lab with banyand and a network beside it" "$dir/up.out"; finish; }
if [ $# -gt 0 ]; then
    mpi=$1
    shift
    each=${EACH:-1}
    ranks=$((hosts * each))
    for program in "$@"; do
        compared "$mpi" "$(basename "${program%% *}")${program#"${program%% *}"}" "$program"
    done
    finish
fi

cell=${CELL:-600}
source=$(dirname "$(realpath "$0")")/mpi/suite_of_mpi4py.py
table=()
# row RESULT: a line of the table at the end, with the counts of the cell.
row() {
    table+=("$mpi, $each on each host, $suite: $1: $(share_of "$dir/counts")")
    sort "$dir/refusals" | uniq -c | sed 's/^/    /'
    echo "${table[-1]}" >>"${RECORD:-/dev/null}"
}
skip() { echo "  note: $mpi, $suite is skipped: $1"; }

# mpi4py_pass run|launch SECONDS [LIST]: runs mpi4py's tests, or only those in LIST, for at most
# SECONDS seconds. Writes "ok|skipped|wrong|slow|ended NAME" for each that has an end on all ranks
# to $dir/decided: wrong on one rank, too slow, or the rank ended in it.
mpi4py_pass() {
    local until=$((SECONDS + $2)) left status before
    : >"$dir/decided"
    while left=$((until - SECONDS)) && [ $left -gt 5 ]; do
        rm -rf "$dir/notes"
        mkdir "$dir/notes"
        cut -d ' ' -f 2 "$dir/decided" >"$dir/skip"
        before=$(wc -l <"$dir/decided")
        limit=$((left + one + 30)) "$1" "$mpi" env PYTHONDONTWRITEBYTECODE=1 "PYTHONPATH='$modules'" /usr/bin/python3 "$source" "$MPI4PY/test" \
            "$dir/notes" --skip "$dir/skip" ${3:+--only "$3"} --seconds "$left" --each "$one" ${types:+--types "$types"} ${MODULES:+--modules "$MODULES"}
        status=$?
        sed 's/^\(wrong\) \([^ ]*\): /\1 \2 /' "$dir"/notes/rank.* | awk -v ranks=$ranks -v status=$status '
            $1 == "begin" { begun[$2]++; open[$2]++; next }
            $1 == "end" { next }
            { open[$2]-- }
            $1 == "wrong" || $1 == "slow" { bad[$2] = $1; any = 1; why[$2] = $0; next }
            { ended[$2]++; if ($1 == "ok") good[$2] = 1 }
            END {
                for (name in begun)
                    if (name in bad) { print bad[name], name; print why[name] >"/dev/stderr" }
                    else if (ended[name] == ranks) print (name in good) ? "ok" : "skipped", name
                    else if (open[name] > 0 && (first == "" || name < first)) first = name
                if (status && !any && first != "") print "ended", first
            }' >>"$dir/decided" 2>>"$dir/why"
        [ $status -ne 0 ] || break
        [ "$(wc -l <"$dir/decided")" -gt "$before" ] || break
    done
}
# Tests of mpi4py: first without banyan; then over it those that passed, so that the plugin prints
# the counts of these at the end of one program; then those that did not.
suite_mpi4py() {
    local modules='' types=${TYPES:-} one=${ONE:-120} both
    [ -n "${MPI4PY:-}" ] || { skip "MPI4PY is not set"; return; }
    if [ "$mpi" = mpich ]; then
        modules=${MPI4PY_MPICH:-}
        [ -n "$modules" ] || { skip "MPI4PY_MPICH is not set"; return; }
    fi
    [ -n "$types" ] || [ "$each" -le 2 ] || types=id
    : >"$dir/why"
    mpi4py_pass launch "$cell"
    mv "$dir/decided" "$dir/without"
    grep '^ok ' "$dir/without" | cut -d ' ' -f 2 >"$dir/good"
    : >"$dir/why"
    one=$((2 * one)) mpi4py_pass run "$((2 * cell))" "$dir/good"
    mv "$dir/decided" "$dir/over"
    grep -E '^(wrong|ended|skipped) ' "$dir/without" | cut -d ' ' -f 2 >"$dir/others"
    mpi4py_pass run "$cell" "$dir/others"
    cat "$dir/decided" >>"$dir/over"
    sort -k 2 "$dir/without" >"$dir/without.sorted"
    sort -k 2 "$dir/over" >"$dir/over.sorted"
    # Of tests that have a result both times, those that pass only once.
    join -j 2 "$dir/without.sorted" "$dir/over.sorted" >"$dir/joined"
    awk '($2 == "ok") != ($3 == "ok")' "$dir/joined" >"$dir/differ"
    both=$(awk '$2 == "ok" && $3 == "ok"' "$dir/joined" | wc -l)
    awk '$2 != "ok" && $2 != "skipped"' "$dir/joined" | sed 's/^/    fails without banyan, too: /'
    what="$both pass with and without banyan, $(awk '$2 == "skipped" && $3 == "skipped"' "$dir/joined" | wc -l) skipped, \
$(awk '$2 != "ok" && $2 != "skipped" && $3 != "ok"' "$dir/joined" | wc -l) fail with and without, $(wc -l <"$dir/differ") differ; \
$(grep -c . "$dir/without") ended without banyan, $(grep -c . "$dir/over") over it"
    if [ "$both" -gt 0 ] && [ ! -s "$dir/differ" ]; then
        pass "$mpi, $each on each host, mpi4py: $what"
    else
        tail -n 40 "$dir/run.out" >"$dir/tail.out"
        fail "$mpi, $each on each host, mpi4py: $what" "$dir/differ" "$dir/why" "$dir/tail.out"
    fi
    row "$what"
}

# For the comparison of programs over banyan and without it; see mpi-common.sh.
results_of() { "results_of_$suite" "$1"; }
alike() { cmp -s "$1" "$2"; }
summary_of() { "summary_of_$suite" "$1"; }

# The HPC Challenge. Debian's is built for Open MPI. Its results are in a file of its own.
results_of_hpcc() {
    grep -aoE 'PASSED|FAILED|\((passed|failed)\)|^Success=.*' "$dir/hpccoutf.txt" 2>/dev/null | sort | uniq -c
    rm -f "$dir/hpccoutf.txt"
}
summary_of_hpcc() { paste -sd ' ' "$dir/over.results" | tr -s ' '; }
suite_hpcc() {
    local program=/usr/bin/hpcc rows=2
    if [ "$mpi" = mpich ]; then
        program=${HPCC_MPICH:-}
        [ -n "$program" ] || { skip "HPCC_MPICH is not set"; return; }
    fi
    # A grid of all ranks, and matrices of 300.
    [ "$each" -ne 8 ] || rows=4
    sed -e 's/^1000 /300 /' -e "s/^2\( *Ps\)/$rows\1/" -e "s/^2\( *Qs\)/$((ranks / rows))\1/" /usr/share/doc/hpcc/examples/_hpccinf.txt >"$dir/hpccinf.txt"
    limit=$cell beside "$mpi" "$mpi, hpcc" -wdir "$dir" "$program"
    row "$(summary_of_hpcc)"
}

# ScaLAPACK's test programs of Debian (scalapack-mpi-test), with their own input. Each reports its
# results; they must be the same over banyan and without it.
programs=${PROGRAMS:-xdqr xdlu xdllt xdinv xdhrd xdbrd xdtrd xdls xdnep xddblu xdpbllt xdsep}
folder=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/scalapack
# The results in a program's output: its own counts, and the words at the ends of its rows. Messages
# of the MPI may contain such words, too.
results_of_scalapack() { # FILE
    grep -aE '[0-9]+ +tests' "$1" | tr -s ' ' | sort
    grep -aoE '\b(PASSED|FAILED|passed|failed|BYPASSED)( +EVX?| +EVD)? *$' "$1" | tr -s ' ' | sort | uniq -c
}
summary_of_scalapack() { grep -aoE '[0-9]+ tests completed and passed' "$1" | head -n 1; }
scalapack_input() {
    cp -L "$folder/openmpi-tests/"*.dat "$dir" || return 1
    # Fewer sizes and blocks than in the package, where these take minutes.
    sed -i -e 's/^4\(.*number of problem\)/2\1/' -e "s/^[34]\(.*number of N[BR].*'s\)/2\1/i" -e 's/^4\(.*number of blocking\)/2\1/' \
        "$dir"/{LU,LLT,QR,HRD,INV,TRD,BRD}.dat
    sed -i -e 's/^3\(.*number of problem\)/2\1/' -e "s/^2\(.*number of N[BR].*'s\)/1\1/i" "$dir/LS.dat"
}
suite_scalapack() {
    local program until=$((SECONDS + 2 * cell)) before=$((passed + failed)) good=$passed bad=$failed count=0
    # The grids of its input have at most four processes. Eight ranks on a host are dealt out over
    # the hosts, so that these are on several.
    local by=slot
    [ "$each" -le 2 ] || by=node
    [ -x "$folder/openmpi-tests/xdqr" ] || { skip "apt-get install scalapack-mpi-test"; return; }
    for program in $programs; do
        [ $SECONDS -lt $until ] || { echo "  note: $mpi, $each on each host: $program and later programs were not started in $((2 * cell)) s"; break; }
        count=$((count + 1))
        limit=${LIMIT:-300} beside "$mpi" "$mpi, $program" -wdir "$dir" "$folder/$mpi-tests/$program"
    done
    row "$((passed - good)) programs give the same results, $((failed - bad)) do not, $((before + count - passed - failed)) do not end without banyan"
}

scalapack_input || { fail "the input of ScaLAPACK's tests"; finish; }
for suite in ${SUITES:-hpcc scalapack mpi4py}; do
    for mpi in ${MPIS:-openmpi mpich}; do
        for each in ${EACH:-1 2 8}; do
            ranks=$((hosts * each))
            : >"$dir/counts"
            : >"$dir/refusals"
            "suite_$suite"
        done
    done
done
[ ${#table[@]} -eq 0 ] || printf '  %s\n' "${table[@]}"
finish
