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
for compiler in gcc clang; do
    for level in 1 2 3; do
        variant=once-$compiler-O$level
        program=$out/$variant/tests/reduce-once
        log=$out/$variant.log
        mkdir -p "$out"
        if $make --no-print-directory -j2 O="$out" VARIANT="$variant" BOARD=lab-veth \
            CC=$compiler CFLAGS="-O$level -g0" "$program" >"$log" 2>&1 &&
            timeout 120 "$program" >>"$log" 2>&1; then
            passed=$((passed + 1))
            echo "  PASS   $compiler -O$level"
        else
            failed=$((failed + 1))
            echo "  FAIL   $compiler -O$level"
            tail -n 20 "$log" | sed 's/^/         | /'
        fi
    done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
