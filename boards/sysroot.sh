#!/usr/bin/env bash
# Unpacks Debian packages of another architecture into a folder for cross-compilers:
#   sysroot.sh [--closure | --depends] ARCH FOLDER PACKAGE...
# It installs nothing, requires no root, and leaves the machine's package lists unchanged: apt uses
# separate lists in FOLDER/.apt. --closure includes the dependencies of the packages. --depends takes
# the first dependency of the first package instead of it, for a package that only names another one.
# The script does nothing when FOLDER/.done lists the same packages.
set -euo pipefail
closure=0
case ${1:-} in
--closure) closure=1; shift ;;
--depends) closure=2; shift ;;
esac
[ $# -ge 3 ] || { echo "usage: sysroot.sh [--closure | --depends] ARCH FOLDER PACKAGE..." >&2; exit 2; }
arch=$1
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
wanted="$closure $*"
[ "$(cat "$folder/.done" 2>/dev/null)" != "$wanted" ] || exit 0
echo "  SYSROOT $folder: $arch packages: $*"
mkdir -p "$folder"/.apt/{lists/partial,archives/partial}
: >"$folder/.apt/status"
apt() { # apt TOOL ARGUMENTS...
    local tool=$1
    shift
    "$tool" -q -o APT::Get::Assume-Yes=1 -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Install-Recommends=0 -o APT::Sandbox::User=root \
        -o Dir::State="$folder/.apt" -o Dir::State::status="$folder/.apt/status" -o Dir::Cache="$folder/.apt" \
        -o Dir::Etc::Parts=/dev/null -o Debug::NoLocking=1 "$@" >"$folder/.apt/log" 2>&1 ||
        { tail -5 "$folder/.apt/log" >&2; echo "sysroot.sh: $tool $1 failed; the log ends above" >&2; exit 3; }
}
apt apt-get update
if [ $closure -eq 2 ]; then
    apt apt-cache depends --important "$1"
    set -- "$(awk '$1 == "Depends:" { print $2; exit }' "$folder/.apt/log")" "${@:2}"
fi
if [ $closure -eq 1 ]; then
    apt apt-get install --download-only "$@"
else
    (cd "$folder/.apt/archives" && apt apt-get download "$@")
fi
for package in "$folder"/.apt/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm -rf "$folder/.apt"
echo "$wanted" >"$folder/.done"
