#!/usr/bin/perl
# petrel cert: what openssl thinks of it, its files, and a daemon that uses it.
use lib 't/e2e';
use E2E;

plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $dir = tempdir('cert-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub cert { return Petrel::command('', $Petrel::binary, '-c', '/dev/null', 'cert', @_) }
sub openssl { return (Petrel::command('', 'openssl', @_))[1] }

my ($code, $said) = cert('--out', $dir, 'mail.example.org', '*.example.org', '127.0.0.1', '::1');
is $code, 0, 'made' or diag $said;
my ($pem, $key) = ("$dir/mail.example.org.pem", "$dir/mail.example.org.key");
is $said, "# Valid for two years. Clients that verify certificates refuse it: tell them to trust it, or\n# get one of an authority (certbot, for example). Add to the settings, and run `petrel reload`:\n"
    . "tls_certificate = $pem\ntls_key = $key\n", 'what it is good for, and the two settings';
is sprintf('%o', (stat $key)[2] & 07777), '600', 'the key is secret';
is sprintf('%o', (stat $pem)[2] & 07777), '644', 'the certificate is not';
is_deeply [sort map { s{.*/}{}r } glob "$dir/*"], ['mail.example.org.key', 'mail.example.org.pem'], 'nothing else';

my $text = openssl('x509', '-in', $pem, '-noout', '-text');
like $text, qr/Version: 3 .*Signature Algorithm: sha256WithRSAEncryption.*2048 bit.*Digital Signature, Key Encipherment/s, 'RSA and SHA-256, for both key exchanges';
like $text, qr/CA:FALSE/, 'no authority';
like $text, qr/DNS:mail\.example\.org, DNS:\*\.example\.org, IP Address:127\.0\.0\.1, IP Address:0:0:0:0:0:0:0:1/, 'its names';
like openssl('x509', '-in', $pem, '-noout', '-subject'), qr/CN ?= ?mail\.example\.org/, 'its subject';
like openssl('verify', '-CAfile', $pem, '-purpose', 'sslserver', '-verify_hostname', 'mail.example.org', $pem), qr/: OK$/m, 'openssl verifies it where it is trusted';
like openssl('verify', '-CAfile', $pem, '-verify_hostname', 'a.example.net', $pem), qr/mismatch/i, 'not for other names';
unlike openssl('verify', '-CAfile', '/dev/null', $pem), qr/: OK$/m, 'and elsewhere not';
is((Petrel::command('', 'openssl', 'x509', '-in', $pem, '-noout', '-checkend', 729 * 86400))[0], 0, 'valid for two years');
is((Petrel::command('', 'openssl', 'x509', '-in', $pem, '-noout', '-checkend', 731 * 86400))[0], 1, 'and no longer');
is openssl('x509', '-in', $pem, '-noout', '-pubkey'), openssl('pkey', '-in', $key, '-pubout'), 'the key is its own';

my $before = Petrel::slurp($key) . Petrel::slurp($pem);
($code, $said) = cert('--out', $dir, 'mail.example.org');
is $code, 73, 'an existing one';
like $said, qr/\Apetrel cert: \Q$key\E: File exists; remove it, or replace it with --force\n\z/, 'it says how';
is Petrel::slurp($key) . Petrel::slurp($pem), $before, 'is not overwritten';
unlink $key;
is +(cert('--out', $dir, 'mail.example.org'))[0], 73, 'nor when half of it is there';
ok !-e $key, 'and no half is made';
is +(cert('--out', $dir, '--force', 'mail.example.org'))[0], 0, '--force';
isnt Petrel::slurp($key) . Petrel::slurp($pem), $before, 'replaces both';

# --- A daemon with it

my $sink = Sink->start;
my $petrel = Petrel->new(tls_certificate => $pem, tls_key => $key, routes => "* smtp://127.0.0.1:$sink->{port}")->start;
SKIP: {
    skip 'swaks is not installed', 2 unless Petrel::have('swaks');
    ($code, $said) = Petrel::command('', 'swaks', '--server', "127.0.0.1:$petrel->{port}", '--tls', '--from', 'a@b.test', '--to', 'c@d.test');
    is $code, 0, 'swaks --tls' or diag $said;
    ok $petrel->wait_log(qr/status=sent/), 'and the message leaves';
}
like openssl('s_client', '-connect', "127.0.0.1:$petrel->{port}", '-starttls', 'smtp', '-CAfile', $pem, '-verify_hostname', 'mail.example.org', '-verify_return_error'), qr/Verification: OK/, 'a client that trusts it';
like openssl('s_client', '-connect', "127.0.0.1:$petrel->{port}", '-starttls', 'smtp'), qr/self.signed certificate/, 'and one that does not';
# --- Old devices

# The protocol and cipher of a handshake; "" if there is none.
sub shake {
    my ($port, @how) = @_;
    my $said = (Petrel::command('', 'timeout', 20, 'openssl', 's_client', '-connect', "127.0.0.1:$port", '-starttls', 'smtp', @how))[1];
    return $said =~ /^New, [^,]+, Cipher is (?!\(NONE\))(\S+)$/m ? $1 : '';
}
my $library = (Petrel::command('', $Petrel::binary, '--version'))[1];
my $legacy = Petrel::free_port();
$petrel->stop;
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$legacy?profile=legacy")->start;
my @old = qw(AES128-SHA AES256-SHA AES128-SHA256 AES128-GCM-SHA256 ECDHE-RSA-AES128-SHA ECDHE-RSA-AES128-SHA256);
for my $cipher (@old) {
    is shake($legacy, '-tls1_2', '-cipher', "$cipher:\@SECLEVEL=0"), $cipher, "profile=legacy: $cipher";
    is shake($petrel->{port}, '-tls1_2', '-cipher', "$cipher:\@SECLEVEL=0"), '', "and no other listener has $cipher";
}
like shake($legacy), qr/\A(?:TLS_CHACHA20|TLS_AES|ECDHE-RSA-CHACHA20|ECDHE-RSA-AES)/, 'profile=legacy: a new client gets what is new';
ok $petrel->wait_log(qr/: TLS: no cipher suite in common: an old client needs an RSA key \(petrel cert\) and listen = \.\.\.\?profile=legacy$/m), 'the log has the remedy';
is shake($legacy, '-tls1', '-cipher', 'ALL:@SECLEVEL=0'), '', 'TLS 1.0: not without tls_legacy';
ok $petrel->wait_log(qr/: TLS: (?:the client speaks TLS 1\.0 at most: .*tls_legacy = yes|no cipher suite)/), 'the log has version and remedy' or diag $petrel->log;
$petrel->stop;
$petrel->configure(tls_legacy => 'yes');
if ($library =~ /mbedTLS 2\./) {
    $petrel->start;
    isnt shake($legacy, $_, '-cipher', 'ALL:@SECLEVEL=0'), '', "tls_legacy: $_" for '-tls1', '-tls1_1';
    is shake($petrel->{port}, '-tls1', '-cipher', 'ALL:@SECLEVEL=0'), '', 'no other listener has it';
    $petrel->stop;
} else {
    my ($refused, $why) = $petrel->run('check');
    isnt $refused, 0, 'tls_legacy: refused where the library has no TLS 1.0';
    like $why, qr/tls_legacy = yes: mbedTLS \S+ has no TLS 1\.0/, 'and it says so';
}
$sink->stop;
is +(cert('--out', $dir, '--force', '--ecdsa', 'mail.example.org'))[0], 0, '--ecdsa';
like openssl('x509', '-in', $pem, '-noout', '-text'), qr/(?:prime256v1|P-256)/, 'makes a P-256 key';
done_testing;
