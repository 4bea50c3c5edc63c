#!/usr/bin/perl
# Reads gcovr's --csv, and prints what is covered by room (folder), and the files below 95 % of lines.
use strict;
use warnings;

my (%rooms, @low);
<STDIN>; # names of the columns
while (<STDIN>) {
    my ($file, $lines, $lines_reached, undef, $branches, $branches_reached) = split /,/;
    my ($room) = $file =~ m{^(.*)/} ? $1 : '.';
    for my $sum ($rooms{$room} //= [0, 0, 0, 0], $rooms{'~ all'} //= [0, 0, 0, 0]) {
        $sum->[0] += $lines_reached;
        $sum->[1] += $lines;
        $sum->[2] += $branches_reached;
        $sum->[3] += $branches;
    }
    push @low, [$lines - $lines_reached, $lines, $file] if $lines_reached < 0.95 * $lines;
}
die "no counters: gcovr printed no file\n" unless %rooms;

sub share {
    my ($reached, $all) = @_;
    return sprintf '%5.1f %% of %6d', $all ? 100 * $reached / $all : 100, $all;
}

printf "%-20s %-18s   %s\n", 'room', 'lines', 'branches';
for my $room (sort keys %rooms) {
    my @sum = @{$rooms{$room}};
    printf "%-20s %s   %s\n", $room =~ s/^~ //r, share(@sum[0, 1]), share(@sum[2, 3]);
}
print "\nbelow 95 % of lines:\n" if @low;
printf "%5d of %5d lines not reached  %s\n", @$_ for sort { $b->[0] <=> $a->[0] } @low;
