#!/usr/bin/perl
# Policy hosts of MTA-STS that accept and say nothing, stop in the middle, or send a byte now and then for ever: mail for their
# domains goes when the time is over, once for all that waits, and mail for others goes before. A policy that is kept holds
# meanwhile.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('sts_slow-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca";

my %address = (silent => '127.0.0.2', mute => '127.0.0.3', head => '127.0.0.4', body => '127.0.0.5', lines => '127.0.0.6');
my @slow = sort keys %address;
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } @slow, 'good']);
Nginx::certify($dir, 'mail', ['mx.test']);
mkdir "$dir/www";
Petrel::spit("$dir/www/mta-sts.good.example", "version: STSv1\r\nmode: enforce\r\nmx: mx.test\r\nmax_age: 86400\r\n");
my $https = Petrel::free_port();
my $web = Nginx->start($dir, Nginx::policies($dir, $https));
Petrel::spawn("$dir/slow", 'python3', 't/e2e/slow_policies.py', "$dir/web.pem", "$dir/web.key", $https, map { "$_\@$address{$_}" } @slow);
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $dir, $dir, 'host=mail');
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m && Petrel::slurp("$dir/slow") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer") . Petrel::slurp("$dir/slow");
my ($smtp) = Petrel::slurp("$dir/peer") =~ /^host (\d+)$/m;

my $serial = 0;
sub zones {
    my ($good, $id) = @_;
    $serial++;
    my $text = "\$ORIGIN example.\n\$TTL 1\n\@ IN SOA ns hostmaster $serial 7200 3600 86400 1\n\@ IN NS ns\nns IN A 127.0.0.1\nplain IN MX 10 mx.test.\n";
    my %at = (%address, good => $good);
    $text .= qq($_ IN MX 10 mx.test.\nmta-sts.$_ IN A $at{$_}\n_mta-sts.$_ IN TXT "v=STSv1; id=$id;"\n) for sort keys %at;
    return (
        example => Petrel::spit("$dir/example.zone", $text),
        test => Petrel::spit("$dir/test.zone", "\$ORIGIN test.\n\$TTL 1\n\@ IN SOA ns hostmaster $serial 7200 3600 86400 1\n\@ IN NS ns\nns IN A 127.0.0.1\nmx IN A 127.0.0.1\n"));
}
my $nsd = Nsd->start($dir, zones('127.0.0.1', 1));
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$ca.pem", smtp_port => $smtp, mta_sts_port => $https, relay => '')->start;
sub line_of { my ($address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.*)$/mg)[-1] // '' }
sub mail { my ($to) = @_; like $petrel->send_mail('anna@sender.test', $to, "Subject: x\n\nx\n"), qr/^250/, "mail to $to"; return }

# All slow domains first, three messages each; then others, which must not wait for them.
for my $n (1 .. 3) { mail("x$n\@$_.example") for @slow }
mail('x@plain.example');
mail('x@good.example');
ok Petrel::wait_for(sub { line_of('x@plain.example') =~ /status=sent/ && line_of('x@good.example') =~ /status=sent/ }), 'mail for other domains goes';
like line_of('x@good.example'), qr{/sts, }, 'proven, where a policy demands it';
is scalar(grep { line_of("x1\@$_.example") ne '' } @slow), 0, 'before that of the slow ones';
ok Petrel::wait_for(sub { $petrel->queued == 0 }), 'and that goes, too';
for my $name (@slow) {
    for my $n (1 .. 3) {
        my $line = line_of("x$n\@$name.example");
        like $line, qr/status=sent/, "$name, $n: sent as without a policy";
        my ($delay) = $line =~ /, delay=([\d.]+),/;
        # Ten seconds from the first on; what is beyond is the machine's.
        ok defined $delay && ($n > 1 || $delay > 8) && $delay < 40, '  when the time was over' or diag $line;
    }
    is scalar(() = $petrel->log =~ /the MTA-STS policy of $name\.example cannot be used: mta-sts\.$name\.example: no complete response in 10 s; there is none/g), 1, '  one fetch for all three';
}
my $counted = decode_json($petrel->status)->{tls_reports};
for my $name (@slow) {
    is scalar(grep { $_->{domain} eq "$name.example" && $_->{result} eq 'sts-policy-fetch-error' && $_->{count} == 1 } @$counted), 1, "$name is counted" or diag explain $counted;
}

# Known to be slow: for five minutes nothing is fetched, nor waited for.
my $before = () = $petrel->log =~ /no complete response/g;
mail("again\@$_.example") for @slow;
ok Petrel::wait_for(sub { !grep { line_of("again\@$_.example") !~ /status=sent/ } @slow }), 'the next mail goes';
is scalar(() = $petrel->log =~ /no complete response/g), $before, 'without another fetch';

# The host of a good policy begins to hang, and a new id asks for a fetch: what is kept holds, also over a restart.
is $petrel->stop, 0, 'it stops';
$nsd->stop;
zones($address{body}, 2);
$nsd->again;
$petrel->start;
mail('later@good.example');
ok $petrel->wait_log(qr/the MTA-STS policy of good\.example cannot be used: .*no complete response in 10 s; the one before holds/), 'a policy that is kept, and whose host hangs';
ok Petrel::wait_for(sub { line_of('later@good.example') =~ m{/sts, .*status=sent} }), 'its mail goes, proven' or diag line_of('later@good.example');
is $petrel->stop, 0, 'it ends well';
done_testing;
