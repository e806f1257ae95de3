#!/usr/bin/env bash
# libbanyan from C++, Fortran and Python: the package's unit tests, and the example of each language
# on real switches and between hosts. Requires the compilers and numpy of `tests/deps.sh mpi`.
#   lab-languages.sh BUILD
. "$(dirname "$0")/lab-common.sh" lab-languages "$@"
need_root
python=/usr/bin/python3
for tool in g++ gfortran mpirun.openmpi $python; do
    command -v $tool >/dev/null || { echo "lab-languages: skipped: $tool is missing: make lab-languages" >&2; exit 77; }
done
"$python" -c 'import numpy' 2>/dev/null || { echo "lab-languages: skipped: numpy is missing: make lab-languages" >&2; exit 77; }
export PYTHONPATH=$PWD/host-driver/python LIBBANYAN=$build/lib/libbanyan.so.0 PYTHONDONTWRITEBYTECODE=1
source=host-driver
link=(-L"$build/lib" -lbanyan "-Wl,-rpath,$build/lib")

"$python" tests/unit/host-driver/python/test_banyan.py "$build" >"$dir/unit.out" 2>&1
unit=$?
read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$dir/unit.out")
passed=$((passed + ${good:-0}))
if [ $unit -ne 0 ]; then
    grep -v '^banyan: job' "$dir/unit.out" >&2
    fail "the unit tests of the Python package: ${bad:-all} failed"
else
    pass "the unit tests of the Python package ($good)"
fi

for compiler in "g++ -std=c++17" "g++ -std=c++20 -O2" "clang++ -std=c++17"; do
    # shellcheck disable=SC2086 # words are wanted
    check "the C++ header compiles without a warning: $compiler" $compiler -Wall -Wextra -Wshadow -Wconversion -Werror \
        -I$source/include -o "$dir/average-c++" $source/examples/average.cpp "${link[@]}"
done
check "the Fortran module is Fortran 2018" gfortran -std=f2018 -Wall -Wextra -Werror -J"$dir" -o "$dir/average-fortran" \
    $source/fortran/banyan.f90 $source/fortran/average.f90 "${link[@]}"
cat >"$dir/unsupported.cpp" <<'END'
#include <banyan/banyan.hpp>
int main()
{
    bool value = true;
    banyan::comm().allreduce(&value, &value, 1);
}
END
refused "C++ refuses an unsupported element type when it compiles" 1 "float and double are supported" \
    g++ -std=c++17 -I$source/include -c -o /dev/null "$dir/unsupported.cpp"
fortran_constants() { # the values of banyan.h, and their number
    cat >"$dir/constants.f90" <<'END'
program constants
    use banyan
    print "(a, 1x, i0)", "SUM", BANYAN_SUM, "BXOR", BANYAN_BXOR, "I8", BANYAN_I8, "BF16", BANYAN_BF16, "F64", BANYAN_F64, &
        "EXACT", BANYAN_EXACT, "EINVAL", BANYAN_EINVAL, "ETIMEDOUT", BANYAN_ETIMEDOUT, "EUNSUPPORTED", BANYAN_EUNSUPPORTED, &
        "ERANGE", BANYAN_ERANGE, "OK", BANYAN_OK
end program
END
    gfortran -I"$dir" -o "$dir/constants" "$dir/constants.f90" "$dir/banyan.o" "${link[@]}" && "$dir/constants" >"$dir/values" || return 1
    [ "$(wc -l <"$dir/values")" -eq 11 ] || return 1
    while read -r name value; do grep -qE "BANYAN_$name = $value\b" $source/include/banyan/banyan.h || return 1; done <"$dir/values"
}
gfortran -J"$dir" -c -o "$dir/banyan.o" $source/fortran/banyan.f90 2>/dev/null
check "the constants of Fortran are those of the header" fortran_constants

"$banyan" topo leafspine >"$dir/fabric.json"
on_switches() { # WHAT PATTERN COMMAND...
    local what=$1 pattern=$2
    shift 2
    attended "$banyan" lab run "$dir/fabric.json" -c allreduce,broadcast -- "$@" >"$dir/run.out" 2>&1
    if [ $? -eq 0 ] && [ "$(grep -cE "$pattern" "$dir/run.out")" -eq 4 ] && grep -q 'offloaded' "$dir/run.out"; then
        pass "$what"
    else
        fail "$what" "$dir/run.out"
    fi
}
on_switches "C++ on real switches" '^host[0-3]: rank [0-3] of 4 over [a-z]+: average 1.5$' "$dir/average-c++"
on_switches "Fortran on real switches" '^host[0-3]: rank [0-3] of 4: average 1.5$' "$dir/average-fortran"
on_switches "Python on real switches" '^host[0-3]: rank [0-3] of 4 over [a-z]+: average 1.5, seed 42$' \
    $python $source/python/examples/average.py
attended "$banyan" lab run "$dir/fabric.json" -c allreduce -- sh -c 'echo "here: $BANYAN_NODE"; [ "$BANYAN_NODE" != host2 ]' >"$dir/run.out" 2>&1
status=$?
check "lab run reports the host on which a program fails" test $status -eq 3
check "and shows the output of the others" grep -q '^host1: here: host1$' "$dir/run.out"
check "and names the host" grep -q 'host host2 (exit status 1): sh failed' "$dir/run.out"
meets() { grep -q "^host3: 3 4 100.64.0.1 29501 100.64.0.4/10$" "$dir/run.out"; }
# shellcheck disable=SC2016 # the shell of the host expands it
attended "$banyan" lab run "$dir/fabric.json" -c allreduce -- sh -c 'own=$(ip -4 -o addr show out0 | tr -s " " | cut -d " " -f 4); echo $RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $own' >"$dir/run.out" 2>&1
check "lab run joins the hosts by a second network, and tells the ranks where to meet" meets
refused "lab run refuses a program with --json" 2 "--json and a program ('true') cannot be combined" \
    "$banyan" lab run "$dir/fabric.json" --json -- true
refused "lab up refuses a program" 2 "up and a program" "$banyan" lab up "$dir/fabric.json" -- true

# Between hosts, in the network namespace of this script: ranks find each other by hand, and by PMIx.
by_hand() {
    local rank status=0 pids=()
    for rank in 0 1 2; do
        BANYAN_OFFLOAD=off RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 \
            $python $source/python/examples/average.py >"$dir/hand.$rank" 2>&1 &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    [ $status -eq 0 ] && grep -q 'rank 2 of 3 over host: average 1.0, seed 42' "$dir/hand.2"
}
check "Python between hosts, started by hand" by_hand
exchanges() { # PORT COMMAND...
    local rank status=0 pids=() port=$1
    shift
    for rank in 0 1 2; do
        BANYAN_OFFLOAD=off RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" >"$dir/exchange.$rank" 2>&1 &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || status=1; done
    [ $status -eq 0 ] && [ "$(cat "$dir"/exchange.[0-2] | grep -cx right)" -eq 3 ]
}
check "C++ all-to-all, scatter and gather compile without a warning" g++ -std=c++17 -Wall -Wextra -Wshadow -Wconversion -Werror \
    -I$source/include -o "$dir/exchanges-c++" "$(dirname "$0")/languages/exchanges.cpp" "${link[@]}"
check "and run between hosts" exchanges 29520 "$dir/exchanges-c++"
check "Fortran all-to-all, scatter and gather compile" gfortran -I"$dir" -o "$dir/exchanges-fortran" \
    "$(dirname "$0")/languages/exchanges.f90" "$dir/banyan.o" "${link[@]}"
check "and run between hosts" exchanges 29521 "$dir/exchanges-fortran"
by_mpirun() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 BANYAN_OFFLOAD=off timeout 60 \
        mpirun.openmpi --oversubscribe -n 3 $python $source/python/examples/average.py >"$dir/mpi.out" 2>&1 </dev/null &&
        [ "$(grep -o 'of 3 over host: average 1.0, seed 42' "$dir/mpi.out" | wc -l)" -eq 3 ]
}
check "Python between hosts, started by mpirun" by_mpirun
refused "a rank that does not come is named by the exception" 1 \
    "TimedOutError: rank 0 waits at 127.0.0.1 port 29519: of 2 ranks these have not joined: 1" \
    env BANYAN_OFFLOAD=off BANYAN_TIMEOUT=1 RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29519 \
    $python -c 'import banyan; banyan.init()'
finish
