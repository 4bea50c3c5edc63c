#!/usr/bin/perl
# format=json: behind nginx a Python application gets each message as JSON; its parts are those that Python's own MIME library
# reads in the raw form of the same mail, whatever their charset, encoding and nesting; a large one streams.
use lib 't/e2e';
use E2E;
use Hook;
use Nginx;
use MIME::Base64;

plan skip_all => Hook->missing // Nginx->missing if Hook->missing // Nginx->missing;
my $dir = tempdir('petrel-json-XXXXXX', TMPDIR => 1, CLEANUP => 1);
system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout $dir/web.key -out $dir/web.pem 2>/dev/null") == 0 or die;
my ($app, $raw) = (Hook->start('204'), Hook->start('204'));
my $port = Petrel::free_port();
my $nginx = Nginx->start($dir, <<"END");
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $dir/web.pem;
        ssl_certificate_key $dir/web.key;
        client_max_body_size 100m;
        location / { proxy_request_buffering off; proxy_http_version 1.1; proxy_pass http://127.0.0.1:$app->{port}; }
    }
END
Petrel::spit("$dir/passwords", "localhost hook whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
chmod 0600, "$dir/passwords";
my $petrel = Petrel->new(
    hostname => 'mail.example.org', relay_from => '127.0.0.1', control => undef, tls_ca => "$dir/web.pem", auth_passwords => "$dir/passwords", user => undef,
    routes => "json.example https://localhost:$port/in?sign=hook&format=json\nbare.example http://127.0.0.1:$app->{port}/?format=json\nraw.example http://127.0.0.1:$raw->{port}/?format=raw\n",
)->start;
my $jpeg = encode_base64("\xff\xd8\0binary\n" x 50);
my $hello = encode_base64("hello \xe2\x82\xac\n");
my @messages = (
    "From: ann\@example.org\nSubject: plain\n\nhello\n.dot\n",
    "From: ann\@example.org\nSubject: =?UTF-8?B?w6TDtg==?= =?iso-8859-1?Q?_=E9t=E9?= x\n\n",
    "Subject: latin\nMIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n=E9t=E9 =80 \"quoted\" \\ soft=\n end\n",
    "Subject: both\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\npreamble\n--m\nContent-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n$hello\n--a\nContent-Type: text/html; charset=utf-8\n\n<p>hello</p>\n--a--\n--m\nContent-Type: image/jpeg; name=\"a.jpg\"\nContent-ID: <pic\@x>\nContent-Disposition: inline; filename*=UTF-8''%e2%82%ac.jpg\nContent-Transfer-Encoding: base64\n\n$jpeg\n--m\nContent-Type: text/plain\n\nfooter\n--m--\n",
    "Subject: other\nMIME-Version: 1.0\nContent-Type: text/plain; charset=koi8-r\nContent-Transfer-Encoding: 8bit\n\n\xc1\xc2\xc3\n",
    "Subject: broken\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nbad \xff\xc3 end \xe2\x82\n",
    "Subject: attached\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: message/rfc822\n\nSubject: inner\nContent-Type: multipart/mixed; boundary=n\n\n--n\n\ninner text\n--n--\n\n--m\nContent-Type: text/html\nContent-Disposition: attachment; filename=page.html\n\n<b>\n--m--\n",
    "Subject: open\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: text/plain\n\nnever closed",
    "Subject: empty\nMIME-Version: 1.0\nContent-Type: multipart/mixed\n\nno boundary\n",
    "Subject: many\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n" . join('', map { "--m\nContent-Type: application/x-n\n\n$_\n" } 1 .. 130) . "--m--\n",
);
for my $message (@messages) {
    $petrel->send_mail('ann@example.org', ['one@json.example', 'two@json.example', 'one@raw.example'], $message) =~ /^250/ or die;
    ok Petrel::wait_for(sub { $petrel->queued == 0 }), 'delivered' or diag $petrel->log;
    my ($request, $same) = (($app->requests)[-1], ($raw->requests)[-1]);
    ok Hook::is_signed($request, decode_base64('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')), 'signed';
    is $request->{headers}{'content-type'}, 'application/json', 'JSON';
    Petrel::spit("$dir/json", $request->{body});
    Petrel::spit("$dir/raw", $same->{body});
    my ($code, $said) = Petrel::command(undef, 'python3', 't/e2e/web_json.py', "$dir/json", "$dir/raw");
    is $code, 0, 'Python reads the same parts in both' or diag $said, substr $request->{body}, 0, 3000;
}
my @got = map { decode_json($_->{body}) } $app->requests;
is_deeply $got[0]{to}, ['one@json.example', 'two@json.example'], 'the recipients';
is $got[0]{from}, 'ann@example.org', 'the sender';
is $got[0]{text}, "hello\n.dot\n\n", 'a text';
is $got[1]{subject}, "\xe4\xf6 \xe9t\xe9 x", 'a subject';
is $got[2]{text}, "\xe9t\xe9 \x{20ac} \"quoted\" \\ soft end\n\n", 'Latin-1';
is $got[3]{attachments}[0]{name}, "\x{20ac}.jpg", 'a name';
is_deeply [map { $_->{type} } @{ $got[3]{attachments} }], ['image/jpeg', 'text/plain'], 'a footer is an attachment';
is $got[4]{attachments}[0]{charset}, 'koi8-r', 'a charset that is not known stays octets';
is $got[5]{text}, "bad \x{fffd}\x{fffd} end \x{fffd}\x{fffd}\n\n", 'octets that are none';
is $got[6]{attachments}[0]{type}, 'message/rfc822', 'a message within';
is $got[9]{omitted}, 30, 'parts beyond the limit are counted';

# Without a signature.
$petrel->send_mail('ann@example.org', 'a@bare.example', $messages[0]) =~ /^250/ or die;
ok $petrel->wait_empty, 'one without a signature';
is decode_json((($app->requests)[-1])->{body})->{text}, $got[0]{text}, 'is the same';

# The application of doc/web-target.md, as it stands there.
my ($recipe) = Petrel::slurp('doc/web-target.md') =~ /^An inbound-parse application, whole\..*?^```text elsewhere\n(.*?)^```$/ms or die 'no recipe';
my ($said, $inbound) = ("$dir/inbound.said", Petrel::free_port());
Petrel::spit("$dir/inbound.py", $recipe);
Petrel::spit("$dir/secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
Petrel::spit("$dir/passwords", "localhost hook whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n127.0.0.1 hook whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n127.0.0.1 other whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
my %settings = (routes => "json.example https://localhost:$port/in?sign=hook&format=json\ninbound.example http://127.0.0.1:$inbound/?format=json&sign=hook\nforged.example http://127.0.0.1:$inbound/?format=json&sign=other\n");
Petrel::spawn($said, 'python3', "$dir/inbound.py", $inbound, "$dir/secret");
$petrel->stop;
$petrel->configure(%settings);
$petrel->start;
Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $inbound) }) or die Petrel::slurp($said);
$petrel->send_mail('ann@example.org', ['one@inbound.example', 'two@inbound.example'], $messages[3]) =~ /^250/ or die;
ok $petrel->wait_empty, 'the application of the manual takes mail' or diag $petrel->log, Petrel::slurp($said);
like Petrel::slurp($said), qr/^for one\@inbound\.example two\@inbound\.example from ann\@example\.org about both\nhello .*\n\n.*\.jpg image\/jpeg 500\na part text\/plain 6$/m, 'its parts';
$petrel->send_mail('ann@example.org', 'a@forged.example', $messages[0]) =~ /^250/ or die;
ok $petrel->wait_log(qr/to=<a\@forged\.example>.*status=deferred.*401/), 'and none that another has signed' or diag $petrel->log;
unlike Petrel::slurp($said), qr/forged/, 'of which it reads nothing';
$petrel->run('queue', 'rm', '--all');
ok $petrel->wait_empty, 'which is removed';

# 8 MB, in bounded memory: the receiver of the tests takes no more in short time.
my $large = "Subject: large\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\nsmall\n--m\nContent-Type: application/x\nContent-Transfer-Encoding: base64\n\n" . encode_base64('x' x 6_000_000) . "--m--\n";
my $before = (Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s+(\d+)/)[0];
$petrel->send_mail('ann@example.org', 'a@json.example', $large) =~ /^250/ or die;
ok $petrel->wait_empty, 'a large message' or diag $petrel->log;
my $all = (($app->requests)[-1])->{body};
ok $all =~ /"inline":true,"content":"([^"]+)"\}\]\}\z/ && decode_base64($1) eq 'x' x 6_000_000, 'comes whole';
like $all, qr/,"text":"small",/, 'with its text';
my $after = (Petrel::slurp("/proc/$petrel->{pid}/status") =~ /VmHWM:\s+(\d+)/)[0];
SKIP: {
    skip 'memory is not measured under sanitizers', 1 if ($ENV{SAN} // '') ne '';
    cmp_ok $after - $before, '<', 3_000, 'in little memory' or diag "$before, $after kB";
}
$petrel->stop;
$petrel->configure(routes => "* http://127.0.0.1/?format=xml");
like +($petrel->run('check'))[1], qr/format=xml: use raw or json/, 'another format is an error';
$nginx->stop;
done_testing;
