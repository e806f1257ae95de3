#!/usr/bin/env bash
# Shows that a test that fails once counts as failed, even if TEST_REPEAT repeats it and it passes.
# Runs run.sh and lab/all.sh on a script that fails only the first time. The last line is `N passed,
# N failed`.
set -u
cd "$(dirname "$0")" || exit 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0
cat >"$scratch/first.sh" <<'ONE'
#!/bin/sh
[ -e "$0.ran" ] && { echo "1 passed, 0 failed"; exit 0; }
: >"$0.ran"
echo "  FAIL   the first time"
echo "0 passed, 1 failed"
exit 1
ONE
printf '#!/bin/sh\necho "2 passed, 0 failed"\n' >"$scratch/good.sh"
chmod +x "$scratch"/*.sh
ln -s good.sh "$scratch/good"
ln -s first.sh "$scratch/first"
cp lab/all.sh "$scratch/all"

# check "name" STATUS LAST-LINE REPEATED-LINE COMMAND...     REPEATED-LINE: the whole line, or empty
# for none
check() {
    local name=$1 status=$2 last=$3 repeated=$4 out result=0
    shift 4
    rm -f "$scratch"/*.ran
    out=$("$@" 2>&1) || result=$?
    if [ $result -eq "$status" ] && [ "$(tail -n 1 <<<"$out")" = "$last" ] && [ "$(grep -E '^[0-9]+ repeated' <<<"$out")" = "$repeated" ]; then
        passed=$((passed + 1))
        echo "  PASS   $name"
    else
        failed=$((failed + 1))
        printf '  FAIL   %s (status %s)\n%s\n' "$name" $result "$out"
    fi
}
check "a program that fails once is failed" 1 "1 passed, 1 failed" "" ./run.sh "$scratch" good first
check "and also when its repeat passes" 1 "1 passed, 1 failed" "1 repeated: first" env TEST_REPEAT=1 ./run.sh "$scratch" good first
check "a script of the lab that fails once is failed" 1 "2 passed, 1 failed" "" "$scratch/all" build good first
check "and also when its repeat passes, in the lab" 1 "2 passed, 1 failed" "1 repeated: first" env TEST_REPEAT=1 "$scratch/all" build good first
check "without a failure nothing is repeated" 0 "2 passed, 0 failed" "" env TEST_REPEAT=1 "$scratch/all" build good
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
