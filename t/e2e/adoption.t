#!/usr/bin/perl
# Hosts that are lost with their disks, by a real Redis and its replica: all that was acknowledged is delivered by somebody.
# ROUNDS=200 kills more (6), SEED=n repeats the order of things.
use lib 't/e2e';
use E2E;
use Cluster;
use Time::HiRes qw(sleep time);

my $durable = "appendonly yes\nappendfsync always\nmaxmemory-policy noeviction\n";
my $redis = Cluster::redis($durable) or plan skip_all => 'no redis-server here (Debian: redis-tools)';
plan skip_all => 'built without hiredis' unless `$Petrel::binary version 2>&1` =~ /hiredis/;
my $replica = Cluster::redis("${durable}replicaof 127.0.0.1 $redis->{port}\n");
my $rounds = $ENV{ROUNDS} || 6;
srand($ENV{SEED} ||= time % 100_000);
note "SEED=$ENV{SEED} ROUNDS=$rounds";
ok Petrel::wait_for(sub { ($redis->ask('INFO replication') // '') =~ /^connected_slaves:1/m }), 'a replica';

my $sink = Sink->start;
sub host {
    my ($name, %more) = @_;
    return Petrel->new(
        cluster => 'mail', cluster_host => $name, cluster_redis => $redis->url, copies => $redis->url, copies_replicas => 1, routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=4",
        minimal_backoff_time => '1s', maximal_backoff_time => '2s', relay_from => '127.0.0.0/8', %more,
    );
}
sub copies_of { my $host = shift; return JSON::PP::decode_json($host->status)->{copies} }
sub wait_ours { my $host = shift; return Petrel::wait_for(sub { copies_of($host)->{ready} && !copies_of($host)->{comparing} }) }
sub lose_disk { my $host = shift; $host->kill9; system 'rm', '-rf', "$host->{dir}/spool"; return }

# A client that sends numbered mail to any of the hosts, until it is told to stop; the numbers that were accepted.
my $scratch = tempdir(CLEANUP => 1);
my $numbers = 0;
sub send_one {
    my ($port, $number) = @_;
    my $client = Client->greeted($port) or return 0;
    my $reply = $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: number $number.\r\n\r\n" . 'x' x (1 + $number * 37 % 3000) . "\r\n");
    $client->quit;
    return $reply =~ /^250/;
}
sub load_begin {
    my ($name, @ports) = @_;
    my $pid = fork // die;
    return $pid if $pid;
    $Petrel::patience = 5;
    open my $accepted, '>>', "$scratch/$name" or exit 1;
    $accepted->autoflush(1);
    my $number = $name * 1_000_000;
    until (-e "$scratch/stop") {
        $number++;
        print $accepted "$number\n" if send_one($ports[rand @ports], $number);
        sleep 0.01;
    }
    require POSIX;
    POSIX::_exit(0);
}
sub load_end { my @pids = @_; Petrel::spit("$scratch/stop", ''); waitpid $_, 0 for @pids; return unlink "$scratch/stop" }
sub accepted { return map { split /\n/, Petrel::slurp($_) } glob "$scratch/[0-9]*" }
# How often each came.
my (%came, %read);
sub came { for my $file (grep { !$read{$_}++ } $sink->files) { $came{$1}++ if Petrel::slurp($file) =~ /^Subject: number (\d+)\./m } return \%came }
# All of them come; the numbers of those that do not, and those that came again.
sub judge {
    my ($name, @accepted) = @_;
    my $all = Petrel::wait_for(sub { my $came = came(); return !grep { !$came->{$_} } @accepted }, 90);
    my @lost = grep { !$came{$_} } @accepted;
    my $again = 0;
    $again += $came{$_} - 1 for grep { $came{$_} } @accepted;
    is "@lost[0 .. ($#lost < 9 ? $#lost : 9)]", '', "$name: nothing is lost";
    note sprintf '%s: accepted %d, delivered %d, again %d, lost %d', $name, scalar @accepted, scalar(grep { $came{$_} } @accepted), $again, scalar @lost;
    return $again;
}

# --- A host without a group has an empty disk: it takes its own mail back

my $alone = host('alone', cluster => undef, cluster_host => 'alone', cluster_redis => undef, routes => '* smtp://127.0.0.1:1')->start;
ok wait_ours($alone), 'copies are kept';
ok send_one($alone->{port}, 1), 'accepted' or diag $alone->log;
lose_disk($alone);
$alone->configure(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
is judge('its own disk', 1), 0, 'once';
ok $alone->wait_log(qr/from=alone, was=\S+, first=\S+, status=adopted/), 'the log says where it was';
like +($alone->run('cluster'))[1], qr/^copies redis:\S+; behind 0\n.*adopted 1 since startup/ms, 'and cluster how many';
is copies_of($alone)->{adopted}, 1, 'and the status';
is $alone->stop, 0, 'a good end';

# --- By order: a host whose mail waits is gone

my @hosts = map { host("relay$_") } 1 .. 3;
$hosts[0]->configure(routes => '* smtp://127.0.0.1:1');
$_->start for @hosts;
ok wait_ours($_), 'ready' for @hosts;
ok send_one($hosts[0]{port}, $_), "accepted $_" for 2 .. 21;
my ($code, $said) = $hosts[1]->run('cluster', 'adopt', 'relay1');
like $said, qr/relay1 lives/, 'not while it lives';
is +($hosts[1]->run('cluster', 'adopt', 'nobody'))[0], 65, 'nor one that nobody knows';
kill 'STOP', $hosts[0]{pid};
ok Petrel::wait_for(sub { ($hosts[1]->run('cluster', 'adopt', 'relay1'))[0] == 0 }), 'it is silent';
is judge('by order', 2 .. 21), 0, 'each once';
$hosts[0]->configure(routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=4");
kill 'CONT', $hosts[0]{pid};
ok $hosts[0]->wait_log(qr/status=given/), 'it was cut off alone, and gives up what was adopted';
ok $hosts[0]->wait_empty, 'all of it';
is copies_of($hosts[0])->{given_up}, 20, 'which is counted';
is $hosts[0]->stop, 0, 'a good end';
$hosts[0]->start;
ok wait_ours($hosts[0]), 'it is back';
is judge('given up', 2 .. 21), 0, 'and nothing came again';

# --- Killed and emptied, at any moment, under load

$sink->tell($sink->{listen}, 'set delay.dot=20');
my @load = map { load_begin($_, map { $_->{port} } @hosts) } 1 .. 3;
my $begin = time;
for (1 .. $rounds) {
    sleep 0.3 + rand 2;
    my $host = $hosts[rand @hosts];
    lose_disk($host);
    sleep rand 1;
    $host->start;
}
load_end(@load);
$sink->tell($sink->{listen}, 'set delay.dot=0');
my @accepted = accepted();
cmp_ok scalar @accepted, '>', 10 * $rounds, 'mail was accepted';
my $again = judge("$rounds disks lost", @accepted);
cmp_ok $again, '<=', 25 * $rounds, 'duplicates are those of the window';
ok $_->wait_empty(60), 'nothing is left' for @hosts;
note sprintf '%.0f s', time - $begin;
ok Petrel::wait_for(sub { ($redis->ask('HLEN pc:{mail}:owner') // '') =~ /^:3/ }), 'of lost disks nothing is left in Redis';
is $_->stop, 0, 'a good end' for @hosts;

# --- More hosts have died than fit an answer

$redis->ask(q{EVAL "for i = 1, 3000 do local h = 'h' .. i .. string.rep('x', 40) redis.call('HSET', 'pc:{crowd}:owner', h .. ':' .. string.rep('0', 32), h .. ' 0123456789abcdef') end" 0});
my $crowd = host('crowd', cluster => 'crowd')->start;
ok wait_ours($crowd), 'copies are kept among many dead hosts';
is $crowd->stop, 0, 'a good end';

done_testing;
