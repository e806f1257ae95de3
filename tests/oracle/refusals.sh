#!/usr/bin/env bash
# Wrong input to topo, plan, verify, plot and circulant as a person meets it: refusals.sh BANYAN.   Each is refused with exit status 2, one line that
# names the object, nothing on standard output, and within two seconds. Closes with `N passed, N failed`.
set -u
banyan=$(realpath "$1")
passed=0
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# refused WHAT TEXT ARGUMENTS...: the command says TEXT.
refused() {
    local what=$1 text=$2 status=0 fault=
    shift 2
    timeout 2 "$banyan" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    [ "$status" -eq 2 ] || fault="exit status $status instead of 2"
    grep -qF -- "$text" "$dir/err" || fault="does not say '$text'"
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fault="says more or less than one line"
    [ ! -s "$dir/out" ] || fault="prints to standard output"
    if [ -z "$fault" ]; then
        passed=$((passed + 1))
        printf '  PASS   %s\n' "$what"
    else
        failed=$((failed + 1))
        printf '  FAIL   %s: %s\n' "$what" "$fault"
        sed 's/^/         | /' "$dir/err" "$dir/out"
    fi
}
# fabric NAME LINKS: two hosts a and b and a switch s that only forwards.
fabric() {
    printf '{"name": "t", "unit": "GB/s", "nodes": [{"name": "a", "kind": "compute"},\n {"name": "b", "kind": "compute"},' >"$dir/$1"
    printf ' {"name": "s", "kind": "switch"}],\n "links": [%s]}\n' "$2" >>"$dir/$1"
}
link() { printf '{"between": ["%s", "%s"], "bandwidth": %s}' "$1" "$2" "$3"; }

cd "$dir" || exit 3
fabric good.json "$(link a s 10), $(link b s 10)"
fabric more-out.json "$(link a s 3), $(link b s 2), {\"from\": \"a\", \"to\": \"s\", \"bandwidth\": 2}"
refused "a node with more bandwidth out than in" "node 'a' has 3 GB/s in and 5 GB/s out" plan more-out.json -c allgather
refused "the same for reduce-scatter, whose data run the other way" "node 'a' has 3 GB/s in and 5 GB/s out" plan more-out.json -c reduce-scatter
fabric parts.json "$(link a s 10)"
refused "two parts" "no link joins {a, s} and {b}" plan parts.json -c allgather
fabric alone.json ""
refused "three parts" "{a} and {b} and {s}" plot alone.json -o alone.svg
fabric one-way.json '{"from": "a", "to": "s", "bandwidth": 1}, {"from": "s", "to": "b", "bandwidth": 1}'
refused "a node that hears nobody" "'a' cannot be reached" plan one-way.json -c allgather
fabric zero.json "$(link a s 0), $(link b s 10)"
refused "a bandwidth of zero" "zero.json:3:" plan zero.json -c allgather
fabric digits.json "$(link a s 99999999999999999999), $(link b s 10)"
refused "a bandwidth beyond 63 bits" "must fit 63 bits" plan digits.json -c allgather
fabric sum.json "$(link a s 2000000000000000000), $(link b s 10)"
refused "bandwidths whose sum does not fit" "a - s add up to more than 2^61" plan sum.json -c allgather
fabric scale.json "$(link a s '"1/4611686018427387847"'), $(link b s '"1/4611686018427387733"')"
refused "fractions without a common unit" "b - s has no common unit" plan scale.json -c allgather
fabric exact.json "$(link a s 500000000000000000), $(link b s 499999999999999999)"
refused "an optimum that does not fit" "bits" plan exact.json -c allgather
fabric stranger.json "$(link a x 1)"
refused "a link to an unknown node" "'x', which is not in \"nodes\"" plan stranger.json -c allgather
fabric self.json "$(link a a 1)"
refused "a link to itself" "itself" plan self.json -c allgather
"$banyan" plan good.json -c allgather -o plan.json >/dev/null || exit 3
: >empty.json
refused "an empty file" "empty.json: the topology is empty" plan empty.json -c allgather
echo '{}' >bare.json
refused "an empty object" "no \"name\"" plan bare.json -c allgather
echo '{"name": "t", "nodes": [], "links": []}' >nobody.json
refused "a fabric of nothing" "no compute node" plan nobody.json -c allgather
echo '{"name": "t", "nodes": [{"name": "a", "kind": "compute"}], "links": []}' >one.json
refused "one compute node" "one compute node" plan one.json -c allgather
refused "a file that is not there" "nowhere.json" plan nowhere.json -c allgather
refused "a folder" "Is a directory" plan . -c allgather
refused "a binary" "not valid JSON" plan "$banyan" -c allgather
refused "a plan for a topology" "key 'format' of a topology is unknown" plan plan.json -c allgather
refused "an unknown collective" "-c is 'gossip'; it must be allreduce, " plan good.json -c gossip
refused "a collective given twice" "-c is given twice" plan good.json -c allgather -c reduce-scatter
refused "the same for compare" "-c is given twice" compare good.json -c allgather -c reduce-scatter
refused "the same for sim" "-c is given twice" sim good.json -c allgather -c reduce-scatter
refused "the same for job" "-c is given twice" job create -c allgather -c reduce-scatter
refused "no collective" "name a collective" plan good.json
refused "a root that is no node" "not a node of good.json" plan good.json -c broadcast --root x
refused "a root that is a switch" "'s' is a switch" plan good.json -c broadcast --root s
refused "a root where there is none" "has no root" plan good.json -c allgather --root a
refused "k with a blank before it" "--fixed-k is ' 2'" plan good.json -c allgather --fixed-k ' 2'
refused "a probability that is not decimal" "--loss is ' 0.5'; it must be a probability from 0 to 1" sim good.json --loss ' 0.5'
refused "a time limit with a sign" "--time-limit is '+1'" plan good.json -c allgather --time-limit +1
refused "a count of trees below 0 that wraps to 1" "--trees is '-18446744073709551615'" plot good.json -o a.svg --trees -18446744073709551615
refused "k of zero" "--fixed-k is '0'" plan good.json -c allgather --fixed-k 0
echo '{"a": 1, "b": 2}' >shares.json
echo '{"a": 1, "c": 2}' >stranger-shares.json
echo '[1, 2' >open-shares.json
echo '[0, 0]' >no-shares.json
refused "shares of an unknown node" "stranger-shares.json:1:14: a share for 'c', which is not a node" plan good.json -c allgather --shares stranger-shares.json
refused "shares that end too early" "open-shares.json:2:1: not valid JSON" plan good.json -c allgather --shares open-shares.json
refused "shares of nobody" "all shares are 0" plan good.json -c allgather --shares no-shares.json
refused "shares where there are no shards" "broadcast has no shards" plan good.json -c broadcast --root a --shares shares.json
refused "shares that are not there" "nowhere.json" plan good.json -c allgather --shares nowhere.json
"$banyan" plan good.json -c allgather --shares shares.json -o shares.plan >/dev/null || exit 3
refused "an export of unequal shards" "without --shares" export good.json shares.plan --format msccl
refused "unequal shards mended" "without --from" plan good.json --from shares.plan
refused "a rank that is no node" "--ranks: 'c' is not a node" plan good.json -c allgather --ranks a,c
refused "a rank that is a switch" "'s' is a switch" plan good.json -c allgather --ranks a,s
refused "one rank" "at least two" plan good.json -c allgather --ranks a
refused "ranks for another algorithm" "requires the forest" plan good.json -c allgather --ranks a,b --algorithm ring
sed 's/"kind": "switch"/"kind": "switch", "forward": true/' good.json >forward.json
refused "a switch that is said to forward" "which always forwards" plan forward.json -c allgather
refused "a lost link without a plan to start from" "require --from" plan good.json --fail-link a,s
refused "a lost link that is none" "has no link between the two" plan good.json --from plan.json --fail-link a,b
refused "a lost link with an unknown end" "has no node 'x'" plan good.json --from plan.json --fail-link a,x
refused "a lost link that parts the fabric" "no link joins" plan good.json --from plan.json --fail-link a,s
refused "a lost node that is none" "--fail-node x" plan good.json --from plan.json --fail-node x
refused "planning again for another collective" "leave -c out" plan good.json --from plan.json -c reduce-scatter
refused "planning again from no plan" "nowhere.plan" plan good.json --from nowhere.plan
refused "an unknown preset" "no preset 'moebius'" topo moebius
refused "a preset's number out of range" "--hosts is '0'" topo star --hosts 0
refused "all links failed" "--fail is '1'" topo star --fail 1
refused "a scatter of zero" "--scatter is '0..3'" topo star --scatter 0..3
refused "a seed that is no number" "--seed is 'x'" topo star --fail 0.1 --seed x
refused "a picture of no known kind" "neither .svg nor .dot" plot good.json -o picture.gif
refused "a plan that is a topology" "format" verify good.json good.json

refused "no count of ranks" "name the count of ranks" circulant
refused "no rank at all" "-p is '0'; it must be a whole number from 1 to" circulant -p 0
refused "more ranks than numbers allow" "-p is '1073741825'; it must be a whole number" circulant -p 1073741825
refused "a count that is no number" "-p is 'many'; it must be a whole number" circulant -p many
refused "a rank that is none of them" "-r 20 is not one of 20 ranks" circulant -p 20 -r 20
refused "more ranks than are listed" "name one with -r" circulant -p 4097
refused "a broadcast of nothing" "-n is '0'; it must be a whole number" circulant -p 20 -n 0
refused "more rounds than are listed" "leave out -r" circulant -p 20 -r 1 -n 1000001
refused "an argument behind the options" "'x' is one argument too many" circulant -p 20 x

# What must not be refused: links that appear twice add up, and an unbalanced fabric whose switches need no removal.
fabric twice.json "$(link a s 10), $(link a s 10), $(link b s 20)"
fabric once.json "$(link a s 20), $(link b s 20)"
rate() { "$banyan" plan "$1" -c allgather --json | grep -o '"achieved": {[^}]*}'; }
if [ "$(rate twice.json)" = "$(rate once.json)" ] && [ -n "$(rate once.json)" ]; then
    passed=$((passed + 1))
    echo "  PASS   a link that appears twice counts twice"
else
    failed=$((failed + 1))
    echo "  FAIL   a link that appears twice: $(rate twice.json) instead of $(rate once.json)"
fi
sed 's/"kind": "switch"/"kind": "switch", "multicast": true, "aggregate": true/' more-out.json >capable.json
if "$banyan" plan capable.json -c allgather -o capable.plan >/dev/null && "$banyan" verify capable.json capable.plan | grep -q OPTIMAL; then
    passed=$((passed + 1))
    echo "  PASS   an unbalanced fabric is planned where no switch must be removed"
else
    failed=$((failed + 1))
    echo "  FAIL   an unbalanced fabric whose switch branches is not planned"
fi
"$banyan" topo a100 --boxes 4 >whole.json
"$banyan" plan whole.json -c allgather -o whole.plan >/dev/null
if "$banyan" plan whole.json --from whole.plan --fail-link gpu3,ib0 -o mended.plan --write-topology left.json | grep -q 'trees, 2[0-9] are unchanged' &&
    "$banyan" verify left.json mended.plan | grep -q OPTIMAL && "$banyan" plan left.json --from whole.plan -o again.plan >/dev/null &&
    cmp -s mended.plan again.plan; then
    passed=$((passed + 1))
    echo "  PASS   a plan is repaired, whether the loss is named or the topology lacks the link"
else
    failed=$((failed + 1))
    echo "  FAIL   a plan after a lost link:"
    "$banyan" plan whole.json --from whole.plan --fail-link gpu3,ib0 | sed 's/^/         | /'
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
