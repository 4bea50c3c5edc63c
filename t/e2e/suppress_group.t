#!/usr/bin/perl
# Hosts of a group share the list of suppressed addresses by a real Redis: a bounce at one, an operator at one, a host that was
# down, a Redis that is killed and has lost all, a new host, and a removal while another host is away.
use lib 't/e2e';
use E2E;
use Cluster;

my $redis = Cluster::redis('') or plan skip_all => 'no redis-server here (Debian: redis-tools)';
plan skip_all => 'built without hiredis' unless `$Petrel::binary version 2>&1` =~ /hiredis/;
my $remote = Petrel->new(suppress => 'yes', routes => '* smtp://127.0.0.1:9')->start; # which refuses with 5.1.1
$remote->run(qw(suppress add dead@away.test));

sub host { my ($name) = @_; return Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => $redis->url, suppress => 'yes', routes => "away.test smtp://127.0.0.1:$remote->{port}\n * discard")->start }
my @hosts = map { host("host$_") } 1, 2;
sub rcpt { my ($host, $to) = @_; return ($host->dialogue('EHLO c.test', 'MAIL FROM:<a@here.test>', "RCPT TO:<$to>", 'QUIT'))[3] }
sub known { my ($to, @at) = @_; return Petrel::wait_for(sub { @at == grep { rcpt($_, $to) =~ /^550 5\.1\.1 the address is suppressed/ } @at }) }
sub taken { my ($to, @at) = @_; return Petrel::wait_for(sub { @at == grep { rcpt($_, $to) =~ /^250/ } @at }) }
sub suppress { my ($host, @words) = @_; my ($code, $said) = $host->run('suppress', @words); is $code, 0, "suppress @words" or diag $said }

like $hosts[0]->send_mail('a@here.test', 'dead@away.test', "Subject: x\n\nx\n"), qr/^250/, 'mail to a dead address';
ok known('dead@away.test', @hosts), 'one host has tried it, and both know' or diag map { $_->log } @hosts;
unlike $hosts[1]->log, qr/to=<dead\@away.test>, relay=/, 'the other has not tried';
suppress($hosts[1], 'add', 'left@away.test', 'asked to');
ok known('left@away.test', @hosts), 'the operator of one has said it, both know';
like +($hosts[0]->run('suppress', 'ls', 'left'))[1], qr/^left\@away\.test  manual .*asked to$/m, 'and why';
suppress($hosts[0], 'rm', 'left@away.test');
ok taken('left@away.test', @hosts), 'the other has lifted it';

$hosts[1]->stop;
suppress($hosts[0], 'add', 'x@away.test');
suppress($hosts[0], 'rm', 'dead@away.test');
suppress($hosts[1], 'add', 'offline@away.test');
$hosts[1]->start;
ok known('x@away.test', @hosts), 'a host that was down hears of it';
ok known('offline@away.test', @hosts), 'and tells what it has learnt without a daemon';
ok taken('dead@away.test', @hosts), 'and of what was lifted';

$redis->kill_redis;
suppress($hosts[0], 'add', 'y@away.test');
ok known('y@away.test', $hosts[0]), 'Redis is killed: the host goes on';
ok taken('y@away.test', $hosts[1]), 'by itself';
$redis->start_redis;
ok known('y@away.test', @hosts), 'Redis is back, without its data';
push @hosts, host('host3');
ok known("$_\@away.test", @hosts), "a new host knows $_" for qw(x y offline);
$redis->ask('FLUSHALL');
suppress($hosts[2], 'add', 'z@away.test');
ok known('z@away.test', @hosts), 'emptied, it goes on';
push @hosts, host('host4');
ok known("$_\@away.test", @hosts), "a new host knows $_" for qw(x y z offline);

# Entries that are none of ours, in front of one that is: a reader that stops there would never hear of another.
like $redis->ask(qq{EVAL "return redis.call('XADD', 'pd:mail', '*', 'e', $_)" 0}), qr/-0|-1/, $_ for "string.rep('x', 90000)", "''", "string.rep('9', 40)";
suppress($hosts[1], 'add', 'behind@away.test');
ok known('behind@away.test', @hosts), 'odd entries of the stream are passed over';

# An older entry of a host that was away, and of no other.
$hosts[3]->stop;
suppress($_, 'rm', 'x@away.test') for $hosts[0];
ok taken('x@away.test', @hosts[0 .. 2]), 'one is lifted while a host is away';
$redis->ask('FLUSHALL');
$hosts[3]->start;
ok taken('x@away.test', @hosts), 'it stays so when that host is back, even if Redis has lost all';
ok known('y@away.test', @hosts), 'the others are known';

# Whoever may not write says so.
$_->stop for @hosts[1 .. 3];
$redis->ask('ACL SETUSER default -xadd -xrange');
suppress($hosts[0], 'add', 'w@away.test');
ok $hosts[0]->wait_log(qr/group: (?:warning: )?suppressed addresses are not shared: /), 'a Redis that takes nothing is logged' or diag $hosts[0]->log;
is Petrel::count($hosts[0]->log, qr/are not shared/), 1, 'once';
$redis->ask('ACL SETUSER default +xadd +xrange');
$hosts[1]->start;
ok known('w@away.test', @hosts[0, 1]), 'when it does, the others hear of it';
$_->stop for @hosts[0, 1];
done_testing;
