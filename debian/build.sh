#!/usr/bin/env bash
# Builds the packages: copies the tracked and new files of the tree into FOLDER/banyan-VERSION, and
# runs dpkg-buildpackage there. Times of files are kept, so a second run compiles what has changed.
#   build.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
folder=$(realpath "$1")
version=$(dpkg-parsechangelog -S Version)
[ "$version" = "$(sed -n 's/^VERSION *:= *//p' Makefile)" ] || { echo "build.sh: debian/changelog has version $version, the Makefile another" >&2; exit 2; }
tree=$folder/banyan-$version
rm -f "$folder"/banyan_* "$folder"/*.deb
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name debian -exec rm -rf {} +
find "$tree" -mindepth 2 -maxdepth 2 -path "$tree/debian/*" ! -name build -exec rm -rf {} +
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\0' "$file"; done |
    tar --null -cf - -T - | tar xf - -C "$tree"
cd "$tree"
dpkg-source --tar-ignore=debian/build --build . >"$folder/source.log" 2>&1 || { cat "$folder/source.log" >&2; exit 1; }
if ! dpkg-buildpackage -us -uc -nc >"$folder/build.log" 2>&1; then
    grep -nE 'error:|Error [0-9]|dh_.*:' "$folder/build.log" | tail -20 >&2
    tail -20 "$folder/build.log" >&2
    echo "build.sh: dpkg-buildpackage failed; the log is $folder/build.log" >&2
    exit 1
fi
ls "$folder"/*.deb
