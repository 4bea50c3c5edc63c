#!/usr/bin/perl
# HTTP by the control socket: nothing is configured, nothing listens, and yet who may use that socket gets all of it,
# by a key that is made for it. It costs nothing before.
use lib 't/e2e';
use E2E;

my $petrel = Petrel->new(routes => '* hold')->start;
my $path = "$petrel->{dir}/spool/control";

sub dial { return IO::Socket::UNIX->new(Peer => $path) }

# The input up to the pattern, or the end.
sub take {
    my ($socket, $pattern) = @_;
    my $got = '';
    while ($got !~ $pattern && IO::Select->new($socket)->can_read(60)) { sysread($socket, $got, 65536, length $got) or last }
    return $got;
}
sub control { my ($question) = @_; my $socket = dial(); syswrite $socket, "$question\n"; return decode_json(take($socket, qr/\n\z/)) }
sub http { my $socket = dial(); syswrite $socket, qq({"command":"http"}\n); is take($socket, qr/\n/), qq({"ok":true}\n), 'the connection is one of HTTP'; return $socket }
sub request { my ($socket, $head, $body) = @_; $body //= ''; syswrite $socket, "$head\r\nHost: localhost\r\nX-Petrel: 1\r\n" . ($body ne '' ? "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n" : '') . "\r\n$body"; return take($socket, qr/\r\n\r\n.*\n\z/s) }

my $socket = http();
like request($socket, 'GET /livez HTTP/1.1'), qr/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nok\n\z/s, 'it lives';
like request($socket, 'GET /api/status HTTP/1.1'), qr/^HTTP\/1\.1 401 /, 'without a key nothing else';
syswrite $socket, "GET /livez HTTP/1.1\r\nHost: evil.example\r\n\r\n";
like take($socket, qr/\n\z/), qr/^HTTP\/1\.1 421 /, 'the rules are the same';

my $key = control('{"command":"page"}');
is $key->{access}, 'operate', 'a key to operate';
is_deeply $key->{urls}, [], 'no address is listened on';
like $key->{key}, qr/^[-_A-Za-z0-9]{22}$/, 'of 128 bits';
my $answer = request($socket, 'POST /api/session HTTP/1.1', qq({"key":"$key->{key}"}));
like $answer, qr/^HTTP\/1\.1 200 .*"access":"operate"/s, 'opens a session';
my ($cookie) = $answer =~ /^Set-Cookie: (petrel=[^;]+);/m;
like request($socket, "GET /api/status HTTP/1.1\r\nCookie: $cookie"), qr/^HTTP\/1\.1 200 .*"access":"operate"/s, 'which may operate';
like request($socket, "GET /api/series HTTP/1.1\r\nCookie: $cookie"), qr/^HTTP\/1\.1 200 .*"second":/s, 'and see numbers';
like request(http(), 'POST /api/session HTTP/1.1', qq({"key":"$key->{key}"})), qr/^HTTP\/1\.1 401 /, 'a key is valid once';
my $read = control('{"command":"page","access":"read"}');
like request($socket, 'POST /api/session HTTP/1.1', qq({"key":"$read->{key}"})), qr/"access":"read"/, 'a key to read';
is control('{"command":"page","access":"x"}')->{ok}, JSON::PP::false, 'no other';
is control('{"command":"page","access":1}')->{ok}, JSON::PP::false, 'nor what is no word';

is control('{"command":"series"}')->{second}{step_ms}, 1000, 'numbers by the socket itself';
is_deeply control('{"command":"canary"}'), { ok => JSON::PP::true, asked => 0, upstreams => [] }, 'there is no smarthost to ask';

my $live = http();
syswrite $live, "GET /events HTTP/1.1\r\nHost: localhost\r\nX-Petrel: 1\r\nCookie: $cookie\r\n\r\n";
like take($live, qr/event: status/), qr/^HTTP\/1\.1 200 .*text\/event-stream/s, 'events';
my ($id) = $petrel->send_mail('a@a.test', 'b@b.test', "Subject: x\r\n\r\nx\r\n") =~ /queued as (\S+)/;
like take($live, qr/"type":"accepted".*"message":"\Q$id\E"/), qr/"message":"\Q$id\E"/, 'as they happen';

my $lists = dial();
syswrite $lists, qq({"command":"list","to":"b.test"}\n);
my @listed = map { decode_json($_) } split /\n/, take($lists, qr/"end"/);
is $listed[0]{queue_id}, $id, 'the queue, a line for each message';
is_deeply $listed[-1], { ok => JSON::PP::true, end => JSON::PP::true, next => undef }, 'and the end';

# Hostile or clumsy: many, silent, with half a request. Others are still answered.
my @many = map { my $s = dial(); syswrite $s, qq({"command":"http"}\n) . ($_ % 2 ? 'GET /livez HT' : '') if $s; $s // () } 1 .. 40;
ok Petrel::wait_for(sub { scalar grep { IO::Select->new($_)->can_read(0) && !sysread($_, my $said, 4096) } @many }), 'the oldest make room';
is +($petrel->run('status'))[0], 0, 'petrel status is answered';
like $petrel->send_mail('a@a.test', 'b@b.test', "Subject: x\r\n\r\nx\r\n"), qr/^250 /, 'and mail';
@many = ();
$petrel->stop;
ok $petrel->wait_log(qr/ http: a key that may operate was made, requested by root$/m), 'the log says that there was a key' or diag $petrel->log;
unlike $petrel->log, qr/\Q$key->{key}\E/, 'but not which';

# With addresses: where a browser finds it.
my ($port, $other) = (Petrel::free_port(), Petrel::free_port());
$petrel = Petrel->new(hostname => 'h.test', http => "127.0.0.1:$port, 0.0.0.0:$other, unix:$petrel->{dir}/h")->start;
$path = "$petrel->{dir}/spool/control";
is_deeply control('{"command":"page"}')->{urls}, ["http://127.0.0.1:$port/", "http://h.test:$other/"], 'addresses';
$petrel->stop;

# Where only health and metrics are served the control socket has the rest.
$petrel = Petrel->new(http => "127.0.0.1:$port?page=no", http_token => 'canary-operate-canary')->start;
$path = "$petrel->{dir}/spool/control";
my $token = "Authorization: Bearer canary-operate-canary";
my $tcp = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
like request($tcp, "GET $_ HTTP/1.1\r\n$token"), qr/^HTTP\/1\.1 404 /, "$_ is not there" for '/api/series', '/events';
like request($tcp, "GET /metrics HTTP/1.1"), qr/^HTTP\/1\.1 200 /, 'metrics are';
is_deeply control('{"command":"page"}')->{urls}, [], 'there is no page for a browser';
like request(http(), "GET /api/series HTTP/1.1\r\n$token"), qr/^HTTP\/1\.1 200 .*"second":/s, 'the control socket has numbers';
$live = http();
syswrite $live, "GET /events HTTP/1.1\r\nHost: localhost\r\n$token\r\n\r\n";
like take($live, qr/event: status/), qr/event: status/, 'and events';
$petrel->stop;
done_testing;
