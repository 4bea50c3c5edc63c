#!/usr/bin/perl
# MTA-STS: policies that nginx serves by HTTPS and NSD announces, mail hosts with good and bad certificates. Mail for a
# domain that enforces goes to a host that its policy names and that proves its name, or waits; over a restart, too,
# and while the policy cannot be fetched.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('sts-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca";

# Domain => [mode, mx of the policy, MX of the zone, what becomes of mail]. good.test is a name in the host's certificate.
my $untrusted = qr/dsn=4\.7\.5.*TLS is demanded by MTA-STS but host bad\.test\S+ failed in the TLS handshake: certificate does not name bad\.test/;
my %rows = (
    'good.example' => ['enforce', 'good.test', 'good.test', 'sts'],
    'star.example' => ['enforce', '*.stars.test', 'a.stars.test', 'sts'],
    'bad.example' => ['enforce', 'bad.test', 'bad.test', $untrusted],
    'foreign.example' => ['enforce', 'other.test', 'good.test', qr/dsn=4\.7\.5.*MTA-STS of foreign\.example does not allow good\.test/],
    'deep.example' => ['enforce', '*.test', 'a.stars.test', qr/dsn=4\.7\.5.*does not allow a\.stars\.test/],
    'testing.example' => ['testing', 'tested.test', 'tested.test', 'unverified'],
    'none.example' => ['none', 'other.test', 'bad.test', 'unverified'],
    'plain.example' => [undef, undef, 'bad.test', 'unverified'],
    # A malformed policy demands nothing.
    'redirect.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'html.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'long.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'mark.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'missing.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'untrusted.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
    'garbage.example' => ['enforce', 'other.test', 'bad.test', 'unverified'],
);
my %why = (
    redirect => 'the answer is not 200', html => 'its type is not text/plain', long => '(too|more|beyond|larger)',
    mark => 'a line of it is not "key: value"', missing => 'the answer is not 200',
    untrusted => 'certificate does not name mta-sts.untrusted.example', garbage => 'a line of it is not "key: value"'
);
Nginx::certify($dir, 'web', [map { "mta-sts.$_" } grep { $_ ne 'untrusted.example' } sort keys %rows]);
Nginx::certify($dir, 'mail', ['good.test', '*.stars.test']);
mkdir "$dir/www";
sub policy { my ($domain, $mode, $mx, $age) = @_; return Petrel::spit("$dir/www/mta-sts.$domain", "version: STSv1\r\nmode: $mode\r\nmx: $mx\r\nmax_age: $age\r\n") }
my %zone = ('test' => "good IN A 127.0.0.1\nbad IN A 127.0.0.1\ntested IN A 127.0.0.1\na.stars IN A 127.0.0.1\n", 'example' => '');
for my $domain (sort keys %rows) {
    my ($mode, $mx, $exchange) = @{ $rows{$domain} };
    my $name = $domain =~ s/\.example//r;
    $zone{example} .= "$name IN MX 10 $exchange.\nmta-sts.$name IN A 127.0.0.1\n";
    next unless $mode;
    $zone{example} .= qq(_mta-sts.$name IN TXT "v=STSv1; id=1;"\n);
    policy($domain, $mode, $mx, 86400);
}
Petrel::spit("$dir/www/mta-sts.mark.example", "\xef\xbb\xbf" . Petrel::slurp("$dir/www/mta-sts.mark.example"));
Petrel::spit("$dir/www/mta-sts.long.example", Petrel::slurp("$dir/www/mta-sts.long.example") . "x: y\n" x 20000);
Petrel::spit("$dir/www/mta-sts.garbage.example", "\0\1\2 no policy\n");
unlink "$dir/www/mta-sts.missing.example";

my $https = Petrel::free_port();
my $html = <<"END";
    server {
        listen 127.0.0.1:$https ssl;
        server_name mta-sts.html.example;
        ssl_certificate $dir/web.pem;
        ssl_certificate_key $dir/web.key;
        root $dir/www;
        location = /.well-known/mta-sts.txt { types { } default_type text/html; try_files /\$host =404; }
    }
END
my $web = Nginx->start($dir, $html, Nginx::policies($dir, $https, "if (\$host = mta-sts.redirect.example) { return 301 https://mta-sts.good.example:$https/.well-known/mta-sts.txt; }"));

Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $dir, $dir, 'host=mail', 'bare=stripped');
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my %port = Petrel::slurp("$dir/peer") =~ /^(\S+) (\d+)$/mg;
my %file = map { ($_ => Petrel::spit("$dir/$_.zone", "\$ORIGIN $_.\n\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 60\n\@ IN NS ns\nns IN A 127.0.0.1\n$zone{$_}")) } keys %zone;
my $nsd = Nsd->start($dir, %file);

my %common = (dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$ca.pem", smtp_port => $port{host},
    mta_sts_port => $https, relay => '');
my $http = Petrel::free_port();
my $petrel = Petrel->new(%common, http => "127.0.0.1:$http")->start;
sub line_of { my ($address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.*)$/mg)[-1] // '' }

my ($mails, $header) = (0, '');
sub check {
    my ($name, %want) = @_;
    $mails++;
    for my $domain (sort keys %want) {
        like $petrel->send_mail("anna\@sender.test", "x$mails\@$domain", "${header}Subject: x\n\nx\n"), qr/^250/, "$name: mail for $domain";
    }
    Petrel::wait_for(sub { !grep { line_of("x$mails\@$_") eq '' } keys %want });
    for my $domain (sort keys %want) {
        my $line = line_of("x$mails\@$domain");
        if (ref $want{$domain}) { like $line, qr/status=deferred/, "$name, $domain waits"; like $line, $want{$domain}, '  and why' }
        elsif ($want{$domain} eq 'clear') { like $line, qr/status=sent/, "$name, $domain: sent"; unlike $line, qr/, tls=/, '  in cleartext' }
        else { like $line, qr{, tls=TLSv1\.[23]/[A-Z0-9_-]+/$want{$domain}, dsn=2.0.0, status=sent}, "$name, $domain: sent, $want{$domain}" }
    }
    return;
}

check('policies', map { ($_ => $rows{$_}[3]) } keys %rows);
ok $petrel->wait_log(qr/sts: MTA-STS policy of star\.example: mode enforce for 86400 s, mx \*\.stars\.test/), 'a policy is logged' or diag $petrel->log;
ok $petrel->wait_log(qr/sts: the MTA-STS policy of $_\.example cannot be used: .*$why{$_}.*; there is none/), "no policy: $_" or diag $petrel->log for sort keys %why;
ok $petrel->wait_log(qr/sts: tested\.test\[127\.0\.0\.1\]: sts=testing\/fail: its certificate is not valid for it, domain=testing\.example/), 'mode testing reports' or diag $petrel->log;
my ($code, $status) = $petrel->run(qw(status --json));
like $status, qr/mx:10 good\.test"/, 'a site is the same with a demand';
like $status, qr/"policy": "sts",\s+"domain": "good\.example",\s+"host": "good\.test",\s+"result": "success",\s+"count": 1/, 'a proof is counted';
like $status, qr/"domain": "bad\.example",\s+"host": "bad\.test",\s+"result": "certificate-host-mismatch"/, 'and a failure';
like(($petrel->run('status'))[1], qr/^tls +\d+ sessions proven that DANE or MTA-STS demands, \d+ failed$/m, 'status has the sum');
my (undef, $metrics) = Petrel::command('', 'curl', '-s', '-m', '20', "http://127.0.0.1:$http/metrics");
like $metrics, qr/^petrel_tls_policy_total\{policy="sts",result="$_"\} [1-9]/m, "metrics count $_" for qw(ok failed);
like $metrics, qr/^petrel_tls_policy_total\{policy="dane",result="ok"\} 0$/m, 'and nothing else';
unlike Petrel::slurp("$dir/access.log"), qr/plain\.example|none\.example.*none\.example/, 'no policy is fetched twice, and none without a record';

# What the sender waives (RFC 8689): the mail of others, which waits for the same hosts, does not.
$header = "TLS-Required: No\n";
check('waived', 'good.example' => 'verified', 'bad.example' => 'unverified', 'foreign.example' => 'verified', 'plain.example' => 'unverified');
$header = '';
Petrel::command("TLS-Required: No\nSubject: x\n\nx\n", "$Petrel::root/$Petrel::build/petrel", '-c', $petrel->conf, 'sendmail', '-f', 'anna@sender.test', 'local@bad.example');
ok $petrel->wait_log(qr{to=<local\@bad\.example>.*/unverified, dsn=2.0.0, status=sent}), 'of sendmail(1), too' or diag $petrel->log;
check('beside it', 'good.example' => 'sts', 'bad.example' => $untrusted);
$petrel->stop;
$petrel->configure(tls_required_header => 'no')->start;
$header = "TLS-Required: No\n";
check('tls_required_header = no', 'good.example' => 'sts', 'bad.example' => $untrusted);
$header = '';

# The domain's owner must not send us to this host's own services; nor does a policy that is there hang on HTTPS.
$petrel->stop;
$web->stop('QUIT');
ok -s "$petrel->{dir}/spool/lock/sts", 'policies are kept';
$petrel->start;
check('after a restart, without HTTPS', 'good.example' => 'sts', 'bad.example' => $untrusted, 'foreign.example' => $rows{'foreign.example'}[3]);
$petrel->stop;

my $loopback = Petrel->new(%common, mta_sts_port => 443)->start;
$petrel = $loopback;
check('port 443 at loopback', 'bad.example' => 'unverified');
ok $loopback->wait_log(qr/MTA-STS policy of bad\.example cannot be used: mta-sts\.bad\.example: it has no public address/), 'policies come from public addresses' or diag $loopback->log;
$loopback->stop;

for my $off (['mta_sts = no', mta_sts => 'no'], ['the route', routes => '* mx?sts=no'], ['tls=none', routes => '* mx?tls=none']) {
    my ($name, %settings) = @$off;
    $petrel = Petrel->new(%common, %settings)->start;
    my $clear = $name eq 'tls=none';
    check("off by $name", 'bad.example' => $clear ? 'clear' : 'unverified', 'foreign.example' => $clear ? 'clear' : 'verified');
    unlike $petrel->log, qr/sts:/, '  nothing is looked up';
    $petrel->stop;
}
done_testing;
