#!/usr/bin/env bash
# The stepping test of the kernels, built by gcc and by clang at -O1, -O2 and -O3.
#   once.sh MAKE BUILD     BUILD: folder of builds; these are BUILD/once-COMPILER-LEVEL
# It tests only the instruction sets of this processor. The last line is `N passed, N failed`.
set -u
make=$1
out=$2
cd "$(dirname "$0")/.." || exit 3
passed=0
failed=0
mkdir -p "$out"

# step COMPILER LEVEL: builds the test and runs it.
step() {
    local variant=once-$1-O$2
    $make --no-print-directory O="$out" VARIANT="$variant" BOARD=lab-veth CC="$1" CFLAGS="-O$2 -g0" \
        "$out/$variant/tests/reduce-once" && timeout 240 "$out/$variant/tests/reduce-once"
}

for level in 1 2 3; do # one processor for each compiler, because the test is one thread
    declare -A pid=()
    for compiler in gcc clang; do
        step $compiler $level >"$out/once-$compiler-O$level.log" 2>&1 &
        pid[$compiler]=$!
    done
    for compiler in gcc clang; do
        if wait "${pid[$compiler]}"; then
            passed=$((passed + 1))
            echo "  PASS   $compiler -O$level"
        else
            failed=$((failed + 1))
            echo "  FAIL   $compiler -O$level"
            tail -n 20 "$out/once-$compiler-O$level.log" | sed 's/^/         | /'
        fi
    done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
