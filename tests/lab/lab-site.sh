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

# site TOPOLOGY MTU: names for all links but the last, which keeps the generated ones.
site() {
    perl -MJSON::PP -0777 -e '
        my $topology = decode_json(<STDIN>);
        my %ports;
        my @links;
        for my $i (0 .. $#{$topology->{links}} - 1) {
            my $nodes = $topology->{links}[$i]{between};
            my $number = grep { join(" ", sort @{$topology->{links}[$_]{between}}) eq join(" ", sort @$nodes) } 0 .. $i - 1;
            my @ends = map {
                my $end = $_;
                {interface => sprintf("enp%ds%d", 1 + $ports{$nodes->[$end]}++, $end), address => sprintf("10.20.%d.%d", $i, 11 + 90 * $end),
                 mac => sprintf("0c:42:a1:%02x:00:%02x", $i, $end)}
            } 0, 1;
            push @links, {between => $nodes, number => $number, mtu => '"$2"', ends => \@ends};
        }
        print encode_json({format => "banyan-site-1", links => \@links});' <"$dir/$1.json" >"$dir/$1.site"
}
for topology in star4 leafspine relay-spine; do
    site $topology 1500
done
for transport in udp afxdp; do
    lab_right "star4 with a site's names, $transport: all collectives right" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --transport $transport
done
lab_right "star4 with a site's names, the kernel replicates" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --driver xdp
lab_right "star4 with a site's names, hosts that share memory" star4 --site "$dir/star4.site" --bytes 256K --iters 1 --transport shm --mtu 1500
most=3 lab_right "leafspine with a site's names, with loss" leafspine --site "$dir/leafspine.site" --bytes 256K --iters 1 --loss 0.01
lab_right "a spine that only forwards, with a site's names" relay-spine --site "$dir/relay-spine.site" --bytes 256K --iters 1
lab_right "leafspine with a site's names in one process" leafspine --site "$dir/leafspine.site" --in-process --bytes 256K --iters 1

check "tables of a site" bash -c "'$banyan' plan '$dir/star4.json' -c allreduce -o '$dir/a.plan' && '$banyan' tables '$dir/star4.json' '$dir/a.plan' --site '$dir/star4.site' -o '$dir/tables'"
check "a host's table names its interface, address and MAC address" grep -q 'port 0 enp1s0: 10.20.0.11 0c:42:a1:00:00:00,' "$dir/tables/host0.txt"
check "a switch's table names those of its ports" grep -q 'port 1 enp2s1: 10.20.1.101 0c:42:a1:01:00:01, mtu 1500, to node 1 10.20.1.11 0c:42:a1:01:00:00' "$dir/tables/switch0.txt"
check "a link without names keeps the generated ones" grep -q 'port 0 eth0: 198.18.0.6 02:62:c6:12:00:06,' "$dir/tables/host3.txt"

refused "a site that is not there" 2 "$dir/none.site: " "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/none.site" -o "$dir/no"
refused "a link with a smaller MTU than the tables" 2 "has an MTU of 1500 bytes at 'host0' (enp1s0), and tables are made for 9000: use --mtu 1500" \
    "$banyan" lab run "$dir/star4.json" --site "$dir/star4.site" --mtu 9000
sed 's/10\.20\.1\.11/10.20.0.11/' "$dir/star4.site" >"$dir/twice.site"
refused "an address twice" 2 "node 'host0' has the address 10.20.0.11 on its link to 'switch0', and node 'host1' has it" \
    "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/twice.site" -o "$dir/no"
sed 's/"host0"/"host9"/' "$dir/star4.site" >"$dir/other.site"
refused "the site of another fabric" 2 "has no node 'host9'" "$banyan" tables "$dir/star4.json" "$dir/a.plan" --site "$dir/other.site" -o "$dir/no"
refused "banyand with such a site" 2 "$dir/other.site:1:" "$build/bin/banyand" "$dir/star4.json" --site "$dir/other.site" --sockets "$dir" --http off --socket off
check "nothing was written" test ! -e "$dir/no"
finish
