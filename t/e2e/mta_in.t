#!/usr/bin/perl
# Other mail transfer agents send to Petrel by STARTTLS and check who we are: Postfix, OpenSMTPD, Exim.
use strict;
use warnings;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Test::More;
use lib 't/e2e';
use Client;
use Peer;
use Petrel;

my %missing = map { $_ => Peer::missing($_) } qw(postfix opensmtpd exim);
plan skip_all => join ', ', values %missing unless grep { !$_ } values %missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $keys = tempdir('mta-XXXXXX', TMPDIR => 1, CLEANUP => 1);
is((Petrel::command('', 'sh', "$Petrel::root/t/tls_certificates.sh", $keys))[0], 0, 'certificates are made');

my $sink = Petrel::sink();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key")->start;
my ($count, $arrived) = (0, 0);

# Gives one message to a peer; its address.
sub give {
    my ($name, $peer) = @_;
    my $to = ($name =~ tr{ }{-}r) . ++$count . '@there.test';
    my $client = Client->greeted($peer->{port});
    like $client->send(from => 'me@here.test', to => $to, data => "From: me\@here.test\r\nSubject: $name\r\n\r\n.dot\r\nGr\xfc\xdfe\r\n" . "x" x 900 . "\r\n"), qr/^250/, "$name takes a message";
    $client->quit;
    return $to;
}

# It comes to the sink by TLS.
sub comes {
    my ($name, $peer) = @_;
    my $to = give($name, $peer);
    my $got = Petrel::wait_arrived($sink, ++$arrived);
    is $got->{to}[0], $to, "$name: it arrives" or diag $peer->log, $petrel->log;
    like $got->{content}, qr/\AReceived: [^\n]*(?:\r\n[ \t][^\n]*)*?\bwith (?:UTF8SMTP|ESMTP)S\b[^;]*TLSv1\.[23]/, "$name: by TLS";
    like $got->{content}, qr/\r\n\.dot\r\nGr\xfc\xdfe\r\nx{900}\r\n\z/, "$name: and is whole";
    return;
}

# It is kept back, with that in the peer's log, and not a word of it comes to us.
sub stays {
    my ($name, $peer, $pattern) = @_;
    my $to = give($name, $peer);
    ok $peer->wait_log($pattern), "$name: it is kept back" or diag $peer->log;
    unlike $petrel->log, qr/\Q$to\E/, "$name: nothing of it is said to us";
    return;
}

SKIP: {
    skip $missing{postfix}, 1 if $missing{postfix};
    my %settings = (relayhost => "[mail.example.net]:$petrel->{port}", smtp_tls_CAfile => '/etc/postfix/ca.pem', smtp_tls_loglevel => 1, smtp_tls_security_level => 'verify', minimal_backoff_time => '1s');
    my $postfix = Peer::postfix($petrel->{port}, %settings, files => { 'ca.pem' => "$keys/ca.pem" });
    comes('postfix', $postfix);
    like $postfix->log, qr/Verified TLS connection established to mail\.example\.net/, 'postfix: has verified us';
    comes('postfix', $postfix);
    $postfix->stop;
    $postfix = Peer::postfix($petrel->{port}, %settings, files => { 'ca.pem' => "$keys/other-ca.pem" });
    stays('postfix of another CA', $postfix, qr/status=deferred \(Server certificate not (?:trusted|verified)\)/);
    $postfix->stop;
    $postfix = Peer::postfix($petrel->{port}, %settings, relayhost => "[localhost]:$petrel->{port}", files => { 'ca.pem' => "$keys/ca.pem" });
    stays('postfix that looks for another name', $postfix, qr/status=deferred \(Server certificate not verified\)/);
    $postfix->stop;
}

SKIP: {
    skip $missing{opensmtpd}, 1 if $missing{opensmtpd};
    my $smtpd = Peer::opensmtpd("smtp+tls://mail.example.net:$petrel->{port}", ca => "$keys/ca.pem");
    comes('opensmtpd', $smtpd);
    like $smtpd->log, qr/mta tls ciphers=TLSv1\.[23]:/, 'opensmtpd: by TLS';
    like $smtpd->log, qr/mta (?:server-)?cert-check result="(?:success|valid|verified)"/, 'opensmtpd: has verified us';
    $smtpd->stop;
    $smtpd = Peer::opensmtpd("smtp+tls://mail.example.net:$petrel->{port}", ca => "$keys/other-ca.pem");
    stays('opensmtpd of another CA', $smtpd, qr/result="TempFail"|SSL certificate|certificate (?:check|verif)|mta error/i);
    $smtpd->stop;
}

SKIP: {
    skip $missing{exim}, 1 if $missing{exim};
    my $out = "hosts_require_tls = *\n  tls_verify_certificates = /etc/exim4/ca.pem\n  tls_verify_hosts = *\n  tls_verify_cert_hostnames = *";
    my $exim = Peer::exim($petrel->{port}, host => 'mail.example.net', out => $out, files => { 'ca.pem' => "$keys/ca.pem" });
    comes('exim', $exim);
    like $exim->log, qr/=> \S+ .*X=TLS1\.[23].* CV=yes/, 'exim: has verified us';
    $exim->stop;
    $exim = Peer::exim($petrel->{port}, host => 'mail.example.net', out => $out, files => { 'ca.pem' => "$keys/other-ca.pem" });
    stays('exim of another CA', $exim, qr/TLS session: .*certificate|failed to verify|certificate verification failed/i);
    $exim->stop;
}

is scalar(my @all = Petrel::arrived($sink)), $arrived, 'nothing else came';
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
