#!/usr/bin/perl
# Each rule of HTTP with a request that keeps it and ones that break it: the request byte for byte, the status of the
# answer, and whether the connection is kept.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(time);

my ($token, $reader) = ('canary-operate-canary', 'canary-read-canary');
my ($port, $plain, $open) = (Petrel::free_port(), Petrel::free_port(), Petrel::free_port());
my $petrel = Petrel->new(hostname => 'mail.example.org', http => "127.0.0.1:$port, 127.0.0.1:$plain?page=no&metrics=no, 127.0.0.1:$open?access=read",
    http_names => 'proxy.example.net', http_token => $token, http_read_token => $reader, routes => '* hold')->start;
like $petrel->send_mail('a@a.test', 'b@b.test', "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'a message that is held';
my ($queue_code, $listed) = $petrel->run('queue', 'ls');
my ($id) = $listed =~ /\b([0-9A-Z]{10}-[0-9A-Z]{8})\b/;
ok $id, 'its id';

# --- The client

# One answer: { status, fields, body }, or undef where the connection ends first.
sub answer {
    my ($socket, $mute) = @_;
    my $select = IO::Select->new($socket);
    my ($got, $until) = ('', time + 60);
    my $more = sub {
        return 0 if !$select->can_read($until - time);
        return sysread $socket, $got, 65536, length $got;
    };
    while ($got !~ /\r\n\r\n/) { $more->() or return }
    my ($head, $rest) = split /\r\n\r\n/, $got, 2;
    return { status => 100, head => $head } if $head =~ /^HTTP\/1\.1 100 /;
    my ($status) = $head =~ /^HTTP\/1\.1 (\d{3}) / or return;
    my ($length) = $head =~ /^Content-Length: (\d+)\r?$/m;
    $got = $rest;
    if (!$mute && $head =~ /^Transfer-Encoding: chunked\r?$/m) {
        while ($got !~ /(?:^|\r\n)0\r\n\r\n\z/) { $more->() or return }
    } elsif (!$mute && defined $length) {
        while (length $got < $length) { $more->() or return }
    } elsif (!$mute && $status != 304) {
        1 while $more->(); # to the end
    }
    return { status => $status, head => $head, body => $got };
}

sub ends { my ($socket) = @_; my $end = IO::Select->new($socket)->can_read(60) && sysread $socket, my $rest, 1; return defined $end && $end == 0 }

# Status and "keep" or "close".
sub exchange {
    my ($to, $raw, $mute) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to", Timeout => 60) or return "no connection: $!";
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $raw;
    my $first = answer($socket, $mute) or return 'nothing close';
    my $closes = $first->{head} =~ /^Connection: close\r?$/m;
    syswrite $socket, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" unless $closes;
    my $next = $closes ? undef : answer($socket);
    my $kept = $next && $next->{status} == 200 && $next->{body} eq "ok\n";
    return "$first->{status} " . ($kept ? 'keep' : ends($socket) ? 'close' : 'hangs');
}

# --- Shorthands

my $H = "Host: localhost\r\n";
my $X = "X-Petrel: 1\r\n";
my $J = "Content-Type: application/json\r\n";
my $B = "Authorization: Bearer $token\r\n";
my $R = "Authorization: Bearer $reader\r\n";
sub get { my ($path, @fields) = @_; return "GET $path HTTP/1.1\r\n" . ("@fields" =~ /^(?:.*\n)?\s*Host:/im ? '' : $H) . join('', @fields) . "\r\n" }
sub host { return get('/livez', "Host: $_[0]\r\n") }
sub post { my ($path, $body, @fields) = @_; return "POST $path HTTP/1.1\r\n$H" . join('', @fields) . 'Content-Length: ' . length($body) . "\r\n\r\n$body" }
sub fields { my $count = shift; return join '', map { "F$_: x\r\n" } 1 .. $count }

my @rows = (
    # --- Request lines
    ['200 keep', 'GET of HTTP/1.1', get('/livez')],
    ['200 close', 'GET of HTTP/1.0', "GET /livez HTTP/1.0\r\n$H\r\n"],
    ['200 close', 'HTTP/1.0 that asks to be kept', "GET /livez HTTP/1.0\r\n${H}Connection: keep-alive\r\n\r\n"],
    ['200 close', 'Connection: close', get('/livez', "Connection: close\r\n")],
    ['200 close', 'Connection: Close, in a list', get('/livez', "Connection: foo, Close\r\n")],
    ['200 keep', 'Connection: keep-alive', get('/livez', "Connection: keep-alive\r\n")],
    ['200 keep', 'Connection: closed is another word', get('/livez', "Connection: closed\r\n")],
    ['200 keep', 'HEAD', "HEAD /livez HTTP/1.1\r\n$H\r\n", 'mute'],
    ['200 keep', 'HEAD of a stream', "HEAD /api/queue HTTP/1.1\r\n$H$B\r\n", 'mute'],
    ['401 keep', 'HEAD without a key', "HEAD /api/status HTTP/1.1\r\n$H$X\r\n", 'mute'],
    ['400 close', 'HTTP/0.9', "GET /livez\r\n"],
    ['400 close', 'HTTP/0.9, LF', "GET /livez\n"],
    ['505 close', 'HTTP/2.0', "GET /livez HTTP/2.0\r\n$H\r\n"],
    ['505 close', 'the preface of HTTP/2', "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ['505 close', 'HTTP/1.2', "GET /livez HTTP/1.2\r\n$H\r\n"],
    ['505 close', 'HTTP/1.10', "GET /livez HTTP/1.10\r\n$H\r\n"],
    ['505 close', 'HTTP/01.1', "GET /livez HTTP/01.1\r\n$H\r\n"],
    ['505 close', 'http/1.1', "GET /livez http/1.1\r\n$H\r\n"],
    ['505 close', 'a space behind the version', "GET /livez HTTP/1.1 \r\n$H\r\n"],
    ['505 close', 'two spaces before the version', "GET /livez  HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'two spaces before the target', "GET  /livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'a tab before the target', "GET\t/livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'a space before the method', " GET /livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'no target', "GET HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'no method', "/livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'a method with a colon', "GE:T /livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'a method beyond ASCII', "G\xc3\x89T /livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'an empty line before the request', "\r\nGET /livez HTTP/1.1\r\n$H\r\n"],
    ['400 close', 'bytes of TLS', "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"],
    ['400 close', 'SMTP', "EHLO client.example\r\nMAIL FROM:<a\@b.example>\r\n"],
    # --- Methods
    (map { ['405 keep', "method $_", "$_ /livez HTTP/1.1\r\n$H\r\n"] } qw(PUT PATCH TRACE TRACK PROPFIND get Get HEADX LINK PURGE FOO)),
    ['405 keep', 'OPTIONS of a path', "OPTIONS /api/status HTTP/1.1\r\n$H\r\n"],
    ['405 keep', 'a preflight', "OPTIONS /api/queue/rm HTTP/1.1\r\n${H}Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-petrel\r\n\r\n"],
    ['405 keep', 'OPTIONS *', "OPTIONS * HTTP/1.1\r\n$H\r\n"],
    ['405 keep', 'CONNECT', "CONNECT localhost:25 HTTP/1.1\r\n$H\r\n"],
    ['405 keep', 'POST to health', post('/livez', '{}', $J)],
    ['405 keep', 'DELETE of health', "DELETE /livez HTTP/1.1\r\n$H$J\r\n"],
    ['405 keep', 'POST to a list', post('/api/queue', '{}', $B, $J)],
    ['405 keep', 'GET of an action', get('/api/queue/rm', $B)],
    ['405 keep', 'DELETE of an action', "DELETE /api/queue/rm HTTP/1.1\r\n$H$B$J\r\n"],
    ['405 keep', 'GET of the session', get('/api/session', $X)],
    ['200 keep', 'DELETE of the session', "DELETE /api/session HTTP/1.1\r\n$H$X$J\r\n"],
    # --- Targets
    ['200 keep', 'a query', get('/livez?a=b&c')],
    ['200 keep', 'an empty query', get('/livez?')],
    ['200 keep', 'escapes', get('/%6Civez')],
    ['200 keep', 'escapes in lower case', get('/%6civez')],
    ['400 keep', 'an absolute target', get('http://localhost/livez')],
    ['400 keep', 'an absolute target of another', get('http://evil.example/livez')],
    ['400 keep', 'an authority', get('localhost:8025')],
    ['400 keep', 'GET *', get('*')],
    ['400 keep', 'a path without /', get('livez')],
    ['400 keep', 'a query alone', get('?a=b')],
    ['400 keep', 'a fragment', get('/livez#x')],
    ['400 keep', 'a fragment in the query', get('/livez?a#x')],
    (map { ['400 keep', "bad escape $_", get("/livez$_")] } '%', '%6', '%6g', '%g6', '%%41', '%u0041', '%-1', '%0x', '%+6'),
    (map { ['400 keep', "bad escape in the query $_", get("/livez?a=$_")] } '%', '%6', '%zz', '%00'),
    ['400 keep', '%00', get('/livez%00')],
    ['400 keep', '%2F', get('/api%2Fstatus', $B)],
    ['400 keep', '%2f', get('/api%2fstatus', $B)],
    ['200 keep', '%2F in a query', get('/livez?a=%2F')],
    (map { ['400 keep', "dots $_", get($_)] } '/../livez', '/./livez', '/livez/..', '/livez/.', '/api/../livez', '/%2e%2e/livez', '/%2e/livez', '/.%2E/livez', '/..'),
    ['401 keep', 'three dots are a name', get('/.../livez', $X)],
    ['401 keep', 'a backslash is no slash', get('/..\\livez', $X)],
    ['401 keep', 'two slashes', get('//livez', $X)],
    ['401 keep', 'a slash at the end', get('/livez/', $X)],
    ['401 keep', 'another case', get('/LIVEZ', $X)],
    ['401 keep', 'a path parameter', get('/livez;a=b', $X)],
    ['401 keep', 'CRLF by escapes', get('/livez%0d%0aSet-Cookie:%20a=b', $X)],
    ['505 close', 'a space in the target', get('/li vez')],
    ['400 close', 'an octet beyond ASCII in the target', get("/livez\xc3\xa9")],
    ['400 close', 'DEL in the target', get("/livez\x7f")],
    ['400 close', 'NUL in the target', get("/livez\0")],
    ['400 close', 'ESC in the target', get("/livez\e[2J")],
    ['200 keep', 'a target of 2 KiB', get('/livez?' . 'a' x (2048 - 7))],
    ['414 keep', 'a target of 2 KiB and an octet', get('/livez?' . 'a' x (2048 - 6))],
    ['414 close', 'a request line beyond the head', 'GET /' . 'a' x 9000 . " HTTP/1.1\r\n$H\r\n"],
    # --- Paths without and with a key
    ['401 keep', 'an unknown path without a key', get('/nothing', $X)],
    ['404 keep', 'an unknown path with one', get('/nothing', $B)],
    ['403 keep', 'an unknown path without our field', get('/nothing')],
    (map { ['403 keep', "$_ without our field", get($_)] } '/api/status', '/status.json', '/api/queue', '/api/sites', '/api/fragments', '/api/findings', '/api/series', '/api/trace?q=a', '/events', "/api/queue/$id", "/api/queue/$id/message"),
    (map { ['401 keep', "$_ without a key", get($_, $X)] } '/api/status', '/status.json', '/api/queue', '/api/sites', '/api/fragments', '/api/findings', '/api/series', '/api/trace?q=a', '/events', "/api/queue/$id", "/api/queue/$id/why", "/api/queue/$id/message"),
    (map { ['200 keep', "$_ for a reader", get($_, $R)] } '/api/status', '/status.json', '/api/queue', '/api/sites', '/api/fragments', '/api/findings', '/api/series', '/api/trace?q=a', "/api/queue/$id", "/api/queue/$id/why"),
    ['403 keep', 'content for a reader', get("/api/queue/$id/message", $R)],
    ['200 keep', 'content for an operator', get("/api/queue/$id/message", $B)],
    (map { ['403 keep', "$_ for a reader", post("/api/queue/$_", '{}', $R, $J)] } qw(hold release retry bounce rm)),
    ['403 keep', 'the level for a reader', post('/api/log-level', '{"level":"debug"}', $R, $J)],
    ['403 keep', 'a test message for a reader', post('/api/test', '{"to":"a@b.test"}', $R, $J)],
    ['401 keep', 'a test message without a key', post('/api/test', '{"to":"a@b.test"}', $X, $J)],
    ['400 keep', 'a test message to nobody', post('/api/test', '{}', $B, $J)],
    ['403 keep', 'limits of a site for a reader', post('/api/site/forget-limits', '{"site":"x"}', $R, $J)],
    ['404 keep', 'limits of no site', post('/api/site/forget-limits', '{"site":"x"}', $B, $J)],
    ['400 keep', 'limits of what is no name', post('/api/site/forget-limits', '{"site":5}', $B, $J)],
    ['400 keep', 'limits of a site and more', post('/api/site/forget-limits', '{"site":"x","all":true}', $B, $J)],
    ['401 keep', 'an action without a key', post('/api/queue/rm', '{}', $X, $J)],
    ['200 keep', 'an action of an operator', post('/api/queue/hold', qq({"ids":["$id"]}), $B, $J)],
    ['400 keep', 'an action with a wrong body', post('/api/queue/hold', '[]', $B, $J)],
    ['400 keep', 'an action with no JSON', post('/api/queue/hold', 'x', $B, $J)],
    ['400 keep', 'a member twice', post('/api/queue/hold', qq({"ids":["$id"],"ids":[]}), $B, $J)],
    ['404 keep', 'an id that is none', get('/api/queue/nothing', $B)],
    ['404 keep', 'an id of nothing', get('/api/queue/01M81JCPWC-QTH5MV7E', $B)],
    (map { ['400 keep', "parameter $_", get("/api/queue?$_", $B)] } 'limit=0', 'limit=501', 'limit=-1', 'limit=1x', 'limit=', 'after=x', 'queue=nowhere', 'older=x', 'foo=1', 'q=a&foo'),
    (map { ['400 keep', "parameter $_", get("/api/sites?$_", $B)] } 'from=-1', 'from=x', 'from=1000001', 'to=1'),
    (map { ['400 keep', "parameter $_", get("/api/trace?$_", $B)] } 'q=', 'limit=501', 'since=x', 'x=1'),
    ['400 keep', 'parameters of the series', get('/api/series?x=1', $B)],
    # --- Host
    (map { ['200 keep', "Host $_", host($_)] } 'localhost', 'LOCALHOST', 'localhost:8025', 'localhost:1', '127.0.0.1', "127.0.0.1:$port", '192.0.2.1', '[::1]', '[::1]:8025', '[2001:db8::1]', 'petrel', 'PETREL:80', 'a.localhost', 'a.local', 'a.b.internal', 'router.lan', 'x.home.arpa', 'petrel.mail.svc', 'mail.example.org',
        'MAIL.Example.Org:25', 'proxy.example.net', 'Proxy.Example.NET:443'),
    (map { ['421 keep', "Host '$_'", host($_)] } 'evil.example', '127.0.0.1.evil.example', 'localhost.evil.example', 'evil.localhost.example', 'mail.example.org.evil.example', 'xmail.example.org', 'evil.mail.example.org', 'localhost.', 'mail.example.org.', 'evil.example:80', '127.1.1', '0x7f.0.0.1', '127.0.0.1.', '[127.0.0.1]', '[::1', '::1', '[::1]x',
        '[]', 'localhost:', 'localhost:x', 'localhost:65536', 'localhost:1:2', ':80', '', 'user@localhost', 'local host', 'local,host', 'localhost/x', "local\xc3\xa9", 'home.arpa.example', '.lan', 'evil.svc.example', 'a..lan.example', 'localhost#', 'local%68ost'),
    (map { ['421 keep', "a foreign Host on $_", get($_, "Host: evil.example\r\n$B")] } '/', '/page.js', '/livez', '/readyz', '/healthz', '/metrics', '/api/status', '/events', '/nothing'),
    ['421 keep', 'a foreign Host with an unknown method', "FOO / HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
    ['421 close', 'no Host in HTTP/1.0', "GET /livez HTTP/1.0\r\n\r\n"],
    ['400 close', 'no Host in HTTP/1.1', "GET /livez HTTP/1.1\r\n\r\n"],
    ['400 close', 'two Hosts', get('/livez', $H, "Host: localhost\r\n")],
    ['400 close', 'two Hosts, in another case', get('/livez', $H, "hOST: evil.example\r\n")],
    ['400 close', 'two Hosts in HTTP/1.0', "GET /livez HTTP/1.0\r\n$H$H\r\n"],
    ['421 keep', 'X-Forwarded-Host is nothing', get('/livez', "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n")],
    # --- Sec-Fetch-Site, Origin
    ['200 keep', 'the same origin', get('/livez', "Sec-Fetch-Site: same-origin\r\n")],
    (map { my $site = $_; map { ['403 keep', "Sec-Fetch-Site $site on $_", get($_, "Sec-Fetch-Site: $site\r\nSec-Fetch-Mode: cors\r\n$B")] } '/', '/page.js', '/icon.svg', '/livez', '/metrics', '/api/status', '/events' } 'cross-site', 'same-site', 'none'),
    ['403 keep', 'an empty Sec-Fetch-Site', get('/livez', "Sec-Fetch-Site:\r\n")],
    ['403 keep', 'two Sec-Fetch-Sites', get('/livez', "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n")],
    (map { ['200 keep', "navigation to /, $_", get('/', "Sec-Fetch-Site: $_\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n")] } 'none', 'cross-site', 'same-site'),
    ['403 keep', 'navigation to /metrics', get('/metrics', "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n")],
    ['403 keep', 'navigation by POST', post('/', '{}', $J, "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n")],
    (map { ['200 keep', "Origin $_", get('/livez', "Origin: $_\r\n")] } 'http://localhost', 'http://localhost:80', 'https://localhost', 'HTTP://LOCALHOST', 'https://proxy.example.net', 'https://proxy.example.net:8443'),
    (map { ['403 keep', "Origin '$_'", get('/livez', "Origin: $_\r\n")] } 'null', 'http://localhost:8025', 'http://evil.example', 'http://127.0.0.1', 'http://localhost.evil.example', 'https://mail.example.org', 'ftp://localhost', 'file://', 'localhost', '', 'http://', 'http://localhost/', 'http://user@localhost', 'http://localhost@evil.example', 'http://localhost http://evil.example', 'chrome-extension://abc'),
    ['403 keep', 'two Origins', get('/livez', "Origin: http://localhost\r\nOrigin: http://evil.example\r\n")],
    ['403 keep', 'a foreign Origin with a key', get('/api/status', "Origin: http://evil.example\r\n", $B)],
    ['403 keep', 'a foreign POST with a key', post('/api/queue/hold', '{}', "Origin: http://evil.example\r\n", $B, $J)],
    # --- X-Petrel, Authorization, Content-Type
    ['403 keep', 'X-Petrel: 2', get('/api/status', "X-Petrel: 2\r\n")],
    ['403 keep', 'X-Petrel: 1, 1', get('/api/status', "X-Petrel: 1, 1\r\n")],
    ['403 keep', 'an empty X-Petrel', get('/api/status', "X-Petrel:\r\n")],
    ['200 keep', 'bearer in another case', get('/api/status', "authorization: bEARER $token\r\n")],
    ['401 keep', 'a wrong token', get('/api/status', "Authorization: Bearer canary-wrong-canary\r\n")],
    ['401 keep', 'the token and more', get('/api/status', "Authorization: Bearer ${token}x\r\n")],
    ['401 keep', 'an empty token', get('/api/status', "Authorization: Bearer  x\r\n")],
    ['403 keep', 'the token as Basic', get('/api/status', "Authorization: Basic $token\r\n")],
    ['403 keep', 'the token alone', get('/api/status', "Authorization: $token\r\n")],
    ['403 keep', 'the token in the query', get("/api/status?token=$token")],
    ['401 keep', 'the token in the query, with our field', get("/api/status?access_token=$token", $X)],
    ['401 keep', 'the token as a cookie', get('/api/status', $X, "Cookie: petrel=$token\r\n")],
    ['401 keep', 'the token as X-Petrel-Token', get('/api/status', $X, "X-Petrel-Token: $token\r\n")],
    ['401 keep', 'a key that is none', post('/api/session', '{"key":"AAAAAAAAAAAAAAAAAAAAAA"}', $X, $J)],
    ['415 keep', 'a session without a type', post('/api/session', '{}', $X)],
    ['403 keep', 'a session without our field', post('/api/session', '{}', $J)],
    (map { ['415 keep', "Content-Type $_", post('/api/queue/hold', '{}', $B, "Content-Type: $_\r\n")] } 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/json', 'application/jsonp', 'application/json, text/plain', 'application/x-json', ''),
    ['415 keep', 'no Content-Type', post('/api/queue/hold', '{}', $B)],
    ['200 keep', 'a charset', post('/api/queue/hold', qq({"ids":["$id"]}), $B, "Content-Type: Application/JSON; charset=utf-8\r\n")],
    ['415 keep', 'DELETE without a type', "DELETE /api/session HTTP/1.1\r\n$H$X\r\n"],
    ['415 close', 'a content coding', post('/api/queue/hold', '{}', $B, $J, "Content-Encoding: gzip\r\n")],
    # --- Fields
    ['400 close', 'a folded field', get('/livez', "A: b\r\n c\r\n")],
    ['400 close', 'a folded first field', "GET /livez HTTP/1.1\r\n $H\r\n"],
    ['400 close', 'a space before the colon', get('/livez', "A : b\r\n")],
    ['400 close', 'Host before a space', "GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n"],
    ['400 close', 'a field without a colon', get('/livez', "abc\r\n")],
    ['400 close', 'a field without a name', get('/livez', ": b\r\n")],
    ['400 close', 'a name with a space', get('/livez', "A B: c\r\n")],
    ['400 close', 'a name beyond ASCII', get('/livez', "\xc3\xa9: c\r\n")],
    ['400 close', 'a bare LF', "GET /livez HTTP/1.1\n$H\r\n"],
    ['400 close', 'a bare LF behind a field', "GET /livez HTTP/1.1\r\nHost: localhost\n\r\n"],
    ['400 close', 'a bare LF for the empty line', "GET /livez HTTP/1.1\r\n$H\n"],
    ['400 close', 'a bare CR', get('/livez', "A: b\rc\r\n")],
    ['400 close', 'CR CR LF', get('/livez', "A: b\r\r\n")],
    ['400 close', 'NUL in a value', get('/livez', "A: b\0c\r\n")],
    ['400 close', 'a control in a value', get('/livez', "A: b\x01c\r\n")],
    ['400 close', 'DEL in a value', get('/livez', "A: b\x7fc\r\n")],
    ['200 keep', 'a tab in a value', get('/livez', "A: b\tc\r\n")],
    ['200 keep', '8 bits in a value', get('/livez', "A: \xc3\xa9\xff\r\n")],
    ['200 keep', 'an empty value', get('/livez', "A:\r\n")],
    ['200 keep', 'names are of any case', "GET /livez HTTP/1.1\r\nhOsT:localhost\r\n\r\n"],
    ['200 keep', '64 fields', get('/livez', fields(63))],
    ['431 close', '65 fields', get('/livez', fields(64))],
    ['200 keep', 'a head of 8 KiB', get('/livez', 'A: ' . 'x' x (8192 - length(get('/livez', "A: \r\n"))) . "\r\n")],
    ['431 close', 'a head of 8 KiB and an octet', get('/livez', 'A: ' . 'x' x (8193 - length(get('/livez', "A: \r\n"))) . "\r\n")],
    ['431 close', 'a field that does not end', "GET /livez HTTP/1.1\r\n${H}A: " . 'x' x 9000],
    # --- Bodies
    ['411 close', 'POST without a length', "POST /api/queue/hold HTTP/1.1\r\n$H$B$J\r\n"],
    ['400 keep', 'POST of nothing', post('/api/queue/hold', '', $B, $J)],
    ['200 keep', 'GET with a body', "GET /livez HTTP/1.1\r\n${H}Content-Length: 5\r\n\r\nhello"],
    ['200 keep', 'a body that looks like a request', "GET /livez HTTP/1.1\r\n${H}Content-Length: 25\r\n\r\nGET /nothing HTTP/1.1\r\n\r\n"],
    ['400 close', 'two Content-Lengths', "GET /livez HTTP/1.1\r\n${H}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"],
    ['400 close', 'two that differ', "GET /livez HTTP/1.1\r\n${H}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"],
    (map { ['400 close', "Content-Length '$_'", "GET /livez HTTP/1.1\r\n${H}Content-Length: $_\r\n\r\nhello"] } '', '-5', '+5', '5,5', '5, 5', '0x5', '5 5', '5.0', '1234567890', '9' x 30, 'five', "5\t5"),
    ['200 keep', 'a length with zeros', "GET /livez HTTP/1.1\r\n${H}Content-Length: 000000005\r\n\r\nhello"],
    ['400 keep', 'a body of 32 KiB', post('/api/queue/hold', ' ' x 32768, $B, $J)],
    ['413 close', 'a body of 32 KiB and an octet', post('/api/queue/hold', ' ' x 32769, $B, $J)],
    ['413 close', 'a length beyond', "POST /api/queue/hold HTTP/1.1\r\n$H$B${J}Content-Length: 999999999\r\n\r\n"],
    ['501 close', 'chunks', "POST /api/queue/hold HTTP/1.1\r\n$H$B${J}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
    (map { ['501 close', "Transfer-Encoding '$_'", "GET /livez HTTP/1.1\r\n${H}Transfer-Encoding: $_\r\n\r\n"] } 'identity', 'gzip, chunked', 'xchunked', "\tchunked", ''),
    ['501 close', 'chunks and a length', "POST /api/queue/hold HTTP/1.1\r\n$H$B${J}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"],
    ['400 close', 'a name that is nearly Transfer-Encoding', "GET /livez HTTP/1.1\r\n${H}Transfer-Encoding : chunked\r\n\r\n"],
    ['501 close', 'chunks in HTTP/1.0', "GET /livez HTTP/1.0\r\n${H}Transfer-Encoding: chunked\r\n\r\n"],
    ['100 keep', 'Expect: 100-continue', "POST /api/queue/hold HTTP/1.1\r\n$H$B${J}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", 'expect'],
    ['417 close', 'another expectation', get('/livez', "Expect: 200-maybe\r\n")],
    ['200 keep', 'an upgrade to WebSocket', get('/livez', "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")],
    ['403 keep', 'a WebSocket to the events', get('/events', "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://evil.example\r\nSec-WebSocket-Version: 13\r\n")],
    ['200 keep', 'an upgrade to HTTP/2', get('/livez', "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n")],
    ['200 keep', 'a range', get('/page.js', "Range: bytes=0-1\r\n")],
    ['200 keep', 'If-None-Match of another version', get('/page.js', "If-None-Match: \"x\"\r\n")],
    ['304 keep', 'If-None-Match: *', get('/page.js', "If-None-Match: *\r\n")],
    ['200 keep', 'If-None-Match where there is no tag', get('/livez', "If-None-Match: *\r\n")],
    # --- Places
    (map { ['404 keep', "$_ where there is no page", get($_, $B), undef, $plain] } '/', '/page.js', '/api/status', '/api/session', '/events', '/metrics', '/nothing'),
    (map { ['200 keep', "$_ where there is no page", get($_), undef, $plain] } '/livez', '/healthz', '/readyz'),
    ['200 keep', 'who connects may read', get('/api/status', $X), undef, $open],
    ['403 keep', 'but only with our field', get('/api/status'), undef, $open],
    ['403 keep', 'and not operate', post('/api/queue/rm', '{}', $X, $J), undef, $open],
    ['401 keep', 'a wrong token helps nobody', get('/api/status', "Authorization: Bearer canary-wrong-canary\r\n"), undef, $open],
    ['200 keep', 'the token operates there, too', post('/api/queue/hold', qq({"ids":["$id"]}), $B, $J), undef, $open],
);

# Meanwhile three are late.
my ($begun, $slow, $silent, $body) = (time, map { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 60) } 1 .. 3);
syswrite $slow, 'GET /livez HT';
syswrite $body, "POST /api/queue/hold HTTP/1.1\r\n$H$B${J}Content-Length: 2\r\n\r\n{";

cmp_ok scalar(@rows), '>=', 200, scalar(@rows) . ' rows';
for my $row (@rows) {
    my ($wanted, $name, $raw, $how, $to) = @$row;
    if (($how // '') eq 'expect') {
        my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 60);
        syswrite $socket, $raw;
        is answer($socket)->{status}, 100, $name;
        syswrite $socket, '[]';
        is answer($socket)->{status}, 400, '  and then the answer';
        next;
    }
    is exchange($to // $port, $raw, $how), $wanted, $name;
}

# --- Every answer

for my $raw (get('/livez'), get('/api/status', $B), get('/'), get('/nothing', $X), host('evil.example'), "BAD\r\n\r\n", "OPTIONS / HTTP/1.1\r\n$H\r\n", get('/api/queue', $B)) {
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 60);
    syswrite $socket, $raw;
    my $head = answer($socket)->{head};
    my ($name) = $raw =~ /^(.*)\r\n/;
    like $head, qr/^\Q$_\E\r?$/m, "$name: $_"
        for 'X-Content-Type-Options: nosniff', 'Referrer-Policy: no-referrer', 'Cross-Origin-Resource-Policy: same-origin', 'Cross-Origin-Opener-Policy: same-origin',
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
    like $head, qr/^Cache-Control: no-(?:store|cache)\r?$/m, "$name: Cache-Control";
    unlike $head, qr/^(?:Access-Control|Server|X-Powered)/mi, "$name: nothing for other origins";
}

# --- Pipelines, pieces, many requests

{
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 60);
    syswrite $socket, get('/livez') . get('/readyz') . get('/nothing', $B) . get('/livez', "Connection: close\r\n") . get('/livez');
    local $/;
    my $all = <$socket>;
    is join(' ', $all =~ /^HTTP\/1\.1 (\d+)/mg), '200 200 404 200', 'what comes early waits; nothing follows the last';
}
{
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 60);
    syswrite $socket, $_ for split //, get('/livez');
    is answer($socket)->{status}, 200, 'octet by octet';
    my @status = map { syswrite $socket, get('/livez'); my $a = answer($socket); $a ? $a->{status} . ($a->{head} =~ /^Connection: close/m ? ' close' : '') : 'none' } 2 .. 100;
    is_deeply [@status[0, 97, 98]], ['200', '200', '200 close'], 'a hundred requests, then the end';
    ok ends($socket), 'it is closed';
}

# --- Time

for my $late (['a head', $slow], ['a body', $body], ['nothing', $silent]) {
    my $answer = answer($late->[1]);
    is $answer ? $answer->{status} : 'none', 408, "$late->[0] that does not come";
    ok ends($late->[1]), '  is the end';
}
cmp_ok time - $begun, '>=', 9, 'after ten seconds';
my $denied = time;
is exchange($port, get('/api/status', "Authorization: Bearer canary-wrong-canary\r\n")), '401 keep', 'a wrong token';
cmp_ok time - $denied, '>=', 0.9, 'is refused after a second';

# --- Nothing was changed, no secret was logged

is +(exchange($port, get('/livez'))), '200 keep', 'it lives';
like +($petrel->run('queue', 'ls'))[1], qr/\Q$id\E/, 'the message is there';
unlike $petrel->log, qr/canary/, 'no token is in the log';
$petrel->stop;
done_testing;
