#!/usr/bin/perl
# petrel page: an address with a key; where nothing listens for HTTP, it listens itself and carries the page.
use lib 't/e2e';
use E2E;

my $petrel = Petrel->new(routes => '* hold')->start;
my $port = Petrel::free_port();

sub dial { return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 20) }
sub take {
    my ($socket, $pattern) = @_;
    my $got = '';
    while ($got !~ $pattern && IO::Select->new($socket)->can_read(60)) { sysread($socket, $got, 65536, length $got) or last }
    return $got;
}
sub get { my ($path, $fields) = @_; my $socket = dial() or return ''; syswrite $socket, "GET $path HTTP/1.1\r\nHost: localhost\r\nX-Petrel: 1\r\n" . ($fields // '') . "\r\n"; return $socket }

# --- Nothing is configured

my $said = "$petrel->{dir}/page.log";
my $pid = Petrel::spawn($said, $Petrel::binary, '-c', $petrel->conf, 'page', '--port', $port);
ok Petrel::wait_for(sub { Petrel::slurp($said) =~ /interrupted/ }), 'it listens' or diag Petrel::slurp($said);
my ($key) = Petrel::slurp($said) =~ m{^http://127\.0\.0\.1:$port/#k=([-_A-Za-z0-9]{22})$}m;
ok $key, 'and prints the address with a key';
my $body = qq({"key":"$key"});
my $socket = dial();
syswrite $socket, "POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Petrel: 1\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
my ($cookie) = take($socket, qr/\}\n\z/) =~ /^Set-Cookie: (petrel=[^;]+);/m;
ok $cookie, 'the key opens a session through it';
# whole(SOCKET): the body, as long as its head says, unpacked.
sub whole {
    my $socket = shift;
    my ($head, $body) = split /\r\n\r\n/, take($socket, qr/\r\n\r\n/), 2;
    my ($length) = $head =~ /^Content-Length: (\d+)\r?$/m;
    $body .= take($socket, qr/\A.{@{[$length - length $body]}}/s) if $length > length $body;
    return Petrel::unpacked($body);
}
is whole(get('/page.js')), Petrel::slurp('admin/page/page.js'), 'large answers come whole';
like take(get('/api/status'), qr/\n\z/), qr/^HTTP\/1\.1 401 /, 'without the cookie nothing is told';
my @at_once = map { get('/api/status', "Cookie: $cookie\r\n") } 1 .. 20;
is scalar(grep { take($_, qr/"access":"operate"/) =~ /^HTTP\/1\.1 200 / } @at_once), 20, '20 connections together';
my $stream = get('/events', "Cookie: $cookie\r\n");
like take($stream, qr/event: status/), qr/^HTTP\/1\.1 200 /, 'the live stream comes';
$petrel->send_mail('a@b.example', 'c@d.example', "Subject: x\r\n\r\nx\r\n");
like take($stream, qr/"type":"accepted"/), qr/accepted/, 'and goes on';

# An answer that ends with the connection, for a client that reads it late.
my ($id) = $petrel->send_mail('a@b.example', 'c@d.example', "Subject: large\r\n\r\n" . ('x' x 70 . "\r\n") x 60000) =~ /queued as (\S+)/;
$socket = dial();
syswrite $socket, "GET /api/queue/$id/message HTTP/1.0\r\nHost: localhost\r\nX-Petrel: 1\r\nCookie: $cookie\r\n\r\n";
whole(get('/page.js')) for 1 .. 10;
cmp_ok length(take($socket, qr/never/)), '>', 72 * 60000, 'a message comes whole before its connection ends';

my ($code, $text) = $petrel->run('page', '--port', $port);
is $code, 69, 'a port that is in use';
like $text, qr/^petrel page: .*$port.*; --port N uses another port$/, 'is said to be, with what to do';

$petrel->stop;
is take($stream, qr/never/), '', 'the stream ends with the daemon' unless eof($stream);
$petrel->start;
like take(get('/livez'), qr/ok\n\z/), qr/^HTTP\/1\.1 200 /, 'after a restart of the daemon it carries on';
is Petrel::reap($pid, 'INT') & 127, 2, 'an interruption ends it';

# --- Arguments, and no daemon

for my $wrong (['x'], ['--port'], ['--port', 'x'], ['--port', '65536'], ['--read', 'x']) {
    ($code, $text) = $petrel->run('page', @$wrong);
    is $code, 64, "page @$wrong";
    is $text, "usage: petrel page [--read] [--port N]\n", 'is said how it is used';
}
$petrel->stop;
($code, $text) = $petrel->run('page');
is $code, 69, 'without a daemon';
like $text, qr/^petrel page: no daemon answers: /, 'it says so';

# --- With http

my $http = Petrel::free_port();
$petrel->configure(http => "127.0.0.1:$http")->start;
($code, $text) = $petrel->run('page', '--read');
is $code, 0, 'where http is set it ends';
like $text, qr{^http://127\.0\.0\.1:$http/#k=[-_A-Za-z0-9]{22}\nThe key is valid once, for 5 minutes\.\n\z}, 'with the address';
$petrel->stop;
done_testing;
