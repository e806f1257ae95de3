#!/usr/bin/env bash
# Checks names and places: names.sh [OBJECTS], run in the root.
#   - a struct, union or enum tag is defined once in the tree;
#   - an extern function or object is defined once outside tests (OBJECTS: the folder of the build's
#     objects);
#   - the top of the tree has only the folders and files of $top;
#   - a banner is one line, /* ---- words ---- */;
#   - lines of documents have at most $columns columns, except tables, pictures and output of
#     programs;
#   - lines of comments that stand alone have at most $columns columns;
#   - offsets and flags of packets are defined in offload/wire only;
#   - a table of functions (struct by_*_ops) sets every member.
set -euo pipefail
objects=${1:-}
columns=100
top='Makefile firmware dataplane control offload host-driver tests boards docs debian README.md CONTRIBUTING.md LICENSE'
# Defined more than once by design: a program's main; the table of OpenSSL's functions, to which
# programs link and which libbanyan loads.
externs_twice='main by_openssl'
status=0
bad() { echo "$*"; status=1; }
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files -co --exclude-standard)
else
    mapfile -t files < <(find . -type f -not -path './build/*' -not -path './.git/*' | sed 's,^\./,,')
fi

code=()
texts=()
for file in "${files[@]}"; do
    [ -f "$file" ] || continue
    case "$file" in
    *.c | *.h) code+=("$file") ;;
    *.md) texts+=("$file") ;;
    esac
done

# Tags. Comments are blanked first, so that only code counts.
twice=$(perl -0777 -ne '
    s{/\*.*?\*/}{(my $c = $&) =~ tr/\n//cd; $c}gse;
    while (/\b(struct|union|enum)\s+(\w+)\s*\{/g) { print "$2 $ARGV:", 1 + substr($_, 0, $-[0]) =~ tr/\n//, "\n" }' "${code[@]}" |
    sort | awk '{ n[$1]++; at[$1] = at[$1] " " $2 } END { for (tag in n) if (n[tag] > 1) print tag ":" at[tag] }' | sort)
[ -z "$twice" ] || bad "tags that are defined more than once; put the room or the file into the name:"$'\n'"$twice"

# Extern names.
if [ -n "$objects" ]; then
    # -A prints OBJECT:VALUE TYPE NAME; T, D, B and R are extern definitions.
    # Skips objects that are left over from a source that has moved.
    twice=$(find "$objects" -name '*.o' -not -path '*/tests/*' | while read -r object; do
        source=${object#"$objects/"}
        [ ! -f "${source%.o}.c" ] || echo "$object"
    done | xargs -r nm -A --defined-only 2>/dev/null |
        awk -v known="$externs_twice" '
            BEGIN { n = split(known, k, " "); for (i = 1; i <= n; i++) fine[k[i]] = 1 }
            $(NF - 1) ~ /^[TDBR]$/ && !($NF in fine) { o = $1; sub(/:.*/, "", o); sub(/\.o$/, ".c", o); sub(/.*\/obj\//, "", o); seen[$NF] = seen[$NF] " " o; count[$NF]++ }
            END { for (name in count) if (count[name] > 1) print name ":" seen[name] }' | sort)
    [ -z "$twice" ] || bad "extern names that are defined more than once:"$'\n'"$twice"
fi

while read -r entry; do
    case " $top " in
    *" $entry "*) ;;
    *) case "$entry" in .*) ;; *) bad "$entry: not among what stands at the top of the tree ($top)" ;; esac ;;
    esac
done < <(printf '%s\n' "${files[@]}" | cut -d/ -f1 | sort -u)

broken=$(grep -nE '^ *(/\*|\*) *.*-{8,}' "${code[@]}" || true)
[ -z "$broken" ] || bad "banners have one line, /* ---- words ---- */:"$'\n'"$broken"

wide=$(awk -v max=$columns '
    FNR == 1 { fence = 0 }
    /^ *```/ { fence = !fence; next }
    fence || /^ *\|/ || /^    / || /^!\[/ || /^<!--/ { next }
    # A line of one word (an address) cannot be broken.
    length($0) > max && $0 ~ /[^ ] +[^ ]/ { print FILENAME ":" FNR ": " length($0) " columns" }' "${texts[@]}")
[ -z "$wide" ] || bad "lines of documents with more than $columns columns:"$'\n'"$wide"

wide=$(awk -v max=$columns '
    FNR == 1 { inside = 0 }
    { text = $0; sub(/^ */, "", text) }
    (inside || text ~ /^\/[*\/]/) && length($0) > max { print FILENAME ":" FNR ": " length($0) " columns" }
    inside || text ~ /^\/[*]/ { inside = text !~ /[*]\// }' "${code[@]}")
[ -z "$wide" ] || bad "lines of comments with more than $columns columns:"$'\n'"$wide"

# Tables of functions: an initializer with designators names every member. The compiler checks
# initializers without designators.
unset_members=$(perl -0777 -ne '
    s{/\*.*?\*/}{(my $c = $&) =~ tr/\n//cd; $c}gse;
    while (/struct (by_\w+_ops) \{(.*?)\n\};/gs) { my ($tag, $body) = ($1, $2); push @{$member{$tag}}, $1 while $body =~ /\(\*(\w+)\)\(/g }
    while (/const struct (by_\w+_ops) (\w+) = \{(.*?)\};/gs) {
        my ($tag, $name, $body, $line) = ($1, $2, $3, 1 + substr($_, 0, $-[0]) =~ tr/\n//);
        push @tables, [$tag, $name, $body, "$ARGV:$line"] if $body =~ /\.\w+ =/ }
    END { for my $t (@tables) { my ($tag, $name, $body, $at) = @$t;
        for (@{$member{$tag}}) { print "$at: $name lacks .$_ of struct $tag\n" unless $body =~ /\.$_ =/ } } }' "${code[@]}")
[ -z "$unset_members" ] || bad "tables of functions that lack a member:"$'\n'"$unset_members"

# The names of offsets and flags in offload/wire, as another file might define them: AT_TREE,
# TREE_AT, FLAG_KEYED.
fields=$(grep -ohE 'BY_(HEADER|FRAME)_AT_[A-Z_]+|BY_FLAG_[A-Z]+' offload/wire/wire.h offload/wire/frame.h |
    sed -E 's/BY_(HEADER|FRAME)_AT_(.*)/AT_\2|\2_AT/; s/BY_//' | sort -u | paste -sd'|')
twice=$(printf '%s\n' "${code[@]}" | grep -vE '^(offload/wire|tests)/' |
    xargs grep -nE "^(# *define +| *)($fields)( += *| +)(0x)?[0-9]" || true)
[ -z "$twice" ] || bad "offsets and flags of the wire are defined in offload/wire/wire.h and frame.h only:"$'\n'"$twice"

echo "${#files[@]} files checked"
exit $status
