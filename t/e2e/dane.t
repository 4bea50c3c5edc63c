#!/usr/bin/perl
# DANE: mail hosts with TLSA records in zones that ldnsutils signed and Unbound validates. Mail for a host with a
# record goes to a host that proves it, or waits; what is not validated demands nothing.
use lib 't/e2e';
use E2E;
use Digest::SHA qw(sha256_hex sha512_hex);
use Unbound;

plan skip_all => 'no nsd, unbound or ldnsutils' unless Unbound->available;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('dane-XXXXXX', TMPDIR => 1, CLEANUP => 1);
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', "$dir/certificates", $dir, 'host=chained', 'bare=stripped');
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my %port = Petrel::slurp("$dir/peer") =~ /^(\S+) (\d+)$/mg;

sub der { my ($what) = @_; return qx(openssl x509 -in $dir/certificates/$what.pem -outform DER) }
sub key { my ($what) = @_; return qx(openssl x509 -in $dir/certificates/$what.pem -noout -pubkey | openssl pkey -pubin -outform DER) }
my $good = '3 1 1 ' . sha256_hex(key('below'));
my $wrong = '3 1 1 ' . sha256_hex(key('good'));
my $no_match = qr/4\.7\.5.*TLS is demanded by DANE but host \S+ failed in the TLS handshake: no TLSA record matches the certificate/;

# domain => [MX host, its TLSA records, what becomes of mail]
my %rows = (
    'key' => ['key-host', [$good], 'dane'],
    'cert' => ['cert-host', ['3 0 1 ' . sha256_hex(der('below'))], 'dane'],
    'full' => ['full-host', ['3 1 0 ' . unpack 'H*', key('below')], 'dane'],
    'sha512' => ['sha512-host', ['3 1 2 ' . sha512_hex(key('below'))], 'dane'],
    'roll' => ['roll-host', [$wrong, $good], 'dane'],
    'wrong' => ['wrong-host', [$wrong], $no_match],
    'root' => ['mail', ['2 0 1 ' . sha256_hex(der('ca')), '2 1 1 ' . sha256_hex(key('other-ca'))], 'dane'],
    'middle' => ['middle-host', ['2 1 1 ' . sha256_hex(key('mid'))], qr/4\.7\.5.*certificate does not name middle-host\.example\.net/],
    'foreign' => ['foreign-host', ['2 0 1 ' . sha256_hex(der('other-ca'))], $no_match],
    'pkix' => ['pkix-host', ['1 1 1 ' . sha256_hex(key('good'))], 'unverified'],
    'none' => ['none-host', [], 'unverified'],
    'implicit' => [undef, [$good], 'dane'],
    'implicit-wrong' => [undef, [$wrong], $no_match],
    'bare' => ['bare-host', [$good], qr/4\.7\.4.*TLS is demanded by DANE but host \S+ does not offer STARTTLS/],
    'far' => ['host.plain.example.', [], 'unverified'],
    'bogus' => ['host.bogus.example.', [], qr/4\.7\.5.*TLSA records of host\.bogus\.example cannot be looked up/],
);
my %zone = ('example.net' => '', 'plain.example' => "\@ IN MX 10 wrong-host.example.net.\n", 'bogus.example' => '');
for my $domain (sort keys %rows) {
    my ($host, $records) = @{ $rows{$domain} };
    my $port = $domain eq 'bare' ? $port{bare} : $port{host};
    $zone{'example.net'} .= "$domain IN MX 10 $host\n" if $host;
    $host //= $domain;
    next if $host =~ /\.$/;
    $zone{'example.net'} .= "$host IN A 127.0.0.1\n" . join '', map { "_$port._tcp.$host IN TLSA $_\n" } @$records;
}
$zone{$_} .= "host IN A 127.0.0.1\n_$port{host}._tcp.host IN TLSA $wrong\n" for 'plain.example', 'bogus.example';
my $dns = Unbound->start($dir, \%zone, {'example.net' => 1, 'bogus.example' => 1},
    {'bogus.example' => sub { my $text = shift; $text =~ s/(TLSA\s+3 1 1 )(..)/$1 . ($2 eq '00' ? '11' : '00')/e or die 'no TLSA'; return $text }});

sub petrel {
    my (%settings) = @_;
    return Petrel->new(dns_servers => "127.0.0.1:$dns->{port}", smtp_bind => '127.0.0.1', tls_ca => "$dir/certificates/ca.pem",
        smtp_port => $port{host}, relay => '', %settings)->start;
}
sub line_of { my ($petrel, $address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.*)$/mg)[-1] // '' }

sub check {
    my ($petrel, $name, %want) = @_;
    for my $domain (sort keys %want) {
        like $petrel->send_mail("anna\@sender.test", "x\@$domain", "Subject: x\n\nx\n"), qr/^250/, "$name: mail for $domain";
    }
    Petrel::wait_for(sub { !grep { line_of($petrel, "x\@$_") eq '' } keys %want });
    for my $domain (sort keys %want) {
        my $line = line_of($petrel, "x\@$domain");
        if (ref $want{$domain}) { like $line, qr/status=deferred.*/, "$name, $domain waits"; like $line =~ s/dsn=//r, $want{$domain}, '  and why' }
        else { like $line, qr{, tls=TLSv1\.[23]/[A-Z0-9_-]+/$want{$domain}, dsn=2.0.0, status=sent}, "$name, $domain: sent, $want{$domain}" }
    }
    return;
}

my $petrel = petrel();
my %want = map { ("$_.example.net" => $rows{$_}[2]) } grep { $_ ne 'bare' } keys %rows;
check($petrel, 'auto', %want, 'plain.example' => 'unverified');
my ($code, $sites) = $petrel->run(qw(status --json));
like $sites, qr/mx:10 key-host\.example\.net"/, 'a site is the same with a demand';
$petrel->stop;

my $bare = petrel(smtp_port => $port{bare});
check($bare, 'a host without STARTTLS', 'bare.example.net' => $rows{bare}[2]);
is Petrel::slurp("$dir/bare.mail"), '', 'it has got no mail';
$bare->stop;

for my $off (['dane', dane => 'no'], ['dns_trust', dns_trust => 'no'], ['the route', routes => '* mx?dane=no']) {
    my ($name, %settings) = @$off;
    my $free = petrel(%settings);
    check($free, "off by $name", map { ("$_.example.net" => 'unverified') } qw(wrong key far));
    $free->stop;
}
for my $bad (['dane = yes', qr/dane: 'yes': say auto or no/], ["routes = a.test smtp://b.test?dane=no", qr/dane: only for mx/],
    ['routes = a.test mx?dane=perhaps', qr/dane=perhaps: use yes or no/]) {
    my ($line, $why) = @$bad;
    my $file = Petrel::spit("$dir/bad.conf", "hostname = petrel.test\nspool = $dir/bad\n$line\n");
    my $said = qx($Petrel::root/$Petrel::build/petrel -c $file check 2>&1);
    like $said, $why, $line;
}
done_testing;
