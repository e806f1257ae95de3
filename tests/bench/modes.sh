#!/usr/bin/env bash
# Compares the modes fast, det and exact: whole allreduces over a star of four in one process.
# modes.sh BUILD [BYTES [ROUNDS]]
set -eu
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/bin/banyan" topo star --hosts 4 >"$dir/star.json"
"$build/bin/banyan" plan "$dir/star.json" -c allreduce -o "$dir/star.plan" >/dev/null
"$build/bin/banyan" tables "$dir/star.json" "$dir/star.plan" --det -o "$dir/tables" >/dev/null
"$build/tools/bench-modes" "$dir/tables" "${2:-1048576}" "${3:-15}"
