#!/usr/bin/perl
# TLS as a server, to clients that we did not write: openssl, swaks, smtplib, curl, msmtp, nodemailer; and to one by
# hand that puts bytes where none belong.
use lib 't/e2e';
use E2E;
use FindBin;
use File::Copy qw(copy);
use Peer;

plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $scratch = tempdir('tls-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $keys = "$scratch/keys";
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my ($ca, $host) = ("$keys/ca.pem", 'mail.example.net');

my $sink = Petrel::sink();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", smtpd_hard_error_limit => 100,
    tls_certificate => join(' ', map { "$scratch/$_.pem" } qw(good exact wild)), tls_key => join(' ', map { "$scratch/$_.key" } qw(good exact wild)));
sub install { my ($from, $to) = @_; for (qw(pem key)) { copy("$keys/$from.$_", "$scratch/$to.$_") or die "$from: $!" } return }
install($_, $_) for qw(good exact wild);
my %port = (starttls => $petrel->{port}, implicit => Petrel::free_port(), without => Petrel::free_port());
$petrel->configure(listen => "127.0.0.1:$port{starttls}, 127.0.0.1:$port{implicit}?tls, 127.0.0.1:$port{without}?starttls=no")->start;

my $plain = "From: Me <me\@here.test>\r\nTo: you\@there.test\r\nSubject: plain\r\nDate: Sat, 21 Nov 2026 03:00:00 +0000\r\n"
    . "Message-ID: <1\@here.test>\r\n\r\nHello.\r\n.\r\n.dot\r\nlast line\r\n";
my $large = $plain . ('z' x 70 . "\r\n") x 15_000; # many records
Petrel::spit("$scratch/plain", $plain);
Petrel::spit("$scratch/large", $large);
my $arrived = 0;

# The next message that the sink gets came by TLS and is whole.
sub next_is {
    my ($name, $content) = @_;
    my $got = Petrel::wait_arrived($sink, ++$arrived);
    return fail("$name: arrives") || diag $petrel->log unless $got;
    ok Petrel::untraced($got->{content}) eq $content, "$name: arrives byte for byte";
    like $got->{content}, qr/\AReceived: [^\n]*(?:\r\n[ \t][^\n]*)*?\bwith (?:ESMTPS|UTF8SMTPS)\b[^;]*TLSv1\.[23][^;]*(?:GCM|CHACHA20|CCM)/,
        "$name: Received names version and cipher" or diag substr $got->{content}, 0, 300;
    return;
}

# --- openssl s_client

sub s_client {
    my ($said, @arguments) = @_;
    return (Petrel::command($said, 'openssl', 's_client', '-CAfile', $ca, '-nocommands', '-ign_eof', @arguments))[1];
}
sub starttls { return ('-connect', "127.0.0.1:$port{starttls}", '-starttls', 'smtp', @_) }
sub implicit { return ('-connect', "127.0.0.1:$port{implicit}", @_) }
sub shown { my $said = shift; return $said =~ /^subject=(?:O ?= ?Petrel tests, )?CN ?= ?(.*)$/m ? $1 : '' }

for my $case ([ 'STARTTLS', starttls() ], [ 'implicit', implicit() ]) {
    my ($name, @to) = @$case;
    my $said = s_client("EHLO x\r\nQUIT\r\n", @to, '-verify_hostname', $host, '-verify_return_error');
    like $said, qr/Verification: OK/, "openssl, $name: the chain and the name are good";
    like $said, qr/^New, TLSv1\.[23], Cipher is (?:ECDHE-|TLS_)\S*(?:GCM|POLY1305|CCM)/m, "openssl, $name: ECDHE and AEAD";
    like $said, qr/^221 /m, "openssl, $name: and speaks with us";
    unlike s_client("EHLO x\r\nQUIT\r\n", @to) =~ s/.*---//sr, qr/STARTTLS/, "openssl, $name: STARTTLS is not offered again";
    $said = s_client("QUIT\r\n", @to, '-tls1_2');
    like $said, qr/^New, TLSv1\.2, /m, "openssl, $name: TLS 1.2";
    for my $old (qw(tls1 tls1_1)) {
        $said = s_client("QUIT\r\n", @to, "-$old", '-cipher', 'ALL:@SECLEVEL=0');
        like $said, qr/Cipher is \(NONE\)/, "openssl, $name: no $old";
        like $said, qr/alert (?:protocol version|handshake failure)/, "openssl, $name: and $old is told so";
    }
    for my $weak ('ECDHE-ECDSA-AES128-SHA', 'AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-SHA384', 'eNULL', 'aNULL') {
        $said = s_client("QUIT\r\n", @to, '-tls1_2', '-cipher', "$weak:\@SECLEVEL=0");
        like $said, qr/Cipher is \(NONE\)/, "openssl, $name: no $weak";
    }
    $said = s_client("QUIT\r\n", @to, '-tls1_2', '-sess_out', "$scratch/session");
    like $said, qr/TLS session ticket:/, "openssl, $name: a ticket is given";
    $said = s_client("QUIT\r\n", @to, '-tls1_2', '-sess_in', "$scratch/session");
    like $said, qr/^Reused, TLSv1\.2/m, "openssl, $name: and taken";
    like $said, qr/^221 /m, "openssl, $name: and we go on";
}
is shown(s_client("QUIT\r\n", starttls('-servername', @$_ ? $_->[0] : ()))), $_->[1], "SNI $_->[0]: $_->[1]"
    for [ 'mail.example.net', 'mail.example.net' ], [ 'one.example.org', 'exact' ], [ 'two.example.org', 'ignored.example' ],
    [ 'a.two.example.org', 'mail.example.net' ], [ 'stranger.test', 'mail.example.net' ], [ 'ONE.Example.ORG', 'exact' ];
is shown(s_client("QUIT\r\n", starttls('-noservername'))), 'mail.example.net', 'no SNI: the first';

# Another daemon with the same certificate does not take the tickets of this one.
my $other = Petrel->new(routes => '* hold', tls_certificate => "$scratch/good.pem", tls_key => "$scratch/good.key")->start;
my $said = s_client("QUIT\r\n", '-connect', "127.0.0.1:$other->{port}", '-starttls', 'smtp', '-tls1_2', '-sess_in', "$scratch/session");
like $said, qr/^New, TLSv1\.2/m, 'the ticket of another daemon is not taken, and does no harm';
is $other->stop, 0, 'that one ends';

# --- Clients

my @clients;
SKIP: {
    skip 'no swaks with TLS', 1 unless Petrel::have('swaks') && (Petrel::command('', 'perl', '-MNet::SSLeay', '-e', '1'))[0] == 0;
    for my $case ([ '--tls', "127.0.0.1:$port{starttls}" ], [ '--tls-on-connect', "127.0.0.1:$port{implicit}" ]) {
        my ($how, $server) = @$case;
        my @arguments = ('--server', $server, $how, '--helo', 'client.test', '--from', 'me@here.test', '--to', 'you@there.test', '--data', "\@$scratch/plain");
        my ($code, $text) = Petrel::command('', Petrel::have('swaks'), @arguments, '--tls-verify', '--tls-ca-path', $ca, '--tls-sni', $host);
        is $code, 0, "swaks $how: is content" or diag $text;
        like $text, qr/^=== TLS started with cipher TLSv1\.[23]:/m, "swaks $how: within TLS";
        next_is("swaks $how", "$plain\r\n");
    }
    my ($code, $text) = Petrel::command('', Petrel::have('swaks'), '--server', "127.0.0.1:$port{without}", '--tls', '--to', 'you@there.test', '--from', 'me@here.test');
    isnt $code, 0, 'swaks: no STARTTLS where it is not offered';
}

my $python = <<'END';
import smtplib, ssl, sys
how, port, ca, file = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
class Named:  # the certificate's name, not the address
    def _get_socket(self, host, port, timeout):
        return super()._get_socket("127.0.0.1", port, timeout)
class Plain(Named, smtplib.SMTP): pass
class Whole(smtplib.SMTP_SSL):
    def _get_socket(self, host, port, timeout):
        self._host = "mail.example.net"
        return super()._get_socket("127.0.0.1", port, timeout)
client = (Whole if how == "implicit" else Plain)("mail.example.net", int(port), "client.test", timeout=60, **({"context": context} if how == "implicit" else {}))
if how == "starttls":
    client.starttls(context=context)
with open(file, "rb") as f:
    client.sendmail("me@here.test", ["you@there.test"], f.read())
client.quit()
END
SKIP: {
    skip 'no python3', 1 unless Petrel::have('python3');
    for my $how (qw(starttls implicit)) {
        for my $file (qw(plain large)) {
            my ($code, $text) = Petrel::command('', 'python3', '-c', $python, $how, $port{$how}, $ca, "$scratch/$file");
            is $code, 0, "smtplib $how, $file: is content" or diag $text;
            next_is("smtplib $how, $file", $file eq 'plain' ? $plain : $large);
        }
        my ($code, $text) = Petrel::command('', 'python3', '-c', $python, $how, $port{$how}, "$keys/other-ca.pem", "$scratch/plain");
        like $text, qr/CERTIFICATE_VERIFY_FAILED/, "smtplib $how: does not believe another CA";
    }
}

SKIP: {
    skip 'no curl with smtps', 1 unless Petrel::have('curl') && (Petrel::command('', 'curl', '--version'))[1] =~ /^Protocols:.*\bsmtps\b/m;
    for my $case ([ "smtp://$host:$port{starttls}", '--ssl-reqd' ], [ "smtps://$host:$port{implicit}" ]) {
        my ($url, @how) = @$case;
        for my $file (qw(plain large)) {
            my ($code, $text) = Petrel::command('', Petrel::have('curl'), '-sSv', '--max-time', 60, '--cacert', $ca, '--resolve', ($url =~ s{.*//}{}r) . ':127.0.0.1',
                "$url/client.test", @how, '--mail-from', 'me@here.test', '--mail-rcpt', 'you@there.test', '-T', "$scratch/$file");
            is $code, 0, "curl $url, $file: is content" or diag $text;
            next_is("curl $url, $file", $file eq 'plain' ? $plain : $large);
        }
    }
}

SKIP: {
    skip 'no msmtp', 1 unless Petrel::have('msmtp');
    for my $how (qw(starttls implicit)) {
        my ($code, $text) = Petrel::command($plain, Petrel::have('msmtp'), '--host=127.0.0.1', '--port=' . $port{$how}, '--timeout=60', '--domain=client.test',
            '--from=me@here.test', '--tls=on', '--tls-starttls=' . ($how eq 'starttls' ? 'on' : 'off'), "--tls-trust-file=$ca", "--tls-host-override=$host", 'you@there.test');
        is $code, 0, "msmtp $how: is content" or diag $text;
        next_is("msmtp $how", $plain);
    }
}

my $node = <<'END';
const mailer = require(process.argv[1]), fs = require('fs');
const [how, port, ca, file] = process.argv.slice(2);
const transport = mailer.createTransport({ host: '127.0.0.1', port: +port, name: 'client.test', secure: how == 'implicit', requireTLS: how == 'starttls',
    tls: { ca: fs.readFileSync(ca), servername: 'mail.example.net' } });
transport.sendMail({ envelope: { from: 'me@here.test', to: ['you@there.test'] }, raw: fs.readFileSync(file) })
    .then(info => console.log(info.response), error => { console.log(error.message); process.exit(1); });
END
SKIP: {
    my $package = Peer::package_root('nodemailer') . '/usr/share/nodejs/nodemailer';
    skip 'no nodemailer', 1 unless Petrel::have('node') && -d $package;
    for my $how (qw(starttls implicit)) {
        for my $file (qw(plain large)) {
            my ($code, $text) = Petrel::command('', 'node', '-e', $node, $package, $how, $port{$how}, $ca, "$scratch/$file");
            is $code, 0, "nodemailer $how, $file: is content" or diag $text;
            like $text, qr/^250 2\.0\.0 Ok: queued as/, "nodemailer $how, $file: hears the id";
            next_is("nodemailer $how, $file", $file eq 'plain' ? $plain : $large);
        }
        my ($code, $text) = Petrel::command('', 'node', '-e', $node, $package, $how, $port{$how}, "$keys/other-ca.pem", "$scratch/plain");
        isnt $code, 0, "nodemailer $how: does not believe another CA";
    }
}

# --- A new certificate

sub reload {
    my ($pattern, $name) = @_;
    my $old = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { substr($petrel->log, $old) =~ $pattern }), $name or diag substr $petrel->log, $old;
    return;
}
sub serial { my $said = s_client("QUIT\r\n", starttls('-servername', $host)); return $said =~ /(-----BEGIN CERTIFICATE-----.*?-----END)/s ? $1 : '' }

my $first = serial();
install('rsa', 'good');
is serial(), $first, 'a file changes nothing';
reload(qr/reloaded|settings/i, 'SIGHUP reloads');
my $second = serial();
isnt $second, $first, 'and shows the new certificate';
is shown(s_client("QUIT\r\n", starttls('-servername', $host))), 'rsa.example.net', 'RSA, too';
$said = s_client("QUIT\r\n", starttls('-tls1_2', '-sess_in', "$scratch/session"));
like $said, qr/^New, TLSv1\.2/m, 'a ticket from before is not taken, and does no harm';
for my $case ([ 'junk', sub { Petrel::spit("$scratch/good.pem", "junk\n") } ], [ 'the key of another', sub { install('good', 'good'); copy("$keys/self.key", "$scratch/good.key") } ],
    [ 'no file', sub { unlink "$scratch/good.pem" } ], [ 'half a certificate', sub { Petrel::spit("$scratch/good.pem", substr Petrel::slurp("$keys/good.pem"), 0, 300) } ],
    [ 'a locked key', sub { install('good', 'good'); copy("$keys/locked.key", "$scratch/good.key") } ])
{
    my ($what, $break) = @$case;
    $break->();
    reload(qr/tls_certificate: [^\n]*good\.(?:pem|key)/, "$what: refused with a line that names the file");
    is serial(), $second, "$what: the old one stays";
}
install('good', 'good');
reload(qr/reloaded|settings/i, 'mended');
is serial(), $first, 'and back';

# --- Bytes where none belong

sub hand {
    my ($port, @scripts) = @_;
    my ($code, $text) = Petrel::command('', 'python3', "$FindBin::Bin/hand.py", $port, $ca, @scripts);
    my $heard = $code == 0 ? decode_json($text) : [];
    diag $text unless $code == 0;
    return @$heard;
}
SKIP: {
    skip 'no python3', 1 unless Petrel::have('python3');
    my $start = 'hear|clear:EHLO x\r\n|hear|clear:STARTTLS';
    my %behind = (NOOP => 'NOOP\r\n', EHLO => 'EHLO evil.test\r\n', MAIL => 'MAIL FROM:<evil@x.test>\r\n', AUTH => 'AUTH PLAIN AGEAYg==\r\n', 'half a line' => 'NOO',
        '64 KB' => 'NOOP\r\n' x 10_923, 'LF' => 'NOOP\n', 'an envelope' => 'EHLO a\r\nMAIL FROM:<evil@x.test>\r\nRCPT TO:<evil@y.test>\r\nDATA\r\n');
    my @names = sort keys %behind;
    my @heard = hand($port{starttls}, map { "$start\\r\\n$behind{$_}|hear|tls|say:RCPT TO:<b\@y.test>\\r\\n|hear|say:EHLO in\\r\\nQUIT\\r\\n|rest" } @names);
    for my $name (@names) {
        my (undef, undef, $go, $tls, $answer, $rest) = @{ shift @heard };
        if ($go =~ /^5/ || $tls =~ /^failed/) { pass "behind STARTTLS, $name: refused"; next }
        like $go, qr/\A220 [^\n]*\n\z/, "behind STARTTLS, $name: one answer";
        like $answer, qr/\A503 /, "behind STARTTLS, $name: nothing of it is answered or done within TLS";
        like $rest, qr/\A250-(?:[^\n]*\n250-)*[^\n]*\n250 [^\n]*\n221 [^\n]*\nEOF\z/, "behind STARTTLS, $name: and all goes on in order";
    }
    my @before = ('NOOP\r\n', 'EHLO x\r\n', '\x00', '\r\n', 'MAIL FROM:<evil@x.test>\r\n');
    @heard = hand($port{starttls}, map { "$start\\r\\n|hear|hello:$_|rest" } @before);
    for my $bytes (@before) {
        my (undef, undef, undef, $tls, $rest) = @{ shift @heard };
        like $tls, qr/^failed/, "between 220 and the ClientHello, $bytes: no TLS";
        like $rest, qr/^EOF$/, "between 220 and the ClientHello, $bytes: nor anything else";
    }
    my @forgotten = hand($port{starttls},
        'hear|clear:EHLO x\r\nMAIL FROM:<a@x.test>\r\n|hear|hear|clear:STARTTLS\r\n|hear|clear:RSET\r\nSTARTTLS\r\n|hear|hear|tls|say:RCPT TO:<b@y.test>\r\n|hear|say:EHLO y\r\nMAIL FROM:<a@x.test>\r\n|hear|hear',
        "$start\\r\\n|hear|tls|say:MAIL FROM:<a\@x.test>\\r\\n|hear|say:EHLO y\\r\\nSTARTTLS\\r\\n|hear|hear|say:QUIT\\r\\n|rest",
        "$start now\\r\\n|hear|clear:NOOP\\r\\n|hear", 'hear|clear:STARTTLS\r\n|hear|clear:QUIT\r\n|rest', "hear|clear:EHLO x\\r\\n|hear|clear:STARTTLS\\r\\nSTARTTLS\\r\\n|hear|tls|say:NOOP a\\r\\n|hear");
    my @heard_is = ([ qr/^220/, qr/^250/, qr/^250/, qr/^503/, qr/^250/, qr/^220/, qr/^secured/, qr/^503/, qr/^250/, qr/^250/ ],
        [ qr/^220/, qr/^250/, qr/^220/, qr/^secured/, qr/^503/, qr/^250(?!.*STARTTLS)/s, qr/^503/, qr/^221/ ],
        [ qr/^220/, qr/^250/, qr/^501/, qr/^250/ ], [ qr/^220/, qr/^(?:503|220)/, qr/^(?:221|EOF)/ ], [ qr/^220/, qr/^250/, qr/^220/, qr/^secured/, qr/^250/ ]);
    for my $case ('within a transaction', 'state is forgotten, and not twice', 'with an argument', 'before EHLO', 'twice in one segment') {
        my ($got, $wanted) = (shift @forgotten, shift @heard_is);
        is scalar(@$got), scalar(@$wanted), "STARTTLS $case: so many answers";
        like $got->[$_], $wanted->[$_], "STARTTLS $case: answer $_" for 0 .. $#$wanted;
    }
    my $tls = "$start\\r\\n|hear|tls|say:EHLO y\\r\\n|hear";
    my %ended = ('idle' => "$tls|notify|clear:NOOP\\r\\n|rest", 'within a chunk' => "$tls|say:MAIL FROM:<a\@x.test>\\r\\nRCPT TO:<b\@y.test>\\r\\nBDAT 100\\r\\nabc|hear|hear|notify|clear:x|rest",
        'within DATA' => "$tls|say:MAIL FROM:<a\@x.test>\\r\\nRCPT TO:<evil\@y.test>\\r\\nDATA\\r\\n|hear|hear|hear|say:abc|notify|clear:\\r\\n.\\r\\n|rest");
    my @kinds = sort keys %ended;
    my @dead = hand($port{starttls}, @ended{@kinds});
    for my $kind (@kinds) {
        my $rest = (shift @dead)->[-1];
        # An alert, encrypted (in TLS 1.3 a record like any other), and the end.
        like $rest, qr/\A(?:[\x15\x17]\x03\x03.{2,60})?EOF\z/s, "close_notify $kind, then clear text: the connection is dead";
        unlike $rest, qr/\d\d\d /, "close_notify $kind, then clear text: no answer in clear text";
    }
    my %junk = (HTTP => 'GET / HTTP/1.1\r\n\r\n', SMTP => 'EHLO x\r\nMAIL FROM:<evil@x.test>\r\n', bytes => '\x80\x2e\x01\x03\x01', 'a record of nothing' => '\x16\x03\x01\x00\x00',
        'a record too large' => '\x16\x03\x01\xff\xff\x01\x00', 'an alert' => '\x15\x03\x01\x00\x02\x02\x28', 'application data' => '\x17\x03\x03\x00\x05NOOP\n');
    my @what = sort keys %junk;
    my @met = hand($port{starttls}, map { "$start\\r\\n|hear|clear:$junk{$_}|rest" } @what);
    push @met, hand($port{implicit}, map { "clear:$junk{$_}|rest" } @what);
    for my $name ((map { "STARTTLS, $_" } @what), map { "implicit, $_" } @what) {
        my $rest = (shift @met)->[-1];
        like $rest, qr/\A(?:\x15\x03[\x01-\x03]\x00\x02..)?(?:EOF)?\z/s, "junk for a ClientHello, $name: no clear text back";
    }
    my @few = hand($port{starttls}, "$start\\r\\n|hear|clear:\\x16|rest", "$start\\r\\n|hear|half|rest", "$start\\r\\n|hear|alpn:http/1.1,h2|rest", "$start\\r\\n|hear|alpn:smtp",
        "$start\\r\\n|hear|tls|say:GET / HTTP/1.0\\r\\n|rest", "$tls|say:NOOP\\nNOOP\\r\\n|rest");
    is $few[0][-1], '', 'one byte for a ClientHello: waited for';
    is $few[1][-1], '', 'half a ClientHello: waited for';
    like $few[2][3], qr/^failed .*no application protocol/, 'ALPN: not HTTP';
    like $few[3][3], qr/^secured/, 'ALPN: but SMTP';
    like $few[4][-1], qr/\A5\d\d [^\n]*\nEOF\z/, 'HTTP within TLS: cut off';
    like $few[5][-1], qr/\A5\d\d [^\n]*\nEOF\z/, 'a bare LF within TLS: cut off';
    unlike $petrel->log, qr/\bevil\@/, 'nobody evil came in';
}
is scalar(my @all = Petrel::arrived($sink)), $arrived, 'no other message came';
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
