#!/usr/bin/env bash
# Unpacks Debian packages of another architecture into a folder for cross-compilers:
#   sysroot.sh [--closure | --depends | --backports] ARCH FOLDER PACKAGE...
# It installs nothing, requires no root, and leaves the machine's package lists unchanged: apt uses
# separate lists in FOLDER/.apt. --closure includes the dependencies of the packages. --depends takes
# the first dependency of the first package instead of it, for a package that only names another one.
# --backports takes the packages from the backports of this machine's release, with the dependencies
# that this machine lacks.
# The script does nothing when FOLDER/.done lists the same packages.
set -euo pipefail
closure=0
case ${1:-} in
--closure) closure=1; shift ;;
--depends) closure=2; shift ;;
--backports) closure=3; shift ;;
esac
[ $# -ge 3 ] || { echo "usage: sysroot.sh [--closure | --depends | --backports] ARCH FOLDER PACKAGE..." >&2; exit 2; }
arch=$1
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
wanted="$closure $*"
[ "$(cat "$folder/.done" 2>/dev/null)" != "$wanted" ] || exit 0
echo "  SYSROOT $folder: $arch packages: $*"
mkdir -p "$folder"/.apt/{lists/partial,archives/partial}
: >"$folder/.apt/status"
source=()
if [ $closure -eq 3 ]; then
    . /etc/os-release
    mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk -v suite="$VERSION_CODENAME" '$2 == suite { print $1; exit }')
    [ -n "$mirror" ] || { echo "sysroot.sh: apt has no mirror of $VERSION_CODENAME" >&2; exit 3; }
    cp /var/lib/dpkg/status "$folder/.apt/status"
    for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-backports"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$folder/.apt/sources"
    source=(-o Dir::Etc::SourceList="$folder/.apt/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -t "$VERSION_CODENAME-backports")
fi
apt() { # apt TOOL ARGUMENTS...
    local tool=$1
    shift
    "$tool" -q -o APT::Get::Assume-Yes=1 -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Install-Recommends=0 -o APT::Sandbox::User=root \
        -o Dir::State="$folder/.apt" -o Dir::State::status="$folder/.apt/status" -o Dir::Cache="$folder/.apt" \
        -o Dir::Etc::Parts=/dev/null -o Debug::NoLocking=1 "${source[@]}" "$@" >"$folder/.apt/log" 2>&1 ||
        { tail -5 "$folder/.apt/log" >&2; echo "sysroot.sh: $tool $1 failed; the log ends above" >&2; exit 3; }
}
apt apt-get update
if [ $closure -eq 2 ]; then
    apt apt-cache depends --important "$1"
    set -- "$(awk '$1 == "Depends:" { print $2; exit }' "$folder/.apt/log")" "${@:2}"
fi
if [ $closure -eq 1 ] || [ $closure -eq 3 ]; then
    apt apt-get install --download-only "$@"
else
    (cd "$folder/.apt/archives" && apt apt-get download "$@")
fi
for package in "$folder"/.apt/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm -rf "$folder/.apt"
echo "$wanted" >"$folder/.done"
