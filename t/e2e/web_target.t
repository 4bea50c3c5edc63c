#!/usr/bin/perl
# A web application gets mail: over TLS and without, with each answer it may give; nothing is lost, and what it takes is not
# posted again.
use lib 't/e2e';
use E2E;
use Hook;

plan skip_all => Hook->missing if Hook->missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $dir = tempdir('petrel-web-XXXXXX', TMPDIR => 1, CLEANUP => 1);
for (['good', 'localhost'], ['other', 'other.example']) {
    my ($file, $name) = @$_;
    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$name -addext subjectAltName=DNS:$name " .
        "-keyout $dir/$file.key -out $dir/$file.pem 2>/dev/null") == 0 or die;
}
Petrel::spit("$dir/ca", Petrel::slurp("$dir/good.pem") . Petrel::slurp("$dir/other.pem"));
my $app = Hook->start('204', "$dir/good.pem", "$dir/good.key");
my $stranger = Hook->start('204', "$dir/other.pem", "$dir/other.key");
my $plain = Hook->start('204');
my $key = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
Petrel::spit("$dir/token", "canary-token\n");
Petrel::spit("$dir/passwords", "localhost joe canary-password\nlocalhost hook $key\nlocalhost app \@$dir/token\n127.0.0.1 joe canary-password\n");
chmod 0600, "$dir/passwords";
my $url = "https://joe\@localhost:$app->{port}/In/bound?sign=hook";
my $petrel = Petrel->new(
    hostname => 'mail.example.org', relay_from => '127.0.0.1', control => undef, tls_ca => "$dir/ca", auth_passwords => "$dir/passwords",
    user => undef, maximal_backoff_time => '10m', minimal_backoff_time => '1m',
    routes => "app.example $url\ntoken.example https://app\@localhost:$app->{port}/token?auth=bearer\n" .
        "strange.example https://localhost:$stranger->{port}/\nplain.example http://joe\@127.0.0.1:$plain->{port}/\n" .
        "down.example http://127.0.0.1:1/\n",
);
$petrel->start;
my $message = "From: ann\@example.org\nSubject: x\n\nhello\n.dot\n";
sub mail { my ($to, $text) = @_; return $petrel->send_mail('ann@example.org', $to, $text // $message) =~ /queued as (\S+)/ ? $1 : undef }
sub log_of { my $id = shift; return join '', grep { /\Q$id\E/ && /status=/ } split /^/, $petrel->log }
sub ends { my ($id, $count) = @_; return Petrel::wait_for(sub { (() = log_of($id) =~ /status=/g) >= ($count // 1) }) }

my $id = mail(['a@app.example', 'b@app.example']);
ok ends($id, 2), 'delivered' or diag $petrel->log;
like log_of($id), qr/to=<a\@app\.example>, relay=localhost\[127\.0\.0\.1\]:$app->{port},.* dsn=2\.0\.0, status=sent \(host localhost\[127\.0\.0\.1\] said: HTTP 204 \(in reply to POST\)\)/, 'a log line';
my @got = $app->requests;
is scalar @got, 1, 'one POST for both';
is $got[0]{request}, 'POST /In/bound HTTP/1.1', 'the path';
is $got[0]{headers}{'content-type'}, 'message/rfc822', 'a message';
is $got[0]{headers}{'authorization'}, 'Basic am9lOmNhbmFyeS1wYXNzd29yZA==', 'a password';
is $got[0]{headers}{'x-petrel-from'}, 'ann@example.org', 'the sender';
is $got[0]{headers}{'x-petrel-to'}, 'b@app.example', 'recipients, the last of which this receiver keeps';
is $got[0]{headers}{'x-petrel-id'}, $id, 'the id';
ok Hook::is_signed($got[0], MIME::Base64::decode_base64('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')), 'a signature';
(my $body = $got[0]{body}) =~ s/\r\n/\n/g;
like $body, qr/\AReceived: from .*\n\nhello\n\.dot\n\n\z/s, 'the message, with its trace';
is $petrel->queued, 0, 'nothing waits';

# A large one, in bounded memory.
my $large = "Subject: large\n\n" . ('x' x 75 . "\n") x 400_000;
my $before = (Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s+(\d+)/)[0];
$id = mail('a@app.example', $large);
ok ends($id), 'a message of 30 MB' or diag $petrel->log;
my $last = ($app->requests)[-1];
is length($last->{body}) - index($last->{body}, "Subject: large"), length($large) + 400_002 + 2, 'comes whole';
ok Hook::is_signed($last, MIME::Base64::decode_base64('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')), 'signed';
my $after = (Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s+(\d+)/)[0];
SKIP: {
    skip 'memory is not measured under sanitizers', 1 if ($ENV{SAN} // '') ne '';
    cmp_ok $after - $before, '<', 8_000, 'in little memory' or diag "$before, $after kB";
}

# A token, read anew each time.
ok ends(mail('a@token.example')), 'a token';
is +($app->requests)[-1]{headers}{authorization}, 'Bearer canary-token', 'of a file';
Petrel::spit("$dir/token", 'another');
ok ends(mail('a@token.example'));
is +($app->requests)[-1]{headers}{authorization}, 'Bearer another', 'that may change';
ok ends(mail('a@plain.example')), 'http:// on loopback';

# Every other answer.
for (
    ['404', qr/dsn=5\.3\.0, status=bounced \(host localhost\[127\.0\.0\.1\] said: HTTP 404: ok \(in reply to POST\)\)/],
    ['413', qr/dsn=5\.3\.4, status=bounced/],
    ['page:422', qr/dsn=5\.6\.0, status=bounced \(host localhost\[127\.0\.0\.1\] said: HTTP 422 \(in reply to POST\)\)/],
    ['401', qr/dsn=4\.7\.8, status=deferred \(.*it does not take our user or token/],
    ['500', qr/dsn=4\.3\.0, status=deferred/],
    ['503', qr/dsn=4\.3\.2, status=deferred/],
    ['429:100', qr/dsn=4\.7\.28, status=deferred \(.*HTTP 429, try again in 100 seconds/],
    ["302:https://localhost:$app->{port}/else", qr/dsn=4\.3\.5, status=deferred \(.*redirects are not followed/],
    ['close', qr/dsn=4\.4\.2, status=deferred \(post to localhost: /],
    ['half', qr/dsn=4\.4\.2, status=deferred/],
    ['garbage', qr/dsn=4\.4\.2, status=deferred/],
    ['cut:200', qr/status=sent/],
    ['drip', qr/status=sent/],
    ['huge', qr/status=sent/],
    ) {
    my ($mode, $wanted) = @$_;
    # Each row is of a host that has not learnt anything yet.
    $petrel->run('queue', 'retry', '--forget-limits', "https:joe\@[localhost]:$app->{port}/In/bound");
    $app->mode($mode);
    my $row = mail('a@app.example');
    ok ends($row), "$mode is an answer" or diag $petrel->log;
    like log_of($row), $wanted, '  as it should be' or diag log_of($row);
}
is scalar(grep { $_->{request} =~ /else/ } $app->requests), 0, 'no redirect was followed';
my $why = ($petrel->run('queue', 'why', map { /http: (\S+): .*status=deferred.*429/ ? $1 : () } split /\n/, $petrel->log))[1];
like $why, qr/HTTP 429, try again in 100 seconds/, 'queue why has the reason';

# All that waits is delivered, once, under the id of its first attempt.
$app->mode('204');
$petrel->run('queue', 'retry', '--forget-limits', "https:joe\@[localhost]:$app->{port}/In/bound");
$petrel->run('queue', 'retry', '--all');
ok $petrel->wait_empty, 'all mail has ended' or diag +($petrel->run('queue', 'ls'))[1];
my (%ids, %taken);
push @{ $ids{ $_->{headers}{'x-petrel-id'} } }, $_->{headers}{'webhook-id'} for $app->requests;
ok !(grep { my %d = map { $_ => 1 } @$_; keys %d > 1 } values %ids), 'an id for each message';
$taken{ $_->{headers}{'webhook-id'} }++ for grep { $_->{mode} =~ /^(?:204|cut:200|drip|huge)$/ } $app->requests;
is_deeply [grep { $taken{$_} > 1 } keys %taken], [], 'none that was taken comes again';

# It is not the host, or it is not there.
$id = mail('a@strange.example');
ok ends($id), 'another certificate';
like log_of($id), qr/dsn=4\.4\.2, status=deferred \(post to localhost: TLS: certificate does not name localhost/, 'is refused';
is scalar(() = $stranger->requests), 0, 'and got nothing';
$id = mail('a@down.example');
ok ends($id), 'nobody listens';
like log_of($id), qr/dsn=4\.4\.1, status=deferred \(post to 127\.0\.0\.1: .*refused/, 'so it waits';
unlike $petrel->log, qr/canary|whsec/, 'no secret in the log';

# A private address behind a public name is refused, unless the route says otherwise.
$petrel->stop;
my $check = sub { $petrel->configure(routes => shift); return ($petrel->run('check'))[1] };
like $check->('* http://app.example.com/'), qr/petrel\.conf:\d+: .*http:\/\/ is for loopback/, 'http:// to the Internet is an error';
like $check->('* https://x@localhost/'), qr/no password for the user x at localhost/, 'a user without a password, too';
is $petrel->stop, 0, 'stopped' if $petrel->{pid};
done_testing;
