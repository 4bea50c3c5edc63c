#!/usr/bin/perl
# petrel doctor ADDRESS: whether mail could go there, and what its domain demands of TLS, in zones that Unbound
# validates; and what this host publishes, so that others can prove its own.
use lib 't/e2e';
use E2E;
use Digest::SHA qw(sha256_hex);
use Doctor;
use Nginx;
use Unbound;

plan skip_all => 'no nsd, unbound or ldnsutils' unless Unbound->available;
plan skip_all => 'no nginx, python3 or openssl' unless !Nginx->missing && Petrel::have('python3');

my $dir = tempdir('destination-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca";
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', "$dir/certificates", $dir, 'host=chained', 'bare=stripped');
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my %port = Petrel::slurp("$dir/peer") =~ /^(\S+) (\d+)$/mg;
sub key { my ($what) = @_; return sha256_hex(qx(openssl x509 -in $dir/certificates/$what.pem -noout -pubkey | openssl pkey -pubin -outform DER)) }
my ($right, $other) = ('3 1 1 ' . key('below'), '3 1 1 ' . key('good'));

# --- Policies, by HTTPS: of the domains of this host, and of one that names none of its hosts.

my %policy = (right => ['enforce', 'mail.own.example'], foreign => ['enforce', 'other.test'], testing => ['testing', 'other.test'], off => ['none', ''], away => ['enforce', 'other.test']);
my $https = Petrel::free_port();
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } sort keys %policy]);
mkdir "$dir/www";
for my $name (sort keys %policy) {
    my ($mode, $mx) = @{ $policy{$name} };
    Petrel::spit("$dir/www/mta-sts.$name.example", "version: STSv1\nmode: $mode\n" . ($mx ? "mx: $mx\n" : '') . "max_age: 86400\n");
}
Nginx->start($dir, Nginx::policies($dir, $https));

# --- Zones

my $p = $port{host};
my %rows = (
    'dane' => [$right, qr/^ok: .* takes mail \(TLSv1\.\d\/\S+\/dane\); its domain demands DANE \(1 TLSA record\)/],
    'wrong' => [$other, qr/^error: mail cannot be handed to it: .*no TLSA record matches the certificate/],
    'pkix' => ["1 1 1 " . key('below'), qr/^ok: .*\/unverified\); its domain demands DANE \(1 TLSA record, none of a known kind\)/],
    'plain' => [undef, qr/^ok: .*\/unverified\); nobody demands more/],
);
my %zone = ('example.net' => "null IN MX 0 .\nnothing IN TXT \"x\"\n", 'bogus.example' => "\@ IN MX 10 host\nhost IN A 127.0.0.1\n_$p._tcp.host IN TLSA $other\n");
for my $name (sort keys %rows) {
    $zone{'example.net'} .= "$name IN MX 10 $name-host\n$name-host IN A 127.0.0.1\n" . ($rows{$name}[0] ? "_$p._tcp.$name-host IN TLSA $rows{$name}[0]\n" : '');
}
$zone{'example.net'} .= "half IN MX 10 dead-host\nhalf IN MX 20 dane-host\ndead-host IN A 127.0.0.9\n";
my %own = (right => 1, foreign => 1, testing => 1, off => 1, gone => 1, twice => 2, fresh => 0);
for my $name (sort keys %own) {
    $zone{"$name.example"} = "\@ IN MX 10 mail.own.example.\nmta-sts IN A 127.0.0.1\n" . join '', map { "_mta-sts IN TXT \"v=STSv1; id=$_\"\n" } 1 .. $own{$name};
}
$zone{'away.example'} = "\@ IN MX 10 dane-host.example.net.\nmta-sts IN A 127.0.0.1\n_mta-sts IN TXT \"v=STSv1; id=1\"\n";
$zone{'own.example'} = "mail IN A 127.0.0.1\n_25._tcp.mail IN TLSA $right\n";
my $dns = Unbound->start($dir, \%zone, {'example.net' => 1, 'bogus.example' => 1, 'own.example' => 1},
    {'bogus.example' => sub { my $text = shift; $text =~ s/(TLSA\s+3 1 1 )(..)/$1 . ($2 eq '00' ? '11' : '00')/e or die 'no TLSA'; return $text }},
    lines => qq(    local-zone: "com." static\n    local-zone: "arpa." static\n    local-zone: "." transparent\n    local-data: ". 60 IN SOA ns. hostmaster. 1 2 3 4 5"\n));
sub petrel {
    my (%settings) = @_;
    return Petrel->new(hostname => 'mail.own.example', dns_servers => "127.0.0.1:$dns->{port}", smtp_bind => '127.0.0.1', tls_ca => "$ca.pem", smtp_port => $p, relay => '',
        mta_sts_port => $https, local_domains => 'localhost', smtp_connect_timeout => '5s', %settings);
}
sub checks_of { my ($petrel, @arguments) = @_; my ($code, $checks) = Doctor::run(undef, $petrel, @arguments); return ($code, [grep { $_->{code} eq 'tls.destination' } @$checks], $checks) }
sub said { my ($checks, $subject) = @_; return join "\n", map { "$_->{severity}: $_->{text}" } grep { $_->{subject} =~ /^\Q$subject\E(?: by |$)/ } @$checks }

# --- The way there

my $petrel = petrel();
my ($code, $checks) = checks_of($petrel, (map { "x\@$_.example.net" } sort(keys %rows), qw(half null)), 'x@bogus.example', 'x@away.example', '"a b"@dane.example.net');
is $code, 1, 'an error: exit code 1';
like said($checks, "x\@$_.example.net"), $rows{$_}[1], $_ for sort keys %rows;
my $half = said($checks, 'x@half.example.net');
like $half, qr/^warning: mail cannot be handed to it: connect to .*refused/m, 'one of two hosts is down: a warning';
like $half, qr/^ok: .*\/dane\)/m, '  the other one takes mail';
like said($checks, 'x@null.example.net'), qr/^error: its null MX says/, 'a null MX';
like said($checks, 'x@bogus.example'), qr/^error: mail cannot be handed to it: its TLSA records \(DANE\) cannot be looked up/, 'TLSA records that are forged';
like said($checks, 'x@away.example'), qr/^(?:error: .*the MTA-STS policy of the domain does not name it|ok: .*\/dane)/, 'a policy that does not name the host: DANE goes before it';
like said($checks, '"a b"@dane.example.net'), qr/^ok: /, 'a quoted local part';
ok !(grep { $_->{code} =~ /^(?:spf|dkim|dmarc|mx)\./ } @{ (checks_of($petrel, 'x@plain.example.net'))[2] }), 'the domain of an address is not one that we send from';
ok !(grep { $_->{severity} ne 'ok' && $_->{remedy} !~ /\w/ } @$checks), 'each that is not ok has a remedy';
is((checks_of($petrel, 'x@dane.example.net'))[0] & ~1, 0, 'an exit code of 0 or 1');
($code, $checks) = checks_of(petrel(dane => 'no'), 'x@wrong.example.net', 'x@away.example');
like said($checks, 'x@wrong.example.net'), qr/^ok: .*nobody demands more/, 'dane = no: nothing is demanded';
like said($checks, 'x@away.example'), qr/^error: .*the MTA-STS policy of the domain does not name it/, '  but MTA-STS does';
($code, $checks) = checks_of(petrel(dns_trust => 'no', mta_sts => 'no'), 'x@wrong.example.net');
like $checks->[0]{detail}, qr/DANE.*dns\.resolver.*mta_sts = no/, 'what is not asked is said';
($code, $checks) = checks_of(petrel(smtp_port => $port{bare}), 'x@plain.example.net', 'plain.example.net');
like said($checks, 'x@plain.example.net'), qr/^hint: .* in cleartext: STARTTLS is not offered, or refused/, 'a host without STARTTLS';
like said($checks, 'plain.example.net'), qr/^hint: .* in cleartext/, 'a domain alone: its hosts are asked as well';
($code, $checks) = checks_of(petrel(smtp_port => Petrel::free_port()), 'x@plain.example.net', 'plain.example.net');
like said($checks, 'x@plain.example.net'), qr/^error: mail cannot be handed to it: connect to .*refused/, 'a host that is down';
like said($checks, 'plain.example.net'), qr/^warning: /, '  of a domain: a warning';

# --- Routes, and a smarthost that refuses

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20, ReuseAddr => 1) or die;
my $server = fork // die;
if ($server == 0) {
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    while (my $s = $listener->accept) {
        $s->autoflush;
        print $s "220 smarthost.test\r\n";
        while (defined(my $line = <$s>)) {
            print $s $line =~ /^EHLO/ ? "250 smarthost.test\r\n" : $line =~ /^RCPT TO:<no/ ? "550 5.1.1 no \e[31mof that name\r\n" : $line =~ /^DATA/ ? "554 never\r\n" : "250 2.0.0 ok\r\n";
        }
    }
    POSIX::_exit(0);
}
push @Petrel::running, $server;
my $port = $listener->sockport;
my $routed = petrel(routes => "smart.test smtp://127.0.0.1:$port\n    held.test hold\n    gone.example discard\n    no.test error:5.1.1 not here\n    local.test maildir:$dir/mail/%u", local_domains => 'localhost local.test');
($code, $checks) = checks_of($routed, 'yes@smart.test', 'no@smart.test', 'x@held.test', 'x@gone.example', 'x@no.test', 'x@local.test', 'x@localhost');
like said($checks, 'yes@smart.test'), qr/^hint: .*takes mail, but in cleartext/, 'a smarthost that takes mail';
like said($checks, 'no@smart.test'), qr/^error: it refuses the recipient: .*550 5\.1\.1 no .\[31mof that name/, 'a recipient that is refused';
like said($checks, 'x@held.test'), qr/^warning: a route holds/, 'a route that holds';
like said($checks, 'x@gone.example'), qr/^warning: a route discards/, 'that discards';
like said($checks, 'x@no.test'), qr/^error: a route refuses its mail/, 'that refuses';
like said($checks, 'x@local.test'), qr/^ok: mail for it does not leave this host/, 'a Maildir';
like said($checks, 'x@localhost'), qr/^error: its domain is one of local_domains, and nobody here/, 'nobody';

# --- Records of this host

my @certificate = (tls_certificate => "$dir/certificates/below.pem", tls_key => "$dir/certificates/below.key");
my $names = qx(openssl x509 -in $dir/certificates/below.pem -noout -ext subjectAltName);
Petrel::spit("$dir/own.ext", 'subjectAltName=DNS:mail.own.example');
system("cd $dir && openssl req -new -key certificates/below.key -out own.csr -subj /CN=x 2>>log && openssl x509 -req -in own.csr -CA $ca.pem -CAkey $ca.key -CAcreateserial -days 60 -extfile own.ext -out own.pem 2>>log") == 0 or die Petrel::slurp("$dir/log");
@certificate = (tls_certificate => "$dir/own.pem", tls_key => "$dir/certificates/below.key");
my $own = petrel(@certificate, local_domains => join ' ', 'localhost', map { "$_.example" } sort keys %own);
($code, $checks) = checks_of($own);
like said($checks, '_25._tcp.mail.own.example'), qr/^ok: its TLSA record fits the certificate$/, 'the TLSA record of this host fits';
is scalar(grep { $_->{subject} eq '_25._tcp.mail.own.example' } @$checks), 1, '  and is examined once';
like said($checks, 'right.example'), qr/^ok: its MTA-STS policy names this host/, 'a policy that names it';
like said($checks, 'foreign.example'), qr/^error: its MTA-STS policy \(enforce\) does not name its MX host mail\.own\.example/, 'one that does not';
like said($checks, 'testing.example'), qr/^warning: its MTA-STS policy \(testing\) does not name/, '  in mode testing';
like said($checks, 'off.example'), qr/^ok: its MTA-STS policy has mode none/, '  in mode none';
like said($checks, 'gone.example'), qr/^warning: it has a record of MTA-STS, but no policy/, 'a record without a policy';
like said($checks, 'twice.example'), qr/^warning: it has several MTA-STS records/, 'several records';
like said($checks, 'fresh.example'), qr/^hint: it has no MTA-STS policy/, 'none';
my ($advice) = map { $_->{remedy} } grep { $_->{subject} eq 'fresh.example' } @$checks;
like $advice, qr/^    _mta-sts\.fresh\.example\. 3600 IN TXT \( "v=STSv1; id=\d{14}" \)$/m, '  with the record';
like $advice, qr/^    version: STSv1\n    mode: testing\n    mx: mail\.own\.example\n    max_age: 604800$/m, '  and the file';
@certificate = (tls_certificate => "$dir/certificates/self.pem", tls_key => "$dir/certificates/self.key");
system("cd $dir && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=mail.own.example -addext subjectAltName=DNS:mail.own.example -days 60 -keyout new.key -out new.pem 2>>log") == 0 or die;
($code, $checks) = checks_of(petrel(tls_certificate => "$dir/new.pem", tls_key => "$dir/new.key", local_domains => 'localhost right.example'));
like said($checks, '_25._tcp.mail.own.example'), qr/^error: its TLSA records do not fit the key/, 'another key: senders that use DANE do not deliver';
my $new = sha256_hex(qx(openssl pkey -in $dir/new.key -pubout -outform DER));
like((grep { $_->{subject} eq '_25._tcp.mail.own.example' } @$checks)[0]{remedy}, qr/^    _25\._tcp\.mail\.own\.example\. 3600 IN TLSA 3 1 1 $new$/m, '  and the record that fits');
($code, $checks) = checks_of(petrel(hostname => 'dane-host.example.net', tls_certificate => "$dir/new.pem", tls_key => "$dir/new.key", local_domains => 'localhost away.example'));
is_deeply [grep { $_->{subject} =~ /tcp/ } @$checks], [], 'no record for a certificate of another name';
($code, $checks) = checks_of(petrel(local_domains => 'localhost right.example'));
is_deeply $checks, [], 'without a certificate there is nothing to publish';
done_testing;
