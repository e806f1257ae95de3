#!/usr/bin/env bash
# The kernels' tests on a processor with AVX-512, which Bochs emulates: static programs, each the only one on a machine whose ROM is rom.S.
#   avx512.sh MAKE BUILD [TEST...]     BUILD: folder of builds; this one is BUILD/avx512
# Installs what is missing (root, else it says what). Takes three minutes of processor time. Closes with `N passed, N failed`.
set -u
make=$1
out=$2
shift 2
cd "$(dirname "$0")/../.." || exit 3
case $out in /*) ;; *) out=$PWD/$out ;; esac
tests=${*:-reduce-kernels reduce-half reduce-psum reduce-exact reduce-bounds reduce-once}
system=$out/avx512/system
limit=900 # seconds for one test
mkdir -p "$system"
tests/deps.sh avx512 || exit

${CC:-gcc} -Wall -Wextra -O2 -c -o "$system/cmocka.o" tests/avx512/cmocka.c && rm -f "$system/libcmocka.a" && ar rc "$system/libcmocka.a" "$system/cmocka.o" &&
    ${CC:-gcc} -c -o "$system/rom.o" tests/avx512/rom.S && ld -e 0 --section-start=.rom=0xf0000 -o "$system/rom.elf" "$system/rom.o" &&
    objcopy -O binary -j .rom "$system/rom.elf" "$system/rom.bin" || exit 1
programs=()
for test in $tests; do programs+=("$out/avx512/tests/$test"); done
$make --no-print-directory -j2 O="$out" VARIANT=avx512 BOARD=lab-veth STEPPER=step_trap CFLAGS="-include $PWD/tests/avx512/bochs.h" LDFLAGS="-static -L$system" \
    "${programs[@]}" || exit 1

# machine TEST: runs it; what it says on its serial line is in $out/avx512/TEST.log
machine() {
    local dir=$system/$1
    mkdir -p "$dir"
    strip -o "$dir/disk" "$out/avx512/tests/$1"
    truncate -s %516096 "$dir/disk" # whole cylinders
    rm -f "$dir/disk.lock" "$out/avx512/$1.log"
    cat >"$dir/bochsrc" <<END
plugin_ctrl: unmapped=1, serial=1, biosdev=0, speaker=0, gameport=0, parallel=0, extfpuirq=0
display_library: term
romimage: file=$system/rom.bin, address=0xffff0000
megs: 128
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, path=$dir/disk, mode=flat, cylinders=0, heads=16, spt=63
com1: enabled=1, mode=file, dev=$out/avx512/$1.log
log: $dir/log
panic: action=fatal
error: action=report
info: action=ignore
END
    echo c >"$dir/go" # Debian's has a debugger, which waits for this
    TERM=xterm timeout -k 5 "$limit" bochs -q -f "$dir/bochsrc" -rc "$dir/go" >"$dir/screen" 2>&1 </dev/null
    [ -f "$out/avx512/$1.log" ] || { tail -5 "$dir/log"; return 1; }
    grep -q '^exit: passed' "$out/avx512/$1.log" && ! grep -q '# SKIP' "$out/avx512/$1.log"
}

passed=0
failed=0
for test in $tests; do
    if machine "$test"; then
        passed=$((passed + 1))
        echo "  PASS   $test"
    else
        failed=$((failed + 1))
        echo "  FAIL   $test"
        sed 's/^/         | /' "$out/avx512/$test.log"
    fi
done
for test in reduce-kernels reduce-once; do
    [[ " $tests " != *" $test "* ]] || grep -hs '^avx512: tested' "$out/avx512/$test.log" | sed "s/^/$test: /"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
