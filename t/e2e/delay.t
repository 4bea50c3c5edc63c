#!/usr/bin/perl
# The next hop says "later" for long: the sender is told, once, that the mail is late, and why; without needless facts, and never
# again, with any event of the daemon.
use lib 't/e2e';
use E2E;
use Report;

plan skip_all => 'no python3' unless Petrel::have('python3');

my %quick = (minimal_backoff_time => '1s', maximal_backoff_time => '1s');
my $notices = Sink->start;
my $back = "sender.test smtp://127.0.0.1:$notices->{port}";

# take(PETREL, mail...): its queue id.
sub take {
    my ($petrel, %mail) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    my $reply = $client->send(from => 'a@sender.test', data => "Subject: s\r\n\r\nb\r\n", %mail);
    $client->quit;
    return $reply =~ /queued as (\S+)/ ? $1 : die "not taken: $reply";
}

sub tries { my ($petrel, $id, $to) = @_; my $n = () = $petrel->log =~ /^.* $id: to=<\Q$to\E.*status=deferred/mg; return $n }

# It is tried so many times more.
sub wait_tries {
    my ($petrel, $id, $to, $more) = @_;
    my $before = tries($petrel, $id, $to);
    return Petrel::wait_for(sub { tries($petrel, $id, $to) >= $before + $more });
}

sub warnings_of { my ($petrel, $id) = @_; my $n = () = $petrel->log =~ / $id: sender notified of the delay: /g; return $n }
sub warned { my ($petrel, $id) = @_; return $petrel->wait_log(qr/ $id: sender notified of the delay: /) }

sub listing {
    my ($petrel, $id) = @_;
    my ($code, $said) = $petrel->run(qw(queue ls --json));
    return (grep { $_->{queue_id} eq $id } map { decode_json($_) } split /\n/, $said)[0];
}

# --- One notice, in every detail

{
    my @later = ('--fail-rcpt', 'later:450');
    my $sink = Sink->start(@later);
    my $sulky = Sink->start('--fail-rcpt', 'sulky:451');
    my %other = map { $_ => Sink->start(@later) } qw(patient silent);
    my $petrel = Petrel->new(%quick, log_level => 'debug', delay_warning_time => '1s', maximal_queue_lifetime => '3d', routes => join "\n",
        $back, "sulky.test smtp://127.0.0.1:$sulky->{port}", "hold.test hold",
        "patient.test smtp://127.0.0.1:$other{patient}{port}?delay_warning=100d",
        "silent.test smtp://127.0.0.1:$other{silent}{port}?delay_warning=0", "* smtp://127.0.0.1:$sink->{port}")->start;

    my $client = Client->greeted($petrel->{port});
    my @lines = (
        'MAIL FROM:<late@sender.test> ENVID=QQ+2B314 RET=FULL', 'RCPT TO:<good@x.test>', 'RCPT TO:<later@x.test>',
        'RCPT TO:<later-delay@x.test> NOTIFY=DELAY,FAILURE ORCPT=rfc822;Old+2Bname@else.test',
        'RCPT TO:<later-never@x.test> NOTIFY=NEVER', 'RCPT TO:<later-other@x.test> NOTIFY=SUCCESS,FAILURE',
        'RCPT TO:<later@silent.test>',
    );
    like $client->say($_), qr/^250/, $_ for @lines;
    $client->say('DATA');
    $client->put("Subject: late\r\nX-Mark: in the header\r\n\r\nmark in the body\r\n.\r\n");
    my ($id) = $client->reply =~ /queued as (\S+)/;
    $client->quit;

    my %quiet = (
        'a null sender' => take($petrel, from => '', to => 'later@x.test'),
        'NOTIFY=NEVER' => take($petrel, to => 'later@x.test', rcpt_parameters => 'NOTIFY=NEVER'),
        'NOTIFY=SUCCESS' => take($petrel, to => 'later@x.test', rcpt_parameters => 'NOTIFY=SUCCESS'),
        'NOTIFY=FAILURE' => take($petrel, to => 'later@x.test', rcpt_parameters => 'NOTIFY=FAILURE'),
        'a patient route' => take($petrel, to => 'later@patient.test'),
        'a silent route' => take($petrel, to => 'later@silent.test'),
    );
    my $held = take($petrel, to => 'u@hold.test');
    my $chain = take($petrel, from => 'sulky@sulky.test', to => 'later@x.test');

    my $message = $notices->wait_for('late@sender.test') or BAIL_OUT('no notice');
    my $report = Report::parse($message->{data});
    is $message->{from}, '', 'notice: from nobody';
    is $report->{type}, 'multipart/report', 'notice: its type';
    is $report->{report_type}, 'delivery-status', 'notice: of this kind';
    is_deeply $report->{types}, ['text/plain', 'message/delivery-status', 'text/rfc822-headers'], 'notice: three parts, the header alone though RET=FULL';
    is_deeply $report->{defects}, [], 'notice: no defects';
    is $report->{header}{subject}, 'Delayed Mail (still being retried)', 'notice: Subject';
    like $report->{header}{to}, qr/late\@sender\.test/, 'notice: To';
    is $report->{header}{'auto-submitted'}, 'auto-replied', 'notice: Auto-Submitted';
    my ($about, @each) = @{ $report->{status} };
    is $about->{'original-envelope-id'}, 'QQ+314', 'notice: ENVID, decoded';
    my %each = map { $_->{'final-recipient'} =~ s/^rfc822; ?//r => $_ } @each;
    is_deeply [sort keys %each], [qw(later-delay@x.test later@x.test)], 'notice: who is late and may be told, nobody else';
    for my $to (sort keys %each) {
        is $each{$to}{action}, 'delayed', "notice: $to is delayed";
        like $each{$to}{status}, qr/^4\.0\.0$/, "notice: $to has a status";
        like $each{$to}{'diagnostic-code'}, qr/^smtp; 450 4\.0\.0 /, "notice: $to has the reply";
        like $each{$to}{'will-retry-until'}, qr/^\w{3}, \d/, "notice: until when $to is tried";
        ok $each{$to}{'last-attempt-date'}, "notice: when $to was tried";
        like $report->{text}, qr/<\Q$to\E>\n.*?450 4\.0\.0 .*?will be retried until\n +\w{3}, \d/s, "notice: $to in words";
    }
    like $each{'later-delay@x.test'}{'original-recipient'}, qr/^rfc822; ?Old\+name\@else\.test$/, 'notice: ORCPT, decoded';
    like $report->{text}, qr/do not need to resend it/, 'notice: what to do, in words';
    unlike $report->{text}, qr/good\@|never\@|other\@|silent/, 'notice: and nobody else';
    like $report->{original}, qr/^X-Mark: in the header$/m, 'notice: the header';
    unlike $report->{original}, qr/mark in the body/, 'notice: and no more';

    # Once, over attempts, restarts and kills.
    ok Petrel::wait_for(sub { my $l = listing($petrel, $id); $l && $l->{sender_warned} }), 'the mark is on disk';
    like +($petrel->run('queue', 'show', $id))[1], qr/^warned: /m, 'queue show tells it';
    like +($petrel->run('queue', 'why', $id))[1], qr/^attempts: \d+ so far; the sender was notified/m, 'queue why tells it';
    ok wait_tries($petrel, $id, 'later@x.test', 2), 'it is tried again';
    for my $how (qw(TERM KILL)) {
        $how eq 'KILL' ? $petrel->kill9 : $petrel->stop;
        ok listing($petrel, $id)->{sender_warned}, "after $how the mark is there";
        $petrel->start;
        ok wait_tries($petrel, $id, 'later@x.test', 2), "after $how it is tried again";
    }
    is warnings_of($petrel, $id), 1, 'and nobody told again';
    is scalar($notices->for_address('late@sender.test')), 1, 'one notice';

    # Senders that hear nothing, though their mail is tried as often.
    for my $case (sort keys %quiet) {
        ok wait_tries($petrel, $quiet{$case}, 'later@', 2), "$case: it is tried";
        is warnings_of($petrel, $quiet{$case}), 0, "$case: no notice";
    }
    is listing($petrel, $held)->{queue_name}, 'hold', 'held mail is held';
    is warnings_of($petrel, $held), 0, 'and its sender not told of a delay';

    # A notice that is late itself.
    ok warned($petrel, $chain), 'another sender is told';
    my ($notice) = $petrel->log =~ / $chain: sender notified of the delay: (\S+)/;
    ok wait_tries($petrel, $notice, 'sulky@sulky.test', 3), 'who does not take the notice';
    is warnings_of($petrel, $notice), 0, 'nobody is told of that';
    my $all = () = $petrel->log =~ /sender notified of the delay/g;
    is $all, 2, 'two notices in all';

    # In the end it is delivered, without another word.
    my @hosts = ($sink, $sulky, values %other);
    $_->stop for @hosts;
    is scalar(grep { $_->again } @hosts), 4, 'the hosts take mail now';
    $petrel->run('queue', 'rm', $held);
    ok $petrel->wait_empty, 'all is delivered';
    is scalar($sink->for_address($_)), 1, "$_ has it once" for qw(later-delay@x.test later-never@x.test);
    is scalar($other{patient}->messages), 1, 'as do others';
    is scalar($notices->for_address('late@sender.test')), 1, 'still one notice';
    is $petrel->stop, 0, 'it ends well';
    $_->stop for @hosts;
}

# --- Off unless it is asked for; by a route

{
    my $sink = Sink->start('--fail-rcpt', 'later:450');
    my $other = Sink->start('--fail-rcpt', 'later:450');
    my $petrel = Petrel->new(%quick, routes => "$back\none.test smtp://127.0.0.1:$other->{port}?delay_warning=1s\n* smtp://127.0.0.1:$sink->{port}")->start;
    my $off = take($petrel, to => 'later@x.test');
    my $on = take($petrel, from => 'route@sender.test', to => 'later@one.test');
    ok warned($petrel, $on), 'a route warns';
    ok $notices->wait_for('route@sender.test'), 'its sender hears of it';
    ok wait_tries($petrel, $off, 'later@x.test', 3), 'another route is tried';
    is warnings_of($petrel, $off), 0, 'and warns of nothing';

    # A final failure is reported as ever.
    is +($petrel->run('queue', 'bounce', $on))[0], 0, 'the operator returns it';
    ok Petrel::wait_for(sub { $notices->for_address('route@sender.test') == 2 }), 'the failure is told too';
    my ($last) = grep { $_->{status}[1]{action} eq 'failed' } map { Report::parse($_->{data}) } $notices->for_address('route@sender.test');
    ok $last, 'as one';
    is $petrel->stop, 0, 'it ends well';
    $_->stop for $sink, $other;
}
$notices->stop;
done_testing;
