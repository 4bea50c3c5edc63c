#!/usr/bin/perl
# Reports that come back: mail leaves with a tagged sender for each recipient; a report to it, or a complaint that quotes it,
# becomes an event of the message, and is not delivered. Forged ones count for nothing.
use lib 't/e2e';
use E2E;
use Hook;

plan skip_all => Hook->missing if Hook->missing;
my $hook = Hook->start;
my $sink = Petrel::sink();
my $petrel = Petrel->new(
    hostname => 'mail.shop.test', relay_from => '127.0.0.1', bounces => 'bounce@shop.test', local_domains => 'shop.test mail.shop.test',
    events => $hook->url, events_linger => '50ms',
    routes => "a.test smtp://127.0.0.1:$sink->{port}?tls=none&verp=yes\nplain.test smtp://127.0.0.1:$sink->{port}?tls=none\nbounce\@shop.test smtp://127.0.0.1:$sink->{port}?tls=none",
)->start;

my $seen = 0;
sub arrived {
    my ($count) = @_;
    my @mail = map { Petrel::wait_arrived($sink, $seen + $_) } 1 .. $count;
    $seen += $count;
    return @mail;
}
sub told { my ($type) = @_; return grep { $_->{type} eq $type } $hook->taken }
sub counted { my ($kind) = @_; return decode_json($petrel->status =~ s/\A[^{]*//r)->{returns}{$kind} }

# --- The tag

$petrel->send_mail('news@shop.test', [ 'joe@a.test', 'ann@a.test' ], "From: news\@shop.test\nSubject: x\n\nhello");
my @mail = arrived(2);
my %from = map { $_->{to}[0] => $_->{from} } @mail;
is scalar(keys %from), 2, 'a transaction for each recipient';
my %tag = map { $_ => $from{$_} =~ /^bounce\+([0-9A-Z]{36})\@shop\.test$/ ? $1 : '' } keys %from;
ok $tag{'joe@a.test'} && $tag{'ann@a.test'} && $tag{'joe@a.test'} ne $tag{'ann@a.test'}, 'with a tag of its own' or diag explain \%from;
my ($message) = $petrel->log =~ /: (\S+): client=.*from=<news\@shop\.test>/;
my ($stamp) = $mail[0]{content} =~ /^(X-Petrel-Return: \S+)/m;
ok $stamp, 'and a stamp';
$petrel->send_mail('news@shop.test', [ 'joe@plain.test', 'ann@plain.test' ], "Subject: x\n\nhello");
my ($plain) = arrived(1);
is $plain->{from}, 'news@shop.test', 'other routes have none';
unlike $plain->{content}, qr/X-Petrel-Return/, 'and no stamp';

# --- A report

sub dsn {
    my ($recipient, $action, $status, $more) = @_;
    return "From: MAILER-DAEMON\@a.test\nSubject: Undelivered Mail\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        . "--b\n\nThis is the mail system.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.a.test\n\nFinal-Recipient: rfc822; $recipient\n"
        . "Action: $action\nStatus: $status\nDiagnostic-Code: smtp; 550 $status no such user\n\n" . ($more // '') . "--b--\n";
}
my $lower = lc $from{'joe@a.test'};
like $petrel->send_mail('', $lower, dsn('joe@a.test', 'failed', '5.1.1')), qr/^250/, 'a report, whose host has folded the case';
ok Petrel::wait_for(sub { told('bounced_later') == 1 }), 'is an event';
my ($later) = told('bounced_later');
is_deeply [@{$later}{qw(message recipient action enhanced code class reporter)}], [$message, 'joe@a.test', 'failed', '5.1.1', 550, 'no_user', 'mx.a.test'], 'of the message';
like $petrel->log, qr/ $message: to=<joe\@a\.test>, returned=failed, class=no_user, dsn=5\.1\.1, reporter=mx\.a\.test, other=\S+ \(550 5\.1\.1 no such user\)/, 'the log';
like $petrel->log, qr/to=<\Q$lower\E>.*status=sent \(a report, read; about $message\)/, 'and the end of the report';
like +($petrel->run('trace', $message))[1], qr{<joe\@a\.test>: failed, by a report that came later of mx\.a\.test: 550 5\.1\.1 no such user}, 'the trace has it';
is counted('bounced'), 1, 'it is counted';

$petrel->send_mail('', $from{'ann@a.test'}, dsn('forwarded@c.test', 'failed', '5.2.2', "--b\nContent-Type: text/rfc822-headers\n\n" . ($mail[0]{to}[0] eq 'ann@a.test' ? $mail[0] : $mail[1])->{content} =~ s/\r?\n\r?\n.*//sr . "\n"));
ok Petrel::wait_for(sub { told('bounced_later') == 2 }), 'behind a forwarder';
is((told('bounced_later'))[1]{recipient}, 'ann@a.test', 'it is about our recipient');
is((told('bounced_later'))[1]{sender_domain}, 'shop.test', 'and the sender is known');

$petrel->send_mail('', $from{'ann@a.test'}, dsn('ann@a.test', 'delayed', '4.4.1'));
ok Petrel::wait_for(sub { grep { $_->{action} eq 'delayed' } told('bounced_later') }), 'a delay';
$petrel->send_mail('', $from{'ann@a.test'}, dsn('ann@a.test', 'delivered', '2.1.5'));
ok Petrel::wait_for(sub { counted('positive') == 1 }), 'a success is only counted';

# --- A complaint to the plain address

sub arf {
    my ($tag, $type) = @_;
    return "From: fbl\@loop.test\nSubject: FW: x\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\n\n--b\n\nabuse\n--b\n"
        . "Content-Type: message/feedback-report\n\nFeedback-Type: $type\nUser-Agent: Loop/1\nVersion: 1\nOriginal-Rcpt-To: <hidden>\n\n--b\nContent-Type: message/rfc822\n\n"
        . "Return-Path: <bounce+$tag\@shop.test>\n$stamp\nSubject: x\n\nhello\n--b--\n";
}
my $first = $mail[0]{to}[0];
$petrel->send_mail('fbl@loop.test', 'bounce@shop.test', arf($tag{$first}, 'abuse'));
ok Petrel::wait_for(sub { told('complained') == 1 }), 'a complaint';
is_deeply [@{ (told('complained'))[0] }{qw(message recipient feedback)}], [$message, $first, 'abuse'], 'of the message, with the address that was hidden';
$petrel->send_mail('fbl@loop.test', 'bounce@shop.test', arf($tag{$first}, 'not-spam'));
ok Petrel::wait_for(sub { counted('positive') == 2 }), 'not-spam is none';

# --- Forged ones

my $bad = $tag{'joe@a.test'} =~ s/.$/$& eq 'A' ? 'B' : 'A'/er;
like +($petrel->dialogue('EHLO c.test', 'MAIL FROM:<>', "RCPT TO:<bounce+$bad\@shop.test>", 'QUIT'))[3], qr/^550 5\.1\.1/, 'another tag is refused';
$petrel->send_mail('', 'bounce@shop.test', dsn('joe@a.test', 'failed', '5.1.1'));
ok Petrel::wait_for(sub { counted('untagged') == 1 }), 'no tag';
$petrel->send_mail('', $from{'joe@a.test'}, dsn('ann@a.test', 'failed', '5.1.1'));
ok Petrel::wait_for(sub { counted('wrong_recipient') == 1 }), 'another recipient';
$petrel->send_mail('', 'bounce@shop.test', arf($bad, 'abuse'));
ok Petrel::wait_for(sub { counted('bad_tag') == 2 }), 'a complaint with another tag';
is_deeply [scalar(told('bounced_later')), scalar(told('complained'))], [3, 1], 'no event of them';

# --- Other mail

$petrel->send_mail('', $from{'joe@a.test'}, "From: joe\@a.test\nSubject: Out of Office\nAuto-Submitted: auto-replied\n\naway");
ok Petrel::wait_for(sub { $petrel->log =~ /to=<\Q$from{'joe@a.test'}\E>.*\(not a report, and nobody reads this address\)/ }), 'an automatic reply to a tag ends';
$petrel->send_mail('joe@a.test', 'bounce@shop.test', "From: joe\@a.test\nSubject: hello\n\nhello");
is((arrived(1))[0]{to}[0], 'bounce@shop.test', 'other mail to the address goes where its route leads');
is counted('others'), 2, 'counted';

# --- A sender that wants to hear of success, and errors of settings

$petrel->dialogue('EHLO c.test', 'MAIL FROM:<news@shop.test>', 'RCPT TO:<joe@a.test> NOTIFY=SUCCESS', 'DATA', ["Subject: x\r\n\r\nb\r\n.\r\n"], 'QUIT');
is((arrived(1))[0]{from}, 'news@shop.test', 'it hears from the next hop');
for ([verp => 'yes', 'needs `bounces`'], [bounces => 'a+b@shop.test', 'say LOCAL@DOMAIN']) {
    my ($code, $out) = Petrel::command('', $Petrel::binary, '-c', '/dev/null', '-o', "$_->[0] = $_->[1]", 'check');
    ok $code != 0 && $out =~ /$_->[0]: .*\Q$_->[2]\E/, "check: $_->[0] = $_->[1]" or diag "$code $out";
}
$petrel->stop;
done_testing;
