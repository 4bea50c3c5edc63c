#!/usr/bin/perl
# Copies of mail in a real Redis with a replica: an engine that cannot keep them is named at startup; what is accepted is in
# both places, until it ends; and trouble of the engine under load, of each kind, ROUNDS times (in the suite 6): what was
# acknowledged is in both places afterwards.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cluster;
use E2E;
use JSON::PP ();
use List::Util qw(shuffle);

plan skip_all => 'built without hiredis' if (Petrel->new->run('check', '-o', 'copies=redis://h'))[1] =~ /without hiredis/;
my $lasting = "appendonly yes\nappendfsync always\nrepl-diskless-sync-delay 0\nrepl-timeout 60\nrepl-ping-replica-period 1\n";
my $engine = Cluster::redis($lasting) or plan skip_all => 'no Redis here (Debian: redis-tools)';
my $replica = Cluster::redis("${lasting}replicaof 127.0.0.1 $engine->{port}\n");
my $closed = Petrel::free_port();
my $host = Petrel->new(
    cluster_host => 'one', routes => "away.test smtp://127.0.0.1:$closed\n* discard", copies_replicas => 1,
    copies => "redis://127.0.0.1:$engine->{port}/1",
);

sub say_config { my ($server, $what) = @_; $server->ask("CONFIG SET $what") }
sub is_linked { return Petrel::wait_for(sub { ($engine->ask('INFO replication') // '') =~ /slave0:.*state=online/ }) }
sub copies { return JSON::PP::decode_json($host->status)->{copies} }
sub is_ready { return Petrel::wait_for(sub { my $c = copies(); $c->{ready} && $c->{behind} == 0 }) }

# The IDs that a server has.
sub kept {
    my $server = shift;
    my ($key) = ($server->ask('KEYS pc:{one}:one:*') // '') =~ /^(pc:\{one\}:one:[0-9a-f]{32})\r$/m or return ();
    return sort(($server->ask("HKEYS $key") // '') =~ /^([0-9A-Z]{10}-[0-9A-Z]{8})\r$/mg);
}
sub here { my ($code, $list) = $host->run(qw(queue ls --json)); return sort $list =~ /"queue_id":"([^"]+)"/g }
# The reply that counts: the first refusal, or that to the content.
sub deliver {
    my ($to, $size) = @_;
    my $content = "Subject: x\r\n\r\n" . ('x' x 70 . "\r\n") x (($size // 70) / 72 + 1);
    my @replies = $host->dialogue('EHLO client.test', 'MAIL FROM:<a@one.test>', "RCPT TO:<$to>", 'DATA', ["$content.\r\n"], 'QUIT');
    return (grep { /^[45]/ } @replies)[0] // $replies[-2];
}
sub agree { my ($server, $name) = @_; ok Petrel::wait_for(sub { join(' ', kept($server)) eq join(' ', here()) }), $name or diag "kept: @{[kept($server)]}\nhere: @{[here()]}" }

# --- An engine that cannot keep copies ------------------------------------------------------------------------------

is_linked();
for (
    ['appendonly no', 'appendonly yes', qr/copies: the server keeps nothing on its disk: set appendonly yes/],
    ['appendfsync everysec', 'appendfsync always', qr/copies: the appendfsync of the server is everysec: set always/],
    ['maxmemory-policy allkeys-lru', 'maxmemory-policy noeviction', qr/copies: the maxmemory-policy of the server is allkeys-lru: set noeviction/],
    ['requirepass secret', 'requirepass ""', qr/copies: \w+: NOAUTH/],
) {
    my ($bad, $good, $says) = @$_;
  SKIP: {
        skip 'its own disk is asked by WAITAOF', 2 if $bad =~ /fsync/ && ($engine->ask('INFO server') // '') =~ /redis_version:(?:7\.[2-9]|[89])/;
        say_config($engine, $bad);
        my ($code, $said) = $host->run('run');
        is $code, 78, "$bad: no start";
        like $said, $says, 'in words';
        if ($bad =~ /requirepass/) { $engine->ask("AUTH secret\r\nCONFIG SET requirepass \"\"") } else { say_config($engine, $good) }
    }
}
my %copies = %{ $host->{settings} };
for (["redis://127.0.0.1:$replica->{port}", 1, qr/the server is a replica, and takes no writes/], [$copies{copies}, 2, qr/the server has 1 replicas, and copies_replicas asks for more/]) {
    my ($url, $replicas, $says) = @$_;
    my ($code, $said) = $host->run('-o', "copies=$url", '-o', "copies_replicas=$replicas", 'run');
    is $code, 78, 'no start';
    like $said, $says, 'in words';
}

my ($checks) = $host->run(qw(doctor --json)) && ($host->run(qw(doctor --json)))[1];
like $checks, qr/copies\.server"[^}]*it can keep copies of mail/, 'doctor asks it';

# --- In both places, until it ends ----------------------------------------------------------------------------------

is_linked();
$host->start;
ok is_ready(), 'copies are kept';
like deliver('a@away.test'), qr/^250/, 'a message';
like deliver('b@away.test', 700_000), qr/^250/, 'one in a file';
like deliver('c@away.test', 1_500_000), qr/^250/, 'one in chunks';
like deliver('d@here.test'), qr/^250/, 'one that ends';
is scalar(my @waiting = here()), 3, 'three wait';
agree($_, 'and have copies') for $engine, $replica;
like $engine->ask('KEYS *'), qr/^pc:\{one\}:one:[0-9a-f]{32}:$waiting[2]\r$/m, 'the chunks have a key';
is(($host->run(qw(queue hold), $waiting[0]))[0], 0, 'one is held');
my ($key) = $engine->ask('KEYS pc:{one}:one:*') =~ /^(\S+:[0-9a-f]{32})\r$/m;
ok Petrel::wait_for(sub { $engine->ask("HGET $key $waiting[0]") =~ /held by/ }), 'and its copy says so';
is(($host->run(qw(queue rm), $waiting[2]))[0], 0, 'one is removed');
agree($engine, 'with its copy');
unlike $engine->ask('KEYS *'), qr/$waiting[2]/, 'and its chunks';
is(($host->run(qw(sendmail -f a@one.test e@away.test)))[0], 0, 'one is left by sendmail');
agree($engine, 'and copied when the daemon has it');
is copies()->{refused}, 0, 'nothing was refused';

# --- Trouble --------------------------------------------------------------------------------------------------------

my %trouble = (
    killed => sub { $engine->kill_redis; Petrel::spit("$engine->{dir}/log", ''); return sub { $engine->start_redis; is_linked() } },
    hung => sub { kill 'STOP', $engine->{pid}; return sub { kill 'CONT', $engine->{pid} } },
    emptied => sub { $engine->ask('FLUSHALL'); return sub { } },
    'without replica' => sub { $replica->kill_redis; return sub { $replica->start_redis; is_linked() } },
    full => sub { say_config($engine, 'maxmemory 100000'); return sub { say_config($engine, 'maxmemory 0') } },
    'cut short' => sub {
        $engine->kill_redis;
        for my $file (glob "$engine->{dir}/appendonlydir/*.incr.aof") { truncate $file, (-s $file) * (0.3 + rand 0.6) if -s $file }
        return sub { $engine->start_redis; is_linked() };
    },
);
my (%said, @acknowledged);
for my $round (1 .. $ENV{ROUNDS} || 6) {
    my $kind = (sort keys %trouble)[$round % keys %trouble];
    my (@good, @refused);
    my $send = sub { my $reply = deliver("r$round\@away.test", rand(10) < 1 ? 400_000 : 200); push @{ $reply =~ /^250/ ? \@good : \@refused }, $reply };
    $send->() for 1 .. 3;
    my $end = $trouble{$kind}->();
    $send->() for 1 .. 2;
    $end->();
    ok is_ready(), "$kind: copies are kept again";
    $send->();
    push @acknowledged, map { /queued as (\S+)/ } @good;
    is_deeply [grep { !/^451 4\.3\.0 / } @refused], [], 'what was refused comes later';
    $said{$kind} = $refused[0] // $said{$kind};
    agree($engine, 'what is here is there');
    my %here = map { $_ => 1 } here();
    is_deeply [grep { !$here{$_} } @acknowledged], [], 'and nothing acknowledged is lost';
}
note "$_: ", $said{$_} // 'nothing refused' for sort keys %said;
like $host->log, qr/copies: warning: the server has lost copies/, 'a loss is logged';
is((() = $host->log =~ /copies: warning: (?!no copies can be kept|the server has lost copies)/g), 0, 'and nothing odd');

# --- One copy is enough ---------------------------------------------------------------------------------------------

$host->stop;
$host->configure(copies_required => 'no')->start;
ok is_ready(), 'not required: at first all is as ever';
$engine->kill_redis;
Petrel::spit("$engine->{dir}/log", '');
like deliver('f@away.test'), qr/^250/, 'mail is accepted while the engine is away' for 1 .. 3;
ok Petrel::wait_for(sub { copies()->{behind} == 3 }), 'and is behind';
like(($host->run('status'))[1], qr/^copies .*; behind 3$/m, 'as the status says');
$engine->start_redis;
is_linked();
ok is_ready(), 'then it is copied';
agree($engine, 'all of it');

# Nobody answers at startup: it starts.
$host->stop;
$engine->kill_redis;
$host->configure(copies_required => 'yes')->start;
like deliver('g@away.test'), qr/^451 4\.3\.0 No second copy of mail can be kept: /, 'nobody answers at startup: 451';
$host->stop;
done_testing;
