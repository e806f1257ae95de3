#!/usr/bin/env bash
# banyan discover and banyan doctor --topology on real switches and hosts in namespaces: the fabric
# that is found is the one that was built, its files carry plans, tables and a verified allreduce on
# the same machines, and wrong cables, speeds, MTUs and names are found.
#   lab-discover.sh [BUILD]      Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-discover "${1:-build/release}"
need_root
perf=$build/bin/banyan-perf
me=byd$$
cleanup_more() {
    local node
    for node in "${nodes[@]}"; do ip netns delete "$me-$node" 2>/dev/null; done
}
# Two hosts at each of two leaves, two spines. The names of interfaces differ from the generated
# ones, and cables go to ports in another order than hosts are numbered.
hosts=(a1 a2 b1 b2)
switches=(leafa leafb spine1 spine2)
nodes=("${hosts[@]}" "${switches[@]}")
declare -A ports=([leafa]="x0 x1 x2 x3" [leafb]="x0 x1 x2 x3" [spine1]="x0 x1" [spine2]="x0 x1")
in_node() { ip netns exec "$me-$1" "${@:2}"; }
# cable NODE IF NODE IF NUMBER: number gives the addresses 10.77.NUMBER.0/31 of hosts.
cable() {
    ip -n "$me-$1" link add "$2" address "02:77:00:00:$5:00" type veth peer name "$4" address "02:77:00:00:$5:01" netns "$me-$3" &&
        ip -n "$me-$1" link set "$2" mtu 3000 up && ip -n "$me-$3" link set "$4" mtu 3000 up || return 1
    case $1 in leaf*) ;; *) ip -n "$me-$1" addr add "10.77.$((10#$5)).0/31" dev "$2" ;; esac
}
start_switch() {
    local options=() port
    for port in ${ports[$1]}; do options+=(--iface "$port"); done
    ip netns exec "$me-$1" "$build/bin/banyan-switchd" --name "$1" "${options[@]}" --control "unix:$dir/$1.sock" >"$dir/$1.log" 2>&1 &
    children+=($!)
}
ready() {
    local switch i
    for switch in "${switches[@]}"; do
        for ((i = 0; i < 300; i++)); do
            grep -q ready "$dir/$switch.log" 2>/dev/null && break
            sleep 0.1
        done
    done
    grep -L ready "$dir"/*.log
}
build_fabric() {
    local node
    for node in "${nodes[@]}"; do
        ip netns add "$me-$node" && ip -n "$me-$node" link set lo up || return 1
        in_node "$node" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv4.conf.all.rp_filter=0
    done
    cable a1 enp1 leafa x2 01 && cable a2 enp1 leafa x0 02 && cable b1 enp7 leafb x1 03 && cable b2 enp1 leafb x3 04 &&
        cable leafa x1 spine1 x0 05 && cable leafa x3 spine2 x1 06 && cable leafb x0 spine2 x0 07 && cable leafb x2 spine1 x1 08
}
# The arguments that name all nodes. PATH has the programs, as in an installation.
export PATH=$build/bin:$PATH
ask=(--sockets "$dir")
for host in "${hosts[@]}"; do ask+=(--host "$host=ip netns exec $me-$host banyan discover --local --name $host --seconds 2"); done
discover() { "$banyan" discover --seconds 2 "${ask[@]}" -o "$dir/found.json" --site-output "$dir/found.site" --save "$dir/facts" "$@"; }
# fabric_of FILE: nodes and links in an order of their own.
fabric_of() {
    perl -MJSON::PP -0777 -ne '
        my $t = decode_json($_);
        print join("\n", (sort map { "$_->{name} $_->{kind} " . ($_->{multicast} ? 1 : 0) . ($_->{aggregate} ? 1 : 0) } @{$t->{nodes}}),
                         (sort map { join(" ", sort @{$_->{between}}) . " $_->{bandwidth} $t->{unit}" } @{$t->{links}})), "\n";' "$1"
}

check "the fabric is built" build_fabric
for switch in "${switches[@]}"; do start_switch "$switch"; done
check "its switches are ready" test -z "$(ready)"
cat >"$dir/built.json" <<'JSON'
{"name": "site", "unit": "Gb/s",
 "nodes": [{"name": "a1", "kind": "compute"}, {"name": "a2", "kind": "compute"}, {"name": "b1", "kind": "compute"}, {"name": "b2", "kind": "compute"},
           {"name": "leafa", "kind": "switch", "multicast": true, "aggregate": true}, {"name": "leafb", "kind": "switch", "multicast": true, "aggregate": true},
           {"name": "spine1", "kind": "switch", "multicast": true, "aggregate": true}, {"name": "spine2", "kind": "switch", "multicast": true, "aggregate": true}],
 "links": [{"between": ["a1", "leafa"], "bandwidth": 10}, {"between": ["a2", "leafa"], "bandwidth": 10}, {"between": ["b1", "leafb"], "bandwidth": 10},
           {"between": ["b2", "leafb"], "bandwidth": 10}, {"between": ["leafa", "spine1"], "bandwidth": 10}, {"between": ["leafa", "spine2"], "bandwidth": 10},
           {"between": ["leafb", "spine1"], "bandwidth": 10}, {"between": ["leafb", "spine2"], "bandwidth": 10}]}
JSON

# The order of spine2's ports contradicts those of the leaves: leafa has spine1 before spine2, leafb
# spine2 before spine1.
discover >"$dir/run.out" 2>&1
status=$?
check "the fabric that is found is the one that was built" diff <(fabric_of "$dir/built.json") <(fabric_of "$dir/found.json")
if [ $status -eq 0 ]; then pass "its facts fit together"; else fail "its facts fit together" "$dir/run.out"; fi
check "each cable is listed once" test "$(grep -c 'Mb/s' "$dir/run.out")" -eq 8
check "the site has the names of the machines" grep -q '"interface": "enp7", "address": "10.77.3.0", "mac": "02:77:00:00:03:00"' "$dir/found.site"
check "nor with the facts of files" "$banyan" discover --seconds 0 "$dir"/facts/a1.json "$dir"/facts/a2.json "$dir"/facts/b1.json "$dir"/facts/b2.json --sockets "$dir" -o "$dir/again.json"
check "which give the same topology" diff <(fabric_of "$dir/found.json") <(fabric_of "$dir/again.json")

check "the found files carry a plan" "$banyan" plan "$dir/found.json" -c allreduce -o "$dir/a.plan"
check "which is optimal" "$banyan" verify "$dir/found.json" "$dir/a.plan"
check "and tables" "$banyan" tables "$dir/found.json" "$dir/a.plan" --site "$dir/found.site" --mtu 3000 -o "$dir/tables"
check "which the running switches take" "$banyan" push "$dir/tables" --sockets "$dir"
# A host has routes to the switch at the other end of its link.
for i in 0 1 2 3; do
    far=$(sed -n 's/.*port 0 .*, to node [0-9]* \([0-9.]*\).*/\1/p' "$dir/tables/${hosts[i]}.txt" | head -1)
    in_node "${hosts[i]}" ip route replace "$far/32" dev "$(in_node "${hosts[i]}" ls /sys/class/net | grep enp)" 2>/dev/null
done
allreduce() {
    local i jobs=() status=0
    for i in 1 2 3; do
        BANYAN_TABLE=$dir/tables/${hosts[i]}.table timeout 60 ip netns exec "$me-${hosts[i]}" "$perf" -c allreduce -b 1M -n 3 >"$dir/perf$i.out" 2>&1 &
        jobs+=($!)
    done
    BANYAN_TABLE=$dir/tables/${hosts[0]}.table timeout 60 ip netns exec "$me-${hosts[0]}" "$perf" -c allreduce -b 1M -n 3 || status=1
    for i in "${jobs[@]}"; do wait "$i" || status=1; done
    return $status
}
check "and a verified allreduce on these machines" allreduce

check "doctor finds no trouble with the found files" "$banyan" doctor "${ask[@]}" --topology "$dir/found.json" --site "$dir/found.site"

# Several faults at once: each has a finding of its own. The cables of b1 and b2 are exchanged in
# effect: their interfaces exchange names.
for host in b1 b2; do ip -n "$me-$host" link set "$(in_node $host ls /sys/class/net | grep enp)" name tmp0; done
ip -n "$me-b1" link set tmp0 name enp1 && ip -n "$me-b2" link set tmp0 name enp7
ip -n "$me-a1" link set enp1 mtu 2000 up
ip -n "$me-leafa" link set x3 down
ip -n "$me-a2" addr flush dev enp1
refused "doctor finds an interface that the site names and the node lacks" 1 "b1 enp7: the site names this interface, and the node does not have it" \
    "$banyan" doctor "${ask[@]}" --topology "$dir/found.json" --site "$dir/found.site"
found() { if grep -qF -- "$2" "$dir/check.out"; then pass "$1"; else fail "$1" "$dir/check.out"; fi; }
found "an MTU that is too small" "a1 enp1: its MTU is 2000 bytes, and the site states 3000"
found "a cable that is missing" "no cable was found here, and the topology has one to"
found "an address that is missing" "a2 enp1: the site gives it the address 10.77.2.0, and it has none"
ip -n "$me-b1" link set enp1 down
ip -n "$me-b2" link set enp7 down
# Exchanged names in the topology are crossed cables.
sed 's/"b1", "leafb"/"tmp", "leafb"/; s/"b2", "leafb"/"b1", "leafb"/; s/"tmp", "leafb"/"b2", "leafb"/' "$dir/found.json" >"$dir/crossed.json"
refused "doctor finds two crossed cables" 1 "leafb x1: its cable leads to enp7 of 'b1', and should lead to 'b2'" \
    "$banyan" doctor --topology "$dir/crossed.json" --facts "$dir/facts/b1.json" --facts "$dir/facts/b2.json" --sockets "$dir"

# Nodes that cannot be asked, and files that are no facts.
refused "a host whose command fails" 3 "its command has printed nothing (exit status 7)" \
    "$banyan" discover --seconds 1 --host "z=exit 7" "$dir"/facts/*.json -o "$dir/no.json"
refused "a switch that does not run" 3 "banyan: gone: unix:$dir/gone: " \
    "$banyan" discover --seconds 1 --to "gone=unix:$dir/gone" "$dir"/facts/a1.json "$dir"/facts/leafa.json -o "$dir/no.json"
refused "a file without facts" 2 "$dir/found.json: " "$banyan" discover "$dir/found.json"
refused "no node at all" 2 "no node: name hosts with --host" "$banyan" discover
refused "an interface that is not there" 2 "--iface eth77: no Ethernet interface has this name; this machine has " \
    in_node a1 "$banyan" discover --local --iface eth77 --seconds 0
check "a machine without the right to send LLDP reports the rest" bash -c "setpriv --bounding-set -net_raw --inh-caps -net_raw ip netns exec $me-a2 setpriv --bounding-set -net_raw --inh-caps -net_raw '$banyan' discover --local --name a2 >'$dir/no-right' 2>'$dir/why'; [ \$? -eq 3 ] && grep -q CAP_NET_RAW '$dir/why' && grep -q enp1 '$dir/no-right'"
finish
