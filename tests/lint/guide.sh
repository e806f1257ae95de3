#!/usr/bin/env bash
# Checks the pages for newcomers against the sources (docs/walk.md, where.md, glossary.md,
# extending.md), the index of docs/decisions, and the parts of `make test` in CONTRIBUTING.md:
#   - every `path` on these pages exists;
#   - in a table, a `name` or `name()` right of a path occurs in that file, with () as the
#     definition of a function, macro or target;
#   - a walk has at most 15 stops, and its calls are found in the callers' bodies;
#   - the glossary lists all members of the X-lists that it names;
#   - the index has each decision once, under its title.
# Run in the root. Prints the number of references checked.
set -euo pipefail
pages=(docs/walk.md docs/where.md docs/glossary.md docs/extending.md)
stops_max=15
status=0
checked=0

complain() {
    echo "$1"
    status=1
}

# defines FILE NAME: FILE defines the function, macro or Makefile variable.
defines() {
    grep -qE -e "^[A-Za-z_].*[ *]$2\(([^;]*|.*\{.*)\$" -e "^[[:space:]]*#[[:space:]]*define[[:space:]]+$2\>" \
        -e "^$2\(\)" -e "^$2[[:space:]]*[:?+]?=" -e "^define $2\$" -e "^$2:" "$1"
}

# body FILE NAME: prints the lines of the function, from its first line to the closing brace.
body() {
    awk -v name="$2" '!inside && $0 ~ ("^[A-Za-z_].*[ *]" name "\\(") && !/;$/ {inside = 1}
        inside {print} inside && /^}/ {exit}' "$1"
}

# home NAME FILE...: prints the first of the files, else of the tree, that defines the function.
home() {
    local name=$1 file
    shift
    for file in "$@"; do
        if [ -f "$file" ] && defines "$file" "$name"; then
            echo "$file"
            return
        fi
    done
    grep -rlE --include='*.c' "^[A-Za-z_].*[ *]$name\([^;]*\$" offload dataplane firmware control host-driver | head -1
}

check_reference() { # PAGE:LINE FILE TOKEN
    checked=$((checked + 1))
    [ -f "$2" ] || return 0
    case "$3" in
    *'()') defines "$2" "${3%()}" || complain "$1: $2 does not define ${3%()}" ;;
    *) grep -qwF -e "$3" "$2" || complain "$1: $2 does not mention $3" ;;
    esac
}

is_path() {
    [[ $1 == */* && $1 =~ ^[A-Za-z0-9][A-Za-z0-9._+/-]*$ ]] || [ "$1" = Makefile ]
}

for page in "${pages[@]}"; do
    if [ ! -f "$page" ]; then
        complain "$page is missing"
        continue
    fi
    number=0
    while IFS= read -r line; do
        number=$((number + 1))
        file=
        [[ $line == '|'* ]] && row=1 || row=0
        while IFS= read -r token; do
            if is_path "$token"; then
                checked=$((checked + 1))
                [ -e "$token" ] || complain "$page:$number: $token does not exist"
                file=$token
            elif [ $row = 1 ] && [ -n "$file" ] && [[ $token =~ ^[A-Za-z_][A-Za-z0-9_]*(\(\))?$ ]]; then
                check_reference "$page:$number" "$file" "$token"
            fi
        done < <(grep -oE '`[^`]+`' <<<"$line" | tr -d '`')
    done <"$page"
done

# ---- walks: | stop | reached by | file | function | what happens | ----

walk() {
    local page=docs/walk.md number=0 name="" count=0 stop reached file function at from via step where last
    local -a files=() functions=()
    [ -f $page ] || return 0
    while IFS= read -r line; do
        number=$((number + 1))
        case "$line" in
        '## '*)
            name=${line#'## '}
            count=0
            files=()
            functions=()
            ;;
        '| '[0-9]*)
            IFS='|' read -r _ stop reached file function _ <<<"$line"
            file=$(tr -d ' `' <<<"$file")
            function=$(tr -d ' `()' <<<"$function")
            count=$((count + 1))
            files[count]=$file
            functions[count]=$function
            at=$page:$number
            [ "$((stop))" -eq $count ] || complain "$at: stop $stop of '$name' is the ${count}th"
            [ $count -le $stops_max ] || complain "$at: '$name' has more than $stops_max stops"
            defines "$file" "$function" 2>/dev/null || complain "$at: $file does not define $function"
            [[ $reached == ' call'* ]] || continue
            from=$((count - 1))
            [[ $reached =~ call\ ([0-9]+) ]] && from=${BASH_REMATCH[1]}
            via=
            [[ $reached =~ via\ (.*) ]] && via=$(tr -d '`(),' <<<"${BASH_REMATCH[1]}")
            where=${files[from]-}
            last=${functions[from]-}
            if [ -z "$where" ]; then
                complain "$at: there is no stop $from before"
                continue
            fi
            for step in $via "$function"; do
                checked=$((checked + 1))
                if ! body "$where" "$last" | tail -n +2 | grep -qw -e "$step"; then
                    complain "$at: $last in $where does not call $step"
                    break
                fi
                last=$step
                where=$(home "$step" "$where" "$file")
            done
            ;;
        esac
    done <$page
}
walk

# ---- glossary: | prefix | members | file | list |: names that macros assemble ----

assembled() {
    local page=docs/glossary.md number=0 prefix members file list want have
    [ -f $page ] || return 0
    while IFS= read -r line; do
        number=$((number + 1))
        [[ $line == '| `'*'_LIST` |' ]] || continue
        IFS='|' read -r _ prefix members file list _ <<<"$line"
        prefix=$(tr -d ' `' <<<"$prefix")
        file=$(tr -d ' `' <<<"$file")
        list=$(tr -d ' `' <<<"$list")
        [ -f "$file" ] || continue
        have=$(grep -oE '`[^`]+`' <<<"$members" | tr -d '`' | sort)
        want=$(awk -v list="$list" '$0 ~ ("#define " list "\\(") {inside = 1; next} inside {print} inside && !/\\$/ {exit}' "$file" |
            grep -oE '\<X\([A-Za-z0-9_]+' | sed "s/X(/$prefix/" | sort)
        checked=$((checked + $(wc -l <<<"$want")))
        [ "$have" = "$want" ] ||
            complain "$page:$number: not the names of $list in $file: $(diff <(echo "$have") <(echo "$want") | grep '^[<>]' | tr '\n' ' ')"
    done <$page
}
assembled

# ---- decisions: one row for each page, under its title ----

decisions() {
    local index=docs/decisions/README.md page base title rows successor
    for page in docs/decisions/[0-9]*.md; do
        base=${page##*/}
        checked=$((checked + 1))
        title=$(head -1 "$page")
        [[ $title == "# $((10#${base%%-*})). "* ]] || complain "$page: the title must begin with '# $((10#${base%%-*})). '"
        title=${title#*. }
        rows=$(grep -cF "]($base)" $index || true)
        [ "$rows" = 1 ] || complain "$index: names $base $rows times; once is right"
        if [ "$rows" = 1 ] && ! grep -qF "[$title]($base)" $index; then
            complain "$index: the title of $base is: $title"
        fi
        successor=$(sed -n 's/^\*\*Superseded[^*]* by \[[0-9]*\](\([^)]*\)).*/\1/p' "$page" | head -1)
        if [ -n "$successor" ]; then
            [ -f "docs/decisions/$successor" ] || complain "$page: superseded by $successor, which does not exist"
            grep -F "]($base)" $index | grep -q "superseded.* by $((10#${successor%%-*}))" ||
                complain "$index: the row of $base must say: superseded by $((10#${successor%%-*}))"
        fi
    done
    while IFS= read -r base; do
        [ -f "docs/decisions/$base" ] || complain "$index: $base does not exist"
    done < <(grep -oE '\]\([0-9][^)]*\)' $index | tr -d ']()')
}
decisions

# CONTRIBUTING.md lists the parts of `make test` in order.
if ! diff <(sed -nE 's/^(if| {4,}(else )?)? *(part|begin|with) ([a-z-]+) [a-z"].*/\4/p' tests/test.sh) \
    <(sed -nE '/^\| part \| time/,/^$/s/^\| ([a-z-]+) \| [0-9]+ \|.*/\1/p' CONTRIBUTING.md) >/dev/null; then
    complain "CONTRIBUTING.md: the table of parts does not list the parts of tests/test.sh in their order"
fi
checked=$((checked + 1))
echo "$checked references checked"
exit $status
