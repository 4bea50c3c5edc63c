#!/usr/bin/perl
# copy_to: each message that comes by SMTP, by a login or by sendmail(1) is in the archive once, in a transaction of its own that the
# other hosts know nothing of; nobody hears of a copy that fails. The archive is a Postfix, too.
use lib 't/e2e';
use E2E;
use JSON::PP qw(decode_json);
use Peer;

my ($archive, $hop) = map { Sink->start } 1 .. 2;
my $petrel = Petrel->new(hostname => 'here.test', relay_from => '127.0.0.1', copy_to => "arc\@archive.test\nrecipient:.far.test other\@archive.test",
    routes => "archive.test smtp://127.0.0.1:$archive->{port}\nbad.test error:5.1.1 gone\n* smtp://127.0.0.1:$hop->{port}")->start;

sub submit {
    my ($p, $from, @to) = @_;
    my $client = Client->greeted($p->{port}) or die 'no greeting';
    my @replies = map { $client->say($_) } "MAIL FROM:<$from>", (map { "RCPT TO:<$_>" } @to), 'DATA', "Subject: for @to\r\n\r\nx\r\n.";
    $client->quit;
    return $replies[-1] =~ /queued as (\S+)/;
}
submit($petrel, 'ann@here.test', 'you@near.test', 'he@sub.far.test');
ok $petrel->wait_empty, 'all is delivered' or diag $petrel->log;
is_deeply [sort map { @{ $_->{to} } } $archive->messages], ['arc@archive.test', 'other@archive.test'], 'by SMTP: one copy for each address that matches';
is_deeply [map { $_->{from} } $archive->messages], ['', ''], 'from the null sender';
is_deeply [sort map { @{ $_->{to} } } $hop->messages], ['he@sub.far.test', 'you@near.test'], 'the other host knows nothing of them';
is scalar($hop->messages), 1, 'in one transaction without them';
unlike $_->{data}, qr/archive\.test/, 'nor does its message' for $hop->messages;
my ($copy) = $archive->for_address('arc@archive.test');
like $copy->{data}, qr/^Subject: for you\@near\.test he\@sub\.far\.test\r$/m, 'the whole message';
submit($petrel, '', 'arc@archive.test');
ok $petrel->wait_empty, 'delivered';
is scalar($archive->for_address('arc@archive.test')), 2, 'mail to the archive is no copy more';

submit($petrel, 'ann@here.test', 'x@archive.test');
ok $petrel->wait_empty, 'delivered';
is_deeply [sort map { "$_->{from}: @{ $_->{to} }" } grep { $_->{data} =~ /^Subject: for x\@archive\.test\r$/m } $archive->messages], [': arc@archive.test', 'ann@here.test: x@archive.test'],
    'to the host of the archive, too, a copy comes by itself';

my ($code, $said) = Petrel::command("Subject: by sendmail\n\nx\n", './petrel', '-c', $petrel->conf, 'sendmail', '-f', 'bob@here.test', 'you@near.test');
is $code, 0, 'sendmail(1)' or diag $said;
ok $petrel->wait_empty, 'delivered';
is scalar(grep { $_->{data} =~ /^Subject: by sendmail\r$/m } $archive->messages), 1, 'its mail, too';
$petrel->stop;
Petrel::command("Subject: without a daemon\n\nx\n", './petrel', '-c', $petrel->conf, 'sendmail', '-f', 'bob@here.test', 'you@near.test');
$petrel->start;
ok $petrel->wait_empty, 'delivered';
is scalar(grep { $_->{data} =~ /^Subject: without a daemon\r$/m } $archive->messages), 1, 'and what waits for the daemon';

# --- An archive that is away, or refuses

$petrel->stop;
$archive->stop;
$petrel->configure(copy_to => "arc\@archive.test\nlost\@bad.test")->start;
my $before = () = $hop->messages;
my ($id) = submit($petrel, 'ann@here.test', 'you@near.test');
ok Petrel::wait_for(sub { $hop->messages == $before + 1 }), 'away: the mail goes';
ok $petrel->wait_log(qr/$id: to=<arc\@archive\.test>.*status=deferred/), 'the copy waits';
ok $petrel->wait_log(qr/$id: warning: the copy for <lost\@bad\.test> failed, and nobody is notified/), 'another has failed';
is scalar($hop->messages), $before + 1, 'nobody is notified';
my $status = decode_json($petrel->status);
is $status->{totals}{copies_failed}, 1, 'counted';
ok Petrel::wait_for(sub { ($petrel->run('doctor', '--json'))[1] =~ /copies_failed/ || ($petrel->run('status'))[1] =~ /the last one for <lost\@bad\.test>/ }), 'and found' or diag(($petrel->run('status'))[1]);
$petrel->kill9;
$archive->again;
$petrel->start;
$petrel->run('queue', 'retry', '--all');
ok $petrel->wait_empty, 'after SIGKILL' or diag $petrel->log;
is scalar(grep { $_->{data} =~ /^Subject: for you\@near\.test\r$/m } $archive->messages), 1, 'the copy comes';
is scalar($hop->messages), $before + 1, 'and only it';
$petrel->stop;

SKIP: {
    my $missing = Peer::missing('postfix');
    skip $missing, 3 if $missing;
    my $behind = Sink->start;
    my $postfix = Peer::postfix($behind->{port});
    $petrel->configure(copy_to => 'arc@archive.test', routes => "archive.test smtp://127.0.0.1:$postfix->{port}\n* smtp://127.0.0.1:$hop->{port}")->start;
    my $mail = submit($petrel, 'ann@here.test', 'you@near.test', 'he@near.test');
    my $got = $behind->wait_for('arc@archive.test');
    ok $got, 'a Postfix takes the copy' or diag $petrel->log, $postfix->log;
    is_deeply [$got->{from}, $got->{to}], ['', ['arc@archive.test']], 'without a sender, for the archive alone';
    like $got->{data}, qr/^Delivered-To: arc\@archive\.test\r$/m, 'which the header names';
    $petrel->stop;
    $postfix->stop;
}

# --- Settings

($code, $said) = Petrel->new(copy_to => "archive\nsender:a.test arc\@x.test more")->run('check');
isnt $code, 0, 'bad entries';
like $said, qr/copy_to: 'archive': ends with no address/, 'the first' or diag $said;
like $said, qr/copy_to: 'sender:a.test arc\@x.test more': has more than two words/, 'and the second';
($code, $said) = Petrel->new(hostname => 'here.test', copy_to => 'arc@here.test', routes => "gone.test error:5.1.1 no\n* mx")->run('check');
like $said, qr/copy_to: mail for <arc\@here\.test> is in a domain of ours without a mailbox/, 'an address without a mailbox' or diag $said;

done_testing;
