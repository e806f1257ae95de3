#!/usr/bin/env bash
# Checks the objects of the pure core: no symbol from outside (so no C library), no mutable static
# data. offload/linux and offload/xdp run on Linux and are not part of the core.
#   symbols.sh OBJECTS      OBJECTS: folder of the build with offload/**/*.o
set -euo pipefail
objects=$1
status=0
mapfile -t files < <(find "$objects/offload" -name '*.o' -not -path '*/offload/xdp/*' -not -path '*/offload/linux/*' | sort)
if [ ${#files[@]} -eq 0 ]; then
    echo "$objects/offload: no objects; build first"
    exit 1
fi
defined=$(mktemp)
trap 'rm -f "$defined"' EXIT
nm --defined-only -g -f posix "${files[@]}" | awk 'NF >= 2 {print $1}' | sort -u >"$defined"
for file in "${files[@]}"; do
    name=${file#"$objects/"}
    # _GLOBAL_OFFSET_TABLE_ is the linker's own.
    foreign=$(nm -u -f posix "$file" | awk '$1 != "_GLOBAL_OFFSET_TABLE_" {print $1}' | sort -u | comm -23 - "$defined" | tr '\n' ' ')
    if [ -n "$foreign" ]; then
        echo "${name%.o}.c: symbols from outside offload: $foreign"
        status=1
    fi
    # .data.rel.ro is const data that holds addresses: it is never written after loading.
    mutable=$(objdump -t "$file" | awk '$0 ~ /^[0-9a-f]+ / {
        for (i = 2; i < NF; i++)
            if (($i ~ /^\.(data|bss|tdata|tbss)(\.|$)/ || $i == "*COM*") && $i !~ /^\.data\.rel\.ro/ && $NF != $i)
                print $NF }' | sort -u | tr '\n' ' ')
    if [ -n "$mutable" ]; then
        echo "${name%.o}.c: mutable static data: $mutable"
        status=1
    fi
done
echo "${#files[@]} objects checked"
exit $status
