#!/usr/bin/perl
# A spool on GlusterFS with three replicas, and hosts in networks of their own: a brick that dies under load, a host that
# dies, one that is cut off and comes back. Another host takes the spool over, and no acknowledged message is lost. ROUNDS=20
# kills that often.
use lib 't/e2e';
use E2E;
use SharedSpool;
use Volume;

plan skip_all => Volume::missing() if Volume::missing();
Volume::enter();
delete @ENV{ grep { /^PETREL_/ } keys %ENV };

my $scratch = tempdir('volumes-XXXXXX', TMPDIR => 1, CLEANUP => 0);
my $volume = Volume->start($scratch);
my @hosts = map { $volume->host } 1, 2;

ok take_over($hosts[0]), 'a daemon on the volume';
like submit($hosts[0]), qr/^250/, 'takes mail';

my $second = host_daemon($hosts[1]);
is Petrel::reap($second->{pid}, 0, 60) >> 8, 75, 'a second one on another host is refused';
like $second->log, qr/another petrel runs on it, on host1\.test \(it holds lock\/daemon\)/, 'and says where the first one is';

# --- A brick dies under load

my @replies = map { submit($hosts[0]) } 1 .. 20;
$volume->kill_brick(1);
push @replies, map { submit($hosts[0]) } 1 .. 20;
is_deeply [grep { !/^250/ } @replies], [], 'a brick dies, and mail is accepted';
all_there();
ok $volume->heal, 'the brick is back, and has all';

# --- A host dies

my ($here, $there) = @hosts;
my $rounds = $ENV{ROUNDS} || 2;
for my $round (1 .. $rounds) {
    submit($here) for 1 .. 10 + int rand 20;
    kill 'KILL', $here->{petrel}{pid};
    $volume->kill_host($here);
    Petrel::reap($here->{petrel}{pid}, 0, 20);
    ok take_over($there), "round $round: a host dies, and the other one takes its mail over" or diag $there->{petrel}->log;
    all_there();
    $volume->mount($here);
    ($here, $there) = ($there, $here);
}

# --- A host is cut off, and comes back

submit($here) for 1 .. 10;
$volume->cut($here);
ok take_over($there), 'a host is cut off: the other one takes its mail over' or diag $there->{petrel}->log;
like submit($there), qr/^250/, 'and accepts new mail';
$volume->join($here);
my @late = map { submit($here) } 1 .. 5; # 250 only if it is not lost
ok defined Petrel::reap($here->{petrel}{pid}, 0, 60), 'the first one comes back, and ends' or diag $here->{petrel}->log;
like $here->{petrel}->log, qr/another petrel has taken the spool, on $there->{name}\.test: this one ends/, 'it says why';
like submit($there), qr/^250/, 'the other one goes on';
is $there->{petrel}->stop, 0, 'and is stopped';
ok take_over($here), 'the first host takes the spool again';
all_there('nothing is lost: ' . SharedSpool::count() . ' messages');
my $twice = twice();
diag SharedSpool::count(), " messages acknowledged, $twice of them arrived twice";
cmp_ok $twice, '<=', 25 * ($rounds + 1), 'and twice only what was under way';
$here->{petrel}->stop;
$volume->stop(@hosts);
ok !-e $scratch, 'nothing is left';
done_testing;
