#!/usr/bin/perl
# Many clients, each of which sends the next message as soon as the last one is taken: to a next hop that takes all, and to
# one that is dead; then 50 to a fast site, alone and beside 50 to one that takes 100 ms a message. Flat is wanted: what 50 clients get, 900 get together, in the same memory. Short runs that end before
# the journal is full show nothing: SECONDS_EACH=60 for figures. Nothing is asserted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use List::Util qw(max);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my $seconds = $ENV{SECONDS_EACH} || 15;
my @clients = (50, 200, 500, 900);
my %bar = (share => 0.9, memory => 16, times => 3); # of what 50 get; MB; p99 in times of clients/throughput
my $sink = Bench::sink();
my $work = Bench::work_dir();

sub server {
    my $routes = shift;
    my $server = Petrel->new(dir => $work, routes => $routes, server_session_limit => 1000, client_session_limit => 1000, log_level => 'warning');
    $server->start;
    return $server;
}

sub load_on {
    my ($server, $clients, $log, @options) = @_;
    return Petrel::spawn($log, "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$server->{port}", '--connections', $clients,
        '--messages', 8_000_000, '--pipeline', @options);
}

# Clients that send until the time is over: { per_second, p50, p99, peak }. beside: a domain that 50 others send to.
sub flood {
    my ($routes, $clients, $beside) = @_;
    my $server = server($routes);
    my $others = $beside && load_on($server, 50, "$work/others.log", '--rcpt', "u%d\@$beside");
    my ($log, $peak, $end) = ("$work/load.log", 0, time + $seconds);
    my $pid = load_on($server, $clients, $log);
    while (time < $end) { sleep 0.25; $peak = max($peak, Bench::status($server->{pid}, 'VmRSS') * 1024 / 1e6); }
    Petrel::reap($_, 'TERM', 60) for $pid, $others || ();
    my %figure = Petrel::slurp($log) =~ /"(per_second|p50|p99)": ([\d.]+)/g;
    Petrel::reap($server->{pid}, 'KILL'); # a stop would wait for all that is still to become files
    system 'rm', '-rf', "$work/spool", "$work/log";
    return { %figure, peak => $peak };
}

sub row {
    my ($name, $clients, $run, $base) = @_;
    my $share = $run->{per_second} / ($base->{per_second} || 1e-9);
    my $times = $run->{p99} / 1000 * $run->{per_second} / $clients;
    my @missed = (
        $share < $bar{share} ? "throughput below $bar{share}" : (), $run->{peak} > $bar{memory} ? "more than $bar{memory} MB" : (),
        $times > $bar{times} ? "p99 more than $bar{times} times its share" : ());
    printf "%-6s %7d %9.0f %6.2fx %8.1f %8.1f %9.1f  %s\n", $name, $clients, $run->{per_second}, $share, $run->{p50}, $run->{p99}, $run->{peak}, join ', ', @missed;
    return;
}

$| = 1;
print "Overload: 1 KiB messages, ${seconds}s each, load, server and sink on the same machine\n\n";
printf "%-6s %7s %9s %7s %8s %8s %9s\n", 'hop', 'clients', 'taken/s', 'of 50', 'p50 ms', 'p99 ms', 'peak MB';
for my $hop ([ live => "* smtp://127.0.0.1:$sink->{port}" ], [ dead => '* smtp://127.0.0.1:1' ]) {
    my $base;
    for my $clients (@clients) {
        my $run = flood($hop->[1], $clients);
        $base //= $run;
        row($hop->[0], $clients, $run, $base);
    }
}
my $slow = Bench::sink('--delay', 'dot:100');
my $both = "slow.example smtp://127.0.0.1:$slow->{port}, * smtp://127.0.0.1:$sink->{port}";
my $alone = flood($both, 50);
row('fast', 50, $alone, $alone);
row('beside', 50, flood($both, 50, 'slow.example'), $alone);
print "\n";
Petrel::reap($_->{pid}, 'TERM') for $sink, $slow;
