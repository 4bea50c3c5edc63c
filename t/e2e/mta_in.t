#!/usr/bin/perl
# Other mail transfer agents send to Petrel by STARTTLS and check who we are: Postfix, OpenSMTPD, Exim.
use lib 't/e2e';
use E2E;
use File::Copy qw(copy);
use Peer;

my %missing = map { $_ => Peer::missing($_) } qw(postfix opensmtpd exim);
plan skip_all => join ', ', values %missing unless grep { !$_ } values %missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $keys = tempdir('mta-XXXXXX', TMPDIR => 1, CLEANUP => 1);
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');

my $sink = Sink->start;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key")->start;
# A client that sends by this one must log in.
my ($made, $stored) = Petrel::command("a-secret\n", $Petrel::binary, 'passwd', 'joe');
is $made, 0, 'a password is made' or diag $stored;
my $users = Petrel::spit("$keys/users", $stored);
my $strict = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key", relay_from => '192.0.2.0/24', auth_users => $users)->start;
my @mechanisms = qw(plain login scram-sha-256);
my ($count, $arrived) = (0, 0);

# Gives one message to a peer; its address.
sub give {
    my ($name, $peer, $domain) = @_;
    my $to = ($name =~ tr{ }{-}r) . ++$count . '@' . ($domain // 'there.test');
    my $client = Client->greeted($peer->{port});
    like $client->send(from => 'me@here.test', to => $to, data => "From: me\@here.test\r\nSubject: $name\r\n\r\n.dot\r\nGr\xfc\xdfe\r\n" . "x" x 900 . "\r\n"), qr/^250/, "$name takes a message";
    $client->quit;
    return $to;
}

# It comes to the sink by TLS.
sub comes {
    my ($name, $peer, $domain) = @_;
    my $to = give($name, $peer, $domain);
    my $got = $sink->wait_for($to);
    ok $got, "$name: it arrives" or return diag $peer->log, $petrel->log;
    $arrived++;
    like $got->{data}, qr/\AReceived: [^\n]*(?:\r\n[ \t][^\n]*)*?\bwith (?:UTF8SMTP|ESMTP)SA?\b[^;]*TLSv1\.[23]/, "$name: by TLS";
    like $got->{data}, qr/\r\n\.dot\r\nGr\xfc\xdfe\r\nx{900}\r\n\z/, "$name: and is whole";
    return;
}

# It is kept back, with that in the peer's log, and not a word of it comes to us.
sub stays {
    my ($name, $peer, $pattern, $domain) = @_;
    my $to = give($name, $peer, $domain);
    ok $peer->wait_log($pattern), "$name: it is kept back" or diag $peer->log;
    unlike $petrel->log, qr/\Q$to\E/, "$name: nothing of it is said to us";
    return;
}

SKIP: {
    skip $missing{postfix}, 1 if $missing{postfix};
    my ($there, $users) = ("[mail.example.net]:$petrel->{port}", "[mail.example.net]:$strict->{port}");
    my $postfix = Peer::postfix($petrel->{port}, relayhost => $there, smtp_tls_CAfile => '/etc/postfix/ca.pem', smtp_tls_loglevel => 1, smtp_tls_security_level => 'verify',
        smtp_sasl_security_options => 'noanonymous', smtp_sasl_tls_security_options => 'noanonymous', smtp_sasl_password_maps => 'static:joe:a-secret',
        files => { 'ca.pem' => "$keys/ca.pem", 'other-ca.pem' => "$keys/other-ca.pem" }, clients => {
            'other-ca' => { smtp_tls_CAfile => '/etc/postfix/other-ca.pem' }, 'other-name' => { nexthop => "[localhost]:$petrel->{port}" },
            stranger => { nexthop => $users }, wrong => { nexthop => $users, smtp_sasl_auth_enable => 'yes', smtp_sasl_password_maps => 'static:joe:another' },
            map { $_ => { nexthop => $users, smtp_sasl_auth_enable => 'yes', smtp_sasl_mechanism_filter => $_ } } @mechanisms,
        });
    comes('postfix', $postfix) for 1 .. 2;
    ok $postfix->wait_log(qr/Verified TLS connection established to mail\.example\.net/), 'postfix: has verified us' or diag $postfix->log;
    stays('postfix of another CA', $postfix, qr/other-ca\.test>.*status=deferred \(Server certificate not (?:trusted|verified)\)/, 'other-ca.test');
    stays('postfix that looks for another name', $postfix, qr/other-name\.test>.*status=deferred \(Server certificate not verified\)/, 'other-name.test');
    for my $mechanism (@mechanisms) {
        comes("postfix with $mechanism", $postfix, "$mechanism.test");
        my $verb = uc $mechanism;
        ok $strict->wait_log(qr/\b(?:sasl_method|mechanism|auth)=$verb|user=joe/i), "postfix with $mechanism: we know who it was" or diag $strict->log;
    }
    stays('postfix without a user', $postfix, qr/stranger\.test>.*status=bounced \(host \S+ said: 554 5\.7\.1/, 'stranger.test');
    stays('postfix with a wrong password', $postfix, qr/wrong\.test>.*status=deferred \(SASL authentication failed; server \S+ said: 535 5\.7\.8/, 'wrong.test');
    $postfix->stop;
}

SKIP: {
    skip $missing{opensmtpd}, 1 if $missing{opensmtpd};
    my $smtpd = Peer::opensmtpd("smtp+tls://mail.example.net:$petrel->{port}", ca => "$keys/ca.pem");
    comes('opensmtpd', $smtpd);
    ok $smtpd->wait_log(qr/mta tls ciphers=TLSv1\.[23]:/), 'opensmtpd: by TLS' or diag $smtpd->log;
    ok $smtpd->wait_log(qr/mta (?:server-)?cert-check result="(?:success|valid|verified)"/), 'opensmtpd: has verified us' or diag $smtpd->log;
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
    ok $exim->wait_log(qr/=> \S+ .*X=TLS1\.[23].* CV=yes/), 'exim: has verified us' or diag $exim->log;
    $exim->stop;
    $exim = Peer::exim($petrel->{port}, host => 'mail.example.net', out => $out, files => { 'ca.pem' => "$keys/other-ca.pem" });
    stays('exim of another CA', $exim, qr/TLS session: .*certificate|failed to verify|certificate verification failed/i);
    $exim->stop;
}

is scalar(grep { $_->{from} ne '' } $sink->messages), $arrived, 'nothing else came, but bounces';
is $_->stop, 0, 'Petrel ends well' for $petrel, $strict;
done_testing;
