#!/usr/bin/perl
# Petrel sends to other mail transfer agents by TLS, and logs in: Postfix with Dovecot's SASL, Exim, OpenSMTPD; with good
# certificates, and with those that prove nothing.
use lib 't/e2e';
use E2E;
use Dovecot;
use Nsd;
use Peer;

my ($why) = grep { $_ } Peer::missing('postfix'), Peer::missing('opensmtpd'), Peer::missing('exim'), Dovecot::missing(), Nsd->available ? '' : 'no nsd', Petrel::have('openssl') ? '' : 'no openssl';
plan skip_all => $why if $why;
my $scratch = tempdir('out-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $keys = "$scratch/keys";
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
mkdir "$scratch/$_" or die $! for qw(nsd dovecot);
Petrel::spit("$scratch/example.net.zone", <<'END');
$ORIGIN example.net.
$TTL 60
@ SOA ns hostmaster 1 60 60 60 60
@ NS ns
ns A 127.0.0.1
mail A 127.0.0.1
other A 127.0.0.1
END
my $nsd = Nsd->start("$scratch/nsd", 'example.net' => "$scratch/example.net.zone");

my $sink = Sink->start;
my $secret = 'a secret, with blanks';
my $dovecot = Dovecot->start_auth("$scratch/dovecot", joe => $secret);
my %wrong = (self => qr/self-signed|not trusted|unknown|no chain/i, stranger => qr/not trusted|unknown|no chain/i, expired => qr/expired/i, exact => qr/name/i);
my $postfix = Peer::postfix($sink->{port}, smtpd_tls_security_level => 'may', smtpd_tls_loglevel => 1, smtpd_tls_auth_only => 'yes', smtpd_tls_received_header => 'yes',
    smtpd_sasl_type => 'dovecot', smtpd_sasl_path => "inet:127.0.0.1:$dovecot->{port}", smtpd_sasl_security_options => 'noanonymous',
    smtpd_tls_chain_files => '/etc/postfix/good-both.pem', files => { 'good-both.pem' => "$keys/good-both.pem", map { ("$_.pem" => "$keys/$_.pem", "$_.key" => "$keys/$_.key") } keys %wrong },
    listeners => {
        submission => { smtpd_sasl_auth_enable => 'yes', smtpd_tls_security_level => 'encrypt', smtpd_relay_restrictions => 'permit_sasl_authenticated, reject', smtpd_recipient_restrictions => '', },
        implicit => { smtpd_sasl_auth_enable => 'yes', smtpd_tls_wrappermode => 'yes', smtpd_relay_restrictions => 'permit_sasl_authenticated, reject' },
        clear => { smtpd_tls_security_level => 'none' },
        # A ticket of the good one would be taken here, too: Postfix's listeners share its key.
        (map { $_ => { smtpd_tls_chain_files => "/etc/postfix/$_.key, /etc/postfix/$_.pem", tls_ssl_options => 'NO_TICKET' } } keys %wrong),
    });
my $port = $postfix->{ports};
my $smtpd = Peer::opensmtpd("smtp://127.0.0.1:$sink->{port}", ca => "$keys/ca.pem");
my $exim = Peer::exim($sink->{port}, password => $secret, files => { 'pair.pem' => "$keys/good-both.pem" });

# domain => its route
my %route = (
    'plain.test' => "submission+starttls://joe\@mail.example.net:$port->{submission}?auth=plain", 'login.test' => "submission+starttls://joe\@mail.example.net:$port->{submission}?auth=login",
    'scram.test' => "submission+starttls://joe\@mail.example.net:$port->{submission}?auth=scram-sha-256", 'implicit.test' => "smtps://joe\@mail.example.net:$port->{implicit}",
    'verify.test' => "smtp://mail.example.net:$postfix->{port}?tls=verify", 'may.test' => "smtp://mail.example.net:$postfix->{port}", 'address.test' => "smtp://127.0.0.1:$postfix->{port}?tls=verify",
    'none.test' => "smtp://mail.example.net:$postfix->{port}?tls=none", 'nobody.test' => "submission+starttls://jim\@mail.example.net:$port->{submission}",
    'may-clear.test' => "smtp://mail.example.net:$port->{clear}?tls=may", 'verify-clear.test' => "smtp://mail.example.net:$port->{clear}?tls=verify", 'encrypt-clear.test' => "smtp://mail.example.net:$port->{clear}?tls=encrypt",
    'other-name.test' => "smtp://other.example.net:$postfix->{port}?tls=verify", 'opensmtpd.test' => "smtp://127.0.0.1:$smtpd->{port}",
    'exim.test' => "submission+starttls://joe\@mail.example.net:$exim->{port}",
    (map { ("verify-$_.test" => "smtp://mail.example.net:$port->{$_}?tls=verify", "encrypt-$_.test" => "smtp://mail.example.net:$port->{$_}?tls=encrypt", "may-$_.test" => "smtp://mail.example.net:$port->{$_}?tls=may") } keys %wrong),
);
my $passwords = Petrel::spit("$scratch/passwords", "mail.example.net joe $secret\nmail.example.net jim wrong\n");
chmod 0600, $passwords;
my $petrel = Petrel->new(routes => join("\n", map { "$_ $route{$_}" } sort keys %route), dns_servers => '127.0.0.1:' . $nsd->{port}, tls_ca => "$keys/ca.pem", auth_passwords => $passwords)->start;

my $eight = "From: me\@here.test\nTo: you\@there.test\nDate: Sat, 21 Nov 2026 03:00:00 +0000\nMessage-ID: <1\@here.test>\nSubject: %s\n\n.dot\n" . 'x' x 900 . "\n";
my %id;
for my $domain (sort keys %route) {
    my $said = $petrel->send_mail('me@here.test', "you\@$domain", sprintf $eight, $domain);
    ($id{$domain}) = $said =~ /queued as (\S+)/ or die "$domain: $said";
}

sub goes {
    my ($domain, $pattern) = @_;
    my $got = $sink->wait_for("you\@$domain");
    ok $got, "$domain: arrives" or return diag join '', grep { /$id{$domain}/ } map { "$_\n" } split /\n/, $petrel->log;
    like $got->{data}, qr/\r\n\r\n\.dot\r\nx{900}\r\n(?:\r\n)?\z/, "$domain: whole";
    like $got->{data}, $pattern, "$domain: as it should" if $pattern;
    return;
}
my ($by_tls, $logged_in) = (qr/\(using TLSv1\.[23] with cipher/, qr/with ESMTPSA /);
goes($_, $logged_in) for 'plain.test', 'login.test', 'scram.test', 'implicit.test';
goes($_, $by_tls) for 'verify.test', 'may.test', 'address.test', map { ("encrypt-$_.test", "may-$_.test") } sort keys %wrong;
goes($_, qr/by postfix\.test \(Postfix\) with ESMTP id/) for 'none.test', 'may-clear.test';
goes('opensmtpd.test', qr/by smtpd\.test \(OpenSMTPD\) with ESMTP/);
goes('exim.test', qr/with esmtpsa\s+\(TLS1\.[23]\)/);
ok $postfix->wait_log(qr/sasl_method=$_, sasl_username=joe/), "Postfix: joe has logged in by $_" for 'PLAIN', 'LOGIN', 'SCRAM-SHA-256';

# Mail without proof waits; nothing of it is sent.
sub waits {
    my ($domain, $code, $pattern) = @_;
    ok $petrel->wait_log(qr/$id{$domain}: to=<you\@\Q$domain\E>.* dsn=$code, status=deferred \([^\n]*/), "$domain: waits ($code)" or diag grep { /$id{$domain}/ } map { "$_\n" } split /\n/, $petrel->log;
    my ($text) = $petrel->log =~ /$id{$domain}: to=.* status=deferred (\([^\n]*)/;
    like $text, $pattern, "$domain: with a reason";
    ok $postfix->log !~ /\@\Q$domain\E/, "$domain: nothing of it was said" or diag grep { /\@\Q$domain\E/ } map { "$_\n" } split /\n/, $postfix->log;
    return;
}
waits("verify-$_.test", '4\.7\.5', $wrong{$_}) for sort keys %wrong;
waits('other-name.test', '4\.7\.5', qr/name/);
waits($_, '4\.7\.4', qr/STARTTLS|TLS/) for 'verify-clear.test', 'encrypt-clear.test';
waits('nobody.test', '4\.7\.\d+', qr/log in|password/i);
my $disconnects;
sub count_mail { # Postfix says so when a connection ends
    $disconnects = join '', $postfix->log =~ m{postfix/(?:self|stranger|expired|exact)/smtpd\[\d+\]: (disconnect .*\n)}g;
    return scalar(() = $disconnects =~ /mail=/g);
}
Petrel::wait_for(sub { count_mail() >= 2 * keys %wrong });
is count_mail(), 2 * keys %wrong, 'a MAIL only from those that do not verify' or diag $disconnects;
unlike $postfix->log . $petrel->log, qr/\Q$secret\E/, 'the password is in no log';
is scalar($petrel->queued), keys(%wrong) + 4, 'what waits is still there';
is $petrel->stop, 0, 'Petrel ends well';
$_->stop for $postfix, $smtpd, $exim, $dovecot;
done_testing;
