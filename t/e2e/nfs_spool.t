#!/usr/bin/perl
# A spool on a real NFS server: the kernel's, in a virtual machine, whose two hosts mount it by NFS 4.2, hard or soft. The
# server is stopped and started again, a host dies, one is cut off and comes back, the directory is made anew. No
# acknowledged message is lost.
use lib 't/e2e';
use E2E;
use Guest;
use Nfs;
use SharedSpool;

plan skip_all => Guest::missing(@Nfs::programs) if Guest::missing(@Nfs::programs);
Guest::enter(modules => \@Nfs::modules, programs => \@Nfs::programs);
$Petrel::patience *= 2; # an emulated processor
my $server = Nfs->start('/export');
my ($here, $there) = map { $server->host('hard,timeo=10') } 1, 2;

ok take_over($here), 'hard: a daemon';
like submit($here), qr/^250/, 'takes mail';
my $second = host_daemon($there);
is Petrel::reap($second->{pid}, 0, 120) >> 8, 75, 'a second one on another host is refused';
like $second->log, qr/another petrel runs on it, on $here->{name}\.test \(it holds lock\/daemon\)/, 'and says where the first one is';

# --- The server is stopped under load, and started

submit($here) for 1 .. 5;
$server->halt;
is submit($here, 3), "slow\n", 'the server is stopped: nothing is acknowledged, or refused';
$server->go;
ok Petrel::wait_for(sub { submit($here) =~ /^250/ }), 'it is started: mail is accepted';
all_there();
is_deeply [twice()], [], 'once';
ok kill(0, $here->{petrel}{pid}), 'by the same process';

# --- A host dies

submit($here) for 1 .. 10;
kill 'KILL', $here->{petrel}{pid};
$server->cut($here);
Petrel::reap($here->{petrel}{pid}, 0, 20);
$server->unmount($here);
ok take_over($there), 'a host dies, and the other one takes its mail over' or diag $there->{petrel}->log;
all_there();
$server->join($here);
$server->mount($here);

# --- A host is cut off, and comes back

submit($there) for 1 .. 10;
$server->cut($there);
ok take_over($here), 'a host is cut off: the other one takes its mail over' or diag $here->{petrel}->log;
like submit($here), qr/^250/, 'and accepts new mail';
$server->join($there);
submit($there) for 1 .. 5; # 250 only if it is not lost
ok defined Petrel::reap($there->{petrel}{pid}, 0, 120), 'the first one comes back, and ends' or diag $there->{petrel}->log;
like $there->{petrel}->log, qr/another petrel has taken the spool, on $here->{name}\.test: this one ends/, 'it says why';
like submit($here), qr/^250/, 'the other one goes on';
all_there();
cmp_ok scalar(twice()), '<=', 30, 'twice only what was under way: ' . twice();

# --- The directory is made anew: what is open is stale

$server->anew;
unlike submit($here, 60), qr/^250/, 'the spool is gone: nothing is acknowledged';
ok Petrel::wait_for(sub { submit($here, 5); $here->{petrel}->log =~ /spool unhealthy: no new mail until a restart \(.*: (?:Stale file handle|Input\/output error)/ }), 'and it says what to do'
    or diag $here->{petrel}->log;
$here->{petrel}->stop('KILL');
$server->unmount($_) for $here, $there;

# --- A soft mount: a server that is away is an error of the disk

($here) = $server->host('soft,timeo=5,retrans=1');
ok take_over($here), 'soft: a daemon';
ok $here->{petrel}->wait_log(qr/is mounted by NFS with soft: .*; mount it with hard/), 'warns of it';
is_deeply [grep { !/^250/ } map { submit($here) } 1 .. 5], [], 'takes mail';
$server->halt;
unlike submit($here), qr/^250/, 'the server is stopped: nothing is acknowledged';
ok $here->{petrel}->wait_log(qr/spool unhealthy: no new mail until a restart \(.*: Input\/output error/), 'mail is refused until a restart';
$server->go;
ok Petrel::wait_for(sub { submit($here) =~ /^451 4\.3\.0/ }), 'also when the server is started';
is $here->{petrel}->stop, 0, 'it is stopped';
ok take_over($here), 'and started';
like submit($here), qr/^250/, 'it accepts mail again';
all_there('nothing is lost: ' . SharedSpool::count() . ' messages');
$here->{petrel}->stop;
$server->unmount($here);
done_testing();
