#!/usr/bin/perl
# What old devices speak, by openssl's old settings, at ?profile=legacy: TLS 1.2 with CBC and with RSA key exchange, and,
# with tls_legacy, TLS 1.0 and 1.1; never at other listeners. New clients get there what they get elsewhere.
use lib 't/e2e';
use E2E;
use Program;

plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $scratch = tempdir('legacy-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $keys = "$scratch/keys";
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my $sink = Sink->start;
my @settings = (routes => "* smtp://127.0.0.1:$sink->{port}", tls_certificate => "$keys/rsa.pem", tls_key => "$keys/rsa.key", smtpd_hard_error_limit => 1000);

# A daemon with three ports: as usual, legacy, and legacy with TLS from the first byte.
sub daemon {
    my $petrel = Petrel->new(@settings, @_);
    @$petrel{qw(legacy implicit)} = map { Petrel::free_port() } 1 .. 2;
    return $petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$petrel->{legacy}?profile=legacy, 127.0.0.1:$petrel->{implicit}?profile=legacy&tls");
}

my @suites = qw(AES128-SHA AES256-SHA AES128-SHA256 AES128-GCM-SHA256 ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA ECDHE-RSA-AES128-SHA256);
my $content = "From: me\@here.test\nSubject: scan\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n$Program::text";
my $dialogue = join '', map { "$_\r\n" } 'EHLO scanner', 'MAIL FROM:<scanner@here.test>', 'RCPT TO:<%s>', 'DATA', (map { s/^\./../r } split /\n/, $content), '.', 'QUIT';

# openssl speaks with a port: what it says.
sub s_client {
    my ($said, $port, @arguments) = @_;
    return (Petrel::command($said, 'openssl', 's_client', '-connect', "127.0.0.1:$port", '-nocommands', '-ign_eof', @arguments))[1];
}
sub suite { my $said = shift; return $said =~ /^New, (?:\(NONE\)|TLSv\S+|SSLv3), Cipher is (\S+)/m ? $1 : '' }
my @tls12 = ('-tls1_2', '-starttls', 'smtp', '-cipher');

my $plain = daemon()->start;

# A message by a suite. All is sent in one go, which old firmware does not, but the end is the same.
sub message_by {
    my $suite = shift;
    my $to = "$suite\@there.test";
    my $said = s_client(sprintf($dialogue, $to), $plain->{legacy}, @tls12, "$suite:\@SECLEVEL=0");
    my $got = $sink->wait_for($to) or return fail("$suite: a message arrives") || diag($said, $plain->log);
    return ok(Program::text_of($got->{data}) eq $Program::text, "$suite: a message arrives whole") || diag $got->{data};
}

like suite(s_client("QUIT\r\n", $plain->{$_->[0]}, @{ $_->[1] })), qr/^(?:ECDHE-RSA-|TLS_)\S*(?:GCM|POLY1305|CCM)/, "$_->[0]: a new client gets ECDHE and AEAD"
    for ['port', ['-starttls', 'smtp']], ['legacy', ['-starttls', 'smtp']], ['implicit', []];
is suite(s_client("QUIT\r\n", $plain->{port}, @tls12, "$_:\@SECLEVEL=0")), '(NONE)', "port: no $_" for @suites;
for my $old (qw(tls1 tls1_1)) {
    my $said = s_client("QUIT\r\n", $plain->{legacy}, "-$old", '-starttls', 'smtp', '-cipher', 'ALL:@SECLEVEL=0');
    is suite($said), '(NONE)', "legacy: no $old by itself";
    like $said, qr/alert (?:protocol version|handshake failure)/, "legacy: and it hears why";
}
is suite(s_client("QUIT\r\n", $plain->{legacy}, @tls12, "$_:\@SECLEVEL=0")), '(NONE)', "legacy: never $_" for 'eNULL', 'aNULL';
message_by('ECDHE-RSA-AES128-GCM-SHA256');
is $plain->stop, 0, 'Petrel ends well';

SKIP: {
    my $petrel = daemon(tls_legacy => 'yes');
    my ($code, $text) = $petrel->run('check');
    skip 'this library has neither TLS 1.0 nor 1.1', 1 if $text =~ /tls_legacy = yes: .* has no TLS 1\.0/;
    is $code, 0, 'tls_legacy is a setting' or diag $text;
    $_->start for $petrel, $plain;
    for my $suite (@suites) {
        is suite(s_client("QUIT\r\n", $plain->{legacy}, @tls12, "$suite:\@SECLEVEL=0")), $suite, "legacy: $suite";
        is suite(s_client("QUIT\r\n", $plain->{implicit}, '-tls1_2', '-cipher', "$suite:\@SECLEVEL=0")), $suite, "legacy, TLS: $suite";
        message_by($suite);
    }
    for my $old (qw(tls1 tls1_1)) {
        my $said = s_client("QUIT\r\n", $petrel->{legacy}, "-$old", '-starttls', 'smtp', '-cipher', 'ALL:@SECLEVEL=0');
        is suite(s_client("QUIT\r\n", $petrel->{port}, "-$old", '-starttls', 'smtp', '-cipher', 'ALL:@SECLEVEL=0')), '(NONE)', "port: no $old with tls_legacy either";
    SKIP: {
            skip "the library has no $old", 1 if $said =~ /alert protocol version/ && $petrel->log =~ /library/;
            like suite($said), qr/SHA/, "tls_legacy: $old" or diag $said, $petrel->log;
        }
    }
    is $_->stop, 0, 'Petrel ends well' for $petrel, $plain;
}
done_testing;
