#!/usr/bin/perl
# Demands of domains for TLS (MTA-STS, DANE): CPU a message with both off, and on where no domain demands anything; with
# a policy that is kept, beside a route that verifies certificates; and with TLSA records. All in turn, against a second
# Petrel that discards mail, by MX from NSD and (for TLSA) Unbound.
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA qw(sha256_hex);
use File::Basename qw(dirname);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Nsd;
use Unbound;

die "no nsd, unbound or ldnsutils\n" unless Unbound->available;
my $messages = $ENV{MESSAGES} || 3000; # of each run
my $rounds = $ENV{ROUNDS} || 5;
my $work = Bench::work_dir();
$| = 1;
system('sh', "$Petrel::root/t/support/tls_certificates.sh", "$work/c") == 0 or die 'no certificates';
my $key = sha256_hex(scalar qx(openssl x509 -in $work/c/good.pem -noout -pubkey | openssl pkey -pubin -outform DER));

my $receiver = Petrel->new(routes => '* discard', relay_from => '127.0.0.1', tls_certificate => "$work/c/good.pem", tls_key => "$work/c/good.key", log_level => 'warning',
    server_session_limit => 1000, client_session_limit => 1000)->start;
# The host is mail.example.net, whose name is in the certificate; sec.example is validated, and has a host with a record.
my $mx = "IN MX 10 mail.example.net.\n";
mkdir "$work/dns";
my $dns = Unbound->start("$work/dns", {
        'plain.example' => "\@ $mx", 'policy.example' => "\@ $mx" . "_mta-sts IN TXT \"v=STSv1; id=1;\"\n", 'example.net' => "mail IN A 127.0.0.1\n",
        'sec.example' => "\@ IN MX 10 host\nhost IN A 127.0.0.1\n_$receiver->{port}._tcp.host IN TLSA 3 1 1 $key\n",
    }, { 'sec.example' => 1 });

# Name => [domain, settings of the sender].
my %kinds = (
    'off' => ['plain.example', mta_sts => 'no', dane => 'no'],
    'on, nothing demanded' => ['plain.example'],
    'verified by the route' => ['plain.example', mta_sts => 'no', dane => 'no', routes => '* mx?tls=verify'],
    'a policy that is kept' => ['policy.example'],
    'TLSA records' => ['sec.example'],
);
sub measure {
    my ($domain, %settings) = @_;
    my $sender = Petrel->new(relay => '', relay_from => '127.0.0.1', dns_servers => "127.0.0.1:$dns->{port}", dns_trust => 'yes', smtp_bind => '127.0.0.1', smtp_port => $receiver->{port},
        tls_ca => "$work/c/ca.pem", log_level => 'warning', server_session_limit => 1000, client_session_limit => 1000, %settings);
    mkdir "$sender->{dir}/spool";
    mkdir "$sender->{dir}/spool/lock";
    Petrel::spit("$sender->{dir}/spool/lock/sts", sprintf "1 policy.example 1 enforce %d 604800 mail.example.net\n", time * 1000) if $domain eq 'policy.example';
    $sender->start;
    my $cpu = 0;
    for my $count (300, $messages) { # the first warms it
        my $before = Bench::cpu_ms($sender->{pid});
        Bench::load($sender->{port}, size => 1024, connections => 20, messages => $count, rcpt => "user%d\@$domain");
        Petrel::wait_for(sub { $sender->status =~ /"queued":\s*0\b|"messages":\s*0\b/ && $sender->queued == 0 }) or die "$domain: mail waits: " . $sender->log;
        $cpu = (Bench::cpu_ms($sender->{pid}) - $before) / $count;
    }
    my $reports = $sender->status;
    die "$domain: nothing was proven\n" if $domain ne 'plain.example' && $reports !~ /"result": "success"/;
    $sender->stop;
    return $cpu;
}
my %figures;
for my $round (1 .. $rounds) {
    push @{ $figures{$_} }, measure(@{ $kinds{$_} }) for sort keys %kinds;
}
my %median = map { ($_ => Bench::median(@{ $figures{$_} })) } keys %figures;
printf "%-24s %6.3f ms CPU a message\n", $_, $median{$_} for sort keys %median;
sub bar { my ($what, $value, $limit) = @_; return printf "%-60s %6.3f <= %s %s\n", $what, $value, $limit, $value <= $limit ? 'ok' : 'MISSED' }
bar('on, nothing demanded: CPU to off', $median{'on, nothing demanded'} / $median{off}, 1.02);
bar('a policy that is kept: CPU to verified by the route', $median{'a policy that is kept'} / $median{'verified by the route'}, 1.02);
bar('TLSA records: CPU to verified by the route', $median{'TLSA records'} / $median{'verified by the route'}, 1.02);
$receiver->stop;
