#!/usr/bin/perl
# <postmaster> without a domain: qualified when it is taken; and what is in the spool without one ends nobody.
use lib 't/e2e';
use E2E;
use Forge;

my $letter = "Subject: hi\n\nhello\n";

# --- By SMTP

{
    my $petrel = Petrel->new(local_domains => 'sec.test, other.test', routes => 'sec.test mx', dns_servers => '127.0.0.1:1')->start;
    my @said = $petrel->dialogue('EHLO client.test', 'MAIL FROM:<a@b.test>', 'RCPT TO:<Postmaster>', 'RCPT TO:<postmaster@sec.test>', 'DATA', ["Subject: hi\r\n\r\nhello\r\n.\r\n"], 'QUIT');
    like $said[3], qr/^250 /, '<postmaster> is taken';
    like $said[-2], qr/^250 .*queued as/, 'and what is sent there' or diag "@said";
    my ($list) = ($petrel->run(qw(queue ls --json)))[1];
    my @to = $list =~ /"address": ?"([^"]*)"/g;
    is "@to", 'postmaster@sec.test', 'it is for the first of local_domains, once';
    is $petrel->stop, 0, 'the daemon lives';
    $petrel->start;
    is $petrel->queued, 1, 'after a restart too';
    is $petrel->stop, 0, 'and ends well';
    unlike $petrel->log, qr/Assertion/, 'nothing failed';
}
{
    my $sink = Sink->start;
    my $petrel = Petrel->new(local_domains => ' ', relay => '', routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    like $petrel->send_mail('a@b.test', 'postmaster', $letter), qr/^250 /, 'without local_domains it is taken too';
    ok Petrel::wait_for(sub { $sink->count('messages') == 1 }), 'and goes where the route says';
    is scalar($sink->for_address('postmaster@petrel.test')), 1, 'at our hostname';
    is $petrel->stop, 0, 'Petrel ends well';
    $sink->stop;
}

# --- In the spool, where older versions and local users have put it

my $sink = Sink->start;
my $lmtp = Sink->start('--lmtp');
my %ways = (
    mx => ['sec.test mx', qr/dsn=5\.1\.2, status=bounced \(Host or domain name not found: the address has no domain\)/],
    smarthost => ["sec.test smtp://127.0.0.1:$sink->{port}", qr/dsn=2\.0\.0, status=sent/],
    lmtp => ["sec.test lmtp://127.0.0.1:$lmtp->{port}", qr/dsn=2\.0\.0, status=sent/],
    maildir => ['sec.test maildir:SPOOL/../%u?create=all', qr/dsn=2\.0\.0, status=sent/],
    peers => ["sec.test smtp://127.0.0.1:$sink->{port}?defragment=yes", qr/dsn=2\.0\.0, status=sent/,
        defrag_host => 'a.test', defrag_peers => 'b.test=127.0.0.1:1', defrag_registry => 'dir:REGISTRY'],
);
for my $way (sort keys %ways) {
    my ($routes, $result, %more) = @{ $ways{$way} };
    my $petrel = Petrel->new(local_domains => 'sec.test', dns_servers => '127.0.0.1:1');
    mkdir "$petrel->{dir}/registry";
    s/SPOOL/$petrel->{dir}\/spool/, s/REGISTRY/$petrel->{dir}\/registry/ for $routes, values %more;
    $petrel->configure(routes => $routes, %more);
    $petrel->start;
    $petrel->stop;
    my $id = Forge::inject($petrel, from => '', to => ['postmaster'], content => "Subject: x\r\n\r\nx\r\n");
    eval { $petrel->start } or diag $@;
    ok $petrel->wait_log(qr/ $id: to=<postmaster>.*status=/), "$way: there is a verdict";
    like $petrel->log, qr/ $id: to=<postmaster>.*$result/, "$way: as it should be" or diag $petrel->log;
    is $petrel->stop, 0, "$way: the daemon lives";
}
$_->stop for $sink, $lmtp;

done_testing;
