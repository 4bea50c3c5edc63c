#!/usr/bin/perl
# Crowds of policy hosts of MTA-STS that hang, as any owner of domains may make them: the first policy of another domain is
# fetched all the same before its mail goes, and hosts in one network do not even delay it.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

use constant { NETWORKS => 80, NEIGHBOURS => 80 };
my $dir = tempdir('sts_crowd-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my @good = qw(first second);
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } @good]);
Nginx::certify($dir, 'mail', ['mx.test']);
mkdir "$dir/www";
Petrel::spit("$dir/www/mta-sts.$_.example", "version: STSv1\r\nmode: enforce\r\nmx: mx.test\r\nmax_age: 86400\r\n") for @good;
my $https = Petrel::free_port();
my $web = Nginx->start($dir, Nginx::policies($dir, $https));
my %address = ((map { ("near$_" => '127.200.0.1') } 1 .. NEIGHBOURS), (map { ("far$_" => "127.$_.0.1") } 1 .. NETWORKS));
my %listens = map { $_ => 1 } values %address;
Petrel::spawn("$dir/slow", 'python3', 't/e2e/slow_policies.py', "$dir/web.pem", "$dir/web.key", $https, map { "silent\@$_" } sort keys %listens);
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $dir, $dir, 'host=mail');
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m && Petrel::slurp("$dir/slow") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer") . Petrel::slurp("$dir/slow");
my ($smtp) = Petrel::slurp("$dir/peer") =~ /^host (\d+)$/m;

my $text = "\$ORIGIN example.\n\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 1\n\@ IN NS ns\nns IN A 127.0.0.1\n";
my %at = (%address, map { $_ => '127.0.0.1' } @good);
$text .= qq($_ IN MX 10 mx.test.\nmta-sts.$_ IN A $at{$_}\n_mta-sts.$_ IN TXT "v=STSv1; id=1;"\n) for sort keys %at;
my $nsd = Nsd->start($dir,
    example => Petrel::spit("$dir/example.zone", $text),
    test => Petrel::spit("$dir/test.zone", "\$ORIGIN test.\n\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 1\n\@ IN NS ns\nns IN A 127.0.0.1\nmx IN A 127.0.0.1\n"));
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$dir/certificates/ca.pem", smtp_port => $smtp, mta_sts_port => $https, relay => '')->start;
sub line_of { my ($address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.*)$/mg)[-1] // '' }
sub fetches_ended { return scalar(() = $petrel->log =~ /the MTA-STS policy of $_[0]\d+\.example cannot be used: /g) }
sub mail {
    my @to = @_;
    my @wrong = grep { $petrel->send_mail('anna@sender.test', $_, "Subject: x\n\nx\n") !~ /^250/ } @to;
    is "@wrong", '', scalar(@to) . ' mails are accepted';
    return;
}

# One network.
mail(map { "x\@near$_.example" } 1 .. NEIGHBOURS);
mail('x@first.example');
ok $petrel->wait_log(qr/to=<x\@first\.example>.*status=/), 'mail for another domain';
like line_of('x@first.example'), qr{/sts, .*status=sent}, 'goes, proven';
cmp_ok fetches_ended('near'), '<', NEIGHBOURS, 'before most of the others could be asked';

# As many networks as it takes.
mail(map { "x\@far$_.example" } 1 .. NETWORKS);
mail('x@second.example');
ok $petrel->wait_log(qr/to=<x\@second\.example>.*status=/), 'mail for another domain';
like line_of('x@second.example'), qr{/sts, .*status=sent}, 'goes, proven';
ok Petrel::wait_for(sub { fetches_ended('far') == NETWORKS }), 'each of the others is asked';
# Mail for a domain that could not be looked up in time waits; no domain counts as one without a policy before its host was asked.
my @early = grep { line_of($_) =~ /status=sent/ } map { "x\@near$_.example" } 1 .. NEIGHBOURS;
ok Petrel::wait_for(sub { fetches_ended('near') >= @early }), 'no mail goes before its host was asked';
is $petrel->stop, 0, 'it ends well';
done_testing;
