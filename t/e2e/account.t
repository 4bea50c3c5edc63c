#!/usr/bin/perl
# Smarthosts that refuse our account, not our mail: one that has reached its limit pauses, mail waits and then flows, others
# are unaffected; of a sender that it does not accept, and of nothing else, the sender is notified early and once.
use lib 't/e2e';
use E2E;
use AuthServer;
use Report;

plan skip_all => 'no python3' unless Petrel::have('python3');

my $host = AuthServer->start(users => { joe => 'secret' }, mechanisms => 'PLAIN');
my $sink = Sink->start;

sub petrel {
    my $petrel = Petrel->new(smtp_connection_cache_time_limit => '0s', minimal_backoff_time => '1s', maximal_backoff_time => '1s', @_);
    chmod 0600, my $file = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1:$host->{port} joe secret\n");
    $petrel->configure(auth_passwords => $file, routes => "sender.test smtp://127.0.0.1:$sink->{port}\n"
            . "other.test smtp://127.0.0.1:$sink->{port}\n* smtp://joe\@127.0.0.1:$host->{port}");
    return $petrel->start;
}
sub take {
    my ($petrel, $from, $to) = @_;
    return $petrel->send_mail($from, $to, "Subject: s\n\nb\n") =~ /queued as ([0-9A-Z-]+)/ ? $1 : die 'not taken';
}
sub why { my ($petrel, $id) = @_; return ($petrel->run(qw(queue why), $id))[1] }
sub lines { my ($petrel, $pattern) = @_; return Petrel::count($petrel->log, $pattern) }
my $waits = qr/status=deferred/;

# --- The limit of the account

{
    my $petrel = petrel();
    $host->says('550 5.4.5 Daily user sending limit exceeded');
    my $first = take($petrel, 'a@here.test', 'x@one.test');
    ok $petrel->wait_log(qr/$first: to=.*class=quota.*$waits/), 'over the limit, mail is deferred, not bounced';
    my $tries = () = $host->events(qr/^auth/);
    my @more = map { take($petrel, 'a@here.test', "x$_\@two.test") } 1 .. 5;
    ok $petrel->wait_log(qr/account has reached its limit/), 'a warning says what the operator can do';
    my $other = take($petrel, 'a@here.test', 'x@other.test');
    ok $sink->wait_for('x@other.test'), 'another site has its mail at once';
    is scalar(() = $host->events(qr/^auth/)), $tries, 'none is tried meanwhile';
    is lines($petrel, qr/account has reached its limit/), 1, 'told once';
    like why($petrel, $more[0]), qr/^because:.*the account has reached its limit/m, 'queue why says it';
    is lines($petrel, qr/(?:$more[0]|$more[4]): to=.*status=/), 0, 'and the others have had no attempt';
    like +($petrel->run('status'))[1], qr/quota/, 'so does status';
    ok $petrel->wait_log(qr/trouble=quota_used_up/), 'trouble is reported';
    like +($petrel->run('status'))[1], qr/^warning +quota_used_up .*: the account has reached its limit there: mail waits, and is tried again in \d+ minutes/m, 'a finding says until when';

    # A restart forgets the pause: one attempt, which finds the limit again.
    is $petrel->stop, 0, 'stops';
    $petrel->start;
    ok Petrel::wait_for(sub { scalar(() = $host->events(qr/^auth/)) > $tries }), 'after a restart it is tried';
    ok $petrel->wait_log(qr/class=quota.*$waits.*\n(?s:.*)class=quota.*$waits/), 'and refused again';
    cmp_ok scalar(() = $host->events(qr/^auth/)), '<=', $tries + 2, 'with an attempt or two, not one a message';
    is scalar(() = $host->events(qr/^mail/)), 0, 'nothing has passed';

    # The limit is over; a reload ends the pause.
    $host->says(undef);
    kill 'HUP', $petrel->{pid};
    $petrel->wait_log(qr/reloaded|settings/);
    $petrel->run(qw(queue retry --all)); # what was tried waits as long as it was told to
    ok $host->wait_for(qr/^mail/, 6), 'all mail leaves';
    ok $petrel->wait_empty, 'nothing is left';
    unlike $petrel->log, qr/status=bounced/, 'nothing was bounced';
    is $petrel->stop, 0, 'it ends well';
    $host->forget;
}

# --- Early notifications

sub notices { my $to = shift; return map { Report::parse($_->{data}) } $sink->for_address($to) }

{
    my $petrel = petrel();
    $host->says('553 5.7.1 <x>: Sender address rejected: not owned by user joe');
    my $null = take($petrel, '', 'x@one.test');
    my $told = take($petrel, 'told@sender.test', 'x@one.test');
    my ($never) = ($petrel->dialogue('EHLO x.test', 'MAIL FROM:<never@sender.test>', 'RCPT TO:<x@one.test> NOTIFY=NEVER', 'DATA', "Subject: x\r\n\r\nx\r\n."))[-1] =~ /queued as ([0-9A-Z-]+)/ or die 'not taken';
    ok $sink->wait_for('told@sender.test'), 'a sender that is not accepted is notified';
    ok $petrel->wait_log(qr/$_: to=.*class=sender.*$waits/), 'deferred' for $null, $told, $never;
    is scalar(notices('told@sender.test')), 1, 'once';
    my ($n) = notices('told@sender.test');
    is $n->{status}[1]{action}, 'delayed', 'of a delay';
    like +($sink->for_address('told@sender.test'))[0]{data}, qr/accepts only senders of the account/, 'with what can be done';
    is scalar($sink->for_address('never@sender.test')), 0, 'NOTIFY=NEVER forbids it';
    is lines($petrel, qr/$null.*sender notified/), 0, 'nothing for the null sender';
    # It survives a restart that the sender has been notified.
    is $petrel->stop, 0, 'stops';
    $petrel->start;
    ok Petrel::wait_for(sub { lines($petrel, qr/$told: to=.*class=sender/) >= 2 }), 'tried again after a restart';
    for my $reply ('535 5.7.8 bad password', '550 5.4.5 Daily sending quota exceeded') {
        $host->says($reply);
        my $to = $reply =~ /^535/ ? 'login' : 'quota';
        take($petrel, "$to\@sender.test", 'x@one.test');
        ok $petrel->wait_log($to eq 'login' ? qr/refuses our user joe: 535/ : qr/class=quota.*$waits/), "$to: deferred";
        $petrel->stop;
        $host->says(undef); # before it is tried again
        $petrel->start;
        $petrel->run(qw(queue retry --all));
        ok $petrel->wait_empty, "$to: all leaves at last";
    }
    is scalar(notices('told@sender.test')), 1, 'still once';
    is scalar(notices("$_\@sender.test")), 0, "$_: the operator's matter, no early notification" for qw(login quota);
    $petrel->stop;
}

# A time of the route that is as early has its notification in the same one.
for my $time ('1s', '3s') {
    my $petrel = petrel(delay_warning_time => $time);
    $host->says('553 5.7.1 <x>: Sender address rejected: not owned by user joe');
    take($petrel, "t$time\@sender.test", 'x@one.test');
    ok $sink->wait_for("t$time\@sender.test"), "$time: notified";
    my $want = $time eq '1s' ? 1 : 2;
    ok Petrel::wait_for(sub { notices("t$time\@sender.test") >= $want }), "$time: $want in all";
    $host->says(undef);
    $petrel->run(qw(queue retry --all));
    ok $petrel->wait_empty, "$time: sent at last";
    is scalar(notices("t$time\@sender.test")), $want, "$time: no more";
    $petrel->stop;
}
$host->stop;
$sink->stop;
done_testing;
