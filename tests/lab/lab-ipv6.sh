#!/usr/bin/env bash
# Fabrics whose links have IPv6 addresses (banyan-site(5)): all collectives on real switches by each driver, transport and kind of node that
# supports them, links of both families in one fabric, neighbour discovery, and sites and tables that must be refused.
#   lab-ipv6.sh [BUILD]      Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-ipv6 "${1:-build/release}"
need_root
make_topologies

# site TOPOLOGY [FOUR [NODES [MORE]]]: unique local addresses for all links; link number FOUR has IPv4 addresses. NODES are further nodes,
# MORE are members of each link between switches.
site() {
    perl -MJSON::PP -0777 -e '
        my $topology = decode_json(<STDIN>);
        my $four = "'"${2-}"'";
        my (%more, %ports, @links) = ('"${4-}"');
        for my $i (0 .. $#{$topology->{links}}) {
            my $nodes = $topology->{links}[$i]{between};
            my $number = grep { join(" ", sort @{$topology->{links}[$_]{between}}) eq join(" ", sort @$nodes) } 0 .. $i - 1;
            my @ends = map {
                my $end = $_;
                {interface => sprintf("enp%ds%d", 1 + $ports{$nodes->[$end]}++, $end),
                 address => $four eq $i ? sprintf("10.20.%d.%d", $i, 11 + 90 * $end) : sprintf("fd00:ba:%x::%x", $i, 11 + 90 * $end)}
            } 0, 1;
            push @links, {between => $nodes, number => $number, mtu => 1500, ends => \@ends, "@$nodes" =~ /host/ ? () : %more};
        }
        print JSON::PP->new->canonical->encode({format => "banyan-site-1", nodes => ['"${3-}"'], links => \@links});' <"$dir/$1.json"
}
for topology in star4 leafspine relay-spine; do site $topology >"$dir/$topology.six"; done
site star4 0 >"$dir/star4.both"
site leafspine 0 >"$dir/leafspine.both"
site leafspine "" "" "vlan => 7" >"$dir/vlan.six"

# Bytes of a plan count the longer headers.
least=0.97 most=1.03
lab_right "star4 over IPv6: all collectives right" star4 --site "$dir/star4.six" --bytes 256K --iters 1
for driver in af_packet af_xdp; do
    lab_right "star4 over IPv6, driver $driver" star4 --site "$dir/star4.six" --bytes 64K --iters 1 --driver $driver
done
BANYAN_RING=off lab_right "star4 over IPv6, hosts that receive by sockets" star4 --site "$dir/star4.six" --bytes 64K --iters 1 --driver af_packet
lab_right "star4 over IPv6, hosts that share memory" star4 --site "$dir/star4.six" --bytes 64K --iters 1 --transport shm --mtu 1500
lab_right "star4 over IPv6, keyed" star4 --site "$dir/star4.six" --bytes 64K --iters 1 --keyed
lab_right "star4 with one link of IPv4" star4 --site "$dir/star4.both" --bytes 256K --iters 1
lab_right "leafspine with one link of IPv4" leafspine --site "$dir/leafspine.both" --bytes 64K --iters 1
lab_right "leafspine over IPv6 with a VLAN" leafspine --site "$dir/vlan.six" --bytes 64K --iters 1
lab_right "a spine that only forwards, over IPv6" relay-spine --site "$dir/relay-spine.six" --bytes 64K --iters 1
least=0.95 lab_right "leafspine over IPv6 in one process" leafspine --site "$dir/leafspine.six" --in-process --bytes 256K --iters 1
most=3 lab_right "leafspine over IPv6, with loss and duplicates" leafspine --site "$dir/leafspine.six" --bytes 64K --iters 1 --loss 0.01 --dup 0.02
# Workers that outnumber the cores complete chunks out of order, so some are sent again.
most=1.3 lab_right "star4 over IPv6 with four workers" star4 --site "$dir/star4.six" --cores 4 --bytes 64K --iters 1
for runs in router bridge; do
    site relay-spine "" "{name => \"spine0\", runs => \"$runs\"}" >"$dir/spine.$runs"
    most=1.1 lab_right "a spine that is a $runs, over IPv6" relay-spine --site "$dir/spine.$runs" --bytes 64K --iters 1
done

# What does not support it says so, and what does.
refused "the driver xdp" 3 "the drivers xdp and gso do not support IPv6 links: use --driver auto" \
    "$banyan" lab run "$dir/star4.json" --site "$dir/star4.six" --bytes 64K --iters 1 --driver xdp
refused "the transport afxdp" 3 "which the transport afxdp does not support: use BANYAN_TRANSPORT=udp" \
    "$banyan" lab run "$dir/star4.json" --site "$dir/star4.six" --bytes 64K --iters 1 --transport afxdp
refused "the transport dpdk" 3 "which the transport dpdk does not support: use BANYAN_TRANSPORT=udp" \
    "$banyan" lab run "$dir/star4.json" --site "$dir/star4.six" --bytes 64K --iters 1 --transport dpdk

check "tables of a site" bash -c "'$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan' && '$banyan' tables '$dir/star4.json' '$dir/a.plan' --site '$dir/star4.both' -o '$dir/tables'"
check "a switch's table shows addresses of both families" bash -c "grep -q 'port 1 enp2s1: fd00:ba:1::65 ND, mtu 1500, to node 1 fd00:ba:1::b ND' '$dir/tables/switch0.txt' && grep -q 'port 0 enp1s1: 10.20.0.101 ARP' '$dir/tables/switch0.txt'"
check "show prints them as JSON" bash -c "'$banyan' show --json '$dir/tables/switch0.table' | grep -q '\"own_ip\": \"fd00:ba:1::65\"'"

# A neighbour that does not answer: the switch gets a table in which host1 has another address.
sed 's/fd00:ba:1::b/fd00:ba:1::77/' "$dir/star4.six" >"$dir/silent.site"
attended "$banyan" lab up "$dir/star4.json" --site "$dir/star4.six" >"$dir/up.out" 2>&1
id=$(id_of "$dir/up.out")
run=/run/banyan/lab-$id
perl -MJSON::PP -0777 -e '$s = decode_json(<STDIN>); $s->{nodes} = [{name => "switch0", control => "unix:'"$run"'/switch0.sock"}];
    print JSON::PP->new->canonical->encode($s)' <"$dir/silent.site" >"$dir/control.site"
check "a kernel's neighbour table has the switch" bash -c "ip netns exec 'lab-$id-host0' ping -6 -c1 -W1 fd00:ba:0::65 >/dev/null 2>&1; ip -6 -n 'lab-$id-host0' neigh show fd00:ba::65 | grep -q lladdr"
check "doctor finds the host's address, and the switch" bash -c "ip netns exec 'lab-$id-host0' '$banyan' doctor -v --table '$run/host0.table' >'$dir/doctor.out'; cat '$dir/doctor.out'; grep -q 'is fd00:ba::b at' '$dir/doctor.out' && grep -q 'fd00:ba::65 (node [0-9]*) answers' '$dir/doctor.out'"
check "push of the other address" bash -c "'$banyan' tables '$dir/star4.json' '$dir/a.plan' --site '$dir/control.site' --gen 9 -o '$dir/silent' >/dev/null && '$banyan' push '$dir/silent' --site '$dir/control.site'"
silent="the neighbour fd00:ba:1::77 at port enp2s1 does not answer neighbour discovery"
check "a neighbour that does not answer is in the log" bash -c "for i in {1..80}; do grep -q '$silent: packets for it are dropped' '$run/switch0.log' && exit 0; sleep 0.1; done; cat '$run/switch0.log'; exit 1"
check "show names it" bash -c "'$banyan' show switch0 --site '$dir/control.site' --counters | grep 'traffic enp2s1: .*no answer to neighbour discovery from fd00:ba:1::77'"
check "doctor names it, and the remedy" bash -c "'$banyan' doctor --site '$dir/control.site' --tables '$dir/silent' | grep -A1 '$silent' | grep 'one VLAN'"
ip -n "lab-$id-host1" addr add fd00:ba:1::77 dev enp1s0 nodad
check "a neighbour that answers again is in the log" bash -c "for i in {1..50}; do grep -q 'the neighbour fd00:ba:1::77 at port enp2s1 answers neighbour discovery again' '$run/switch0.log' && exit 0; sleep 0.1; done; cat '$run/switch0.log'; exit 1"
"$banyan" lab down "$id" >"$dir/down.out" 2>&1

# no WHAT TEXT SED: the tables of the star's site after a change are refused with the text.
no() {
    sed "$3" "$dir/star4.six" >"$dir/no.site"
    refused "$1" 2 "$2" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/no.site" -o "$dir/no"
}
no "an address twice" "node 'host0' has the address fd00:ba::b on its link to 'switch0', and node 'host1' has it" 's/fd00:ba:1::b"/fd00:ba:0::b"/'
no "both families on one link" "has an IPv6 address at 'switch0' and an IPv4 address at 'host1': give both ends addresses of one family" 's/fd00:ba:1::b"/10.0.0.1"/'
no "a link-local address" "fe80::b is a link-local address, which more than one link may have: give the end a unique local address (fd00::/8)" 's/fd00:ba:1::b"/fe80::b"/'
no "an MTU below 1280" "has an MTU of 1279 bytes; with IPv6 addresses it must be at least 1280" 's/"mtu":1500/"mtu":1279/'
refused "packets below 1280 bytes" 2 "an MTU of 1200: the trees use links with IPv6 addresses" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/star4.six" --mtu 1200 -o "$dir/no"
site relay-spine "$(perl -MJSON::PP -0777 -e '$l = decode_json(<STDIN>)->{links}; print grep { "@{$l->[$_]{between}}" =~ /leaf0.*spine0|spine0.*leaf0/ } 0 .. $#$l' <"$dir/relay-spine.json")" >"$dir/relay.both"
refused "a relay between links of both families" 2 "pass 'spine0' unchanged on their way to" "$banyan" lab run "$dir/relay-spine.json" --site "$dir/relay.both" --bytes 64K --iters 1
check "nothing was written" test ! -e "$dir/no"
finish
