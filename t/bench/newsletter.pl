#!/usr/bin/perl
# A message with a million recipients, handed to sendmail(1): how long until all have it, and the most memory that the
# daemon has meanwhile; then to a next hop that is dead. RECIPIENTS=N for another number. Nothing is asserted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my $count = $ENV{RECIPIENTS} || 1_000_000;
my ($bar, $sink, $work) = (32, Bench::sink(), Bench::work_dir()); # MB
$| = 1;

open my $list, '>', "$work/list" or die;
print $list "To: list\@a.test\nBcc: u0\@b.test", (map { sprintf ",\n u%d\@d%d.example", $_, $_ % 997 } 1 .. $count - 2), "\n\n", "news\n" x 200;
close $list or die;

printf "%d recipients; the bar is %d MB\n\n%-6s %9s %9s %9s %9s\n", $count, $bar, 'hop', 'taken s', 'all s', 'idle MB', 'peak MB';
for my $hop ([ live => "* smtp://127.0.0.1:$sink->{port}" ], [ dead => '* smtp://127.0.0.1:1' ]) {
    my $server = Petrel->new(dir => $work, routes => $hop->[1], log_level => 'warning')->start;
    my $idle = Bench::status($server->{pid}, 'VmRSS') * 1024 / 1e6;
    my $start = time;
    system("$Petrel::binary -c $work/petrel.conf sendmail -t -f list\@a.test < $work/list") == 0 or die 'not taken';
    my $taken = time - $start;
    my $waits = $hop->[0] eq 'live' ? sub { $server->queued > 0 } : sub { $server->status !~ /"incoming": 0,/ };
    sleep 0.1 while $waits->() && time < $start + 300;
    my $peak = Bench::status($server->{pid}, 'VmHWM') * 1024 / 1e6;
    printf "%-6s %9.1f %9.1f %9.1f %9.1f  %s\n", $hop->[0], $taken, time - $start, $idle, $peak, $peak > $bar ? "more than $bar MB" : 'ok';
    Petrel::reap($server->{pid}, 'KILL');
    system 'rm', '-rf', "$work/spool", "$work/log";
}
