#!/usr/bin/env bash
# Compares the output of commands in the pages (README.md, docs/*.md) with what the commands print
# now.
#   documents.sh [BUILD] [PAGE...]     BUILD: folder with bin/ (default build/release). Exit 0: all
#                                      passed.
# Every transcript is run. Every table with figures is compared or has a mark with the reason why
# not; documents.pl describes the marks.
set -u
cd "$(dirname "$0")/../.." || exit 1
pages=("${@:2}")
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh documents "${1:-build/release}"
[ ${#pages[@]} -gt 0 ] || pages=(README.md docs/*.md)
# planted WHAT TEXT: reads a page with a fault from standard input; passes if documents.pl reports
# TEXT.
planted() {
    local what=$1 text=$2
    mkdir "$dir/planted"
    cat >"$dir/planted.md"
    perl tests/lab/documents.pl "$build" "$dir/planted" "$dir/planted.md" >"$dir/check.out" 2>&1
    if [ $? -eq 1 ] && grep -qF -- "$text" "$dir/check.out"; then pass "$what"; else fail "$what" "$dir/check.out"; fi
    rm -rf "$dir/planted"
}
planted "a changed figure of a transcript is seen" "the page: OPTIMAL 41 GB/s" <<<"$(sed 's,OPTIMAL 40 GB/s,OPTIMAL 41 GB/s,' README.md)"
planted "so is a line that is missing there" "printed: 1/x*" <<'PAGE'
    $ banyan topo ring --hosts 3 >ring.json
    $ banyan plan ring.json -c allgather
    allgather on ring-3: 3 compute nodes, 0 switches
      bound       30 GB/s, no schedule can be faster
      achieved    30 GB/s, 100 % of it: optimal
PAGE
planted "a changed figure of a row" "star: the page has 40/8" <<'PAGE'
<!-- row star: banyan topo star --hosts 8 --capable none | banyan plan - -c allreduce -->
| fabric | rate |
|---|---|
| star | 40/8 |
PAGE
planted "a changed cell of a table" "b: the page: 3; printed: 2" <<'PAGE'
<!-- table 1-2: printf "| a | n |\n|---|---|\n| b | 2 |\n" -->
| a | n |
|---|---|
| b | 3 |
PAGE
planted "a row without a mark" "row 'ring' has no mark" <<'PAGE'
<!-- row star: banyan topo star --hosts 8 --capable none | banyan plan - -c allreduce -->
| fabric | rate |
|---|---|
| star | 40/7 |
| ring | 40/7 |
PAGE
planted "a table without a mark" "without a mark" <<'PAGE'
| fabric | rate |
|---|---|
| star | 40/7 |
PAGE
planted "a command that fails" "exit status 2" <<'PAGE'
    $ banyan plan nothing.json -c allreduce
PAGE
attended perl tests/lab/documents.pl "$build" "$dir" "${pages[@]}"
read -r good bad <"$dir/counts"
passed=$((passed + good))
failed=$((failed + bad))
finish
