#!/usr/bin/env bash
# Shows that the world test sees what it is for: mutations.sh BUILD COMPILE LINK OBJECTS LIBRARIES LDLIBS [NAME...]   Builds the test with each
# changed source of mutations.txt in the place of the real one, and runs scenarios until one violates an invariant with the words named
# there. COMPILE is the compiler with its flags, LINK the one that links, OBJECTS those of the test. Ends with `N passed, N failed`.
set -u
build=$(realpath "$1") compile=$2 link=$3 objects=$4 libraries=$5 others=$6
shift 6
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
work=$build/world-mutations
seeds=${SEEDS:-1-6000}
passed=0
failed=0

# make_mutant NAME FILE EDIT: the program
make_mutant() {
    local dir=$work/$1
    mkdir -p "$dir"
    sed "$3" "$root/$2" >"$dir/source.c"
    if cmp -s "$dir/source.c" "$root/$2"; then
        echo "mutations.txt, $1: '$3' changes nothing in $2"
        return 1
    fi
    (cd "$root" && $compile -Wno-error -w -c -o "$dir/source.o" "$dir/source.c") || return 1
    # An object given before the archives takes the place of the archives' own.
    (cd "$root" && $link -o "$dir/program" $objects "$dir/source.o" -Wl,--start-group $libraries -Wl,--end-group $others)
}

while IFS= read -r line; do
    name=${line%%; *} line=${line#*; }
    file=${line%%; *} line=${line#*; }
    words=${line##*; } edit=${line%; *}
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    if ! make_mutant "$name" "$file" "$edit" >"$work.log" 2>&1; then
        why="cannot be built"
    elif timeout 300 "$work/$name/program" --seeds "$seeds" --first >"$work.log" 2>&1; then
        why="no scenario of $seeds violates an invariant"
    elif ! grep -q "VIOLATION.*$words" "$work.log"; then
        why="violates something else than '$words'"
    else
        passed=$((passed + 1))
        printf '  CAUGHT %-22s %s\n' "$name" "$(grep -m1 VIOLATION "$work.log" | cut -c1-110)"
        continue
    fi
    failed=$((failed + 1))
    printf '  FAIL   %s: %s\n' "$name" "$why"
    tail -5 "$work.log"
done < <(grep -v '^#' "$here/mutations.txt")
rm -rf "$work" "$work.log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
