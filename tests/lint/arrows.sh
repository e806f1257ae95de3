#!/usr/bin/env bash
# Checks the arrows of docs/architecture.md (its block ```arrows): each #include line of the tree, and each header in the .d files
# of a build. A line that begins with a blank continues the row before it.
#   arrows.sh [OBJECTS GEN]     OBJECTS = folder with the .d files, GEN = folder of generated headers; run in the root
set -euo pipefail
objects=${1:-}
gen=${2:-}
list=$(mktemp)
table=$(mktemp)
trap 'rm -f "$list" "$table"' EXIT
sed -n '/^```arrows$/,/^```$/{/^```/!p}' docs/architecture.md |
    awk '/^[^ \t]/ { if (row != "") print row; row = $0; next } /[^ \t]/ { row = row " " $0 } END { print row }' >"$table"
[ "$(grep -c . "$table")" -gt 1 ] || { echo "docs/architecture.md: no block \`\`\`arrows"; exit 1; }

# One line each:  kind <tab> including file <tab> line <tab> included
trees=()
for tree in offload dataplane firmware boards control host-driver tests; do
    if [ -d "$tree" ]; then trees+=("$tree"); fi
done
find "${trees[@]}" \( -name '*.c' -o -name '*.h' \) -print0 |
    xargs -0 grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null |
    sed -nE 's/^([^:]+):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*(["<])([^">]+)[">].*$/line\t\1\t\2\t\3\4/p' >"$list"
if [ -n "$objects" ]; then
    find "$objects" -name '*.d' -print0 | xargs -0 -r awk '
        function flush(  n, i, field) {
            n = split(rule, field, /[ \t]+/)
            if (field[1] ~ /:$/ && n > 1)
                for (i = 3; i <= n; i++)
                    if (field[i] != "")
                        print "depend\t" field[2] "\t0\t\"" field[i]
            rule = ""
        }
        { line = $0; more = sub(/\\$/, "", line); rule = rule " " line; sub(/^[ \t]+/, "", rule) }
        !more { flush() }' >>"$list"
fi

awk -F'\t' -v gen="${gen%/}/" '
    function covers(prefix, path) { return path == prefix || index(path, prefix "/") == 1 }
    function exists(path) {
        if (!(path in seen)) { seen[path] = (getline dummy < path) >= 0; close(path) }
        return seen[path]
    }
    function room_of(path,   r, best) { best = ""; for (r in may) if (covers(r, path) && length(r) > length(best)) best = r; return best }
    function system_of(path, r, best) { best = ""; for (r in sys) if (covers(r, path) && length(r) > length(best)) best = r; return best }
    function glob(name, list,   n, i, item, re) {
        n = split(list, item, " ")
        for (i = 1; i <= n; i++) {
            re = item[i]; gsub(/\./, "\\.", re); gsub(/\*/, ".*", re)
            if (name ~ "^" re "$") return 1
        }
        return 0
    }
    function finding(text) { if (!(text in told)) { told[text] = 1; print text; bad++ } }
    FNR == NR {
        sub(/#.*/, ""); n = split($0, w, /[ \t]+/)
        if (w[1] == "") next
        first = 2; if (w[1] == "system") first = 3
        text = ""; for (i = first; i <= n; i++) if (w[i] != "") text = text " " w[i]
        if (w[1] == "system") sys[w[2]] = text; else may[w[1]] = text
        next
    }
    {
        file = $2; at = file ($1 == "line" ? ":" $3 : ""); quote = substr($4, 1, 1); to = substr($4, 2)
        checked++
        if (gen != "/" && index(file, gen) == 1) next
        if (gen != "/" && index(to, gen) == 1) to = substr(to, length(gen) + 1)
        if ($1 == "depend" && (to ~ /^\// || !exists(file) || (to !~ /^proto\// && !exists(to)))) next
        room = room_of(file)
        if (room == "") { finding(at ": its folder has no row among the arrows of docs/architecture.md"); next }
        if ($1 == "line" && exists("host-driver/include/" to)) to = "host-driver/include/" to
        else if ($1 == "line" && quote == "<") {
            s = system_of(file)
            if (s != "" && !glob(to, sys[s])) finding(at ": <" to "> is not among the system headers of " s " (" substr(sys[s], 2) ")")
            next
        } else if ($1 == "line" && to !~ /^proto\// && !exists(to)) {
            finding(at ": \"" to "\": write includes from the root"); next
        }
        if (covers(room, to)) next
        n = split(may[room], target, " "); ok = 0
        for (i = 1; i <= n; i++) if (covers(target[i], to)) ok = 1
        if (!ok) finding(at ": " room " must not include " to ($1 == "depend" ? " (through other headers)" : ""))
    }
    END {
        printf "%d includes checked, %d findings\n", checked, bad
        exit bad > 0
    }' "$table" "$list"
