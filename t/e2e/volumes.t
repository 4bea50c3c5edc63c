#!/usr/bin/perl
# A spool on GlusterFS with three replicas, and hosts in networks of their own: a brick that dies under load, a host that
# dies, one that is cut off and comes back. Another host takes the spool over, and no acknowledged message is lost. ROUNDS=20
# kills that often.
use lib 't/e2e';
use E2E;
use Volume;

plan skip_all => Volume::missing() if Volume::missing();
Volume::enter();
delete @ENV{ grep { /^PETREL_/ } keys %ENV };

my $scratch = tempdir('volumes-XXXXXX', TMPDIR => 1, CLEANUP => 0);
my $volume = Volume->start($scratch);
my @hosts = map { $volume->host } 1, 2;
my $sink = Sink->start('--listen', '0.0.0.0:0', '--delay', 'dot:20');
my (%acknowledged, $number);

sub daemon {
    my ($host) = @_;
    my $petrel = $host->{petrel} //= Petrel->new(hostname => "$host->{name}.test", listen => "$host->{address}:2525", relay_from => '10.77.0.0/16',
        routes => "* smtp://$host->{gateway}:$sink->{port}?concurrency=2", spool => "$host->{mount}/spool", user => '');
    $petrel->{pid} = Petrel::spawn($petrel->{log}, Volume::at($host, $Petrel::binary, '-c', $petrel->conf, 'run'));
    return $petrel;
}

# As a service manager does: until the lock of the host before is gone.
sub take_over {
    my ($host) = @_;
    return Petrel::wait_for(sub {
        my $size = length Petrel::slurp($host->{petrel} ? $host->{petrel}{log} : '');
        my $petrel = daemon($host);
        return 1 if Petrel::wait_for(sub { substr($petrel->log, $size) =~ /main: petrel \S+ is / || waitpid($petrel->{pid}, 1) == $petrel->{pid} }, 20)
            && substr($petrel->log, $size) =~ /main: petrel \S+ is /;
        Petrel::reap($petrel->{pid}, 'KILL', 5);
        return 0;
    }, 120);
}

# Sends one message and notes that it was acknowledged. Returns the reply.
sub submit {
    my ($host) = @_;
    my $to = 'r' . ++$number . '@example.org';
    my $socket = IO::Socket::INET->new(PeerAddr => $host->{address}, PeerPort => 2525, Timeout => 5) or return "none: $@";
    my $reply = '';
    local $SIG{ALRM} = sub { die "slow\n" };
    eval {
        alarm 20;
        for my $line ('', 'EHLO client', 'MAIL FROM:<a@example.org>', "RCPT TO:<$to>", 'DATA', "Subject: $to\r\n\r\nx\r\n.") {
            print $socket "$line\r\n" if $line;
            do { $reply = <$socket> // 'closed' } while $reply =~ /^\d+-/;
            last if $reply !~ /^[23]/;
        }
    };
    alarm 0;
    $acknowledged{$to} = 1 if !$@ && $reply =~ /^250.*queued as/;
    return $@ || $reply;
}

sub missing { my %has = map { $_ => 1 } map { @{ $_->{to} } } $sink->messages; return grep { !$has{$_} } sort keys %acknowledged }
sub all_there {
    my $name = shift || 'all that was acknowledged has arrived';
    ok(Petrel::wait_for(sub { !missing() }, 120), $name) || diag join ' ', missing();
    return;
}

ok take_over($hosts[0]), 'a daemon on the volume';
like submit($hosts[0]), qr/^250/, 'takes mail';

my $second = daemon($hosts[1]);
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
all_there('nothing is lost: ' . keys(%acknowledged) . ' messages');
my $twice = grep { $_ > 1 } values %{{ map { my $to = $_; ($to => scalar grep { $_ eq $to } map { @{ $_->{to} } } $sink->messages) } keys %acknowledged }};
diag scalar(keys %acknowledged), " messages acknowledged, $twice of them arrived twice";
cmp_ok $twice, '<=', 25 * ($rounds + 1), 'and twice only what was under way';
$here->{petrel}->stop;
$volume->stop(@hosts);
ok !-e $scratch, 'nothing is left';
done_testing;
