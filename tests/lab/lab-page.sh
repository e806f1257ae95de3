#!/usr/bin/env bash
# The live page of a controller in a lab with keyed jobs: its files, the data of the fabric, loads
# that are measured, missing ranks, a broken link within a second, refusals, and no key in any answer.
#   lab-page.sh [BUILD]   Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-page "${1:-build/release}"
# shellcheck source=tests/page/page-common.sh
. tests/page/page-common.sh
need_root
cleanup_more() { down_of "$dir/up.out"; }

"$banyan" topo leafspine --spines 2 --bandwidth 1/2 >"$dir/fabric.json"
if ! page_lab "$dir/fabric.json" >"$dir/start.out"; then
    fail "a lab with a controller that serves the page" "$dir/start.out"
    finish
fi
pass "a lab with a controller that serves the page"

# live EXPRESSION: whether it is true of the state, $_[0].
live() { page_body /v1/live | expression=$1 perl -MJSON::PP -0777 -e 'my $live = decode_json(<STDIN>); exit !eval "my \$l = \$live; $ENV{expression}"'; }
# within MS EXPRESSION: waits until it is true, at most that long; prints how long.
within() {
    local start now
    start=$(date +%s%N)
    until live "$2"; do
        now=$((($(date +%s%N) - start) / 1000000))
        [ "$now" -le "$1" ] || { echo "not within $1 ms: $2"; page_body /v1/live; return 1; }
        sleep 0.02
    done
    now=$((($(date +%s%N) - start) / 1000000))
    echo "after $now ms"
    [ "$now" -le "$1" ]
}

check "the page" grep -q '<script type="module" src="page.js">' <(page_body /)
refused "may load nothing from elsewhere" 0 "Content-Security-Policy: default-src 'none'" page_get /page.js
same_file() { page_body "/$1" | cmp - "control/service/daemon/page/$1"; }
for file in page.css page.js fabric.js layout.js tables.js chart.js text.js page.svg; do
    same_file "$file" >"$dir/check.out" 2>&1 || { fail "$file is what the sources have" "$dir/check.out"; break; }
done
[ "$file" != page.svg ] || pass "its files are those of the sources"
fabric_json() { page_body /v1/fabric | perl -MJSON::PP -0777 -ne 'my $f = decode_json($_); exit !(@{$f->{nodes}} == 8 && @{$f->{links}} == 8 && $f->{links}[0][2] == 500000000)'; }
check "the fabric, with capacities" fabric_json
check "all switches are up, and the job has no rank yet" within 5000 '@{$l->{nodes_up}} == 4 && $l->{jobs}[0]{joined} == 0'

page_run 1M 100000
check "ranks join" within 5000 '$l->{jobs}[0]{joined} == 4'
check "the load of links is measured" within 4000 '(grep { defined && $_ > 1000000 } @{$l->{load}}) >= 8'
check "beside the optimum of the job" within 5000 '$l->{jobs}[0]{plans}[0]{optimum} == 500000000 && $l->{jobs}[0]{measured}[0]{rate} > 0 && $l->{jobs}[0]{permille} > 0'

end_tree TERM "${ranks[3]}"
check "a rank that has left is missing" within 4000 '$l->{jobs}[0]{joined} == 3 && "@{$l->{jobs}[0]{missing}}" eq "host3"'
page_stop

ip -n "lab-$lab-leaf0" link set "$(page_port leaf0 spine1)" down
check "a broken link is in the data within a second" within 1000 '@{$l->{links_down}} == 1 && (grep { $_->{text} =~ /leaf0 - spine1 is down/ } @{$l->{events}})'
check "and in the history" within 3000 '$l->{sample}[3] == 1'
kill -KILL "$(switch_pid "$lab" spine1)"
check "so is a killed switch" within 1000 '@{$l->{nodes_down}} == 1'

refused "other methods are refused" 0 "405 Method Not Allowed" page_get /v1/live POST
refused "and other paths" 0 "404 Not Found" page_get /v1/secret
refused "and other sites" 0 "403 Forbidden" page_get /v1/live GET "Origin: http://somewhere.example"

# Neither names of secrets, nor anything like a key, a nonce or a hash.
secrets() {
    local path
    for path in / /page.js /v1/fabric /v1/live /v1/history '/v1/history?link=0'; do page_get "$path"; done >"$dir/answers"
    [ "$(grep -c ' 200 OK' "$dir/answers")" = 6 ] || return 1
    ! grep -aiE '"(secret|key|keys|psk|nonce|boot|election_id|table|hash|address)"' "$dir/answers" && ! grep -aoiE '[0-9a-f]{15,}' "$dir/answers"
}
check "no key or nonce is in any answer" secrets
finish
