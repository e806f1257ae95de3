#!/usr/bin/env bash
# Fabrics with a site's own interfaces, addresses and MAC addresses (--site, banyan-site(5)): all
# collectives on real switches, tables that show the names, and sites that cannot be right.
#   lab-site.sh [BUILD]      Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-site "${1:-build/release}"
need_root
make_topologies

# site TOPOLOGY MTU [NODES [MORE]]: names for all links but the last, which keeps the generated ones;
# their MAC addresses are stated, or learned if MORE is given: further members of each link.
site() {
    perl -MJSON::PP -0777 -e '
        my $topology = decode_json(<STDIN>);
        my ($learned, %more, %ports) = ('"${4+1}"'+0, '"${4-}"');
        my @links;
        for my $i (0 .. $#{$topology->{links}} - 1) {
            my $nodes = $topology->{links}[$i]{between};
            my $number = grep { join(" ", sort @{$topology->{links}[$_]{between}}) eq join(" ", sort @$nodes) } 0 .. $i - 1;
            my @ends = map {
                my $end = $_;
                {interface => sprintf("enp%ds%d", 1 + $ports{$nodes->[$end]}++, $end), address => sprintf("10.20.%d.%d", $i, 11 + 90 * $end),
                 $learned ? () : (mac => sprintf("0c:42:a1:%02x:00:%02x", $i, $end))}
            } 0, 1;
            push @links, {between => $nodes, number => $number, mtu => '"$2"', ends => \@ends, %more};
        }
        print JSON::PP->new->canonical->encode({format => "banyan-site-1", nodes => ['"${3-}"'], links => \@links});' <"$dir/$1.json"
}
for topology in star4 leafspine relay-spine; do
    site $topology 1500 >"$dir/$topology.site"
    site $topology 1500 "" "" >"$dir/$topology.arp"
done
for transport in udp afxdp; do
    lab_right "star4 with a site's names, $transport: all collectives right" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --transport $transport
done
lab_right "star4 with a site's names, the kernel replicates" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --driver xdp
lab_right "star4 with a site's names, hosts that share memory" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --transport shm --mtu 1500
most=3 lab_right "leafspine with a site's names, with loss" leafspine --site "$dir/leafspine.site" --bytes 256K --iters 1 --loss 0.01
lab_right "a spine that only forwards, with a site's names" relay-spine --site "$dir/relay-spine.site" --bytes 256K --iters 1
lab_right "leafspine with a site's names in one process" leafspine --site "$dir/leafspine.site" --in-process --bytes 256K --iters 1

# MAC addresses that are learned: on every kind of port, and of hosts that build frames.
for driver in auto af_packet af_xdp xdp; do
    lab_right "star4 with learned MAC addresses, driver $driver" star4 --site "$dir/star4.arp" --bytes 64K --iters 1 --driver $driver
done
lab_right "star4 with learned MAC addresses, hosts over AF_XDP" star4 --site "$dir/star4.arp" --bytes 64K --iters 1 --transport afxdp
lab_right "star4 with learned MAC addresses, hosts that share memory" star4 --site "$dir/star4.arp" --bytes 64K --iters 1 --transport shm --mtu 1500
most=3 lab_right "leafspine with learned MAC addresses, with loss" leafspine --site "$dir/leafspine.arp" --bytes 64K --iters 1 --loss 0.01
# Workers that outnumber the cores complete chunks out of order, so some are sent again.
most=1.3 lab_right "star4 with learned MAC addresses and four workers" star4 --site "$dir/star4.arp" --cores 4 --bytes 64K --iters 1
most=3 lab_right "leafspine with learned MAC addresses, two workers and loss" leafspine --site "$dir/leafspine.arp" --cores 2 --bytes 64K --iters 1 --loss 0.01
lab_right "a spine that only forwards, with learned MAC addresses" relay-spine --site "$dir/relay-spine.arp" --bytes 64K --iters 1

# Nodes that do not run banyan: the spine between two leaves, or the leaves between hosts and a spine.
"$banyan" topo leafspine --capable spine >"$dir/plain-leaf.json"
for runs in router bridge; do
    site relay-spine 1500 '{name => "spine0", runs => "'$runs'"}' "" >"$dir/spine.$runs"
    site plain-leaf 1500 "$(printf '{name => "leaf%d", runs => "'$runs'"},' 0 1)" "" >"$dir/leaf.$runs"
    lab_right "a spine that is a $runs" relay-spine --site "$dir/spine.$runs" --bytes 64K --iters 1
    for transport in udp afxdp; do
        most=1.3 lab_right "leaves that are ${runs}s, $transport" plain-leaf --site "$dir/leaf.$runs" --bytes 64K --iters 1 --transport $transport
    done
done

# VLANs: the switch writes and removes the tags; a frame of another VLAN is counted.
vlan() {
    perl -MJSON::PP -0777 -e '
        my $topology = decode_json(<STDIN>);
        my @links = map { {between => $_->{between}, vlan => '"$2"', ends => [{mac => "arp"}, {mac => "arp"}]} }
            grep { "@{$_->{between}}" =~ /spine/ } @{$topology->{links}};
        print JSON::PP->new->canonical->encode({format => "banyan-site-1", links => \@links});' <"$dir/$1.json"
}
vlan leafspine 7 >"$dir/vlan7.site"
vlan leafspine 8 >"$dir/vlan8.site"
lab_right "a VLAN between leaves and spine" leafspine --site "$dir/vlan7.site" --bytes 64K --iters 1
most=3 lab_right "a VLAN through a spine that only forwards, with loss and duplicates" relay-spine --site "$dir/vlan7.site" --bytes 64K --iters 1 --loss 0.01 --dup 0.02
attended "$banyan" lab up "$dir/leafspine.json" --site "$dir/vlan7.site" >"$dir/up.out" 2>&1
id=$(id_of "$dir/up.out")
run=/run/banyan/lab-$id
check "plans and tables of another VLAN" bash -c "'$banyan' plan '$dir/leafspine.json' -c allreduce -o '$dir/l.plan' && '$banyan' tables '$dir/leafspine.json' '$dir/l.plan' --site '$dir/vlan8.site' --gen 9 -o '$dir/vlan8' && '$banyan' push '$dir/vlan8/spine0.table' --to spine0=unix:$run/spine0.sock"
check "a switch counts frames of another VLAN" bash -c "for i in {1..60}; do '$banyan' show unix:$run/leaf0.sock --counters | grep -q 'rx_vlan: [1-9]' && exit 0; sleep 0.1; done; exit 1"
check "doctor names the VLAN" bash -c "'$banyan' doctor --to leaf0=unix:$run/leaf0.sock | grep 'frames of another VLAN'"
check "tables with a VLAN at a host" bash -c "sed 's/\"mtu\"/\"vlan\":7,&/' '$dir/leafspine.arp' >'$dir/host.site' && '$banyan' tables '$dir/leafspine.json' '$dir/l.plan' --site '$dir/host.site' --gen 9 -o '$dir/hostvlan'"
refused "a switch's interface without the VLAN of its table" 3 "port 0: the interface is not one of the VLAN that the table states (ip link add ... type vlan), but of VLAN (0)" \
    "$banyan" push "$dir/hostvlan/leaf0.table" --to leaf0="unix:$run/leaf0.sock"
"$banyan" lab down "$id" >"$dir/down.out" 2>&1
attended "$banyan" lab up "$dir/leafspine.json" --site "$dir/leafspine.arp" >"$dir/up.out" 2>&1
id=$(id_of "$dir/up.out")
refused "a host's interface without the VLAN of its table" 2 "has no VLAN, and the table states VLAN 7: make an interface for it (ip link add link " \
    ip netns exec "lab-$id-host0" env BANYAN_TABLE="$dir/hostvlan/host0.table" "$build/bin/banyan-perf"
"$banyan" lab down "$id" >"$dir/down.out" 2>&1

check "tables of a site" bash -c "'$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan' && '$banyan' tables '$dir/star4.json' '$dir/a.plan' --site '$dir/star4.site' -o '$dir/tables'"
check "a host's table names its interface, address and MAC address" grep -q 'port 0 enp1s0: 10.20.0.11 0c:42:a1:00:00:00,' "$dir/tables/host0.txt"
check "a switch's table names those of its ports" grep -q 'port 1 enp2s1: 10.20.1.101 0c:42:a1:01:00:01, mtu 1500, to node 1 10.20.1.11 0c:42:a1:01:00:00' "$dir/tables/switch0.txt"
check "a link without names keeps the generated ones" grep -q 'port 0 eth0: 198.18.0.6 02:62:c6:12:00:06,' "$dir/tables/host3.txt"

# A neighbour that does not answer: the switch gets a table in which host1 has another address.
sed 's/10\.20\.1\.11/10.20.1.77/' "$dir/star4.arp" >"$dir/silent.site"
attended "$banyan" lab up "$dir/star4.json" --site "$dir/star4.arp" >"$dir/up.out" 2>&1
id=$(id_of "$dir/up.out")
run=/run/banyan/lab-$id
perl -MJSON::PP -0777 -e '$s = decode_json(<STDIN>); $s->{nodes} = [{name => "switch0", control => "unix:'$run'/switch0.sock"}];
    print JSON::PP->new->canonical->encode($s)' <"$dir/silent.site" >"$dir/control.site"
check "push finds the switches of a site" bash -c "'$banyan' tables '$dir/star4.json' '$dir/a.plan' --site '$dir/control.site' --gen 9 -o '$dir/silent' >/dev/null && '$banyan' push '$dir/silent' --site '$dir/control.site'"
silent="the neighbour 10.20.1.77 at port enp2s1 does not answer ARP"
check "a neighbour that does not answer is in the log" bash -c "for i in {1..80}; do grep -q '$silent: packets for it are dropped' '$run/switch0.log' && exit 0; sleep 0.1; done; cat '$run/switch0.log'; exit 1"
check "show names it" bash -c "'$banyan' show switch0 --site '$dir/control.site' --counters | grep 'traffic enp2s1: .*no answer to ARP from 10.20.1.77'"
check "doctor names it, and the remedy" bash -c "'$banyan' doctor --site '$dir/control.site' | grep -A1 '$silent' | grep 'one VLAN'"
check "top finds the switches of a site" bash -c "'$banyan' top --once --site '$dir/control.site' | grep switch0"
ip netns exec "lab-$id-host1" ip addr add 10.20.1.77 dev enp2s0 2>/dev/null || ip netns exec "lab-$id-host1" ip addr add 10.20.1.77 dev enp1s0
check "a neighbour that answers again is in the log" bash -c "for i in {1..50}; do grep -q 'the neighbour 10.20.1.77 at port enp2s1 answers ARP again' '$run/switch0.log' && exit 0; sleep 0.1; done; cat '$run/switch0.log'; exit 1"
timeout 3 "$build/bin/banyand" "$dir/star4.json" --site "$dir/control.site" --http off --socket off >"$dir/banyand.out" 2>&1
check "banyand finds the switches of a site" grep -q 'switch switch0 has table\|switch switch0 is up' "$dir/banyand.out"
refused "banyand without a control channel" 2 'no address for switch switch0: add --to switch0=ADDR, or its "control" to the site' \
    "$build/bin/banyand" "$dir/star4.json" --site "$dir/star4.arp" --http off --socket off
refused "show of a switch that the site does not have" 2 "no switch 'switch9' with a control channel" "$banyan" show switch9 --site "$dir/control.site"
refused "push with a site without control channels" 2 'no node has a control channel: add "nodes"' "$banyan" push "$dir/silent" --site "$dir/star4.arp"
"$banyan" lab down "$id" >"$dir/down.out" 2>&1

refused "a site that is not there" 2 "$dir/none.site: " "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/none.site" -o "$dir/no"
refused "a link with a smaller MTU than the tables" 2 "has an MTU of 1500 bytes at 'host0' (enp1s0), and tables are made for 9000: use --mtu 1500" \
    "$banyan" lab run "$dir/star4.json" --site "$dir/star4.site" --mtu 9000
sed 's/10\.20\.1\.11/10.20.0.11/' "$dir/star4.site" >"$dir/twice.site"
refused "an address twice" 2 "node 'host0' has the address 10.20.0.11 on its link to 'switch0', and node 'host1' has it" \
    "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/twice.site" -o "$dir/no"
sed 's/"host0"/"host9"/' "$dir/star4.site" >"$dir/other.site"
refused "the site of another fabric" 2 "has no node 'host9'" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/other.site" -o "$dir/no"
refused "banyand with such a site" 2 "$dir/other.site:1:" "$build/bin/banyand" "$dir/star4.json" --site "$dir/other.site" --sockets "$dir" --http off --socket off
sed 's/"mtu":1500/"mtu":9000/; s/"ends":\[{/&"mtu":1500,/' "$dir/star4.site" >"$dir/mtu.site"
refused "an MTU that is too small at one end" 2 "has an MTU of 1500 bytes at 'host0'" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/mtu.site" --mtu 9000 -o "$dir/no"
sed 's/"ends":\[{/&"vlan":7,/; s/},{/&"vlan":8,/' "$dir/star4.site" >"$dir/vlan.site"
refused "two VLANs at one link" 2 "so neither end receives the frames of the other: give both ends one VLAN" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/vlan.site" -o "$dir/no"
site star4 1500 '{name => "switch0", runs => "bridge"}' >"$dir/plain.site"
refused "a bridge that would have to add" 2 "lets 'switch0' add or copy, and the site states that it is a bridge" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/plain.site" -o "$dir/no"
check "nothing was written" test ! -e "$dir/no"
finish
