#!/usr/bin/env bash
# Compares the kernel's replication and relays (--driver xdp) with the same switch on DPDK's kernel
# ports (af_xdp, af_packet) and on rings, on virtual links at MTU 1500, with hosts on AF_XDP: whole
# collectives in the lab, checked element by element.
#   xdp.sh [BUILD [ROUNDS]]     Needs root (77 without). About 2 minutes.
# A round runs every driver once, one after another, in rotating order; the output is medians of the
# rounds (default 3). Packets are those that crossed links. Processor time is that of all switches,
# all hosts and ksoftirqd, because the kernel processes many packets in the context of any running
# process. "switch" is the part of the switches, with such work for hosts, and of ksoftirqd. The
# ratio is af_xdp's processor time per packet to the driver's.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}")
rounds=${2:-3}
banyan=$build/bin/banyan
[ "$(id -u)" -eq 0 ] || { echo "xdp.sh: skipped: namespaces need root" >&2; exit 77; }
[ -x "$banyan" ] || { echo "xdp.sh: $banyan is missing: make" >&2; exit 1; }
dir=$(mktemp -d -t banyan-xdp-XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
drivers=(af_xdp xdp af_packet ring)
iterations=4
"$banyan" topo star --hosts 8 >"$dir/replication.json" &&
    "$banyan" topo star --hosts 4 --capable none >"$dir/relay.json" &&
    "$banyan" topo leafspine --capable leaf >"$dir/both.json" || exit 1

# From a report: packets, nanoseconds of processor time per packet, the switches' part of these,
# packets per second.
cat >"$dir/read.pl" <<'END'
my $report = decode_json(do { local $/; <STDIN> });
my ($packets, $hosts, $time, $ranks) = (0, 0, 0, 0);
$packets += $_->{ab}{counted_packets} + $_->{ba}{counted_packets} for @{$report->{links}};
for my $rank (@{$report->{jobs}[0]{ranks}}) {
    $ranks++;
    for my $result (@{$rank->{results}}) {
        # One operation of each kind was not timed.
        my $operations = $result->{operations} + 1;
        $hosts += $operations * ($result->{cpu_us} + $result->{inplace}{cpu_us});
        $time += $operations * ($result->{time_us} + $result->{inplace}{time_us});
    }
}
my $switches = 1e6 * ($report->{switch_seconds} + $report->{kernel_seconds});
printf "%.0f %.0f %.0f\n", 1e3 * ($hosts + $switches) / $packets, 1e3 * $switches / $packets, 1e6 * $packets / ($time / $ranks);
END
# one WHAT COLLECTIVE BYTES DRIVER: appends a line of figures to the driver's file.
one() {
    "$banyan" lab run "$dir/$1.json" -c "$2" -b "$3" -n $iterations -w 1 --driver "$4" --transport afxdp --report "$dir/report.json" >"$dir/out" 2>&1 &&
        perl -MJSON::PP "$dir/read.pl" <"$dir/report.json" >>"$dir/$1.$2.$4" && return
    tail -n 3 "$dir/out" >&2
    return 1
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

printf '# %-34s %-10s %10s %12s %10s %8s\n' case driver packets/s "ns a packet" switch ratio
while read -r what collective bytes text; do
    for ((round = 0; round < rounds; round++)); do
        for ((i = 0; i < ${#drivers[@]}; i++)); do
            one "$what" "$collective" "$bytes" "${drivers[(i + round) % ${#drivers[@]}]}" || exit 1
        done
    done
    base=$(awk '{print $1}' "$dir/$what.$collective.af_xdp" | median)
    for driver in "${drivers[@]}"; do
        file=$dir/$what.$collective.$driver
        cpu=$(awk '{print $1}' "$file" | median)
        printf '  %-34s %-10s %10d %12d %10d %8.2f\n' "$text" "$driver" "$(awk '{print $3}' "$file" | median)" "$cpu" \
            "$(awk '{print $2}' "$file" | median)" "$(awk -v a="$base" -v b="$cpu" 'BEGIN {print a / b}')"
    done
done <<'END'
replication broadcast 4M broadcast, star of 8
replication allreduce 2M allreduce, star of 8
relay broadcast 4M broadcast, a star that only relays
both allreduce 2M allreduce, 2 leaves, a relay
END
