#!/usr/bin/perl
# petrel cert: what openssl thinks of it, its files, and a daemon that uses it.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 't/e2e';
use Petrel;
use Sink;

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
like $text, qr/Version: 3 .*Signature Algorithm: ecdsa-with-SHA256.*(?:prime256v1|P-256)/s, 'P-256 and SHA-256';
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
$petrel->stop;
$sink->stop;
done_testing;
