#!/usr/bin/env bash
# Reports the sizes of an image from the linker's map: size.sh MAP BOARD_JSON CROSS. Prints code,
# constants, data and zeroed data (bytes) by room, the sums, and the board's limits (code_bytes_max
# and so on in its board.json). If a limit is exceeded, deletes the image and exits with 1.
set -euo pipefail
map=$1
json=$2
limit() { sed -n "s/^ *\"$1_bytes_max\": *\([0-9]*\),\{0,1\}$/\1/p" "$json"; }
awk -v code_max="$(limit code)" -v const_max="$(limit const)" -v data_max="$(limit data)" -v zero_max="$(limit zero)" -v json="$json" '
    function room(path) {
        if (path ~ /libprotobuf-nanopb/) return "nanopb"
        if (path ~ /libgcc/) return "compiler"
        sub(/^.*\/obj\//, "", path)
        if (path ~ /^gen\//) return "messages"
        sub(/\/[^\/]*$/, "", path)
        return path
    }
    function number(hex,   i, n) {
        n = 0
        hex = tolower(substr(hex, 3))
        for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
        return n
    }
    /^Linker script and memory map/ { begun = 1 }
    !begun { next }
    # " .text.name  0xADDRESS  0xSIZE  FILE", or the name on a line of its own.
    /^ \.[a-zA-Z_]/ { name = $1; if (NF == 1) next }
    /^ +0x/ && NF == 3 || /^ \.[a-zA-Z_]/ && NF == 4 {
        bytes = number($(NF - 1)); address = number($(NF - 2)); file = $NF
        if (bytes == 0 || address == 0 || file !~ /\.(o|a)(\(.*\))?$/) next
        kind = name ~ /^\.text/ ? "code" : name ~ /^\.(rodata|data\.rel\.ro)/ ? "const" : name ~ /^\.data/ ? "data" : name ~ /^(\.bss|COMMON)/ ? "zero" : ""
        if (kind == "") next
        size[room(file), kind] += bytes; all[kind] += bytes; rooms[room(file)] = 1
    }
    function row(name, a, b, c, d) { printf "  %-24s %8s %8s %8s %8s\n", name, a, b, c, d }
    function judge(kind, max) {
        if (max != "" && all[kind] > max) { printf "size: %d bytes of %s; %s allows %d: make it smaller, or raise %s_bytes_max there\n", all[kind], kind, json, max, kind; bad = 1 }
    }
    END {
        row("room", "code", "const", "data", "zeroed")
        count = 0
        for (r in rooms) list[++count] = r
        for (i = 1; i <= count; i++) for (j = i + 1; j <= count; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
        for (i = 1; i <= count; i++) { r = list[i]; row(r, size[r, "code"] + 0, size[r, "const"] + 0, size[r, "data"] + 0, size[r, "zero"] + 0) }
        row("sum", all["code"], all["const"], all["data"] + 0, all["zero"] + 0)
        row("limit", code_max, const_max, data_max, zero_max)
        judge("code", code_max); judge("const", const_max); judge("data", data_max); judge("zero", zero_max)
        if (all["code"] == 0) { print "size: the map contains no code"; bad = 1 }
        exit bad
    }' "$map" || { rm -f "${map%.map}.elf"; exit 1; }
