#!/usr/bin/perl
# Hosts of a group share the limits of a next hop: while Redis answers, while it does not, while it forgets everything, and
# while a replica or a wrong password is in its place. The sink says how much came, and when.
use lib 't/e2e';
use E2E;
use Cluster;
use Time::HiRes qw(stat);

my $redis = Cluster::redis('') or plan skip_all => 'no redis-server here (Debian: redis-tools)';
plan skip_all => 'built without hiredis' unless `$Petrel::binary version 2>&1` =~ /hiredis/;

# One host of the group, started.
sub host { my ($name, $sink, $limit, %more) = @_; return Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => $redis->url, routes => "* smtp://127.0.0.1:$sink->{port}?recipients=1&$limit", minimal_backoff_time => '1s', maximal_backoff_time => '2s', %more)->start }
# So many recipients at each, in one message: a transaction each, as the routes have recipients=1.
sub submit {
    my ($count, @hosts) = @_;
    for my $host (@hosts) {
        my $client = Client->greeted($host->{port}) or die 'no greeting';
        $client->send(from => 'a@x.test', to => [map { "$_\@y.test" } 1 .. $count], data => "Subject: m\r\n\r\nm\r\n") =~ /^250/ or die 'refused';
        $client->quit;
    }
    return $count * @hosts;
}
# When the messages came to the sink, as its files say.
my ($sink, $sent, @hosts);
sub came { my $sink = shift; return sort { $a <=> $b } map { (stat $_)[9] } glob "$sink->{base}/*/*.eml" }
# The most of them in any so many seconds.
sub most { my ($seconds, @times) = @_; my ($most, $from) = (0, 0); for my $to (0 .. $#times) { $from++ while $times[$to] - $times[$from] > $seconds; my $count = $to - $from + 1; $most = $count if $count > $most } return $most }
# So many more messages come, while that is done: each host has more to send than that.
sub flows { my ($count, $do) = @_; $sent += submit($count, @hosts); my $before = $sink->count('messages'); return Petrel::wait_for(sub { $do->() if $do; $sink->count('messages') >= $before + $count }) }
sub group_of { my $host = shift; return JSON::PP::decode_json($host->status)->{group} }
sub wait_bank { my ($state, @hosts) = @_; return Petrel::wait_for(sub { @hosts == grep { group_of($_)->{bank} eq $state } @hosts }) }
sub wait_members { my ($count, @hosts) = @_; return Petrel::wait_for(sub { @hosts == grep { @{ group_of($_)->{hosts} } == $count } @hosts }) }

# --- A rate, and a Redis that comes and goes

$sink = Sink->start;
@hosts = map { host("host$_", $sink, 'rate=2/s') } 1 .. 3;
ok wait_members(3, @hosts), 'three hosts know each other';
ok wait_bank('up', @hosts), 'and the bank';
$sent = submit(4, @hosts);
ok flows(3), 'mail flows';
$redis->kill_redis;
ok wait_bank('away', @hosts), 'Redis is killed: the bank is away';
ok $_->wait_log(qr/group: (?:warning: )?bank away \(.+\), 1 sites at our part \(1\/3\)/), "$_->{settings}{cluster_host} says so, and its part" for @hosts;
ok flows(3), 'mail goes on from own parts';
$redis->start_redis;
ok wait_bank('up', @hosts), 'Redis is back, empty';
ok $_->wait_log(qr/group: bank back after \d+ s/), 'which is said' for @hosts;
ok flows(4, sub { $redis->ask('FLUSHALL') }), 'emptied again and again, mail goes on';
kill 'STOP', $redis->{pid};
ok wait_bank('away', @hosts), 'Redis hangs: the bank is away';
ok flows(3), 'mail goes on';
kill 'CONT', $redis->{pid};
ok wait_bank('up', @hosts), 'it goes on';
# Each host by itself would send 120 in 20 s. The unused rest of the period before, and lost leases, are allowed: half of it.
my @times = came($sink);
my $most = most(20, @times);
cmp_ok $most, '<=', 60, "at most 2/s together: $most in any 20 s";
note sprintf '%d messages in %.1f s', scalar @times, $times[-1] - $times[0];
ok $_->wait_empty(180), 'nothing is left' for @hosts;
is $sink->count('recipients'), $sent, 'each recipient has it once';
my ($code, $said) = $hosts[0]->run('cluster');
like $said, qr/\Agroup  mail, egress shared\nhost   host1  member, this one\nhost   host2  member, running, \S+\nhost   host3  member, running, \S+\nbank   up, redis:\S+\nasks   \d+ for \d+ sites, \d+ without an answer\n/, 'cluster: who is there';
($code, $said) = $hosts[0]->run('cluster', '--json');
is JSON::PP::decode_json($said)->{host}, 'host1', 'and in JSON';
($code, $said) = $hosts[0]->run('cluster', 'forget', 'host9');
is $code, 65, 'nobody of that name can be forgotten';
like +($hosts[0]->run('status'))[1], qr/^group      mail: 3 hosts; bank up$/m, 'the status has a line';
is scalar(grep { !group_of($_)->{namesake} } @hosts), 3, 'nobody has the name of another';
$hosts[2]->stop;
ok $_->wait_log(qr/group: host3 left/), 'who stops says goodbye' for @hosts[0, 1];
is Petrel::slurp("$hosts[0]{dir}/spool/lock/group"), "mail\nhost1\nhost2\n", 'and the file has the others';
$_->stop for @hosts[0, 1];

# --- Sessions

$sink = Sink->start;
$sink->tell($sink->{listen}, 'set delay.dot=200');
@hosts = map { host("host$_", $sink, 'concurrency=2&initial=2&rate=1000/s') } 1 .. 3;
ok wait_members(3, @hosts), 'three hosts, two sessions';
$sent = submit(12, @hosts);
ok Petrel::wait_for(sub { $sink->count('messages') >= $sent }), 'all mail arrives';
cmp_ok $sink->count('sessions_max'), '<=', 2, 'never by more than two sessions';
$_->stop for @hosts;

# --- A wrong password, and a list of servers of which the first is a replica

my $master = $redis->{port};
my ($rights) = Petrel::slurp('doc/cluster.md') =~ /^user petrel on >PASSWORD (.*)$/m or die 'no rights in the manual';
my $other = Cluster::redis("requirepass secret\nuser petrel on >pw $rights\n");
my $replica = Cluster::redis("replicaof 127.0.0.1 $master\n");
$sink = Sink->start;
my $wrong = host('wrong', $sink, 'rate=10/s', cluster_redis => $other->url, cluster_redis_password => 'wr0ng', cluster_peers => 'second=127.0.0.2:4650');
ok wait_bank('away', $wrong), 'a wrong password: no bank';
ok Petrel::wait_for(sub { group_of($wrong)->{why} =~ /^AUTH: WRONGPASS/ }), 'which is said';
unlike $wrong->log, qr/wr0ng/, 'but not the password';
my $few = host('few', $sink, 'rate=10/s', cluster_redis => $other->url =~ s/127/petrel\@127/r, cluster_redis_password => 'pw');
ok wait_bank('up', $few), 'a user with the rights that the manual names';
is submit(2, $few), 2, 'which are enough';
ok Petrel::wait_for(sub { $sink->count('messages') >= 2 && group_of($few)->{asks} > 0 }), 'to ask';
unlike $few->log, qr/bank away/, 'all that is asked';
$few->stop;
my $second = host('second', $sink, 'rate=10/s', cluster_redis => $replica->url . ', ' . $redis->url);
ok wait_bank('up', $second), 'a replica is passed over';
is group_of($second)->{server}, $redis->url, 'for its primary';
$sent = 2 + submit(20, $wrong, $second);
ok Petrel::wait_for(sub { $sink->count('messages') >= $sent }), 'both deliver';
$replica->ask('REPLICAOF NO ONE');
$redis->ask("REPLICAOF 127.0.0.1 $replica->{port}");
ok Petrel::wait_for(sub { group_of($second)->{bank} eq 'up' && group_of($second)->{server} eq $replica->url }), 'they change places: the other is used';
$sent += submit(10, $second);
ok Petrel::wait_for(sub { $sink->count('messages') >= $sent }), 'and mail flows';
$_->stop for $wrong, $second;

# --- One connection for the group and for the registry of fragments

my $both = host('both', $sink, 'rate=10/s', cluster_redis => undef, defrag_registry => $replica->url);
ok wait_bank('up', $both), 'the registry is the bank, too';
my $clients;
ok Petrel::wait_for(sub { $clients = () = ($replica->ask('CLIENT LIST') // '') =~ /^id=.* flags=N /mg; $clients == 2 && $replica->ask('EXISTS dfhost:petrel.test') =~ /^:1/ }), 'both use one connection' or diag "$clients with ours";
is $both->stop, 0, 'which ends well';

done_testing;
