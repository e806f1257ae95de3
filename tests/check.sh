#!/usr/bin/env bash
# The script of `make check`, for use before each commit. Builds what changed; runs the unit tests,
# golden packets and a short simulation; then the checks of lint that need no analyser, and
# clang-format and clang-tidy for the files that differ from BASE. Prints a line for each step, and
# `N passed, N failed` at the end. It takes at most three minutes on two cores after a first build;
# `make test` runs everything.
#   check.sh MAKE [BASE]     BASE: a commit (default: the branch's upstream, else HEAD)
set -u
make=$1
cd "$(dirname "$0")/.." || exit 3
base=${2:-$(git rev-parse --abbrev-ref --symbolic-full-name '@{upstream}' 2>/dev/null || echo HEAD)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0
begin=$(date +%s)

step() { # NAME COMMAND...
    local name=$1 start
    shift
    start=$(date +%s)
    if "$@" >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        printf '  PASS   %-14s %s in %d s\n' "$name" "$(grep -xE '[0-9]+ passed, 0 failed|[0-9]+ .*checked.*' "$log" | tail -1)" $(($(date +%s) - start))
    else
        failed=$((failed + 1))
        printf '  FAIL   %-14s in %d s:\n' "$name" $(($(date +%s) - start))
        grep -nE -A8 '^ *FAIL|error:|Error [0-9]+$' "$log" | head -n 60 | cut -c -300 | sed 's/^/         | /'
        tail -n 5 "$log" | cut -c -300 | sed 's/^/         | /'
    fi
}
run() { $make --no-print-directory -j"$(nproc)" "$@"; }

mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" -- '*.c' '*.h' && git ls-files -o --exclude-standard -- '*.c' '*.h'; } | sort -u)
sources=()
for file in "${changed[@]}"; do
    case $file in *.bpf.c | firmware/baremetal/*.c | boards/*.c) ;; *.c) sources+=("$file") ;; esac
done
echo "  CHECK  ${#changed[@]} C files differ from $base"
step build run build-all build-tests
if [ "$failed" -eq 0 ]; then
    step unit run unit
    step sim run sim N=200
    step lint run lint-arrows lint-symbols lint-api lint-man lint-text lint-names lint-guide
    [ ${#changed[@]} -eq 0 ] || step format run lint-format lint_files="${changed[*]}"
    [ ${#sources[@]} -eq 0 ] || step tidy run lint-tidy lint_sources="${sources[*]}" lint_metal_sources=
fi
echo "  TIME   $(($(date +%s) - begin)) s"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
