#!/usr/bin/env bash
# Checks the manual pages with mandoc: each must have no warnings. Run in the root.
set -euo pipefail
mapfile -t pages < <(find docs/man -name '*.[1-9]' | sort)
[ ${#pages[@]} -gt 0 ] || { echo "docs/man: no pages"; exit 1; }
# For a cross-reference mandoc looks up the page in the system's path; banyan's pages are installed
# together.
status=0
out=$(mandoc -Tlint -W warning "${pages[@]}" 2>&1) || status=$?
if [ $status -ne 0 ] || [ -n "$out" ]; then
    echo "$out"
    exit 1
fi
# Every page of banyan that another page refers to must exist.
bad=0
while read -r name section page; do
    [ -e "docs/man/$name.$section" ] || { echo "$page: names $name($section), which docs/man does not hold"; bad=1; }
done < <(awk '/^\.Xr / && $2 ~ /^(lib)?banyan/ {print $2, $3, FILENAME}' "${pages[@]}" | sort -u)
echo "${#pages[@]} pages checked"
exit $bad
