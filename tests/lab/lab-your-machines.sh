#!/usr/bin/env bash
# Follows docs/your-machines.md word by word: two hosts and a box in namespaces, whose interfaces have
# the page's names and no addresses. Its blocks run on the machine that the comment before each
# names, and what they print is compared with what the page shows.
#   lab-your-machines.sh [BUILD]      Needs root (77 without). Exit 0: all passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lab/lab-common.sh disable=SC2154
. tests/lab/lab-common.sh lab-your-machines "${1:-build/release}"
need_root
page=docs/your-machines.md
me=byy$$
cleanup_more() {
    local machine pid
    for machine in host0 host1 box; do
        for pid in $(ip netns pids "$me-$machine" 2>/dev/null); do kill "$pid" 2>/dev/null; done
        ip netns delete "$me-$machine" 2>/dev/null
    done
}
build_machines() {
    local machine
    for machine in host0 host1 box; do
        ip netns add "$me-$machine" && ip -n "$me-$machine" link set lo up || return 1
        mkdir "$dir/$machine"
        ip netns exec "$me-$machine" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
    done
    ip -n "$me-host0" link add enp1s0 type veth peer name enp65s0f0 netns "$me-box" &&
        ip -n "$me-host1" link add enp1s0 type veth peer name enp65s0f1 netns "$me-box"
}
# The machines' ssh and scp: a command runs in the namespace and folder of its machine.
mkdir "$dir/bin"
cat >"$dir/bin/ssh" <<SSH
#!/bin/sh
machine=\$1
shift
cd "$dir/\$machine" && exec ip netns exec "$me-\$machine" sh -c "\$*"
SSH
cat >"$dir/bin/scp" <<SCP
#!/bin/sh
exec cp "\$1" "$dir/\${2%:}/"
SCP
chmod +x "$dir/bin/ssh" "$dir/bin/scp"
export PATH=$dir/bin:$build/bin:$PATH
check "two hosts and a box" build_machines
perl - "$page" "$dir" "$me" <<'PERL'
use strict;
use warnings;
my ($page, $dir, $me) = @ARGV;
my ($passed, $failed, $machine, $fenced, @lines) = (0, 0);
sub result {
    my ($right, $what, @why) = @_;
    print $right ? "  PASS   $what\n" : "  FAIL   $what\n", map { "         | $_\n" } $right ? () : @why;
    $right ? $passed++ : $failed++;
}
# A line of the page as a pattern: blanks count as one, "..." stands for anything in its line.
sub pattern {
    my ($line) = @_;
    return join '.*', map { join '\s+', map { quotemeta } split /\s+/, $_, -1 } split /\s*\.\.\.\s*/, $line, -1;
}
sub run {
    my ($on, $number, $command, @expected) = @_;
    my $status_wanted = 0;
    $status_wanted = $1, pop @expected if @expected && $expected[-1] =~ /^\[exit status (\d+)\]$/;
    my $exact = @expected > 0;
    open my $script, '>', "$dir/step" or die $!;
    print $script "cd '$dir/$on' || exit 99\n$command\n";
    close $script;
    my $status = system "timeout 120 ip netns exec $me-$on bash '$dir/step' >'$dir/step.out' 2>&1";
    open my $file, '<', "$dir/step.out" or die $!;
    chomp(my @got = <$file>);
    my $wanted = join "\n", map { $_ eq '...' ? '(?:.*\n?)*?' : '\s*' . pattern($_) . '\s*\n' } @expected;
    $wanted =~ s/\n//g;
    my $text = join '', map { "$_\n" } @got;
    my $right = $status >> 8 == $status_wanted && (!$exact || $text =~ /^$wanted$/);
    result($right, "$on: $command", "$page:$number: exit status " . ($status >> 8) . ", output:", @got);
}
open my $file, '<', $page or die "$page: $!\n";
my ($unmarked, $blocks) = (0, 0);
while (my $line = <$file>) {
    chomp $line;
    if ($line =~ /^<!-- not compared: lab-your-machines.sh runs it on (\w+) -->$/) {
        $machine = $1;
    } elsif ($line =~ /^<!-- not compared: /) {
        $machine = '';
    } elsif ($line =~ /^```/) {
        $fenced = !$fenced;
        if ($fenced) {
            $unmarked++ unless defined $machine;
            @lines = ();
            next;
        }
        my @steps;
        for (@lines) {
            if ($_->[1] =~ /^\$ (.*)/) { push @steps, [$_->[0], $1] }
            elsif (@steps) { push @{$steps[-1]}, $_->[1] }
        }
        if ($machine) {
            $blocks++;
            run($machine, @$_) for @steps;
        }
        undef $machine;
    } elsif ($fenced) {
        push @lines, [$., $line];
    }
}
result($unmarked == 0 && $blocks >= 8, "each block of the page is run, or says why not", "$unmarked blocks without a mark, $blocks run");
open my $counts, '>', "$dir/counts" or die $!;
print $counts "$passed $failed\n";
PERL
read -r good bad <"$dir/counts"
passed=$((passed + good))
failed=$((failed + bad))
if command -v systemd-analyze >/dev/null; then
    for unit in firmware/linux/banyan-switchd.service control/service/daemon/banyand.service; do
        sed "s|/usr/local/bin/|$build/bin/|" "$unit" >"$dir/$(basename $unit)"
        check "systemd accepts $(basename $unit)" bash -c "systemd-analyze verify --man=no '$dir/$(basename $unit)' >'$dir/verify' 2>&1 && ! grep -E 'Unknown|Failed to parse' '$dir/verify'"
    done
fi
finish
