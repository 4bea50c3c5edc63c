#!/usr/bin/perl
# The cost of a group for a host in it: intake at full speed; and at a steady speed CPU a message, and how long mail
# waits in the queue before its delivery begins (p99, by the log). With Redis, without it (nobody answers), and without a
# group, in turn, ROUNDS times. The route has a rate that is never reached, so the bank divides each message's site.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Cluster;
use JSON::PP ();

my $messages = $ENV{MESSAGES} || 20000; # of each run at full speed: some periods of the bank
my $speed = $ENV{SPEED} || 200; # messages a second, steady
my $seconds = $ENV{SECONDS} || 15;
my $rounds = $ENV{ROUNDS} || 3;
my $redis = Cluster::redis('') or die "no redis-server\n";
my %kinds = (
    'no group' => [],
    'Redis up' => [cluster => 'bench', cluster_host => 'host1', cluster_redis => $redis->url],
    'Redis away' => [cluster => 'bench', cluster_host => 'host1', cluster_redis => 'redis://127.0.0.1:' . Petrel::free_port()],
);
$| = 1;

sub measure {
    my @settings = @_;
    my $sink = Bench::sink();
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?rate=1000000/s", client_session_limit => 1000, @settings)->start;
    my $bank = sub { my $g = JSON::PP::decode_json($petrel->status)->{group}; return $g ? $g->{bank} : 'none' };
    my $want = !@settings ? 'none' : $settings[-1] eq $redis->url ? 'up' : 'away';
    Petrel::wait_for(sub { $bank->() eq $want }) or die "the bank is not $want\n";
    my $run = sub { return Bench::relay($sink, $petrel->{port}, $petrel->{pid}, sub { }, size => 1024, connections => 20, @_) };
    $run->(messages => $messages); # the first warms it
    my $in = $run->(messages => $messages)->{in};
    $run->(messages => $speed * 10, rate => $speed); # two periods of the bank
    my $from = length $petrel->log;
    my $figure = $run->(messages => $speed * $seconds, rate => $speed);
    # delays=a/b/c/d: b is the wait in the queue.
    my @waits = sort { $a <=> $b } substr($petrel->log, $from) =~ m{delays=[\d.]+/([\d.]+)/}g;
    @$figure{qw(in wait)} = ($in, 1000 * ($waits[0.99 * @waits] // 0));
    $petrel->stop;
    Petrel::reap($sink->{pid}, 'TERM');
    return $figure;
}

my %figures;
for (1 .. $rounds) { push @{ $figures{$_} }, measure(@{ $kinds{$_} }) for sort keys %kinds }
my %median;
for my $kind (keys %kinds) { for my $what (qw(in cpu wait)) { $median{$kind}{$what} = Bench::median(map { $_->{$what} } @{ $figures{$kind} }) } }
printf "%-12s %6.0f messages/s in, %6.3f ms CPU a message, %4.0f ms in the queue at p99\n", $_, @{ $median{$_} }{qw(in cpu wait)} for sort keys %kinds;
sub bar { my ($what, $value, $good) = @_; return printf "%-60s %7.3f %s\n", $what, $value, $good ? 'ok' : 'MISSED' }
for my $kind ('Redis up', 'Redis away') {
    my $in = $median{$kind}{in} / $median{'no group'}{in};
    bar("$kind: intake to that without a group, >= 0.95", $in, $in >= 0.95);
    my $cpu = $median{$kind}{cpu} / $median{'no group'}{cpu};
    bar("$kind: CPU a message, the same, <= 1.05", $cpu, $cpu <= 1.05);
    my $later = $median{$kind}{wait} - $median{'no group'}{wait};
    bar("$kind: deliveries begin later, ms at p99" . ($kind eq 'Redis away' ? ', <= 10' : ''), $later, $kind ne 'Redis away' || $later <= 10);
}
