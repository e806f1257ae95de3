#!/usr/bin/perl
# Compares pages with what their commands print: documents.pl BUILD FOLDER PAGE...
# See documents.sh. FOLDER/counts receives how many comparisons passed and failed.
#
# A transcript is a block of code with lines that begin with "$ ". Its commands run in order, those of
# a page in one folder, where tests/ is the repository's. What stands under a command is compared with
# its output, line by line; a line "..." stands for any lines, and where nothing stands there the
# command only has to succeed. Blanks count as one; times in ms, MiB of memory, and cookies and hashes
# of tables are masked. `cat FILE` of a file that does not exist makes it of what is shown.
#
# Marks are comments, before a block or table:
#   <!-- not compared: REASON -->         this block or table is not compared
#   <!-- tables not compared: REASON -->  nor are further tables of the page without a mark
#   <!-- setup: COMMAND -->               runs before the next command
#   <!-- table COLUMNS: COMMAND -->       prints the table that follows; these columns (from 1; 2-12
#                                         or 1,3) are compared
#   <!-- row KEY: COMMAND -->             prints all figures of the row whose first cell is KEY, or of
#                                         row 2 for #2; "not compared, REASON" in place of COMMAND. A
#                                         row ends where the header has an empty cell: a table may
#                                         stand in two halves
#   <!-- each: COMMAND -->                the same for all rows: % in the command is a row's key
#   <!-- columns NAME, NAME: -->          the columns that rows are compared in; default all
# A table that has cells which begin with a digit, and no mark, is a failure.
use strict;
use warnings;

my ($build, $folder, @pages) = @ARGV;
my ($passed, $failed) = (0, 0);

sub pass { print "  PASS   $_[0]\n"; $passed++; }

sub fail {
    my ($what, @lines) = @_;
    print "  FAIL   $what\n", map { "         | $_\n" } @lines;
    $failed++;
}

# ---- pages ----

# A block of code that has ended: steps of a transcript, or a note.
sub end_block {
    my ($state) = @_;
    my @lines = @{$state->{code}};
    my $first = $state->{first};
    $state->{code} = [];
    return unless grep { /^\$ / } @lines;
    if (defined $state->{skip}) {
        push @{$state->{steps}}, {kind => 'note', line => $first, text => delete $state->{skip}};
        return;
    }
    my $step;
    for my $i (0 .. $#lines) {
        if ($lines[$i] =~ /^\$ (.*)/) {
            $step = {kind => 'run', line => $first + $i, command => $1, text => []};
            push @{$state->{steps}}, $step;
        } elsif ($step) {
            push @{$step->{text}}, $lines[$i];
        }
    }
}

sub end_table {
    my ($state) = @_;
    my @rows = @{$state->{table}};
    my $step = {line => $state->{first_row}, rows => [map { [cells($_)] } @rows]};
    $state->{table} = [];
    if ($state->{command}) {
        @$step{qw(kind columns command)} = ('table', @{delete $state->{command}});
    } elsif (@{$state->{rows}}) {
        @$step{qw(kind columns commands)} = ('rows', delete $state->{columns}, $state->{rows});
        $state->{rows} = [];
    } elsif (defined $state->{skip} || defined $state->{skip_tables}) {
        @$step{qw(kind text)} = ('note', delete $state->{skip} // $state->{skip_tables});
    } elsif (grep { /\|\s*\**[0-9]/ } @rows[1 .. $#rows]) {
        @$step{qw(kind text)} = ('wrong', 'a table with figures and without a mark: documents.pl has them');
    } else {
        return;
    }
    push @{$state->{steps}}, $step;
}

sub cells {
    my ($row) = @_;
    $row =~ s/^\|\s*|\s*\|\s*$//g;
    return split /\s*\|\s*/, $row, -1;
}

sub read_mark {
    my ($state, $line, $mark) = @_;
    my ($key, $value) = split /:\s*/, $mark, 2;

    if ($key eq 'not compared') { $state->{skip} = $value }
    elsif ($key eq 'tables not compared') { $state->{skip_tables} = $value }
    elsif ($key eq 'setup') { push @{$state->{steps}}, {kind => 'run', line => $line, command => $value, text => []} }
    elsif ($key =~ /^table ([0-9,-]+)$/) { $state->{command} = [$1, $value] }
    elsif ($key =~ /^columns (.+)$/) { $state->{columns} = $1 }
    elsif ($key eq 'each') { push @{$state->{rows}}, [undef, $value] }
    elsif ($key =~ /^row (.+)$/) { push @{$state->{rows}}, [$1, $value] }
    else { push @{$state->{steps}}, {kind => 'wrong', line => $line, text => "no such mark: $key"} }
}

# The steps of a page.
sub read_page {
    my ($page) = @_;
    my $state = {steps => [], code => [], table => [], rows => []};
    my ($fenced, $blanks) = (0, 0);

    open(my $file, '<', $page) or die "$page: $!\n";
    while (my $text = <$file>) {
        chomp $text;
        if ($text =~ /^```/) {
            end_block($state) if @{$state->{code}};
            end_table($state) if @{$state->{table}};
            $fenced = !$fenced;
            $blanks = 0;
        } elsif ($fenced || $text =~ /^    /) {
            end_table($state) if @{$state->{table}};
            $state->{first} = $. unless @{$state->{code}};
            push @{$state->{code}}, ('') x $blanks if @{$state->{code}};
            push @{$state->{code}}, $fenced ? $text : substr($text, 4);
            $blanks = 0;
        } elsif ($text =~ /^\s*$/ && @{$state->{code}}) {
            $blanks++;
        } else {
            end_block($state) if @{$state->{code}};
            $blanks = 0;
            if ($text =~ /^\|/) {
                $state->{first_row} = $. unless @{$state->{table}};
                push @{$state->{table}}, $text;
                next;
            }
            end_table($state) if @{$state->{table}};
            if ($text =~ /^<!-- /) {
                $text .= ' ' . (<$file> // die "$page: a comment has no end\n") =~ s/^\s+|\s+$//gr while $text !~ /-->/;
                read_mark($state, $., $1) if $text =~ /^<!-- (.*?)\s*-->$/;
            }
        }
    }
    close $file;
    end_block($state) if @{$state->{code}};
    end_table($state) if @{$state->{table}};
    return @{$state->{steps}};
}

# ---- comparing ----

# What a command prints, both streams, and its exit status.
sub output_of {
    my ($command, $place) = @_;
    my $pid = open(my $pipe, '-|');

    die "fork: $!\n" unless defined $pid;
    if ($pid == 0) {
        chdir $place or die "$place: $!\n";
        delete $ENV{$_} for grep { /^BANYAN_/ } keys %ENV;
        $ENV{PATH} = "$build/bin:$ENV{PATH}";
        $ENV{BUILD} = $build;
        open(STDIN, '<', '/dev/null');
        open(STDERR, '>&', \*STDOUT);
        exec('timeout', '1500', 'bash', '-o', 'pipefail', '-c', $command) or die "bash: $!\n";
    }
    my @lines = <$pipe>;
    close $pipe;
    chomp @lines;
    return ($? >> 8, @lines);
}

# A line as it is compared.
sub normal {
    my ($line) = @_;
    $line =~ s/[0-9][0-9.e+-]* ms\b/T ms/g;
    $line =~ s/memory [0-9.]+ MiB/memory M MiB/;
    $line =~ s/(cookie|hash) [0-9a-f]{16}/$1 X/g;
    $line =~ s/\s+/ /g;
    $line =~ s/^( planned in T ms) .*/$1/;
    $line =~ s/^ | $//g;
    return $line;
}

# The first line of the page that the output does not have, where it should be; undef where they agree.
sub difference {
    my ($page, $printed) = @_;
    my @want = map { normal($_) } @$page;
    my @have = map { normal($_) } @$printed;
    my ($at, $loose) = (0, 0);

    pop @want while @want && $want[-1] eq '';
    pop @have while @have && $have[-1] eq '';
    for my $i (0 .. $#want) {
        if ($want[$i] eq '...') {
            $loose = 1;
            next;
        }
        if ($loose) {
            $at++ while $at < @have && $have[$at] ne $want[$i];
        }
        return ($want[$i], $have[$at] // '(the end)') if $at >= @have || $have[$at] ne $want[$i];
        $at++;
        $loose = 0;
    }
    return ('(the end)', $have[$at]) if $at < @have && !$loose;
    return;
}

sub run_step {
    my ($step, $what, $place) = @_;
    my $shown = grep { /\S/ } @{$step->{text}};

    if ($step->{command} =~ /^cat (\S+)$/ && $1 !~ m{/} && !-e "$place/$1") {
        open(my $file, '>', "$place/$1") or die "$place/$1: $!\n";
        print $file map { "$_\n" } @{$step->{text}};
        close $file;
        return;
    }
    my ($status, @lines) = output_of($step->{command}, $place);
    my ($want, $have) = $shown ? difference($step->{text}, \@lines) : ();
    if ($status != 0) {
        fail($what, "exit status $status", @lines);
    } elsif (defined $want) {
        fail($what, "the page: $want", "printed: $have");
    } else {
        pass($what);
    }
}

# "2-4,7" as indices.
sub columns_of {
    my ($text, $count) = @_;
    return (1 .. $count - 1) unless defined $text;
    return map { /^(\d+)-(\d+)$/ ? ($1 - 1 .. $2 - 1) : ($_ - 1) } split /,/, $text;
}

# The table that the command prints, cell by cell.
sub compare_table {
    my ($step, $what, $place) = @_;
    my ($status, @lines) = output_of($step->{command}, $place);
    my @printed = map { [cells($_)] } grep { /^\|/ } @lines;
    my @wrong;

    push @wrong, "exit status $status", @lines if $status != 0;
    push @wrong, @{$step->{rows}} . " rows, printed are " . @printed if @printed != @{$step->{rows}};
    for my $i (0 .. $#{$step->{rows}}) {
        my ($row, $other) = ($step->{rows}[$i], $printed[$i] // []);
        for my $c (columns_of($step->{columns}, scalar @$row)) {
            my ($want, $have) = ($row->[$c] // '', $other->[$c] // '');
            next if $want =~ /^:?-+:?$/;
            push @wrong, "$row->[0]: the page: $want; printed: $have" if $want ne $have;
        }
    }
    @wrong ? fail($what, @wrong) : pass($what);
}

# The figures of a text: 7, 40/7, 0.97, 1,024.
sub figures_of {
    my ($text) = @_;
    my @figures = $text =~ m{[0-9]+(?:[.,/][0-9]+)*}g;
    s/,(?=[0-9]{3})//g for @figures;
    return @figures;
}

# The rows of a table by their first cell, and by "#number": the cells whose headers are wanted.
sub rows_of {
    my ($step) = @_;
    my ($header, undef, @rows) = @{$step->{rows}};
    my %wanted = map { $_ => 1 } split /,\s*/, $step->{columns} // '';
    my (%cells, @order);

    for my $i (0 .. $#rows) {
        my $key = '';
        for my $c (0 .. $#{$rows[$i]}) {
            if ($c == 0 || $header->[$c - 1] eq '') {
                $key = $rows[$i][$c];
                $key = '#' . ($i + 1) if exists $cells{$key};
                push @order, $key if $key ne '';
                $cells{$key} = [];
                $cells{'#' . ($i + 1)} = $cells{$key} if $c == 0;
            } elsif (!%wanted || $wanted{$header->[$c]}) {
                push @{$cells{$key}}, $rows[$i][$c];
            }
        }
    }
    return (\%cells, @order);
}

# The figures of rows, each of which its command must print.
sub compare_rows {
    my ($step, $what, $place) = @_;
    my ($cells, @order) = rows_of($step);
    my (%done, @wrong);
    my @commands = map { my $c = $_; defined $c->[0] ? $c : map { [$_, $c->[1] =~ s/%/$_/gr] } @order } @{$step->{commands}};

    for (@commands) {
        my ($key, $command) = @$_;
        my $row = $cells->{$key};
        if (!$row) {
            push @wrong, "no row '$key'";
            next;
        }
        $done{$row} = 1;
        if ($command =~ /^not compared, (.+)/) {
            print "  note   $what: row '$key' is not compared: $1\n";
            next;
        }
        my ($status, @lines) = output_of($command, $place);
        my %printed = map { $_ => 1 } figures_of(join(' ', @lines));
        push @wrong, "$key: exit status $status", @lines if $status != 0;
        push @wrong, map { "$key: the page has $_; the command prints no such figure" }
            grep { !$printed{$_} } map { figures_of($_) } @$row;
    }
    push @wrong, map { "row '$_' has no mark" } grep { !$done{$cells->{$_}} } @order;
    @wrong ? fail($what, @wrong) : pass($what);
}

for my $page (@pages) {
    my $place = "$folder/" . $page =~ s{/}{_}gr;
    my $root = `pwd`;
    chomp $root;
    mkdir $place or die "$place: $!\n";
    symlink "$root/tests", "$place/tests";
    for my $step (read_page($page)) {
        my $what = "$page:$step->{line}: " . ($step->{command} // $step->{kind});
        if ($step->{kind} eq 'note') { print "  note   $page:$step->{line}: not compared: $step->{text}\n" }
        elsif ($step->{kind} eq 'wrong') { fail("$page:$step->{line}: $step->{text}") }
        elsif ($step->{kind} eq 'run') { run_step($step, $what, $place) }
        elsif ($step->{kind} eq 'table') { compare_table($step, $what, $place) }
        else { compare_rows($step, $what, $place) }
    }
}
open(my $counts, '>', "$folder/counts") or die "$folder/counts: $!\n";
print $counts "$passed $failed\n";
close $counts;
exit($failed > 0);
