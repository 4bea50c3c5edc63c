#!/usr/bin/perl
# Three hosts that share the defragment channel by a real Redis: as by a directory (cluster.t); and it falls silent,
# dies and comes back, forgets, lies.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util qw(max);
use Cluster;
use Test::More;
use Time::HiRes qw(time);

plan skip_all => 'built without hiredis' if (Petrel->new->run('check', '-o', 'defrag_registry=redis://h'))[1] =~ /without hiredis/;
my $redis = Cluster::redis() or plan skip_all => 'no Redis here (Debian: redis-tools)';
my @hosts = hosts($redis->url);
my ($one, $two, $three) = @hosts;
plain('redis', @hosts);
is_deeply [map { complaints($_) } @hosts], [], 'no host complains';
away('redis', @hosts);

# Silent (check 49): ordinary commands are answered while a claim hangs, which it does for 250 ms. A busy machine has
# more than one try.
my ($slowest, @silent);
my $client = Client->greeted($three->{port});
for (1 .. 30) {
    kill 'CONT', $redis->{pid};
    ok wait_figure($three, 'registry', 'up'), 'silent: the registry is up, and then says nothing';
    kill 'STOP', $redis->{pid};
    push @silent, make_set(2);
    ok send_part($three, $silent[-1], 1), 'silent: a part is taken';
    $slowest = max map { my $began = time; $client->say('NOOP'); time - $began } 1 .. 50;
    last if $slowest < 0.2;
}
cmp_ok $slowest, '<', 0.2, 'and a command is answered at once';
ok $three->wait_log(qr/does not answer, this host works alone: no answer in time/), 'it is told';
kill 'CONT', $redis->{pid};
ok wait_figure($three, 'alone', 0), 'when it goes on all is claimed';
send_part($one, $_, 2) for @silent;
is_deeply [sort +arrivals(scalar @silent)], [sort map { $_->{whole} } @silent], 'and joined';

# Down, and back later: what two hosts hold meanwhile finds itself (check 48).
my $set = make_set(3);
waits($one, $set, 1, 'down: before');
$redis->kill_redis;
my $later = make_set(2);
ok send_part($one, $later, 1) && send_part($two, $later, 2), 'down: parts are taken';
ok wait_figure($_, 'alone', 1), "and wait at $_->{name} alone" for $one, $two;
$redis->start_redis;
is_whole($later, 'when it is back they meet');
ok send_part($one, $set, $_), 'what was before goes on' for 2, 3;
is_whole($set, 'where it was');
is figure('alone', @hosts), 0, 'nobody is alone';

# Flushed in the middle (check 53): two owners; that costs the joining, and no part.
$set = make_set(2);
waits($one, $set, 1, 'flushed');
$redis->ask('FLUSHALL');
waits($two, $set, 2, 'flushed');
is scalar(arrivals()), 0, 'they do not meet';
is_deeply [sort +let_go(2, $one, $two)], [sort @{ $set->{parts} }], 'but arrive as they are';

# It lies (check 51): sends three to two, and two to three. A fragment from a host is never sent on.
$set = make_set(2);
$redis->ask('FLUSHALL');
waits($two, $set, 1, 'lies');
my ($key) = $redis->ask('KEYS df:*') =~ /(df:[0-9a-f]{64})/;
$two->stop;
delete $two->{client};
ok send_part($three, $set, 2), 'the other part';
ok $three->wait_log(qr/host=two, status=redirected/), 'is sent to the owner';
$redis->ask("SET $key three");
my ($sent, $held) = map { figure($_, $three) } qw(redirected held);
# If it came before the owner is told of the lie, they would meet.
$three->run(qw(queue hold --all));
$two->start;
ok wait_figure($two, 'redirected', 1), 'who is told that it is the other';
$three->run(qw(queue release --all));
ok Petrel::wait_for(sub { figure('messages', $two, $three) == 2 && fragments($two)->{waited} >= 2 }), 'now each has the other one';
is fragments($three)->{redirected}, $sent, 'and there they stay';
is_deeply [sort +let_go(2, $two, $three)], [sort @{ $set->{parts} }], 'to arrive as they are';

ends('redis', @hosts);
is $redis->ask('KEYS dfhost:*'), "*0\r\n", 'who ends takes his name away';
done_testing();
