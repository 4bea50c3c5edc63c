#!/usr/bin/perl
# Clients of a few addresses that try to keep the daemon from others, and a good client of another address that gets through
# while they stand: in their order, not by the clock. Their cost is measured by t/bench/flood.pl.
use lib 't/e2e';
use E2E;
use MIME::Base64;

my %daemon = (routes => '* hold', relay_from => '192.0.2.0/24', local_domains => 'here.test', client_session_limit => 100);
sub petrel { my %settings = @_; return Petrel->new(%daemon, %settings) }
sub from { my ($petrel, $ip) = @_; return Client->greeted($petrel->{port}, LocalAddr => $ip) }
sub plain { my ($user, $password) = @_; return 'AUTH PLAIN ' . encode_base64("\0$user\0$password", '') }

# --- AUTH

{
    my $petrel = petrel(auth_cleartext => 'loopback', smtpd_error_sleep_time => 0);
    my ($code, $line) = Petrel::command("right\n", $Petrel::binary, 'passwd', 'alice');
    is $code, 0, 'petrel passwd';
    chmod 0600, Petrel::spit("$petrel->{dir}/users", $line);
    $petrel->configure(auth_users => "$petrel->{dir}/users")->start;
    like from($petrel, '127.0.0.9')->say(plain(alice => 'right')), qr/^235/, 'AUTH: a user logs in';

    my @bad = map { from($petrel, '127.0.0.2') } 1 .. 95;
    $_->put(('AUTH PLAIN ' . encode_base64('garbage', '') . "\r\n") x 5) for @bad;
    like $bad[-1]->reply, qr/^(?:501|421|454)/, 'AUTH: 95 connections of one address say what is no login, and are answered';
    like from($petrel, '127.0.0.3')->say(plain(alice => 'right')), qr/^235/, 'AUTH: while they stand a new client logs in';
    ok Petrel::wait_for(sub { 9 == (() = $petrel->log =~ /refused=501 5\.5\.2/g) }), 'AUTH: what is no login counts as a failure...';
    like $petrel->log, qr/auth=locked, client=\[127\.0\.0\.2\], failures=10/, 'AUTH: ...which locks out';

    my @guessing = map { from($petrel, "127.0.1.$_") } 1 .. 100;
    $_->put(plain(alice => 'wrong') . "\r\n") for @guessing;
    like from($petrel, '127.0.0.9')->say(plain(alice => 'right')), qr/^235/, 'AUTH: 100 addresses guess; the user that was there before logs in';
    is $petrel->stop, 0, 'AUTH: the daemon ends well';
}

# --- TLS

SKIP: {
    Petrel::have('openssl') or skip 'no openssl', 1;
    my $keys = tempdir('floods-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    system('sh', "$Petrel::root/t/support/tls_certificates.sh", $keys) == 0 or die 'no certificates';
    my $implicit = Petrel::free_port();
    my $petrel = petrel(tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key", server_tls_session_limit => 20);
    $petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$implicit?tls")->start;
    my $by_tls = sub {
        my ($port, @how) = @_;
        return (Petrel::command("EHLO good.test\r\nQUIT\r\n", 'openssl', 's_client', '-quiet', '-ign_eof', '-CAfile', "$keys/ca.pem",
            '-connect', "127.0.0.1:$port", @how))[1];
    };

    my @silent = map { my $client = from($petrel, "127.0.0.$_"); $client->put("STARTTLS\r\n"); $client } map { ($_) x 30 } 2, 3;
    like $silent[-1]->reply, qr/^220/, 'TLS: 60 connections of two addresses say STARTTLS and nothing more';
    push @silent, map { Client->connect($implicit, LocalAddr => "127.0.0.$_") } map { ($_) x 30 } 2, 3;
    like from($petrel, '127.0.0.9')->say('EHLO good.test'), qr/^250-STARTTLS/m, 'TLS: others are offered it';
    like $by_tls->($petrel->{port}, '-starttls', 'smtp'), qr/^250 /m, 'TLS: and have it, by STARTTLS';
    like $by_tls->($implicit), qr/^250 /m, 'TLS: and from the first byte';

    # Of six addresses: more than there are places.
    my @half = map { my $client = Client->connect($implicit, LocalAddr => "127.0.0.$_"); $client->put("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"); $client } map { ($_) x 10 } 2 .. 7;
    ok Petrel::wait_for(sub { $petrel->log =~ /\[127\.0\.0\.7\]: TLS: handshake took too long while others wait/ }), 'TLS: 60 halves of a ClientHello; the oldest gives way';
    like $by_tls->($petrel->{port}, '-starttls', 'smtp'), qr/^250 /m, 'TLS: others have it, by STARTTLS';
    like $by_tls->($implicit), qr/^250 /m, 'TLS: and from the first byte';
    is $petrel->stop, 0, 'TLS: the daemon ends well';
}

# --- Silent clients

{
    my $petrel = petrel(server_session_limit => 40, client_session_limit => 20)->start;
    my @silent = map { Client->connect($petrel->{port}, LocalAddr => "127.0.0.$_") } map { ($_) x 20 } 2, 3;
    ok Petrel::wait_for(sub { $petrel->status =~ /"stress": true/ }), 'Silence: two addresses have all places; status tells';
    like $petrel->log, qr/33 of 40 sessions \(server_session_limit\): stress begins/, 'Silence: the log tells, too';
    like +($petrel->run('status'))[1], qr/^sessions   \d+ in \(stress: near the limit\), 0 out$/m, 'Silence: and so does the table';
    my $good;
    ok Petrel::wait_for(sub { $good = from($petrel, '127.0.0.9') }), 'Silence: a new client finds room';
    like $good->send(from => 'a@good.test', to => 'b@here.test', data => "Subject: good\r\n\r\n"), qr/^250/, 'Silence: and its mail is taken';
    ok Petrel::wait_for(sub { $petrel->log =~ /refused=421 4\.(?:3|4)\.2, client=\[127\.0\.0\.2\]/ }), 'Silence: the idle hear 421';
    ok Petrel::wait_for(sub { $petrel->log =~ /stress ends/ }), 'Silence: and go, until there is room';
    is scalar(() = $petrel->log =~ /stress begins/g), scalar(() = $petrel->log =~ /stress ends/g), 'Silence: each is told once';
    is $petrel->stop, 0, 'Silence: the daemon ends well';
}

# --- All others: they stand, or come again and again, and mail is taken

{
    my $proxy = Petrel::free_port();
    my $petrel = petrel(proxy_from => '127.0.0.0/8');
    $petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$proxy?proxy")->start;
    my $start = "EHLO flood.test\r\nMAIL FROM:<a\@flood.test>\r\n";
    my $part = "Content-Type: message/partial; id=\"x\"; number=1; total=2\r\n\r\nSubject: x\r\n\r\nx\r\n.\r\n";
    my %bytes = (
        refusals => "EHLO flood.test\r\n" . "MAIL FROM:<a\@b.test> SIZE=99999999999\r\n" x 200,
        recipients => $start . join('', map { "RCPT TO:<u$_\@here.test>\r\n" } 1 .. 1200),
        'the same recipient' => $start . "RCPT TO:<u\@here.test>\r\n" x 300,
        'empty chunks' => "${start}RCPT TO:<u\@here.test>\r\n" . "BDAT 0\r\n" x 300,
        fragments => "EHLO flood.test\r\n" . "MAIL FROM:<a\@flood.test>\r\nRCPT TO:<u\@here.test>\r\nDATA\r\n$part" x 5,
        'no reply is read' => "EHLO flood.test\r\n" x 2000,
        'PROXY headers' => 'PROXY TCP4 192.0.2.1 192',
        'connects and goes' => undef,
    );
    for my $kind (sort keys %bytes) {
        my @bad = map { Client->connect($kind =~ /^PROXY/ ? $proxy : $petrel->{port}, LocalAddr => "127.0.0.$_") } map { ($_) x 20 } 2, 3;
        for my $bad (@bad) { defined $bytes{$kind} ? syswrite($bad->{socket}, $bytes{$kind}) : $bad->close }
        my $good = from($petrel, '127.0.0.9');
        like $good && $good->send(from => 'a@good.test', to => 'b@here.test', data => "Subject: good\r\n\r\n"), qr/^250/, "$kind: mail of others is taken";
        $_->close for @bad;
    }
    cmp_ok -s $petrel->{log}, '<', 1_000_000, 'and the log has not grown much';
    is $petrel->stop, 0, 'the daemon ends well';
}

done_testing;
