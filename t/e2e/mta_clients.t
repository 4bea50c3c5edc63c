#!/usr/bin/perl
# Other mail transfer agents as clients, each in all the ways that it has: in clear, STARTTLS, TLS from the first byte, with
# a login, LMTP; and refused: a wrong password, an unknown user, a message that is too large.
use lib 't/e2e';
use E2E;
use Peer;
use Program;

my %missing = map { $_ => Peer::missing($_) } qw(postfix opensmtpd exim);
plan skip_all => join ', ', values %missing unless grep { !$_ } values %missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $keys = tempdir('mta-XXXXXX', TMPDIR => 1, CLEANUP => 1);
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my ($made, $stored) = Petrel::command("a-secret\n", $Petrel::binary, 'passwd', 'joe');
is $made, 0, 'a password is made' or diag $stored;
my $users = Petrel::spit("$keys/users", $stored);
chmod 0600, $users;
my $sink = Sink->start;
my ($tls, $auth, $lmtp) = map { Petrel::free_port() } 1 .. 3;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", local => "maildir:$keys/mail/%u", message_size_limit => '20K', auth_failure_limit => 0,
    tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key", auth_users => $users);
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$tls?tls, 127.0.0.1:$auth?auth=required, 127.0.0.1:$lmtp?lmtp")->start;
my $port = $petrel->{port};

# The way NAME.test goes by, and the protocol that Received names then.
my %protocol = (clear => 'ESMTP', starttls => 'ESMTPS', tls => 'ESMTPS', auth => 'ESMTPSA', lmtp => 'LMTP');
my %peer = (
    postfix => sub {
        my %login = (smtp_sasl_auth_enable => 'yes', smtp_sasl_password_maps => 'static:joe:a-secret', smtp_tls_security_level => 'encrypt', nexthop => "[127.0.0.1]:$auth");
        return Peer::postfix($port, smtp_sasl_security_options => 'noanonymous', smtp_sasl_tls_security_options => 'noanonymous', message_size_limit => 100_000, clients => {
            clear => { smtp_tls_security_level => 'none', nexthop => "[127.0.0.1]:$port" }, starttls => { smtp_tls_security_level => 'encrypt', nexthop => "[127.0.0.1]:$port" },
            tls => { smtp_tls_wrappermode => 'yes', smtp_tls_security_level => 'encrypt', nexthop => "[127.0.0.1]:$tls" }, auth => \%login,
            wrong => { %login, smtp_sasl_password_maps => 'static:joe:another' }, lmtp => { command => 'lmtp', nexthop => "inet:[127.0.0.1]:$lmtp" } });
    },
    opensmtpd => sub {
        my $at = 'mail.example.net';
        return Peer::opensmtpd("smtp+notls://$at:$port", ca => "$keys/ca.pem", secrets => { right => 'joe:a-secret', wrong => 'joe:another' }, clients => {
            clear => ["smtp+notls://$at:$port"], starttls => ["smtp+tls://$at:$port"], tls => ["smtps://$at:$tls"], auth => ["smtp+tls://right\@$at:$auth", 'auth <secrets>'],
            wrong => ["smtp+tls://wrong\@$at:$auth", 'auth <secrets>'], lmtp => ["lmtp://$at:$lmtp"] });
    },
    exim => sub {
        my ($clear, $by_tls) = ('hosts_avoid_tls = *', "hosts_require_tls = *\n  tls_verify_certificates = /etc/exim4/ca.pem\n  tls_verify_hosts = *");
        my $login = "port = $auth\n  hosts_require_auth = *\n  $by_tls";
        return Peer::exim($port, host => 'mail.example.net', out => $clear, files => { 'ca.pem' => "$keys/ca.pem" }, client_send => '^joe^${if eq{$domain}{wrong.test}{another}{a-secret}}',
            clients => { clear => "port = $port\n  $clear", starttls => "port = $port\n  $by_tls", tls => "port = $tls\n  protocol = smtps\n  $by_tls", auth => $login, wrong => $login,
                lmtp => "port = $lmtp\n  protocol = lmtp\n  $clear" });
    },
);
# What it writes to its log: the message stays, or goes back.
my %refused = (
    wrong => { domain => 'wrong.test', text => $Program::text, postfix => qr/status=deferred \(SASL authentication failed; server \S+ said: 535 5\.7\.8/,
        opensmtpd => qr/535 5\.7\.8|Authentication rejected/, exim => qr/authenticator failed .* 535 5\.7\.8/ },
    nobody => { domain => 'petrel.test', text => $Program::text, postfix => qr/status=bounced \(host \S+ said: 550 5\.1\.1/, opensmtpd => qr/result="PermFail" stat="550 5\.1\.1/, exim => qr/ \*\* \S+ .*550 5\.1\.1/ },
    large => { domain => 'clear.test', text => $Program::large, postfix => qr/status=bounced \(message size \d+ exceeds size limit 20480/, opensmtpd => qr/result="PermFail" stat="(?:552 5\.3\.4|message too large)/,
        exim => qr/ \*\* \S+ .*(?:552 5\.3\.4|message is too big)/ },
);

# Gives it one message: its address.
sub give {
    my ($name, $peer, $user, $domain, $text) = @_;
    my $client = Client->greeted($peer->{port});
    like $client->send(from => "$name-$user\@here.test", to => "$user\@$domain", data => "From: me\@here.test\r\nSubject: $name\r\nMIME-Version: 1.0\r\n"
            . "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" . ($text =~ s/\n/\r\n/gr), mail_parameters => 'BODY=8BITMIME'), qr/^250/, "$name takes $user\@$domain";
    $client->quit;
    return "$user\@$domain";
}

for my $name (sort keys %peer) {
SKIP: {
        skip $missing{$name}, 1 if $missing{$name};
        my $peer = $peer{$name}->();
        my %to = map { $_ => give($name, $peer, $name, "$_.test", $Program::text) } sort keys %protocol;
        give($name, $peer, $_, $refused{$_}{domain}, $refused{$_}{text}) for sort keys %refused;
        for my $way (sort keys %protocol) {
            my $got = $sink->wait_for($to{$way}) or fail("$name, $way: arrives") || diag($peer->log, $petrel->log), next;
            like $got->{data}, qr/\AReceived: [^;]*?\bwith (?:$protocol{$way}|UTF8\w+)\s/, "$name, $way: by $protocol{$way}";
            ok Program::text_of($got->{data}) eq $Program::text, "$name, $way: the text is whole" or diag $got->{data};
        }
        ok $peer->wait_log($refused{$_}{$name}), "$name, $_: is refused, and says why" or diag $peer->log for sort keys %refused;
        $peer->stop;
    }
}
is join(' ', grep { $_->{to}[0] =~ /^(?:wrong|nobody|large)\@/ } $sink->messages), '', 'nothing of what was refused came';
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
