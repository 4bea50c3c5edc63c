#!/usr/bin/perl
# DANE beside Postfix: both get mail for the same destinations in zones that ldnsutils signed, ask the same Unbound about
# them, and meet the same hosts. Each row says what becomes of mail; where Postfix differs the RFC's sentence stands in it.
use lib 't/e2e';
use E2E;
use Digest::SHA qw(sha256_hex sha512_hex);
use Peer;
use Unbound;

plan skip_all => 'no nsd, unbound or ldnsutils' unless Unbound->available;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');
plan skip_all => Peer::missing('postfix') if Peer::missing('postfix');

my @zones = ('nsec.example', 'nsec3.example');
my $dir = tempdir('dane_postfix-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $certificates = "$dir/certificates";
system('sh', 't/support/tls_certificates.sh', $certificates) == 0 or die 'no certificates';
# Below the middle authority, for hosts, for a domain, for whole domains of hosts; and what needs another name of its key.
my @names = map { my $zone = $_; map { "DNS:$_.$zone" } 'mail', 'anchor-domain', '*.stars', 'final', 'given' } @zones;
Petrel::spit("$certificates/named.ext", 'subjectAltName=' . join ',', @names);
system("cd $certificates && openssl ecparam -name prime256v1 -genkey -noout -out named.key && openssl req -new -key named.key -subj /CN=x -out named.csr && "
    . 'openssl x509 -req -in named.csr -CA mid.pem -CAkey mid.key -CAcreateserial -days 100 -extfile named.ext -out leaf.pem 2>log && '
    . 'cat leaf.pem mid.pem ca.pem >named.pem && cat leaf.pem >alone.pem && cp named.key alone.key && cp late.key late-chained.key') == 0 or die 'no certificates';

# All hosts have the same port, at addresses of their own.
my $port = Petrel::free_port();
my %kind = (chained => 1, named => 2, 'late-chained' => 3, self => 4, alone => 5, stripped => 6, refused => 7, second => 8);
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $certificates, $dir, map { "$_=" . ($_ eq 'second' ? 'chained' : $_) . "\@127.0.0.$kind{$_}:$port" } sort keys %kind);
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");

sub der { my ($what) = @_; return scalar qx(openssl x509 -in $certificates/$what.pem -outform DER) }
sub key { my ($what) = @_; return scalar qx(openssl x509 -in $certificates/$what.pem -noout -pubkey | openssl pkey -pubin -outform DER) }
my %data = (
    ee => sha256_hex(key('below')), bad => sha256_hex(key('good')), cert => sha256_hex(der('below')), ca => sha256_hex(der('ca')), cakey => sha256_hex(key('ca')),
    mid => sha256_hex(der('mid')), midkey => sha256_hex(key('mid')), other => sha256_hex(der('other-ca')), sha512 => sha512_hex(key('below')),
    full => unpack('H*', der('below')), fullkey => unpack('H*', key('below')), fullca => unpack('H*', der('ca')), mid512 => sha512_hex(der('mid')),
    late => sha256_hex(key('late')), self => sha256_hex(key('self')), selfcert => sha256_hex(der('self')), fullmid => unpack('H*', der('mid')), midkeyfull => unpack('H*', key('mid')),
    leaf => sha256_hex(der('leaf')),
);
my ($p, $host_number) = ("_$port._tcp", 0);
my (%zone, %want, %differs);
# NSEC3 changes only how it is proven that something is not there.
my %absent = map { ($_ => 1) } qw(ee wrong none own own-wrong two alias-end alias-own alias-given alias-out far servfail opt-out nxdomain no-host bare-none);

# row(zone, name, verdict, records of the host, ...): NAME.ZONE has one MX host with an address. host, lines: other ones
# than these; at: the kind of the host; postfix: [its verdict, why].
sub row {
    my ($zone, $name, $verdict, $tlsa, %more) = @_;
    return if $zone eq 'nsec3.example' && !$absent{$name};
    my $host = $more{host} // 'h' . ++$host_number;
    my $address = '127.0.0.' . $kind{ $more{at} // 'chained' };
    $zone{$zone} .= $more{lines} // "$name IN MX 10 $host\n" . ($host =~ /\.$/ || $more{no_address} ? '' : "$host IN A $address\n");
    for my $record (@$tlsa) {
        my ($numbers, $what) = $record =~ /^(.*) (\w+)$/;
        $zone{$zone} .= "$p.$host IN TLSA $numbers " . ($data{$what} // $what) . "\n";
    }
    $want{"$name.$zone"} = $verdict;
    $differs{"$name.$zone"} = $more{postfix} if $more{postfix};
    return;
}

for my $zone (@zones) {
    # Usages, selectors, matching types (RFC 7672 3.1).
    row($zone, 'ee', 'dane', ['3 1 1 ee']);
    row($zone, 'cert', 'dane', ['3 0 1 cert']);
    row($zone, 'sha512', 'dane', ['3 1 2 sha512']);
    row($zone, 'full', 'dane', ['3 0 0 full']);
    row($zone, 'fullkey', 'dane', ['3 1 0 fullkey']);
    row($zone, 'roll', 'dane', ['3 1 1 bad', '3 1 1 ee']);
    row($zone, 'wrong', 'waits', ['3 1 1 bad']);
    row($zone, 'wrong-cert', 'waits', ['3 0 1 ee']);
    row($zone, 'anchor', 'dane', ['2 0 1 ca'], host => 'mail', at => 'named');
    row($zone, 'anchor-name', 'waits', ['2 0 1 ca']);
    row($zone, 'anchor-domain', 'dane', ['2 0 1 ca'], at => 'named');
    row($zone, 'anchor-star', 'dane', ['2 0 1 mid'], host => 'a.stars', at => 'named');
    row($zone, 'anchor-deep', 'waits', ['2 0 1 mid'], host => 'a.b.stars', at => 'named');
    row($zone, 'anchor-key', 'dane', ['2 1 1 cakey'], host => 'k.stars', at => 'named');
    row($zone, 'anchor-512', 'dane', ['2 0 2 mid512'], host => 'l.stars', at => 'named');
    row($zone, 'anchor-leaf', 'waits', ['2 0 1 leaf'], host => 'm.stars', at => 'named');
    row($zone, 'anchor-absent', 'waits', ['2 0 1 mid'], host => 'n.stars', at => 'alone');
    row($zone, 'anchor-full', 'dane', ['2 0 0 fullmid'], host => 'o.stars', at => 'alone');
    row($zone, 'middle-name', 'waits', ['2 1 1 midkey']);
    row($zone, 'other', 'waits', ['2 0 1 other']);
    row($zone, 'both', 'dane', ['2 0 1 other', '3 1 1 ee']);
    row($zone, 'pkix-ee', 'clear', ['1 1 1 bad']);
    row($zone, 'pkix-ta', 'clear', ['0 0 1 other']);
    row($zone, 'pkix-and', 'dane', ['1 1 1 bad', '3 1 1 ee']);
    row($zone, 'selector', 'clear', ['3 9 1 ee']);
    row($zone, 'matching', 'clear', ['3 1 9 ee']);
    row($zone, 'usage', 'clear', ['9 1 1 ee']);
    row($zone, 'short', 'clear', ['3 1 1 0102']);
    row($zone, 'short-and', 'waits', ['3 1 1 0102', '3 1 1 bad']);
    row($zone, 'many', 'dane', [ (map { sprintf '3 1 1 %064x', $_ } 1 .. 9), '3 1 1 ee' ]);
    # Names and dates (3.1.1, 3.1.2).
    row($zone, 'expired-ee', 'dane', ['3 1 1 late'], at => 'late-chained');
    row($zone, 'expired-ta', 'waits', ['2 0 1 ca'], at => 'late-chained');
    row($zone, 'self-ee', 'dane', ['3 1 1 self'], at => 'self');
    row($zone, 'self-wrong', 'waits', ['3 1 1 ee'], at => 'self');
    # Encryption (2.2).
    row($zone, 'bare', 'waits', ['3 1 1 ee'], at => 'stripped');
    row($zone, 'bare-unusable', 'waits', ['1 1 1 ee'], at => 'stripped');
    row($zone, 'bare-none', 'clear', [], at => 'stripped');
    row($zone, 'refused', 'waits', ['3 1 1 ee'], at => 'refused');
    row($zone, 'refused-none', 'clear', [], at => 'refused');
    # Hosts (2.2.1 to 2.2.3).
    row($zone, 'none', 'clear', []);
    row($zone, 'own', 'dane', ['3 1 1 ee'], host => 'own', lines => "own IN A 127.0.0.1\n");
    row($zone, 'own-mx', 'dane', ['3 1 1 ee'], host => 'own-mx');
    row($zone, 'own-wrong', 'waits', ['3 1 1 bad'], host => 'own-wrong', lines => "own-wrong IN A 127.0.0.1\n");
    my ($first, $second) = map { 'h' . ++$host_number } 1, 2;
    row($zone, 'two', 'dane', ['3 1 1 bad'], host => $first,
        lines => "two IN MX 10 $first\ntwo IN MX 20 $second\n$first IN A 127.0.0.1\n$second IN A 127.0.0.8\n$p.$second IN TLSA 3 1 1 $data{ee}\n");
    row($zone, 'two-plain', 'clear', ['3 1 1 bad'], host => "${first}p",
        lines => "two-plain IN MX 10 ${first}p\ntwo-plain IN MX 20 ${second}p\n${first}p IN A 127.0.0.1\n${second}p IN A 127.0.0.8\n");
    # Aliases: of the host, of the records, of the domain.
    row($zone, 'alias-end', 'dane', [], host => 'a-end', lines => "alias-end IN MX 10 a-end\na-end IN CNAME e1\ne1 IN A 127.0.0.1\n$p.e1 IN TLSA 3 1 1 $data{ee}\n");
    row($zone, 'alias-end-wrong', 'waits', ['3 1 1 ee'], host => 'a-endw',
        lines => "alias-end-wrong IN MX 10 a-endw\na-endw IN CNAME e2\ne2 IN A 127.0.0.1\n$p.e2 IN TLSA 3 1 1 $data{bad}\n");
    row($zone, 'alias-own', 'waits', ['3 1 1 bad'], host => 'a-own', lines => "alias-own IN MX 10 a-own\na-own IN CNAME e3\ne3 IN A 127.0.0.1\n");
    row($zone, 'alias-out', 'waits', ['3 1 1 bad'], host => 'a-out', lines => "alias-out IN MX 10 a-out\na-out IN CNAME host.plain.example.\n");
    row($zone, 'alias-final', 'dane', [], host => 'x1', lines => "alias-final IN MX 10 x1\nx1 IN CNAME final\nfinal IN A 127.0.0.2\n$p.final IN TLSA 2 0 1 $data{ca}\n");
    row($zone, 'alias-given', 'dane', ['2 0 1 ca'], host => 'given', lines => "alias-given IN MX 10 given\ngiven IN CNAME e5\ne5 IN A 127.0.0.2\n");
    row($zone, 'alias-records', 'dane', [], host => 'a-rec', lines => "alias-records IN MX 10 a-rec\na-rec IN A 127.0.0.1\n$p.a-rec IN CNAME records\nrecords IN TLSA 3 1 1 $data{ee}\n");
    row($zone, 'alias-domain', 'waits', [], lines => "alias-domain IN CNAME wrong\n");
    # Records that are not validated, and those that cannot be looked up (2.1).
    row($zone, 'far', 'clear', [], host => 'host.plain.example.');
    row($zone, 'bogus-tlsa', 'waits', [], host => 'host.bogustlsa.example.');
    row($zone, 'bogus-address', 'waits', [], host => 'host.bogusaddress.example.');
    row($zone, 'late', 'waits', [], host => 'host.late.example.');
    row($zone, 'servfail', 'waits', [], host => 'fails', lines => "servfail IN MX 10 fails\nfails IN A 127.0.0.1\n_tcp.fails IN NS ns.plain.example.\n");
    row($zone, 'opt-out', 'clear', [], host => "host.optout.$zone.");
    row($zone, 'nxdomain', 'bounced', [], lines => "unrelated IN A 127.0.0.1\n");
    row($zone, 'no-host', 'bounced', [], host => 'absent', no_address => 1);
    $zone{$zone} .= "optout IN NS ns.plain.example.\n";
    $zone{"optout.$zone"} = "host IN A 127.0.0.1\n$p.host IN TLSA 3 1 1 $data{bad}\n";
    $zone{"_tcp.fails.$zone"} = undef;
}
# Hosts that no validated domain has.
row('plain.example', 'insecure-mx', 'clear', [], host => 'only.nsec.example.');
row('plain.example', 'insecure-wrong', 'clear', [], host => 'only-wrong.nsec.example.');
$zone{'nsec.example'} .= "only IN A 127.0.0.1\n$p.only IN TLSA 3 1 1 $data{ee}\nonly-wrong IN A 127.0.0.1\n$p.only-wrong IN TLSA 3 1 1 $data{bad}\n";
row('plain.example', 'own', 'clear', ['3 1 1 bad'], host => 'own', lines => "own IN A 127.0.0.1\n");
row('plain.example', 'bare', 'clear', ['3 1 1 ee'], at => 'stripped');
$zone{$_} = "host IN A 127.0.0.1\n$p.host IN TLSA 3 1 1 $data{bad}\n\@ IN MX 10 host\n" for 'bogustlsa.example', 'bogusaddress.example', 'late.example', 'bogusmx.example';
$zone{'plain.example'} .= "host IN A 127.0.0.1\n$p.host IN TLSA 3 1 1 $data{bad}\n";
$want{'bogusmx.example'} = 'waits';
my $dns = Unbound->start($dir, \%zone, { map { ($_ => 1) } grep { !/plain|optout|_tcp/ } keys %zone },
    {
        'bogustlsa.example' => sub { my $t = shift; $t =~ s/(TLSA\s+3 1 1 )(..)/$1 . ($2 eq '00' ? '11' : '00')/e or die; return $t },
        'bogusaddress.example' => sub { my $t = shift; $t =~ s/^(host\S*\s+\d+\s+IN\s+A\s+)127\.0\.0\.1/${1}127.0.0.9/m or die; return $t },
        'bogusmx.example' => sub { my $t = shift; $t =~ s/(\sMX\s+)10/${1}11/ or die; return $t },
    },
    sign => {'nsec3.example' => ['-n', '-p'], 'late.example' => ['-i', '20200101000000', '-e', '20200201000000']},
    address => '127.73.25.53');
plan skip_all => 'port 53 cannot be had' unless $dns->{address};

my $postfix = Peer::postfix(0, default_transport => 'smtp', relayhost => '', disable_dns_lookups => 'no', smtp_host_lookup => 'dns', smtp_dns_support_level => 'dnssec',
    smtp_tls_security_level => 'dane', smtp_tls_dane_insecure_mx_policy => 'may', smtp_tls_loglevel => 1, smtp_tcp_port => $port, bounce_queue_lifetime => '1d',
    resolver => "nameserver $dns->{address}\noptions trust-ad edns0\n");
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$dns->{port}", smtp_bind => '127.0.0.1', smtp_port => $port, relay => '', tls_ca => "$certificates/ca.pem",
    mta_sts => 'no')->start;
my $their = bless {port => $postfix->{port}}, 'Petrel';
for my $domain (sort keys %want) {
    for my $mta ($petrel, $their) {
        die "$domain: no 250" unless $mta->send_mail('', "x\@$domain", "Subject: x\n\nx\n") =~ /^250/;
    }
}
sub line_of { my ($log, $domain) = @_; return ($log =~ /^(.*to=<x\@\Q$domain\E>.* status=.*)$/mg)[-1] // '' }
sub verdict {
    my ($log, $domain, $proven) = @_;
    my $line = line_of($log, $domain);
    return ($line =~ /status=deferred/ ? 'waits' : $line =~ /status=(?:bounced|failed)/ ? 'bounced' : $line !~ /status=sent/ ? 'unknown' : $proven->($line) ? 'dane' : 'clear', $line);
}
ok Petrel::wait_for(sub { !grep { line_of($petrel->log, $_) eq '' } keys %want }), 'each has a verdict';
ok Petrel::wait_for(sub { !grep { line_of($postfix->log, $_) eq '' } keys %want }), 'from Postfix, too';
cmp_ok scalar(keys %want), '>=', 60, 'there are ' . keys(%want) . ' destinations';
my ($ours, $theirs) = ($petrel->log, $postfix->log);
for my $domain (sort keys %want) {
    my ($verdict, $line) = verdict($ours, $domain, sub { $_[0] =~ m{, tls=\S+/dane,} });
    is $verdict, $want{$domain}, "$domain: $want{$domain}" or diag $line;
    ($verdict, $line) = verdict($theirs, $domain, sub { $_[0] =~ /relay=([^\[]+)\[/ && $theirs =~ /Verified TLS connection established to \Q$1\E\[/ });
    my ($expected, $why) = $differs{$domain} ? @{ $differs{$domain} } : ($want{$domain}, 'so does Postfix');
    is $verdict, $expected, "  $why" or diag $line;
}
for my $kind (sort keys %kind) {
    unlike Petrel::slurp("$dir/$kind.mail"), qr/clear/, "$kind gets nothing in cleartext" if $kind !~ /stripped|refused/;
}
$petrel->stop;
$postfix->stop;
done_testing;
