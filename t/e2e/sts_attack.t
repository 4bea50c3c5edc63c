#!/usr/bin/perl
# A man in the middle against domains whose policies are known: it removes STARTTLS, shows another certificate, or
# answers with another mail host, and suppresses the record and the policy. Mail waits and says why, it is counted,
# the attacker gets none of it, and it leaves when the attack ends.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('sts_attack-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca";

# Per domain: the attack, what the log says of its mail, and how it is counted (RFC 8460 4.3).
my %attack = (
    'strip' => [qr/dsn=4\.7\.4.*TLS is demanded by MTA-STS but host strip\.test\S+ does not offer STARTTLS/, 'starttls-not-supported'],
    'other' => [qr/dsn=4\.7\.5.*TLS is demanded by MTA-STS but host other\.test\S+ failed in the TLS handshake: certificate does not name other\.test/, 'certificate-host-mismatch'],
    'unknown' => [qr/dsn=4\.7\.5.*TLS is demanded by MTA-STS but host unknown\.test\S+ failed in the TLS handshake: certificate/, 'certificate-not-trusted'],
    'forged' => [qr/dsn=4\.7\.5.*MTA-STS of forged\.example does not allow evil\.test/, 'validation-failure'],
);
my @names = sort keys %attack;
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } @names]);
Nginx::certify($dir, 'mail', [map { "$_.test" } @names]);
Nginx::certify($dir, 'wrong', ['attacker.test']);
Nginx::certify($dir, 'evil', ['evil.test']);
Petrel::spit("$dir/false.$_", Petrel::slurp("$dir/certificates/self.$_")) for qw(pem key);
mkdir "$dir/www";
Petrel::spit("$dir/www/mta-sts.$_.example", "version: STSv1\r\nmode: enforce\r\nmx: $_.test\r\nmax_age: 86400\r\n") for @names;

my $https = Petrel::free_port();
# Hosts at addresses of their own, all at one port: the right one, and his.
my $port = Petrel::free_port();
my %host = ('honest' => ['mail', 1], 'strip' => ['stripped', 2], 'other' => ['wrong', 3], 'unknown' => ['false', 4], 'evil' => ['evil', 5]);
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $dir, $dir, map { "$_=$host{$_}[0]\@127.0.0.$host{$_}[1]:$port" } sort keys %host);
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");

# Answers of DNS, without DNSSEC.
my $serial = 0;
sub zones {
    my ($attacked) = @_;
    $serial++;
    my %text = map { ($_ => "\$ORIGIN $_.\n\$TTL 1\n\@ IN SOA ns hostmaster $serial 7200 3600 86400 1\n\@ IN NS ns\nns IN A 127.0.0.1\n") } 'test', 'example';
    for my $name (@names) {
        my $exchange = $attacked && $name eq 'forged' ? 'evil' : $name;
        $text{example} .= "$name IN MX 10 $exchange.test.\nmta-sts.$name IN A 127.0.0.1\n" . (!$attacked ? qq(_mta-sts.$name IN TXT "v=STSv1; id=1;"\n) : $name eq 'forged' ? qq(_mta-sts.$name IN TXT "v=STSv1; id=2;"\n) : '');
        $text{test} .= "$name IN A 127.0.0." . ($attacked && $host{$name} ? $host{$name}[1] : 1) . "\n";
    }
    $text{test} .= "evil IN A 127.0.0.5\n";
    return map { ($_ => Petrel::spit("$dir/$_.zone", $text{$_})) } keys %text;
}
my $web = Nginx->start($dir, Nginx::policies($dir, $https));
my $nsd = Nsd->start($dir, zones(0));
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$ca.pem", smtp_port => $port, mta_sts_port => $https, relay => '')->start;
sub line_of { my ($address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.* status=.*)$/mg)[-1] // '' }
sub send_all {
    my ($what) = @_;
    my %id;
    for my $name (@names) {
        my $said = $petrel->send_mail('anna@sender.test', "$what\@$name.example", "Subject: $what\n\nsecret\n");
        ($id{$name}) = $said =~ /queued as (\S+)/ or die $said;
    }
    ok Petrel::wait_for(sub { !grep { line_of("$what\@$_.example") eq '' } @names }), "$what: each mail is tried";
    return %id;
}

send_all('before');
like line_of("before\@$_.example"), qr{tls=\S+/sts, dsn=2\.0\.0, status=sent}, "before: $_ is delivered, proven" for @names;
$petrel->stop;

# The attack begins.
$nsd->stop;
zones(1);
$nsd->again;
$web->stop('QUIT');
my $honest = Petrel::slurp("$dir/honest.mail");
$petrel->start;
my %id = send_all('during');
for my $name (@names) {
    my $line = line_of("during\@$name.example");
    like $line, qr/status=deferred/, "during: $name waits";
    like $line, $attack{$name}[0], '  and why';
    my (undef, $why) = $petrel->run('queue', 'why', $id{$name});
    like $why, qr/MTA-STS/, '  queue why says so, too';
}
my $status = decode_json($petrel->status);
for my $name (@names) {
    my @counted = grep { $_->{domain} eq "$name.example" } @{ $status->{tls_reports} };
    ok scalar(grep { $_->{result} eq $attack{$name}[1] && $_->{policy} eq 'sts' && $_->{count} > 0 } @counted), "$name is counted: $attack{$name}[1]"
        or diag explain \@counted;
}
ok scalar(grep { $_->{domain} eq 'forged.example' && $_->{result} eq 'sts-policy-fetch-error' && $_->{host} eq '' } @{ $status->{tls_reports} }), 'the fetch that failed is counted, too'
    or diag explain $status->{tls_reports};
for my $name (grep { $_ ne 'honest' } sort keys %host) {
    is Petrel::slurp("$dir/$name.mail"), '', "$name gets no mail";
    unlike join('', map { Petrel::slurp($_) } glob "$dir/$name.*.wire"), qr/MAIL FROM|secret/i, '  nor its envelope';
}
is Petrel::slurp("$dir/honest.mail"), $honest, 'nor does another host';
is $petrel->queued, scalar(@names), 'all of it is kept';
ok $petrel->wait_log(qr/trouble=sts_unreachable.*subject=forged\.example/), 'trouble is reported where a new policy cannot be fetched';
like +($petrel->run('status'))[1], qr/^warning +sts_unreachable .*forged\.example.*mail waits, since it allows none of the domain's hosts: mta-sts\.forged\.example: .*cannot connect/m, 'status has it';

# The attack ends.
$nsd->stop;
zones(0);
$nsd->again;
$web->again;
my ($code, $said) = $petrel->run('queue', 'retry', '--all');
is $code, 0, 'an operator tries it again' or diag $said;
ok Petrel::wait_for(sub { (grep { line_of("during\@$_.example") =~ /status=sent/ } @names) == @names or $petrel->run('queue', 'retry', '--all') && 0 }), 'it leaves';
like line_of("during\@$_.example"), qr{tls=\S+/sts, dsn=2\.0\.0, status=sent}, "after: $_ is delivered, proven" for @names;
unlike Petrel::slurp("$dir/honest.mail"), qr/clear/, 'nothing in cleartext';
ok $petrel->wait_log(qr/recovered=sts_unreachable/), 'the trouble is over';
$petrel->stop;
done_testing;
