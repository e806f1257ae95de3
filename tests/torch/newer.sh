#!/usr/bin/env bash
# The backend "banyan" with the PyTorch of a newer Debian, whose backends have another base class than
# those of 1.13: builds the extension there, runs its tests on four hosts and real switches, wrong use,
# and training. The other Debian is unpacked into a folder (2 GB), and nothing of it is installed.
#   newer.sh BUILD FOLDER      as root; SUITE: the other Debian (default: trixie)
# Exit status: 0; 1 a test failed; 3 the mirror has no such Debian; 77 cannot run here.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: newer.sh BUILD FOLDER" >&2; exit 2; }
cd "$(dirname "$0")/../.."
[ "$(id -u)" -eq 0 ] || { echo "newer.sh: skipped: namespaces need root" >&2; exit 77; }
command -v mmdebstrap >/dev/null || { echo "newer.sh: skipped: mmdebstrap is missing (Debian's package mmdebstrap)" >&2; exit 77; }
# Mounts below are private to this process and end with it.
[ -n "${BANYAN_NEWER_MOUNTS:-}" ] || BANYAN_NEWER_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
suite=${SUITE:-trixie}
build=$(realpath "$1")
mkdir -p "$2"
root=$(realpath "$2")/$suite
source=$PWD

if [ ! -e "$root/.done" ]; then
    . /etc/os-release
    mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' |
        awk -v suite="$VERSION_CODENAME" '$2 == suite { print $1; exit }')
    [ -n "$mirror" ] || { echo "newer.sh: apt has no mirror of $VERSION_CODENAME" >&2; exit 3; }
    echo "  UNPACK $root: $suite with its PyTorch"
    rm -rf "$root"
    mmdebstrap --quiet --variant=minbase --include=python3-torch,libtorch-dev,pybind11-dev,python3-dev,python3-numpy,g++,libxdp1,libbpf1 \
        "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log" >&2; echo "newer.sh: $suite cannot be unpacked; the log ends above" >&2; exit 3; }
    touch "$root/.done"
fi
# The programs see the tree, the build and the lab's files under their own paths.
for path in /proc /sys /dev /run /tmp "$source" "$build"; do
    mkdir -p "$root$path"
    mount --rbind "$path" "$root$path"
done
inside() { chroot "$root" env -C "$source" USE_LIBUV=0 PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 "$@"; }
package=$(mktemp -d -t banyan-newer-XXXXXX)
trap 'rm -rf "$package"' EXIT
mkdir "$package/banyan_torch"
cp host-driver/plugin/torch/banyan_torch/*.py "$package/banyan_torch"
include=$(inside python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
echo "  BUILD  the backend in $suite"
objects=()
for name in worker group module; do
    inside g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Werror -Wno-error=maybe-uninitialized \
        -DTORCH_EXTENSION_NAME=_C -Ihost-driver/include -isystem "$include" -isystem /usr/include/torch/csrc/api/include \
        -c -o "$package/$name.o" "host-driver/plugin/torch/$name.cpp" 2>"$package/log" || { cat "$package/log" >&2; exit 1; }
    objects+=("$package/$name.o")
done
inside g++ -shared -o "$package/banyan_torch/_C.so" "${objects[@]}" "$build/lib/libbanyan.so.0" \
    -L/usr/lib/python3/dist-packages/torch/lib -ltorch_python -ltorch -ltorch_cpu -lc10 -Wl,-rpath,"$build/lib"
echo "  WITH   PyTorch $(inside python3 -W ignore -c 'import torch, banyan_torch; print(torch.__version__)')"

passed=0 failed=0
report() { # STATUS WHAT LOG
    if [ "$1" -eq 0 ]; then
        echo "  PASS   $2"
        passed=$((passed + 1))
    else
        tail -n 40 "$3"
        echo "  FAIL   $2"
        failed=$((failed + 1))
    fi
}
"$build/bin/banyan" topo star --hosts 4 >"$package/fabric.json"
on_hosts() { # OPTION... -- PROGRAM...
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    timeout 400 "$build/bin/banyan" lab run "$package/fabric.json" --limit 300 "${options[@]}" -- \
        chroot "$root" env -C "$source" USE_LIBUV=0 PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 \
        python3 -W ignore "$@" >"$package/log" 2>&1
}
status=0
on_hosts -- tests/torch/test_backend.py || status=1
[ "$(grep -cE '^host[0-3]: [0-9]+ passed, 0 failed over banyan' "$package/log")" -eq 4 ] || status=1
! grep -q 'ends without' "$package/log" || status=1
report $status "every collective, operator and type on four hosts" "$package/log"
status=0
on_hosts --timeout 2 -c allreduce -- tests/torch/test_backend.py --again || status=1
[ "$(grep -c 'the missing rank is named' "$package/log")" -eq 3 ] || status=1
report $status "a missing rank is named" "$package/log"
status=0
inside python3 -W ignore tests/torch/test_misuse.py >"$package/log" 2>&1 || status=1
report $status "wrong use is an error or a warning with the remedy" "$package/log"
for mode in det exact; do
    for run in 1 2; do
        status=0
        on_hosts -c allreduce,broadcast -m $mode -- host-driver/examples/train/train.py --model convolutions --steps 6 --rows 4 || status=1
        sed -nE 's/^host0: .*curve ([0-9a-f]+), weights ([0-9a-f]+),.*/\1 \2/p' "$package/log" >"$package/hash.$run"
        [ -s "$package/hash.$run" ] || status=1
    done
    cmp -s "$package/hash.1" "$package/hash.2" || status=1
    report $status "training in mode $mode repeats to the bit" "$package/log"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
