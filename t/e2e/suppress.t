#!/usr/bin/perl
# suppress = yes before a real Postfix with unknown users: of ten addresses one is dead, and in ten runs it is tried once, over a
# kill and a restart. Replies at RCPT, reports of mail of sendmail(1), commands with and without a daemon, HTTP, status.
use lib 't/e2e';
use E2E;
use Peer;

if (my $why = Peer::missing('postfix')) { plan skip_all => $why }
my $postfix = Peer::postfix(undef, virtual_mailbox_domains => 'away.test', virtual_transport => 'discard', smtpd_reject_unlisted_recipient => 'yes',
    virtual_mailbox_maps => 'inline:{ ' . join(', ', map { "{ user$_\@away.test = x }" } 0 .. 8) . ' }');
my $web = Petrel::free_port();
my $token = 'abcdefghijklmnopqrstuvwxyz0123456789';
my $petrel = Petrel->new(suppress => 'yes', routes => "\n    away.test smtp://127.0.0.1:$postfix->{port}\n    * discard", http => "127.0.0.1:$web", http_token => $token)->start;
my $file = "$petrel->{settings}{spool}/lock/suppressed";

sub tries { return Petrel::count($postfix->log, qr/reject: RCPT from .*<dead\@away\.test>/) }
sub send_to { my ($to) = @_; return $petrel->send_mail('author@here.test', $to, "Subject: x\n\nx\n") }
sub rcpt { my ($to) = @_; return ($petrel->dialogue('EHLO client.test', 'MAIL FROM:<author@here.test>', "RCPT TO:<$to>", 'QUIT'))[3] }

ok !-e $file, 'without a bounce there is no file';
for my $run (1 .. 10) {
    for my $to ((map { "user$_\@away.test" } 0 .. 8), 'dead@away.test') {
        my $reply = send_to($to);
        like $reply, $to =~ /^dead/ && $run > 1 ? qr/^5/ : qr/^250/, "run $run, $to";
    }
    ok $petrel->wait_empty, "run $run is over" or diag $petrel->log;
    if ($run == 3) { $petrel->kill9; $petrel->start }
    if ($run == 6) { $petrel->stop; $petrel->start }
}
is tries(), 1, 'the dead one is tried once' or diag $postfix->log;
cmp_ok Petrel::count($postfix->log, qr/to=<user\d\@away\.test>.*status=sent/), '>=', 90, 'the others get all their mail'; # the kill may repeat some
like $petrel->log, qr/queue: to=<dead\@away\.test>, class=hard \(550 5\.1\.1 /, 'the log tells of it';
like rcpt('Dead@Away.test'), qr/^550 5\.1\.1 the address is suppressed since \d{4}-\d\d-\d\d after a hard bounce \(550 5\.1\.1 Recipient address rejected: User unknown in virtual mailbox table\): `petrel suppress rm ADDRESS` lifts it\r$/, 'the reply says since when, why, and how to lift it';
like rcpt('user1@away.test'), qr/^250/, 'others are accepted';

# sendmail(1) has no reply: the sender gets a report.
my ($code, $said) = $petrel->run({ input => "Subject: x\n\nx\n" }, 'sendmail', '-f', 'author@here.test', 'dead@away.test', 'user2@away.test');
is $code, 0, 'sendmail takes it';
ok $petrel->wait_log(qr/to=<dead\@away\.test>, relay=none, .*dsn=5\.1\.1, status=bounced \(the address is suppressed since/), 'it fails immediately' or diag $petrel->log;
ok $petrel->wait_log(qr/to=<author\@here\.test>, relay=none, .*status=sent \(discarded\)/), 'the report leaves';
ok $petrel->wait_empty, 'nothing is left';
like +($petrel->run('trace', 'dead@away.test'))[1], qr/suppressed, recipient dead\@away\.test, class hard: 550 5\.1\.1 .*refused from .*: 550 5\.1\.1 the address is suppressed since/s, 'trace says so';

# Commands, HTTP, status.
like +($petrel->run('suppress', 'ls'))[1], qr/^dead\@away\.test  hard .*until .*550 5\.1\.1 Recipient address rejected/, 'ls';
like +($petrel->run(qw(suppress ls --json)))[1], qr/^\{"address":"dead\@away\.test","sender_domain":"","class":"hard",/, 'ls --json';
like +($petrel->run('status'))[1], qr/^suppressed 1 addresses; so far 0 added, \d+ recipients refused, 1 failed$/m, 'status';
like $petrel->status, qr/"suppression":\s*\{\s*"on":\s*true,\s*"addresses":\s*1/, 'status --json';
sub http { return (Petrel::command('', 'curl', '-s', '-H', "Authorization: Bearer $token", @_))[1] }
like http("http://127.0.0.1:$web/api/suppress?q=dead"), qr/"count":1,"next":0,"entries":\[\{"address":"dead\@away\.test"/, 'GET /api/suppress';
like http("http://127.0.0.1:$web/metrics"), qr/^petrel_suppressed_addresses 1$/m, 'metrics';
my @json = ('-H', 'Content-Type: application/json', '-d');
like http(@json, '{"lines":["user3@away.test,asked to","x"]}', "http://127.0.0.1:$web/api/suppress/add"), qr/"added":1,"bad":\[\{"index":1,"error":"not an address"\}\]/, 'POST add';
like rcpt('user3@away.test'), qr/^550 5\.1\.1 .* by the operator \(asked to\)/, 'an address that was added is refused';
like http(@json, '{"addresses":["user3@away.test"]}', "http://127.0.0.1:$web/api/suppress/rm"), qr/"removed":\[1\]/, 'POST rm';
like rcpt('user3@away.test'), qr/^250/, 'and taken again';
like http(@json, '{"lines":"x"}', "http://127.0.0.1:$web/api/suppress/add"), qr/"ok":false/, 'another body is refused';
is +($petrel->run('suppress', 'rm', 'dead@away.test'))[1], "dead\@away.test is tried again\n", 'rm';
like send_to('dead@away.test'), qr/^250/, 'the address is tried again';
ok Petrel::wait_for(sub { tries() == 2 }), 'and bounces' or diag $petrel->log;
ok $petrel->wait_empty;

# Without a daemon; then off.
$petrel->stop;
like +($petrel->run('suppress', 'export'))[1], qr/^dead\@away\.test,.*,hard,$/m, 'export without a daemon';
is +($petrel->run('suppress', 'rm', 'dead@away.test'))[0], 0, 'rm without one';
my $list = Petrel::spit("$petrel->{dir}/list", join '', "email,reason\n", map { "u$_\@far.test,complaint\n" } 1 .. 20000);
is +($petrel->run('suppress', 'import', $list))[1], "20000 addresses are suppressed; lines refused: 0\n", 'a list is imported';
$petrel->start;
is +($petrel->run(qw(suppress import), Petrel::spit("$petrel->{dir}/list", "\xef\xbb\xbfbom\@far.test\r\nnul\0\@far.test\n\"last\@far.test\",\"a, b\"")))[1], "petrel suppress: line 2: not UTF-8, or too long\n2 addresses are suppressed; lines refused: 1\n", 'lists of spreadsheets, damaged lines';
like +($petrel->run(qw(suppress ls bom)))[1], qr/^bom\@far\.test  manual /, 'without the mark of the first';
like rcpt('u20000@far.test'), qr/^250/, 'what is discarded concerns nobody';
like +($petrel->run(qw(suppress ls u20000)))[1], qr/^u20000\@far\.test  complaint /, 'the daemon has the list';
$petrel->configure(suppress => 'no');
is +($petrel->run('reload'))[0], 0, 'a reload ends it';
is +($petrel->run(qw(suppress ls)))[0], 78, 'no list is kept then';
$petrel->stop;
done_testing;
