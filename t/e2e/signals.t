#!/usr/bin/perl
# A signal in the middle of a delivery: what the next hop has goes out once.
use lib 't/e2e';
use E2E;

# A next hop that notes each message, and answers its last dot when the test says so.
my $dir = tempdir('signals-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 20) or die;

sub converse {
    my $peer = shift;
    print $peer "220 hop.test\r\n";
    while (my $line = <$peer>) {
        if ($line =~ /^EHLO/) { print $peer "250 hop.test\r\n" }
        elsif ($line =~ /^DATA/) {
            print $peer "354 go\r\n";
            while (defined($line = <$peer>) && $line ne ".\r\n") { }
            open my $got, '>>', "$dir/got"; print $got "x\n"; close $got;
            Petrel::wait_for(sub { -e "$dir/answer" }, 3600);
            print $peer "250 taken\r\n";
        }
        elsif ($line =~ /^QUIT/) { print $peer "221 bye\r\n"; return }
        else { print $peer "250 ok\r\n" }
    }
    return;
}
my $hop = fork // die;
if ($hop == 0) {
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    while (my $peer = $door->accept) { $peer->autoflush(1); converse($peer); close $peer }
    POSIX::_exit(0);
}
END { my $code = $?; kill 'KILL', $hop if $hop; $? = $code }
my $port = $door->sockport;
close $door;

my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$port", minimal_backoff_time => '1s', maximal_backoff_time => '1s', smtp_connection_cache_time_limit => '0s');
sub taken { return scalar(() = Petrel::slurp("$dir/got") =~ /x/g) }

# One message is with the hop, unanswered.
sub begin {
    unlink "$dir/got", "$dir/answer";
    $petrel->start;
    $petrel->send_mail('a@b.test', 'u@x.test', "Subject: x\n\nx\n");
    Petrel::wait_for(sub { taken() == 1 });
    return;
}
sub stopped { my $status = Petrel::reap($petrel->{pid}, 0); delete $petrel->{pid}; return $status }

# The lines of the log that this signal makes.
sub signal_it {
    my ($signal, $said) = @_;
    my $before = () = $petrel->log =~ /$said/g;
    kill $signal, $petrel->{pid};
    Petrel::wait_for(sub { (() = $petrel->log =~ /$said/g) > $before });
    return;
}

my %said = (INT => qr/interrupted: stopping/, QUIT => qr/interrupted: stopping/, TERM => qr/terminating: finishing/);
for my $signals (['INT'], ['QUIT'], ['TERM'], ['TERM', 'TERM', 'HUP']) {
    my ($first, @more) = @$signals;
    begin();
    signal_it($first, $said{$first});
    kill $_, $petrel->{pid} for @more;
    Petrel::spit("$dir/answer", '');
    is stopped(), 0, "@$signals: it stops";
    like $petrel->log, qr/status=sent \(250 taken\)\n.*: stopped\n\z/, "@$signals: the reply is heard and told";
    $petrel->start;
    my ($code, $listed) = $petrel->run('queue', 'ls');
    is $listed, '', "@$signals: nothing is left";
    is $petrel->stop, 0, "@$signals: and at the next start";
    is taken(), 1, "@$signals: it went out once";
}

# An operator who does not want to wait: nothing is lost.
begin();
signal_it('INT', $said{INT});
signal_it('INT', qr/interrupted: stopping immediately/);
is stopped(), 0, 'twice: it stops without the reply';
Petrel::spit("$dir/answer", '');
$petrel->start;
$petrel->wait_log(qr/status=sent \(250 taken\)\n(?!.*stopped)/);
is taken(), 2, 'twice: and sends again';
is $petrel->stop, 0, 'ends well';
done_testing;
