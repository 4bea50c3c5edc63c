#!/usr/bin/perl
# The next hop is slow, rude or breaks off: what can be delivered later is, what cannot comes
# back in a report that says why, and nothing is tried more often than it must be.
use lib 't/e2e';
use E2E;
use Report;

plan skip_all => 'no python3' unless Petrel::have('python3');

my %quick = (minimal_backoff_time => '1s', maximal_backoff_time => '2s');
my $bounces = Sink->start;
my $back = "sender.test smtp://127.0.0.1:$bounces->{port}";

# take(PETREL, mail...): its queue id.
sub take {
    my ($petrel, %mail) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    my $reply = $client->send(from => 'a@sender.test', data => "Subject: s\r\n\r\nb\r\n", %mail);
    $client->quit;
    return $reply =~ /queued as (\S+)/ ? $1 : die "not taken: $reply";
}

# The log lines about a message, or about one recipient of it.
sub outcomes {
    my ($petrel, $id, $to) = @_;
    my $start = quotemeta($to // '');
    return $petrel->log =~ /^(.* $id: to=<$start.*)$/mg;
}

sub wait_status { my ($petrel, $id, $status) = @_; return $petrel->wait_log(qr/ $id: to=.*, status=$status /) }

# The report to this sender, parsed.
sub report_to {
    my $sender = shift;
    my $message = $bounces->wait_for($sender) or return;
    return {%{ Report::parse($message->{data}) }, from => $message->{from}};
}

# --- Every stage, every kind of trouble

# domain => [options of its sink, first status, pattern of the first outcome, copies that arrive]
my %trouble = (
    (map { ("busy-$_" => [['--fail', "$_:421:1"], 'deferred', qr/dsn=4\.0\.0.*421 4\.0\.0/, 1]) } qw(banner helo mail rcpt data dot)),
    (map { ("later-$_" => [['--fail', "$_:451:1"], 'deferred', qr/dsn=4\.0\.0.*451 4\.0\.0/, 1]) } qw(helo mail rcpt data dot)),
    (map { ("close-$_" => [['--close', "$_:1"], 'deferred', qr/dsn=4\.4\.2.*lost connection/, $_ eq 'dot' ? 2 : 1]) } qw(banner helo mail rcpt data body dot)),
    (map { ("late-$_" => [['--delay', "$_:100000:1"], 'deferred', qr/dsn=4\.4\.2.*timed out/, 1]) } qw(banner helo mail rcpt data dot)),
    (map { ("never-$_" => [['--fail', "$_:550"], 'bounced', qr/dsn=5\.0\.0.*550 5\.0\.0/, 0]) } qw(mail rcpt data dot)),
    'closed' => [['--fail', 'banner:554:1'], 'deferred', qr/dsn=4\.\d\.\d.*554/, 1],
    'old' => [['--no-ehlo'], 'sent', qr/dsn=2\.0\.0/, 1],
    'plain' => [['--no-pipelining'], 'sent', qr/dsn=2\.0\.0/, 1],
    'small' => [['--size', 100], 'bounced', qr/dsn=5\.3\.4.*SIZE/, 0],
    'slow' => [['--delay', 'banner:300', '--delay', 'mail:300', '--delay', 'dot:300'], 'sent', qr/dsn=2\.0\.0/, 1],
);
{
    my %sink = map { $_ => Sink->start(@{ $trouble{$_}[0] }) } keys %trouble;
    my $routes = join "\n", $back, map { "$_.test smtp://127.0.0.1:$sink{$_}{port}?timeout_scale=0.01" } sort keys %trouble;
    my $petrel = Petrel->new(routes => $routes, %quick)->start;
    my %id = map { $_ => take($petrel, from => "$_\@sender.test", to => "u\@$_.test", data => "Subject: $_\r\n\r\n" . "line\r\n" x 200) } sort keys %trouble;
    for my $case (sort keys %trouble) {
        my ($options, $status, $pattern, $copies) = @{ $trouble{$case} };
        wait_status($petrel, $id{$case}, $status eq 'bounced' ? 'bounced' : 'sent');
        my @lines = outcomes($petrel, $id{$case});
        like $lines[0] // '', qr/status=$status /, "$case: first it is $status";
        like $lines[0] // '', $pattern, "$case: and the log says why";
        is scalar(@lines), $status eq 'deferred' ? 2 : 1, "$case: it is tried no more often" or diag join "\n", @lines;
        is scalar($sink{$case}->for_address("u\@$case.test")), $copies, "$case: copies that arrive";
        next if $status ne 'bounced';
        my $report = report_to("$case\@sender.test");
        is $report->{status}[1]{action}, 'failed', "$case: the sender is told";
        like $report->{status}[1]{status}, qr/^5\.[03]\.[04]$/, "$case: with a status";
        like $report->{status}[1]{'diagnostic-code'}, $case eq 'small' ? qr/^x-petrel;.*SIZE/ : qr/^smtp; 550 5\.0\.0 Refused, as told/, "$case: and the reason";
    }
    is +($sink{old}->messages)[0]{protocol}, 'SMTP', 'old: by HELO';
    ok $petrel->wait_empty, 'nothing is left of all the trouble';
    is $petrel->stop, 0, 'it ends well';
    $_->stop for values %sink;
}

# --- Good, late and bad recipients of one message; what the sender asks for

{
    my $sink = Sink->start('--fail-rcpt', 'gone:550', '--fail-rcpt', 'busy:450:2', '--fail-rcpt', 'full:452');
    my $petrel = Petrel->new(routes => "$back\n* smtp://127.0.0.1:$sink->{port}", %quick, maximal_queue_lifetime => '4s')->start;
    my $client = Client->greeted($petrel->{port});
    my @lines = (
        'MAIL FROM:<mixed@sender.test> ENVID=QQ+2B314 RET=HDRS', 'RCPT TO:<good@x.test>', 'RCPT TO:<busy@x.test>',
        'RCPT TO:<gone@x.test> ORCPT=rfc822;Old+2Bname@else.test', 'RCPT TO:<full@x.test>', 'RCPT TO:<gone-silently@x.test> NOTIFY=NEVER',
        'RCPT TO:<gone-success@x.test> NOTIFY=SUCCESS', 'RCPT TO:<gone-failure@x.test> NOTIFY=FAILURE,DELAY',
    );
    like $client->say($_), qr/^250/, $_ for @lines;
    $client->say('DATA');
    $client->put("Subject: mixed\r\nX-Mark: in the header\r\n\r\nmark in the body\r\n.\r\n");
    my ($id) = $client->reply =~ /queued as (\S+)/;
    $client->quit;
    my $report = report_to('mixed@sender.test');
    ok $report, 'mixed: the sender gets a report' or BAIL_OUT('no report');
    ok scalar(outcomes($petrel, $id, 'full')), 'mixed: at the end of the first attempt';
    ok $petrel->wait_empty, 'mixed: the others go on';
    $bounces->wait_for('mixed@sender.test', 2); # the queue is empty for a moment before the second is in it
    my @reports = map { Report::parse($_->{data}) } $bounces->for_address('mixed@sender.test');

    is_deeply [map { /status=(\w+)/ } outcomes($petrel, $id, 'good')], ['sent'], 'mixed: good is sent at once, once';
    is_deeply [map { /status=(\w+)/ } outcomes($petrel, $id, 'busy')], [qw(deferred deferred sent)], 'mixed: busy is sent at the third attempt';
    is_deeply [map { /status=(\w+)/ } outcomes($petrel, $id, 'gone@')], ['bounced'], 'mixed: gone is given up at once';
    my @full = map { /status=(\w+)/ } outcomes($petrel, $id, 'full');
    is pop @full, 'expired', 'mixed: full is given up in the end';
    is scalar(grep { $_ ne 'deferred' } @full), 0, 'mixed: and waits until then';
    is scalar($sink->for_address("$_\@x.test")), 1, "mixed: $_ has it once" for qw(good busy);

    is $report->{from}, '', 'report: from nobody';
    is $report->{type}, 'multipart/report', 'report: its type';
    is $report->{report_type}, 'delivery-status', 'report: of this kind';
    is_deeply $report->{types}, ['text/plain', 'message/delivery-status', 'text/rfc822-headers'], 'report: three parts';
    is_deeply $report->{defects}, [], 'report: no defects';
    like $report->{header}{from}, qr/MAILER-DAEMON\@petrel\.test/, 'report: From';
    like $report->{header}{to}, qr/mixed\@sender\.test/, 'report: To';
    is $report->{header}{'auto-submitted'}, 'auto-replied', 'report: Auto-Submitted';
    ok $report->{header}{$_}, "report: $_" for qw(subject date message-id mime-version);
    my ($about) = @{ $report->{status} };
    my @each = map { @{ $_->{status} }[1 .. $#{ $_->{status} }] } @reports;
    is $about->{'reporting-mta'}, 'dns; petrel.test', 'report: who says so';
    is $about->{'original-envelope-id'}, 'QQ+314', 'report: ENVID, decoded';
    ok $about->{'arrival-date'}, 'report: when it came';
    my %each = map { $_->{'final-recipient'} =~ s/^rfc822; ?//r => $_ } @each;
    is scalar(@each), scalar(keys %each), 'reports: each once';
    is_deeply [sort map { $_->{'final-recipient'} =~ s/^rfc822; ?//r } @{ $report->{status} }[1 .. $#{ $report->{status} }]],
        [qw(gone-failure@x.test gone@x.test)], 'report: those of the first attempt';
    is_deeply [sort keys %each], [qw(full@x.test gone-failure@x.test gone@x.test)], 'report: who failed and may be told, nobody else';
    is $each{$_}{action}, 'failed', "report: $_ failed" for sort keys %each;
    is $each{'gone@x.test'}{status}, '5.0.0', 'report: status of gone';
    like $each{'full@x.test'}{status}, qr/^[45]\.\d\.\d$/, 'report: status of full';
    like $each{'gone@x.test'}{'diagnostic-code'}, qr/^smtp; 550 5\.0\.0 Refused, as told/, 'report: the reply';
    like $each{'gone@x.test'}{'remote-mta'}, qr/^dns; \[?127\.0\.0\.1/, 'report: whose';
    like $each{'gone@x.test'}{'original-recipient'}, qr/^rfc822; ?Old\+name\@else\.test$/, 'report: ORCPT, decoded';
    ok !exists $each{'full@x.test'}{'original-recipient'}, 'report: and only where it was given';
    like $report->{text}, qr/\Q$_\E/, "report: the text names $_" for qw(gone-failure@x.test gone@x.test);
    unlike $report->{text}, qr/full\@/, 'report: and not who is still tried';
    like $reports[1]{text}, qr/full\@x\.test/, 'report: the second names who expired';
    unlike $report->{text}, qr/good\@|busy\@|silently|success\@/, 'report: and nobody else';
    like $report->{original}, qr/^X-Mark: in the header$/m, 'report: RET=HDRS returns the header';
    unlike $report->{original}, qr/mark in the body/, 'report: and no more';
    like $report->{original}, qr/^Received: /m, 'report: with our trace';
    is scalar($bounces->for_address('mixed@sender.test')), 2, 'mixed: one report for each attempt in which some failed';

    take($petrel, from => 'whole@sender.test', to => 'gone@x.test', mail_parameters => 'RET=FULL', data => "Subject: whole\r\n\r\nfirst line\r\n.dot\r\nlast line\r\n");
    $report = report_to('whole@sender.test');
    is_deeply $report->{types}, ['text/plain', 'message/delivery-status', 'message/rfc822'], 'RET=FULL: three parts';
    like $report->{original}, qr/^Subject: whole\n\nfirst line\n\.dot\nlast line\n/m, 'RET=FULL: returns the message';
    is_deeply $report->{defects}, [], 'RET=FULL: no defects';

    for my $notify (qw(NEVER SUCCESS DELAY)) {
        my $quiet = take($petrel, from => "\L$notify\E\@sender.test", to => 'gone@x.test', rcpt_parameters => "NOTIFY=$notify");
        wait_status($petrel, $quiet, 'bounced');
    }
    ok $petrel->wait_empty, 'NOTIFY: nothing is left';
    is scalar($bounces->for_address("\L$_\E\@sender.test")), 0, "NOTIFY=$_: no report of a failure" for qw(NEVER SUCCESS DELAY);
    is $petrel->stop, 0, 'it ends well';
    $sink->stop;
}

# --- Until it is too late; and when nobody can be told

{
    my $sink = Sink->start('--fail-rcpt', 'gone:550');
    my $dead = Sink->start;
    $dead->stop;
    my $petrel = Petrel->new(%quick, maximal_queue_lifetime => '2s', bounce_queue_lifetime => '2s');
    my $mail = "$petrel->{dir}/mail";
    my $routes = "dead.test smtp://127.0.0.1:$dead->{port}\n$back\nunreachable.test smtp://127.0.0.1:$dead->{port}\n";
    $petrel->configure(routes => "${routes}petrel.test maildir:$mail/%u?create=all\n* smtp://127.0.0.1:$sink->{port}");
    mkdir $mail;
    $petrel->start;

    my $id = take($petrel, from => 'old@sender.test', to => 'u@dead.test');
    my $report = report_to('old@sender.test');
    my @lines = outcomes($petrel, $id);
    like $lines[-1], qr/dsn=4\.4\.1, status=expired \(/, 'expired: the log says so';
    cmp_ok scalar(grep { /status=deferred/ } @lines), '>=', 2, 'expired: it was tried again before';
    is $report->{status}[1]{action}, 'failed', 'expired: the sender is told';
    like $report->{status}[1]{status}, qr/^4\.4\.[17]$/, 'expired: with the status of the last attempt';
    like $report->{text}, qr/attempted for \d+ seconds, without success/, 'expired: in words';

    # A bounce that bounces: postmaster has it.
    $id = take($petrel, from => '', to => 'gone@x.test', data => "Subject: a bounce of somebody\r\n\r\nb\r\n");
    my $box = "$mail/postmaster/new";
    ok Petrel::wait_for(sub { glob "$box/*" }), 'double bounce: postmaster gets it' or diag $petrel->log;
    my $double = Report::parse(Petrel::slurp((glob "$box/*")[0]));
    is $double->{type}, 'multipart/report', 'double bounce: a report';
    like $double->{header}{to}, qr/postmaster\@petrel\.test/, 'double bounce: to postmaster';
    like $double->{status}[1]{'final-recipient'}, qr/gone\@x\.test/, 'double bounce: about this recipient';
    like $double->{original}, qr/Subject: a bounce of somebody/, 'double bounce: and this message';

    # Our own bounce that bounces: the same.
    take($petrel, from => 'gone@y.test', to => 'gone@x.test', data => "Subject: chain\r\n\r\nb\r\n");
    ok Petrel::wait_for(sub { (() = glob "$box/*") == 2 }), 'double bounce: of our own report too';

    # Nor does postmaster exist: the log is all there is.
    $petrel->stop;
    $petrel->configure(routes => "${routes}petrel.test error:5.1.1 nobody is there\n* smtp://127.0.0.1:$sink->{port}");
    $petrel->start;
    take($petrel, from => '', to => 'gone@x.test');
    ok $petrel->wait_log(qr/notification to postmaster failed/), 'triple bounce: the log says it';
    ok $petrel->wait_empty, 'triple bounce: and that is the end';
    my $before = $bounces->count('messages');

    # A sender that cannot be reached in time: postmaster again, who is not there.
    take($petrel, from => 'a@unreachable.test', to => 'gone@x.test');
    ok Petrel::wait_for(sub { my $n = () = $petrel->log =~ /notification to postmaster failed/g; $n == 2 }), 'a report that expires becomes a double bounce';
    ok $petrel->wait_empty, 'and that ends, too';
    is $bounces->count('messages'), $before, 'nobody else was told';
    is $petrel->stop, 0, 'it ends well';
    $sink->stop;
}

done_testing;
