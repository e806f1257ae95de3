#!/usr/bin/env bash
# The live page in Chromium: a lab with traffic whose link breaks, and a fabric of 1,024 hosts with
# made-up loads. Pictures of both in both themes go to a folder.
#   page.sh [BUILD] [PICTURES]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh page "${1:-build/release}"
# shellcheck source=tests/page/page-common.sh
. tests/page/page-common.sh
need_root
pictures=${2:-build/page}
mkdir -p "$pictures"
cleanup_more() { down_of "$dir/up.out"; }
export PYTHONDONTWRITEBYTECODE=1

# browse WHAT ARGUMENTS...: runs the test in the browser; its checks count as those of this script.
browse() {
    attended python3 tests/page/test_page.py "$@" >"$dir/browse.out" 2>&1
    grep -vE '^[0-9]+ passed, [0-9]+ failed$' "$dir/browse.out"
    read -r good bad < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$dir/browse.out")
    passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-1}))
}

"$banyan" topo leafspine --spines 2 --bandwidth 1/2 >"$dir/fabric.json"
if page_lab "$dir/fabric.json" >"$dir/start.out"; then
    page_run 4M 100000
    browse lab "http://127.0.0.1:$port" "$pictures" ip -n "lab-$lab-leaf0" link set "$(page_port leaf0 spine1)" down
    page_stop
    end_tree TERM "$daemon"
    down_of "$dir/up.out"
    rm -f "$dir/up.out"
else
    fail "a lab with a controller" "$dir/start.out"
fi

"$banyan" topo fattree --ports 16 >"$dir/large.json"
mkdir "$dir/none"
"$build/bin/banyand" "$dir/large.json" --sockets "$dir/none" --socket off --http 0 >"$dir/large.out" 2>/dev/null &
children+=($!)
page_ready "$dir/large.out"
browse large "http://127.0.0.1:$port" "$pictures"
echo "  pictures are in $pictures"
finish
