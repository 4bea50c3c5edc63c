#!/usr/bin/perl
# The next message goes in one group with the final dot of the last, over real sockets. With an act of a host in between, no message
# is lost, and only one whose answer was lost comes twice. t/roof/ has every act at every place.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep);

my $count = 200;
my %quick = (minimal_backoff_time => '1s', maximal_backoff_time => '2s');

# How often each message is in the sink, by its number.
sub seen {
    my $sink = shift;
    my %seen;
    $seen{ $_->{content} =~ /^Subject: load (\d+)/m ? $1 : 'other' }++ for Petrel::arrived($sink);
    return \%seen;
}

# Sends them through Petrel to a sink with these faults; twice: how many may come a second time.
sub relay {
    my ($what, $scheme, $twice, @faults) = @_;
    my $sink = Petrel::sink(@faults);
    my $petrel = Petrel->new(routes => "* $scheme://127.0.0.1:$sink->{port}", %quick)->start;
    my $log = tempdir('load-XXXXXX', TMPDIR => 1, CLEANUP => 1) . '/log';
    my $pid = Petrel::spawn($log, "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$petrel->{port}", '--messages', $count,
        '--connections', 20, '--rcpt', 'user%d@early.test', '--pipeline');
    is Petrel::reap($pid, 0), 0, "$what: all are taken" or diag Petrel::slurp($log);
    my $sent = sub { scalar(() = $petrel->log =~ /, status=sent /g) };
    ok Petrel::wait_for(sub { $sent->() == $count }), "$what: all are sent" or diag $sent->();
    my $seen = seen($sink);
    is scalar(keys %$seen), $count, "$what: and are there";
    my $again = 0;
    $again += $_ - 1 for values %$seen;
    cmp_ok $again, '<=', $twice, "$what: $twice may come again";
    unlike $petrel->log, qr/bounced/, "$what: none is given up";
    is $petrel->stop, 0, "$what: it stops";
    Petrel::reap($sink->{pid}, 'TERM');
    return Petrel::slurp($sink->{log}) =~ /"connections": (\d+)/ ? $1 : 0;
}

cmp_ok relay('no faults', 'smtp', 0), '<=', 21, 'no faults: kept connections';
cmp_ok relay('3 messages a connection', 'smtp', 0, '--max-messages', 3), '>=', $count / 3, '3 messages a connection: and then another';
relay('dot: 421', 'smtp', 0, '--fail', 'dot:421:4');
relay('closed after the dot', 'smtp', 4, '--close', 'dot:4');
relay('MAIL: 421', 'smtp', 0, '--fail', 'mail:421:4');
relay('LMTP: 452', 'lmtp', 8, '--lmtp', '--fail-lmtp', 'user:452:8');
relay('LMTP: closed after the dot', 'lmtp', 4, '--lmtp', '--close', 'dot:4');

done_testing();
