#!/usr/bin/perl
# A name server that breaks what it says by TCP: that costs the domain its look-up, and nobody else.
use lib 't/e2e';
use E2E;
use Resolver;

my $sink = Sink->start;
my ($host, $port) = $sink->{listen} =~ /^(.*):(\d+)$/;

# The domains of others are slow: they are answered when all of the broken ones have failed.
my @slow = map { "slow$_.test" } 1 .. 3;
sub zone {
    my ($how) = @_;
    my %zone = ('mail.test' => {A => [$host]}, 'large.test' => {MX => ['10 mail.test'], tcp => 'good'});
    $zone{$_} = {MX => ['10 mail.test'], behind => 5} for @slow;
    $zone{"bad$_.test"} = {MX => ['10 mail.test'], tcp => $how} for 1 .. 5;
    return \%zone;
}

sub trial {
    my ($how, $by_tcp) = @_;
    my $resolver = Resolver->start(zone($how), tcp => $by_tcp);
    my $petrel = Petrel->new(dns_servers => "127.0.0.1:$resolver->{port}", smtp_port => $port, smtp_bind => '127.0.0.1', routes => '* mx')->start;
    my $send = sub { my $domain = shift; $petrel->send_mail('a@sender.test', "$how\@$domain", "Subject: x\n\nx\n"); return };
    $send->($_) for @slow, map("bad$_.test", 1 .. 5), $by_tcp ? 'large.test' : ();
    for my $domain (@slow, $by_tcp ? 'large.test' : ()) {
        $petrel->wait_log(qr/ to=<$how\@\Q$domain\E>, .*status=/);
        like $petrel->log, qr/ to=<$how\@\Q$domain\E>, relay=mail\.test\[.*dsn=2\.0\.0, status=sent/, "$how: $domain is delivered at once";
    }
    unless ($how eq 'silent') {
        $petrel->wait_log(qr/ to=<$how\@bad1\.test>, .*status=/);
        like $petrel->log, qr/ to=<$how\@bad1\.test>, .*dsn=4\.4\.3, status=deferred \(cannot look up bad1\.test: /, "$how: the broken one waits";
    }
    is $petrel->stop, 0, "$how: ends well";
    $resolver->stop;
    return;
}

trial($_, 1) for qw(dead reset half silent);
trial('refused', 0);
done_testing;
