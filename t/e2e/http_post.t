#!/usr/bin/perl
# Mail by HTTP: keys, whole messages with their envelopes, errors, large and slow bodies; with curl, and on the wire.
use lib 't/e2e';
use E2E;
use IO::Socket::INET;
use POSIX ();

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

my $port = Petrel::free_port();
my $sink = Sink->start;
my $scratch = tempdir(CLEANUP => 1);
my $keys = "$scratch/keys";
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_token => 'canary-operate-canary', http_keys => $keys, message_size_limit => 30000000,
    recipient_limit => 5, future_release => '7d', routes => "\n    held.test hold\n    * smtp://127.0.0.1:$sink->{port}");
sub key { my ($code, $out) = $petrel->run('key', @_); $out =~ s/^`petrel reload`.*\n//m; chomp $out; return ($code, $out) }
my ($code, $token) = key('add', 'app', 'app@a.test', '.b.test');
is $code, 0, 'a key is made';
like $token, qr/^petrel_[\w-]{43}$/, 'and printed';
my (undef, $other) = key('add', 'other', 'a.test');
unlike Petrel::slurp($keys), qr/\Q$token\E/, 'its file does not have it';
is +(key('ls'))[1], "app app\@a.test .b.test\nother a.test", 'keys are listed';
$petrel->start;

sub ask {
    my ($query, @options) = @_;
    my ($code, $out) = Petrel::command('', 'curl', '-s', '-i', '-m', '60', @options, "http://127.0.0.1:$port/v1/messages$query");
    $out =~ s/^HTTP\/1\.1 100 .*?\r\n\r\n//s;
    my ($header, $body) = split /\r\n\r\n/, $out, 2;
    my ($status) = ($header // '') =~ /^HTTP\/1\.1 (\d+)/;
    return ($status // "curl $code", eval { decode_json($body) } // { body => $body }, $header // '');
}
my @raw = ('-H', "Authorization: Bearer $token", '-H', 'Content-Type: message/rfc822');
sub post { my ($query, $content, @more) = @_; return ask($query, @raw, @more, '--data-binary', $content) }
my $envelope = '?from=app@a.test&to=u@held.test';

# --- Whole messages

my ($status, $answer, $header) = post('', "Subject: one\nBcc: x\@x.test\n\nhello\n.\n", '-H', 'X-Envelope-From: <app@a.test>', '-H',
    'X-Envelope-To: u@c.test, <v@c.test>', '-H', 'X-Envelope-To: w@d.test');
is $status, 202, 'a message';
like $answer->{id}, qr/^\w{10}-\w{8}$/, 'its id';
my $delivered = $answer->{id};
like $header, qr{^Location: /v1/messages/\Q$answer->{id}\E\r$}m, 'and its place';
ok $petrel->wait_log(qr/\Q$answer->{id}\E: .*from=<app\@a\.test>.*nrcpt=3, proto=HTTP, sasl_username=key:app \(queued\)/), 'is logged as mail of the key';
ok $petrel->wait_log(qr/\Q$answer->{id}\E: .*w\@d\.test.*status=(?:sent|delivered)/), 'and delivered';
my ($mail) = grep { /Subject: one/ } map { $_->{data} } $sink->messages;
like $mail, qr/^Date: .*^Message-ID: /ms, 'with Date and Message-ID';
like $mail, qr/hello\r?\n\.?\.\r?\n/, 'and its text';
unlike $mail, qr/^Bcc/mi, 'but without Bcc';
is +(post("?from=x\@y.b.test&to=u\@held.test", "Subject: x\n\nx"))[0], 202, 'the envelope in the query; a last line without an end';

# --- What is refused

my @wrong = (
    ['?to=u@held.test', 400, 'from'],
    ['?from=app@a.test', 400, 'to'],
    ['?from=app@a.test&from=app@a.test&to=u@held.test', 400, 'from'],
    ['?from=app@a.test&to=u@held.test&sendat=1', 400, 'query'],
    ["$envelope&send_at=soon", 400, 'send_at'],
    ["$envelope&send_at=1&send_at=2", 400, 'send_at'],
    ["$envelope&send_at=" . (time + 8 * 86400), 422, 'send_at'],
    ['?from=b@a.test&to=u@held.test', 403, 'from'],
    ['?from=app@a.test&to=u', 422, 'to'],
    ['?from=app@a.test&to=u@held.test%0d%0aX:y', 400, 'to'],
    ['?from=app@a.test&to=u@held.test%3e%20NOTIFY=NEVER', 422, 'to'],
    ['?from=app@a.test' . join('', map { "&to=$_\@held.test" } 1 .. 6), 422, 'to'],
);
for (@wrong) {
    my ($status, $answer) = post($_->[0], "Subject: x\n\nx\n");
    is $status, $_->[1], $_->[0];
    is eval { $answer->{error}{field} }, $_->[2], 'the field is named';
}
($status, $answer) = post('?from=app@a.test&to=u@held.test&to=bad&to=v@held.test&to=worse@', "Subject: x\n\nx\n");
is $status, 422, 'two of four recipients are wrong';
is_deeply [map { $_->{address} } @{ $answer->{error}{recipients} }], ['bad', 'worse@'], 'they are listed';
is +(ask($envelope, '-H', 'Content-Type: message/rfc822', '--data-binary', 'x'))[0], 401, 'no key';
is +(ask($envelope, '-H', 'Authorization: Bearer petrel_wrong', '-H', 'Content-Type: message/rfc822', '--data-binary', 'x'))[0], 401, 'a wrong key';
ok $petrel->wait_log(qr/http: refused=401 5\.7\.8, client=\[127\.0\.0\.1\]/), 'is logged';
is +(ask($envelope, '-H', 'Authorization: Bearer canary-operate-canary', '-H', 'Content-Type: message/rfc822', '--data-binary', 'x'))[0], 403,
    'the token of an operator is no key';
is +(ask($envelope, '-H', "Authorization: Bearer $token", '-H', 'Content-Type: text/plain', '--data-binary', 'x'))[0], 415, 'another type';
is +(ask('', '-H', "Authorization: Bearer $token"))[0], 405, 'GET';
my ($queue) = Petrel::command('', 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-H', "Authorization: Bearer $token", "http://127.0.0.1:$port/api/queue");
is +(Petrel::command('', 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '-H', "Authorization: Bearer $token", "http://127.0.0.1:$port/api/queue"))[1], 401,
    'a key does not show the queue';
is $petrel->queued, 1, "nothing of them was sent";

# --- Large bodies

Petrel::spit("$scratch/large", "Subject: large\n\n" . join '', map { sprintf "%070d\n", $_ } 1 .. 350000);
my ($before) = Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s*(\d+)/;
is +(ask($envelope, @raw, '-T', "$scratch/large", '-X', 'POST'))[0], 202, '25 MB';
is +(ask($envelope, @raw, '-H', 'Transfer-Encoding: chunked', '-T', "$scratch/large", '-X', 'POST'))[0], 202, 'in chunks';
my ($after) = Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s*(\d+)/;
cmp_ok $after - $before, '<', 3000, 'need no memory';
Petrel::spit("$scratch/huge", 'x' x 50000000);
is +(ask($envelope, @raw, '-T', "$scratch/huge", '-X', 'POST'))[0], 413, 'too large by its length';
Petrel::spit("$scratch/huge", join '', ('x' x 70 . "\n") x 430000);
is +(ask($envelope, @raw, '-H', 'Transfer-Encoding: chunked', '-T', "$scratch/huge", '-X', 'POST'))[0], 413, 'too large in chunks';

# --- Objects

my @json = ('-H', "Authorization: Bearer $token", '-H', 'Content-Type: application/json');
sub compose { my ($body, @more) = @_; Petrel::spit("$scratch/json", $body); return ask('', @json, @more, '-T', "$scratch/json", '-X', 'POST') }
my $bytes = join '', map { chr($_ * 7 % 256) } 1 .. 1000;
require MIME::Base64;
my %object = (from => 'J\u00f6rg <app@a.test>', subject => '\u20ac \ud83d\ude00', text => 'Text: \u20ac\n.\nFrom x', html => '<p>\u20ac</p>');
my $attachments = sprintf '"attachments":[{"filename":"gr\u00fcn.bin","type":"application/octet-stream","content":"%s"},{"cid":"logo","type":"image/png","content":"AAEC"}]',
    MIME::Base64::encode_base64($bytes, '');
($status, $answer) = compose("{$attachments," . join(',', map { qq{"$_":"$object{$_}"} } sort keys %object) . ',"to":["Ann <u@c.test>"],"bcc":"v@c.test"}');
is $status, 202, 'a message is made' or diag explain $answer;
ok $petrel->wait_log(qr/\Q$answer->{id}\E: .*v\@c\.test.*status=(?:sent|delivered)/), 'and delivered';
my ($made) = grep { $_->{data} =~ /UTF-8\?B\?4oKsIPCfmIA=/ } $sink->messages;
unlike $made->{data}, qr/v\@c\.test/, 'Bcc is not shown';
is scalar(grep { length > 79 } split /\n/, $made->{data} =~ s/\r//gr =~ s/^Received: .*?\n(?=\S)//sr), 0, 'lines are short';
my $reading = (Petrel::command('', 'python3', '-c', <<'END', $made->{file}))[1];
import email, email.policy, hashlib, sys
m = email.message_from_binary_file(open(sys.argv[1], 'rb'), policy=email.policy.default)
print(ascii(m['subject']), ascii(str(m['from'])), m['to'])
for part in m.walk():
    if not part.is_multipart():
        data = part.get_payload(decode=True)
        print(part.get_content_type(), ascii(part.get_filename()), part['content-id'], ascii(data.decode()) if part.get_content_maintype() == 'text' else hashlib.md5(data).hexdigest())
    else:
        print(part.get_content_type())
END
require Digest::MD5;
is $reading, <<"END", 'Python reads what was written';
'\\u20ac \\U0001f600' 'J\\xf6rg <app\@a.test>' Ann <u\@c.test>
multipart/mixed
multipart/alternative
text/plain None None 'Text: \\u20ac\\n.\\nFrom x'
multipart/related
text/html None None '<p>\\u20ac</p>'
image/png None <logo> @{[Digest::MD5::md5_hex("\0\1\2")]}
application/octet-stream 'gr\\xfcn.bin' None @{[Digest::MD5::md5_hex($bytes)]}
END
my $large = MIME::Base64::encode_base64('0123456789abcde' x 1200000, '');
($before) = Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s*(\d+)/;
is +(compose("{\"attachments\":[{\"content\":\"$large\"}],\"from\":\"app\@a.test\",\"to\":\"u\@held.test\"}"))[0], 202, '24 MB of base64, before the sender';
($after) = Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s*(\d+)/;
cmp_ok $after - $before, '<', 3000, 'need no memory';
is +(compose("{\"attachments\":[{\"content\":\"$large$large\"}],\"from\":\"app\@a.test\",\"to\":\"u\@held.test\"}"))[0], 413, 'too large';
($status, $answer) = compose('{"from":"app@a.test","to":"u@held.test","text":"x","sent":"tomorrow"}');
is "$status $answer->{error}{field} $answer->{error}{rule}", '422 sent unknown', 'a member that is not known is named';
is_deeply [glob "$petrel->{dir}/spool/lock/post*"], [], 'no file is left';

# --- Later

sub timed { my ($value) = @_; return compose(qq({"from":"app\@a.test","to":"later\@c.test","text":"x","send_at":$value})) }
my $day = time + 86400;
my $utc = POSIX::strftime('%Y-%m-%dT%H:%M:%S+00:00', gmtime $day);
my $shown = POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $day);
my @later = (['seconds', timed($day)], ['seconds in a string', timed("\"$day\"")], ['a time', timed("\"$utc\"")],
    ['seconds in the query', post("?from=app\@a.test&to=later\@c.test&send_at=$day", "Subject: x\n\nx\n")],
    ['a time in a field', post('?from=app@a.test&to=later@c.test', "Subject: x\n\nx\n", '-H', "X-Send-At: $utc")]);
for (@later) {
    my ($what, $status, $answer) = @$_;
    is $status, 202, "later: $what" or diag explain $answer;
    ok $petrel->wait_log(qr/\Q$answer->{id}\E: waits: released at \Q$shown\E/), 'it waits until then';
}
for my $value (qw(1.5 -1 true null [] {} 1893456000000 "soon" "" "2030-02-30T00:00:00Z"), time + 8 * 86400) {
    my ($status, $answer) = timed($value);
    is "$status $answer->{error}{field}", '422 send_at', "refused: $value";
}
($status, $answer) = timed(1);
ok $petrel->wait_log(qr/\Q$answer->{id}\E: .*status=(?:sent|delivered)/), 'a time of the past is now';
($status, $answer) = timed($day + 86400 * 6 + 600);
like $answer->{error}{message}, qr/later than future_release/, 'a limit is named' or diag explain $answer;

# --- On the wire

sub talk {
    my ($bytes, $ends) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 30) or die $!;
    print $s $bytes;
    shutdown $s, 1 if $ends;
    local $/;
    return join '', <$s>;
}
my $head = "POST /v1/messages$envelope HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $token\r\nContent-Type: message/rfc822\r\n";
my $body = "Subject: wire\r\n\r\nx\r\n";
my $length = length $body;
sub statuses { return join ' ', $_[0] =~ /HTTP\/1\.1 (\d+)/g }
my $count = () = $petrel->log =~ /\(queued\)/g;
is statuses(talk(($head . "Content-Length: $length\r\n\r\n$body") x 3 . "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")), '202 202 202 200',
    'one after the other on a connection';
is statuses(talk($head . "Content-Length: " . ($length + 1) . "\r\n\r\n$body", 1)), '', 'a body that is cut';
is statuses(talk($head . "Transfer-Encoding: chunked\r\n\r\n14\r\n$body", 1)), '', 'in chunks';
is statuses(talk($head . "Transfer-Encoding: chunked\r\n\r\nx\r\n", 1)), '400', 'no chunk';
is statuses(talk($head . "Transfer-Encoding: chunked\r\nContent-Length: $length\r\n\r\n$body", 1)), '400', 'two lengths';
is statuses(talk($head . "\r\n$body", 1)), '411', 'no length';
is statuses(talk($head . "Expect: 100-continue\r\nConnection: close\r\nContent-Length: $length\r\n\r\n$body")), '100 202', 'Expect: 100-continue';
is statuses(talk(($head =~ s/u\@/u/r) . "Expect: 100-continue\r\nContent-Length: $length\r\n\r\n", 1)), '422', 'is not answered in vain';
is $count + 4, scalar(() = $petrel->log =~ /\(queued\)/g), 'nothing else was sent';

# --- Once

sub once { my ($key, $text) = @_; return post('?from=app@a.test&to=once@held.test', "Subject: $text\n\nx\n", '-H', "Idempotency-Key: $key") }
($status, $answer) = once('one', 'a');
is $status, 202, 'with a key';
my $first = $answer->{id};
($status, $answer, $header) = once('one', 'a');
is "$status $answer->{id}", "202 $first", 'again: the same id';
like $header, qr/^Idempotency-Replayed: true\r$/m, 'the field says so';
($status, $answer) = once('one', 'b');
is "$status $answer->{error}{field}", '409 Idempotency-Key', 'another message';
is +(post("?from=app\@a.test&to=once\@held.test&send_at=$day", "Subject: a\n\nx\n", '-H', 'Idempotency-Key: one'))[0], 409, 'the same at another time';
$petrel->kill9;
unlink "$petrel->{dir}/spool/lock/posted" or diag 'no file of keys';
$petrel->start;
($status, $answer) = once('one', 'a');
is "$status $answer->{id}", "202 $first", 'after a kill, from the journal';
$petrel->stop;
ok -s "$petrel->{dir}/spool/lock/posted", 'a file has them';
$petrel->start;
($status, $answer) = once('one', 'a');
is "$status $answer->{id}", "202 $first", 'after a restart, from the file';
is scalar(() = ($petrel->run('queue', 'ls'))[1] =~ /once\@held/g), 1, 'it was sent once';

# --- What became of it

sub life { my ($id, $token) = @_; return ask("/$id", '-H', "Authorization: Bearer $token") }
($status, $answer) = life($first, $token);
is "$status $answer->{id} $answer->{state}", "200 $first held", 'a message of the key';
is $answer->{recipients}[0]{address}, 'once@held.test', 'its recipient' or diag explain $answer;
is $answer->{events}[0]{type}, 'accepted', 'its life';
is +(life($first, $other))[0], 404, 'another key does not see it';
is +(life($first, 'canary-operate-canary'))[0], 200, 'an operator does';
is +(life('01JD3ZK5Q8-9F3K2C7A', $token))[0], 404, 'no such message';
is +(life('x', $token))[0], 404, 'no id';
is +(ask("/$first"))[0], 401, 'no key';
($status, $answer) = life($delivered, $token);
is "$status $answer->{state}", '200 delivered', 'one that is delivered';
is +(life($delivered, $other))[0], 404, 'is not of another key, either';

# --- Changes

is +(key('rm', 'app'))[0], 0, 'the key goes';
is +(post($envelope, "Subject: x\n\nx\n"))[0], 202, 'and holds until a reload';
$petrel->run('reload');
is +(post($envelope, "Subject: x\n\nx\n"))[0], 401, 'no longer';
@raw = ('-H', "Authorization: Bearer $other", '-H', 'Content-Type: message/rfc822');
is +(post($envelope, "Subject: x\n\nx\n"))[0], 202, 'another one does';
$petrel->stop;
done_testing;
