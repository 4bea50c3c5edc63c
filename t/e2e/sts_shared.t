#!/usr/bin/perl
# Domains with two different demands, and one with none, share a site that may have one session at a time. All their mail
# leaves, each over a host that proved what its domain demands, and a stream of mail for one starves no other.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('sts_shared-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca";
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } 'one', 'two']);
Nginx::certify($dir, $_, ["$_.test"]) for 'm1', 'm2';
mkdir "$dir/www";
my %allowed = (one => 'm1.test', two => 'm2.test');
Petrel::spit("$dir/www/mta-sts.$_.example", "version: STSv1\r\nmode: enforce\r\nmx: $allowed{$_}\r\nmax_age: 86400\r\n") for keys %allowed;
my $https = Petrel::free_port();
Nginx->start($dir, Nginx::policies($dir, $https));

my $port = Petrel::free_port();
Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', $dir, $dir, map { "m$_=m$_\@127.0.0.$_:$port" } 1, 2);
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my $head = "\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 60\n\@ IN NS ns\nns IN A 127.0.0.1\n";
my $nsd = Nsd->start($dir,
    test => Petrel::spit("$dir/test.zone", "\$ORIGIN test.\n${head}m1 IN A 127.0.0.1\nm2 IN A 127.0.0.2\n"),
    example => Petrel::spit("$dir/example.zone", "\$ORIGIN example.\n$head" . join '', map { "$_ IN MX 10 m1.test.\n$_ IN MX 10 m2.test.\n"
            . ($allowed{$_} ? "mta-sts.$_ IN A 127.0.0.1\n_mta-sts.$_ IN TXT \"v=STSv1; id=1;\"\n" : '') } 'one', 'two', 'plain'));
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$ca.pem", smtp_port => $port, mta_sts_port => $https, relay => '',
    routes => '* mx?concurrency=1')->start;

my %sent = map { ($_ => 0) } 'one', 'two', 'plain';
sub give {
    my ($domain, $count) = @_;
    my @mails = map { ('MAIL FROM:<anna@sender.test>', 'RCPT TO:<x' . $sent{$domain}++ . "\@$domain.example>", 'DATA', ["Subject: x\r\n\r\nx\r\n.\r\n"]) } 1 .. $count;
    my @replies = $petrel->dialogue('EHLO client.test', @mails, 'QUIT');
    die "no 250: @replies" if Petrel::count(join('', @replies), qr/^250 .*queued as/m) != $count;
    return;
}
sub gone { my ($domain) = @_; return Petrel::count($petrel->log, qr/to=<x\d+\@$domain\.example>.* status=sent/) }

for (1 .. 20) { give($_, 1) for 'one', 'two', 'plain' }
ok Petrel::wait_for(sub { gone('one') + gone('two') + gone('plain') == 60 }), 'all mail leaves' or diag $petrel->log =~ /(.*status=deferred.*)/g;

# A stream: before the last of it has left more has come, until what others wait for has left. Each of three lanes
# has a turn of twenty mails, and one or two more that were sent early.
for my $stream ('one', 'plain') {
    my @others = grep { $_ ne $stream } sort keys %sent;
    my %number = map { ($_ => $sent{$_}) } @others;
    give($stream, 40);
    give($_, 1) for @others;
    my $fed = 0;
    my $served = Petrel::wait_for(sub {
        if ($sent{$stream} - gone($stream) < 40 && $fed < 4000) { give($stream, 20); $fed += 20 }
        return !grep { gone($_) <= $number{$_} } @others;
    });
    ok $served, "a stream of mail for $stream starves no other";
    for my $other (@others) {
        my ($id) = $petrel->log =~ /: (\S+): to=<x$number{$other}\@$other\.example>/;
        my ($meanwhile) = $petrel->log =~ /: \Q$id\E: [^\n]*queued(.*?)to=<x$number{$other}\@/s;
        cmp_ok Petrel::count($meanwhile // die('no such mail'), qr/to=<x\d+\@$stream\.example>.* status=sent/), '<', 150, "  mail for $other waits for few of it";
    }
}
ok Petrel::wait_for(sub { !grep { gone($_) < $sent{$_} } keys %sent }), 'all of it leaves';
my $log = $petrel->log;
for my $domain (sort keys %allowed) {
    my @lines = $log =~ /^(.*to=<x\d+\@$domain\.example>.* status=sent.*)$/mg;
    is scalar(grep { !/relay=\Q$allowed{$domain}\E\[/ || !m{tls=\S+/sts,} } @lines), 0, "mail of $domain goes to its host alone, proven (" . @lines . ' mails)';
}
unlike join('', map { Petrel::slurp("$dir/m$_.mail") } 1, 2), qr/clear/, 'none in cleartext';
unlike $log, qr/status=deferred/, 'none was deferred';
$petrel->stop;
done_testing;
