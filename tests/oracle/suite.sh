#!/usr/bin/env bash
# Makes every fabric of the hard suite and checks what its head promises: suite.sh BANYAN SUITE.   About 1,000 compute nodes, every
# node balanced, links both ways, no name twice. Closes with `N passed, N failed`.
set -u
banyan=$1
suite=$2
passed=0
failed=0
seen=' '
work=$(mktemp)
trap 'rm -f "$work"' EXIT
while read -r name arguments; do
    case "$name" in '' | '#'*) continue ;; esac
    fault=
    case "$seen" in *" $name "*) fault='the name is there twice' ;; esac
    seen="$seen$name "
    # shellcheck disable=SC2086
    if ! "$banyan" topo $arguments >"$work"; then
        fault='banyan topo refuses it'
    else
        compute=$(grep -c '"kind": "compute"' "$work")
        nodes=$(grep -c '"kind"' "$work")
        links=$(grep -c '"between"' "$work")
        { [ "$compute" -ge 900 ] && [ "$compute" -le 1100 ]; } || fault="$compute compute nodes; about 1,000 are promised"
        [ "$nodes" -le 4096 ] || fault="$nodes nodes; the planner takes 4,096"
        if grep -q '"from"' "$work"; then fault='a link goes one way'; fi
    fi
    if [ -z "$fault" ]; then
        passed=$((passed + 1))
        printf '  PASS   %-20s %5d GPUs %5d switches %6d links\n' "$name" "$compute" $((nodes - compute)) "$links"
    else
        failed=$((failed + 1))
        printf '  FAIL   %-20s %s (banyan topo %s)\n' "$name" "$fault" "$arguments"
    fi
done <"$suite"
if [ "$passed" -lt 12 ]; then
    echo "  FAIL   the suite has fewer than 12 fabrics"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
