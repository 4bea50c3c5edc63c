#!/usr/bin/perl
# The service manager's socket: READY when the port answers, reloads, signs of life, the end.
use lib 't/e2e';
use E2E;
use Socket qw(SOCK_DGRAM MSG_DONTWAIT);

my $scratch = tempdir('notify-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $manager = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$scratch/notify") or die;
my @heard;
sub hear { my $line; push @heard, $line while defined recv($manager, $line, 65536, MSG_DONTWAIT) && length $line; return @heard }
sub heard { my $what = shift; return Petrel::wait_for(sub { scalar grep { /$what/ } hear() }) }

# Started without the wait for its port, which is what READY is for.
my $petrel = Petrel->new(routes => '* discard');
sub begin {
    my %environment = @_;
    local @ENV{ keys %environment } = values %environment;
    $petrel->{pid} = Petrel::spawn($petrel->{log}, $Petrel::binary, '-c', $petrel->conf, 'run');
    return;
}

for my $round (1 .. $ENV{ROUNDS} // 10) {
    @heard = ();
    begin(NOTIFY_SOCKET => "$scratch/notify");
    ok heard(qr/^READY=1\nSTATUS=accepting mail; nothing waiting\z/), "start $round: ready" or diag $petrel->log;
    my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $petrel->{port});
    ok $client, 'the port answers then';
    like scalar readline $client, qr/^220 /, 'with a greeting';
    close $client;
    is $petrel->stop, 0, 'stops';
    ok heard(qr/^STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=not accepting mail: the daemon stops; nothing waiting\z/), 'which it says';
}

@heard = ();
begin(NOTIFY_SOCKET => "$scratch/notify", WATCHDOG_USEC => 400_000);
ok heard(qr/^READY/), 'a start';
Petrel::wait_for(sub { Petrel::count(join("\n", hear()), qr/WATCHDOG=1/) >= 3 });
pass 'signs of life';
@heard = ();
is +($petrel->run('reload'))[0], 0, 'a reload';
ok heard(qr/^RELOADING=1\nMONOTONIC_USEC=\d+\z/), 'is announced';
ok heard(qr/^READY=1/), 'and ends';
my @order = grep { /^(?:RELOADING|READY)/ } hear();
like "@order", qr/^RELOADING.*READY/s, 'in that order';
$petrel->configure(nonsense => 1, hostname => 'other.test');
@heard = ();
is +($petrel->run('reload'))[0], 78, 'one that is refused';
ok heard(qr/^READY=1/), 'ends, too';
like(Client->connect($petrel->{port})->reply, qr/^220 petrel\.test /, 'and has changed nothing');
$petrel->configure(nonsense => undef, hostname => 'petrel.test');

# A loop that hangs gives no sign.
kill STOP => $petrel->{pid};
Petrel::wait_for(sub { Petrel::slurp("/proc/$petrel->{pid}/stat") =~ /\) T / });
hear();
@heard = ();
select undef, undef, undef, 1;
is scalar(hear()), 0, 'one that hangs is silent';
kill CONT => $petrel->{pid};
ok heard(qr/^WATCHDOG=1/), 'until it goes on';
is $petrel->stop, 0, 'stops';

# A failure is a warning; without the variable there is nothing.
begin(NOTIFY_SOCKET => "$scratch/nowhere");
ok $petrel->wait_log(qr{warning: NOTIFY_SOCKET: '\Q$scratch\E/nowhere': No such file or directory: the service manager is not informed}), 'no socket there';
ok Petrel::wait_for(sub { ($petrel->run('health'))[0] == 0 }), 'it starts nevertheless';
$petrel->stop;
hear();
@heard = ();
$petrel->start;
$petrel->stop;
is scalar(hear()), 0, 'not asked, it is silent';
done_testing;
