#!/usr/bin/perl
# MX records that lead to ourselves, or to what listens on this host alone.
use lib 't/e2e';
use E2E;
use Resolver;

# Stands where a mapped port of ours would be, or a service that trusts who comes by loopback.
my $sink = Sink->start;
my ($host, $port) = $sink->{listen} =~ /^(.*):(\d+)$/;
my $bounces = Sink->start;
my $resolver = Resolver->start({
    'petrel.test'   => {A => ['127.0.0.1']},
    'local.test'    => {A => ['127.0.0.1']},
    'gone.test'     => {},
    'byname.test'   => {MX => ['10 Petrel.test', '20 local.test']},
    'backup.test'   => {MX => ['10 gone.test', '20 petrel.test']},
    'evil.test'     => {MX => ['10 local.test']},
    'evillocal.test' => {MX => ['10 x.localhost']},
    'evilzero.test' => {MX => ['10 zero.test']},
    'zero.test'     => {A => ['0.0.0.0', '224.0.0.1', '255.255.255.255']},
    'meant.test'    => {MX => ['10 local.test']},
});
my %of = (
    dns_servers => "127.0.0.1:$resolver->{port}", smtp_port => $port,
    routes => "sender.test smtp://127.0.0.1:$bounces->{port}\nmeant.test smtp://local.test:$port\n* mx",
);
my $petrel = Petrel->new(%of)->start;

sub outcome {
    my ($domain, $from) = @_;
    $petrel->send_mail($from // 'a@sender.test', "u\@$domain", "Subject: x\n\nx\n");
    $petrel->wait_log(qr/ to=<u\@\Q$domain\E>, .*status=/);
    my ($line) = $petrel->log =~ /^.* (to=<u\@\Q$domain\E>, .*)$/m;
    return $line // 'nothing';
}

sub bounces_with { my ($domain, $dsn, $words, $name) = @_; like outcome($domain), qr/dsn=\Q$dsn\E, status=bounced \(.*\Q$words\E/, $name; return }

bounces_with('byname.test', '5.4.6', 'loops back to myself', 'an MX of our name is ourselves');
like outcome('backup.test'), qr/dsn=4\.4\.4, status=deferred \(no mail host of backup\.test preferred to this host has an address/, 'behind a host without an address mail waits';
bounces_with($_, '5.4.4', 'loopback address', "$_: not by MX") for qw(evil.test evillocal.test);
bounces_with($_, '5.4.4', 'loopback address', "$_: not by a literal") for '[127.0.0.1]', '[IPv6:::1]';
bounces_with('evilzero.test', '5.4.4', 'not a host address', 'nor to addresses that are nobody\'s');
is $sink->count('connections'), 0, 'nobody was called';
like outcome('meant.test'), qr/status=sent/, 'a host that a route names may be here';
ok $bounces->wait_for('a@sender.test'), 'the bounces are sent';
is $petrel->stop, 0, 'ends well';

# A bounce for a sender of such a domain does not get there either.
$petrel->configure(routes => "bad.test smtp://127.0.0.1:1\n* mx", maximal_queue_lifetime => '0s', bounce_queue_lifetime => '0s');
$petrel->start;
$petrel->send_mail('x@evil.test', 'u@evilzero.test', "Subject: x\n\nx\n");
$petrel->wait_log(qr/ to=<x\@evil\.test>, .*status=/);
ok $petrel->wait_log(qr/ to=<x\@evil\.test>, .*dsn=5\.4\.4, status=bounced/), 'a bounce is no way in' or diag $petrel->log;
is $sink->count('connections'), 1, 'nobody was called for it';
is $petrel->stop, 0, 'ends well';

# From a loopback address nothing but loopback can be reached.
$petrel->configure(smtp_bind => '127.0.0.1');
$petrel->start;
like outcome('evil.test', 'b@sender.test'), qr/status=/, 'tried';
$petrel->wait_log(qr/ to=<u\@evil\.test>, .*status=sent/);
ok $petrel->wait_log(qr/ to=<u\@evil\.test>, relay=local\.test\[127\.0\.0\.1\]:$port, .*status=sent/), 'with smtp_bind on loopback MX may lead there' or diag $petrel->log;
is $petrel->stop, 0, 'ends well';
done_testing;
