#!/usr/bin/env bash
# What the pure core costs where memory is counted: code by room, the memory of a small node, the deepest stack, and no symbol of a C library.
# Exit 1 when a limit below is broken, or data that is written are found. size.sh MAKE BUILD     BUILD: what `make` built, for comparison
# Neighbours: stack.awk walks the call graph that the compiler writes; ram.c asks the core itself how much memory it wants.
set -u
make=$1
release=$2
out=$(dirname "$release")
here=$(dirname "$0")
cd "$here/../.." || exit 3

# Limits in bytes. Code and stack are those of 32-bit builds for size; RAM is that of 64-bit ones, whose pointers are wider.
node_code_max=79872  # what a node links: engine, frames, tables read and checked; all operators and types
ram_max=32768        # a node: one entry, window 4, chunks of 1024 bytes
stack_max=2048       # deepest chain of calls from any function that a shell calls

# A build without libraries, for size, with the compiler's notes on stack and calls: NAME, compiler, architecture.
build() {
    local name=$1 cc=$2 arch=$3
    $make --no-print-directory -j2 O="$out" VARIANT="size-$name" CC="$cc" ARCH="$arch" BOARD=lab-veth PICFLAG= \
        CCACHE_DISABLE=1 CFLAGS="-Os -g0 -fno-pie -ffunction-sections -fdata-sections -fstack-usage -fcallgraph-info=su" "$out/size-$name/lib/liboffload.a" >"$out/size-$name.log" 2>&1 ||
        { cat "$out/size-$name.log"; exit 1; }
}
status=0
broken() {
    echo "LIMIT: $*"
    status=1
}

# Code, const data and written data of each room of the build $1, in columns.
rooms() {
    local room
    for room in base wire reduce table engine shell endpoint; do
        size -A "$1"/obj/offload/$room/*.o | awk -v room=offload/$room \
            '/^\.text/ {code += $2} /^\.(rodata|data\.rel\.ro)/ {fixed += $2} /^\.(data|bss|tdata|tbss)/ && !/rel/ {written += $2}
             END {printf "%s %d %d %d\n", room, code, fixed, written}'
    done
}

# Code and const data of what a node links from the library of the build $1, compiler $2: all that a shell calls, and what these call. Images are
# written, and keys put into them, by controllers; frames between hosts and a controller are theirs.
linked() {
    local roots root options=()
    roots=$(grep -ohE '\bby_(engine|frame|arp|bank|batch)_[a-z_]+\(' offload/engine/engine.h offload/wire/frame.h offload/shell/batch.h | tr -d '(' | sort -u)
    for root in $roots by_image_hash by_image_check by_image_port by_isa_best by_isa_name by_error_text by_error_name; do options+=("-Wl,-u,$root"); done
    # shellcheck disable=SC2086
    $2 -r -nostdlib -Wl,--gc-sections "${options[@]}" -Wl,--whole-archive "$1/lib/liboffload.a" -o "$1/node.o" || exit 1
    size -A "$1/node.o" | awk '/^\.(text|rodata|data\.rel\.ro)/ {sum += $2} END {print sum}'
}

# Symbols that the rooms $2... of the build $1 want from outside, but for what a compiler calls in its own library: 64-bit arithmetic on 32
# bits, floats without a unit for them.
foreign() {
    local dir=$1/obj/offload room files=()
    shift
    for room in "$@"; do files+=("$dir/$room"/*.o); done
    nm -u "${files[@]}" | awk '$1 == "U" {print $2}' | sort -u |
        comm -23 - <(nm --defined-only -g "${files[@]}" | awk 'NF == 3 {print $3}' | sort -u) |
        grep -Ev '^__(u?(div|mod|divmod)di[34]|(ash|lsh)[lr]di3|popcount[sd]i2|c[lt]z[sd]i2|bswap[sd]i2|aeabi_.*|(fix|float)[a-z]*|(add|sub|mul|div|eq|ne|lt|le|gt|ge|unord)[sd]f[23]|(extend|trunc)[sd]f[sd]f2)$' |
        tr '\n' ' '
}

declare -A compiler=([i386]='gcc -m32')
targets=(i386)
build i386 "gcc -m32" i386
for pair in "aarch64 aarch64-linux-gnu-gcc aarch64" "cortex-m4 arm-none-eabi-gcc arm"; do
    read -r name cc arch <<<"$pair"
    command -v "$cc" >/dev/null || continue
    [ "$name" != cortex-m4 ] || cc="$cc -mcpu=cortex-m4 -mthumb"
    build "$name" "$cc" "$arch"
    compiler[$name]=$cc
    targets+=("$name")
done

printf '%-18s' "code + const, bytes"
for name in as-built "${targets[@]}"; do printf ' %18s' "$name"; done
echo
{
    rooms "$release"
    for name in "${targets[@]}"; do rooms "$out/size-$name"; done
} | awk '{ if (!($1 in row)) { order[++n] = $1; row[$1] = sprintf("%-19s", $1) }
           row[$1] = row[$1] sprintf(" %18s", $2 " + " $3) }
         END { for (i = 1; i <= n; i++) print row[order[i]] }'

for name in "${targets[@]}"; do
    dir=$out/size-$name
    written=$(rooms "$dir" | awk '{written += $4} END {print written}')
    node_code=$(linked "$dir" "${compiler[$name]}") || exit 1
    node=$(foreign "$dir" base wire reduce table engine shell)
    host=$(foreign "$dir" base wire reduce table endpoint)
    if ! stack=$(awk -f "$here/stack.awk" -v max=$stack_max "$dir"/obj/offload/*/*.ci); then status=1; fi
    printf '\n%s, for size: a node takes %d bytes of code and const (limit %d), %d written; symbols from outside: node %s, host %s\n%s\n' \
        "$name" "$node_code" $node_code_max "$written" "${node:-none}" "${host:-none}" "$stack"
    [ "$name" != i386 ] || [ "$node_code" -le $node_code_max ] || broken "$name: code of a node is $node_code bytes, the limit is $node_code_max"
    [ "$written" -eq 0 ] || broken "$name: $written bytes of static data are written; the core has none"
    [ -z "$node" ] || broken "$name: a node wants symbols from outside: $node"
    # For a host, which has a C library, a compiler may copy and clear structures by these.
    host=$(tr ' ' '\n' <<<"$host" | grep -Ev '^(memcpy|memset|)$')
    [ -z "$host" ] || broken "$name: a host wants symbols from outside: $host"
done
echo
"$release/tools/ram" $ram_max || status=1
exit $status
