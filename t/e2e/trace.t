#!/usr/bin/perl
# petrel trace: what became of mail, with and without a daemon.
use lib 't/e2e';
use E2E;

$ENV{TZ} = 'UTC';
my $sink = Sink->start('--fail-rcpt', 'nobody:550');
my ($http, $token) = (Petrel::free_port(), 'trace-trace-trace-trace');
my $petrel = Petrel->new(http => "127.0.0.1:$http", http_token => $token, routes => "refused.test smtp://127.0.0.1:$sink->{port}, later.test smtp://127.0.0.1:9, held.test hold, * smtp://127.0.0.1:$sink->{port}");
my ($code, $said) = $petrel->run('trace', 'x');
isnt $code, 0, 'no spool yet';
$petrel->start;

sub mail { my ($from, $to, $id) = @_; my ($name) = $petrel->send_mail($from, $to, "Message-ID: <$id>\nSubject: x\n\nhello") =~ /queued as (\S+)/; return $name }
sub trace { my ($code, $said) = $petrel->run('trace', @_); return $code == 0 ? $said : "exit $code: $said" }
sub found { my $pattern = shift; my @query = @_; return Petrel::wait_for(sub { trace(@query) =~ $pattern }) }
sub lives { return map { decode_json($_) } split /\n/, trace('--json', @_) }

my $id = mail('Alice@x.example', 'bob@org.example', 'one@x.example');
ok found(qr/ended after/, $id), 'a message by its id';
my @lines = split /\n/, trace($id);
is $lines[0], "$id  <Alice\@x.example>  50 bytes  <one\@x.example>", 'its head';
my $time = qr/\d\d:\d\d:\d\d\.\d{3}/;
like $lines[1], qr/^  \d\d [A-Z][a-z]{2} $time  accepted from \[127\.0\.0\.1\] \(client\.test\), for 1 recipient$/, 'accepted, with the date';
like $lines[2], qr/^         $time  <bob\@org\.example>: delivered to 127\.0\.0\.1\[127\.0\.0\.1\]:$sink->{port}: 250 /, 'delivered, without it';
like $lines[3], qr/^         $time  ended after \d+ (?:ms|s)$/, 'ended';
is scalar @lines, 4, 'no more';

(my $bare = lc $id) =~ s/-//;
for my $query ($bare, '<one@x.example>', '<ONE@X.example>', 'alice@x.example', 'bob@ORG.example', '@org.example', '127.0.0.1', '[127.0.0.1]') {
    like trace($query), qr/^\Q$id\E  <Alice/, "found by $query";
}
like trace('hello', 'x'), qr/^exit 65: petrel trace: nothing was found; the history reaches back to \d\d \w+ \d{4} \d\d:\d\d:\d\d$/, 'nothing: how far back it reaches';
for my $query ('one@x.exampl', 'x.example@', '@example', '<one@x>', '127.0.0.2', '@x.example.org') {
    like trace($query), qr/^exit 65/, "not by $query";
}
like trace('alice@x.example', 'bob@org.example', '@org.example'), qr/^\Q$id/, 'queries that hold for different lines';
like trace('alice@x.example', 'carol@org.example'), qr/^exit 65/, 'all must hold';
like trace('client.test', 'status=sent'), qr/^\Q$id/, 'words of lines';

# Several: a line each, the last ones.
mail('alice@x.example', ["r$_\@org.example", "s$_\@org.example", "t$_\@org.example"], "many$_\@x.example") for 1 .. 3;
ok found(qr/(?:.*delivered.*\n){4}/, 'alice@x.example'), 'several';
@lines = split /\n/, trace('alice@x.example');
is scalar @lines, 4, 'a line each';
like $lines[3], qr/^\d\d \w{3} \d\d:\d\d:\d\d  [0-9A-Z]{10}-[0-9A-Z]{8}  delivered <alice\@x\.example> -> <[rst]3\@org\.example>, <[rst]3\@org\.example> and 1 more$/, 'its words';
is scalar(my @two = split /\n/, trace('-n', 2, 'alice@x.example')), 2, '-n';
is((split /\n/, trace('-n', 2, 'alice@x.example'))[1], $lines[3], 'the newest');

# JSON.
my ($life) = lives($id);
is_deeply [@$life{qw(id sender message_id size recipients state)}], [$id, 'Alice@x.example', '<one@x.example>', 50, 1, 'delivered'], 'JSON of a message';
is_deeply [map { $_->{type} } @{ $life->{events} }], [qw(accepted delivered ended)], 'its events';
my $delivered = $life->{events}[1];
is_deeply [@$delivered{qw(recipient code enhanced relay)}], ['bob@org.example', 250, '2.0.0', "127.0.0.1[127.0.0.1]:$sink->{port}"], 'in the members of events';
cmp_ok abs($delivered->{time_ms} / 1000 - time), '<', 600, 'ms since 1970';
is $life->{events}[0]{client}, '127.0.0.1', 'a client is bare';

# Mail that waits, fails, is held, is removed.
my $bounced = mail('alice@x.example', 'nobody@refused.test', 'two@x.example');
ok found(qr/ended after/, $bounced), 'a message that fails';
my $text = trace($bounced);
like $text, qr/<nobody\@refused\.test>: bounced by \S+: 550 /, 'the reply';
like $text, qr/sender notified: ([0-9A-Z-]{19}), to <alice\@x\.example>/, 'its notification';
my ($notification) = $text =~ /notified: ([0-9A-Z-]{19})/;
like trace($notification), qr/notification stored, about \Q$bounced\E/, 'which is found, too';
is +(lives($bounced))[0]{state}, 'bounced', 'its state';

my $later = mail('alice@x.example', 'who@later.test', 'three@x.example');
ok found(qr/deferred/, $later), 'a message that waits';
like trace($later), qr/because:  .*next attempt/s, 'what it waits for now';
like trace($later), qr/expires:  /, 'and how long';
is +(lives($later))[0]{state}, 'waiting', 'its state';
($code, $said) = $petrel->run('queue', 'show', $later);
like $said, qr/^to: +<who\@later\.test> waiting .*^history:\n  \d\d \w{3} $time  accepted from .*\n +$time  <who\@later\.test>: deferred/ms, 'queue show has its earlier attempts';
($code, $said) = $petrel->run('queue', 'show', '--json', $later);
is((() = decode_json($said)), 1, 'its JSON is one object');
($code, $said) = $petrel->run('queue', 'show', '--to', 'who@later.test');
unlike $said, qr/^history/m, 'of messages that were not named it has none';
($code, $said) = $petrel->run('queue', 'show', $id);
is $said, "petrel queue: $id: no such message; `petrel trace $id` says what became of it\n", 'a message that has left';
is $code, 65, 'is an error';
my $held = mail('alice@x.example', 'x@held.test', 'four@x.example');
ok found(qr/held by a route/, $held), 'a message that is held';
is +(lives($held))[0]{state}, 'held', 'its state';
like trace($held), qr/because:  held by a route/, 'why';
$petrel->run('queue', 'rm', $held);
ok found(qr/removed by the operator/, $held), 'a message that is removed';
is +(lives($held))[0]{state}, 'removed', 'its state';

# Refused clients, which have no message.
$petrel->dialogue('EHLO evil.test', 'MAIL FROM:<spam@evil.test>', 'RCPT TO:<a@b@c>');
ok found(qr/refused from \[127\.0\.0\.1\] \(evil\.test\), sender <spam\@evil\.test>: 5\d\d /, 'evil.test'), 'a refusal';
my ($refused) = lives('evil.test');
is_deeply [$refused->{id}, $refused->{state}, $refused->{events}[0]{helo}], [undef, 'refused', 'evil.test'], 'in JSON';

# A bracket in a name hides no sender.
$petrel->dialogue('EHLO <a', 'MAIL FROM:<hidden@evil.test>', 'RCPT TO:<a@b@c>');
ok found(qr/refused from \[127\.0\.0\.1\] \(\\x3ca\), sender <hidden\@evil\.test>/, 'hidden@evil.test'), 'a client cannot hide its sender';

# --since
like trace('--since', '1h', $id), qr/^\Q$id/, '--since';
sleep 2;
like trace('--since', '1s', $id), qr/^exit 65/, 'older is not found';

# The same over the control socket, in lines; the events of a message as they come.
my $socket;
sub question { my $json = shift; $socket //= IO::Socket::UNIX->new(Peer => "$petrel->{dir}/spool/control") // die; print $socket encode_json($json) . "\n"; return }
sub answer { my $line = readline $socket; return defined $line ? decode_json($line) : {} }
sub answers {
    my @lines;
    question(shift);
    while (1) { my $line = answer(); next if exists $line->{seen}; push @lines, $line; return @lines if exists $line->{ok} || !%$line }
}
my @answers = answers({ command => 'trace', q => ['alice@x.example', 'bob@org.example'] });
is_deeply \@answers, [$life, { ok => JSON::PP::true, end => JSON::PP::true }], 'the control socket: a line each, and the end';
is scalar(@answers = answers({ command => 'trace', q => ['@org.example'], limit => 3 })), 4, 'with a limit';
is scalar(@answers = answers({ command => 'trace', q => ['nobody@x'] })), 1, 'nothing';
for my $bad ({ q => [''] }, { q => [1] }, { q => [('x') x 17] }, { limit => 501 }, { limit => -1 }) {
    is_deeply [(answers({ command => 'trace', %$bad }))[0]{ok}], [JSON::PP::false], 'a bad question is refused: ' . encode_json($bad);
}
ok !(answers({ command => 'follow', id => 'x' }))[0]{ok}, 'to follow no id';
ok !(answers({ command => 'follow' }))[0]{ok}, 'or none';
@answers = answers({ command => 'follow', id => $id });
is_deeply [map { $_->{type} // 'end' } @answers], [qw(accepted delivered ended end)], 'a message that has ended';
is $answers[0]{message}, $id, 'with its id';
question({ command => 'follow', id => $later });
is answer()->{type}, 'accepted', 'one that waits';
is answer()->{type}, 'deferred', 'and has been tried';
$petrel->run('queue', 'hold', $later);
is answer()->{type}, 'held', 'what happens to it comes';
$petrel->run('queue', 'release', $later);
my $line = answer();
$line = answer() while exists $line->{seen};
is $line->{type}, 'released', 'as it happens';
close $socket; # a client that goes is forgotten
undef $socket;
ok Petrel::wait_for(sub { (lives($later))[0]{state} eq 'waiting' }), 'the daemon goes on';

# By HTTP, an array.
sub get {
    my $path = shift;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or return;
    print $s "GET $path HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer $token\r\n\r\n";
    my ($header, $body) = split /\r\n\r\n/, join('', readline $s), 2;
    return ($header =~ / (\d+)/ && $1, $body);
}
my ($status, $body) = get('/api/trace?q=alice%40x.example&q=bob%40org.example&since=1d');
is $status, 200, 'HTTP';
is_deeply decode_json($body), [$life], 'as --json, in an array';
is scalar @{ decode_json((get('/api/trace?q=%40org.example&limit=3'))[1]) }, 3, 'with a limit';
is_deeply decode_json((get('/api/trace?q=nobody%40x'))[1]), [], 'nothing';
cmp_ok scalar @{ decode_json((get('/api/trace'))[1]) }, '>', 5, 'everything';
is +(get("/api/trace?$_"))[0], 400, "refused: $_" for 'q=', 'limit=0', 'limit=501', 'since=x', 'x=1', join('&', ('q=x') x 17);
like +(get('/metrics'))[1], qr/^petrel_history_bytes [1-9]\d*$/m, 'its size is a metric';

# -f goes on until the message has ended, or for ever.
sub follow {
    my @query = @_;
    my $out = "$petrel->{dir}/follow";
    unlink $out;
    my $pid = Petrel::spawn($out, $Petrel::binary, '-c', $petrel->conf, 'trace', '-f', @query);
    return ($pid, $out);
}
my ($pid, $out) = follow($later);
ok Petrel::wait_for(sub { Petrel::slurp($out) =~ /deferred/ }), '-f prints what there is';
$petrel->run('queue', 'rm', $later);
is Petrel::reap($pid, 0), 0, '-f ID ends with the message';
like Petrel::slurp($out), qr/\Q$later\E  removed by the operator\n.*\Q$later\E  ended\n\z/, 'and has followed it';
($pid, $out) = follow('@new.example');
sleep 1;
my $new = mail('alice@x.example', 'n@new.example', 'five@x.example');
ok Petrel::wait_for(sub { Petrel::slurp($out) =~ /\Q$new\E  ended/ }), '-f @domain: the lines of messages to come';
Petrel::reap($pid, 'TERM');

# Without a daemon.
$petrel->stop;
like trace($id), qr/ended after/, 'without a daemon';

# Lines from elsewhere do no harm, to a terminal neither.
my ($file) = sort glob "$petrel->{dir}/spool/history/mail.*";
open my $h, '>>', $file or die;
print $h "garbage\n\0\xff\n$id\n2026-11-22T12:06:15.184Z x: $id: event=\e[2Jx, to=<\x80\e[31m>\n", 'y' x 200000, "\n2026-11-22T12:0";
close $h;
$text = trace($id);
like $text, qr/ended after/, 'damaged lines';
unlike $text, qr/\e|\x80/, 'no bytes that move a cursor';

# Wrong arguments; nothing at all.
for my $wrong ([], ['-n'], ['-n', 0, 'x'], ['-n', 'x', 'x'], ['--since', 'x', 'x'], ['--since'], ['-x', 'x'], [''], [('x') x 17]) {
    ($code, $said) = $petrel->run('trace', @$wrong);
    ok $code == 64 && $said =~ /^usage: petrel trace/, "wrong: @$wrong";
}
unlink glob "$petrel->{dir}/spool/history/*";
like trace('x'), qr/^exit 65: petrel trace: nothing was found: the history is empty$/, 'an empty history';
rmdir "$petrel->{dir}/spool/history";
like trace('x'), qr/^exit 65: petrel trace: there is no history yet: /, 'none at all';
done_testing;
