#!/usr/bin/perl
# active_recipient_limit over real sockets: the status never shows more recipients than that while much mail of many
# recipients waits, small mail does not wait with it, and a restart, which finds all of it on disk, keeps the limit, too.
use lib 't/e2e';
use E2E;

my ($limit, $messages, $recipients) = (1000, 40, 100);
my $sink = Sink->start;
$sink->hold('dot');
my $petrel = Petrel->new(active_recipient_limit => $limit, site_active_share => 0, routes => "small.test smtp://127.0.0.1:$sink->{port}?concurrency=1&recipients=1\n"
    . "* smtp://127.0.0.1:$sink->{port}?concurrency=2")->start;
my @to = map { "r$_\@x.test" } 1 .. $recipients;

sub send_one {
    my @whom = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    $client->say('MAIL FROM:<a@sender.test>');
    $client->say("RCPT TO:<$_>") for @whom;
    $client->say('DATA');
    my $reply = $client->say("Subject: s\r\n\r\nb\r\n.");
    $client->quit;
    return $reply =~ /^250 .* ([0-9A-Z-]+)/;
}
sub status { return decode_json($petrel->status) }
sub active { return status()->{active_recipients} }

my @ids = map { send_one(@to) } 1 .. $messages;
is scalar @ids, $messages, 'all are taken';
my $is = status();
is $is->{limits}{active_recipient_limit}, $limit, 'the limit';
cmp_ok $is->{active_recipients}, '<=', $limit, 'no more recipients are in memory';
cmp_ok $is->{active_recipients}, '>=', $limit / 2, 'and not much fewer';
cmp_ok $is->{queue}{incoming}, '>=', $messages - $limit / $recipients, 'the rest waits on disk';
like +($petrel->run('status'))[1], qr/^queue      \d+ incoming, \d+ active \($is->{active_recipients} recipients\), 0 deferred/m, 'in words';
my ($code, $text) = $petrel->run('queue', 'why', $ids[-1]);
like $text, qr/^because:  the active set has no room for its recipients: it has \d+ of $limit \(active_recipient_limit\); messages before it: [1-9]/m, 'why the last one waits';
send_one('one@small.test');
ok Petrel::wait_for(sub { active() % $recipients == 1 }), 'a small message passes' or diag $petrel->status;

is $petrel->stop('INT'), 0, 'it stops';
$petrel->start;
ok Petrel::wait_for(sub { my $s = status(); $s->{active_recipients} >= $limit / 2 && $s->{queue}{incoming} + $s->{queue}{deferred} + $s->{queue}{active} > $messages }),
    'after a restart all is found' or diag $petrel->status;
is +($petrel->run('queue', 'retry', '--all'))[0], 0, 'a flush';
cmp_ok active(), '<=', $limit, 'makes no room';
$sink->let_go('dot');
my $most = 0;
ok Petrel::wait_for(sub { my $now = active(); $most = $now if $now > $most; return $petrel->queued == 0 }), 'all is delivered' or diag $petrel->status;
cmp_ok $most, '<=', $limit, 'never more than the limit';
is Petrel::count($petrel->log, qr/to=<r$recipients\@x\.test>.*status=sent/), $messages, 'each of them';

# A list longer than the limit, by sendmail(1).
$sink->hold('dot');
my @list = map { "l$_\@list.test" } 1 .. 25_000;
Petrel::spit("$petrel->{dir}/list", "To: list\@x.test\nBcc: " . join(",\n ", @list) . "\n\nnews\n");
is system("$Petrel::binary -c $petrel->{dir}/petrel.conf sendmail -t -f l\@x.test < $petrel->{dir}/list"), 0, 'a long list is taken';
ok Petrel::wait_for(sub { active() > 0 }), 'its first envelope is in memory' or diag $petrel->status;
cmp_ok active(), '<=', 10_000, 'and no other one, since it is above the limit';
$sink->let_go('dot');
$most = 0;
ok Petrel::wait_for(sub { my $now = active(); $most = $now if $now > $most; return $petrel->queued == 0 }), 'all is delivered' or diag $petrel->status;
cmp_ok $most, '<=', 10_000, 'an envelope at a time';
my %times;
$times{$_}++ for $petrel->log =~ /to=<(l\d+)\@list\.test>.*status=sent/g;
is scalar(keys %times), 25_000, 'to each';
is scalar(grep { $_ > 1 } values %times), 0, 'once';
is $petrel->stop, 0, 'it ends well';

done_testing;
