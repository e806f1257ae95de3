#!/usr/bin/env bash
# Checks that the public interface is complete: the shared library exports what banyan.h and
# exchange.h declare,
# and each function has a docstring, a manual page (its own name in section 3, and a prototype in
# libbanyan(3)) and a use in an example that the tests build and run.
#   api.sh LIBRARY      LIBRARY: libbanyan.so.0 of the build
set -euo pipefail
library=$1
header=host-driver/include/banyan/banyan.h
headers=("$header" host-driver/include/banyan/exchange.h)
page=docs/man/libbanyan.3
examples=host-driver/examples
status=0
bad() {
    echo "$1"
    status=1
}

mapfile -t functions < <(for file in "${headers[@]}"; do "${CC:-cc}" -fpreprocessed -dD -E -P "$file" 2>/dev/null; done | grep -v '^#' | tr '\n' ' ' | grep -oE 'BANYAN_API [^;]*;' |
    grep -oE '\bbanyan_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
[ ${#functions[@]} -gt 0 ] || bad "$header: declares nothing"
while read -r name; do
    bad "$library: exports $name, which $header does not declare"
done < <(comm -13 <(printf '%s\n' "${functions[@]}") <(nm -D --defined-only -f posix "$library" | awk '$2 != "A" {print $1}' | sed 's/@.*//' | sort -u))
while read -r name; do
    bad "$library: does not export $name, which $header declares"
done < <(comm -23 <(printf '%s\n' "${functions[@]}") <(nm -D --defined-only -f posix "$library" | awk '$2 != "A" {print $1}' | sed 's/@.*//' | sort -u))

# Examples must be built (in their module.mk) and run (by their test).
read -r -a built < <(sed -n 's/^EXAMPLES := //p' $examples/module.mk)
for file in "$examples"/*.c; do
    name=$(basename "$file" .c)
    [[ " ${built[*]} " == *" $name "* ]] || bad "$file: is not among EXAMPLES of $examples/module.mk, so it is not built"
    grep -q "\"$name\"" tests/unit/host-driver/test_examples.c || bad "$file: tests/unit/host-driver/test_examples.c does not run it"
done

# A declaration follows a comment, or another declaration of the same group.
undocumented=$(awk '
    /^ *\*\/ *$/ || /\*\/ *$/ { documented = 1; next }
    /^ *$/ { if (!inside) documented = 0; next }
    /^BANYAN_API/ { if (!documented) print; inside = 1 }
    /;[^;]*$/ { inside = 0 }' "${headers[@]}")
[ -z "$undocumented" ] || bad "$header: without a docstring: $undocumented"

for name in "${functions[@]}"; do
    [ -e "docs/man/$name.3" ] || bad "docs/man/$name.3: missing; ln -s libbanyan.3 docs/man/$name.3"
    grep -qE "^\.Nm $name( ,)?$" "$page" || bad "$page: does not name $name"
    grep -qE "^\.Fo $name$" "$page" || bad "$page: has no prototype of $name"
    grep -qE "^\.Fn $name\b|^\.It $(sed 's/^banyan_//; s/_init$//' <<<"$name")$" "$page" || bad "$page: says nothing of $name"
    grep -qE "\b$name\b *\(" "$examples"/*.c || bad "$examples: no example uses $name"
done
for file in docs/man/banyan_*.3; do
    [[ " ${functions[*]} " == *" $(basename "$file" .3) "* ]] || bad "$file: $header declares no such function"
done
echo "${#functions[@]} functions checked"
exit $status
