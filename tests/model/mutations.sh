#!/usr/bin/env bash
# Shows that the model checker sees what it is for: mutations.sh BUILD COMPILE LINK OBJECTS [NAME...]   For each mutation of mutations.txt it
# builds the checker with the mutated sources in the place of the real ones and runs the configuration named there, which
# must break the property named there. Rules that only save time break none: for these a unit test is named instead, and the words of one of
# its cases; its objects are in OBJECTS_test_..., and MODEL_WRAP has the checker's own options of the linker. COMPILE is the compiler with the flags of offload/, LINK the one that links, OBJECTS those of
# the checker; BUILD holds liboffload.a. With --apply before the names it also looks whether each mutation still applies. Closes with `N passed, N failed`.
set -u
build=$(realpath "$1")
compile=$2
link=$3
checker=$4
shift 4
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
work=$build/mutations
passed=0
failed=0

# fields NAME: the lines of one mutation, without blanks around the fields
fields() { sed -n "s/^$1; *//p" "$here/mutations.txt"; }

# mutate NAME DIR: the mutated tree; the sources to compile are in `sources`
mutate() {
    local name=$1 dir=$2 file edit rest
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -r "$root/offload" "$dir/"
    sources=()
    while IFS= read -r rest; do
        file=${rest%%; *}
        rest=${rest#*; }
        edit=${rest%; *; *}
        sed -i "$edit" "$dir/offload/$file"
        if cmp -s "$dir/offload/$file" "$root/offload/$file"; then
            echo "mutations.txt, $name: '$edit' changes nothing in offload/$file"
            return 1
        fi
        case $file in
        *.h) sources+=("$dir/offload/${file%/*}"/*.c) ;;
        *) sources+=("$dir/offload/$file") ;;
        esac
    done < <(fields "$name")
}

# make_mutant NAME CATCHER: the mutated tree and the program
make_mutant() {
    local dir=$work/$1 file sources objects=() own=$checker worlds=() libraries=($MODEL_WRAP)
    mutate "$1" "$dir" || return 1
    while IFS= read -r file; do
        objects+=("${file%.c}.o")
        (cd "$dir" && $compile -Wno-error -w -c -o "${file%.c}.o" "${file#"$dir/"}") || return 1
    done < <(printf '%s\n' "${sources[@]}" | sort -u)
    if [[ $2 == test_* || $2 == unit-* ]]; then
        own=OBJECTS_${2//-/_}
        own=${!own}
        libraries=(-lcmocka)
        [[ $2 != test_sim_* ]] || worlds=("$build/lib/libworld.a")
    fi
    $link -o "$dir/program" $own "${objects[@]}" "${worlds[@]}" "$build/lib/liboffload.a" "${libraries[@]}"
}

mkdir -p "$work"
all=$(sed -n 's/^\([a-z-]*\); .*/\1/p' "$here/mutations.txt" | uniq)
[ $# -gt 0 ] || set -- $all
if [ "$1" = --apply ]; then # whether all of them still change what they are to change, and no more
    shift
    for name in $all; do
        if mutate "$name" "$work/apply"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    rm -rf "$work/apply"
fi
for name in "$@"; do
    line=$(fields "$name" | head -1)
    property=${line##*; }
    line=${line%; *}
    config=${line##*; }
    arguments=("$config")
    pattern="=> .*$property"
    [[ $config != test_* && $config != unit-* ]] || { arguments=() pattern="FAILED .*$property"; }
    if ! make_mutant "$name" "$config" >"$work/$name.log" 2>&1; then
        why="cannot be built"
    elif timeout 120 "$work/$name/program" "${arguments[@]}" >"$work/$name.log" 2>&1; then
        why="$config does not catch it"
    elif ! grep -q "$pattern" "$work/$name.log"; then
        why="$config breaks something else than '$property'"
    else
        passed=$((passed + 1))
        printf '  CAUGHT %-22s by %-22s %s\n' "$name" "$config" \
            "$(sed -n -e 's/^ *=> //p' -e 's/.*FAILED *\] *//p' "$work/$name.log" | grep -m1 "$property")"
        rm -rf "${work:?}/$name"
        continue
    fi
    failed=$((failed + 1))
    printf '  FAIL   %s: %s\n' "$name" "$why"
    tail -40 "$work/$name.log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
