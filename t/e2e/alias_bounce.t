#!/usr/bin/perl
# Forwarded mail that a real Postfix takes and bounces: the bounce comes back by SMTP to the address of SRS, is unwound and
# reaches the author; over one host of ours (SRS0) and over two (SRS1). And Postfix that refuses it in the session.
use lib 't/e2e';
use E2E;
use Peer;

if (my $why = Peer::missing('postfix')) { plan skip_all => $why }
my $dir = tempdir('alias_bounce-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my %port = map { $_ => Petrel::free_port() } qw(one two);
# It takes mail for all domains, and bounces that for later.test by itself; one recipient it refuses in the session.
my $postfix = Peer::postfix($sink->{port}, relayhost => '', notify_classes => '', smtpd_reject_unlisted_recipient => 'no',
    transport_maps => 'inline:{ { later.test = error:5.1.1 no such mailbox } { one.test = smtp:[127.0.0.1]:' . $port{one} . ' } { two.test = smtp:[127.0.0.1]:' . $port{two} . ' } { inbox.test = smtp:[127.0.0.1]:' . $sink->{port} . ' } }',
    smtpd_recipient_restrictions => 'check_recipient_access inline:{ { refused@inbox.test = 550 5.7.1 not wanted } }, permit_mynetworks, reject');

sub host {
    my ($name, $aliases, $routes) = @_;
    my $host = Petrel->new(hostname => "$name.test", listen => "127.0.0.1:$port{$name}", aliases => Petrel::spit("$dir/$name", $aliases), check_helo => 'no', check_sender => 'no', relay_from => '192.0.2.0/24',
        routes => "$routes\nfar.test smtp://127.0.0.1:$sink->{port}\n* smtp://127.0.0.1:$postfix->{port}", minimal_backoff_time => '1s');
    $host->{port} = $port{$name};
    return $host->start;
}
my $one = host('one', <<'END', "two.test smtp://127.0.0.1:$port{two}");
ok: reader@inbox.test
dead: nobody@later.test
refused: refused@inbox.test
half: nobody@later.test, reader@inbox.test
over: dead@two.test
list: nobody@later.test
owner-list: owner@far.test
END
my $two = host('two', "dead: nobody\@later.test\n", "one.test smtp://127.0.0.1:$port{one}");

my $number = 0;
sub goes {
    my ($to, $from) = @_;
    my $subject = 'mail ' . ++$number;
    like $one->send_mail($from // 'author@far.test', "$to\@one.test", "From: author\@far.test\nSubject: $subject\nMessage-ID: <$number\@far.test>\n\nx\n"), qr/^250/, "$to: taken";
    return $subject;
}
# The bounce of the mail of that subject, which reaches this address.
sub bounce_of {
    my ($subject, $to) = @_;
    my $found = sub { grep { $_->{data} =~ /^Subject: \Q$subject\E\r$/m && $_->{data} =~ m{^Content-Type: multipart/report}mi } $sink->for_address($to) };
    Petrel::wait_for(sub { $found->() });
    return $found->();
}
sub is_returned {
    my ($title, $to, $subject, $sender, $by) = @_;
    my @got = bounce_of($subject, $to);
    is scalar @got, 1, "$title: the bounce comes" or return diag $one->log, $two->log, $postfix->log;
    is $got[0]{from}, '', "$title: from nobody";
    like $got[0]{data}, qr/^Final-Recipient: rfc822; ?(?:nobody\@later|refused\@inbox)\.test\r$/mi, "$title: it names who was not reached";
    like $got[0]{data}, qr/^Reporting-MTA: dns; ?\Q$by\E\.test\r$/mi, "$title: $by has written it";
    unlike $got[0]{data}, qr/^From: .*SRS/m, "$title: a report as its author wrote it";
    ok $postfix->wait_log(qr/from=<$sender>/), "$title: it had left with a sender of ours" or diag $postfix->log;
    return;
}

my $subject = goes('ok');
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: $subject\r$/m } $sink->for_address('reader@inbox.test') }), 'Postfix forwards to the reader' or diag $postfix->log;
is_returned('one host', 'author@far.test', goes('dead'), qr/SRS0=[A-Z2-7]{6}=[A-Z2-7]{2}=far\.test=author\@one\.test/, 'postfix');
is_returned('two hosts', 'author@far.test', goes('over'), qr/SRS1=[A-Z2-7]{6}=one\.test==[A-Z2-7]{6}=[A-Z2-7]{2}=far\.test=author\@two\.test/, 'postfix');
ok $two->wait_log(qr/to=<SRS0=\S+\@one\.test>, orig_to=<SRS1=\S+\@two\.test>, .*status=sent/), 'two hosts: the second gives it to the first' or diag $two->log;
ok $one->wait_log(qr/to=<author\@far\.test>, orig_to=<SRS0=\S+\@one\.test>, .*status=sent/), 'two hosts: and that one to the author' or diag $one->log;
is_returned('refused in the session', 'author@far.test', goes('refused'), qr/SRS0=\S+\@one\.test/, 'one');
is_returned('one of two', 'author@far.test', $subject = goes('half'), qr/SRS0=\S+\@one\.test/, 'postfix');
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: $subject\r$/m } $sink->for_address('reader@inbox.test') }), 'one of two: the other one has it';
is_returned('a list', 'owner@far.test', $subject = goes('list'), qr/owner-list\@one\.test/, 'postfix');
is scalar(grep { $_->{data} =~ /^Subject: $subject\r$/m } $sink->for_address('author@far.test')), 0, 'a list: its author does not hear of it';
# An author whose address needs quotes, and one with signs that SRS uses, too.
is_returned("from $_->[0]", $_->[0], goes('over', $_->[0]), $_->[1], 'postfix') for ['"a b"@far.test', qr/"SRS1=[^"]*=far\.test=a b"\@two\.test/], ['a=b+c==d@far.test', qr/SRS1=\S+=far\.test=a=b\+c==d\@two\.test/];
# The null sender stays null: what is not delivered is not returned.
my $before = $sink->messages;
goes('dead', '');
ok $postfix->wait_log(qr/from=<>[^\n]*\n(?:.*\n)*?.*to=<nobody\@later\.test>.*status=bounced/), 'the null sender';
ok $_->wait_empty, 'nothing is left' for $one, $two;
is scalar($sink->messages), $before, 'and nobody hears of it';
unlike $one->log . $two->log, qr/Assertion|Sanitizer/, 'nothing else went wrong';
is $_->stop, 0, 'Petrel ends well' for $one, $two;
$postfix->stop;
done_testing;
