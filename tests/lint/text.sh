#!/usr/bin/env bash
# Checks all text of the tree: paths contain only letters, digits and ._+/-; no source file is over
# the limit of lines; no file contains a pattern of words.txt, trailing blanks, or tabs in C; every
# file ends in a newline. Run in the root. Checks the files that git tracks, or without git all
# files outside build/.
set -euo pipefail
lines_max=700
here=tests/lint
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    mapfile -t files < <(git -c core.quotePath=false ls-files -co --exclude-standard)
else
    mapfile -t files < <(find . -type f -not -path './build/*' -not -path './.git/*' | sed 's,^\./,,')
fi
status=0
code=()
texts=()
for file in "${files[@]}"; do
    if [[ $file =~ [^A-Za-z0-9._+/-] ]]; then
        echo "$file: a path holds letters, digits and ._+/- alone"
        status=1
    fi
    [ -f "$file" ] || continue
    case "$file" in
    *.c | *.h | *.sh | *.mk | *.py | Makefile) code+=("$file") ;;&
    "$here"/words.txt | tests/fuzz/corpus/* | *.hex | *.bin | *.png) ;;
    *) texts+=("$file") ;;
    esac
done
while read -r count file; do
    [ "$file" = total ] && continue
    if [ "$count" -gt $lines_max ]; then
        echo "$file: $count lines; the limit is $lines_max: it wants a second noun"
        status=1
    fi
done < <(wc -l "${code[@]}")
mapfile -t patterns < <(grep -v -e '^#' -e '^$' $here/words.txt)
for pattern in "${patterns[@]}"; do
    if grep -nIE -e "$pattern" "${texts[@]}"; then
        echo "the lines above hold what words.txt forbids: $pattern"
        status=1
    fi
done
if grep -nIE '[[:blank:]]+$' "${code[@]}"; then
    echo "the lines above end in blanks"
    status=1
fi
for file in "${texts[@]}"; do
    if [ -s "$file" ] && [ -n "$(tail -c1 "$file" | tr -d '\n\0')" ]; then
        echo "$file: no newline at the end"
        status=1
    fi
done
echo "${#texts[@]} files checked"
exit $status
