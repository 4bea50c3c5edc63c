#!/usr/bin/perl
# Findings: what is wrong, with its remedy, in status, over HTTP, in the log.
use lib 't/e2e';
use E2E;

my ($http, $token) = (Petrel::free_port(), 'findings-findings-findings');
my $petrel = Petrel->new(http => "127.0.0.1:$http", http_token => $token, hostname => 'mail.example.org', routes => '* hold');
$petrel->start;

sub findings { return { map { $_->{code} => $_ } @{ decode_json($petrel->status =~ s/\A[^{]*//r)->{findings} } } }
# It looks every ten seconds, and when it is asked.
sub begins { my $code = shift; return Petrel::wait_for(sub { findings()->{$code} }, 25) }
sub ends { my $code = shift; return Petrel::wait_for(sub { !findings()->{$code} }, 25) }

ok !findings()->{$_}, "no $_" for qw(not_accepting disk_low hold_by_route corrupt hostname_odd open_relay reload_refused settings_changed login_refused);
is !!findings()->{running_as_root}, $> == 0 && !!1, 'the user' if $> == 0;

# Mail that a route holds, a quarantined message.
$petrel->send_mail('a@example.org', 'b@example.net', "Subject: x\n\nhello");
Petrel::spit("$petrel->{dir}/spool/corrupt/01M81JCPWC-QTH5MV7E.note", 'x') if -d "$petrel->{dir}/spool/corrupt";
my $has_corrupt = -d "$petrel->{dir}/spool/corrupt";
my $held = begins('hold_by_route');
ok $held, 'hold_by_route begins';
like $held->{remedy}, qr/^Say where mail goes with `petrel init --force`/, 'with its remedy';
is $held->{severity}, 'warning', 'its severity';
cmp_ok abs($held->{since_ms} / 1000 - time), '<', 600, 'its time';
my $corrupt = begins('corrupt');
ok $corrupt, 'corrupt begins';
ok $petrel->wait_log(qr/ main: warning: trouble=corrupt \(1 message is quarantined in corrupt\/\) \(Look at them with .*\)$/m), 'the log' or diag $petrel->log;
my ($code, $text) = $petrel->run('status');
like $text, qr/\Aerror +corrupt: 1 message is quarantined in corrupt\/\n +Look at them/, 'at the top of status';
like $text, qr/^warning +hold_by_route: 1 message is held/m, 'then warnings';

my $scraper = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or die;
print $scraper "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
my $metrics = do { local $/; <$scraper> };
like $metrics, qr/^petrel_finding\{code="$_"\} 1$/m, "the metric of $_" for qw(corrupt hold_by_route);
unlike $metrics, qr/petrel_finding\{code="(?:disk_low|)"\}/, 'of no other';
my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or die;
print $client "GET /api/findings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $token\r\nConnection: close\r\n\r\n";
my $answer = do { local $/; <$client> };
like $answer, qr{^HTTP/1.1 200 }, '/api/findings';
my ($body) = $answer =~ /\r\n\r\n(.*)\z/s;
is_deeply [sort keys %{ { map { $_->{code} => 1 } @{ decode_json($body) } } }], [sort keys %{ findings() }], 'has the same';
$client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or die;
print $client "GET /api/findings HTTP/1.1\r\nHost: localhost\r\nX-Petrel: 1\r\nConnection: close\r\n\r\n";
like do { local $/; <$client> }, qr{^HTTP/1.1 401 }, 'not without a key';

unlink "$petrel->{dir}/spool/corrupt/01M81JCPWC-QTH5MV7E.note";
ok ends('corrupt'), 'corrupt ends';
ok $petrel->wait_log(qr/ main: recovered=corrupt \(/), 'the log says so' or diag $petrel->log;
$petrel->run('queue', 'rm', '--queue', 'hold');

# Settings that change, a reload that is refused, one that is not.
my $good = Petrel::slurp($petrel->conf);
Petrel::spit($petrel->conf, "$good\nallow_open_relay = yes\nrelay_from = 0.0.0.0/0\nhostname = localhost\nno_such_setting = 1\n");
ok begins('settings_changed'), 'settings_changed begins';
like findings()->{settings_changed}{text}, qr/\Q@{[$petrel->conf]}\E has changed/, 'names the file';
kill 'HUP', $petrel->{pid};
ok begins('reload_refused'), 'reload_refused begins';
ok findings()->{settings_changed}, 'and the file is still newer';
(my $odd = $good) =~ s/^hostname = .*/hostname = localhost/m;
Petrel::spit($petrel->conf, "$odd\nallow_open_relay = yes\nrelay_from = 0.0.0.0/1, 128.0.0.0/1\n");
chmod 0644, $petrel->conf;
kill 'HUP', $petrel->{pid};
ok ends('reload_refused'), 'reload_refused ends';
ok !findings()->{settings_changed}, 'settings_changed ends';
ok findings()->{open_relay}, 'open_relay begins';
ok findings()->{hostname_odd}, 'hostname_odd begins';
ok findings()->{secrets_readable}, 'secrets_readable begins';
Petrel::spit($petrel->conf, $good);
chmod 0600, $petrel->conf;
kill 'HUP', $petrel->{pid};
ok ends('open_relay'), 'open_relay ends';
ok !findings()->{$_}, "$_ ends" for qw(hostname_odd secrets_readable settings_changed);

# A certificate that ends soon, and the one that takes its place.
sub certificate {
    my $days = shift;
    my $dir = $petrel->{dir};
    is system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=mail.example.org -addext subjectAltName=DNS:mail.example.org -days $days -keyout $dir/tls.key -out $dir/tls.pem >/dev/null 2>&1"), 0, "a certificate of $days days";
    chmod 0600, "$dir/tls.key";
    return;
}
certificate(10);
Petrel::spit($petrel->conf, "$good\ntls_certificate = $petrel->{dir}/tls.pem\ntls_key = $petrel->{dir}/tls.key\n");
chmod 0600, $petrel->conf;
kill 'HUP', $petrel->{pid};
ok begins('certificate_expires'), 'certificate_expires begins';
like findings()->{certificate_expires}{text}, qr/^the certificate of mail\.example\.org expires in 9 days$/, 'its text';
certificate(40);
kill 'HUP', $petrel->{pid};
ok ends('certificate_expires'), 'certificate_expires ends';
ok !findings()->{$_}, "no $_" for qw(certificate_expired log_lost namesake fragments_stuck clock_jumped);

$petrel->stop;
done_testing;
