#!/usr/bin/perl
# A test message by POST /api/test and by `test` of the control socket: it is sent, followed by lines, and never a way for
# others to send mail.
use lib 't/e2e';
use E2E;

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

my $port = Petrel::free_port();
my $sink = Sink->start('--fail-rcpt', 'nobody:550', '--fail-rcpt', 'busy:451');
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_token => 'canary-operate-canary', http_read_token => 'canary-read-canary-',
    local_domains => 'petrel.test');
Petrel::spit("$petrel->{dir}/aliases", "team: anna\@away.test, bob\@away.test\nmany: " . join(', ', map { "u$_\@away.test" } 1 .. 600) . "\n");
$petrel->configure(aliases => "$petrel->{dir}/aliases", routes => "\n    petrel.test maildir:$petrel->{dir}/mail/%u?create=yes\n    held.test hold\n    * smtp://127.0.0.1:$sink->{port}");
$petrel->start;

my @json = ('-H', 'Content-Type: application/json');
# By curl: status, content, header.
sub post {
    my ($body, @options) = @_;
    my ($code, $out) = Petrel::command('', 'curl', '-s', '-i', '-m', '100', @options, '-d', $body, "http://127.0.0.1:$port/api/test");
    my ($header, $content) = split /\r\n\r\n/, $out, 2;
    return (($header // '') =~ /^HTTP\/1\.1 (\d+)/ ? $1 : "curl $code", $content // '', $header // '');
}
my @operator = ('-H', 'Authorization: Bearer canary-operate-canary', @json);
sub by_http { my ($status, $content, $header) = post(encode_json($_[0]), @operator); is $status, 200, 'taken' or diag $content; return map { decode_json($_) } split /\n/, $content }
sub control {
    my ($line) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => "$petrel->{dir}/spool/control") or die "control: $!";
    print $socket "$line\n";
    return $socket;
}
# All lines but signs of life, to the last one.
sub by_control {
    my $socket = control(encode_json({ command => 'test', %{ $_[0] } }));
    my @lines;
    while (my $line = <$socket>) {
        my $object = decode_json($line);
        push @lines, $object if !exists $object->{seen};
        last if exists $object->{ok};
    }
    return @lines;
}
sub arrived { my ($to) = @_; return grep { "@{$_->{to}}" =~ /\Q$to\E/ } Petrel::arrived({ dir => "$sink->{base}/1" }) }
sub types { return join ' ', map { $_->{type} // ($_->{end} ? "end $_->{state}" : 'id') } @_ }

# --- Every fate, by both doors

for my $door (\&by_http, \&by_control) {
    my $name = $door == \&by_http ? 'HTTP' : 'control';
    my @lines = $door->({ to => 'bob@away.test', from => "ann-$name\@petrel.test" });
    is types(@lines), 'id submitted delivered ended end delivered', "$name: delivered";
    like $lines[0]{id}, qr/^[0-9A-Z]{10}-[0-9A-Z]{8}$/, 'its id comes first';
    is_deeply [ map { $_->{message} } @lines[1 .. 3] ], [ ($lines[0]{id}) x 3 ], 'the events are its own';
    is $lines[2]{recipient}, 'bob@away.test', 'of its recipient';
    is $lines[-1]{id}, $lines[0]{id}, 'the last line has the id, too';
    my ($came) = grep { $_->{from} eq "ann-$name\@petrel.test" } arrived('bob@away.test');
    ok $came, 'it arrived';
    like $came->{content}, qr/^From: <ann-$name\@petrel\.test>\r\nTo: <bob\@away\.test>\r\nSubject: Test of petrel\.test\r$/m, 'with its header';
    like $came->{content}, qr/^Message-ID: <$lines[0]{id}\@petrel\.test>\r$/m, 'and a Message-ID';
    my ($code, $said) = $petrel->run('trace', '--json', $lines[0]{id});
    is_deeply [ map { $_->{type} } @{ decode_json($said)->{events} } ], [qw(submitted delivered ended)], 'the history has the same';

    @lines = $door->({ to => 'nobody@away.test' });
    is types(grep { ($_->{type} // '') ne 'notified' } @lines), 'id submitted bounced ended end bounced', "$name: refused";
    like $lines[2]{text}, qr/550/, 'with the reply';
    is $lines[1]{sender}, 'postmaster@petrel.test', 'without a sender it is postmaster';
    @lines = $door->({ to => 'x@held.test' });
    is types(@lines), 'id submitted held end held', "$name: held: nothing will happen by itself";
    @lines = $door->({ to => ' <Team@Petrel.TEST> ', from => '<>' });
    is types(@lines), 'id submitted delivered delivered ended end delivered', "$name: an alias";
    is_deeply [ sort map { $_->{recipient} // () } @lines ], [qw(anna@away.test bob@away.test)], 'its members';
    is $lines[1]{sender}, '', 'and the null sender';
}
ok $petrel->wait_log(qr/ http: client=127\.0\.0\.1: test message$/m), 'the log says who has done it';

# A list that would never end has an end.
for my $door (\&by_http, \&by_control) {
    my @lines = $door->({ to => 'many@petrel.test' });
    is $lines[-1]{end}, JSON::PP::true, 'many members: an end';
    cmp_ok scalar(@lines), '<', 600, 'though not all of them are told';
}

# --- A waiting message is followed for as long as the client stays; the message stays anyway

my $waiting = control(encode_json({ command => 'test', to => 'busy@away.test' }));
my $id = decode_json(scalar <$waiting>)->{id};
my @seen;
while (my $line = <$waiting>) { push @seen, my $object = decode_json($line); last if ($object->{type} // '') eq 'deferred' }
is $seen[-1]{code}, 451, 'deferred, live';
close $waiting;
is +($petrel->run('queue', 'show', $id))[0], 0, 'it waits';
$waiting = control(encode_json({ command => 'test', to => 'busy@away.test' }));
$id = decode_json(scalar <$waiting>)->{id};
is +($petrel->run('queue', 'rm', $id))[0], 0, 'it is removed';
my $last;
while (my $line = <$waiting>) { $last = decode_json($line); last if exists $last->{ok} }
is_deeply $last, { ok => JSON::PP::true, end => JSON::PP::true, id => $id, state => 'removed' }, 'which ends the following';
print $waiting qq({"command":"findings"}\n);
ok decode_json(scalar <$waiting>)->{ok}, 'the connection goes on';
close $waiting;

# --- At most eight at a time

my @eight = map { control(encode_json({ command => 'test', to => "busy\@away.test" })) } 1 .. 8;
<$_> for @eight;
my ($status, $content) = post('{"to":"bob@away.test"}', @operator);
is $status, 503, 'a ninth is refused';
like decode_json($content)->{error}, qr/under way: try again later/, 'with what to do';
is_deeply [ map { $_->{ok} } by_control({ to => 'bob@away.test' }) ], [JSON::PP::false], 'by both doors';
close $_ for @eight;
ok Petrel::wait_for(sub { (post('{"to":"bob@away.test"}', @operator))[0] == 200 }), 'when clients have gone there is space again';

# --- Bad input

my $long = 'x' x 400;
for my $wrong ('', 'x', '[]', '{}', '{"to":1}', '{"to":""}', '{"to":"<>"}', '{"to":"bob"}', '{"to":"a@b@c"}', '{"to":"a@b.test, c@d.test"}', '{"to":["a@b.test"]}', '{"to":"a@b.test\\r\\nRCPT TO:<x@y.test>"}',
    '{"to":"a@b.test\\u0000"}', '{"to":"a@b.test","to":"c@d.test"}', '{"to":"a@b.test","from":"no one@x"}', '{"to":"a@b.test","from":7}', '{"to":"a@b.test","from":null}', '{"to":"a@b.test","bcc":"c@d.test"}',
    '{"to":"a@b.test","command":"status"}', qq({"to":"$long\@b.test"}), qq({"to":"a\@b.test","from":"$long\@b.test"}), "{\"to\":\"a\xff\@b.test\"}") {
    my ($bad, $why) = post($wrong, @operator);
    is $bad, 400, 'refused: ' . substr($wrong, 0, 50);
    ok !decode_json($why)->{ok}, 'with a reason';
}
like decode_json((post('{"to":"bob"}', @operator))[1])->{error}, qr/must be one mail address: NAME\@DOMAIN/, 'it says what to write';
for my $wrong ({}, { to => '' }, { to => 'bob' }, { to => undef }, { to => 'a@b.test', from => 'x y@z' }, { to => 'a@b.test', from => 7 }, { to => "a\@b.test\nDATA" }) {
    is_deeply [ map { $_->{ok} } by_control($wrong) ], [JSON::PP::false], 'control: refused: ' . encode_json($wrong);
}

# --- Access

my $good = '{"to":"thief@away.test"}';
my $token = 'Authorization: Bearer canary-operate-canary';
my @who = (
    [ 401, 'no key', '-H', 'X-Petrel: 1', @json ],
    [ 403, 'a key that may read', '-H', 'Authorization: Bearer canary-read-canary-', @json ],
    [ 403, 'neither X-Petrel nor a token', @json ],
    [ 415, 'a form', '-H', $token ],
    [ 415, 'text', '-H', $token, '-H', 'Content-Type: text/plain' ],
    [ 403, 'another site', '-H', $token, @json, '-H', 'Sec-Fetch-Site: cross-site' ],
    [ 403, 'another origin', '-H', $token, @json, '-H', 'Origin: http://evil.example' ],
    [ 421, 'a foreign name', '-H', $token, @json, '-H', 'Host: evil.example' ],
    [ 405, 'GET', '-H', $token, '-X', 'GET' ],
    [ 405, 'DELETE', '-H', $token, @json, '-X', 'DELETE' ],
);
is +(post($good, @$_[ 2 .. $#$_ ]))[0], $_->[0], $_->[1] for @who;
is scalar(arrived('thief@away.test')), 0, 'nobody else has sent anything';

# --- A daemon that stops or drains sends none; without a history it is followed all the same

$petrel->configure(history_size => 0);
is +($petrel->run('reload'))[0], 0, 'history off';
is types(by_control({ to => 'bob@away.test' })), 'id submitted delivered ended end delivered', 'it needs no history';
$petrel->run('drain', '--wait', '1s');
($status, $content) = post('{"to":"bob@away.test"}', @operator);
is $status, 503, 'a daemon that drains takes none';
$petrel->run('drain', '--cancel');
is +(post('{"to":"bob@away.test"}', @operator))[0], 200, 'then it does again';

# The daemon goes while it follows: a whole line, and an end.
$waiting = control(encode_json({ command => 'test', to => 'busy@away.test' }));
ok <$waiting>, 'followed';
$petrel->stop;
my @rest = <$waiting>;
ok !grep({ !eval { decode_json($_) } } @rest), 'what came is whole';
$sink->stop;
done_testing;
