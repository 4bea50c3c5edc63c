#!/usr/bin/perl
# Storms over three hosts that share a rate: at random Redis is killed, hangs, forgets everything each second, or fails over
# to a replica, and a host is killed or hangs. Nothing is lost, mail flows, and the next hop sees no more than the limit.
#
# ROUNDS=50 is the long form; SEED=n repeats the choices, not the interleaving.
use strict;
use warnings;
use Test::More;
use lib 't/e2e';
use Client;
use Cluster;
use List::Util qw(shuffle);
use Petrel;
use Sink;
use Time::HiRes qw(sleep stat time);

use constant { RATE => 5, PERIOD => 5, WINDOW => 20 };
my $rounds = $ENV{ROUNDS} || 3;
my @redis = map { Cluster::redis('') // plan skip_all => 'no redis-server here (Debian: redis-tools)' } 1, 2;
plan skip_all => 'built without hiredis' unless `$Petrel::binary version 2>&1` =~ /hiredis/;

my $sink = Sink->start;
my $to = "* smtp://127.0.0.1:$sink->{port}?recipients=1";
my @hosts = map {
    Petrel->new(cluster => 'mail', cluster_host => "host$_", cluster_redis => join(', ', map { $_->url } @redis),
        routes => "$to&rate=" . RATE . '/s', minimal_backoff_time => '1s', maximal_backoff_time => '2s')->start
} 1 .. 3;
sub follow { my ($replica, $primary) = @_; return $replica->ask("REPLICAOF 127.0.0.1 $primary->{port}") }
follow(@redis[1, 0]);

# Each host has more to send than the next round needs. A recipient is a transaction.
my (%want, $number);

sub submit {
    my ($host, $count) = @_;
    my $client = Client->greeted($host->{port}) or return;
    my @to = map { 'r' . ++$number . '@y.test' } 1 .. $count;
    $client->send(from => 'a@x.test', to => \@to, data => "Subject: m\r\n\r\nm\r\n") =~ /^250/ and @want{@to} = (1) x @to;
    return $client->quit;
}
my @losses; # moments at which the bank forgot
sub forgets { push @losses, time; return }
sub pause { my $seconds = shift; sleep $seconds; return }

# The storms, by name. Each ends with all as it was.
my %storms = (
    'Redis is killed' => sub { $redis[0]->kill_redis; pause(3); $redis[0]->start_redis; forgets(); follow(@redis[1, 0]) },
    'Redis hangs' => sub { kill 'STOP', $redis[0]{pid}; pause($rounds > 10 ? 30 : 6); kill 'CONT', $redis[0]{pid} },
    'Redis is emptied each second' => sub { for (1 .. 6) { $redis[0]->ask('FLUSHALL'); forgets(); pause(1) } },
    'Redis fails over' => sub {
        # The replica takes over with what it knew; the old primary comes back as a replica of it.
        forgets();
        $redis[0]->kill_redis;
        $redis[1]->ask('REPLICAOF NO ONE');
        $redis[0]->start_redis;
        follow(@redis);
        @redis = reverse @redis;
        pause(3);
    },
    'a host is killed' => sub { my $host = shift; $host->kill9; pause(2); $host->start },
    'a host hangs' => sub { my $host = shift; kill 'STOP', $host->{pid}; pause(12); kill 'CONT', $host->{pid} },
);
my @names;
for my $round (1 .. $rounds) {
    @names = shuffle sort keys %storms unless @names;
    my ($name, $host) = (shift @names, $hosts[ rand @hosts ]);
    submit($_, 40) for @hosts;
    my ($before, $began) = ($sink->count('messages'), time);
    $storms{$name}->($host);
    ok Petrel::wait_for(sub { $sink->count('messages') >= $before + 20 }), "round $round: $name, mail flows";
    note sprintf '%.1f s, %d messages', time - $began, $sink->count('messages') - $before;
}
# The rest goes at once.
my $end = time;
$_->configure(routes => $to), kill 'HUP', $_->{pid} for @hosts;
ok $_->wait_empty, 'nothing is left' for @hosts;
$_->stop for @hosts;

my (%got, @times);
for my $file (glob "$sink->{base}/*/*.envelope") {
    push @times, (stat $file =~ s/envelope\z/eml/r)[9];
    $got{$_}++ for Petrel::slurp($file) =~ /<(r\d+\@y\.test)>/g;
}
is_deeply [grep { !$got{$_} } sort keys %want], [], 'nothing is lost: ' . keys(%want) . ' recipients';
note scalar(grep { $_ > 1 } values %got) . ' of them came twice';

# Any WINDOW has its part of the rate, one for the burst and one for each host, what a bank that forgot gives once more
# (twice, when it forgets again and again), and two seconds for a loaded machine, which lets deliveries catch up.
@times = grep { $_ < $end } sort { $a <=> $b } @times;
my ($from, %most) = (0);
for my $to (0 .. $#times) {
    $from++ while $times[$to] - $times[$from] > WINDOW;
    my $losses = grep { $_ > $times[$from] - PERIOD && $_ <= $times[$to] } @losses;
    $losses = 2 if $losses > 2;
    my $count = $to - $from + 1;
    $most{$losses} = $count if $count > ($most{$losses} // 0);
}
for my $losses (sort keys %most) {
    my $bound = RATE * (WINDOW + PERIOD * $losses + 2) + 1 + @hosts;
    cmp_ok $most{$losses}, '<=', $bound, "at most $most{$losses} in " . WINDOW . " s in which the bank forgot $losses times";
}
done_testing;
