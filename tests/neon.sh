#!/usr/bin/env bash
# Tests of the kernels and of packets for aarch64: built by Debian's cross compiler, run in qemu's
# user-mode emulation.
#   neon.sh MAKE BUILD [TEST...]     BUILD: folder of builds; the cross build is BUILD/neon
# Installs missing packages (as root; otherwise it prints their names). cmocka for arm64 is a
# package that is unpacked into the build, not installed.
set -u
make=$1
out=$2
shift 2
cd "$(dirname "$0")/.." || exit 3
case $out in /*) ;; *) out=$PWD/$out ;; esac
tests=${*:-reduce-kernels reduce-half reduce-psum reduce-exact reduce-bounds reduce-once unit-wire unit-golden unit-frame}
limit=900 # seconds for one test
system=$out/neon/system
mkdir -p "$system/include" "$system/apt/lists/partial" "$system/apt/archives/partial" "$out/neon/tests"
tests/deps.sh neon || exit

# Runs apt with its own state, so that the machine's architectures do not change.
apt_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$system/apt" -o Dir::State::lists="$system/apt/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$system/apt" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}
if ! ls "$system"/usr/lib/aarch64-linux-gnu/libcmocka.so.0 >/dev/null 2>&1; then
    echo "  DEPS   cmocka for arm64, into $system"
    get() { (apt_arm64 update && cd "$system" && apt_arm64 download libcmocka0:arm64 && dpkg-deb -x libcmocka0_*_arm64.deb .) >"$out/neon/apt.log" 2>&1; }
    get || {
        tail -5 "$out/neon/apt.log" >&2
        echo "neon: libcmocka0 for arm64 cannot be had; the log ends above" >&2
        exit 3
    }
    ln -sf libcmocka.so.0 "$system/usr/lib/aarch64-linux-gnu/libcmocka.so"
fi
cp /usr/include/cmocka*.h "$system/include/" # the same for all architectures

programs=()
for test in $tests; do programs+=("$out/neon/tests/$test"); done
$make --no-print-directory -j2 O="$out" VARIANT=neon BOARD=lab-veth CC=aarch64-linux-gnu-gcc STEPPER=step_remote CFLAGS="-isystem $system/include" \
    LDFLAGS="-L$system/usr/lib/aarch64-linux-gnu" "${programs[@]}" || exit 1
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu BY_TEST_QEMU=qemu-aarch64
passed=0
failed=0
for test in $tests; do
    if timeout -k 5 "$limit" qemu-aarch64 -E LD_LIBRARY_PATH="$system/usr/lib/aarch64-linux-gnu" "$out/neon/tests/$test" \
        >"$out/neon/$test.log" 2>&1 && ! grep -q '# SKIP' "$out/neon/$test.log"; then
        passed=$((passed + 1))
        echo "  PASS   $test"
    else
        failed=$((failed + 1))
        echo "  FAIL   $test"
        sed 's/^/         | /' "$out/neon/$test.log"
    fi
done
for test in reduce-kernels reduce-once; do
    [[ " $tests " != *" $test "* ]] || grep -hs '^neon: tested' "$out/neon/$test.log" | sed "s/^/$test: /"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
