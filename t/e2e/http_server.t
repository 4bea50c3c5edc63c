#!/usr/bin/perl
# HTTP of the real binary: settings, places, health while it runs and stops, keys, TLS; curl is the client.
use lib 't/e2e';
use E2E;
use File::Temp;

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

# curl(OPTION..., URL) -> (status, body, header)
my $petrel;
sub curl {
    my @options = @_;
    my ($code, $out) = Petrel::command('', 'curl', '-s', '-i', '-m', '20', @options);
    $out =~ s/^HTTP\/1\.1 100[^\r]*\r\n\r\n//;
    my ($header, $body) = split /\r\n\r\n/, $out, 2;
    my ($status) = ($header // '') =~ /^HTTP\/1\.1 (\d+)/;
    return ($status // "curl $code: $out", $body // '', $header // '');
}

# --- Settings

my $token = 'canary-operate-canary';
for my $wrong (['http', '8025', qr/http: '8025': not an address/], ['http', '127.0.0.1:1?tls', qr/http: 'tls': needs tls_certificate/],
    ['http', '0.0.0.0:1?access=read', qr/only allowed for unix:PATH and loopback/], ['http_names', 'a:1', qr/http_names: 'a:1': not a host name/],
    ['http_token', 'canary', qr/http_token: has fewer than 16 characters/], ['http_read_token', 'canary', qr/http_read_token: has fewer/]) {
    my ($code, $said) = Petrel->new($wrong->[0] => $wrong->[1])->run('check');
    is $code, 78, "$wrong->[0] = $wrong->[1]";
    like $said, $wrong->[2], '  says why';
    unlike $said, qr/canary/, '  and no secret' if $wrong->[0] =~ /token/;
}
{
    my ($code, $said) = Petrel->new(http => '0.0.0.0:1, 127.0.0.1:2?access=operate, 127.0.0.1:3, unix:/x?access=read', http_token => $token)->run('check');
    is $code, 0, 'settings that are good';
    is Petrel::count($said, qr/http = 0\.0\.0\.0:1: keys and tokens go over the network in cleartext/), 1, 'a warning of cleartext';
    is Petrel::count($said, qr/http = 127\.0\.0\.1:2: every user of this host, and every container that shares its network, may operate/), 1, 'and of open access';
    is Petrel::count($said, qr/warning: http = /), 2, 'no other';
    unlike $said, qr/\Q$token\E/, 'the token is not shown';
}

# --- Nothing listens unless told

$petrel = Petrel->new->start;
unlike $petrel->log, qr/ http: /, 'nothing listens unless it is set';
$petrel->stop;

# --- Health

my $sink = Sink->start;
$sink->hold('dot');
my $port = Petrel::free_port();
my $socket;
{
    $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", drain_timeout => '60s', http_token => $token, http_read_token => 'canary-read-canary');
    $socket = "$petrel->{dir}/h";
    $petrel->configure(http => "127.0.0.1:$port, unix:$socket?mode=0600&access=read&metrics=no");
    $petrel->start;
}
my $base = "http://127.0.0.1:$port";
my @bearer = ('-H', "Authorization: Bearer $token");
my ($status, $body, $header) = curl("$base/livez");
is "$status $body", "200 ok\n", 'it lives';
like $header, qr/^Content-Type: text\/plain; charset=utf-8\r$/m, 'as text';
is join(' ', (curl("$base/readyz"))[0, 1]), "200 ready\naccepting ok\n", 'it is ready';
is +(curl("$base/api/status"))[0], 403, 'no data without a field of ours';
is +(curl('-H', 'X-Petrel: 1', "$base/api/status"))[0], 401, 'none without a key';
($status, $body) = curl(@bearer, "$base/api/status");
like $body, qr/^\{"ok":true,"version":.*"access":"operate"\}$/, 'the status';
is +(curl('-H', 'Authorization: Bearer canary-read-canary', "$base/status.json"))[0], 200, 'the other token reads';
is +(curl('-H', 'Authorization: Bearer canary-wrong', "$base/api/status"))[0], 401, 'a wrong token';
ok $petrel->wait_log(qr/ http: refused=401 5\.7\.8, client=\[127\.0\.0\.1\], sasl_method=http \(a wrong token\)$/m), 'is logged' or diag $petrel->log;
is +(curl(@bearer, '-d', '{}', '-H', 'Content-Type: application/json', "$base/api/status"))[0], 405, 'a method that is not there';
is +(curl('-H', 'Host: evil.example', "$base/livez"))[0], 421, 'a foreign name';
is +(curl('-H', 'Origin: https://evil.example', "$base/livez"))[0], 403, 'a foreign origin';
is +(curl('--unix-socket', $socket, '-H', 'X-Petrel: 1', 'http://localhost/api/status'))[0], 200, 'the socket lets read';
is +(curl('--unix-socket', $socket, 'http://localhost/metrics'))[0], 404, 'but no metrics';
is((stat $socket)[2] & 0777, 0600, 'its mode');

# --- Reload: names and tokens

$petrel->configure(http_token => 'canary-second-canary', http_names => 'mail.example.net', http => "127.0.0.1:$port");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded; without effect before a restart: http$/m), 'a reload says that places need a restart';
is +(curl('-H', 'Authorization: Bearer canary-second-canary', '-H', 'Host: mail.example.net', "$base/api/status"))[0], 200, 'a new token and name';
is +(curl(@bearer, "$base/api/status"))[0], 401, 'the old token is over';
@bearer = ('-H', 'Authorization: Bearer canary-second-canary');

# --- While it stops

like $petrel->send_mail('a@a.test', 'b@b.test', "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'a message is under way';
ok $sink->wait_content, 'and held';
kill 'TERM', $petrel->{pid};
ok $petrel->wait_log(qr/terminating/), 'it stops';
($status, $body) = curl(@bearer, "$base/readyz");
is "$status $body", "503 not ready\naccepting fail: the daemon stops\n", 'it is not ready any more';
is +(curl("$base/livez"))[0], 200, 'but lives';
$sink->let_go('dot');
$petrel->stop;
ok !-e $socket, 'its socket is gone';
unlike $petrel->log, qr/canary/, 'no secret is logged';

# --- TLS

SKIP: {
    skip 'no openssl', 6 unless Petrel::have('openssl');
    my $scratch = File::Temp->newdir('http-XXXXXX', TMPDIR => 1);
    is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", "$scratch"))[0], 0, 'certificates are made');
    $port = Petrel::free_port();
    $petrel = Petrel->new(http => "127.0.0.1:$port?tls", tls_certificate => "$scratch/good.pem", tls_key => "$scratch/good.key")->start;
    is +(curl('-k', "https://127.0.0.1:$port/livez"))[0], 200, 'under TLS';
    like +(curl("http://127.0.0.1:$port/livez"))[0], qr/^curl /, 'not without it';
    my @smtp = Petrel::command('', 'openssl', 's_client', '-alpn', 'smtp', '-connect', "127.0.0.1:$port");
    like $smtp[1], qr/no application protocol/, 'nor for another protocol';
    my $silent = IO::Socket::INET->new("127.0.0.1:$port");
    is +(curl('-k', "https://127.0.0.1:$port/livez"))[0], 200, 'one that says nothing stops no other';
    my ($code, $said) = Petrel::command('', 'curl', '-sk', '-m', '20', '-o', '/dev/null', '-w', '%{http_code} %{num_connects}\n', "https://127.0.0.1:$port/livez",
        '-o', '/dev/null', "https://127.0.0.1:$port/readyz");
    is $said, "200 1\n200 0\n", 'a connection is used again';
    $petrel->stop;
}
done_testing;
